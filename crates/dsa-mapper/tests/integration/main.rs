//! Mappings through the public door: made, judged, written, read.

mod mapping;
mod random_mappings;
mod shared;
