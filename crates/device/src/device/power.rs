//! The clocks of jobs, and what their work takes.

use super::Device;
use crate::figures::Figures;
use crate::job::Phase;
use crate::owner::JobId;
use crate::power::{CLOCKS, FULL, Governor, LEAST};

impl Device<'_, '_, '_> {
    /// The device begins or ends to have work, or its clock changes.
    pub(crate) fn power_passes(&mut self) {
        let idle_since = (self.active == 0).then_some(self.idle_since);
        self.power.pass(&self.figures.power, self.now, idle_since);
    }

    /// Without work the clock falls.
    pub(crate) fn rests(&mut self) {
        self.power.clock = self.figures.power.governor.at_rest();
    }

    /// A job's tasks took time on its tiles.
    pub(crate) fn worked(&mut self, tiles: u64, clock: usize, time: u64) {
        self.power.tiles += self.figures.power.work(clock) * tiles as f64 * time as f64;
    }

    /// The clock of a job that begins. Where that is another than the last, it waits for the change, of which this is the rest.
    pub(crate) fn clock(&mut self, id: JobId) -> u64 {
        let (figures, now) = (&self.figures.power, self.now);
        if self.job(id).clock.is_none() {
            let clock = self.choose(id);
            self.job(id).clock = Some(clock);
            if clock != self.power.clock {
                self.power_passes();
                self.power.clock = clock;
                self.power.ready = now.saturating_add(figures.change);
            }
        }
        self.power.ready.saturating_sub(now)
    }

    fn choose(&mut self, id: JobId) -> usize {
        let (figures, now) = (self.figures, self.now);
        let power = &figures.power;
        if power.thermal_period > 0 {
            let free = power.thermal_period as f64 * power.thermal_duty / 100.0;
            if (now % power.thermal_period) as f64 >= free {
                return LEAST;
            }
        }
        match power.governor {
            Governor::Full | Governor::OnDemand => FULL,
            Governor::Efficient => 1,
            Governor::Least => LEAST,
            Governor::Deadline => {
                let (stream, arrival) = (self.job(id).stream, self.job(id).arrival);
                let stream = &self.setup.streams[stream];
                let Some(deadline) = stream.stream.deadline else {
                    return FULL;
                };
                let is_in_time = |clock: &usize| {
                    let change = if *clock == self.power.clock {
                        0
                    } else {
                        power.change
                    };
                    let time = fixed_behind(figures) + stream.alone[*clock] + change;
                    now + time <= arrival.saturating_add(deadline)
                };
                (0..CLOCKS).rev().find(is_in_time).unwrap_or(FULL)
            }
        }
    }

    /// Whether a job waits for its clock, and does so.
    pub(crate) fn waits_for_clock(&mut self, id: JobId) -> bool {
        let wait = self.clock(id);
        if wait > 0 {
            self.enter(id, Phase::Starting, wait);
        }
        wait > 0
    }
}

/// What comes behind the last task of a job.
const fn fixed_behind(figures: &Figures) -> u64 {
    figures.firmware_complete + figures.host_complete
}
