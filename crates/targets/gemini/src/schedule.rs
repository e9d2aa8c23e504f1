//! A schedule: the one form that all dialects are read into.
//!
//! Units and numbers are the same whatever the dialect: sizes and addresses in bytes, cores numbered row by row over the
//! mesh from 0, boxes of four dimensions. What a dialect does not say is `None` or empty. The file's own numbers, where
//! they differ, come back with [`Schedule::file_core`].
//!
//! Schedules are large (hundreds of megabytes of text), so names are interned, sizes are as small as the format allows,
//! and every entry knows the place of its text ([`At`]) rather than keeping it.

use crate::names::{Name, Names};
use smallvec::SmallVec;

/// Byte offset in the text of the object that an entry was read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct At(pub u32);

/// Numbers of transfers; nearly always few.
pub type TransferIds = SmallVec<[u32; 4]>;

/// Which writer's form a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The scheduler IR with tiles, weight buffers and addresses, as its format description has it.
    Spec,
    /// SET v1.1 and GEMINI: multi-core, no addresses, sizes in bits.
    Set,
    /// SET with addresses.
    SetAddress,
    /// IR-tiling: DRAM groups, metadata, destinations in the snapshots.
    IrTiling,
    /// IR-tiling with addresses.
    IrTilingAddress,
}

impl Dialect {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::Spec => "spec",
            Dialect::Set => "set",
            Dialect::SetAddress => "set-address",
            Dialect::IrTiling => "ir-tiling",
            Dialect::IrTilingAddress => "ir-tiling-address",
        }
    }

    /// Whether snapshots say where tensors lie.
    pub const fn has_addresses(self) -> bool {
        matches!(
            self,
            Dialect::Spec | Dialect::SetAddress | Dialect::IrTilingAddress
        )
    }

    /// Whether DRAM comes in groups behind `DRAM` and `metadata`.
    pub const fn is_tiling(self) -> bool {
        matches!(self, Dialect::IrTiling | Dialect::IrTilingAddress)
    }
}

/// A box of a tensor, both corners inside: N, K or C, H, W. Of weights in the spec's dialect: 0, K, C, R·S.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// First index in each dimension.
    pub lower: [u32; 4],
    /// Last index in each dimension.
    pub upper: [u32; 4],
}

impl Bounds {
    /// Extents; 0 where upper lies below lower.
    pub fn shape(&self) -> [u64; 4] {
        std::array::from_fn(|d| {
            (u64::from(self.upper[d]) + 1).saturating_sub(u64::from(self.lower[d]))
        })
    }

    /// Elements of the box; more than any memory holds counts as 2^64 - 1.
    pub fn elements(&self) -> u64 {
        self.shape().into_iter().fold(1, u64::saturating_mul)
    }

    /// Whether no index lies inside.
    pub fn is_empty(&self) -> bool {
        (0..4).any(|d| self.lower[d] > self.upper[d])
    }

    /// What both have in common; `None` if nothing.
    pub fn intersection(&self, other: &Bounds) -> Option<Bounds> {
        let lower = std::array::from_fn(|d| self.lower[d].max(other.lower[d]));
        let upper = std::array::from_fn(|d| self.upper[d].min(other.upper[d]));
        Some(Bounds { lower, upper }).filter(|b| !b.is_empty())
    }

    /// Whether all of `other` lies inside.
    pub fn contains(&self, other: &Bounds) -> bool {
        (0..4).all(|d| self.lower[d] <= other.lower[d] && other.upper[d] <= self.upper[d])
    }

    /// The same box counted from `origin` instead of from 0; saturates at the ends.
    #[must_use]
    pub fn moved_by(&self, origin: [u32; 4]) -> Bounds {
        Bounds {
            lower: std::array::from_fn(|d| self.lower[d].saturating_add(origin[d])),
            upper: std::array::from_fn(|d| self.upper[d].saturating_add(origin[d])),
        }
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}..{:?}", self.lower, self.upper)
    }
}

