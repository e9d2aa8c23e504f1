#![no_main]

chipless_fuzz::target!(dsa_run, values);
