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
