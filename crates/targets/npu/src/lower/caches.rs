//! What SHAVEs wait for code, and for data that is not in the CMX of their tile.
//!
//! SHAVEs run code from DDR through an instruction cache of each, and read DDR and the CMX of other tiles through a data cache of each. What comes
//! from DDR passes a cache that all of them share, unless that is bypassed (notes on VPU4). All caches hold lines, the least recently used out
//! first, whatever their sets; the SHAVEs of a tile count as one, and kernels come in the order in which the program names them. Where the shared
//! cache is divided, code has one part and data another. What a kernel writes stays in the caches and is not waited for (assumed).

use super::Lowering;
use crate::bytes::Record;
use crate::machine::{CodeFigures, DataFigures};
use crate::schedule::{Description, Fetched, Schedule};
use crate::structures::Layout;
use chipless_model::{Access, Direction, MemoryId, MemoryKind, TaskId, Time};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// Bytes of a line (assumed).
const LINE: u64 = 64;

/// A line: its memory, and its number there.
type Line = (MemoryId, u64);

/// A cache of lines.
#[derive(Debug)]
struct Cache {
    /// Lines that it holds at most.
    room: usize,
    /// When each was touched last.
    held: HashMap<Line, u64>,
    /// Lines in the order of their touches. Those that were touched again later stand for nothing.
    order: VecDeque<(Line, u64)>,
    clock: u64,
}

impl Cache {
    fn of(bytes: f64) -> Cache {
        Cache {
            room: (bytes as u64 / LINE) as usize,
            held: HashMap::new(),
            order: VecDeque::new(),
            clock: 0,
        }
    }

    /// Whether it holds a line; afterwards it does.
    fn touch(&mut self, line: Line) -> bool {
        self.clock += 1;
        let is_there = self.held.insert(line, self.clock).is_some();
        self.order.push_back((line, self.clock));
        while self.held.len() > self.room {
            let Some((oldest, at)) = self.order.pop_front() else {
                break;
            };
            if self.held.get(&oldest) == Some(&at) {
                self.held.remove(&oldest);
            }
        }
        if self.order.len() > 2 * self.held.len() + 1024 {
            let held = &self.held;
            self.order.retain(|(line, at)| held.get(line) == Some(at));
        }
        is_there
    }

    fn clear(&mut self) {
        self.held.clear();
        self.order.clear();
    }
}

/// Bytes that a kernel touches outside of its tile.
#[derive(Clone, Debug, PartialEq)]
struct Touched {
    memory: MemoryId,
    bytes: Range<u64>,
    is_read: bool,
    /// In DDR, rather than in CMX.
    in_ddr: bool,
}

/// Lines that a kernel waits for, by where they are.
#[derive(Clone, Copy, Debug, Default)]
struct Missed {
    shared: u64,
    ddr: u64,
    cmx: u64,
}

/// The caches of all SHAVEs.
struct Caches<'m> {
    code: &'m CodeFigures,
    data: &'m DataFigures,
    own_code: Vec<Cache>,
    own_data: Vec<Cache>,
    /// What all share: one cache, or parts, of which code has the first and data the second.
    shared: [Cache; 2],
}

impl<'m> Caches<'m> {
    fn of(code: &'m CodeFigures, data: &'m DataFigures, tiles: usize) -> Caches<'m> {
        let part = || Cache::of(code.l2 / code.l2_partitions);
        Caches {
            code,
            data,
            own_code: (0..tiles).map(|_| Cache::of(code.l1)).collect(),
            own_data: (0..tiles).map(|_| Cache::of(data.l1)).collect(),
            shared: [part(), part()],
        }
    }

    /// What a kernel waits for its code.
    fn code(&mut self, tile: usize, code: &Touched) -> Time {
        let figures = self.code;
        let Some(own) = self.own_code.get_mut(tile).filter(|_| figures.cold) else {
            return Time::ZERO;
        };
        let shared = (!figures.l2_bypass).then_some(&mut self.shared[0]);
        let missed = missed(own, shared, std::slice::from_ref(code));
        waits(
            missed,
            figures.l2_bytes_per_second,
            (figures.latency, figures.ddr_bytes_per_second),
            f64::INFINITY,
        )
    }

    /// What a kernel waits for its data.
    fn data(&mut self, tile: usize, touched: &[Touched]) -> Time {
        let figures = self.data;
        let Some(own) = self.own_data.get_mut(tile).filter(|_| figures.cold) else {
            return Time::ZERO;
        };
        let part = usize::from(self.code.l2_partitions > 1.0);
        let shared = (!figures.l2_bypass).then_some(&mut self.shared[part]);
        let missed = missed(own, shared, touched);
        waits(
            missed,
            figures.l2_bytes_per_second,
            (figures.latency, figures.ddr_bytes_per_second),
            figures.cmx_bytes_per_second,
        )
    }

    /// A task of the program that invalidates the caches of its tile, and the part of the shared one that holds data.
    fn invalidate(&mut self, tile: usize) {
        if let Some(own) = self.own_data.get_mut(tile) {
            own.clear();
        }
        self.shared[usize::from(self.code.l2_partitions > 1.0)].clear();
    }
}

