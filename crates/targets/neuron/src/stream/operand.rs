//! What an instruction reads and writes on the chip, and what a transfer moves.

use super::formats::{Field, Kind, Microscaled, ONE_PARTITION};
use super::{
    DmaSide, DmaTarget, OnChip, PARTITION_STRIDE, PARTITIONS, Scalars, Slot, Space, Tensor,
};
use crate::def::{Definition, Variable, VariableType};
use crate::json::Name;
use chipless_model::{Direction, Loop, Pattern};
use smallvec::SmallVec;

/// Elements on the chip that an instruction reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its name in the text form: `src`, `dst`.
    pub role: &'static str,
    /// Read or write.
    pub direction: Direction,
    /// Element type code.
    pub code: u8,
    /// On-chip address of the first element.
    pub address: u32,
    /// Elements from one index to the next, innermost first.
    pub steps: [i16; 4],
    /// Elements of each dimension, innermost first.
    pub counts: [u16; 4],
    /// Partitions, each walked alike.
    pub partitions: u8,
    /// Quadrants of 32 partitions, each with so many of them: more than one for scales alone.
    pub quadrants: u8,
}

/// Partitions of a quadrant.
pub(crate) const QUADRANT: u8 = 32;
/// Partitions that share a scale, of elements in groups.
pub(crate) const SCALED: u8 = 8;
/// Element type codes of four packed elements: of one byte each, and of half of one, whose code is the last.
const PACKED: (u8, u8) = (0x9, 0x5);
pub(crate) const HALF_BYTE: u8 = 0x10;
/// Element type code of scales.
const SCALE: u8 = 0x3;

impl Operand {
    /// Elements of one partition.
    pub fn elements(&self) -> u64 {
        self.counts
            .iter()
            .fold(1u64, |n, count| n.saturating_mul(u64::from(*count)))
    }

    /// Where it starts, and the first byte of a partition that it touches and one past the last, by the bounds of its loops; `None` where it
    /// has no elements, or where the address is in no memory.
    pub(crate) fn bounds(&self, element_bytes: u64) -> Option<(OnChip, i64, i64)> {
        let start = OnChip::at(self.address)?;
        let (size, first) = (element_bytes as i64, i64::from(start.offset));
        let (mut low, mut high) = (first, first + size);
        for (step, count) in self.steps.iter().zip(self.counts) {
            let reach = i64::from(*step) * (i64::from(count) - 1) * size;
            low += reach.min(0);
            high += reach.max(0);
        }
        (!self.counts.contains(&0)).then_some((start, low, high))
    }

    /// The memory, and its bytes partition by partition, each walked in the order of the instruction; `None` where the
    /// address is in no memory.
    pub fn pattern(&self, element_bytes: u64) -> Option<(Space, Pattern)> {
        let OnChip {
            space,
            partition,
            offset,
        } = OnChip::at(self.address)?;
        let first = u64::from(partition) * u64::from(space.stride()) + u64::from(offset);
        let free = self
            .counts
            .iter()
            .zip(self.steps)
            .map(|(count, step)| Loop {
                count: u64::from(*count),
                stride: i64::from(step) * element_bytes as i64,
            });
        let partitions = Loop {
            count: u64::from(self.partitions),
            stride: i64::from(space.stride()),
        };
        let quadrants = Loop {
            count: u64::from(self.quadrants),
            stride: i64::from(space.stride()) * i64::from(QUADRANT),
        };
        let across = [partitions, quadrants].into_iter();
        let across = across.take(if self.quadrants == 1 { 1 } else { 2 });
        Some((
            space,
            Pattern::new(first, element_bytes, free.chain(across)),
        ))
    }

    /// Partitions from the first to the last.
    pub(crate) fn partitions_across(&self) -> u32 {
        let before = u32::from(self.quadrants.saturating_sub(1)) * u32::from(QUADRANT);
        before + u32::from(self.partitions)
    }
}

