//! A shared resource: its capacity divided equally among the transfers in flight.
//!
//! All transfers on one resource progress at the same rate, so one clock of *service* (bytes that every transfer has
//! received since the start) orders them all: a transfer of `n` bytes that arrives at service `v` leaves at `v + n`. An
//! arrival or departure changes only the rate of that clock. Cost: O(log transfers) for each, no allocation in the long run.

use chipless_model::{Resource, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Fractional bits of the service clock (bytes) and of the rate (bytes per picosecond). A clock of 64 bits with 20 of them
/// holds 16 TiB for each transfer; a rate with 40 keeps six digits down to a megabyte a second.
const SERVICE_FRACTION: u32 = 20;
const RATE_FRACTION: u32 = 40;

#[derive(Debug)]
pub(crate) struct Shared {
    capacity: f64,
    per_transfer: f64,
    /// Bytes served to each transfer since the start.
    service: u64,
    /// Bytes per picosecond for each transfer.
    rate: u64,
    updated: Time,
    /// Service at which transfers leave.
    leaving: BinaryHeap<Reverse<(u64, TaskId)>>,
    /// The earliest pending event: a departure may be due then, or not yet if transfers arrived in the meantime.
    announced: Option<Time>,
}

impl Shared {
    pub(crate) fn new(resource: &Resource) -> Shared {
        Shared {
            capacity: resource.capacity,
            per_transfer: resource.per_transfer,
            service: 0,
            rate: 1,
            updated: Time::ZERO,
            leaving: BinaryHeap::new(),
            announced: None,
        }
    }

    /// A transfer arrives.
    pub(crate) fn arrive(&mut self, transfer: TaskId, bytes: u64, now: Time) {
        if self.leaving.is_empty() {
            // Nothing was served, and the clock may have been set back.
            self.updated = now;
        }
        self.advance(now);
        let size = bytes.saturating_mul(1 << SERVICE_FRACTION);
        self.leaving
            .push(Reverse((self.service.saturating_add(size), transfer)));
        self.share();
    }

    /// Whether the event of this instant is the one that counts; departures are due then, if any.
    pub(crate) fn due(&mut self, now: Time) -> bool {
        self.announced.take_if(|at| *at == now).is_some()
    }

    /// A transfer that has been served by now.
    pub(crate) fn depart(&mut self, now: Time) -> Option<TaskId> {
        self.advance(now);
        let Reverse((service, transfer)) = *self.leaving.peek()?;
        if service > self.service {
            return None;
        }
        self.leaving.pop();
        if self.leaving.is_empty() {
            // Only differences count, so the clock starts again and never runs out.
            self.service = 0;
        }
        self.share();
        Some(transfer)
    }

    /// The instant of an event for the next departure, unless one is pending that comes no later.
    pub(crate) fn announce(&mut self) -> Option<Time> {
        let Reverse((service, _)) = self.leaving.peek()?;
        let left = service.saturating_sub(self.service);
        let wait = match left.checked_mul(1 << (RATE_FRACTION - SERVICE_FRACTION)) {
            Some(left) => left.div_ceil(self.rate),
            None => u64::try_from(
                (u128::from(left) << (RATE_FRACTION - SERVICE_FRACTION))
                    .div_ceil(u128::from(self.rate)),
            )
            .unwrap_or(u64::MAX),
        };
        let at = Time(self.updated.0.saturating_add(wait));
        if self.announced.is_some_and(|pending| pending <= at) {
            return None;
        }
        self.announced = Some(at);
        Some(at)
    }

    fn advance(&mut self, now: Time) {
        let passed = now - self.updated;
        let served =
            (u128::from(passed.0) * u128::from(self.rate)) >> (RATE_FRACTION - SERVICE_FRACTION);
        self.service = self
            .service
            .saturating_add(u64::try_from(served).unwrap_or(u64::MAX));
        self.updated = now;
    }

    fn share(&mut self) {
        let transfers = self.leaving.len().max(1) as f64;
        let bytes_per_second = self.per_transfer.min(self.capacity / transfers);
        self.rate =
            ((bytes_per_second * 1e-12 * (1u64 << RATE_FRACTION) as f64).round() as u64).max(1);
    }
}
