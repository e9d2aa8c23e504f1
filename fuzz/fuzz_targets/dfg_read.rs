#![no_main]

chipless_fuzz::target!(dfg_read, values);