/// The other end of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Peer {
    /// DRAM; the groups that the data are interleaved over, bit by bit (IR-tiling), 0 where the file does not say.
    Dram(u32),
    /// A core, by its number in the mesh.
    Core(u32),
}

/// Where the values of the top level stand; 0 for those that a file does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopPlaces {
    /// `xlen`.
    pub columns: At,
    /// `ylen`.
    pub rows: At,
    /// `top_batch_cut`.
    pub top_batch_cut: At,
    /// `buffersize`.
    pub buffer_size: At,
}

/// A schedule. See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Whose form.
    pub dialect: Dialect,
    /// Columns and rows of the mesh.
    pub mesh: [u32; 2],
    /// Batch groups at the root.
    pub top_batch_cut: u32,
    /// Where the values of the top level stand.
    pub places: TopPlaces,
    /// Bytes of the L2 buffer of a core; the ancestors do not say.
    pub buffer_size: Option<u64>,
    /// Name of the weight-buffer key, `wl0_buffer` or `wl1_buffer`, where a file has one.
    pub weight_key: Option<Name>,
    /// Cores in the file's order.
    pub cores: Vec<Core>,
    /// What is written to DRAM.
    pub dram_in: Vec<DramIn>,
    /// What is read from DRAM.
    pub dram_out: Vec<DramOut>,
    /// Where the DRAM groups are connected: column and row of each group (IR-tiling).
    pub dram_ports: Vec<DramPort>,
    /// All names.
    pub names: Names,
    /// Transfers that no list of destinations names, and that were found by layer and box (IR-tiling).
    pub unnamed: Vec<u32>,
    /// Keys that the format does not know, with their values as text.
    pub unknown: Vec<Unknown>,
}

/// A key that the format does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The object that has it, or the entry whose list that object is in.
    pub owner: At,
    /// Position of the object in the `source` or `destination` list of the entry.
    pub nested: Option<u32>,
    /// The key.
    pub key: Box<str>,
    /// The value as the file writes it.
    pub value: Box<str>,
}

/// Where a DRAM group meets the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramPort {
    /// The group.
    pub group: u32,
    /// Column.
    pub x: u32,
    /// Row.
    pub y: u32,
}

/// A core and its work.
#[derive(Clone, Debug, PartialEq)]
pub struct Core {
    /// Number in the mesh: row times columns plus column.
    pub id: u32,
    /// Work, in the file's order.
    pub workloads: Vec<Workload>,
    /// Place of the core's list.
    pub at: At,
}

impl Core {
    /// Position of the workload with this id; the list must be in ascending order, as the format demands.
    pub fn position(&self, id: u32) -> Option<usize> {
        match self.workloads.get(id as usize) {
            Some(w) if w.id == id => Some(id as usize),
            _ => self.workloads.binary_search_by_key(&id, |w| w.id).ok(),
        }
    }
}

/// What computes a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayerType {
    /// Processing elements: convolutions, matrix products.
    Pe,
    /// Vector processor.
    Vp,
    /// Data transfer: a change of layout.
    Dt,
    /// SET: convolution.
    Conv2d,
    /// SET: fully connected.
    Fc,
    /// SET: pooling.
    Pool,
    /// SET: element by element.
    ElementWise,
    /// SET: a function of each element.
    PointToPoint,
    /// SET: no key, a transposition.
    Missing,
}

impl LayerType {
    /// As files name it; empty for a missing key.
    pub const fn name(self) -> &'static str {
        match self {
            LayerType::Pe => "pe",
            LayerType::Vp => "vp",
            LayerType::Dt => "dt",
            LayerType::Conv2d => "conv2d",
            LayerType::Fc => "fc",
            LayerType::Pool => "pool",
            LayerType::ElementWise => "element_wise",
            LayerType::PointToPoint => "point_to_point",
            LayerType::Missing => "",
        }
    }

    /// The unit that computes it, as the spec's dialect names it.
    #[must_use]
    pub const fn unit(self) -> LayerType {
        match self {
            LayerType::Pe | LayerType::Conv2d | LayerType::Fc => LayerType::Pe,
            LayerType::Vp | LayerType::Pool | LayerType::ElementWise | LayerType::PointToPoint => {
                LayerType::Vp
            }
            LayerType::Dt | LayerType::Missing => LayerType::Dt,
        }
    }
}

