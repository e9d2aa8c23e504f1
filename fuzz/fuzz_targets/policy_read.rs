#![no_main]

chipless_fuzz::target!(policy_read, values);
