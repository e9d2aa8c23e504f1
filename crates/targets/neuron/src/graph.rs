//! `neff.json` and the kelf files: the host's view of the program, and the list of its subgraphs.
//!
//! `neff.json` is a graph in the JSON form of TVM's graph runtime: nodes of op `null` are inputs (or parameters), a node
//! of op `tvm_op` whose `func_name` is `__kelf` is the compiled program. `node_row_ptr[n]` is the index of node `n`'s
//! first output in the lists of shapes and types, `heads` are the program's outputs.

use crate::engine::DataType;
use crate::json::{Error, Name, Source, capped, names};
use crate::machine::Machine;
use chipless_model::ElementType;
use indexmap::IndexMap;
use serde::{Deserialize, Deserializer};
use std::collections::HashSet;

/// Nodes of `neff.json`, at most.
const MAX_NODES: usize = 1 << 20;
/// Subgraphs of a kelf file, and kelf files of a program, at most: the header counts cores for 64 nodes.
pub(crate) const MAX_SUBGRAPHS: usize = 64;

names! {
    /// Generation of the hardware, by the code name that kelf files use for `target`.
    Architecture {
        /// `NeuronCore` v1: Inferentia.
        Inf1 "tonga",
        /// `NeuronCore` v2: Trainium and Inferentia 2.
        Trn1 "sunda",
        /// `NeuronCore` v3: Trainium 2.
        Trn2 "cayman",
        /// `NeuronCore` v4: Trainium 3.
        Trn3 "mariana",
        /// No restriction.
        Any "*",
    }
}

impl Architecture {
    /// The instance families that run it, as the vendor's documentation names them.
    pub const fn families(self) -> &'static str {
        match self {
            Architecture::Inf1 => "inf1",
            Architecture::Trn1 => "trn1/inf2",
            Architecture::Trn2 => "trn2",
            Architecture::Trn3 => "trn3",
            Architecture::Any => "any",
            Architecture::Unknown => "unknown",
        }
    }
}

impl Default for Architecture {
    /// The generation whose programs are known best.
    fn default() -> Architecture {
        Architecture::Trn2
    }
}

impl Architecture {
    /// The machine that comes with Chipless for it; `None` where there is none.
    pub fn machine(self) -> Option<Machine> {
        Machine::named(match self {
            Architecture::Trn1 => "trn1",
            Architecture::Trn2 => "trn2",
            Architecture::Trn3 => "trn3",
            Architecture::Inf1 | Architecture::Any | Architecture::Unknown => return None,
        })
    }

    /// Whether several cores make one logical core, and signal each other's semaphores (trn2 and later).
    pub const fn has_logical_cores(self) -> bool {
        !matches!(self, Architecture::Inf1 | Architecture::Trn1)
    }
}

names! {
    /// The five engines of a core, by the key that `def.json` uses.
    Engine {
        /// Tensor engine: matrix multiply.
        Pe "pe",
        /// Scalar engine: activation functions.
        Act "act",
        /// Vector engine.
        Dve "dve",
        /// `GpSimd` engine.
        Pool "pool",
        /// Sync engine.
        Sp "sp",
    }
}

impl Engine {
    /// Name of its files without the ending, as the compiler gives it.
    pub const fn file_name(self) -> &'static str {
        match self {
            Engine::Pe => "PE",
            Engine::Act => "Activation",
            Engine::Dve => "DVE",
            Engine::Pool => "Pool",
            Engine::Sp => "SP",
            Engine::Unknown => "unknown",
        }
    }

    /// The vendor's documentation's name.
    pub const fn title(self) -> &'static str {
        match self {
            Engine::Pe => "Tensor",
            Engine::Act => "Scalar",
            Engine::Dve => "Vector",
            Engine::Pool => "GpSimd",
            Engine::Sp => "Sync",
            Engine::Unknown => "unknown",
        }
    }

    /// Position in [`Engine::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// `neff.json`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Graph<'a> {
    /// Inputs, parameters and programs.
    #[serde(borrow, deserialize_with = "capped::<_, _, MAX_NODES>")]
    pub nodes: Vec<GraphNode<'a>>,
    /// Nodes that are arguments.
    #[serde(default)]
    pub arg_nodes: Vec<u64>,
    /// The program's outputs: node, output of the node, version.
    #[serde(default)]
    pub heads: Vec<Vec<u64>>,
    /// First entry of each node in the lists of `attrs`.
    #[serde(default)]
    pub node_row_ptr: Vec<u64>,
    /// Shapes and types of every node's outputs.
    #[serde(default, borrow)]
    pub attrs: GraphAttributes<'a>,
}

