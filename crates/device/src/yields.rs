//! When a program can be preempted: how long it drains, and what it must save.

use crate::programs::FileProgram;
use chipless_model::Time;
use chipless_sim::{Order, Stopped, Timeline, TimingOnly, World};
use schemars::JsonSchema;
use serde::Serialize;

/// What is known of the instants of a program's run.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Yields {
    /// How long it takes, in ns.
    pub latency_ns: f64,
    /// Instants at which nothing is in flight, or only tasks that end there.
    pub points: u64,
    /// The longest that it can take until nothing is in flight, in ns.
    pub worst_drain_ns: f64,
    /// Its mean over all instants, in ns.
    pub mean_drain_ns: f64,
    /// Bytes to be saved.
    pub state_bytes: StateBytes,
    /// Points with the smallest states.
    pub best: Vec<Point>,
    /// The instant that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Point>,
}

/// Bytes to be saved over a run.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct StateBytes {
    /// At most.
    pub max: u64,
    /// Over all instants.
    pub mean: f64,
}

/// An instant of a run.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub struct Point {
    /// When, in ns.
    pub at_ns: f64,
    /// Until nothing is in flight, in ns.
    pub drain_ns: f64,
    /// Bytes to be saved then.
    pub state_bytes: u64,
}

/// How many points are shown.
const BEST: usize = 10;

/// How a program drains that is asked at an instant to leave: until when tasks are in flight.
///
/// # Errors
/// A task that faults.
pub fn drained(program: &FileProgram<'_, '_>, at: u64) -> Result<u64, Stopped> {
    let mut world = World::default();
    let verified = &program.verified;
    let instance = world.place(verified, Order::Timed, TimingOnly, &mut (), Time::ZERO)?;
    world.run_until(Time(at), &mut ())?;
    world.halt(instance);
    let mut end = at;
    while let Some(next) = world.next() {
        if world.is_still(instance) && next.0 > end {
            break;
        }
        world.step(&mut ())?;
        end = next.0;
    }
    Ok(end)
}

/// What is known of the instants of a program's run. `at` asks for one, in picoseconds.
///
/// # Errors
/// A task that faults.
pub fn yields(
    program: &FileProgram<'_, '_>,
    timeline: &Timeline,
    at: Option<u64>,
) -> Result<Yields, Stopped> {
    let end = program.latency;
    let mut spans: Vec<(u64, u64)> = timeline
        .tasks
        .iter()
        .map(|t| (t.start.0, t.end.0))
        .collect();
    spans.sort_unstable();
    // Between two starts, what is in flight ends at the latest end of those before.
    let (mut latest, mut worst, mut sum) = (0u64, 0u64, 0u128);
    let mut points: Vec<u64> = Vec::new();
    let mut least: Vec<(u64, u64)> = Vec::new();
    for (index, (start, stop)) in spans.iter().enumerate() {
        latest = latest.max(*stop);
        worst = worst.max(latest.saturating_sub(*start));
        let until = spans.get(index + 1).map_or(end, |(next, _)| *next).min(end);
        let from = (*start).min(until);
        // The drain falls from latest - from to latest - until, or to nothing.
        let (high, low) = (latest.saturating_sub(from), latest.saturating_sub(until));
        sum += (u128::from(high) * u128::from(high) - u128::from(low) * u128::from(low)) / 2;
        if latest <= until {
            points.push(latest);
        } else if until > from {
            least.push((low, until));
        }
    }
    points.retain(|at| *at > 0 && *at < end);
    points.dedup();
    let point = |at: u64, drained: u64| Point {
        at_ns: at as f64 / 1e3,
        drain_ns: (drained - at) as f64 / 1e3,
        state_bytes: program.state(drained),
    };
    let mut best: Vec<Point> = points.iter().map(|at| point(*at, *at)).collect();
    if best.is_empty() {
        // Something is always in flight: where the least is left of it.
        least.retain(|(_, at)| *at < end);
        least.sort_unstable();
        for (_, at) in least.iter().take(BEST) {
            best.push(point(*at, drained(program, *at)?));
        }
        if best.is_empty() {
            best.push(point(end, end));
        }
    }
    best.sort_by(|a, b| {
        (a.state_bytes, a.drain_ns, a.at_ns)
            .partial_cmp(&(b.state_bytes, b.drain_ns, b.at_ns))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    best.truncate(BEST);
    let mean = |sum: u128| {
        if end == 0 {
            0.0
        } else {
            sum as f64 / end as f64
        }
    };
    let mut state = 0u128;
    for (index, (from, bytes)) in program.levels.iter().enumerate() {
        let until = program
            .levels
            .get(index + 1)
            .map_or(end, |(next, _)| *next)
            .min(end);
        state += u128::from(*bytes) * u128::from(until.saturating_sub(*from));
    }
    Ok(Yields {
        latency_ns: end as f64 / 1e3,
        points: points.len() as u64,
        worst_drain_ns: worst.min(end) as f64 / 1e3,
        mean_drain_ns: mean(sum) / 1e3,
        state_bytes: StateBytes {
            max: program
                .levels
                .iter()
                .map(|(_, bytes)| *bytes)
                .max()
                .unwrap_or(0),
            mean: mean(state),
        },
        best,
        at: match at {
            Some(at) => Some(point(at, drained(program, at.min(end))?.max(at))),
            None => None,
        },
    })
}