/// Lines that the caches do not hold; afterwards they do.
fn missed(own: &mut Cache, mut shared: Option<&mut Cache>, touched: &[Touched]) -> Missed {
    let mut missed = Missed::default();
    for touched in touched {
        let lines = touched.bytes.start / LINE..touched.bytes.end.div_ceil(LINE);
        for line in lines.map(|number| (touched.memory, number)) {
            if own.touch(line) {
                continue;
            }
            let counts = u64::from(touched.is_read);
            if !touched.in_ddr {
                missed.cmx += counts;
            } else if shared.as_mut().is_some_and(|shared| shared.touch(line)) {
                missed.shared += counts;
            } else {
                missed.ddr += counts;
            }
        }
    }
    missed
}

/// What these lines take: from the shared cache, from DDR after its latency, from the CMX of others.
fn waits(missed: Missed, shared: f64, (latency, ddr): (f64, f64), cmx: f64) -> Time {
    let ns = |lines: u64, rate: f64| (lines * LINE) as f64 / rate * 1e9;
    let latency = if missed.ddr > 0 { latency } else { 0.0 };
    Time::from_ns(latency + ns(missed.shared, shared) + ns(missed.ddr, ddr) + ns(missed.cmx, cmx))
}

impl Lowering<'_, '_> {
    /// Adds to the tasks of the SHAVEs what they wait for code and data, where the machine has cold caches.
    pub(super) fn caches(&mut self, schedule: &Schedule) {
        let figures = &self.options.machine.shave;
        if !figures.code.cold && !figures.data.cold {
            return;
        }
        let tiles = usize::from(self.generation.tiles);
        let mut caches = Caches::of(&figures.code, &figures.data, tiles);
        for (task, id) in schedule.tasks.iter().zip(&self.ids) {
            let (Description::Shave { tile, range, .. }, Some(id)) = (&task.description, id) else {
                continue;
            };
            let (number, kind) = (usize::from(*tile), Record(self.bytes(range.from)).u8(0));
            let wait = match kind {
                0 => {
                    let code = self.code_of(range);
                    let touched = self.touched(*tile, *id);
                    caches.code(number, &code) + caches.data(number, &touched)
                }
                // Invalidate, flush and invalidate.
                6 | 7 => {
                    caches.invalidate(number);
                    Time::ZERO
                }
                _ => Time::ZERO,
            };
            self.build.program.tasks[*id].fixed += wait;
        }
    }

    /// Where the code of a kernel stands.
    fn code_of(&self, range: &Fetched) -> Touched {
        let record = Record(self.bytes(range.from));
        let (start, size) = match self.generation.layout {
            Layout::Npu3720 => (u64::from(record.u32(8)), u64::from(record.u32(12))),
            Layout::Npu4000 => (record.u64(16), u64::from(record.u32(24))),
        };
        Touched {
            memory: MemoryId::from_raw(0),
            bytes: start..start.saturating_add(size),
            is_read: true,
            in_ddr: true,
        }
    }

    /// What a task touches outside of its tile, but for its own description.
    fn touched(&self, tile: u8, id: TaskId) -> Vec<Touched> {
        let program = &self.build.program;
        let mut found = Vec::new();
        program.kernels[program.tasks[id].kernel].accesses(&mut |access| {
            let buffer = &program.buffers[access.buffer];
            let in_ddr = program.memories[buffer.memory].kind == MemoryKind::Dram;
            let is_own = self.cmx.buffer(tile) == Some(access.buffer);
            let fits = access.pattern.fits(buffer.size);
            if (!in_ddr && is_own) || !fits || access.tensor == Access::DESCRIPTION {
                return;
            }
            // Tiles that are one memory lie one behind the other.
            let slice = self.generation.cmx_size * u64::from(tile);
            let slice = slice..slice + self.generation.cmx_size;
            let base = buffer.address.unwrap_or(0);
            for run in access.pattern.runs() {
                let bytes = base + run..base + run + access.pattern.run;
                let one_memory = !in_ddr && self.generation.runtime_symbols;
                if !(one_memory && slice.contains(&bytes.start)) {
                    found.push(Touched {
                        memory: buffer.memory,
                        bytes,
                        is_read: access.direction == Direction::Read,
                        in_ddr,
                    });
                }
            }
        });
        found
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "times are whole picoseconds")]
mod tests {
    use super::{Caches, Touched};
    use crate::machine::{CodeFigures, DataFigures, Machine};
    use chipless_model::{MemoryId, Time};

    const DDR: u32 = 0;

