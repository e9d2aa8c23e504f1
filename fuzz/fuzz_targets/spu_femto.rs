#![no_main]

chipless_fuzz::target!(spu_femto, places);
