//! The network as the scheduler sees it: layers with extents, and who reads whom.

use serde_json::{Value, json};
use std::fmt;

/// What a layer is in SET's cost model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Convolution.
    Conv,
    /// Fully connected layer: a convolution whose window is the whole map.
    Fc,
    /// Grouped convolution, and product of two activations by heads.
    GroupConv,
    /// Pooling.
    Pool,
    /// Element by element over several operands.
    Eltwise,
    /// A function of each element, or of the elements of a position.
    PointToPoint,
    /// Axes exchanged, or elements moved in another way.
    Transpose,
}

impl Kind {
    /// As `layers.json` and SET name it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Conv => "conv",
            Kind::Fc => "fc",
            Kind::GroupConv => "gconv",
            Kind::Pool => "pool",
            Kind::Eltwise => "eltwise",
            Kind::PointToPoint => "ptp",
            Kind::Transpose => "transpose",
        }
    }

    /// Whether it multiplies with weights, or with another layer's result in their place.
    pub const fn multiplies(self) -> bool {
        matches!(self, Kind::Conv | Kind::Fc | Kind::GroupConv)
    }
}

/// A layer. Extents are of one image; a sequence of L vectors of D numbers has D channels, L rows and one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Name of the node that computes it.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Output channels, rows, columns.
    pub output: [i64; 3],
    /// Input channels of what multiplies, groups together; 0 for the others.
    pub channels: i64,
    /// Rows and columns of the window.
    pub kernel: [i64; 2],
    /// Rows and columns that the window moves by.
    pub stride: [i64; 2],
    /// Groups.
    pub groups: i64,
    /// Operands of an element-wise layer, 1 for the others.
    pub operands: i64,
    /// Which axis of the output each axis of the input becomes.
    pub order: [usize; 3],
    /// Layers whose results it reads, in layer order; their channels follow each other.
    pub previous: Vec<usize>,
    /// Layers whose results stand in the place of weights.
    pub weights_from: Vec<usize>,
    /// Channels, rows and columns that come from inputs of the network, before those of other layers.
    pub external: Option<[i64; 3]>,
}

/// What follows from a layer and its producers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Layers that read it.
    pub readers: Vec<usize>,
    /// Layers that it reads, ascending, each once.
    pub reads: Vec<usize>,
    /// Channels from inputs of the network.
    pub external_channels: i64,
    /// Input channels, rows, columns; what no window reaches is left out.
    pub input: [i64; 3],
    /// Rows above and columns left, as SET has them.
    pub padding: [i64; 2],
    /// Input and output channels of a group; of all channels where there is one group.
    pub group: [i64; 2],
    /// Multiplications of an image.
    pub macs: i64,
    /// Operations of an image.
    pub operations: i64,
    /// Bytes of weights.
    pub weights: i64,
}

/// A network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// Layers in an order in which each comes after what it reads.
    pub layers: Vec<Layer>,
    /// What follows for each.
    pub facts: Vec<Facts>,
}

/// A network that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inconsistent(pub String);

impl fmt::Display for Inconsistent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Inconsistent {}

impl Network {
    /// Layers as people read them: the only one, or the first and the last with their number.
    pub(crate) fn range(&self, layers: &[u16]) -> String {
        let name = |layer: Option<&u16>| {
            layer.map_or("", |layer| self.layers[usize::from(*layer)].name.as_str())
        };
        match layers {
            [only] => name(Some(only)).to_owned(),
            all => format!(
                "{} to {} ({})",
                name(all.first()),
                name(all.last()),
                all.len()
            ),
        }
    }

    /// Multiplications of all layers that multiply, for one image.
    pub fn products(&self) -> i64 {
        let multiplying = self.layers.iter().filter(|layer| layer.kind.multiplies());
        let products = multiplying.map(|layer| {
            let each = [
                layer.channels / layer.groups.max(1),
                layer.kernel[0],
                layer.kernel[1],
            ];
            let factors = layer.output.iter().chain(&each);
            factors.fold(1, |all: i64, extent| all.saturating_mul(*extent))
        });
        products.fold(0, i64::saturating_add)
    }

