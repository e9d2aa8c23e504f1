//! Places on the engines: who gets one, who gives one up, and what that costs.

use super::{Device, Due};
use crate::engine::Engine;
use crate::job::{Phase, Preemption};
use crate::owner::JobId;
use crate::policy::{Candidate, Holder, Place};
use chipless_sim::Stopped;

impl Device<'_, '_, '_> {
    /// The scheduler of an engine looks.
    pub(crate) fn schedule(&mut self, engine: usize) -> Result<(), Stopped> {
        let ready = self.engines[engine].reset_until.max(self.awake_at);
        if self.now < ready {
            self.wake(engine, ready);
            return Ok(());
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        for (number, ring) in self.rings.iter().enumerate() {
            let (Some(first), None) = (ring.waiting.front(), ring.running) else {
                continue;
            };
            let Some(job) = &self.jobs[*first as usize] else {
                continue;
            };
            let stream = &self.setup.streams[job.stream];
            if stream.engine as usize != engine {
                continue;
            }
            let context = &self.setup.contexts[number];
            candidates.push(Candidate {
                context: number,
                process: context.process,
                band: context.band,
                priority: context.priority,
                need: self.need(job.stream),
                number: job.number,
            });
        }
        let mut holders = std::mem::take(&mut self.holders);
        holders.clear();
        let places = &mut self.engines[engine];
        holders.extend(places.holding.iter().map(|(_, holder)| *holder));
        let plan = places
            .policy
            .plan(self.now, &mut candidates, &holders, places.room);
        (self.candidates, self.holders) = (candidates, holders);
        if let Some(at) = plan.wake {
            self.wake(engine, at);
        }
        for (context, by) in plan.preempt {
            if let Some(job) = self.rings[context].running {
                self.ask_to_leave(job, by)?;
            }
        }
        for context in plan.place {
            self.place(context);
        }
        Ok(())
    }

    pub(crate) fn wake(&mut self, engine: usize, at: u64) {
        let places = &mut self.engines[engine];
        if places.wake.is_none_or(|wake| at < wake) {
            places.wake = Some(at);
            self.at(at, Due::Wake(engine));
        }
    }

    /// The place that a job of a stream needs.
    pub(crate) fn need(&self, stream: usize) -> Place {
        let (figures, stream) = (self.figures, &self.setup.streams[stream]);
        match (stream.engine, stream.program.tiles()) {
            (Engine::Copy, _) => Place { slots: 1, tiles: 0 },
            (Engine::Nn, Some(tiles)) => Place { slots: 1, tiles },
            (Engine::Nn, None) => Place {
                slots: figures.nn_slots,
                tiles: figures.tiles,
            },
        }
    }

    /// The first waiting job of a context gets its place.
    pub(crate) fn place(&mut self, context: usize) {
        let Some(id) = self.rings[context].waiting.pop_front() else {
            return;
        };
        self.numbers += 1;
        let (now, number, stream) = (self.now, self.numbers, self.job(id).stream);
        let (engine, need) = (
            self.setup.streams[stream].engine as usize,
            self.need(stream),
        );
        self.job(id).placed = now;
        self.rings[context].running = Some(id);
        let of = &self.setup.contexts[context];
        let holder = Holder {
            context,
            process: of.process,
            band: of.band,
            priority: of.priority,
            holds: need,
            placed: number,
            is_leaving: false,
        };
        let places = &mut self.engines[engine];
        places.waiting -= 1;
        places.room = places.room.minus(need);
        if places.holding.is_empty() {
            places.busy_since = now;
        }
        places.holding.push((id, holder));
        let figures = self.figures;
        let holding = self.engines.iter().flat_map(|places| &places.holding);
        let running: Vec<u32> = holding.map(|(_, holder)| holder.process).collect();
        let is_running = |process| running.contains(&process);
        let load = if self.map.place(of.process, figures.map_rows, is_running) {
            figures.map_load
        } else {
            0
        };
        if self.job(id).phase == Phase::Preempted {
            let time = figures.preempt_restore.saturating_add(self.state_time(id));
            self.enter(id, Phase::Restoring, time.saturating_add(load));
        } else {
            self.enter(
                id,
                Phase::Starting,
                figures.firmware_start.saturating_add(load),
            );
        }
    }

    pub(crate) fn give_up_place(&mut self, id: JobId) {
        let (now, engine, context) = (self.now, self.engine_of(id), self.context_of(id));
        let time = now - self.job(id).placed;
        self.rings[context].running = None;
        let places = &mut self.engines[engine];
        if let Some(at) = places.holding.iter().position(|(job, _)| *job == id) {
            let (_, holder) = places.holding.remove(at);
            places.room = places.room.plus(holder.holds);
            if places.holding.is_empty() {
                self.totals.busy[engine] += now - places.busy_since;
            }
        }
        places.is_dirty = true;
        // The next job of the context may wait for the other engine.
        if let Some(next) = self.rings[context].waiting.front().copied() {
            let other = self.engine_of(next);
            self.engines[other].is_dirty = true;
        }
        if engine == Engine::Nn as usize {
            self.totals.contexts[context].held += u128::from(time);
        }
    }

    /// A job that holds a place must leave it for a context.
    pub(crate) fn ask_to_leave(&mut self, id: JobId, by: usize) -> Result<(), Stopped> {
        let (now, engine) = (self.now, self.engine_of(id));
        let holding = &mut self.engines[engine].holding;
        if let Some((_, holder)) = holding.iter_mut().find(|(job, _)| *job == id) {
            holder.is_leaving = true;
        }
        self.job(id).leaving = Some((now, by));
        if self.job(id).phase == Phase::Running {
            self.halt(id)?;
            self.drain(id);
            let (stamp, timeout) = (self.job(id).stamp, self.figures.preempt_timeout);
            if timeout > 0 && self.job(id).phase == Phase::Running {
                self.at(now.saturating_add(timeout), Due::Timeout(id, stamp));
            }
        }
        Ok(())
    }

    /// Saves a leaving job as soon as nothing of it is in flight.
    pub(crate) fn drain(&mut self, id: JobId) {
        if self.job(id).phase == Phase::Running && self.is_still(id) {
            self.save(id);
        }
    }

    pub(crate) fn save(&mut self, id: JobId) {
        let now = self.now;
        self.charge(id);
        let time = self
            .figures
            .preempt_save
            .saturating_add(self.state_time(id));
        let Some((request, by)) = self.job(id).leaving else {
            return;
        };
        let by = self.setup.contexts[by].name.clone();
        self.totals.preemptions += 1;
        self.job(id).preemptions.push(Preemption {
            request_ps: request,
            drain_ps: now - request,
            save_ps: time,
            resume_ps: None,
            by,
        });
        self.enter(id, Phase::Saving, time);
    }

    /// How long the state of a job takes to or from memory.
    pub(crate) fn state_time(&mut self, id: JobId) -> u64 {
        let (ran, has_begun) = (self.job(id).ran, self.job(id).has_begun);
        let stream = self.job(id).stream;
        let bytes = if has_begun {
            self.setup.streams[stream].program.state(ran)
        } else {
            0
        };
        let rate = self.figures.preempt_bandwidth;
        if rate.fract() == 0.0 && rate < 1e18 {
            let time = (u128::from(bytes) * 1_000_000_000_000).div_ceil(rate as u128);
            return u64::try_from(time).unwrap_or(u64::MAX);
        }
        (bytes as f64 * 1e12 / rate).ceil() as u64
    }
}
