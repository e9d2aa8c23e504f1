//! A run as a Perfetto trace, to be opened in the Perfetto UI or queried with its trace processor.
//!
//! One process holds two groups of tracks: *queues*, one track for each engine (and for each further server of an
//! engine, so that slices of a track never overlap) in the program's order, and *resources*, one counter for each shared
//! resource. A task is a slice named by the compiler's label, or by its operation; the operation is its category, and
//! its arguments are its name in Chipless and, where it waited, for what and how long. An arrow leads from the task
//! whose signal ended a wait to the task that waited.
//!
//! Perfetto counts nanoseconds: picoseconds are rounded down to whole ones, so slices may be up to a nanosecond off and
//! very short ones may be empty; order and nesting stay as they were. The group between process and tracks is there because the
//! trace processor keeps an explicit order only below tracks that are not a process.
//!
//! The format is written by hand (`protobuf.rs`): the generated bindings on the registry compile all of
//! Perfetto's messages with a downloaded protocol compiler and build a tree of large objects for every packet, while a
//! trace needs a dozen fields.

mod field;

use crate::protobuf::Writer;
use chipless_model::{Program, QueueId, ResourceId, SyncId, TaskId, Time};
use chipless_sim::{Record, State, Timeline};
use rustc_hash::FxHashMap;

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const COUNTER: u64 = 4;
const EXPLICIT_ORDER: u64 = 3;
/// The packet clears what was interned before; the packet uses interned strings.
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

const PROCESS: u64 = 1;
const QUEUES: u64 = 2;
const RESOURCES: u64 = 3;
const FIRST_TRACK: u64 = 4;

/// Interned names of arguments.
const TASK: u64 = 1;
const WAITED_FOR: u64 = 2;
const WAITED_NS: u64 = 3;

/// Points of a counter: the run is cut into as many windows of equal length.
const WINDOWS: u64 = 2000;
const NONE: u32 = u32::MAX;

/// The trace of a run. `process` names it in the viewer: the file, usually.
pub fn trace(process: &str, program: &Program<'_>, timeline: &Timeline) -> Vec<u8> {
    let mut trace = Trace {
        out: Writer::with_capacity(timeline.tasks.len().saturating_mul(56)),
        program,
        timeline,
        strings: Strings::default(),
        known_syncs: vec![false; program.syncs.len()],
        woken: Woken::of(timeline),
    };
    trace.tracks(process);
    trace.out.into_bytes()
}

struct Trace<'t, 'a> {
    out: Writer,
    program: &'t Program<'a>,
    timeline: &'t Timeline,
    strings: Strings,
    known_syncs: Vec<bool>,
    woken: Woken,
}

/// Names of slices and categories; both are numbered in one table, since numbers of different kinds may coincide.
#[derive(Default)]
struct Strings {
    numbers: FxHashMap<Box<str>, (u64, u8)>,
}

const AS_NAME: u8 = 1;
const AS_CATEGORY: u8 = 2;

impl Strings {
    /// The number of a text, and whether it is used in this way for the first time.
    fn number(&mut self, text: &str, way: u8) -> (u64, bool) {
        if let Some((number, ways)) = self.numbers.get_mut(text) {
            let new = *ways & way == 0;
            *ways |= way;
            return (*number, new);
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(text.into(), (number, way));
        (number, true)
    }
}

/// The tasks that each task woke, linked through `next`.
struct Woken {
    first: Vec<u32>,
    next: Vec<u32>,
}

impl Woken {
    fn of(timeline: &Timeline) -> Woken {
        let mut woken = Woken {
            first: vec![NONE; timeline.tasks.len()],
            next: vec![NONE; timeline.tasks.len()],
        };
        for (task, record) in timeline.tasks.iter_enumerated() {
            if let Some(by) = waker(record) {
                woken.next[task.index()] =
                    std::mem::replace(&mut woken.first[by.index()], task.raw());
            }
        }
        woken
    }

    fn by(&self, task: TaskId) -> impl Iterator<Item = u32> + '_ {
        let present = |task: u32| (task != NONE).then_some(task);
        std::iter::successors(present(self.first[task.index()]), move |t| {
            present(self.next[*t as usize])
        })
    }
}

/// Who ended the wait of a task that started.
fn waker(record: &Record) -> Option<TaskId> {
    if record.state == State::Waiting {
        None
    } else {
        record.stall?.by
    }
}

fn nanoseconds(time: Time) -> u64 {
    time.0 / 1000
}