/// A box of a layer's output, computed on one core at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The file's id: per core in the spec's dialect, over all cores in the ancestors.
    pub id: u32,
    /// Its layer.
    pub layer: Name,
    /// What computes it.
    pub layer_type: LayerType,
    /// Compute time in cycles.
    pub time: u64,
    /// The box of the layer's output that it makes.
    pub bounds: Bounds,
    /// Bytes of its output.
    pub ofmap_size: Option<u64>,
    /// Padding really used: top, bottom, left, right.
    pub padding: Option<[u32; 4]>,
    /// What it reads: one, or two for element-wise layers. The ancestors have one object for all inputs.
    pub ifmaps: Box<[Ifmap]>,
    /// Its weights, if any.
    pub weight: Option<Weight>,
    /// What becomes of its output, piece by piece.
    pub ofmaps: Box<[Ofmap]>,
    /// The L2 buffer when it starts.
    pub buffer: Box<[Tensor]>,
    /// The weight buffer when it starts; `None` for null or no key.
    pub weight_buffer: Option<Box<[WeightTensor]>>,
    /// Regions of the L2 ring buffer: first byte, byte after the last.
    pub ring: Option<Box<[[u64; 2]]>>,
    /// How it is cut for the unit; empty where the file does not say.
    pub tiles: Box<[Tile]>,
    /// Place of the workload.
    pub at: At,
}

/// What a workload reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ifmap {
    /// The box that is needed, absolute in the layer's input (N from 0 where the batch is split).
    pub bounds: Bounds,
    /// Bytes.
    pub size: Option<u64>,
    /// Channels are counted in multiples of this.
    pub align: Option<u16>,
    /// Bits of an element.
    pub bitwidth: Option<u8>,
    /// Transfers that bring it.
    pub transfers: TransferIds,
    /// The last workload that makes a part of it (ancestors).
    pub last_producer: Option<u32>,
    /// Place.
    pub at: At,
}

/// The weights of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Spec: 0, K, C, R·S. Ancestors: 0, K only, the rest 0; where it is an activation, the box of that.
    pub bounds: Bounds,
    /// Bytes.
    pub size: Option<u64>,
    /// Transfers that bring it; may be empty where it is an activation.
    pub transfers: TransferIds,
    /// It is another layer's output (attention).
    pub from_ofmap: bool,
    /// The last workload that makes a part of it (ancestors).
    pub last_producer: Option<u32>,
    /// Place.
    pub at: At,
}

/// A piece of a workload's output on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ofmap {
    /// The piece. In published files of the spec's dialect it is counted from the lower corner of its workload, in hand-made
    /// ones from the corner of the layer; the ancestors count from the corner of the layer.
    pub bounds: Bounds,
    /// Bytes.
    pub size: Option<u64>,
    /// Its transfer.
    pub transfer: u32,
    /// Who gets it.
    pub destinations: SmallVec<[Destination; 2]>,
    /// Place.
    pub at: At,
}

/// Who gets a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Where it goes.
    pub peer: Peer,
    /// The layer that reads it.
    pub layer: Option<Name>,
    /// The workload that reads it; none for DRAM.
    pub workload: Option<u32>,
}

/// What a tensor of a snapshot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorKind {
    /// An input of a workload, present or future; an on-chip result too.
    Ifmap,
    /// A result on its way to DRAM (spec); a stream buffer (ancestors).
    Ofmap,
    /// Weights.
    Weight,
}

impl TensorKind {
    /// As files name it.
    pub const fn name(self) -> &'static str {
        match self {
            TensorKind::Ifmap => "ifmap",
            TensorKind::Ofmap => "ofmap",
            TensorKind::Weight => "weight",
        }
    }
}