/// The packed elements of an operand in groups, and their scales: one for each place, of every eighth partition.
fn in_groups(
    field: &Field,
    (direction, code, partitions): (Direction, u8, u8),
    groups: Microscaled,
) -> [Operand; 2] {
    let Microscaled {
        address,
        scales,
        step,
        scale_partition,
        ..
    } = groups;
    let elements = Operand {
        role: field.name,
        direction,
        code: if code == HALF_BYTE {
            PACKED.1
        } else {
            PACKED.0
        },
        address,
        steps: [step.into(), 0, 0, 0],
        counts: [groups.places(), 1, 1, 1],
        partitions,
        quadrants: 1,
    };
    let within = PARTITION_STRIDE * u32::from(QUADRANT - 1);
    let first = PARTITION_STRIDE * u32::from(scale_partition);
    let scales = Operand {
        role: match direction {
            Direction::Read => "src_scales",
            Direction::Write => "dst_scales",
        },
        code: SCALE,
        address: (scales & !within).saturating_add(first),
        partitions: QUADRANT / SCALED,
        quadrants: partitions / QUADRANT,
        ..elements
    };
    [elements, scales]
}

impl Slot {
    /// What it reads and writes on the chip, destination first, by the format of its opcode.
    pub fn operands(&self) -> SmallVec<[Operand; 3]> {
        let mut operands = SmallVec::new();
        for field in self.format().tensors() {
            let (dimensions, direction, element, partitions) = match field.kind {
                Kind::Tensor {
                    dimensions,
                    direction,
                    element,
                    partitions,
                } => (dimensions, direction, element, partitions),
                Kind::Microscaled {
                    direction,
                    element,
                    partitions,
                } => {
                    let partitions = self.byte(usize::from(partitions));
                    let said = (direction, element.of(self), partitions);
                    operands.extend(in_groups(field, said, self.microscaled(field.at)));
                    continue;
                }
                _ => continue,
            };
            let Tensor {
                address,
                steps,
                counts,
                ..
            } = self.tensor(field.at, dimensions);
            operands.push(Operand {
                role: field.name,
                direction,
                code: element.of(self),
                address,
                steps,
                counts,
                partitions: match partitions {
                    ONE_PARTITION => 1,
                    at => self.byte(usize::from(at)),
                },
                quadrants: 1,
            });
        }
        operands
    }
}

/// First and last partition of a pattern, and the range of its bytes within them; `None` for an empty one.
///
/// Each step is taken as whole partitions and a rest. Loops are independent of each other, so the smallest and the
/// largest offset and partition are the sums of those of each loop.
fn spread(pattern: &Pattern, stride: u32) -> Option<((i128, i128), (i128, i128))> {
    let size = i128::from(stride);
    if pattern.run == 0 || pattern.loops.iter().any(|l| l.count == 0) {
        return None;
    }
    let at = i128::from(pattern.offset);
    let (mut partitions, mut offsets) = (
        (at / size, at / size),
        (at % size, at % size + i128::from(pattern.run)),
    );
    for l in &pattern.loops {
        let (whole, rest) = split(l, stride);
        let last = i128::from(l.count - 1);
        for (range, step) in [(&mut partitions, whole), (&mut offsets, rest)] {
            range.0 += (step * last).min(0);
            range.1 += (step * last).max(0);
        }
    }
    Some((partitions, offsets))
}

/// The step of a loop as whole partitions and a rest.
fn split(l: &Loop, partition: u32) -> (i128, i128) {
    let (size, stride) = (i128::from(partition), i128::from(l.stride));
    let whole = (stride + size / 2).div_euclid(size);
    (whole, stride - whole * size)
}

/// Runs within a partition that are compared one by one with those that are kept; of more, nothing is said.
const RUNS: u64 = 1 << 12;

/// Bytes of partitions that somebody keeps, in some partition at least.
pub(crate) fn kept_ranges(definition: &Definition<'_>) -> Vec<(i64, i64)> {
    let wide = |at: u64, size: u64| {
        let end = at.saturating_add(size);
        (
            i64::try_from(at).unwrap_or(i64::MAX),
            i64::try_from(end).unwrap_or(i64::MAX),
        )
    };
    let runtime = definition
        .reservations
        .iter()
        .map(|kept| wide(kept.offset, kept.size));
    let scratch = definition
        .queues
        .values()
        .filter_map(|queue| queue.dynamic_dma);
    let scratch = scratch.map(|kept| wide(kept.partition_offset, kept.partition_size));
    runtime.chain(scratch).collect()
}

