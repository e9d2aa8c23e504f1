//! The memory path: pages, the cache, and the resources between the tiles and the memory, which all transfers share.

use crate::agents::{Agent, Traffic};
use crate::cache::{Cache, CacheCounts, Tally};
use crate::figures::{CACHE, DDR, Figures, GROUPS, NETWORK};
use crate::mmu::{LookUp, Map, Mmu, Space, TlbCounts, Unmapped};
use crate::network::{Claim, Leg, Network, Own};
use crate::owner::Owner;
use crate::programs::FileProgram;
use chipless_model::{Demand, TaskId, Time};
use chipless_sim::{InstanceId, Outside};
use std::collections::BTreeMap;

pub(crate) struct Memory {
    pub(crate) mmu: Option<Mmu>,
    pub(crate) cache: Option<Cache>,
    pub(crate) network: Network<Owner, InstanceId>,
}

/// What is counted on the memory path.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    tlb: TlbCounts,
    cache: Tally,
    carried: Vec<u64>,
    withheld: Vec<f64>,
}

impl Memory {
    pub(crate) fn new(figures: &Figures, agents: &[Agent]) -> Memory {
        let mut network = Network::new(&figures.bandwidth);
        for (number, agent) in agents.iter().enumerate() {
            if let (Traffic::Steady, Some(rate)) = (&agent.traffic, figures.agent_rate(agent)) {
                let owner = Owner::Agent(number);
                network =
                    network.with_steady(owner, &agent.path, rate, figures.agent_weight(agent));
            }
        }
        Memory {
            mmu: figures.mmu_enabled.then(|| Mmu::new(figures)),
            cache: figures.cache_enabled.then(|| Cache::new(figures)),
            network,
        }
    }

    /// The pages of ranges are looked up for a transfer of such a rate, in bytes a second. Returns when it begins.
    pub(crate) fn look_up(
        &mut self,
        now: u64,
        space: Space<'_>,
        rate: f64,
        passes_memory: bool,
        ranges: impl FnOnce(&mut dyn FnMut(u64, u64)),
    ) -> Result<u64, Unmapped> {
        let Some(mmu) = &mut self.mmu else {
            return Ok(now);
        };
        let (cache, mut look_up) = (&mut self.cache, LookUp::at(now, rate));
        let mut found = Ok(());
        ranges(&mut |start, bytes| {
            found = found.and_then(|()| mmu.look_up(space, start, bytes, cache, &mut look_up));
        });
        found?;
        // What walks read beyond the time that they take, nobody waits for.
        let read = look_up.read;
        if read > 0 && passes_memory {
            let legs = vec![Leg::of(DDR, read)];
            self.network
                .start(now, Owner::Prefetch, read, legs, Claim::Equal);
        }
        Ok(look_up.ready)
    }

    /// The lines of ranges are touched. Returns how many bytes the memory must give, and how many there are; without a cache nothing of both.
    pub(crate) fn touch(
        &mut self,
        process: u32,
        mask: u64,
        ranges: impl FnOnce(&mut dyn FnMut(u64, u64)),
    ) -> (u64, u64) {
        let (mut missed, mut touched, mut last) = (0, 0, None);
        let Some(cache) = &mut self.cache else {
            return (0, 0);
        };
        ranges(&mut |start, bytes| {
            let physical = start | u64::from(process) << 40;
            touched += bytes;
            missed += cache.access(physical, bytes, mask, &mut last);
        });
        (missed, touched)
    }

    /// Nothing of former programs is in flight any more.
    pub(crate) fn settle(&mut self, now: u64) {
        if let Some(mmu) = &mut self.mmu {
            mmu.settle(now);
        }
        self.network.settle(now, Owner::Prefetch);
    }

    /// What TLB and cache hold, as numbers: equal where everything that comes next finds the same.
    pub(crate) fn contents(&self) -> Vec<u64> {
        let mut contents = Vec::new();
        if let Some(mmu) = &self.mmu {
            mmu.contents(&mut contents);
        }
        if let Some(cache) = &self.cache {
            cache.contents(&mut contents);
        }
        contents
    }

    pub(crate) fn hold(&mut self, contents: &[u64]) {
        let mut contents = contents.iter().copied();
        if let Some(mmu) = &mut self.mmu {
            mmu.hold(&mut contents);
        }
        if let Some(cache) = &mut self.cache {
            cache.hold(&mut contents);
        }
    }

    /// Takes what has been counted.
    pub(crate) fn take_counts(&mut self) -> Counts {
        let none = vec![0; self.network.carried.len()];
        let nothing = vec![0.0; self.network.withheld.len()];
        let (mmu, cache) = (&mut self.mmu, &mut self.cache);
        Counts {
            tlb: mmu
                .as_mut()
                .map(|m| std::mem::take(&mut m.counts))
                .unwrap_or_default(),
            cache: cache
                .as_mut()
                .map(|c| std::mem::take(&mut c.tally))
                .unwrap_or_default(),
            carried: std::mem::replace(&mut self.network.carried, none),
            withheld: std::mem::replace(&mut self.network.withheld, nothing),
        }
    }

    pub(crate) fn add_counts(&mut self, counts: &Counts) {
        if let Some(mmu) = &mut self.mmu {
            mmu.counts += counts.tlb;
        }
        if let Some(cache) = &mut self.cache {
            cache.tally += counts.cache;
        }
        for (sum, bytes) in self.network.carried.iter_mut().zip(&counts.carried) {
            *sum += bytes;
        }
        for (sum, bytes) in self.network.withheld.iter_mut().zip(&counts.withheld) {
            *sum += bytes;
        }
    }

