#![no_main]

chipless_fuzz::target!(onnx_read, places);
