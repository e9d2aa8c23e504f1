#![no_main]

chipless_fuzz::target!(npu_lower, places);
