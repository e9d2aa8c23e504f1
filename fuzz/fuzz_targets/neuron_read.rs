#![no_main]

chipless_fuzz::target!(neuron_read, places);