impl Trace<'_, '_> {
    fn tracks(&mut self, process: &str) {
        let name = if self.program.target.is_empty() {
            process.to_owned()
        } else {
            format!("{process} ({})", self.program.target)
        };
        self.out.message(field::TRACE_PACKET, |p| {
            p.integer(field::PACKET_SEQUENCE, 1);
            p.integer(field::PACKET_FLAGS, STATE_CLEARED | NEEDS_STATE);
            p.integer(field::PACKET_FIRST, 1);
            p.message(field::PACKET_INTERNED, |i| {
                for (number, text) in [
                    (TASK, "task"),
                    (WAITED_FOR, "waited for"),
                    (WAITED_NS, "waited ns"),
                ] {
                    i.message(field::INTERNED_ANNOTATION_NAMES, |e| entry(e, number, text));
                }
            });
            p.message(field::PACKET_TRACK, |t| {
                t.integer(field::TRACK_UUID, PROCESS);
                t.message(field::TRACK_PROCESS, |d| {
                    d.integer(field::PROCESS_PID, 1);
                    d.string(field::PROCESS_NAME, &name);
                });
            });
        });
        self.track(QUEUES, PROCESS, "queues", 0, |t| {
            t.integer(field::TRACK_CHILD_ORDERING, EXPLICIT_ORDER)
        });
        let mut uuid = FIRST_TRACK;
        for (queue, mut tasks) in self.tasks_by_queue().into_iter().enumerate() {
            let name = &self.program.queues[QueueId::from_usize(queue)].name;
            tasks.sort_unstable_by_key(|task| (self.timeline.tasks[*task].start, *task));
            for (i, lane) in lanes(self.timeline, &tasks).into_iter().enumerate() {
                let name = if i == 0 {
                    name.clone()
                } else {
                    format!("{name} server {}", i + 1)
                };
                self.track(uuid, QUEUES, &name, uuid, |_| {});
                for task in lane {
                    self.slice(uuid, task);
                }
                uuid += 1;
            }
        }
        if self.timeline.end > Time::ZERO && !self.program.resources.is_empty() {
            self.track(RESOURCES, PROCESS, "resources", 1, |t| {
                t.integer(field::TRACK_CHILD_ORDERING, EXPLICIT_ORDER)
            });
            for resource in self.program.resources.indices() {
                let name = &self.program.resources[resource].name;
                self.track(uuid, RESOURCES, name, uuid, |t| {
                    t.message(field::TRACK_COUNTER, |c| {
                        c.string(field::COUNTER_UNIT_NAME, "MB/s")
                    });
                });
                self.counter(uuid, resource);
                uuid += 1;
            }
        }
    }

    fn track(
        &mut self,
        uuid: u64,
        parent: u64,
        name: &str,
        rank: u64,
        more: impl FnOnce(&mut Writer),
    ) {
        self.out.message(field::TRACE_PACKET, |p| {
            p.integer(field::PACKET_SEQUENCE, 1);
            p.message(field::PACKET_TRACK, |t| {
                t.integer(field::TRACK_UUID, uuid);
                t.integer(field::TRACK_PARENT, parent);
                t.string(field::TRACK_NAME, name);
                t.integer(field::TRACK_RANK, rank);
                more(t);
            });
        });
    }

    fn tasks_by_queue(&self) -> Vec<Vec<TaskId>> {
        let mut queues = vec![Vec::new(); self.program.queues.len()];
        for (task, record) in self.timeline.tasks.iter_enumerated() {
            if record.state != State::Waiting {
                queues[self.program.tasks[task].queue.index()].push(task);
            }
        }
        queues
    }

