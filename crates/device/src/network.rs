//! Transfers in flight, and the rates that max-min fair sharing gives them.
//!
//! A transfer uses a share of each resource of its path: all of its bytes pass most, but those that the cache holds do not pass the
//! memory. Rates change when a transfer starts or ends. Until then all progress evenly, so the next end is known.
//!
//! The transfer of a program of a file has a rate of its own, which the program's machine gives it: here it gets no more. As long as it
//! gets that, nothing slows it, and it ends when its program says so.
//!
//! The steady traffic of another agent on the chip never ends: it wants a rate, and gets what weighted sharing leaves to it.

/// A resource of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg {
    /// Its number.
    pub(crate) resource: u8,
    /// Bytes of the transfer that pass it.
    pub(crate) bytes: u64,
    /// What each of these takes of the resource.
    pub(crate) load: f64,
}

impl Leg {
    /// So many bytes.
    pub(crate) const fn of(resource: u8, bytes: u64) -> Leg {
        Leg {
            resource,
            bytes,
            load: 1.0,
        }
    }
}

/// What a transfer of so many bytes takes of a resource for each of them.
fn load(leg: &Leg, bytes: u64) -> f64 {
    match leg.bytes {
        0 => 0.0,
        passing if passing == bytes => leg.load,
        passing => leg.load * passing as f64 / bytes.max(1) as f64,
    }
}

/// The rate that a transfer has of its own: those of one group share it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own<G> {
    pub(crate) group: G,
    /// Bytes a second of one transfer, and of the whole group.
    pub(crate) each: f64,
    pub(crate) all: f64,
}

/// What a transfer claims of the resources that it passes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Claim<G> {
    /// As much as any other.
    Equal,
    /// No more than its own rate.
    Own(Own<G>),
    /// So many times as much as one of weight 1.
    Weight(f64),
    /// For ever, so many bytes a second at most, and a weight.
    Steady(f64, f64),
}

impl<G> Claim<G> {
    const fn weight(&self) -> f64 {
        match self {
            Claim::Equal | Claim::Own(_) => 1.0,
            Claim::Weight(weight) | Claim::Steady(_, weight) => *weight,
        }
    }
}

#[derive(Debug)]
struct Flow<T, G> {
    owner: T,
    bytes: u64,
    left: f64,
    /// Bytes a picosecond; none until sharing has come to it.
    rate: Option<f64>,
    legs: Vec<Leg>,
    claim: Claim<G>,
    /// Whether it ever got less than its own rate.
    is_slowed: bool,
}

/// Transfers that share resources.
#[derive(Debug)]
pub(crate) struct Network<T, G> {
    /// Bytes a picosecond of each resource.
    capacity: Vec<f64>,
    flows: Vec<Flow<T, G>>,
    updated: u64,
    next: Option<u64>,
    /// Bytes of the transfers that ended.
    pub(crate) carried: Vec<u64>,
    /// Bytes that each steady traffic, in the order of their starts, would have got more if nothing else had been on its way.
    pub(crate) withheld: Vec<f64>,
    /// What each gets while nothing else is, in bytes a picosecond.
    undisturbed: Vec<f64>,
}

/// A part of a picosecond that is none: what rounding leaves.
const NOTHING: f64 = 0.01;
/// A transfer that gets this part of its own rate is not slowed: figures have no more digits.
const WHOLE: f64 = 0.9999;

impl<T: Copy + PartialEq, G: Copy + PartialEq> Network<T, G> {
    pub(crate) fn new(bytes_per_second: &[f64]) -> Network<T, G> {
        Network {
            capacity: bytes_per_second.iter().map(|rate| rate * 1e-12).collect(),
            flows: Vec::new(),
            updated: 0,
            next: None,
            carried: vec![0; bytes_per_second.len()],
            withheld: Vec::new(),
            undisturbed: Vec::new(),
        }
    }

    /// Steady traffic is there from the start: its resources, the rate that it wants in bytes a second, and its weight.
    pub(crate) fn with_steady(mut self, owner: T, path: &[u8], rate: f64, weight: f64) -> Self {
        let legs = path.iter().map(|resource| Leg::of(*resource, 1)).collect();
        self.start(0, owner, 1, legs, Claim::Steady(rate, weight));
        self.withheld.push(0.0);
        self.undisturbed = self.steady().map(|flow| flow.rate.unwrap_or(0.0)).collect();
        self
    }

