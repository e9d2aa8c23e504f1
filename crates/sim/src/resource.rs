//! A shared resource: its capacity divided equally among the transfers in flight.
//!
//! All transfers on one resource progress at the same rate, so one clock of *service* (bytes that every transfer has
//! received since the start) orders them all: a transfer of `n` bytes that arrives at service `v` leaves at `v + n`. An
//! arrival or departure changes only the rate of that clock. Cost: O(log transfers) for each, no allocation in the long run.

use chipless_model::{Resource, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Fractional bits of the service clock: rates down to a byte a second keep nine digits.
const FRACTION: u32 = 40;

#[derive(Debug)]
pub(crate) struct Shared {
    capacity: f64,
    per_transfer: f64,
    /// Bytes served to each transfer since the start, times 2^FRACTION.
    service: u128,
    /// Bytes per picosecond for each transfer, times 2^FRACTION.
    rate: u64,
    updated: Time,
    /// Service at which transfers leave.
    leaving: BinaryHeap<Reverse<(u128, TaskId)>>,
    /// The instant of the event that was announced for the next departure.
    announced: Option<Time>,
}

impl Shared {
    pub(crate) fn new(resource: &Resource) -> Shared {
        Shared {
            capacity: resource.capacity,
            per_transfer: resource.per_transfer,
            service: 0,
            rate: 0,
            updated: Time::ZERO,
            leaving: BinaryHeap::new(),
            announced: None,
        }
    }

    /// A transfer arrives.
    pub(crate) fn arrive(&mut self, task: TaskId, bytes: u64, now: Time) {
        self.advance(now);
        self.leaving.push(Reverse((self.service + (u128::from(bytes) << FRACTION), task)));
        self.share();
    }

    /// Whether the event of this instant is the one announced last; if so it is due now.
    pub(crate) fn due(&mut self, now: Time) -> bool {
        self.announced.take_if(|at| *at == now).is_some()
    }

    /// A transfer that has been served by now.
    pub(crate) fn depart(&mut self, now: Time) -> Option<TaskId> {
        self.advance(now);
        let Reverse((service, task)) = *self.leaving.peek()?;
        if service > self.service {
            return None;
        }
        self.leaving.pop();
        self.share();
        Some(task)
    }

    /// The instant of the next departure, if it differs from the one announced before.
    pub(crate) fn announce(&mut self) -> Option<Time> {
        let Reverse((service, _)) = self.leaving.peek()?;
        let wait = service.saturating_sub(self.service).div_ceil(u128::from(self.rate));
        let at = Time(self.updated.0.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX)));
        if self.announced == Some(at) {
            return None;
        }
        self.announced = Some(at);
        Some(at)
    }

    fn advance(&mut self, now: Time) {
        let passed = now - self.updated;
        self.service += u128::from(passed.0) * u128::from(self.rate);
        self.updated = now;
    }

    fn share(&mut self) {
        let transfers = self.leaving.len().max(1) as f64;
        let bytes_per_second = self.per_transfer.min(self.capacity / transfers);
        self.rate = ((bytes_per_second * 1e-12 * (1u64 << FRACTION) as f64).round() as u64).max(1);
    }
}
