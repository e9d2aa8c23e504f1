#![no_main]

chipless_fuzz::target!(gemini_network, values);