/// Who keeps bytes of the state buffer that a pattern touches, and which, if somebody does: the runtime, or the engine that builds
/// descriptors there.
pub(crate) fn kept_bytes(definition: &Definition<'_>, pattern: &Pattern) -> Option<String> {
    let runtime = definition.reservations.iter().map(|kept| {
        let partitions = (
            kept.base_partition,
            kept.base_partition.saturating_add(kept.partitions),
        );
        (
            format!("the runtime's ({})", kept.kind),
            partitions,
            kept.offset,
            kept.size,
        )
    });
    let scratch = definition.queues.iter().filter_map(|(name, queue)| {
        let scratch = queue.dynamic_dma?;
        let partitions = (0, u64::from(PARTITIONS));
        Some((
            format!("descriptor scratch of `{name}`"),
            partitions,
            scratch.partition_offset,
            scratch.partition_size,
        ))
    });
    let (partitions, offsets) = spread(pattern, PARTITION_STRIDE)?;
    let mut kept = runtime
        .chain(scratch)
        .filter(|(_, (first, end), offset, size)| {
            let (start, stop) = (i128::from(*offset), i128::from(*offset) + i128::from(*size));
            partitions.0 < i128::from(*end)
                && partitions.1 >= i128::from(*first)
                && offsets.0 < stop
                && offsets.1 > start
        });
    // Loops from partition to partition touch the same bytes in each.
    let loops = pattern
        .loops
        .iter()
        .filter(|l| split(l, PARTITION_STRIDE).1 != 0)
        .copied();
    let within = Pattern::new(
        pattern.offset % u64::from(PARTITION_STRIDE),
        pattern.run,
        loops,
    );
    if within.bytes()? / within.run > RUNS {
        return None;
    }
    let touches = |offset: u64, size: u64| {
        within
            .runs()
            .any(|at| at < offset.saturating_add(size) && at.saturating_add(within.run) > offset)
    };
    kept.find(|(_, _, offset, size)| touches(*offset, *size))
        .map(|(whose, _, offset, size)| {
            format!(
                "bytes {offset:#x} to {:#x} of a partition, which are {whose}",
                offset.saturating_add(size)
            )
        })
}

/// Whether a pattern touches a byte twice. Patterns of more than a few loops that interleave are taken for sound.
pub(crate) fn overlaps(pattern: &Pattern) -> bool {
    let mut loops: SmallVec<[(u64, u64); 4]> = pattern
        .loops
        .iter()
        .filter(|l| l.count > 1)
        .map(|l| (l.stride.unsigned_abs(), l.count))
        .collect();
    loops.sort_unstable();
    // Each loop steps over all that is inside it: then nothing is touched twice.
    let mut span = u128::from(pattern.run);
    let mut is_nested = true;
    for (stride, count) in &loops {
        is_nested &= u128::from(*stride) >= span;
        span += u128::from(*stride) * u128::from(count - 1);
    }
    if is_nested {
        return false;
    }
    // Something is touched twice wherever more bytes are written than lie between the first and the last.
    if pattern.bytes().is_none_or(|bytes| u128::from(bytes) > span) {
        return true;
    }
    match pattern.bytes() {
        Some(bytes) if pattern.run > 0 && bytes / pattern.run <= RUNS => {
            let mut starts: Vec<u64> = pattern.runs().collect();
            starts.sort_unstable();
            starts
                .windows(2)
                .any(|pair| pair[1] - pair[0] < pattern.run)
        }
        _ => false,
    }
}

/// Whether every run of a pattern stays inside the usable bytes of a partition of a memory; if not, what leaves them.
pub(crate) fn leaves_partitions(
    pattern: &Pattern,
    space: Space,
    partition_bytes: u32,
) -> Option<String> {
    let (partitions, offsets) = spread(pattern, space.stride())?;
    if partitions.0 < 0 || partitions.1 >= i128::from(PARTITIONS) {
        return Some(format!(
            "partitions {} to {}, there are {PARTITIONS}",
            partitions.0, partitions.1
        ));
    }
    if offsets.0 < 0 || offsets.1 > i128::from(partition_bytes) {
        return Some(format!(
            "bytes {:#x} to {:#x} of a partition, which has {partition_bytes:#x}",
            offsets.0, offsets.1
        ));
    }
    None
}

