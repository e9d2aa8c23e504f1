//! What changed between two programs of one target, by meaning: tasks are matched by what they do and where their data come from, not
//! by address or order.
//!
//! Names of builds, dates, addresses that only moved and numbers of semaphores do not count. A task that reads what another task wrote
//! is the same as its match when it reads the same part of what the other's match wrote.

mod flow;
mod meaning;
mod time;

use chipless_model::{BufferId, Port, Program, Role, SyncId, TaskId};
use chipless_sim::Timeline;
use flow::Flow;
use meaning::Meaning;
use rustc_hash::FxHashMap;
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};

pub use time::{Contribution, TimeDifference, time};

/// What differs.
#[derive(Debug, Serialize)]
pub struct Difference {
    /// Whether the two mean the same.
    pub equal: bool,
    /// Inputs and outputs that differ, a line each.
    pub interface: Vec<String>,
    /// Tasks.
    pub tasks: Tasks,
    /// Constants that matched tasks read and that hold other bytes.
    pub constants: Vec<Constant>,
    /// Peaks of live bytes.
    pub memory: Vec<Peak>,
}

/// Tasks that were matched, and those that were not.
#[derive(Debug, Serialize)]
pub struct Tasks {
    /// Pairs.
    pub matched: usize,
    /// Pairs that differ in address, queue or order only.
    pub moved: usize,
    /// Names in the second program.
    pub added: Vec<String>,
    /// Names in the first one.
    pub removed: Vec<String>,
    /// Pairs that do not mean the same.
    pub changed: Vec<Changed>,
}

/// A pair of tasks that do not mean the same.
#[derive(Debug, Serialize)]
pub struct Changed {
    /// Name in the first program.
    pub a: String,
    /// Name in the second one.
    pub b: String,
    /// Operation in the first program.
    pub operation: String,
    /// `operation`, `shape`, `access`, `waits`, `signals`, `constant`, `parameters`.
    pub what: Vec<&'static str>,
}

/// A constant with other bytes.
#[derive(Debug, Serialize)]
pub struct Constant {
    /// Buffer in the first program.
    pub a: String,
    /// Buffer in the second one.
    pub b: String,
    /// How many bytes differ, of those that the tasks read.
    pub bytes_changed: u64,
}

/// Most live bytes of a memory at a time.
#[derive(Debug, Serialize)]
pub struct Peak {
    /// Its name.
    pub memory: String,
    /// In the first program; null where it has no such memory.
    pub peak_a: Option<u64>,
    /// In the second one.
    pub peak_b: Option<u64>,
}

/// One of the two programs, with a run of it for the order in which its tasks write.
#[derive(Clone, Copy, Debug)]
pub struct Side<'s, 'a> {
    /// The program.
    pub program: &'s Program<'a>,
    /// A run of it.
    pub timeline: &'s Timeline,
}

/// Compares two programs.
pub fn diff(a: Side<'_, '_>, b: Side<'_, '_>) -> Difference {
    let pairs = Pairs::of(a.program, b.program);
    let (flow_a, flow_b) = (Flow::of(a), Flow::of(b));
    let mut syncs = SyncMap::default();
    let mut constants: FxHashMap<(BufferId, BufferId), u64> = FxHashMap::default();
    let (mut changed, mut moved) = (Vec::new(), 0);
    for &(x, y) in &pairs.matched {
        let mut what = pairs.a[&x].differences(&pairs.b[&y]);
        if !flow::same(&flow_a, x, &flow_b, y, &pairs.partner) {
            what.push("access");
        }
        if !syncs.waits_agree(a.program, x, b.program, y) {
            what.push("waits");
        }
        if !syncs.signals_agree(a.program, x, b.program, y) {
            what.push("signals");
        }
        let other = flow::constants(a.program, x, b.program, y);
        if !other.is_empty() {
            what.push("constant");
        }
        for (buffers, bytes) in other {
            *constants.entry(buffers).or_default() += bytes;
        }
        what.sort_unstable();
        what.dedup();
        if !what.is_empty() {
            changed.push(Changed {
                a: a.program.task_name(x),
                b: b.program.task_name(y),
                operation: a.program.kernel(x).operation().into_owned(),
                what,
            });
        } else if flow::moved(a.program, x, b.program, y) {
            moved += 1;
        }
    }
    let interface = interface(a.program, b.program);
    let names = |program: &Program<'_>, tasks: &[TaskId]| {
        tasks
            .iter()
            .map(|t| program.task_name(*t))
            .collect::<Vec<_>>()
    };
    let tasks = Tasks {
        matched: pairs.matched.len(),
        moved,
        added: names(b.program, &pairs.added),
        removed: names(a.program, &pairs.removed),
        changed,
    };
    let mut constants: Vec<_> = constants.into_iter().collect();
    constants.sort_unstable();
    Difference {
        equal: interface.is_empty()
            && tasks.added.is_empty()
            && tasks.removed.is_empty()
            && tasks.changed.is_empty(),
        interface,
        tasks,
        constants: constants
            .into_iter()
            .map(|((x, y), bytes_changed)| Constant {
                a: a.program.buffers[x].name.clone(),
                b: b.program.buffers[y].name.clone(),
                bytes_changed,
            })
            .collect(),
        memory: peaks(a, b),
    }
}