    fn steady(&self) -> impl Iterator<Item = &Flow<T, G>> {
        let is_steady = |flow: &&Flow<T, G>| matches!(flow.claim, Claim::Steady(..));
        self.flows.iter().filter(is_steady)
    }

    /// Bytes that each steady traffic has moved until an instant.
    pub(crate) fn moved(&self, until: u64) -> Vec<u64> {
        let rates = self.undisturbed.iter().zip(&self.withheld);
        rates
            .map(|(rate, withheld)| (rate * until as f64 - withheld).max(0.0) as u64)
            .collect()
    }

    /// Until when rates and bytes are counted.
    pub(crate) const fn updated(&self) -> u64 {
        self.updated
    }

    /// When the next transfer ends.
    pub(crate) const fn next(&self) -> Option<u64> {
        self.next
    }

    /// A transfer starts.
    pub(crate) fn start(
        &mut self,
        now: u64,
        owner: T,
        bytes: u64,
        legs: Vec<Leg>,
        claim: Claim<G>,
    ) {
        self.advance(now);
        self.flows.push(Flow {
            owner,
            bytes,
            left: match claim {
                Claim::Steady(..) => f64::INFINITY,
                _ => bytes as f64,
            },
            rate: None,
            legs,
            claim,
            is_slowed: false,
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
            let goes_on = flow
                .rate
                .is_some_and(|rate| flow.left > rate * NOTHING && rate.is_finite());
            if !goes_on {
                ended.push(flow.owner);
                carry(carried, flow);
            }
            goes_on
        });
        self.share();
    }

    /// A transfer ends because its program says so. `false` where it was slowed and is not at its end.
    pub(crate) fn finish(&mut self, now: u64, owner: T) -> bool {
        let Some(at) = self.flows.iter().position(|flow| flow.owner == owner) else {
            return true;
        };
        if self.flows[at].is_slowed {
            return false;
        }
        self.advance(now);
        let flow = self.flows.remove(at);
        carry(&mut self.carried, &flow);
        self.share();
        true
    }

    /// All transfers of an owner end.
    pub(crate) fn settle(&mut self, now: u64, owner: T) {
        while self.flows.iter().any(|flow| flow.owner == owner) && self.finish(now, owner) {}
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
        // Where nothing was on its way, the clock may be set back.
        let passed = now.saturating_sub(self.updated) as f64;
        for flow in &mut self.flows {
            let rate = flow.rate.unwrap_or(0.0);
            flow.left = (flow.left - rate * passed).max(0.0);
        }
        if !self.undisturbed.is_empty() && passed > 0.0 {
            let rates: Vec<f64> = self.steady().map(|flow| flow.rate.unwrap_or(0.0)).collect();
            let all = self.withheld.iter_mut().zip(&self.undisturbed).zip(rates);
            for ((withheld, undisturbed), rate) in all {
                *withheld += (undisturbed - rate) * passed;
            }
        }
        self.updated = now;
    }

    /// Raises all rates together, each by its weight, and stops those that pass a resource that is full, or have reached their own.
    fn share(&mut self) {
        let mut free = self.capacity.clone();
        let mut users = vec![0.0f64; free.len()];
        for flow in &mut self.flows {
            flow.rate = None;
        }
        loop {
            users.fill(0.0);
            let mut own = f64::INFINITY;
            let mut is_open = false;
            for flow in self.flows.iter().filter(|flow| flow.rate.is_none()) {
                is_open = true;
                own = own.min(self.own(flow) / flow.claim.weight());
                for leg in &flow.legs {
                    users[usize::from(leg.resource)] += load(leg, flow.bytes) * flow.claim.weight();
                }
            }
            if !is_open {
                break;
            }
            let level = |resource: usize| free[resource] / users[resource];
            let full = (0..free.len())
                .filter(|resource| users[*resource] > 0.0)
                .min_by(|a, b| level(*a).total_cmp(&level(*b)));
            let rate = full.map_or(f64::INFINITY, |full| level(full).max(0.0));
            let is_own = own <= rate || full.is_none();
            for at in 0..self.flows.len() {
                let flow = &self.flows[at];
                let weight = flow.claim.weight();
                let stops = if is_own {
                    self.own(flow) / weight <= own
                } else {
                    let passes =
                        |leg: &Leg| Some(usize::from(leg.resource)) == full && leg.bytes > 0;
                    flow.legs.iter().any(passes)
                };
                if flow.rate.is_some() || !stops {
                    continue;
                }
                let (rate, own) = (rate.min(own) * weight, self.own(flow));
                let flow = &mut self.flows[at];
                flow.rate = Some(rate);
                flow.is_slowed |= rate < own * WHOLE && own.is_finite();
                for leg in flow.legs.iter().filter(|_| rate.is_finite()) {
                    let free = &mut free[usize::from(leg.resource)];
                    *free = (*free - rate * load(leg, flow.bytes)).max(0.0);
                }
            }
        }
        let moving = self.flows.iter().filter(|flow| flow.left.is_finite());
        let ends = moving.map(|flow| {
            let rate = flow.rate.unwrap_or(f64::INFINITY);
            let wait = if rate.is_infinite() {
                0.0
            } else {
                (flow.left / rate - NOTHING).ceil().max(0.0)
            };
            self.updated.saturating_add(wait as u64)
        });
        self.next = ends.min();
    }

