//! How long a job of the realtime band takes at worst, whenever the others come: a bound on what the scheduler can do to it.
//!
//! The classic response-time recurrence. A job waits for one lower job that must leave (grace, drain, save), and for the jobs of its own band
//! that come while it waits. What sharing the memory path adds beside running jobs is not in it.

use crate::arrivals::most_in;
use crate::engine::Engine;
use crate::figures::{BANDS, Figures};
use crate::power::CLOCKS;
use crate::quantity::ns;
use crate::setup::{Program, Setup, StreamSetup};
use crate::synthetic::{Task, TaskKind};
use crate::workload::ArrivalKind;
use schemars::JsonSchema;
use serde::Serialize;

/// The worst case of a stream of the realtime band.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct WorstCase {
    /// The stream.
    pub stream: String,
    /// Its deadline; null where it has none.
    pub deadline_ns: Option<f64>,
    /// One job on the idle device, and waking it.
    pub alone_ns: f64,
    /// Until lower jobs have left: the grace, the longest drain or its time-out, the save.
    pub blocking_ns: Option<f64>,
    /// Jobs of the same band.
    pub interference_ns: Option<f64>,
    /// The sum; null where nothing bounds it.
    pub worst_ns: Option<f64>,
    /// Why nothing bounds it.
    pub unbounded: Option<String>,
}

/// No response is followed further than this, in picoseconds.
const LONGEST: u64 = 1_000_000_000_000_000;
const REALTIME: u8 = BANDS.len() as u8 - 1;

/// Of each stream of the realtime band on the NN engine. `alone` are its jobs on the idle device, in picoseconds.
pub fn worst_cases(
    setup: &Setup<'_, '_, '_>,
    figures: &Figures,
    alone: &[Option<u64>],
) -> Vec<WorstCase> {
    let band = |s: &StreamSetup<'_, '_, '_>| setup.contexts[s.stream.context].band;
    let streams = setup.streams.iter().enumerate();
    let realtime = streams.filter(|(_, s)| band(s) == REALTIME && s.engine == Engine::Nn);
    let case = |(number, of): (usize, &StreamSetup<'_, '_, '_>)| {
        let wake = if figures.power.enabled && !stays_awake(setup, figures.power.idle) {
            figures.power.wake
        } else {
            0
        };
        let throttle = if figures.power.thermal_period > 0 {
            of.alone[CLOCKS - 1].saturating_sub(of.alone[0]) + figures.power.change
        } else {
            0
        };
        let own = alone[number].unwrap_or(0) + wake + throttle;
        let parts = match alone[number] {
            None => Err("its program does not end".to_owned()),
            Some(_) => waits(setup, figures, number, own, &band),
        };
        let (blocking, interference) = match &parts {
            Ok((blocking, interference)) => (Some(*blocking), Some(*interference)),
            Err(_) => (None, None),
        };
        let worst = blocking.zip(interference).map(|(a, b)| own + a + b);
        WorstCase {
            stream: of.stream.name.clone(),
            deadline_ns: of.stream.deadline.map(|ps| ns(ps as f64)),
            alone_ns: ns(own as f64),
            blocking_ns: blocking.map(|ps| ns(ps as f64)),
            interference_ns: interference.map(|ps| ns(ps as f64)),
            worst_ns: worst.map(|ps| ns(ps as f64)),
            unbounded: parts.err(),
        }
    };
    realtime.map(case).collect()
}

/// Whether a stream comes so often, from the start and without end, that the device never falls asleep.
fn stays_awake(setup: &Setup<'_, '_, '_>, idle: u64) -> bool {
    setup.streams.iter().any(|s| {
        let arrivals = &s.stream.arrivals;
        let longest = match arrivals.kind {
            ArrivalKind::Every { period, jitter } => period.max(arrivals.offset) + jitter,
            _ => u64::MAX,
        };
        arrivals.count.is_none() && longest < idle
    })
}