    /// A network of these layers.
    ///
    /// # Errors
    /// Extents below one, producers that come later, operands that do not fit.
    pub fn new(name: String, layers: Vec<Layer>) -> Result<Network, Inconsistent> {
        let mut facts: Vec<Facts> = Vec::with_capacity(layers.len());
        for (index, layer) in layers.iter().enumerate() {
            let positive = layer
                .output
                .iter()
                .chain(&layer.kernel)
                .chain(&layer.stride);
            if positive
                .chain([&layer.groups, &layer.operands])
                .any(|v| !(1..1 << 31).contains(v))
            {
                return Err(Inconsistent(format!(
                    "{}: an extent is not positive",
                    layer.name
                )));
            }
            let mut reads: Vec<usize> = layer
                .previous
                .iter()
                .chain(&layer.weights_from)
                .copied()
                .collect();
            reads.sort_unstable();
            reads.dedup();
            if reads.last().is_some_and(|last| *last >= index) {
                return Err(Inconsistent(format!(
                    "{} stands before a layer that it reads",
                    layer.name
                )));
            }
            for read in &reads {
                facts[*read].readers.push(index);
            }
            facts.push(Facts::of(layer, &layers, reads)?);
        }
        Ok(Network {
            name,
            layers,
            facts,
        })
    }

    /// The layers as a table: what SET's model knows of a network.
    pub fn to_json(&self) -> Value {
        let rows: Vec<Value> = self
            .layers
            .iter()
            .map(|l| {
                let [k, h, w] = l.output;
                json!([
                    l.name,
                    l.kind.name(),
                    k,
                    h,
                    w,
                    l.channels,
                    l.kernel[0],
                    l.kernel[1],
                    l.stride[0],
                    l.stride[1],
                    l.groups,
                    l.operands,
                    l.order,
                    l.previous,
                    l.weights_from,
                    l.external
                ])
            })
            .collect();
        json!({ "network": self.name, "fields": FIELDS, "layers": rows })
    }

    /// Position of the layer of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.layers.iter().position(|layer| layer.name == name)
    }
}

/// Columns of the table of layers.
const FIELDS: [&str; 16] = [
    "name",
    "type",
    "K",
    "H",
    "W",
    "C",
    "R",
    "S",
    "sH",
    "sW",
    "G",
    "N",
    "order",
    "prevs",
    "wgt_prevs",
    "external",
];

impl Facts {
    fn of(layer: &Layer, layers: &[Layer], reads: Vec<usize>) -> Result<Facts, Inconsistent> {
        let first = layer.previous.first().map(|p| &layers[*p]);
        let [external_channels, rows, columns] = layer
            .external
            .unwrap_or_else(|| first.map_or([0, 0, 0], |p| [0, p.output[1], p.output[2]]));
        let total = external_channels
            + layer
                .previous
                .iter()
                .map(|p| layers[*p].output[0])
                .sum::<i64>();
        let [k, h, w] = layer.output;
        let (mut input, mut padding) = ([total, rows, columns], [0, 0]);
        match layer.kind {
            Kind::Eltwise => {
                if total != k * layer.operands {
                    return Err(Inconsistent(format!(
                        "{}: {total} channels arrive, {} are combined",
                        layer.name,
                        k * layer.operands
                    )));
                }
            }
            Kind::Transpose => {
                for (from, to) in layer.order.iter().enumerate() {
                    input[*to] = layer.output[from];
                }
            }
            _ => {
                for d in 0..2 {
                    let need = (layer.output[d + 1] - 1) * layer.stride[d] + layer.kernel[d];
                    padding[d] = (need - input[d + 1]).max(0) / 2;
                    input[d + 1] = input[d + 1].min(need);
                }
            }
        }
        let multiplies = layer.kind.multiplies();
        let group = if layer.kind == Kind::GroupConv {
            [layer.channels / layer.groups, k / layer.groups]
        } else {
            [layer.channels, k]
        };
        let window = layer.kernel[0] * layer.kernel[1];
        let macs = if multiplies {
            k * h * w * group[0] * window
        } else {
            0
        };
        Ok(Facts {
            readers: Vec::new(),
            reads,
            external_channels,
            input,
            padding,
            group,
            macs,
            operations: if multiplies {
                macs
            } else {
                k * h * w * layer.operands * window
            },
            weights: if multiplies { window * group[0] * k } else { 0 },
        })
    }
}