/// Which task of the one program is which of the other.
struct Pairs {
    a: FxHashMap<TaskId, Meaning>,
    b: FxHashMap<TaskId, Meaning>,
    /// In the first program's order.
    matched: Vec<(TaskId, TaskId)>,
    partner: FxHashMap<TaskId, TaskId>,
    added: Vec<TaskId>,
    removed: Vec<TaskId>,
}

impl Pairs {
    fn of(a: &Program<'_>, b: &Program<'_>) -> Pairs {
        let meanings = |program: &Program<'_>| {
            let tasks = program.tasks.indices();
            tasks
                .map(|t| (t, Meaning::of(program, t)))
                .collect::<FxHashMap<_, _>>()
        };
        let mut pairs = Pairs {
            a: meanings(a),
            b: meanings(b),
            matched: Vec::new(),
            partner: FxHashMap::default(),
            added: Vec::new(),
            removed: Vec::new(),
        };
        let (queues_a, mut queues_b) = (by_queue(a), by_queue(b));
        for (name, tasks_a) in queues_a {
            let at = queues_b.iter().position(|(other, _)| *other == name);
            let tasks_b = at.map(|at| queues_b.swap_remove(at).1).unwrap_or_default();
            pairs.align(&tasks_a, &tasks_b);
        }
        for (_, tasks) in queues_b {
            pairs.added.extend(tasks);
        }
        pairs.across_queues();
        pairs.matched.sort_unstable();
        pairs.partner = pairs.matched.iter().copied().collect();
        pairs.added.sort_unstable();
        pairs.removed.sort_unstable();
        pairs
    }

    /// Matches the tasks of a queue: those that mean the same in order, then, between them, those of one operation.
    fn align(&mut self, a: &[TaskId], b: &[TaskId]) {
        let hashes_a: Vec<u64> = a.iter().map(|t| self.a[t].hash).collect();
        let hashes_b: Vec<u64> = b.iter().map(|t| self.b[t].hash).collect();
        for op in capture_diff_slices(Algorithm::Myers, &hashes_a, &hashes_b) {
            match op {
                DiffOp::Equal {
                    old_index,
                    new_index,
                    len,
                } => {
                    let same = a[old_index..][..len].iter().zip(&b[new_index..][..len]);
                    self.matched.extend(same.map(|(x, y)| (*x, *y)));
                }
                DiffOp::Delete {
                    old_index, old_len, ..
                } => {
                    self.removed.extend(&a[old_index..][..old_len]);
                }
                DiffOp::Insert {
                    new_index, new_len, ..
                } => {
                    self.added.extend(&b[new_index..][..new_len]);
                }
                DiffOp::Replace {
                    old_index,
                    old_len,
                    new_index,
                    new_len,
                } => {
                    self.replace(&a[old_index..][..old_len], &b[new_index..][..new_len]);
                }
            }
        }
    }

    fn replace(&mut self, a: &[TaskId], b: &[TaskId]) {
        if a.len() == b.len() {
            self.matched
                .extend(a.iter().copied().zip(b.iter().copied()));
            return;
        }
        let mut left = b.to_vec();
        for &x in a {
            let like = left
                .iter()
                .position(|y| self.b[y].operation == self.a[&x].operation);
            match like {
                Some(at) => self.matched.push((x, left.remove(at))),
                None => self.removed.push(x),
            }
        }
        self.added.extend(left);
    }

    /// Tasks that another queue has now.
    fn across_queues(&mut self) {
        let mut by_hash: FxHashMap<u64, Vec<TaskId>> = FxHashMap::default();
        for task in self.added.iter().rev() {
            by_hash.entry(self.b[task].hash).or_default().push(*task);
        }
        let (removed, mut found) = (std::mem::take(&mut self.removed), Vec::new());
        for task in removed {
            match by_hash.get_mut(&self.a[&task].hash).and_then(Vec::pop) {
                Some(other) => found.push((task, other)),
                None => self.removed.push(task),
            }
        }
        self.added
            .retain(|task| !found.iter().any(|(_, other)| other == task));
        self.matched.extend(found);
    }
}

