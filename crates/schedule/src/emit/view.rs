//! What layers read, box by box: as SET's model has it, or as the network really does.

use crate::model::{Block, Range, window};
use crate::network::{Kind, Network};
use chipless_gemini::schedule::LayerType;

/// Who makes what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Producer {
    /// An input of the network.
    Input(usize),
    /// A constant of the network.
    Constant(usize),
    /// A layer.
    Layer(usize),
}

/// Channels of an operand and who makes them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) producer: Producer,
    /// Channels of the operand.
    pub(crate) channels: Range,
    /// Where the producer's first channel lies in the operand.
    pub(crate) offset: i64,
}

/// An operand of a layer.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) parts: Vec<Part>,
    /// It stands in the place of weights.
    pub(crate) is_weight: bool,
}

/// A layer.
#[derive(Clone, Debug)]
pub(crate) struct Viewed {
    pub(crate) name: String,
    pub(crate) kind: LayerType,
    /// Channels, rows, columns of the result.
    pub(crate) output: [i64; 3],
    pub(crate) operands: Vec<Operand>,
    /// Input channels of a group and elements of the window, where it has weights.
    pub(crate) weights: Option<[i64; 2]>,
    /// Whether the network gives its result.
    pub(crate) is_output: bool,
}

/// Layers with what they read.
#[derive(Debug)]
pub(crate) struct View<'n> {
    pub(crate) layers: Vec<Viewed>,
    /// Names of the network's inputs.
    pub(crate) inputs: Vec<String>,
    /// Names of its constants that stand beside activations.
    pub(crate) constants: Vec<String>,
    windows: Windows<'n>,
}

/// How boxes of operands follow from boxes of results.
#[derive(Debug)]
pub(crate) enum Windows<'n> {
    /// As SET's model has it.
    Model(&'n Network),
    /// As each layer says it.
    Real(Vec<super::lowered::Reach>),
}

impl<'n> View<'n> {
    /// The layers of SET's model.
    pub(crate) fn of_model(network: &'n Network) -> View<'n> {
        let layers = network
            .layers
            .iter()
            .zip(&network.facts)
            .map(|(layer, facts)| {
                let mut operands = Vec::new();
                let mut parts = Vec::new();
                let mut channel = facts.external_channels;
                let mut next = |parts: &mut Vec<Part>, channel: &mut i64| {
                    if layer.kind == Kind::Eltwise && *channel == layer.output[0] {
                        operands.push(Operand {
                            parts: std::mem::take(parts),
                            is_weight: false,
                        });
                        *channel = 0;
                    }
                };
                if channel > 0 {
                    parts.push(Part {
                        producer: Producer::Input(0),
                        channels: [0, channel],
                        offset: 0,
                    });
                }
                next(&mut parts, &mut channel);
                for producer in &layer.previous {
                    let more = network.layers[*producer].output[0];
                    parts.push(Part {
                        producer: Producer::Layer(*producer),
                        channels: [channel, channel + more],
                        offset: channel,
                    });
                    channel += more;
                    next(&mut parts, &mut channel);
                }
                if !parts.is_empty() {
                    operands.push(Operand {
                        parts,
                        is_weight: false,
                    });
                }
                if !layer.weights_from.is_empty() {
                    let (mut parts, mut channel) = (Vec::new(), 0);
                    for producer in &layer.weights_from {
                        let more = network.layers[*producer].output[0];
                        parts.push(Part {
                            producer: Producer::Layer(*producer),
                            channels: [channel, channel + more],
                            offset: channel,
                        });
                        channel += more;
                    }
                    operands.push(Operand {
                        parts,
                        is_weight: true,
                    });
                }
                let constant = layer.kind.multiplies() && layer.weights_from.is_empty();
                Viewed {
                    name: layer.name.clone(),
                    kind: match layer.kind {
                        Kind::Conv | Kind::GroupConv => LayerType::Conv2d,
                        Kind::Fc => LayerType::Fc,
                        Kind::Pool => LayerType::Pool,
                        Kind::Eltwise => LayerType::ElementWise,
                        Kind::PointToPoint => LayerType::PointToPoint,
                        Kind::Transpose => LayerType::Missing,
                    },
                    output: layer.output,
                    operands,
                    weights: constant.then(|| [facts.group[0], layer.kernel[0] * layer.kernel[1]]),
                    is_output: facts.readers.is_empty(),
                }
            });
        View {
            layers: layers.collect(),
            inputs: vec!["input1".to_owned()],
            constants: Vec::new(),
            windows: Windows::Model(network),
        }
    }

    /// Layers as they are really computed.
    pub(crate) fn real(
        layers: Vec<Viewed>,
        [inputs, constants]: [Vec<String>; 2],
        reach: Vec<super::lowered::Reach>,
    ) -> View<'n> {
        View {
            layers,
            inputs,
            constants,
            windows: Windows::Real(reach),
        }
    }

    /// The box of an operand that a box (channels, images, rows, columns) of a layer's result needs.
    pub(crate) fn needs(&self, layer: usize, operand: usize, block: &Block) -> Block {
        match &self.windows {
            Windows::Real(reach) => reach[layer].needs(operand, block),
            Windows::Model(network) => {
                let (of, facts) = (&network.layers[layer], &network.facts[layer]);
                if self.layers[layer].operands[operand].is_weight {
                    [block[0], block[1], [0, facts.group[0]], [0, 1]]
                } else {
                    window(of, facts, block)
                }
            }
        }
    }
}
