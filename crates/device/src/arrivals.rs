//! When the jobs of a stream come.

use crate::workload::{ArrivalKind, Arrivals};
use chipless_model::SplitMix64;

/// The arrivals of one stream, one after another.
#[derive(Debug)]
pub(crate) struct Source {
    arrivals: Arrivals,
    /// Arrivals happen before it.
    end: u64,
    made: u64,
    random: SplitMix64,
    /// Of Poisson arrivals, the last one.
    last: f64,
}

/// An arrival, or the instant at which one is drawn that comes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) at: u64,
    /// Which job of the stream.
    pub(crate) index: u64,
    /// How much later it comes.
    pub(crate) delay: u64,
    pub(crate) link: Link,
}

/// Where a job stands in a chain of jobs that follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link {
    /// Turns of the chain until it.
    pub(crate) turn: u64,
    /// When the job came that began the chain; `None`: this one does.
    pub(crate) began: Option<u64>,
    /// When the last turn was done.
    pub(crate) last: Option<u64>,
}

impl Source {
    pub(crate) fn new(
        arrivals: &Arrivals,
        duration: Option<u64>,
        seed: u64,
        stream: usize,
    ) -> Source {
        let mut mixed = SplitMix64(seed);
        let base = mixed.number();
        Source {
            arrivals: arrivals.clone(),
            end: duration.unwrap_or(u64::MAX),
            made: 0,
            random: SplitMix64(base ^ (stream as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            last: 0.0,
        }
    }

    /// The next arrival of a stream that does not wait for its jobs; `None` where there is none any more.
    pub(crate) fn next(&mut self) -> Option<Arrival> {
        self.draw()
    }

    /// The first jobs of a stream that keeps so many in flight.
    pub(crate) fn first(&mut self) -> u64 {
        match self.arrivals.kind {
            ArrivalKind::InFlight(jobs) => jobs,
            _ => 0,
        }
    }

    /// Another job of such a stream, because one has ended at an instant.
    pub(crate) fn follow(&mut self, at: u64) -> Option<Arrival> {
        if !matches!(self.arrivals.kind, ArrivalKind::InFlight(_)) {
            return None;
        }
        self.take(at.max(self.arrivals.offset), 0)
    }

    /// The job of a stream that follows another's, which is done at an instant.
    pub(crate) fn behind(&mut self, at: u64, link: Link) -> Option<Arrival> {
        let ArrivalKind::After { turns, .. } = self.arrivals.kind else {
            return None;
        };
        let turn = link.turn + u64::from(turns.is_some());
        if turns.is_some_and(|turns| turn > turns) {
            return None;
        }
        let arrival = self.take(at, 0)?;
        let link = Link { turn, ..link };
        Some(Arrival { link, ..arrival })
    }

    fn take(&mut self, at: u64, delay: u64) -> Option<Arrival> {
        let index = self.made;
        if at >= self.end || self.arrivals.count.is_some_and(|count| index >= count) {
            return None;
        }
        self.made += 1;
        Some(Arrival {
            at,
            index,
            delay,
            link: Link::default(),
        })
    }

    /// A number in (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.random.number() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn draw(&mut self) -> Option<Arrival> {
        let (index, offset) = (self.made, self.arrivals.offset);
        match &self.arrivals.kind {
            ArrivalKind::Every { period, jitter } => {
                let (period, jitter) = (*period, *jitter);
                loop {
                    let base = self.made.checked_mul(period)?.checked_add(offset)?;
                    let delay = if jitter == 0 {
                        0
                    } else {
                        ((u128::from(self.random.number()) * u128::from(jitter)) >> 64) as u64
                    };
                    if base < self.end && base.saturating_add(delay) >= self.end {
                        self.made += 1;
                        continue;
                    }
                    return self.take(base, delay);
                }
            }
            ArrivalKind::Poisson(rate) => {
                let mean = 1e12 / rate;
                self.last += -self.unit().ln() * mean;
                let at = offset as f64 + self.last;
                if at >= u64::MAX as f64 {
                    return None;
                }
                self.take(at as u64, 0)
            }
            ArrivalKind::At(times) => {
                let at = times
                    .get(usize::try_from(index).ok()?)?
                    .checked_add(offset)?;
                self.take(at, 0)
            }
            ArrivalKind::InFlight(_) | ArrivalKind::After { .. } => None,
        }
    }
}

impl Source {
    /// Whether arrivals come later than they are drawn.
    pub(crate) const fn has_jitter(&self) -> bool {
        matches!(self.arrivals.kind, ArrivalKind::Every { jitter, .. } if jitter > 0)
    }
}

/// The most jobs that come within any time of this length, both ends included; `None` where nothing says.
pub(crate) fn most_in(arrivals: &Arrivals, length: u64) -> Option<u64> {
    let most = match &arrivals.kind {
        ArrivalKind::Every { period, jitter } => {
            let length = length.saturating_add(*jitter);
            Some(length / (*period).max(1) + 1)
        }
        ArrivalKind::At(times) => {
            let within = |(n, from): (usize, &u64)| {
                let to = from.saturating_add(length);
                (times[n..].partition_point(|at| *at <= to)) as u64
            };
            times.iter().enumerate().map(within).max()
        }
        ArrivalKind::Poisson(_) | ArrivalKind::InFlight(_) | ArrivalKind::After { .. } => {
            arrivals.count
        }
    };
    most.map(|most| most.min(arrivals.count.unwrap_or(u64::MAX)))
}
