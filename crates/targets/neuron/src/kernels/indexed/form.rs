//! What the two slots of a transfer with indices say, before it is known where its variables are.

use crate::kernels::decoded::{BOUND_COUNTS, decoded};
use crate::kernels::transfer::Compute;
use crate::kernels::{Context, Elements};
use crate::stream::formats::{Dma, DmaExtension};
use crate::stream::operand::leaves_partitions;
use crate::stream::{DmaSide, Instruction, OnChip, PARTITION_STRIDE, PARTITIONS, Slot, Space};
use chipless_model::{ElementType, Fault, Loop, Pattern};

/// Bits of the flags of an extension: whose rows the indices find, and what they say of them.
const SCATTER: u8 = 1;
const BOTH: u8 = 2;
const ERROR: u8 = 4;
const REPEATED: u8 = 8;
/// The dimensions that indices count in.
const DIMENSIONS: u8 = 0xf0;
/// The second dimension of the source.
const SOURCE_Y: u8 = 0x10;

/// The tile of a transposition: rows, and columns of two bytes.
const TILE: (u8, u8) = (16, 128);

/// Bytes of an index.
const INDEX: u64 = 4;

/// A transfer of so many rows.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) count: usize,
    /// How the rows of the source are found, and those of the destination, where indices find them.
    pub(crate) sides: [Option<Index>; 2],
    pub(crate) compute: Option<Compute>,
    pub(crate) bounds_are_kept: bool,
    pub(crate) repeats: bool,
    pub(crate) transposes: bool,
}

/// How the rows of a side are found.
#[derive(Debug)]
pub(crate) struct Index {
    /// An index for each row.
    pub(crate) indices: Elements,
    /// Bytes from the row of an index to that of the next, and of a row.
    pub(crate) step: i64,
    pub(crate) row: usize,
    /// The register that indices must stay below.
    pub(crate) limit: Option<u8>,
    /// Bytes behind which no row may reach.
    pub(crate) bytes: Option<u64>,
}

/// What an extension says of the indices of one side.
struct Said {
    role: &'static str,
    side: DmaSide,
    address: u32,
    bytes: u64,
    bound: u8,
}

impl Form {
    /// What a transfer and the slot behind it say.
    pub(crate) fn of(
        dma: Dma<'_>,
        behind: Option<&Slot>,
        context: &Context,
    ) -> Result<Form, Fault> {
        let Some(Instruction::DmaExtension(more)) = behind.map(Slot::decode) else {
            return Err(Fault::program(
                "no PSEUDO_EXTENSION behind it says where its indices are",
            ));
        };
        decoded(more.0)?;
        let transposes = dma.kind() == Dma::GATHER_TRANSPOSE;
        let form = more.flags() & (SCATTER | BOTH);
        if form == SCATTER | BOTH || (transposes && form != 0) {
            return Err(Fault::unsupported(format!(
                "indices of form {form} are not supported here: their meaning is not known"
            )));
        }
        shape(more, transposes)?;
        let wide = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let said = [
            Said {
                role: "src",
                side: dma.src(),
                address: more.src_index(),
                bytes: wide(more.src_bytes(), more.src_bytes_high()),
                bound: dma.src_bound(),
            },
            Said {
                role: "dst",
                side: dma.dst(),
                address: more.dst_index(),
                bytes: wide(more.dst_bytes(), more.dst_bytes_high()),
                bound: dma.dst_bound(),
            },
        ];
        let by_index = more.by_index();
        // The dimension that indices count in, and the other one.
        let dimensions = if transposes { [1, 0] } else { [0, 1] };
        let first = &said[usize::from(!by_index[0])].side;
        let count = usize::from(first.counts[dimensions[0]].get());
        let mut sides = [None, None];
        for ((said, by_index), side) in said.iter().zip(by_index).zip(&mut sides) {
            if by_index {
                *side = Some(said.index(count, dimensions, context)?);
            } else if (said.address, said.bound) != (0, 0) {
                return Err(Fault::unsupported(format!(
                    "{} has an index or a bound for one, but its rows are not found by indices: that is not supported",
                    said.role
                )));
            }
        }
        if transposes {
            turned(dma, count)?;
        }
        Ok(Form {
            count,
            sides,
            compute: compute(more)?,
            bounds_are_kept: more.flags() & ERROR != 0,
            repeats: more.flags() & REPEATED != 0,
            transposes,
        })
    }
}

