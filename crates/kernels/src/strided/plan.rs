//! A copy between two patterns as one nest of loops.

use super::rows::{Rows, Stride};
use crate::transpose::transpose;
use chipless_model::Pattern;
use smallvec::SmallVec;

/// One loop over both sides.
#[derive(Clone, Copy, Debug)]
struct Axis {
    count: usize,
    /// Bytes from one iteration to the next.
    stride: Stride,
}

impl Axis {
    /// Whether `outer` goes on where this loop ends, on both sides.
    fn continues_in(self, outer: Axis) -> bool {
        let end = |stride: isize| self.count as i128 * stride as i128;
        end(self.stride.from) == outer.stride.from as i128
            && end(self.stride.to) == outer.stride.to as i128
    }
}

type Axes = SmallVec<[Axis; 8]>;

/// Runs of bytes that are contiguous on both sides, and the loops around them.
#[derive(Debug)]
pub(super) struct Plan {
    /// First byte of the first run in the source.
    from: usize,
    /// The same in the destination.
    to: usize,
    run: usize,
    /// Innermost first.
    axes: Axes,
    /// Whether no byte is written twice, so that the loops may be done in any order.
    distinct: bool,
}

impl Plan {
    /// The loops that enumerate both patterns, which fit their buffers, are equally long and not empty. `None` where their
    /// runs and loops do not divide each other.
    pub(super) fn new(from: &Pattern, to: &Pattern) -> Option<Plan> {
        let mut plan = Plan {
            from: from.offset as usize,
            to: to.offset as usize,
            run: 1,
            axes: merge(from, to)?,
            distinct: false,
        };
        plan.drop_overwritten();
        plan.order_by_destination();
        plan.fold();
        Some(plan)
    }

    /// Moves the start to the last iteration of a loop.
    fn start_at_last(&mut self, axis: Axis) {
        let last = axis.count as isize - 1;
        self.from = self.from.wrapping_add_signed(last * axis.stride.from);
        self.to = self.to.wrapping_add_signed(last * axis.stride.to);
    }

    /// Of iterations that write the same places, keeps the last.
    fn drop_overwritten(&mut self) {
        for i in (0..self.axes.len()).rev() {
            if self.axes[i].stride.to == 0 {
                let axis = self.axes.remove(i);
                self.start_at_last(axis);
            }
        }
    }

    /// Walks the destination forwards, its longest strides outermost, where the order makes no difference.
    fn order_by_destination(&mut self) {
        let mut sorted = self.axes.clone();
        sorted.sort_by_key(|axis| axis.stride.to.unsigned_abs());
        let mut span = 1;
        self.distinct = sorted.iter().all(|axis| {
            let stride = axis.stride.to.unsigned_abs();
            let apart = stride >= span;
            span += stride * (axis.count - 1);
            apart
        });
        if !self.distinct {
            return;
        }
        for axis in &mut sorted {
            if axis.stride.to < 0 {
                self.start_at_last(*axis);
                axis.stride = Stride {
                    from: -axis.stride.from,
                    to: -axis.stride.to,
                };
            }
        }
        self.axes = sorted;
    }

    /// Joins loops that go on in each other, and makes the innermost one the run where it is contiguous.
    fn fold(&mut self) {
        let mut folded = Axes::new();
        for axis in self.axes.drain(..) {
            match folded.last_mut() {
                Some(inner) if inner.continues_in(axis) => inner.count *= axis.count,
                _ => folded.push(axis),
            }
        }
        if let Some(Axis {
            count,
            stride: Stride { from: 1, to: 1 },
        }) = folded.first()
        {
            self.run = *count;
            folded.remove(0);
        }
        self.axes = folded;
    }

    /// Copies between the buffers that the patterns fit.
    pub(super) fn execute(&self, source: &[u8], destination: &mut [u8]) {
        // Memory safety rests on these two alone: what follows stays inside the bounds of the loops.
        assert!(
            self.inside(self.from, |stride| stride.from, source.len()),
            "the loops of a copy leave the source"
        );
        assert!(
            self.inside(self.to, |stride| stride.to, destination.len()),
            "the loops of a copy leave the destination"
        );
        // SAFETY: all runs of both sides were just found inside their slices, which cannot overlap.
        #[allow(unsafe_code)]
        unsafe {
            self.execute_unchecked(
                source.as_ptr().add(self.from),
                destination.as_mut_ptr().add(self.to),
            );
        }
    }

    /// Whether all runs of one side lie inside `size` bytes.
    fn inside(&self, offset: usize, side: impl Fn(Stride) -> isize, size: usize) -> bool {
        let (mut low, mut high) = (offset as i128, offset as i128 + self.run as i128);
        for axis in &self.axes {
            let reach = side(axis.stride) as i128 * (axis.count as i128 - 1);
            if reach < 0 {
                low += reach;
            } else {
                high += reach;
            }
        }
        low >= 0 && high <= size as i128
    }

