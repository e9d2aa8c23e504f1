//! Names to nodes.

/// Rules about names and what they stand for.
pub mod rules {
    crate::rules::rules! {}
}