    pub(crate) fn tlb_counts(&self) -> TlbCounts {
        self.mmu.as_ref().map(|mmu| mmu.counts).unwrap_or_default()
    }

    pub(crate) fn cache_counts(&self) -> CacheCounts {
        self.cache.as_ref().map(Cache::counts).unwrap_or_default()
    }
}

/// A program of a file as a stream has it in its address space.
#[derive(Debug)]
pub(crate) struct Loaded<'s, 'p, 'a> {
    pub(crate) program: &'s FileProgram<'p, 'a>,
    pub(crate) process: u32,
    /// Where it stands.
    pub(crate) mapped: [Map; 1],
    /// Ways of the cache that each queue may fill.
    pub(crate) masks: Vec<u64>,
}

/// Where tasks of programs of files meet the memory path.
pub(crate) struct Crossing<'c, 's, 'p, 'a> {
    pub(crate) memory: &'c mut Memory,
    /// By stream and clock.
    pub(crate) loaded: &'c [Option<Loaded<'s, 'p, 'a>>],
    /// Which of them each instance is.
    pub(crate) instances: &'c BTreeMap<InstanceId, usize>,
    /// Bytes that the memory must give of the task that set out last, and all that it touches.
    pub(crate) passing: (u64, u64),
}

impl<'c, 's, 'p, 'a> Crossing<'c, 's, 'p, 'a> {
    pub(crate) fn new(
        memory: &'c mut Memory,
        loaded: &'c [Option<Loaded<'s, 'p, 'a>>],
        instances: &'c BTreeMap<InstanceId, usize>,
    ) -> Crossing<'c, 's, 'p, 'a> {
        Crossing {
            memory,
            loaded,
            instances,
            passing: (0, 0),
        }
    }

    fn loaded(&self, instance: InstanceId) -> Option<&'c Loaded<'s, 'p, 'a>> {
        self.loaded[*self.instances.get(&instance)?].as_ref()
    }

    fn touch(&mut self, loaded: &Loaded<'_, '_, '_>, task: TaskId) {
        let (program, touches) = (loaded.program.verified.program(), &loaded.program.touches);
        let mask = loaded.masks[program.tasks[task].queue.index()];
        let base = loaded.mapped[0].base;
        self.passing = self.memory.touch(loaded.process, mask, |visit| {
            touches.each(task, base, visit);
        });
    }

    /// Of some bytes of the task that set out last, those that the memory must give.
    fn missed(&self, bytes: u64) -> u64 {
        let (missed, touched) = self.passing;
        if missed == touched {
            return bytes;
        }
        let share = u128::from(bytes) * u128::from(missed);
        u64::try_from(share.div_ceil(u128::from(touched))).unwrap_or(bytes)
    }
}

impl Outside for Crossing<'_, '_, '_, '_> {
    fn begins(&mut self, instance: InstanceId, task: TaskId, now: Time) -> Time {
        let Some(loaded) = self.loaded(instance) else {
            return now;
        };
        let (program, touches) = (loaded.program.verified.program(), &loaded.program.touches);
        if !touches.any(task) {
            return now;
        }
        let space = Space {
            process: loaded.process,
            maps: Some(&loaded.mapped),
        };
        let base = loaded.mapped[0].base;
        let route = loaded.program.route(task);
        let demand = program.counted_demands(task).next();
        let rate = demand.map_or(f64::INFINITY, |demand| {
            program.resources[demand.resource].per_transfer
        });
        let passes = route.is_some();
        let ready = self.memory.look_up(now.0, space, rate, passes, |visit| {
            touches.each(task, base, visit);
        });
        if demand.is_none() {
            self.touch(loaded, task);
        }
        // What a program touches was proven to lie in its buffers, which are mapped.
        Time(ready.unwrap_or(now.0))
    }

    fn moves(&mut self, instance: InstanceId, task: TaskId, now: Time) {
        let Some(loaded) = self.loaded(instance) else {
            return;
        };
        let program = loaded.program.verified.program();
        let is_off_chip = loaded.program.touches.any(task);
        self.passing = (0, 0);
        if is_off_chip {
            self.touch(loaded, task);
        }
        let Some(route) = loaded.program.route(task) else {
            return;
        };
        // What counts as more bytes than it is takes longer, but no more of the path.
        for demand in program.counted_demands(task) {
            let own = &program.resources[demand.resource];
            let bytes = demand.bytes;
            let moved: u64 = program.demands(task).iter().map(|d| d.bytes).sum();
            let passing = bytes.min(moved);
            let leg = |resource: u8| Leg {
                resource,
                bytes: passing,
                load: route.load,
            };
            let mut legs = vec![leg(route.port), leg(GROUPS + route.group)];
            if is_off_chip {
                legs.push(leg(NETWORK));
                if self.memory.cache.is_some() {
                    legs.push(Leg::of(CACHE, passing));
                }
                legs.push(Leg::of(DDR, self.missed(passing)));
            }
            let own = Own {
                group: instance,
                each: own.per_transfer,
                all: own.capacity,
            };
            let owner = Owner::File(instance, task);
            self.memory
                .network
                .start(now.0, owner, bytes, legs, Claim::Own(own));
        }
    }

    fn passes(&mut self, instance: InstanceId, task: TaskId, demand: &Demand) -> u64 {
        let Some(loaded) = self.loaded(instance) else {
            return demand.bytes;
        };
        let resource = &loaded.program.verified.program().resources[demand.resource];
        if resource.off_chip && loaded.program.route(task).is_none() {
            self.missed(demand.bytes)
        } else {
            demand.bytes
        }
    }

    fn ends(&mut self, instance: InstanceId, task: TaskId, now: Time) -> bool {
        self.memory
            .network
            .finish(now.0, Owner::File(instance, task))
    }
}
