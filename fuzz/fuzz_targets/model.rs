#![no_main]

chipless_fuzz::target!(model);
