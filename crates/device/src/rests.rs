//! Which figures of the machine a result rests on: those that took part in the simulation.

use crate::engine::Engine;
use crate::fifos::{Block, Writer};
use crate::figures::{BANDS, Figures, PolicyName, RESOURCES, Resolved};
use crate::power::{Governor, PowerFigures};
use crate::setup::{Program, Setup};
use crate::synthetic::{Synthetic, TaskKind};
use crate::totals::Simulated;
use crate::workload::Context;
use std::collections::BTreeSet;

/// Keys of the figures that took part and that nobody has replaced.
pub(crate) fn rests_on(
    resolved: &Resolved,
    setup: &Setup<'_, '_, '_>,
    simulated: &Simulated<'_>,
) -> BTreeSet<String> {
    let mut used = Used {
        changed: &resolved.changed,
        keys: BTreeSet::new(),
    };
    let figures = &resolved.figures;
    used.programs(setup, simulated);
    used.host(figures, setup, simulated);
    used.scheduler(figures, setup);
    used.preemption(figures, simulated);
    used.memory(figures, simulated);
    used.fifos(figures, setup);
    used.add(simulated.resets > 0, "watchdog.timeout");
    used.add(simulated.resets > 0 && figures.reset_time > 0, "reset.time");
    used.power(&figures.power);
    used.keys
}

/// Keys of the figures that took part, as they are found.
struct Used<'r> {
    /// Keys of the figures that were replaced.
    changed: &'r [String],
    keys: BTreeSet<String>,
}

