#![no_main]

chipless_fuzz::target!(device_workload, values);
