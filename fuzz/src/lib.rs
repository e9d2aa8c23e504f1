//! Fuzz targets: each is a body of `chipless_fuzzing`, whose inputs past the reader are counted.

use libfuzzer_sys::Corpus;

/// Whether an input becomes one from which others are made. What the reader takes does; of what it refuses one in sixteen, since nearly all
/// that is made from a broken file is broken, too, and would only test the first lines of the reader.
#[must_use]
pub fn kept(is_past: bool, bytes: &[u8]) -> Corpus {
    let sum = bytes.iter().fold(bytes.len() as u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    if is_past || (sum >> 32).is_multiple_of(16) {
        Corpus::Keep
    } else {
        Corpus::Reject
    }
}

/// A target with this body. `values`: most mutations change numbers, words, elements and lines of a text, so that more get past its reader;
/// `places`: most leave every part of a binary file at its place.
#[macro_export]
macro_rules! target {
    ($body:ident) => {
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| -> libfuzzer_sys::Corpus {
            let is_past = chipless_fuzzing::tallied(chipless_fuzzing::$body, bytes);
            $crate::kept(is_past, bytes)
        });
    };
    ($body:ident, values) => {
        $crate::target!($body);

        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            if seed % 16 == 0 {
                return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
            }
            let mut bytes = data[..size].to_vec();
            chipless_fuzzing::mutate_values(&mut bytes, seed.into());
            let size = bytes.len().min(max_size);
            data[..size].copy_from_slice(&bytes[..size]);
            size
        });
    };
    ($body:ident, places) => {
        $crate::target!($body);

        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            if seed % 8 == 0 {
                return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
            }
            chipless_fuzzing::mutate_in_place(&mut data[..size], seed.into());
            size
        });
    };
}
