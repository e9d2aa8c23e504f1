//! The resolved graph of a DFG: nodes, their values, and the edges between them.
//!
//! Nodes, edges and values are numbered as the real scheduler numbers them, in the order in which the file declares them: its
//! exports, mappings and our own can be compared number by number.
//!
//! A *value* is one stream of words that a node makes: a lane of an input port, a result of an instruction. An *edge* brings a
//! range of bits of one value to one operand of one node. An operand is fed by one or more edges (a concatenation, least significant
//! first), or it is a constant, or a register of the processing element.

use crate::syntax::Span;
use index_vec::IndexVec;
use smallvec::SmallVec;

index_vec::define_index_type! {
    /// A [`Node`].
    pub struct NodeId = u32;
}
index_vec::define_index_type! {
    /// An [`Edge`].
    pub struct EdgeId = u32;
}
index_vec::define_index_type! {
    /// A [`Group`].
    pub struct GroupId = u32;
}

/// The forms that the language had over the years. A file is of the oldest form that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Era {
    /// 2016 to 2018, Softbrain: lanes of ports in lists, `InputVec: A [0, 1, 2]`.
    LaneLists,
    /// 2018 to 2020, stream-dataflow: operations like `Add64`, `control=`, slices as width and index.
    Legacy,
    /// From 2021 on, DSAGEN and `OverGen`: operations like `Add_I64`, arrays, stated ports, pragmas.
    Modern,
}

impl Era {
    /// As `info` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Era::LaneLists => "lane lists (2016 to 2018)",
            Era::Legacy => "legacy (2018 to 2020)",
            Era::Modern => "modern (from 2021)",
        }
    }
}

/// A whole file.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The form of the language.
    pub era: Era,
    /// Sub-graphs, separated by `----` in the file. There is always one.
    pub groups: IndexVec<GroupId, Group>,
    /// All nodes, in the order of the file.
    pub nodes: IndexVec<NodeId, Node>,
    /// All edges, in the order in which they come into being.
    pub edges: IndexVec<EdgeId, Edge>,
    /// Dependences between tasks (the task-flow extension): kept and shown.
    pub tasks: Vec<Task>,
}

/// A sub-graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// How often its code is executed, relative to the others; 1 where the file is silent.
    pub frequency: u64,
    /// How many iterations one firing computes; 1 where the file is silent.
    pub unroll: u64,
    /// Whether its instructions share processing elements in time.
    pub temporal: bool,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The name of an array or a port; of an instruction the name of its first result, empty for a nested one.
    pub name: String,
    /// Its sub-graph.
    pub group: GroupId,
    /// What it is.
    pub kind: NodeKind,
    /// What it consumes: the operands of an instruction with its control last, as the file lists them; the lanes of an output port, and the
    /// state behind them; the array that feeds an input port; the output ports that end in an array.
    pub operands: Vec<Operand>,
    /// What it makes.
    pub values: Vec<Value>,
    /// Its declaration in the file.
    pub span: Span,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeKind {
    /// An array in a memory. Its one value is its stream of data.
    Array(Array),
    /// An input port. Its values are its lanes; in a stated port value 0 is the state, 8 bits, and the lanes follow.
    Input(Port),
    /// An output port. Its one value goes to its array.
    Output(Port),
    /// An operation on values.
    Instruction(Instruction),
    /// Several functional units as one node (`F<Add_I64:2, Mul_I64:1>(…)`): it is placed, what it computes is not defined.
    Composite(Composite),
}

/// An array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    /// The kind of memory.
    pub kind: ArrayKind,
    /// Bytes; 64 where the file is silent.
    pub size: u64,
}

/// Memories that a stream can begin and end in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ArrayKind {
    /// Direct memory access.
    Dma,
    /// Scratchpad.
    Scratchpad,
    /// Recurrence: outputs that come back as inputs.
    Recurrence,
    /// Generated values.
    Generate,
    /// Registers of the host core.
    Register,
}

impl ArrayKind {
    /// Every kind.
    pub const ALL: [ArrayKind; 5] = [
        ArrayKind::Dma,
        ArrayKind::Scratchpad,
        ArrayKind::Recurrence,
        ArrayKind::Generate,
        ArrayKind::Register,
    ];

