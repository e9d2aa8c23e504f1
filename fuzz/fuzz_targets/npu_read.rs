#![no_main]

chipless_fuzz::target!(npu_read, places);
