#![no_main]

chipless_fuzz::target!(schedule_tree, values);
