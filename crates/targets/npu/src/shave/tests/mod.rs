//! Tests over argument blocks: each builds the bytes of a block, decodes it and evaluates it. Expected numbers come from
//! ONNX Runtime, from double precision arithmetic written apart from the code, or are small enough to check by hand.

// Expected numbers stay as they were computed elsewhere, and exact results are compared exactly.
#![allow(
    clippy::excessive_precision,
    clippy::approx_constant,
    clippy::float_cmp
)]

mod arguments;
mod detection;
mod dynamic;
mod elementwise;
mod fourier;
mod images;
mod indexing;
mod layers;
mod movement;
mod robustness;
mod table;

use super::*;
use chipless_model::{ElementType, Fault};

/// Address for which blocks are relocated.
const BASE: u64 = 0x1c00_0000;

// Element type codes of references.
const F32: u32 = 1;
const F16: u32 = 2;
const U8: u32 = 7;
const I64: u32 = 8;
const I32: u32 = 9;
const I8: u32 = 11;

/// The bytes of one argument block.
#[derive(Clone, Debug, Default)]
struct Block {
    tensors: Vec<Reference>,
    scalars: Vec<u8>,
    /// References of 36 bytes, as compilers up to release 2026.2.1 write them.
    short: bool,
    /// How many of the tensors are inputs, whose dims stand in a row, and their strides after these; so do those of the others.
    /// Without it each tensor has its strides after its dims.
    inputs: Option<usize>,
}

#[derive(Clone, Debug)]
struct Reference {
    element: u32,
    dims: Vec<u32>,
    order: u64,
    /// In bits; dense without.
    strides: Option<Vec<u64>>,
    /// Where the program keeps its sizes, which are at most the dims.
    sizes_at: Option<u32>,
}

impl Reference {
    fn dims_table(&self) -> Vec<u8> {
        self.dims.iter().flat_map(|dim| dim.to_le_bytes()).collect()
    }

    fn strides_table(&self) -> Vec<u8> {
        let dense = || {
            let strides = self
                .dims
                .iter()
                .scan(element_bits(self.element), |next, dim| {
                    let stride = *next;
                    *next *= u64::from(*dim);
                    Some(stride)
                });
            strides.collect()
        };
        let strides = self.strides.clone().unwrap_or_else(dense);
        strides.into_iter().flat_map(u64::to_le_bytes).collect()
    }
}

impl Block {
    /// A dense tensor whose memory order is the logical one (0x4321 for four dims). Dims are innermost first.
    fn tensor(self, element: u32, dims: &[u32]) -> Block {
        let order = (0..dims.len() as u64).fold(0, |order, dim| order | (dim + 1) << (4 * dim));
        self.ordered(element, dims, order)
    }

    /// A dense tensor of any order.
    fn ordered(mut self, element: u32, dims: &[u32], order: u64) -> Block {
        self.tensors.push(Reference {
            element,
            dims: dims.to_vec(),
            order,
            strides: None,
            sizes_at: None,
        });
        self
    }

    /// A tensor of computed sizes within these.
    fn bounded(self, element: u32, dims: &[u32], sizes_at: u32) -> Block {
        let mut block = self.tensor(element, dims);
        if let Some(tensor) = block.tensors.last_mut() {
            tensor.sizes_at = Some(sizes_at);
        }
        block
    }

    /// A tensor with strides in bits.
    fn strided(mut self, element: u32, dims: &[u32], strides: &[u64]) -> Block {
        self.tensors.push(Reference {
            element,
            dims: dims.to_vec(),
            order: 0x4321,
            strides: Some(strides.to_vec()),
            sizes_at: None,
        });
        self
    }

    fn short(mut self) -> Block {
        self.short = true;
        self
    }

    fn long(mut self, value: i64) -> Block {
        self.scalars.extend(value.to_le_bytes());
        self
    }

    fn longs(self, values: &[i64]) -> Block {
        values.iter().fold(self, |block, value| block.long(*value))
    }

    fn word(mut self, value: i32) -> Block {
        self.scalars.extend(value.to_le_bytes());
        self
    }

    fn words(self, values: &[i32]) -> Block {
        values.iter().fold(self, |block, value| block.word(*value))
    }

    fn float(mut self, value: f32) -> Block {
        self.scalars.extend(value.to_le_bytes());
        self
    }