    fn slice(&mut self, uuid: u64, task: TaskId) {
        let Trace {
            out,
            program,
            timeline,
            strings,
            known_syncs,
            woken,
        } = self;
        let (t, record) = (&program.tasks[task], &timeline.tasks[task]);
        let operation = program.kernel(task).operation();
        let name = t.label.as_deref().unwrap_or(&operation);
        let (name_iid, new_name) = strings.number(name, AS_NAME);
        let (category_iid, new_category) = strings.number(&operation, AS_CATEGORY);
        let waited = record
            .stall
            .map(|stall| (stall.sync, record.start.saturating_sub(record.ready)))
            .filter(|(_, time)| *time > Time::ZERO);
        let new_sync = waited
            .is_some_and(|(sync, _)| !std::mem::replace(&mut known_syncs[sync.index()], true));
        out.message(field::TRACE_PACKET, |p| {
            p.integer(field::PACKET_TIMESTAMP, nanoseconds(record.start));
            p.integer(field::PACKET_SEQUENCE, 1);
            p.integer(field::PACKET_FLAGS, NEEDS_STATE);
            if new_name || new_category || new_sync {
                p.message(field::PACKET_INTERNED, |i| {
                    if new_name {
                        i.message(field::INTERNED_NAMES, |e| entry(e, name_iid, name));
                    }
                    if new_category {
                        i.message(field::INTERNED_CATEGORIES, |e| {
                            entry(e, category_iid, &operation)
                        });
                    }
                    if let Some((sync, _)) = waited.filter(|_| new_sync) {
                        i.message(field::INTERNED_ANNOTATION_STRINGS, |e| {
                            entry(e, sync_iid(sync), &program.syncs[sync].name)
                        });
                    }
                });
            }
            p.message(field::PACKET_EVENT, |e| {
                e.integer(field::EVENT_TYPE, SLICE_BEGIN);
                e.integer(field::EVENT_TRACK, uuid);
                e.integer(field::EVENT_NAME_IID, name_iid);
                e.integer(field::EVENT_CATEGORY_IIDS, category_iid);
                e.message(field::EVENT_ANNOTATIONS, |a| {
                    a.integer(field::ANNOTATION_NAME_IID, TASK);
                    a.integer(field::ANNOTATION_UINT, u64::from(t.index));
                });
                if let Some((sync, time)) = waited {
                    e.message(field::EVENT_ANNOTATIONS, |a| {
                        a.integer(field::ANNOTATION_NAME_IID, WAITED_FOR);
                        a.integer(field::ANNOTATION_STRING_IID, sync_iid(sync));
                    });
                    e.message(field::EVENT_ANNOTATIONS, |a| {
                        a.integer(field::ANNOTATION_NAME_IID, WAITED_NS);
                        a.integer(field::ANNOTATION_UINT, nanoseconds(time));
                    });
                }
                // An arrow has the number of the task that it leads to.
                woken
                    .by(task)
                    .for_each(|other| e.fixed64(field::EVENT_FLOWS, u64::from(other) + 1));
                if waker(record).is_some() {
                    e.fixed64(field::EVENT_ENDING_FLOWS, u64::from(task.raw()) + 1);
                }
            });
        });
        if record.state == State::Done {
            out.message(field::TRACE_PACKET, |p| {
                p.integer(field::PACKET_TIMESTAMP, nanoseconds(record.end));
                p.integer(field::PACKET_SEQUENCE, 1);
                p.message(field::PACKET_EVENT, |e| {
                    e.integer(field::EVENT_TYPE, SLICE_END);
                    e.integer(field::EVENT_TRACK, uuid);
                });
            });
        }
    }

    /// What a resource carried, in MB/s over windows of equal length. The bytes of a task are spread evenly over its time.
    fn counter(&mut self, uuid: u64, resource: ResourceId) {
        let window = self
            .timeline
            .tasks
            .iter()
            .map(|r| r.end)
            .max()
            .unwrap_or_default()
            .0
            .div_ceil(WINDOWS)
            .max(1);
        let mut carried = vec![0f64; WINDOWS as usize + 1];
        for (task, record) in self
            .timeline
            .tasks
            .iter_enumerated()
            .filter(|(_, record)| record.state == State::Done)
        {
            let (start, end) = (record.start.0, record.end.0.max(record.start.0 + 1));
            for demand in self
                .program
                .demands(task)
                .iter()
                .filter(|d| d.resource == resource)
            {
                let per_picosecond = demand.bytes as f64 / (end - start) as f64;
                for w in start / window..=(end - 1) / window {
                    let inside = end.min((w + 1) * window) - start.max(w * window);
                    carried[(w as usize).min(WINDOWS as usize)] += per_picosecond * inside as f64;
                }
            }
        }
        let mut last = None;
        for (w, bytes) in carried.into_iter().enumerate() {
            let value = (bytes / window as f64 * 1e6).round() as u64;
            if last.replace(value) == Some(value) {
                continue;
            }
            self.out.message(field::TRACE_PACKET, |p| {
                p.integer(
                    field::PACKET_TIMESTAMP,
                    nanoseconds(Time(w as u64 * window)),
                );
                p.integer(field::PACKET_SEQUENCE, 1);
                p.message(field::PACKET_EVENT, |e| {
                    e.integer(field::EVENT_TYPE, COUNTER);
                    e.integer(field::EVENT_TRACK, uuid);
                    e.integer(field::EVENT_COUNTER_VALUE, value);
                });
            });
        }
    }
}

fn sync_iid(sync: SyncId) -> u64 {
    u64::from(sync.raw()) + 1
}

fn entry(out: &mut Writer, number: u64, text: &str) {
    out.integer(field::ENTRY_IID, number);
    out.string(field::ENTRY_TEXT, text);
}

/// Tasks in order of their start, dealt out so that the tasks of a lane follow each other.
fn lanes(timeline: &Timeline, tasks: &[TaskId]) -> Vec<Vec<TaskId>> {
    let mut lanes: Vec<(Time, Vec<TaskId>)> = Vec::new();
    for &task in tasks {
        let Record {
            start, end, state, ..
        } = timeline.tasks[task];
        let end = if state == State::Done {
            end
        } else {
            Time(u64::MAX)
        };
        match lanes.iter_mut().find(|(free, _)| *free <= start) {
            Some((free, lane)) => {
                lane.push(task);
                *free = end;
            }
            None => lanes.push((end, vec![task])),
        }
    }
    lanes.into_iter().map(|(_, lane)| lane).collect()
}

#[cfg(test)]
mod tests;