/// A tensor in a snapshot of the L2 buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// What it is.
    pub kind: TensorKind,
    /// Channels are counted in multiples of this.
    pub align: Option<u16>,
    /// Bits of an element.
    pub bitwidth: Option<u8>,
    /// Whether it was not in the snapshot before.
    pub newly_added: Option<bool>,
    /// Whether the workload of the snapshot reads it.
    pub current: bool,
    /// Whether it is being sent to DRAM (spec: `start_send`).
    pub start_send: bool,
    /// Loading and sending (IR-tiling).
    pub phase: Phase,
    /// Its layer: the one that makes it (ofmap), the one that reads it (weight; everything in the ancestors).
    pub layer: Option<Name>,
    /// Its box.
    pub bounds: Bounds,
    /// Bytes that it holds: `size` in the spec's dialect; `block` in the ancestors, which is rounded up to KiB.
    pub size: u64,
    /// First byte in L2.
    pub address: Option<u32>,
    /// Its number.
    pub tensor_id: Option<u32>,
    /// Its place in the DRAM queue; as many as there are DRAM transfers for tensors that stay on the chip.
    pub tensor_order: Option<u32>,
    /// Its place among the loads of DRAM (IR-tiling).
    pub priority: Option<u32>,
    /// The workload that it belongs to (ancestors).
    pub workload: Option<u32>,
    /// Transfers that bring it.
    pub transfers: TransferIds,
    /// Where its parts come from.
    pub sources: SmallVec<[Source; 1]>,
    /// Place.
    pub at: At,
}

impl Tensor {
    /// A tensor of which nothing more is said.
    pub fn new(kind: TensorKind, layer: Option<Name>, bounds: Bounds, size: u64) -> Tensor {
        Tensor {
            kind,
            align: None,
            bitwidth: None,
            newly_added: None,
            current: false,
            start_send: false,
            phase: Phase::default(),
            layer,
            bounds,
            size,
            address: None,
            tensor_id: None,
            tensor_order: None,
            priority: None,
            workload: None,
            transfers: TransferIds::new(),
            sources: SmallVec::new(),
            at: At::default(),
        }
    }
}

/// What IR-tiling says about the state of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// Loading starts.
    pub start_loading: Option<bool>,
    /// Loading ends.
    pub end_loading: Option<bool>,
    /// Sending starts; also written `start_ending`.
    pub start_sending: Option<bool>,
    /// Sending ends.
    pub end_sending: Option<bool>,
}

/// Where a part of a tensor comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// From where.
    pub peer: Peer,
    /// The layer that made it.
    pub layer: Option<Name>,
    /// The part, in the frame of the tensor.
    pub bounds: Bounds,
    /// Bytes.
    pub size: Option<u64>,
    /// Its transfer.
    pub transfer: u32,
}

/// Where weights in a weight buffer come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WeightSource {
    /// Straight from DRAM.
    Dram,
    /// From L2.
    L2,
}

/// Weights in a snapshot of the weight buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightTensor {
    /// From where.
    pub source: WeightSource,
    /// Channels are counted in multiples of this.
    pub align: Option<u16>,
    /// Bits of an element.
    pub bitwidth: Option<u8>,
    /// Their layer.
    pub layer: Option<Name>,
    /// 0, K, C, R·S; only where they come from DRAM.
    pub bounds: Option<Bounds>,
    /// Bytes in each bank.
    pub size: u64,
    /// First byte in each bank.
    pub address: u32,
    /// Place in the DRAM queue; only where they come from DRAM.
    pub tensor_order: Option<u32>,
    /// Transfers that bring them.
    pub transfers: TransferIds,
    /// Place.
    pub at: At,
}

/// A tile: what the unit computes at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// N of `tile_num_N`.
    pub number: u32,
    /// Its box of the layer's output.
    pub ofmap: Bounds,
    /// The box of the first input that it reads.
    pub ifmap: Option<Bounds>,
    /// The box of the second input.
    pub ifmap2: Option<Box<Bounds>>,
    /// Padding really used: top, bottom, left, right.
    pub padding: Option<[u32; 4]>,
    /// Predicted time of one tile; see the documentation of files for what it is and is not.
    pub time: Option<f64>,
    /// How the processing elements share it (pe).
    pub pe: Option<Box<PeTile>>,
    /// Place.
    pub at: At,
}