    /// As files write it.
    pub const fn name(self) -> &'static str {
        match self {
            ArrayKind::Dma => "dma",
            ArrayKind::Scratchpad => "spm",
            ArrayKind::Recurrence => "rec",
            ArrayKind::Generate => "gen",
            ArrayKind::Register => "reg",
        }
    }

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<ArrayKind> {
        Some(match name {
            "dma" => ArrayKind::Dma,
            "spm" | "scratchpad" => ArrayKind::Scratchpad,
            "rec" => ArrayKind::Recurrence,
            "gen" => ArrayKind::Generate,
            "reg" => ArrayKind::Register,
            _ => return None,
        })
    }
}

/// A port.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Bits of a lane: 8, 16, 32 or 64.
    pub width: u32,
    /// Lanes, at least 1. The state of a stated port is none of them.
    pub lanes: u32,
    /// Of an input port: the stream's state (its place in the loops) comes with the data. Of an output port: it is passed on.
    pub stated: bool,
    /// Whether it is one side of an `Indirect` port.
    pub indirect: bool,
    /// The array that the stream comes from or goes to.
    pub array: Option<NodeId>,
    /// What the performance model wants to know.
    pub pragmas: Pragmas,
}

/// `#pragma KEY=VALUE` in front of a port. What its words say (`src`, `dest`, `op`) stands in the tree alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pragmas {
    /// Bound by the commands that load the stream; 1 where the file is silent.
    pub cmd: f64,
    /// How often the stream is repeated; 1 where the file is silent.
    pub repeat: f64,
    /// How much of the stream the L2 cache serves again, 0 to 1; 0 where the file is silent.
    pub reuse: f64,
    /// Bytes in flight of a recurrence (trip count times bytes); 0 where the file is silent.
    pub conc: f64,
}

impl Default for Pragmas {
    fn default() -> Pragmas {
        Pragmas {
            cmd: 1.0,
            repeat: 1.0,
            reuse: 0.0,
            conc: 0.0,
        }
    }
}

/// An operation on values.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// Its name, as the file has it.
    pub operation: String,
    /// What the value of the control operand does (`ctrl=`); the operand is the one of [`Role::Control`].
    pub control: Option<Box<Control>>,
    /// What the instruction's own result does (`self=`).
    pub self_control: Option<Box<Control>>,
}

/// Several functional units as one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Composite {
    /// The name in front of the list.
    pub name: String,
    /// Operations, each with how many units it takes.
    pub units: Vec<(String, u32)>,
}

/// A table from values of a control to actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Bits of the control value that are looked at; 7 where the file is silent.
    pub mask: u64,
    /// For `value & mask` of each entry what to do; without an entry the instruction runs as if it had no control. Keys differ.
    pub table: Vec<(u64, Actions)>,
}

impl Control {
    /// What to do for this control value.
    pub fn actions(&self, value: u64) -> Actions {
        self.table
            .iter()
            .find(|(key, _)| *key == value & self.mask)
            .map_or(Actions::NONE, |(_, actions)| *actions)
    }
}

/// What a control does to an instruction: a set, with the numbers of the real scheduler's exports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Actions(pub u8);

impl Actions {
    /// Nothing out of the ordinary.
    pub const NONE: Actions = Actions(0);
    /// `b1`: the first operand stays for the next firing.
    pub const HOLD_FIRST: Actions = Actions(1);
    /// `b2`: the second operand stays for the next firing.
    pub const HOLD_SECOND: Actions = Actions(2);
    /// `d`: the result is marked invalid.
    pub const DISCARD: Actions = Actions(4);
    /// `r`: registers are reset after use.
    pub const RESET: Actions = Actions(8);
    /// `a`: the operation is not executed.
    pub const ABSTAIN: Actions = Actions(16);
    /// Every action with its letters.
    pub const LETTERS: [(Actions, &'static str); 5] = [
        (Actions::HOLD_FIRST, "b1"),
        (Actions::HOLD_SECOND, "b2"),
        (Actions::DISCARD, "d"),
        (Actions::RESET, "r"),
        (Actions::ABSTAIN, "a"),
    ];

    /// Whether all of these are among them.
    pub const fn has(self, other: Actions) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[must_use]
    pub const fn with(self, other: Actions) -> Actions {
        Actions(self.0 | other.0)
    }
}

/// What a node consumes.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// What it is for.
    pub role: Role,
    /// Where it comes from.
    pub source: Source,
}

/// What an operand is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Data: of an instruction an argument, of a port a lane.
    Data,
    /// The value that the instruction's control table is asked for (`ctrl=`).
    Control,
    /// The instruction's result counts where this is not zero (`pred=`).
    Predicate,
    /// The instruction's result counts where this is zero (`inv_pred=`).
    InversePredicate,
    /// The state that an output port passes on.
    State,
}