/// Tasks of each queue in order.
fn by_queue<'p>(program: &'p Program<'_>) -> Vec<(&'p str, Vec<TaskId>)> {
    let mut queues: Vec<(&str, Vec<TaskId>)> = program
        .queues
        .iter()
        .map(|q| (&*q.name, Vec::new()))
        .collect();
    for (task, t) in program.tasks.iter_enumerated() {
        queues[t.queue.index()].1.push(task);
    }
    queues
}

/// Which semaphore or barrier of the one program is which of the other, as their first users say.
#[derive(Default)]
struct SyncMap {
    of: FxHashMap<SyncId, SyncId>,
    back: FxHashMap<SyncId, SyncId>,
}

impl SyncMap {
    fn agree(&mut self, a: SyncId, b: SyncId) -> bool {
        let forth = *self.of.entry(a).or_insert(b) == b;
        let back = *self.back.entry(b).or_insert(a) == a;
        forth && back
    }

    fn waits_agree(&mut self, a: &Program<'_>, x: TaskId, b: &Program<'_>, y: TaskId) -> bool {
        let (a, b) = (a.waits(x), b.waits(y));
        a.len() == b.len()
            && a.iter()
                .zip(b)
                .all(|(v, w)| v.condition == w.condition && self.agree(v.sync, w.sync))
    }

    fn signals_agree(&mut self, a: &Program<'_>, x: TaskId, b: &Program<'_>, y: TaskId) -> bool {
        use chipless_model::Action::{Add, Configure, Consume, Produce, Release};
        let (p, q) = (a.signals(x), b.signals(y));
        p.len() == q.len()
            && p.iter().zip(q).all(|(v, w)| {
                v.moment == w.moment
                    && match (v.action, w.action) {
                        (Add(s, n), Add(t, m)) => n == m && self.agree(s, t),
                        (Consume(s), Consume(t)) | (Produce(s), Produce(t)) => self.agree(s, t),
                        (Configure(c), Configure(d)) => {
                            let (c, d) = (&a.configurations[c], &b.configurations[d]);
                            (c.producers, c.consumers) == (d.producers, d.consumers)
                                && self.agree(c.barrier, d.barrier)
                        }
                        (Release(_), Release(_)) => true,
                        _ => false,
                    }
            })
    }
}

fn interface(a: &Program<'_>, b: &Program<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let ports = [
        ("input", &a.interface.inputs, &b.interface.inputs),
        ("output", &a.interface.outputs, &b.interface.outputs),
    ];
    for (kind, a, b) in ports {
        for port in a {
            match b.iter().find(|other| other.name == port.name) {
                None => lines.push(format!("{kind} {} is gone", port.name)),
                Some(other) if said(other) != said(port) => lines.push(format!(
                    "{kind} {}: {}, was {}",
                    port.name,
                    said(other),
                    said(port)
                )),
                Some(_) => {}
            }
        }
        let new = b
            .iter()
            .filter(|port| !a.iter().any(|old| old.name == port.name));
        lines.extend(new.map(|port| format!("{kind} {} is new", port.name)));
    }
    lines
}

fn said(port: &Port) -> String {
    let shape: Vec<String> = port.shape.iter().map(u64::to_string).collect();
    format!("{} [{}]", port.element.name(), shape.join(", "))
}

fn peaks(a: Side<'_, '_>, b: Side<'_, '_>) -> Vec<Peak> {
    let peaks = |side: Side<'_, '_>| {
        let levels = crate::attribution::lives(side.program, side.timeline).levels();
        let named = levels.iter_enumerated().map(|(memory, levels)| {
            let peak = levels.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
            (side.program.memories[memory].name.clone(), peak)
        });
        named.collect::<Vec<_>>()
    };
    let (mut rows, b) = (Vec::new(), peaks(b));
    for (memory, peak) in peaks(a) {
        let peak_b = b
            .iter()
            .find(|(name, _)| *name == memory)
            .map(|(_, peak)| *peak);
        rows.push(Peak {
            memory,
            peak_a: Some(peak),
            peak_b,
        });
    }
    for (memory, peak) in b {
        if !rows.iter().any(|row: &Peak| row.memory == memory) {
            rows.push(Peak {
                memory,
                peak_a: None,
                peak_b: Some(peak),
            });
        }
    }
    rows
}

/// Whether a buffer is one whose bytes come from outside the program, so that its offsets mean something by themselves.
fn is_outside(role: Role) -> bool {
    matches!(role, Role::Input | Role::Output | Role::State)
}