/// The lists of `attrs`, each with the name of its type before it (`["list_shape", [...]]`).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct GraphAttributes<'a> {
    /// Shapes, outermost dimension first.
    #[serde(default, borrow)]
    pub shape: Option<(Name<'a>, Vec<Vec<u64>>)>,
    /// Element types.
    #[serde(default, borrow)]
    pub dltype: Option<(Name<'a>, Vec<Name<'a>>)>,
}

/// A node of `neff.json`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct GraphNode<'a> {
    /// `null` for arguments, `tvm_op` for programs.
    #[serde(borrow)]
    pub op: Name<'a>,
    /// Its name; the variable's name for an input.
    #[serde(borrow, default)]
    pub name: Name<'a>,
    /// Attributes of a program.
    #[serde(borrow, default)]
    pub attrs: NodeAttributes<'a>,
    /// Where its arguments come from: node, output of the node, version.
    #[serde(default)]
    pub inputs: Vec<Vec<u64>>,
    /// Names of its outputs; the variables' names for a program.
    #[serde(borrow, default)]
    pub output_names: Vec<Name<'a>>,
    /// `"1"` for a parameter that is not an input.
    #[serde(borrow, default)]
    pub is_param: Option<Name<'a>>,
}

/// Attributes of a program node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct NodeAttributes<'a> {
    /// `__kelf` for a compiled program.
    #[serde(borrow, default)]
    pub func_name: Option<Name<'a>>,
    /// Member that lists the program's subgraphs.
    #[serde(borrow, default)]
    pub kelf: Option<Name<'a>>,
    /// How many inputs the node has, said once more.
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub num_inputs: Option<Name<'a>>,
    /// How many outputs the node has, said once more.
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub num_outputs: Option<Name<'a>>,
}

/// A value that is text in known files; of any other type it is not read.
fn if_text<'de: 'a, 'a, D: Deserializer<'de>>(d: D) -> Result<Option<Name<'a>>, D::Error> {
    let raw = <&'de serde_json::value::RawValue>::deserialize(d)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

/// A tensor of the interface.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<'a> {
    /// Name of the variable that holds it in every subgraph that declares it.
    pub name: Name<'a>,
    /// Element type as the file names it.
    pub dtype: Name<'a>,
    /// The model's type; `None` for an unknown name.
    pub element: Option<ElementType>,
    /// Dimensions, outermost first.
    pub shape: Vec<u64>,
    /// JSON pointer of the name.
    pub pointer: String,
    /// How often the graph lists it: an output once for each core that writes to it.
    pub times: usize,
}

impl Tensor<'_> {
    /// Bytes; `None` beyond 2^64 and for an unknown type.
    pub fn bytes(&self) -> Option<u64> {
        self.element?
            .bytes_for(self.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d))?)
    }
}

/// What the host gives and gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface<'a> {
    /// Inputs in the graph's order, each once.
    pub inputs: Vec<Tensor<'a>>,
    /// Outputs in the graph's order, each once.
    pub outputs: Vec<Tensor<'a>>,
    /// What does not fit together: JSON pointer and message.
    pub faults: Vec<(String, String)>,
}

