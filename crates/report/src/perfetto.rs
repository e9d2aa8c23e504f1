//! A run as a Perfetto trace, to be opened in the Perfetto UI or queried with its trace processor.
//!
//! One process holds groups of tracks in natural order: *queues*, a track for each server of each queue, *layers*, and counters: live
//! bytes of each memory, bytes per second of each shared resource, values of semaphores. A task is a slice named by its operation, with
//! its number and bytes as arguments; what its server waited for before it is a slice of category `wait`. An arrow leads from the task
//! whose signal ended a wait to the task that waited.
//!
//! Perfetto counts nanoseconds: picoseconds are rounded down to whole ones, so slices may be up to a nanosecond off and
//! very short ones may be empty; order and nesting stay as they were. The groups between process and tracks are there because the
//! trace processor keeps an explicit order only below tracks that are not a process.
//!
//! The format is written by hand (`protobuf.rs`): the generated bindings on the registry compile all of
//! Perfetto's messages with a downloaded protocol compiler and build a tree of large objects for every packet, while a
//! trace needs a dozen fields.

pub(crate) mod field;
mod sequence;

use crate::attribution::{Attribution, Lives, Row};
use crate::lanes::{Lane, lanes};
use crate::protobuf::Writer;
use chipless_model::{
    Action, IndexVec, Moment, Program, ResourceId, SyncId, SyncKind, TaskId, Time,
};
use chipless_sim::{State, Timeline};
use rustc_hash::FxHashMap;
use sequence::{
    CATEGORY_LAYER, CATEGORY_TASK, CATEGORY_WAIT, READ, Sequence, TASK, WRITTEN, argument,
};

const EXPLICIT_ORDER: u64 = 3;
const PROCESS: u64 = 1;
const FIRST_TRACK: u64 = 2;
/// Points of a resource's counter: the run is cut into as many windows of equal length.
const WINDOWS: u64 = 2000;

/// The trace of a run. `process` names it in the viewer: the file, usually.
pub fn trace(
    process: &str,
    program: &Program<'_>,
    timeline: &Timeline,
    attribution: &Attribution,
    lives: &Lives,
) -> Vec<u8> {
    let mut trace = Trace {
        out: Writer::with_capacity(timeline.tasks.len().saturating_mul(64)),
        program,
        timeline,
        attribution,
        tracks: FIRST_TRACK,
    };
    trace.process(process);
    trace.queues();
    trace.layers();
    trace.memories(lives);
    trace.resources();
    trace.counters();
    trace.out.into_bytes()
}

struct Trace<'t, 'a> {
    out: Writer,
    program: &'t Program<'a>,
    timeline: &'t Timeline,
    attribution: &'t Attribution,
    /// The number of the next track.
    tracks: u64,
}

impl Trace<'_, '_> {
    fn process(&mut self, process: &str) {
        let name = if self.program.target.is_empty() {
            process.to_owned()
        } else {
            format!("{process} ({})", self.program.target)
        };
        self.out.message(field::TRACE_PACKET, |p| {
            p.integer(field::PACKET_SEQUENCE, PROCESS);
            p.message(field::PACKET_TRACK, |t| {
                t.integer(field::TRACK_UUID, PROCESS);
                t.message(field::TRACK_PROCESS, |d| {
                    d.integer(field::PROCESS_PID, 1);
                    d.string(field::PROCESS_NAME, &name);
                });
            });
        });
    }

    /// Declares a track, and gives its number.
    fn track(&mut self, parent: u64, name: &str, more: impl FnOnce(&mut Writer)) -> u64 {
        let uuid = self.tracks;
        self.tracks += 1;
        self.out.message(field::TRACE_PACKET, |p| {
            p.integer(field::PACKET_SEQUENCE, PROCESS);
            p.message(field::PACKET_TRACK, |t| {
                t.integer(field::TRACK_UUID, uuid);
                t.integer(field::TRACK_PARENT, parent);
                t.string(field::TRACK_NAME, name);
                t.integer(field::TRACK_RANK, uuid);
                more(t);
            });
        });
        uuid
    }

    fn group(&mut self, name: &str) -> u64 {
        self.track(PROCESS, name, |t| {
            t.integer(field::TRACK_CHILD_ORDERING, EXPLICIT_ORDER);
        })
    }