impl Said {
    fn index(
        &self,
        count: usize,
        [outer, inner]: [usize; 2],
        context: &Context,
    ) -> Result<Index, Fault> {
        let Said { role, side, .. } = self;
        if usize::from(side.counts[outer].get()) != count || side.counts[inner].get() != 1 {
            return Err(Fault::unsupported(format!(
                "{role} of {} × {} rows is not supported: indices find {count} rows in one dimension",
                side.counts[0], side.counts[1]
            )));
        }
        Ok(Index {
            indices: self.indices(count, context)?,
            step: i64::from(side.steps[outer].get()),
            row: side.row() as usize,
            limit: (self.bound & BOUND_COUNTS != 0).then_some(self.bound & 0x3f),
            bytes: Some(self.bytes).filter(|bytes| *bytes != 0),
        })
    }

    /// Index `i` is in partition `i mod 128`, behind those before it there.
    fn indices(&self, count: usize, context: &Context) -> Result<Elements, Fault> {
        let Said { role, address, .. } = self;
        let is_first = |at: &OnChip| {
            let is_word = u64::from(at.offset).is_multiple_of(INDEX);
            at.space == Space::StateBuffer && at.partition == 0 && is_word
        };
        let Some(OnChip { offset, .. }) = OnChip::at(*address).filter(is_first) else {
            return Err(Fault::program(format!(
                "{role}: indices at {address:#x}: they lie in words from partition 0 of the state buffer on"
            )));
        };
        let (partitions, count) = (u64::from(PARTITIONS), count as u64);
        let columns = count.div_ceil(partitions);
        if columns > 1 && !count.is_multiple_of(partitions) {
            return Err(Fault::unsupported(format!(
                "{role}: {count} indices are not supported, only up to {partitions}, or a multiple of it"
            )));
        }
        let loops = [
            Loop {
                count: count.min(partitions),
                stride: i64::from(PARTITION_STRIDE),
            },
            Loop {
                count: columns,
                stride: INDEX as i64,
            },
        ];
        let pattern = Pattern::new(u64::from(offset), INDEX, loops);
        let usable = context.chip.state_buffer_partition;
        if let Some(why) = leaves_partitions(&pattern, Space::StateBuffer, usable) {
            return Err(Fault::program(format!("{role}: indices reach {why}")));
        }
        Ok(Elements {
            buffer: context.chip.state_buffer,
            pattern,
            element: ElementType::UInt32,
        })
    }
}

/// Whether an extension says nothing but what is known of it.
fn shape(more: DmaExtension<'_>, transposes: bool) -> Result<(), Fault> {
    let dimensions = if transposes { SOURCE_Y } else { 0 };
    let tile = (more.tile_rows(), more.tile_columns());
    let is_tile = more.tile_step() == 0 && (tile == (0, 0) || transposes && tile == TILE);
    let why = if u32::from(more.channels()) != PARTITIONS {
        format!("{} channels: all 128 have indices", more.channels())
    } else if more.flags() & DIMENSIONS != dimensions {
        let flags = more.flags();
        format!("flags {flags:#04x}: indices count in another dimension")
    } else if !is_tile {
        let step = more.tile_step();
        format!("a tile of {} × {} in steps of {step}", tile.0, tile.1)
    } else {
        return Ok(());
    };
    Err(Fault::unsupported(format!("{why}, which is not supported")))
}

fn compute(more: DmaExtension<'_>) -> Result<Option<Compute>, Fault> {
    match more.compute() {
        0 => Ok(None),
        1 => Ok(Some(Compute::Add)),
        3 => Ok(Some(Compute::Max)),
        4 => Ok(Some(Compute::Min)),
        other => Err(Fault::unsupported(format!(
            "computation {other} of a transfer is not supported; none, add, max and min are"
        ))),
    }
}

/// Whether a transposing gather has the one form that is known: rows of elements of two bytes, each of which becomes a column.
fn turned(dma: Dma<'_>, count: usize) -> Result<(), Fault> {
    let (from, to) = (dma.src(), dma.dst());
    let columns = u64::from(to.counts[1].get());
    let is_known = to.row() == 2
        && to.steps[0].get() == 2
        && usize::from(to.counts[0].get()) == count
        && columns * 2 == from.row()
        && count.is_multiple_of(usize::from(TILE.0))
        && columns <= u64::from(TILE.1);
    if dma.casts() || !is_known {
        return Err(Fault::unsupported(
            "it is not supported in this form: rows of up to 128 elements of two bytes, a multiple of 16 of them, become columns of the destination",
        ));
    }
    Ok(())
}
