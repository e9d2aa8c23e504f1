//! Instructions without an effect on memory.

use chipless_model::{Access, Fault, Kernel, Storage};
use std::borrow::Cow;

/// An instruction that only takes time.
#[derive(Debug)]
pub(crate) struct Control(pub(crate) &'static str);

impl Kernel for Control {
    fn operation(&self) -> Cow<'static, str> {
        self.0.into()
    }

    /// The label is the layer.
    fn layer<'l>(&self, label: &'l str) -> Option<&'l str> {
        Some(label)
    }

    fn accesses(&self, _: &mut dyn FnMut(Access)) {}

    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
}
