//! One call of a kernel, decoded.

use super::operation::Operation;
use super::parameters::Parameters;
use super::tensor::Shape;
use chipless_model::Pattern;

/// A tensor in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorRef {
    /// Address of the first element.
    pub address: u64,
    /// Element type, sizes and order.
    pub shape: Shape,
    /// Bits from one element to the next in each dim, innermost first. A dim of one may hold any number.
    pub strides_bits: Vec<u64>,
    /// Kind of memory: 2 is the tile's own CMX.
    pub location: u32,
    /// The bytes of the tensor, in the order of its elements; offset 0 is [`TensorRef::address`].
    pub pattern: Pattern,
    /// Where a program that computes the sizes keeps them, 32 bits for each dim, innermost first: an address in CMX, mostly without
    /// the bit of the tile. The shape is then that of the upper bounds.
    pub sizes: Option<u64>,
}

/// One call of a kernel, decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// What to compute.
    pub operation: Operation,
    /// Tensors that are read, in the order of the block.
    pub inputs: Vec<TensorRef>,
    /// Tensors that are written, in the order of the block.
    pub outputs: Vec<TensorRef>,
    /// Working memory.
    pub scratch: Vec<TensorRef>,
    /// The scalars.
    pub parameters: Parameters,
}

impl Invocation {
    /// Elements to process: of the largest tensor read or written. A measure of the work.
    pub fn elements(&self) -> u64 {
        self.inputs
            .iter()
            .chain(&self.outputs)
            .map(|tensor| tensor.shape.elements())
            .max()
            .unwrap_or(0)
    }
}
