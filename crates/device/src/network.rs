//! Transfers in flight, and the rates that max-min fair sharing gives them.
//!
//! A transfer uses a share of each resource of its path: all of its bytes pass most, but those that the cache holds do not pass the
//! memory. Rates change when a transfer starts or ends. Until then all progress evenly, so the next end is known.

/// A resource of a path: its number, and the bytes of the transfer that pass it.
pub(crate) type Leg = (u8, u64);

#[derive(Debug)]
struct Flow<T> {
    owner: T,
    bytes: u64,
    left: f64,
    /// Bytes a picosecond.
    rate: f64,
    legs: Vec<Leg>,
}

/// Transfers that share resources.
#[derive(Debug)]
pub(crate) struct Network<T> {
    /// Bytes a picosecond of each resource.
    capacity: Vec<f64>,
    flows: Vec<Flow<T>>,
    updated: u64,
    next: Option<u64>,
    /// Bytes of the transfers that ended.
    carried: Vec<u64>,
}

/// A part of a picosecond that is none: what rounding leaves.
const NOTHING: f64 = 0.01;

impl<T: Copy> Network<T> {
    pub(crate) fn new(bytes_per_second: &[f64]) -> Network<T> {
        Network {
            capacity: bytes_per_second.iter().map(|rate| rate * 1e-12).collect(),
            flows: Vec::new(),
            updated: 0,
            next: None,
            carried: vec![0; bytes_per_second.len()],
        }
    }

    /// Bytes that each resource has carried.
    pub(crate) fn carried(&self) -> &[u64] {
        &self.carried
    }

    /// When the next transfer ends.
    pub(crate) const fn next(&self) -> Option<u64> {
        self.next
    }

    /// A transfer starts.
    pub(crate) fn start(&mut self, now: u64, owner: T, bytes: u64, legs: Vec<Leg>) {
        self.advance(now);
        self.flows.push(Flow {
            owner,
            bytes,
            left: bytes as f64,
            rate: 0.0,
            legs,
        });
        self.share();
    }

    /// Transfers that have ended by now, in the order of their starts.
    pub(crate) fn ended(&mut self, now: u64, ended: &mut Vec<T>) {
        if self.next != Some(now) {
            return;
        }
        self.advance(now);
        let carried = &mut self.carried;
        self.flows.retain(|flow| {
            let goes_on = flow.left > flow.rate * NOTHING;
            if !goes_on {
                ended.push(flow.owner);
                for (resource, bytes) in &flow.legs {
                    carried[*resource as usize] += bytes;
                }
            }
            goes_on
        });
        self.share();
    }

    /// Transfers of some owners are given up.
    pub(crate) fn cancel(&mut self, now: u64, is_over: impl Fn(&T) -> bool) {
        let before = self.flows.len();
        self.advance(now);
        self.flows.retain(|flow| !is_over(&flow.owner));
        if self.flows.len() != before {
            self.share();
        }
    }

    fn advance(&mut self, now: u64) {
        let passed = (now - self.updated) as f64;
        for flow in &mut self.flows {
            flow.left = (flow.left - flow.rate * passed).max(0.0);
        }
        self.updated = now;
    }

    /// Raises all rates together, and stops those that pass a resource that is full.
    fn share(&mut self) {
        let mut free = self.capacity.clone();
        for flow in &mut self.flows {
            flow.rate = f64::INFINITY;
        }
        let share_of = |flow: &Flow<T>, bytes: u64| {
            if flow.bytes == bytes {
                1.0
            } else {
                bytes as f64 / flow.bytes as f64
            }
        };
        let mut open = self.flows.len();
        let mut users = vec![0.0f64; free.len()];
        while open > 0 {
            users.fill(0.0);
            for flow in self.flows.iter().filter(|flow| flow.rate.is_infinite()) {
                for (resource, bytes) in &flow.legs {
                    users[*resource as usize] += share_of(flow, *bytes);
                }
            }
            let level = |resource: usize| free[resource] / users[resource];
            let Some(full) = (0..free.len())
                .filter(|resource| users[*resource] > 0.0)
                .min_by(|a, b| level(*a).total_cmp(&level(*b)))
            else {
                break;
            };
            let rate = level(full).max(0.0);
            for flow in &mut self.flows {
                let passes = |(resource, bytes): &Leg| *resource as usize == full && *bytes > 0;
                if flow.rate.is_infinite() && flow.legs.iter().any(passes) {
                    flow.rate = rate;
                    open -= 1;
                    for (resource, bytes) in &flow.legs {
                        let used = rate * share_of(flow, *bytes);
                        let free = &mut free[*resource as usize];
                        *free = (*free - used).max(0.0);
                    }
                }
            }
        }
        let ends = self.flows.iter().map(|flow| {
            let wait = if flow.rate.is_infinite() {
                0.0
            } else {
                (flow.left / flow.rate - NOTHING).ceil().max(0.0)
            };
            self.updated.saturating_add(wait as u64)
        });
        self.next = ends.min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends of transfers (start, bytes, path) on resources of so many bytes a second.
    fn ends(transfers: &[(u64, u64, &[u8])], rates: &[f64]) -> Vec<u64> {
        let mut network = Network::new(rates);
        let mut found = vec![0; transfers.len()];
        let mut waiting: Vec<usize> = (0..transfers.len()).collect();
        waiting.sort_by_key(|i| transfers[*i].0);
        loop {
            let start = waiting.first().map(|i| transfers[*i].0);
            let Some(now) = start.into_iter().chain(network.next()).min() else {
                return found;
            };
            let mut ended: Vec<usize> = Vec::new();
            network.ended(now, &mut ended);
            for i in &ended {
                found[*i] = now;
            }
            if start == Some(now) {
                let i = waiting.remove(0);
                let (_, bytes, path) = transfers[i];
                network.start(now, i, bytes, path.iter().map(|r| (*r, bytes)).collect());
            }
        }
    }

    const MB: u64 = 1_000_000;

    #[test]
    fn equal_transfers_take_twice_as_long() {
        assert_eq!(
            ends(&[(0, MB, &[0]), (0, MB, &[0])], &[10e9]),
            [200_000_000; 2]
        );
    }

    #[test]
    fn what_a_small_one_leaves_the_large_one_gets() {
        let found = ends(&[(0, MB, &[0]), (0, MB / 5, &[0])], &[10e9]);
        assert_eq!(found, [120_000_000, 40_000_000]);
    }

    #[test]
    fn three_over_two_links_are_max_min_fair() {
        // Link 1 gives 2 GB/s to each of its two; link 0 leaves 8 GB/s to the one that is its alone.
        let found = ends(
            &[(0, MB, &[0]), (0, MB, &[0, 1]), (0, MB, &[1])],
            &[10e9, 4e9],
        );
        assert_eq!(found, [125_000_000, 500_000_000, 500_000_000]);
    }

    #[test]
    fn bytes_that_do_not_pass_a_resource_do_not_load_it() {
        let mut network = Network::new(&[10e9, 1e9]);
        network.start(0, (), MB, vec![(0, MB), (1, MB / 10)]);
        assert_eq!(network.next(), Some(100_000_000));
        network.ended(100_000_000, &mut Vec::new());
        assert_eq!(network.carried(), [MB, MB / 10]);
    }
}
