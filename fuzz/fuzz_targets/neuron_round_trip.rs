#![no_main]

chipless_fuzz::target!(neuron_round_trip, places);
