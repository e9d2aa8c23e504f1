//! What SHAVEs wait for the code of their kernels.
//!
//! SHAVEs run code from DDR through an instruction cache of each and a cache that all of them share. Kernels are kept whole, the least recently
//! used out first; the SHAVEs of a tile count as one. A kernel that a cache has no room for passes it each time.

use crate::address::TILES;
use crate::bytes::Record;
use crate::machine::CodeFigures;
use crate::schedule::{Description, Schedule};
use crate::structures::Layout;
use chipless_model::Time;
use std::collections::VecDeque;

/// Address and size of a kernel's code.
type Code = (u64, u64);

/// A cache of kernels, the most recently used last.
#[derive(Debug)]
struct Cache {
    room: u64,
    held: VecDeque<Code>,
}

impl Cache {
    fn of(room: u64) -> Cache {
        Cache {
            room,
            held: VecDeque::new(),
        }
    }

    /// Whether it holds a kernel; afterwards it does, where it has room.
    fn touch(&mut self, code: Code) -> bool {
        let at = self.held.iter().position(|held| *held == code);
        if let Some(at) = at {
            self.held.remove(at);
        }
        if code.1 <= self.room {
            self.held.push_back(code);
        }
        while self.held.iter().map(|(_, size)| size).sum::<u64>() > self.room {
            self.held.pop_front();
        }
        at.is_some()
    }
}

/// By the number of each task in the walk, what it waits for code. Empty where kernels are warm.
pub(super) fn waits<'b>(
    schedule: &Schedule,
    layout: Layout,
    figures: &CodeFigures,
    bytes: impl Fn(&Description) -> Option<(u8, &'b [u8])>,
) -> Vec<Time> {
    if !figures.cold {
        return Vec::new();
    }
    let mut own: Vec<Cache> = (0..TILES).map(|_| Cache::of(figures.l1 as u64)).collect();
    let mut shared = Cache::of((figures.l2 / figures.l2_partitions) as u64);
    let wait = |description: &Description| {
        let Some((tile, range)) = bytes(description) else {
            return Time::ZERO;
        };
        let record = Record(range);
        if record.u8(0) != 0 {
            return Time::ZERO;
        }
        let code = match layout {
            Layout::Npu3720 => (u64::from(record.u32(8)), u64::from(record.u32(12))),
            Layout::Npu4000 => (record.u64(16), u64::from(record.u32(24))),
        };
        if own[usize::from(tile)].touch(code) {
            return Time::ZERO;
        }
        let ns = |rate: f64| code.1 as f64 / rate * 1e9;
        if !figures.l2_bypass && shared.touch(code) {
            return Time::from_ns(ns(figures.l2_bytes_per_second));
        }
        Time::from_ns(figures.latency + ns(figures.ddr_bytes_per_second))
    };
    let descriptions = schedule.tasks.iter().map(|task| &task.description);
    descriptions.map(wait).collect()
}

#[cfg(test)]
mod tests {
    use super::{Description, Schedule, waits};
    use crate::machine::{CodeFigures, Machine};
    use crate::schedule::{Fetched, Slice, Task};
    use crate::structures::Layout;
    use chipless_model::Time;

    /// Waits of invocations of kernels: tile, address and bytes of the code of each.
    fn waits_of(runs: &[(u8, u64, u32)], figures: &CodeFigures) -> Vec<u64> {
        let ranges: Vec<(u8, Vec<u8>)> = runs
            .iter()
            .map(|(tile, text, size)| {
                let mut range = vec![0; 40];
                range[16..24].copy_from_slice(&text.to_le_bytes());
                range[24..28].copy_from_slice(&size.to_le_bytes());
                (*tile, range)
            })
            .collect();
        let fetched = |n: usize| Fetched {
            from: Slice {
                section: n,
                offset: 0,
                size: 40,
            },
            offset: None,
        };
        let tasks = runs.iter().enumerate().map(|(n, (tile, ..))| {
            let description = Description::Shave {
                tile: *tile,
                invocation: fetched(n),
                range: fetched(n),
            };
            Task::new(description, 0, 0)
        });
        let schedule = Schedule {
            tasks: tasks.collect(),
            ..Schedule::default()
        };
        let bytes = |task: &Description| match task {
            Description::Shave { range, .. } => {
                let (tile, range) = &ranges[range.from.section];
                Some((*tile, &**range))
            }
            _ => None,
        };
        let found = waits(&schedule, Layout::Npu4000, figures, bytes);
        found
            .into_iter()
            .map(Time::ns)
            .map(|ns| ns as u64)
            .collect()
    }

    #[test]
    fn kernels_wait_for_their_code_once_where_caches_hold_it() {
        // A byte a nanosecond from DDR after 100 ns, ten from the shared cache.
        let figures = CodeFigures {
            cold: true,
            l1: 1000.0,
            l2: 4000.0,
            l2_partitions: 1.0,
            l2_bypass: false,
            l2_bytes_per_second: 10e9,
            latency: 100.0,
            ddr_bytes_per_second: 1e9,
        };
        let (a, b, c) = (0x1000, 0x2000, 0x3000);
        let runs = [
            (0, a, 600),
            (0, a, 600),
            (1, a, 600),
            (0, b, 500),
            (0, a, 600),
            (0, c, 3000),
            (0, c, 3000),
        ];
        // Cold, warm, from the shared cache on another tile; b puts a out of the first cache, but not out of the second. c has no room in
        // the first.
        assert_eq!(waits_of(&runs, &figures), [700, 0, 60, 600, 60, 3100, 300]);
        let bypass = CodeFigures {
            l2_bypass: true,
            ..figures
        };
        assert_eq!(
            waits_of(&runs, &bypass),
            [700, 0, 700, 600, 700, 3100, 3100]
        );
        // A quarter of the shared cache holds one of a and b.
        let parted = CodeFigures {
            l2_partitions: 4.0,
            ..figures
        };
        assert_eq!(waits_of(&runs[..5], &parted), [700, 0, 60, 600, 700]);
        let warm = Machine::default().shave.code;
        assert_eq!(waits_of(&runs, &warm), Vec::<u64>::new());
    }
}