impl<'a> Graph<'a> {
    /// Reads `neff.json`.
    ///
    /// # Errors
    /// What [`Source::parse`] says.
    pub fn read(source: &Source<'a>) -> Result<Graph<'a>, Error> {
        source.parse()
    }

    /// The program nodes with their indices.
    pub fn programs(&self) -> impl Iterator<Item = (usize, &GraphNode<'a>)> {
        self.nodes
            .iter()
            .enumerate()
            .filter(|(_, n)| &*n.op != "null" && n.attrs.kelf.is_some())
    }

    /// Inputs and outputs with their types and shapes.
    pub fn interface(&self) -> Interface<'a> {
        let mut interface = Interface::default();
        let (mut inputs, mut outputs) = (IndexMap::new(), IndexMap::new());
        let arguments: HashSet<u64> = self.arg_nodes.iter().copied().collect();
        for (index, node) in self.nodes.iter().enumerate() {
            let is_param = node.is_param.as_deref().is_some_and(|p| p != "0");
            let is_argument = arguments.is_empty() || arguments.contains(&(index as u64));
            if &*node.op == "null" && is_argument && !is_param {
                let tensor = self.tensor(
                    node.name.clone(),
                    index,
                    0,
                    format!("/nodes/{index}/name"),
                    &mut interface.faults,
                );
                merge(&mut inputs, tensor);
            }
        }
        for (index, head) in self.heads.iter().enumerate() {
            let (node, output) = match head[..] {
                [node] => (node as usize, 0),
                [node, output, ..] => (node as usize, output as usize),
                [] => (usize::MAX, 0),
            };
            let Some(name) = self
                .nodes
                .get(node)
                .and_then(|n| n.output_names.get(output))
            else {
                interface.faults.push((
                    format!("/heads/{index}"),
                    format!(
                        "no output {output} of node {node}, there are {} nodes",
                        self.nodes.len()
                    ),
                ));
                continue;
            };
            let pointer = format!("/nodes/{node}/output_names/{output}");
            let tensor = self.tensor(name.clone(), node, output, pointer, &mut interface.faults);
            merge(&mut outputs, tensor);
        }
        interface.inputs = inputs.into_values().collect();
        interface.outputs = outputs.into_values().collect();
        interface
    }

    fn tensor(
        &self,
        name: Name<'a>,
        node: usize,
        output: usize,
        pointer: String,
        faults: &mut Vec<(String, String)>,
    ) -> Tensor<'a> {
        let entry = self
            .node_row_ptr
            .get(node)
            .and_then(|first| usize::try_from(*first).ok()?.checked_add(output));
        let shape = entry.and_then(|e| self.attrs.shape.as_ref()?.1.get(e));
        let dtype = entry.and_then(|e| self.attrs.dltype.as_ref()?.1.get(e));
        if shape.is_none() {
            faults.push((pointer.clone(), format!("`{name}` has no shape in attrs")));
        }
        if dtype.is_none() {
            faults.push((
                pointer.clone(),
                format!("`{name}` has no element type in attrs"),
            ));
        }
        let dtype = dtype.cloned().unwrap_or_default();
        Tensor {
            name,
            element: element(&dtype),
            dtype,
            shape: shape.cloned().unwrap_or_default(),
            pointer,
            times: 1,
        }
    }
}

/// Types of `neff.json`: those of descriptors, and the array libraries' own.
fn element(name: &str) -> Option<ElementType> {
    DataType::from_name(name)
        .element()
        .or_else(|| ElementType::from_name(name))
}

/// Lists a tensor once; with two cores on one logical core each lists the outputs.
fn merge<'a>(tensors: &mut IndexMap<Name<'a>, Tensor<'a>>, tensor: Tensor<'a>) {
    tensors
        .entry(tensor.name.clone())
        .and_modify(|known| known.times += 1)
        .or_insert(tensor);
}

/// A kelf file: the subgraphs of one program node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Kelf<'a> {
    /// Subgraphs, one for each physical core.
    #[serde(borrow, deserialize_with = "capped::<_, _, MAX_SUBGRAPHS>")]
    pub graphs: Vec<KelfGraph<'a>>,
    /// Version of the kelf form.
    #[serde(borrow, default)]
    pub version: Option<Name<'a>>,
    /// Code name of the hardware (see [`Architecture`]).
    #[serde(borrow, default)]
    pub target: Option<Name<'a>>,
}

/// A subgraph in a kelf file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct KelfGraph<'a> {
    /// Member that defines it.
    #[serde(borrow)]
    pub definition: Name<'a>,
    /// Its name.
    #[serde(borrow, default)]
    pub name: Name<'a>,
}

impl<'a> Kelf<'a> {
    /// Reads a kelf file.
    ///
    /// # Errors
    /// What [`Source::parse`] says.
    pub fn read(source: &Source<'a>) -> Result<Kelf<'a>, Error> {
        source.parse()
    }

    /// The hardware that it is for; `None` where the file does not say.
    pub fn architecture(&self) -> Option<Architecture> {
        self.target.as_deref().map(Architecture::from_name)
    }
}