impl Used<'_> {
    fn add(&mut self, is: bool, key: &str) {
        if is && !self.changed.iter().any(|changed| changed == key) {
            self.keys.insert(key.to_owned());
        }
    }

    /// What the programs of files rest on.
    fn programs(&mut self, setup: &Setup<'_, '_, '_>, simulated: &Simulated<'_>) {
        let programs = setup.streams.iter().filter_map(|s| match s.program {
            Program::File(program) => Some(program),
            Program::Synthetic(_) => None,
        });
        for program in programs {
            let figures = &program.verified.program().figures;
            for key in figures {
                self.add(true, key);
            }
            let has_path = program.routes.iter().any(Option::is_some);
            self.add(
                has_path && simulated.passed.contains(&true),
                "dma.path_clock",
            );
        }
    }

    /// Places for jobs, and their way from the host through rings, doorbells and firmware.
    fn host(&mut self, f: &Figures, setup: &Setup<'_, '_, '_>, simulated: &Simulated<'_>) {
        let on = |engine: Engine| setup.streams.iter().any(|s| s.engine == engine);
        self.add(on(Engine::Nn), "device.tiles");
        self.add(on(Engine::Nn), "device.nn_slots");
        self.add(on(Engine::Copy), "device.copy_slots");
        self.add(true, "ring.jobs");
        let refused = simulated.streams.iter().any(|s| s.busy > 0);
        self.add(refused, "host.retry");
        self.add(refused, "host.retry_limit");
        self.add(f.host_submit > 0, "host.submit");
        self.add(f.host_complete > 0, "host.complete");
        self.add(f.doorbell_latency > 0, "doorbell.latency");
        let granted = setup.contexts.iter().any(|c| c.granted.is_some());
        self.add(granted && f.doorbell_grant > 0, "doorbell.grant");
        self.add(f.map_load > 0, "context_map.load");
        self.add(
            f.map_load > 0 && simulated.map.evictions > 0,
            "context_map.rows",
        );
        self.add(f.firmware_start > 0, "firmware.start");
        self.add(f.firmware_complete > 0, "firmware.complete");
    }

    /// The order of jobs: the policy, and what it gives bands, processes and contexts.
    fn scheduler(&mut self, f: &Figures, setup: &Setup<'_, '_, '_>) {
        self.add(true, "scheduler.policy");
        if f.policy != PolicyName::Hardware {
            return;
        }
        let contexts: BTreeSet<usize> = setup.streams.iter().map(|s| s.stream.context).collect();
        let contexts: Vec<&Context> = contexts.into_iter().map(|c| &setup.contexts[c]).collect();
        for (band, name) in BANDS.iter().enumerate() {
            let of_band = || contexts.iter().filter(|c| c.band as usize == band);
            let processes: BTreeSet<u32> = of_band().map(|c| c.process).collect();
            self.add(processes.len() > 1, &format!("scheduler.quantum.{name}"));
            self.add(
                processes.len() > 1,
                &format!("scheduler.process_grace.{name}"),
            );
            let lower = contexts.iter().any(|c| (c.band as usize) < band);
            self.add(
                lower && !processes.is_empty(),
                &format!("scheduler.grace.{name}"),
            );
            let shared = of_band().count() > processes.len();
            self.add(shared, "scheduler.context_quantum");
            self.add(shared, "scheduler.context_grace");
        }
        let has = |band: u8| contexts.iter().any(|c| c.band == band);
        self.add(has(1) && has(2), "scheduler.normal_percentage");
    }

    /// What it takes to give up a place.
    fn preemption(&mut self, f: &Figures, simulated: &Simulated<'_>) {
        let preempted = simulated.preemptions > 0;
        self.add(preempted && f.preempt_save > 0, "preempt.save");
        self.add(preempted && f.preempt_restore > 0, "preempt.restore");
        self.add(preempted, "preempt.bandwidth");
        let may_wait = preempted || simulated.streams.iter().any(|s| s.timeouts > 0);
        self.add(may_wait && f.preempt_timeout > 0, "preempt.timeout");
    }

    /// The way to memory: translation, the cache and the resources.
    fn memory(&mut self, f: &Figures, simulated: &Simulated<'_>) {
        let looked_up = simulated.tlb.lookups > 0;
        for key in ["enabled", "page", "tlb.entries", "tlb.ways", "prefetch"] {
            self.add(looked_up, &format!("mmu.{key}"));
        }
        for key in ["walk.levels", "walk.level", "walk.slots"] {
            self.add(simulated.tlb.misses > 0, &format!("mmu.{key}"));
        }
        let prefetched = simulated.tlb.prefetches > 0;
        self.add(prefetched && !f.walk_cached, "mmu.prefetch_bytes");
        self.add(prefetched && f.prefetch_pages > 1, "mmu.prefetch_pages");
        self.add(looked_up && f.mmu_pipelined, "mmu.pipelined");
        self.add(simulated.tlb.page_faults > 0, "mmu.fault");
        let cached_walks = f.walk_cached && f.cache_enabled && simulated.tlb.misses > 0;
        self.add(cached_walks, "mmu.walk.cached");
        self.add(cached_walks, "mmu.walk.hit");
        let cached = simulated.cache.accesses > 0;
        for key in ["enabled", "size", "ways", "line"] {
            self.add(cached, &format!("cache.{key}"));
        }
        for (name, passed) in RESOURCES.iter().zip(&simulated.passed) {
            self.add(*passed, &format!("{name}.bandwidth"));
        }
    }

    /// FIFOs that synthetic programs push into; programs of files never fill one.
    fn fifos(&mut self, f: &Figures, setup: &Setup<'_, '_, '_>) {
        let synthetic = || {
            setup.streams.iter().filter_map(|s| match s.program {
                Program::Synthetic(program) => Some(program),
                Program::File(_) => None,
            })
        };
        let blocks: BTreeSet<Block> = synthetic()
            .flat_map(|program| program.fifos.iter().map(|fifo| fifo.block))
            .collect();
        for block in &blocks {
            if *block == Block::LinkAgent {
                self.add(true, "dma.agent.entries");
            } else {
                self.add(true, &format!("fifo.{}.entries", block.name()));
                self.add(true, "fifo.divided");
                self.add(f.fifo_divided, &format!("fifo.{}.fifos", block.name()));
            }
        }
        let writes = |writer: Writer| {
            let mut tasks = synthetic().flat_map(|program: &Synthetic| &program.tasks);
            tasks.any(|task| matches!(&task.kind, TaskKind::Push(p) if p.writer == Some(writer)))
        };
        self.add(writes(Writer::Cpu), "fifo.write.cpu");
        self.add(writes(Writer::Dma), "fifo.write.dma");
    }

    fn power(&mut self, power: &PowerFigures) {
        self.add(power.enabled, "power.idle");
        self.add(power.enabled && power.wake > 0, "power.wake");
        let (changes, throttles) = (power.changes(), power.thermal_period > 0);
        self.add(power.governor != Governor::Full, "power.governor");
        self.add(changes && power.change > 0, "power.change");
        self.add(
            power.clocks() > 2 || power.governor == Governor::Efficient,
            "power.clock.efficient",
        );
        self.add(power.clocks() > 2, "power.clock.least");
        self.add(throttles, "power.thermal.period");
        self.add(throttles, "power.thermal.duty");
    }
}