    /// Declares a counter's track and opens its sequence.
    fn counter(&mut self, parent: u64, name: &str, unit: &str) -> Sequence<'_> {
        let uuid = self.track(parent, name, |t| {
            t.message(field::TRACK_COUNTER, |c| {
                if !unit.is_empty() {
                    c.string(field::COUNTER_UNIT_NAME, unit);
                }
            });
        });
        Sequence::open(&mut self.out, uuid)
    }

    fn queues(&mut self) {
        let (program, attribution) = (self.program, self.attribution);
        let woken = woken(attribution);
        let group = self.group("queues");
        for lane in lanes(program, attribution) {
            let uuid = self.track(group, &lane.name(program), |_| {});
            let mut sequence = Sequence::open(&mut self.out, uuid);
            slices(&mut sequence, program, attribution, &lane, &woken);
        }
    }

    /// The layers, one after the other: each from the start of its first task to the end of its last, or to the start of the next.
    fn layers(&mut self) {
        let mut spans: Vec<(&str, Time, Time)> = Vec::new();
        let mut place: FxHashMap<&str, usize> = FxHashMap::default();
        for row in &self.attribution.rows {
            let Some(layer) = self.attribution.layer(self.program, row.task) else {
                continue;
            };
            let at = *place.entry(layer).or_insert_with(|| {
                spans.push((layer, row.start, row.end));
                spans.len() - 1
            });
            spans[at].2 = spans[at].2.max(row.end);
        }
        if spans.is_empty() {
            return;
        }
        let uuid = self.track(PROCESS, "layers", |_| {});
        let mut sequence = Sequence::open(&mut self.out, uuid);
        for (n, (name, start, end)) in spans.iter().enumerate() {
            let next = spans.get(n + 1).map_or(*end, |(_, next, _)| *next);
            sequence.begin(*start, name, CATEGORY_LAYER, |_| {});
            sequence.end((*end).min(next));
        }
    }

    fn memories(&mut self, lives: &Lives) {
        let group = self.group("live bytes");
        for (memory, levels) in lives.levels().iter_enumerated() {
            if lives.of[memory].is_empty() {
                continue;
            }
            let mut sequence = self.counter(group, &self.program.memories[memory].name, "B");
            for (at, bytes) in levels {
                sequence.value(*at, bytes.cast_signed());
            }
        }
    }

    /// What each resource carried, in MB/s over windows of equal length. The bytes of a task are spread evenly over its time.
    fn resources(&mut self) {
        let window = self.window();
        if self.program.resources.is_empty() {
            return;
        }
        let carried = self.carried(window);
        let group = self.group("resources");
        for (resource, carried) in carried.into_iter_enumerated() {
            let mut sequence = self.counter(group, &self.program.resources[resource].name, "MB/s");
            let mut last = None;
            for (w, bytes) in carried.into_iter().enumerate() {
                let value = (bytes / window as f64 * 1e6).round() as i64;
                if last.replace(value) != Some(value) {
                    sequence.value(Time(w as u64 * window), value);
                }
            }
        }
    }

    fn window(&self) -> u64 {
        let last = self.attribution.rows.iter().map(|row| row.end.0).max();
        last.unwrap_or(0).div_ceil(WINDOWS).max(1)
    }

    fn carried(&self, window: u64) -> IndexVec<ResourceId, Vec<f64>> {
        let windows = self
            .program
            .resources
            .iter()
            .map(|_| vec![0f64; WINDOWS as usize + 1]);
        let mut carried: IndexVec<ResourceId, Vec<f64>> = windows.collect();
        for row in &self.attribution.rows {
            let (start, end) = (row.start.0, row.end.0.max(row.start.0 + 1));
            for demand in self.program.demands(row.task) {
                let per_picosecond = demand.bytes as f64 / (end - start) as f64;
                for w in start / window..=(end - 1) / window {
                    let inside = end.min((w + 1) * window) - start.max(w * window);
                    carried[demand.resource][(w as usize).min(WINDOWS as usize)] +=
                        per_picosecond * inside as f64;
                }
            }
        }
        carried
    }

    /// Values of semaphores over time.
    fn counters(&mut self) {
        let mut changes: IndexVec<SyncId, Vec<(Time, i64)>> =
            self.program.syncs.iter().map(|_| Vec::new()).collect();
        for (task, record) in self.timeline.tasks.iter_enumerated() {
            if record.state != State::Done {
                continue;
            }
            for signal in self.program.signals(task) {
                if let Action::Add(sync, n) = signal.action {
                    let at = match signal.moment {
                        Moment::Read => record.start,
                        Moment::Completion => record.end,
                    };
                    changes[sync].push((at, n));
                }
            }
        }
        if changes.iter().all(Vec::is_empty) {
            return;
        }
        let group = self.group("semaphores");
        for (sync, mut changes) in changes.into_iter_enumerated() {
            let SyncKind::Counter(counter) = &self.program.syncs[sync].kind else {
                continue;
            };
            if changes.is_empty() {
                continue;
            }
            changes.sort_by_key(|(at, _)| *at);
            let mut value = counter.initial;
            let mut sequence = self.counter(group, &self.program.syncs[sync].name, "");
            sequence.value(Time::ZERO, value);
            for (at, n) in changes {
                value = value.saturating_add(n);
                sequence.value(at, value);
            }
        }
    }
}

/// The tasks that each task let go.
fn woken(attribution: &Attribution) -> FxHashMap<TaskId, Vec<TaskId>> {
    let mut woken: FxHashMap<TaskId, Vec<TaskId>> = FxHashMap::default();
    for row in &attribution.rows {
        if let Some(by) = waker(row) {
            woken.entry(by).or_default().push(row.task);
        }
    }
    woken
}

/// Who let a task go.
fn waker(row: &Row) -> Option<TaskId> {
    row.waits.last()?.by
}

fn slices(
    sequence: &mut Sequence<'_>,
    program: &Program<'_>,
    attribution: &Attribution,
    lane: &Lane,
    woken: &FxHashMap<TaskId, Vec<TaskId>>,
) {
    for row in lane.tasks.iter().filter_map(|task| attribution.row(*task)) {
        for wait in &row.waits {
            let on = wait
                .on
                .map_or(wait.reason.name(), |sync| &program.syncs[sync].name);
            sequence.begin(wait.start, on, CATEGORY_WAIT, |_| {});
            sequence.end(wait.end);
        }
        sequence.begin(
            row.start,
            &program.kernel(row.task).operation(),
            CATEGORY_TASK,
            |e| {
                argument(e, TASK, u64::from(program.tasks[row.task].index));
                let all = program.kernel(row.task).traffic();
                for (name, bytes) in [(READ, all.0), (WRITTEN, all.1)] {
                    if bytes > 0 {
                        argument(e, name, bytes);
                    }
                }
                // An arrow has the number of the task that it leads to.
                for other in woken.get(&row.task).into_iter().flatten() {
                    e.fixed64(field::EVENT_FLOWS, u64::from(other.raw()) + 1);
                }
                if waker(row).is_some() {
                    e.fixed64(field::EVENT_ENDING_FLOWS, u64::from(row.task.raw()) + 1);
                }
            },
        );
        sequence.end(row.end);
    }
}

#[cfg(test)]
mod tests;
