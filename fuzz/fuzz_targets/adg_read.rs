#![no_main]

chipless_fuzz::target!(adg_read, values);
