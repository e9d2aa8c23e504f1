#![no_main]

chipless_fuzz::target!(npy_read);
