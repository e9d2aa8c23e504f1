//! Layers in the making.

use super::array::{Array, types};
use super::value::{Groups, Tensor, Value, usual};
use crate::front::{
    Action, Activation, Element, Input, Layout, Named, Numbers, Operand, Operation, Piece,
    Quantisation, Source, Table, View,
};
use crate::network::{Kind, Layer};
use chipless_gemini::strided::Axis;
use serde_json::{Map, Value as Json};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Layers of a network, at most: a search keeps their numbers in 16 bits.
const MOST_LAYERS: usize = 16_000;
/// What float16 holds at most. Larger constants, as masks have them, become this.
pub(super) const MOST: f64 = 65_504.0;

/// Elements of a source from one on, along these extents and strides, as channels, rows and columns.
type Arranged = (Source, i64, Vec<(i64, i64)>, [i64; 3]);

/// Layers, and what goes in.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) layers: Vec<Layer>,
    pub(super) operations: Vec<Operation>,
    pub(super) inputs: Vec<Input>,
    pub(super) constants: Vec<Table>,
    names: HashSet<String>,
    /// How many operands each layer's result is.
    readers: Vec<usize>,
    /// The node whose layers are made.
    pub(super) node: String,
    moved: HashMap<Arranged, Source>,
}

/// What a layer is made of, beside its operands.
pub(super) struct Made {
    pub(super) kind: Kind,
    pub(super) output: [i64; 3],
    pub(super) action: Action,
    pub(super) element: Element,
}

/// What numbers of a type are stored as.
pub(super) const fn element_of(kind: i32) -> Element {
    if types::is_integer(kind) {
        Element::Int16
    } else {
        Element::Float16
    }
}

/// Numbers of a layer.
pub(super) fn numbers(shape: Vec<i64>, values: Vec<f64>) -> Numbers {
    Numbers {
        values: Ok(Rc::new(values)),
        shape,
        scales: None,
    }
}

/// What is said of an operation of the vector processor.
pub(super) fn attributes<const N: usize>(given: [(&str, f64); N]) -> Map<String, Json> {
    let number = |(name, value): (&str, f64)| (name.to_owned(), Json::from(value));
    given.into_iter().map(number).collect()
}

impl Builder {
    pub(super) fn extents(&self, source: Source) -> [i64; 3] {
        match source {
            Source::Input(input) => self.inputs[input].extents,
            Source::Layer(layer) => self.layers[layer].output,
            Source::Constant(constant) => self.constants[constant].extents,
        }
    }

    pub(super) fn element(&self, source: Source) -> Element {
        match source {
            Source::Input(input) => self.inputs[input].element,
            Source::Layer(layer) => self.operations[layer].element,
            Source::Constant(constant) => self.constants[constant].element,
        }
    }

    /// How a source is stored, where that is not as it is.
    pub(super) fn stored(&self, source: Source) -> Option<Quantisation> {
        match source {
            Source::Layer(layer) => self.operations[layer].output,
            Source::Input(_) | Source::Constant(_) => None,
        }
    }

    /// Has a layer store its result in steps of a power of two, so that larger numbers find room.
    pub(super) fn store_in_steps(&mut self, source: Source, exponent: f64) {
        if let Source::Layer(layer) = source
            && exponent > 0.0
        {
            self.operations[layer].output = Some(Quantisation {
                scale: exponent.exp2(),
                zero: 0.0,
            });
        }
    }

    /// A name that no layer has: the node's own, or one made of it.
    fn name(&mut self, suffix: &str) -> String {
        let mut base = if suffix.is_empty() {
            self.node.clone()
        } else {
            format!("{}_{suffix}", self.node)
        };
        // Names that front-end files have for what is no layer.
        let taken = ["input", "output", "constant"];
        if taken.iter().any(|taken| base.starts_with(taken)) || base.ends_with("_constant1") {
            base = format!("layer_{base}_");
        }
        let (mut name, mut number) = (base.clone(), 2);
        while !self.names.insert(name.clone()) {
            name = format!("{base}_{number}");
            number += 1;
        }
        name
    }

    /// All of a source.
    pub(super) fn operand(&self, source: Source) -> Operand {
        let extents = self.extents(source);
        Operand {
            pieces: vec![Piece {
                source,
                channels: [0, extents[0]],
                through: Vec::new(),
            }],
            quantisation: None,
            extents,
            name: None,
        }
    }

