//! What one run gave.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What a run gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) run: u64,
    /// `ok`, or the kind of failure.
    pub(crate) status: Cow<'static, str>,
    pub(crate) message: String,
    pub(crate) values: Vec<Option<f64>>,
}