    fn halves(mut self, values: &[f32]) -> Block {
        self.scalars.extend(
            values
                .iter()
                .flat_map(|value| half::f16::from_f32(*value).to_le_bytes()),
        );
        self.scalars
            .resize(self.scalars.len().next_multiple_of(8), 0);
        self
    }

    fn inputs(mut self, count: usize) -> Block {
        self.inputs = Some(count);
        self
    }

    /// The section: references, scalars, then dims and strides.
    fn bytes(&self) -> Vec<u8> {
        let reference = if self.short { 36 } else { 40 };
        let tables_at = BASE as usize + reference * self.tensors.len() + self.scalars.len();
        let groups: Vec<&[Reference]> = match self.inputs {
            Some(inputs) => vec![&self.tensors[..inputs], &self.tensors[inputs..]],
            None => self.tensors.chunks(1).collect(),
        };
        let (mut tables, mut pointers) = (Vec::new(), Vec::new());
        for group in groups {
            let mut at = |table: Vec<u8>| {
                let at = (tables_at + tables.len()) as u32;
                tables.extend(table);
                at
            };
            let dims: Vec<u32> = group.iter().map(|tensor| at(tensor.dims_table())).collect();
            let strides = group.iter().map(|tensor| at(tensor.strides_table()));
            pointers.extend(dims.into_iter().zip(strides));
        }
        let mut bytes = Vec::new();
        for (number, (tensor, (dims, strides))) in self.tensors.iter().zip(pointers).enumerate() {
            let address = (0x4020_0000 + 0x1_0000 * number as u64).to_le_bytes();
            bytes.extend(if self.short { &address[..4] } else { &address });
            for word in [
                u32::from(tensor.sizes_at.is_none()),
                tensor.dims.len() as u32,
                tensor.sizes_at.unwrap_or(dims),
                strides,
                tensor.element,
            ] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(tensor.order.to_le_bytes());
            bytes.extend(2u32.to_le_bytes());
        }
        bytes.extend(&self.scalars);
        bytes.extend(tables);
        bytes
    }

    fn decode(&self, operation: Operation) -> Result<Invocation, ArgumentError> {
        Section::new(&self.bytes(), BASE).decode(operation, 0)
    }

    fn run(&self, operation: Operation, inputs: &[Values]) -> Result<Vec<Values>, Fault> {
        let invocation = self.decode(operation).expect("the block is well formed");
        let inputs = inputs
            .iter()
            .zip(&invocation.inputs)
            .map(|(values, tensor)| Tensor {
                shape: tensor.shape.clone(),
                values: values.clone(),
            });
        let outputs = evaluate(&invocation, &inputs.collect::<Vec<_>>())?;
        Ok(outputs.into_iter().map(|output| output.values).collect())
    }

    /// The first output, which has to be of floating point.
    fn floats(&self, operation: Operation, inputs: &[Values]) -> Vec<f32> {
        match self
            .run(operation, inputs)
            .expect("the operation runs")
            .swap_remove(0)
        {
            Values::Float(values) => values,
            Values::Integer(values) => panic!("integers {values:?}"),
        }
    }

    /// The first output, which has to be of integers.
    fn integers(&self, operation: Operation, inputs: &[Values]) -> Vec<i64> {
        match self
            .run(operation, inputs)
            .expect("the operation runs")
            .swap_remove(0)
        {
            Values::Integer(values) => values,
            Values::Float(values) => panic!("floats {values:?}"),
        }
    }
}

fn element_bits(code: u32) -> u64 {
    match code {
        I64 => 64,
        F32 | I32 => 32,
        F16 => 16,
        U8 | I8 => 8,
        12 => 4,
        _ => panic!("no element type {code} in tests"),
    }
}

fn block() -> Block {
    Block::default()
}

fn float(values: &[f32]) -> Values {
    Values::Float(values.to_vec())
}

fn integer(values: &[i64]) -> Values {
    Values::Integer(values.to_vec())
}

/// Values between −3 and 3.25 in steps of a sixteenth, each different from its neighbours.
fn data(count: usize) -> Vec<f32> {
    (0..count)
        .map(|at| ((at * 37 + 11) % 101) as f32 / 16.0 - 3.0)
        .collect()
}

/// Compares to a hundred-thousandth of the value or of 1, whichever is larger: expected numbers have six digits.
#[track_caller]
fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let close = (found - expected).abs() <= 1e-5 * expected.abs().max(1.0) || found == expected;
        assert!(close, "element {at}: found {found}, expected {expected}");
    }
}