    /// Adds a layer.
    pub(super) fn layer(&mut self, made: Made, reads: &[Source]) -> Result<Source, String> {
        self.layer_of(made, reads, |_| {})
    }

    /// Adds a layer with more about it than what each has.
    pub(super) fn layer_of(
        &mut self,
        made: Made,
        reads: &[Source],
        more: impl FnOnce(&mut Layer),
    ) -> Result<Source, String> {
        if self.layers.len() >= MOST_LAYERS {
            return Err(format!("the network has more than {MOST_LAYERS} layers"));
        }
        if made
            .output
            .iter()
            .any(|extent| !(1..1 << 31).contains(extent))
        {
            return Err(format!("a result of {:?}", made.output));
        }
        let suffix = match made.action {
            Action::Strided(_) => "moved",
            Action::Take(..) => "taken",
            _ => "",
        };
        let mut layer = Layer {
            name: self.name(suffix),
            kind: made.kind,
            output: made.output,
            channels: 0,
            kernel: [1, 1],
            stride: [1, 1],
            groups: 1,
            operands: 1,
            order: [0, 1, 2],
            previous: Vec::new(),
            weights_from: Vec::new(),
            external: None,
        };
        more(&mut layer);
        let layers = |sources: &[Source]| -> Vec<usize> {
            let mut all: Vec<usize> = sources
                .iter()
                .filter_map(|source| match source {
                    Source::Layer(layer) => Some(*layer),
                    Source::Input(_) | Source::Constant(_) => None,
                })
                .collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let weights = matches!(made.action, Action::Product);
        layer.previous = layers(if weights { &reads[..1] } else { reads });
        layer.weights_from = layers(if weights { &reads[1..] } else { &[] });
        let given = reads.iter().filter_map(|source| match source {
            Source::Input(input) => Some(self.inputs[*input].extents),
            Source::Layer(_) | Source::Constant(_) => None,
        });
        layer.external = given.reduce(|a, b| [a[0] + b[0], a[1].max(b[1]), a[2].max(b[2])]);
        for source in reads {
            if let Source::Layer(read) = source {
                self.readers[*read] += 1;
            }
        }
        let operands = reads.iter().map(|source| self.operand(*source)).collect();
        // What moves is stored as it was.
        let output = match made.action {
            Action::Strided(_) | Action::Take(..) => self.stored(reads[0]),
            _ => None,
        };
        self.layers.push(layer);
        self.readers.push(0);
        self.operations.push(Operation {
            operands,
            action: made.action,
            activation: Activation::None,
            output,
            layout: Layout::Map,
            element: made.element,
        });
        Ok(Source::Layer(self.layers.len() - 1))
    }

    /// An operation of the vector processor.
    pub(super) fn vector(
        &mut self,
        named: Named,
        output: [i64; 3],
        reads: &[Source],
        element: Element,
    ) -> Result<Source, String> {
        let channels = |source: &Source| match source {
            Source::Constant(_) => None,
            source => Some(self.extents(*source)[0]),
        };
        let alike = reads.iter().all(|read| channels(read) == Some(output[0]));
        let several = reads.len() > 1 && alike && !named.across;
        let kind = if several {
            Kind::Eltwise
        } else {
            Kind::PointToPoint
        };
        let made = Made {
            kind,
            output,
            action: Action::Named(named),
            element,
        };
        let count = reads.len() as i64;
        self.layer_of(made, reads, |layer| {
            if several {
                layer.operands = count;
            }
        })
        .inspect(|source| {
            if let (Source::Layer(layer), true) = (source, several) {
                // SET's model counts every operand, one that is read twice as well.
                let twice = self.layers[*layer].previous.len() < reads.len()
                    && self.layers[*layer].external.is_none();
                if twice {
                    self.layers[*layer].kind = Kind::PointToPoint;
                    self.layers[*layer].operands = 1;
                }
            }
        })
    }

    /// A constant beside activations.
    pub(super) fn table(&mut self, array: &Array, extents: [i64; 3]) -> Source {
        let element = element_of(array.kind);
        let most = if element == Element::Int16 {
            f64::from(i16::MAX)
        } else {
            MOST
        };
        let values = array.values.iter().map(|v| v.clamp(-most, most)).collect();
        self.constants.push(Table {
            name: format!("constant{}", self.constants.len() + 1),
            values: Ok(Rc::new(values)),
            extents,
            scale: None,
            element,
        });
        Source::Constant(self.constants.len() - 1)
    }

    /// A source whose channels, rows and columns are these dimensions of a tensor: its own, or a layer that moves its elements there.
    pub(super) fn arranged(&mut self, tensor: &Tensor, groups: &Groups) -> Result<Source, String> {
        let dims: Vec<(i64, i64)> = groups
            .iter()
            .flatten()
            .map(|d| tensor.dims[*d])
            .filter(|(extent, _)| *extent != 1)
            .collect();
        let extents = [0, 1, 2].map(|g: usize| {
            let of = groups[g].iter().map(|d| tensor.dims[*d].0);
            of.product::<i64>()
        });
        let mut stride = 1;
        let whole = dims.iter().rev().all(|(extent, own)| {
            let follows = *own == stride;
            stride *= extent;
            follows
        });
        if whole && tensor.offset == 0 && self.extents(tensor.source) == extents {
            return Ok(tensor.source);
        }
        let key = (tensor.source, tensor.offset, dims, extents);
        if let Some(known) = self.moved.get(&key) {
            return Ok(*known);
        }
        let axis = |(extent, stride): &(i64, i64)| Axis {
            extent: *extent as u64,
            stride: *stride,
            valid: [0, *extent as u64],
        };
        let view = View {
            axes: key.2.iter().map(axis).collect(),
            offset: tensor.offset,
            fill: 0.0,
        };
        let moved = self.strided(tensor.source, view, extents)?;
        self.moved.insert(key, moved);
        Ok(moved)
    }

    /// A layer that moves elements as strides say it.
    pub(super) fn strided(
        &mut self,
        source: Source,
        view: View,
        output: [i64; 3],
    ) -> Result<Source, String> {
        let made = Made {
            kind: Kind::Transpose,
            output,
            action: Action::Strided(view),
            element: self.element(source),
        };
        self.layer(made, &[source])
    }

    /// How a tensor is stored, or how it had best be.
    pub(super) fn storage(&self, tensor: &Tensor) -> Groups {
        let own = tensor.storage(self.extents(tensor.source));
        own.unwrap_or_else(|| usual(&tensor.shape()))
    }

    /// A tensor of this shape, or a constant, as an operand whose channels, rows and columns are these dimensions. What is the same
    /// along all dimensions of one of them has one element there.
    pub(super) fn beside(
        &mut self,
        value: &Value,
        shape: &[i64],
        groups: &Groups,
    ) -> Result<Source, String> {
        let own = value.shape();
        let missing = shape.len() - own.len();
        let is_one = |d: &usize| *d < missing || own[*d - missing] == 1;
        let mut reduced = groups.clone();
        for group in &mut reduced {
            if group.iter().all(is_one) {
                group.clear();
            }
        }
        match value.broadcast_to(shape)? {
            Value::Tensor(tensor) => self.arranged(&tensor, &reduced),
            Value::Array(array) => {
                let dims = array.dims();
                let taken: Vec<(i64, i64)> = reduced.iter().flatten().map(|d| dims[*d]).collect();
                let extents = [0, 1, 2].map(|g: usize| {
                    let of = reduced[g].iter().map(|d| dims[*d].0);
                    of.product::<i64>()
                });
                Ok(self.table(&array.viewed(&taken, 0)?, extents))
            }
        }
    }

    /// Row by row, in whatever channels, rows and columns.
    pub(super) fn by_rows(&mut self, tensor: &Tensor) -> Result<Source, String> {
        let extents = self.extents(tensor.source);
        let shape = tensor.shape();
        if let Some(groups) = tensor.storage(extents) {
            let order: Vec<usize> = groups.iter().flatten().copied().collect();
            if order.windows(2).all(|pair| pair[0] < pair[1]) {
                return Ok(tensor.source);
            }
        }
        let whole = Tensor::whole(tensor.source, &shape, tensor.kind);
        let same = whole.dims.iter().zip(&tensor.dims);
        let count: i64 = extents.iter().product();
        if tensor.offset == 0
            && shape.iter().product::<i64>() == count
            && same.into_iter().all(|(a, b)| a.0 == 1 || a == b)
        {
            return Ok(tensor.source);
        }
        self.arranged(tensor, &usual(&shape))
    }

    /// The last layer that made all of a tensor, where nothing reads it yet: more can be added to it.
    pub(super) fn open(&self, tensor: &Tensor) -> Option<usize> {
        match tensor.source {
            Source::Layer(layer)
                if self.readers[layer] == 0
                    && tensor.storage(self.extents(tensor.source)).is_some() =>
            {
                Some(layer)
            }
            _ => None,
        }
    }
}
