#![no_main]

chipless_fuzz::target!(gemini_lower, values);
