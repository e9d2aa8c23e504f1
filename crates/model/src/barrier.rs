//! A barrier while a program runs: the one place that says how it counts.

use crate::id::ConfigurationId;
use crate::sync::Configuration;
use index_vec::IndexVec;
use std::collections::VecDeque;
use std::fmt;

/// The configurations that a barrier holds, and what is left of the counts of the first, the active one. Semantics in the
/// [crate docs](crate#synchronisation). `C` is what stands for a configuration.
#[derive(Clone, Debug)]
pub struct Barrier<C = ConfigurationId> {
    held: VecDeque<Held<C>>,
    depth: Option<u32>,
}

#[derive(Clone, Debug)]
struct Held<C> {
    configuration: C,
    producers: u32,
    consumers: u32,
    /// Without consumers it stays when it is lit.
    retires: bool,
}

/// A signal that a barrier cannot take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierFault {
    /// It has no active configuration.
    Unconfigured,
    /// As many signals of this kind came as the active configuration expects.
    TooMany,
    /// Its FIFO is full.
    Overflow,
}

/// As it follows a verb: `signals barrier 3 while it has no configuration`.
impl fmt::Display for BarrierFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BarrierFault::Unconfigured => "while it has no configuration",
            BarrierFault::TooMany => "more often than its configuration says",
            BarrierFault::Overflow => "more configurations than its FIFO holds",
        })
    }
}

impl<C> Barrier<C> {
    /// Without a configuration; its FIFO holds `depth` of them besides the active one.
    pub const fn new(depth: Option<u32>) -> Barrier<C> {
        Barrier {
            held: VecDeque::new(),
            depth,
        }
    }

    /// The active configuration.
    pub fn active(&self) -> Option<&C> {
        self.held.front().map(|held| &held.configuration)
    }

    /// Producers and consumers that the active configuration still expects.
    pub fn left(&self) -> (u32, u32) {
        self.held
            .front()
            .map_or((0, 0), |held| (held.producers, held.consumers))
    }

    /// Whether waits for it hold.
    #[inline]
    pub fn is_lit(&self) -> bool {
        self.held.front().is_some_and(|held| held.producers == 0)
    }

    /// Counts a producer down.
    pub fn produce(&mut self) -> Result<(), BarrierFault> {
        self.count_down(|held| &mut held.producers)
    }

    /// Counts a consumer down.
    pub fn consume(&mut self) -> Result<(), BarrierFault> {
        self.count_down(|held| &mut held.consumers)
    }

    fn count_down(&mut self, count: fn(&mut Held<C>) -> &mut u32) -> Result<(), BarrierFault> {
        let held = self.held.front_mut().ok_or(BarrierFault::Unconfigured)?;
        let count = count(held);
        *count = count.checked_sub(1).ok_or(BarrierFault::TooMany)?;
        Ok(())
    }

    /// Gives it one more configuration, which is active at once if it has none.
    pub fn push(
        &mut self,
        configuration: C,
        producers: u32,
        consumers: u32,
    ) -> Result<(), BarrierFault> {
        self.held.push_back(Held {
            configuration,
            producers,
            consumers,
            retires: consumers > 0,
        });
        match self.depth {
            Some(depth) if self.held.len() > depth as usize + 1 => Err(BarrierFault::Overflow),
            _ => Ok(()),
        }
    }

    /// If the active configuration is used up, activates the next one and returns the one that retires.
    pub fn retire(&mut self) -> Option<C> {
        let held = self.held.front()?;
        if held.producers != 0 || held.consumers != 0 || !held.retires {
            return None;
        }
        Some(self.held.pop_front()?.configuration)
    }
}

impl Barrier {
    /// With these configurations from the start.
    pub fn preloaded(
        preloaded: &[ConfigurationId],
        depth: Option<u32>,
        configurations: &IndexVec<ConfigurationId, Configuration>,
    ) -> Barrier {
        let held = preloaded.iter().map(|id| {
            let configuration = &configurations[*id];
            Held {
                configuration: *id,
                producers: configuration.producers,
                consumers: configuration.consumers,
                retires: configuration.consumers > 0,
            }
        });
        Barrier {
            held: held.collect(),
            depth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_lit_by_its_producers_and_retired_by_its_consumers() {
        let mut barrier = Barrier::new(Some(1));
        assert_eq!(barrier.produce(), Err(BarrierFault::Unconfigured));
        assert_eq!(barrier.push('a', 1, 1), Ok(()));
        assert_eq!(barrier.push('b', 0, 0), Ok(()));
        assert!(!barrier.is_lit());
        assert_eq!(barrier.produce(), Ok(()));
        assert_eq!(barrier.produce(), Err(BarrierFault::TooMany));
        assert!(barrier.is_lit());
        assert_eq!(barrier.retire(), None, "a consumer is left");
        assert_eq!(barrier.consume(), Ok(()));
        assert_eq!(barrier.retire(), Some('a'));
        assert_eq!((barrier.active(), barrier.is_lit()), (Some(&'b'), true));
        assert_eq!(barrier.retire(), None, "it has no consumers: it stays");
        assert_eq!(barrier.push('c', 1, 1), Ok(()));
        assert_eq!(barrier.push('d', 1, 1), Err(BarrierFault::Overflow));
    }
}
