#![no_main]

chipless_fuzz::target!(neuron_run, places);
