//! Fuzz targets: each is a body of `chipless_fuzzing`, whose inputs past the reader are counted.

/// A target with this body. `values`: three of four mutations change numbers and values of a text, so that more get past its reader.
#[macro_export]
macro_rules! target {
    ($body:ident) => {
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| chipless_fuzzing::tallied(
            chipless_fuzzing::$body,
            bytes
        ));
    };
    ($body:ident, values) => {
        $crate::target!($body);

        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            if seed % 4 == 0 {
                return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
            }
            let mut bytes = data[..size].to_vec();
            chipless_fuzzing::mutate_values(&mut bytes, seed.into());
            let size = bytes.len().min(max_size);
            data[..size].copy_from_slice(&bytes[..size]);
            size
        });
    };
}
