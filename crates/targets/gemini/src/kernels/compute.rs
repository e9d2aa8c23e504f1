//! A tile: what a unit computes at once, from the bytes that its buffers hold.

use crate::lower::region::Region;
use crate::schedule::Bounds;
use chipless_model::{Access, Fault, Kernel, Storage};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt::Write;

/// A part of an operand in L2.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// Which operand.
    pub(crate) operand: u8,
    /// Its box, absolute in the layer's input.
    pub(crate) bounds: Bounds,
    pub(crate) region: Region,
}

/// A part of the result and where it goes.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// Its box, absolute in the layer's output.
    pub(crate) bounds: Bounds,
    pub(crate) region: Region,
}

/// A tile.
#[derive(Debug)]
pub(crate) struct Tile {
    pub(crate) unit: &'static str,
    /// Its box of the layer's output.
    pub(crate) bounds: Bounds,
    pub(crate) inputs: SmallVec<[Input; 1]>,
    /// Weights of its output channels, one run each.
    pub(crate) weights: Option<Region>,
    pub(crate) outputs: SmallVec<[Output; 1]>,
}

impl Kernel for Tile {
    fn operation(&self) -> Cow<'static, str> {
        self.unit.into()
    }

    fn details(&self) -> String {
        let mut text = format!("output {}", self.bounds);
        for input in &self.inputs {
            let _ = write!(text, ", input {}", input.bounds);
        }
        text
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.inputs.iter().for_each(|input| input.region.read(visit));
        self.weights.iter().for_each(|weights| weights.read(visit));
        self.outputs.iter().for_each(|output| output.region.write(visit));
    }

    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Err(Fault::unsupported("a schedule does not say what its layers compute: give the network"))
    }
}
