#![no_main]

chipless_fuzz::target!(sweep_plan, values);