/// How long a job waits at worst for lower jobs to leave, and for those of its own band.
fn waits(
    setup: &Setup<'_, '_, '_>,
    figures: &Figures,
    number: usize,
    own: u64,
    band: &impl Fn(&StreamSetup<'_, '_, '_>) -> u8,
) -> Result<(u64, u64), String> {
    let others = || {
        let streams = setup.streams.iter().enumerate();
        streams.filter(move |(n, s)| *n != number && s.engine == Engine::Nn)
    };
    let tiles = |s: &StreamSetup<'_, '_, '_>| s.program.tiles().unwrap_or(figures.tiles);
    let all: u64 = setup.streams.iter().map(tiles).sum();
    let is_crowded = all > figures.tiles || setup.streams.len() as u64 > figures.nn_slots;
    let mut blocking = 0;
    for (_, lower) in others().filter(|(_, s)| is_crowded && band(s) < REALTIME) {
        let leaves = leaves(lower, figures)
            .ok_or_else(|| format!("a job of {} never drains", lower.stream.name))?;
        blocking = blocking.max(figures.grace[usize::from(REALTIME)] + leaves);
    }
    // Lower jobs may fill the room that is left beside each of them, and turns may save and restore either.
    let held = |s: &StreamSetup<'_, '_, '_>| {
        let tasks = *s.alone.iter().max().unwrap_or(&0);
        let states = 2 * (state(s, figures) + state(&setup.streams[number], figures));
        let turns = 2 * (figures.preempt_save + figures.preempt_restore) + states;
        figures.firmware_start + tasks + figures.firmware_complete + blocking + turns
    };
    let same: Vec<_> = others()
        .filter(|(_, s)| is_crowded && band(s) == REALTIME)
        .collect();
    let mut interference = 0;
    loop {
        let response = own + blocking + interference;
        if response > LONGEST {
            return Err("jobs of its band come faster than they are done".to_owned());
        }
        let mut sum = 0u64;
        for (_, other) in &same {
            let jobs = most_in(&other.stream.arrivals, response).ok_or_else(|| {
                format!("nothing bounds how many jobs {} brings", other.stream.name)
            })?;
            // One more is there already.
            sum = sum.saturating_add((jobs + 1).saturating_mul(held(other)));
        }
        if sum == interference {
            break;
        }
        interference = sum;
    }
    let stream = setup.streams[number].stream;
    match most_in(&stream.arrivals, own + blocking + interference) {
        Some(1) => Ok((blocking, interference)),
        _ => Err("another of its own jobs may come before it is done".to_owned()),
    }
}

/// How long the state of a stream's job takes at most, one way.
fn state(stream: &StreamSetup<'_, '_, '_>, figures: &Figures) -> u64 {
    let bytes = match stream.program {
        Program::File(program) => program.levels.iter().map(|(_, bytes)| *bytes).max(),
        Program::Synthetic(program) => Some(program.state),
    };
    (bytes.unwrap_or(0) as f64 * 1e12 / figures.preempt_bandwidth).ceil() as u64
}

/// How long the tasks in flight of a stream's job take at most to end; `None` where they may hang.
fn drain(stream: &StreamSetup<'_, '_, '_>, figures: &Figures) -> Option<u64> {
    let slowest = figures.power.speed(figures.power.clocks() - 1);
    match stream.program {
        Program::File(program) => {
            let all = std::iter::once(program).chain(stream.slower);
            all.map(|program| program.longest).max()
        }
        // Entries of others may stand before its own.
        Program::Synthetic(program) if program.fifos.iter().any(|fifo| fifo.is_shared) => None,
        // What has entered a FIFO ends as well, so no task alone says how long.
        Program::Synthetic(program) if program.has_transfers() || !program.fifos.is_empty() => {
            stream.alone.iter().max().copied().filter(|time| *time > 0)
        }
        Program::Synthetic(program) => {
            let time = |task: &Task| match task.kind {
                TaskKind::Compute(time) => Some((time as f64 / slowest).ceil() as u64),
                _ => None,
            };
            let times: Option<Vec<u64>> = program.tasks.iter().map(time).collect();
            times?.into_iter().max()
        }
    }
}

/// How long a job takes to leave its place when it is asked to; `None` where it may take for ever.
fn leaves(stream: &StreamSetup<'_, '_, '_>, figures: &Figures) -> Option<u64> {
    let save = figures.preempt_save + state(stream, figures);
    let restore = figures.preempt_restore + state(stream, figures);
    let starts = restore.max(figures.firmware_start) + figures.power.change;
    let ends = save.max(figures.firmware_complete);
    let ended = match (drain(stream, figures), figures.preempt_timeout) {
        (Some(drain), timeout) if timeout == 0 || drain <= timeout => drain + ends,
        (None, 0) => return None,
        // Another job that was asked to leave is saved behind the reset.
        (_, timeout) => timeout + ends.max(figures.reset_time + save),
    };
    Some(ended.max(starts + save))
}