/// How the processing elements share a tile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeTile {
    /// Its layer.
    pub layer: Option<Name>,
    /// Order of the loops: a permutation of K, N, H, W.
    pub loop_order: Option<Name>,
    /// What the arrays divide: KC, KH, KK, KW or KN.
    pub cut_mode: Option<Name>,
    /// Into how many parts the input channels are cut.
    pub input_channel_cuts: Option<u32>,
    /// Mini-tile of the activations.
    pub activation_mini_tile: Option<[u32; 4]>,
    /// Mini-tile of the output.
    pub output_mini_tile: Option<[u32; 4]>,
    /// Mini-tiles of C and K that are held at once.
    pub mtc0_mtk0: Option<[u32; 2]>,
}

/// What is written to DRAM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DramIn {
    /// Its transfer.
    pub transfer: u32,
    /// Which core makes it.
    pub core: u32,
    /// Which workload makes it.
    pub workload: u32,
    /// Its layer.
    pub layer: Option<Name>,
    /// Its box, absolute in the layer's output.
    pub bounds: Bounds,
    /// Reads of these bytes, by transfer; `None` where the key is missing.
    pub related: Option<TransferIds>,
    /// DRAM groups, bit by bit (IR-tiling).
    pub groups: u32,
    /// Place.
    pub at: At,
}

/// What is read from DRAM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DramOut {
    /// Its transfer.
    pub transfer: u32,
    /// Weights, or else a feature map or a constant.
    pub weight: bool,
    /// A constant operand.
    pub constant: bool,
    /// The layer that reads it (ancestors; the spec's dialect says it in the destinations).
    pub layer: Option<Name>,
    /// Who gets it.
    pub destinations: SmallVec<[Destination; 2]>,
    /// Its box, absolute in the reading layer's input.
    pub bounds: Bounds,
    /// Bytes.
    pub size: u64,
    /// Writes of these bytes, by transfer; `None` where the key is missing.
    pub related: Option<TransferIds>,
    /// Its place among the loads (IR-tiling).
    pub priority: Option<u32>,
    /// DRAM groups, bit by bit (IR-tiling).
    pub groups: u32,
    /// Place.
    pub at: At,
}

impl Schedule {
    /// Whether no channel is aligned and weights have no parameters: a schedule that was converted from an ancestor.
    pub fn is_packed(&self) -> bool {
        let mut tensors = self.workloads().flat_map(|(_, w)| &w.buffer).peekable();
        self.dialect == Dialect::Spec
            && tensors.peek().is_some()
            && tensors.all(|tensor| tensor.align == Some(1))
    }

    /// The core with this number in the mesh.
    pub fn core(&self, id: u32) -> Option<&Core> {
        self.cores.iter().find(|core| core.id == id)
    }

    /// Number of a core in the file: the ancestors count two columns of DRAM ports with each row.
    pub fn file_core(&self, id: u32) -> u32 {
        if self.dialect == Dialect::Spec {
            id
        } else {
            let columns = self.mesh[0].max(1);
            (id / columns)
                .saturating_mul(columns.saturating_add(2))
                .saturating_add(id % columns + 1)
        }
    }

    /// Column and row of a core in the mesh.
    pub fn position(&self, id: u32) -> (u32, u32) {
        let columns = self.mesh[0].max(1);
        (id % columns, id / columns)
    }

    /// Text of a name.
    pub fn name(&self, name: Name) -> &str {
        self.names.get(name)
    }

    /// All workloads with their cores, core by core.
    pub fn workloads(&self) -> impl Iterator<Item = (&Core, &Workload)> {
        self.cores
            .iter()
            .flat_map(|core| core.workloads.iter().map(move |w| (core, w)))
    }

    /// The batch: the images that its workloads make.
    pub fn batch(&self) -> u64 {
        let images = self
            .workloads()
            .map(|(_, w)| u64::from(w.bounds.upper[0]) + 1);
        images.max().unwrap_or(1)
    }
}