    /// # Safety
    ///
    /// All runs of the plan, from the given first ones on, must be readable and writable, and must not overlap.
    #[allow(unsafe_code)]
    unsafe fn execute_unchecked(&self, source: *const u8, destination: *mut u8) {
        let mut axes = self.axes.clone();
        if let Some((row, column)) = self.transposed() {
            let (rows, columns) = (axes[row], axes[column]);
            axes.remove(column);
            axes.remove(row);
            let transpose = match self.run {
                1 => transpose::<1>,
                2 => transpose::<2>,
                4 => transpose::<4>,
                8 => transpose::<8>,
                16 => transpose::<16>,
                _ => transpose::<32>,
            };
            each(&axes, |from, to| {
                // SAFETY: these rows and columns of units of one run are two loops of the plan.
                unsafe {
                    transpose(
                        source.offset(from),
                        rows.stride.from,
                        destination.offset(to),
                        columns.stride.to,
                        rows.count,
                        columns.count,
                    );
                };
            });
            return;
        }
        if self.distinct && axes.first().is_some_and(|axis| axis.count < 8) {
            // A short inner loop costs more than the order of the destination saves.
            let longest = (0..axes.len()).max_by_key(|i| axes[*i].count).unwrap_or(0);
            axes.swap(0, longest);
        }
        let mut rows = Rows::single(self.run);
        if let Some(axis) = axes.first() {
            (rows.inner, rows.inner_stride) = (axis.count, axis.stride);
        }
        if let Some(axis) = axes.get(1) {
            (rows.outer, rows.outer_stride) = (axis.count, axis.stride);
        }
        let copy = rows.kernel();
        each(axes.get(2..).unwrap_or_default(), |from, to| {
            // SAFETY: the two loops of the rows, inside the other loops, are those of the plan.
            unsafe { copy(rows, source.offset(from), destination.offset(to)) };
        });
    }

    /// The loop along which the destination is contiguous and the one along which the source is, where these are two and
    /// both long enough to be worth it.
    fn transposed(&self) -> Option<(usize, usize)> {
        let run = self.run as isize;
        let row = self.axes.iter().position(|axis| axis.stride.to == run)?;
        let column = self.axes.iter().position(|axis| axis.stride.from == run)?;
        let long = self.axes[row].count >= 4 && self.axes[column].count >= 4;
        // The loops being ordered by their strides in the destination, the row's comes first.
        (self.distinct && row < column && long && matches!(run, 1 | 2 | 4 | 8 | 16 | 32))
            .then_some((row, column))
    }
}

/// A loop over one side.
#[derive(Clone, Copy)]
struct Level {
    count: u64,
    stride: i64,
}

/// The loops of a pattern, the bytes of its run being the innermost, without those of one iteration, folded.
fn levels(pattern: &Pattern) -> SmallVec<[Level; 8]> {
    let mut levels: SmallVec<[Level; 8]> = SmallVec::new();
    let loops = pattern.loops.iter().map(|l| Level {
        count: l.count,
        stride: l.stride,
    });
    for level in std::iter::once(Level {
        count: pattern.run,
        stride: 1,
    })
    .chain(loops)
    {
        match levels.last_mut() {
            _ if level.count == 1 => {}
            Some(inner)
                if i128::from(inner.count) * i128::from(inner.stride)
                    == i128::from(level.stride) =>
            {
                inner.count *= level.count;
            }
            _ => levels.push(level),
        }
    }
    levels
}

/// The loops of both patterns, cut into a common nest.
fn merge(from: &Pattern, to: &Pattern) -> Option<Axes> {
    let (mut sources, mut destinations) = (levels(from).into_iter(), levels(to).into_iter());
    let (mut source, mut destination) = (sources.next(), destinations.next());
    let mut axes = Axes::new();
    while let (Some(s), Some(d)) = (source, destination) {
        let count = s.count.min(d.count);
        if s.count % count != 0 || d.count % count != 0 {
            return None;
        }
        let stride = Stride {
            from: s.stride as isize,
            to: d.stride as isize,
        };
        axes.push(Axis {
            count: usize::try_from(count).ok()?,
            stride,
        });
        let rest = |level: Level| {
            (level.count > count).then(|| Level {
                count: level.count / count,
                stride: level.stride * count as i64,
            })
        };
        source = rest(s).or_else(|| sources.next());
        destination = rest(d).or_else(|| destinations.next());
    }
    Some(axes)
}

/// Calls `body` with the offsets of every iteration of `axes`, innermost first.
fn each(axes: &[Axis], mut body: impl FnMut(isize, isize)) {
    let mut index: SmallVec<[usize; 8]> = SmallVec::from_elem(0, axes.len());
    let (mut from, mut to) = (0, 0);
    loop {
        body(from, to);
        let mut level = 0;
        loop {
            let Some(axis) = axes.get(level) else { return };
            index[level] += 1;
            if index[level] < axis.count {
                from += axis.stride.from;
                to += axis.stride.to;
                break;
            }
            index[level] = 0;
            from -= axis.stride.from * (axis.count as isize - 1);
            to -= axis.stride.to * (axis.count as isize - 1);
            level += 1;
        }
    }
}
