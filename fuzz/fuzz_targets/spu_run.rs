#![no_main]

chipless_fuzz::target!(spu_run, values);
