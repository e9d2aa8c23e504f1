#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| chipless_fuzzing::tallied(chipless_fuzzing::npu_read, bytes));