/// Where an operand comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Ranges of bits of values, put together, the first least significant.
    Edges(SmallVec<[EdgeId; 2]>),
    /// A constant, as 64 bits.
    Constant(u64),
    /// A register of the processing element, 0 to 7.
    Register(u8),
}

/// What a node makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// Its name; empty for a nested instruction, an array, an output port.
    pub name: String,
    /// Bits.
    pub width: u32,
    /// Registers of the processing element that take it as well (`#pragma $Reg0 name`).
    pub registers: SmallVec<[u8; 8]>,
    /// Edges that carry it.
    pub uses: SmallVec<[EdgeId; 4]>,
}

/// Bits `low` to `high`, both included, of a value, on their way to an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The node that makes the value.
    pub source: NodeId,
    /// Which of its values.
    pub value: u32,
    /// The node that consumes it.
    pub sink: NodeId,
    /// Which of its operands.
    pub operand: u32,
    /// Lowest bit.
    pub low: u32,
    /// Highest bit.
    pub high: u32,
}

impl Edge {
    /// Bits that it carries.
    pub const fn width(&self) -> u32 {
        self.high - self.low + 1
    }
}

/// A statement of the task-flow extension, `TaskDep[…]: (…)` or `TaskProp[…]: (…)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// `TaskDep` or `TaskProp`.
    pub keyword: String,
    /// What stands between the brackets.
    pub head: String,
    /// What stands between the parentheses.
    pub body: String,
    /// Its place in the file.
    pub span: Span,
}

/// How many of what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All nodes.
    pub nodes: usize,
    /// All edges, those of arrays included.
    pub edges: usize,
    /// Instructions.
    pub instructions: usize,
    /// Composite nodes.
    pub composites: usize,
    /// Input ports.
    pub input_ports: usize,
    /// Output ports.
    pub output_ports: usize,
    /// Arrays.
    pub arrays: usize,
    /// Sub-graphs.
    pub groups: usize,
}

impl Graph {
    /// Counts everything.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            nodes: self.nodes.len(),
            edges: self.edges.len(),
            groups: self.groups.len(),
            ..Counts::default()
        };
        for node in &self.nodes {
            *match node.kind {
                NodeKind::Array(_) => &mut counts.arrays,
                NodeKind::Input(_) => &mut counts.input_ports,
                NodeKind::Output(_) => &mut counts.output_ports,
                NodeKind::Instruction(_) => &mut counts.instructions,
                NodeKind::Composite(_) => &mut counts.composites,
            } += 1;
        }
        counts
    }

    /// Input ports, in the order of the file.
    pub fn inputs(&self) -> impl Iterator<Item = (NodeId, &Node, &Port)> {
        self.nodes
            .iter_enumerated()
            .filter_map(|(id, node)| match &node.kind {
                NodeKind::Input(port) => Some((id, node, port)),
                _ => None,
            })
    }

    /// Whether values decide which results count, so that how many rows come out is not known before a run. The place of a stream in its
    /// loops, which a stated port tells, is none.
    pub fn counts_by_values(&self) -> bool {
        let is_state = |edge: &EdgeId| {
            let edge = &self.edges[*edge];
            let source = &self.nodes[edge.source].kind;
            edge.value == 0 && matches!(source, NodeKind::Input(port) if port.stated)
        };
        let decides = |operand: &Operand| {
            let decides = [Role::Control, Role::Predicate, Role::InversePredicate];
            decides.contains(&operand.role)
                && match &operand.source {
                    Source::Edges(edges) => !edges.iter().all(is_state),
                    Source::Constant(_) => false,
                    Source::Register(_) => true,
                }
        };
        self.nodes.iter().any(|node| match &node.kind {
            NodeKind::Instruction(instruction) => {
                instruction.self_control.is_some() || node.operands.iter().any(decides)
            }
            _ => false,
        })
    }

    /// Output ports, in the order of the file.
    pub fn outputs(&self) -> impl Iterator<Item = (NodeId, &Node, &Port)> {
        self.nodes
            .iter_enumerated()
            .filter_map(|(id, node)| match &node.kind {
                NodeKind::Output(port) => Some((id, node, port)),
                _ => None,
            })
    }

    /// Instructions, in the order of the file.
    pub fn instructions(&self) -> impl Iterator<Item = (NodeId, &Node, &Instruction)> {
        self.nodes
            .iter_enumerated()
            .filter_map(|(id, node)| match &node.kind {
                NodeKind::Instruction(instruction) => Some((id, node, instruction)),
                _ => None,
            })
    }
}