    /// A byte a nanosecond from DDR after 100 ns, ten from the shared cache, two from CMX. Own caches of 16 lines, a shared one of 64.
    fn figures() -> (CodeFigures, DataFigures) {
        let code = CodeFigures {
            cold: true,
            l1: 1024.0,
            l2: 4096.0,
            l2_partitions: 1.0,
            l2_bypass: false,
            l2_bytes_per_second: 10e9,
            latency: 100.0,
            ddr_bytes_per_second: 1e9,
        };
        let data = DataFigures {
            cold: true,
            l1: 1024.0,
            l2_bypass: false,
            l2_bytes_per_second: 10e9,
            latency: 100.0,
            ddr_bytes_per_second: 1e9,
            cmx_bytes_per_second: 2e9,
        };
        (code, data)
    }

    fn at(memory: u32, start: u64, size: u64, is_read: bool) -> Touched {
        Touched {
            memory: MemoryId::from_raw(memory),
            bytes: start..start + size,
            is_read,
            in_ddr: memory == DDR,
        }
    }

    fn ns(time: Time) -> f64 {
        time.ns()
    }

    #[test]
    fn kernels_wait_for_their_code_once_where_caches_hold_it() {
        let (a, b, c) = ((0x1000, 640), (0x2000, 512), (0x3000, 3008));
        let runs = [(0, a), (0, a), (1, a), (0, b), (0, a), (0, c), (0, c)];
        let waits_of = |code: &CodeFigures| -> Vec<f64> {
            let data = figures().1;
            let mut caches = Caches::of(code, &data, 2);
            let wait = |(tile, (start, size))| ns(caches.code(tile, &at(DDR, start, size, true)));
            runs.map(wait).to_vec()
        };
        let (code, _) = figures();
        // Cold, warm, from the shared cache on another tile; b puts a out of the first cache, but not out of the second. c is larger than the
        // first: of the 47 lines none is left when it begins again.
        assert_eq!(
            waits_of(&code),
            [740.0, 0.0, 64.0, 612.0, 64.0, 3108.0, 300.8]
        );
        let bypass = CodeFigures {
            l2_bypass: true,
            ..code
        };
        assert_eq!(
            waits_of(&bypass),
            [740.0, 0.0, 740.0, 612.0, 740.0, 3108.0, 3108.0]
        );
        // A quarter of the shared cache holds 16 lines: b puts a out of it, too.
        let parted = CodeFigures {
            l2_partitions: 4.0,
            ..code
        };
        assert_eq!(waits_of(&parted)[..5], [740.0, 0.0, 64.0, 612.0, 740.0]);
        let warm = Machine::default().shave.code;
        assert_eq!(waits_of(&warm), [0.0; 7]);
    }

    #[test]
    fn kernels_wait_for_data_outside_of_their_tile() {
        let (code, data) = figures();
        let mut caches = Caches::of(&code, &data, 2);
        let mut wait = |tile, touched: &[Touched]| ns(caches.data(tile, touched));
        let table = at(DDR, 0, 640, true);
        // Ten lines: cold, warm, on another tile from the shared cache.
        assert_eq!(wait(0, std::slice::from_ref(&table)), 740.0);
        assert_eq!(wait(0, std::slice::from_ref(&table)), 0.0);
        assert_eq!(wait(1, std::slice::from_ref(&table)), 64.0);
        // Half of it with half of what is new: five lines from DDR.
        assert_eq!(wait(0, &[at(DDR, 320, 640, true)]), 420.0);
        // Of CMX of another tile ten lines, which the shared cache does not hold.
        assert_eq!(wait(0, &[at(2, 0, 640, true)]), 320.0);
        assert_eq!(wait(1, &[at(2, 0, 640, true)]), 320.0);
        // What was written is not waited for, and is there for who reads it.
        assert_eq!(wait(0, &[at(DDR, 0x8000, 640, false)]), 0.0);
        assert_eq!(wait(0, &[at(DDR, 0x8000, 640, true)]), 0.0);
        assert_eq!(wait(1, &[at(DDR, 0x8000, 640, true)]), 64.0);
    }

    #[test]
    fn code_and_data_share_the_common_cache_unless_it_is_divided() {
        let (code, data) = figures();
        let long = at(DDR, 0x10_0000, 4096, true);
        let kernel = at(DDR, 0x1000, 640, true);
        let again = |code: &CodeFigures, data: &DataFigures| {
            let mut caches = Caches::of(code, data, 2);
            caches.code(0, &kernel);
            caches.data(0, std::slice::from_ref(&long));
            ns(caches.code(1, &kernel))
        };
        // 64 lines of data put the kernel out of 64 lines.
        assert_eq!(again(&code, &data), 740.0);
        let divided = CodeFigures {
            l2_partitions: 2.0,
            ..code
        };
        assert_eq!(again(&divided, &data), 64.0);
        let bypass = DataFigures {
            l2_bypass: true,
            ..data
        };
        assert_eq!(again(&code, &bypass), 64.0);
    }

    #[test]
    fn an_invalidation_makes_data_cold_again() {
        let (code, data) = figures();
        let mut caches = Caches::of(&code, &data, 2);
        let table = [at(DDR, 0, 640, true)];
        caches.data(0, &table);
        caches.invalidate(0);
        assert_eq!(ns(caches.data(0, &table)), 740.0);
    }
}
