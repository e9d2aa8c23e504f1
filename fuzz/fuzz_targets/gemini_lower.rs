#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|bytes: &[u8]| chipless_fuzzing::tallied(chipless_fuzzing::gemini_lower, bytes));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 4 == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut bytes = data[..size].to_vec();
    chipless_fuzzing::mutate_values(&mut bytes, seed.into());
    let size = bytes.len().min(max_size);
    data[..size].copy_from_slice(&bytes[..size]);
    size
});
