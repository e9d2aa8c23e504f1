#![no_main]

chipless_fuzz::target!(yaml_read, values);
