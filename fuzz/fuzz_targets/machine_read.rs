#![no_main]

chipless_fuzz::target!(machine_read, values);
