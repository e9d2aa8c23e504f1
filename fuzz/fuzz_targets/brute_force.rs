#![no_main]

chipless_fuzz::target!(brute_force);