    /// The rate that a transfer has of its own, in bytes a picosecond.
    fn own(&self, flow: &Flow<T, G>) -> f64 {
        let own = match flow.claim {
            Claim::Equal | Claim::Weight(_) => return f64::INFINITY,
            Claim::Steady(rate, _) => return rate * 1e-12,
            Claim::Own(own) => own,
        };
        let is_of =
            |other: &&Flow<T, G>| matches!(other.claim, Claim::Own(o) if o.group == own.group);
        let group = self.flows.iter().filter(is_of).count();
        own.each.min(own.all / group as f64) * 1e-12
    }
}

fn carry<T, G>(carried: &mut [u64], flow: &Flow<T, G>) {
    for leg in &flow.legs {
        carried[leg.resource as usize] += leg.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends of transfers (start, bytes, path) on resources of so many bytes a second.
    fn ends(transfers: &[(u64, u64, &[u8])], rates: &[f64]) -> Vec<u64> {
        let mut network: Network<usize, ()> = Network::new(rates);
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
                let legs = path.iter().map(|r| Leg::of(*r, bytes)).collect();
                network.start(now, i, bytes, legs, Claim::Equal);
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
        let mut network: Network<(), ()> = Network::new(&[10e9, 1e9]);
        let legs = vec![Leg::of(0, MB), Leg::of(1, MB / 10)];
        network.start(0, (), MB, legs, Claim::Equal);
        assert_eq!(network.next(), Some(100_000_000));
        network.ended(100_000_000, &mut Vec::new());
        assert_eq!(network.carried, [MB, MB / 10]);
    }

    #[test]
    fn steady_traffic_gives_way_by_its_weight() {
        // Of 10 GB/s it wants 8: alone it gets them, beside one transfer half, with weight 3 three quarters.
        for (weight, left) in [(1.0, 5e9), (3.0, 2.5e9)] {
            let mut network: Network<u8, ()> =
                Network::new(&[10e9]).with_steady(0, &[0], 8e9, weight);
            assert_eq!(network.next(), None);
            network.start(MB, 1, MB, vec![Leg::of(0, MB)], Claim::Equal);
            let took = (MB as f64 / left * 1e12) as u64;
            assert_eq!(network.next(), Some(MB + took));
            network.ended(MB + took, &mut Vec::new());
            let (all, lost) = (8e9 * (MB + took) as f64, (left - 2e9) * took as f64);
            let moved = network.moved(MB + took)[0] as f64;
            assert!((moved - (all - lost) * 1e-12).abs() < 2.0, "{moved}");
        }
    }

    #[test]
    fn a_transfer_gets_no_more_than_its_own_rate_and_leaves_the_rest() {
        let mut network: Network<u8, u8> = Network::new(&[10e9]);
        let own = Own {
            group: 0,
            each: 2e9,
            all: 3e9,
        };
        network.start(0, 1, MB, vec![Leg::of(0, MB)], Claim::Own(own));
        network.start(0, 2, MB, vec![Leg::of(0, MB)], Claim::Own(own));
        network.start(0, 3, MB, vec![Leg::of(0, MB)], Claim::Equal);
        // The two share 3 GB/s of their own, which leaves 7 GB/s.
        assert_eq!(network.next(), Some(142_857_143));
        let mut ended = Vec::new();
        network.ended(142_857_143, &mut ended);
        assert_eq!(ended, [3]);
        // Nothing slows them, so their program says when they end.
        assert!(network.finish(200_000_000, 1));
        network.start(200_000_000, 4, MB, vec![Leg::of(0, 9 * MB)], Claim::Equal);
        assert!(!network.finish(300_000_000, 2));
    }
}