/// Why the address of a transfer leads to no variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unresolved {
    /// Chipless does not know this kind of address.
    Unsupported(String),
    /// The program has no such variable.
    Missing(String),
}

/// Position, name and declaration of the variable that an address leads to, whatever the offset.
pub(crate) fn variable<'d, 'a>(
    definition: &'d Definition<'a>,
    target: DmaTarget,
) -> Result<(usize, &'d Name<'a>, &'d Variable<'a>), Unresolved> {
    let id = match target {
        DmaTarget::Variable { id, .. } => u64::from(id),
        DmaTarget::Table { index, .. } | DmaTarget::TableRegister { index, .. } => {
            let tables = definition
                .variables
                .iter()
                .filter(|(_, v)| v.kind == Some(VariableType::DgeTable));
            let mut tables = tables.map(|(name, v)| (name, &v.list));
            match (tables.next(), tables.next()) {
                (Some((name, list)), None) => *list.get(usize::from(index)).ok_or_else(|| {
                    Unresolved::Missing(format!(
                        "entry {index} of {name}, which has {}",
                        list.len()
                    ))
                })?,
                (None, _) => {
                    return Err(Unresolved::Missing(format!(
                        "entry {index} of a dge-table, but there is none"
                    )));
                }
                (Some(_), Some(_)) => {
                    return Err(Unresolved::Unsupported(
                        "several dge-tables in one subgraph are not supported".to_owned(),
                    ));
                }
            }
        }
        DmaTarget::Registers { .. } | DmaTarget::Absolute(_) => {
            return Err(Unresolved::Unsupported(format!(
                "{target} leads to no variable in particular"
            )));
        }
        DmaTarget::Unknown(tag) => {
            return Err(Unresolved::Unsupported(format!(
                "address tag {tag:#06x} is not supported: its meaning is not known"
            )));
        }
    };
    definition
        .variable_by_id(id)
        .ok_or_else(|| Unresolved::Missing(format!("the variable with var_id {id}")))
}

impl DmaSide {
    /// Its bytes in order, from the start of the variable; from its first byte where a register says where that is.
    pub fn pattern(&self) -> Pattern {
        let loops = self.counts.iter().zip(&self.steps);
        let loops = loops.map(|(count, step)| Loop {
            count: u64::from(count.get()),
            stride: i64::from(step.get()),
        });
        let offset = self.address.target().offset().unwrap_or(0);
        Pattern::new(offset, self.row(), loops)
    }
}

impl Scalars {
    /// Bytes of elements of this size in order, from this byte on.
    pub(crate) fn pattern(&self, first: u64, element_bytes: u64) -> Pattern {
        let loops = self.counts.iter().zip(&self.steps);
        let loops = loops.map(|(count, step)| Loop {
            count: u64::from(*count),
            stride: i64::from(step.get()) * element_bytes as i64,
        });
        Pattern::new(first, element_bytes, loops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the definition: every run, one by one.
        #[test]
        fn leaving_the_partitions_is_found_exactly(
            offset in 0u64..0x200_0000, run in 1u64..700,
            loops in prop::collection::vec((1u64..5, prop_oneof![-3i64..4, Just(1), Just(100)], -600i64..600), 0..3),
        ) {
            let loops = loops.iter().map(|(count, partitions, bytes)| Loop { count: *count, stride: partitions * 0x40000 + bytes });
            let pattern = Pattern::new(offset, run, loops);
            let usable = 0x38000;
            let inside = pattern.fits(0x200_0000) && pattern.runs().all(|at| at % 0x40000 + pattern.run <= usable);
            prop_assert_eq!(leaves_partitions(&pattern, Space::StateBuffer, usable as u32).is_none(), inside);
        }
    }
}
