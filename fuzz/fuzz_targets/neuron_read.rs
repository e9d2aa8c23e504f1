#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| chipless_fuzzing::tallied(chipless_fuzzing::neuron_read, bytes));
