//! Which task of the one program is which of the other.
//!
//! Every task has a number for what it does. Numbers are refined by where its data come from and where they go, round by round (the
//! refinement of Weisfeiler and Leman); tasks are matched by the finest numbers first, those of one number in order. What is left is
//! aligned between its matched neighbours on its queue.

use super::Side;
use super::flow::{Flow, Maker, constant_hash};
use super::meaning::{Meaning, hash};
use chipless_model::{IndexVec, Program, TaskId};
use rustc_hash::FxHashMap;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::collections::BTreeMap;

/// Rounds of refinement: how far around itself a task is looked at.
const ROUNDS: usize = 4;
/// Tasks of both sides that are aligned exactly, as a product; longer stretches are aligned greedily.
const EXACT: usize = 1 << 22;

/// A program as far as its tasks are compared.
pub(super) struct Described<'s, 'a> {
    pub(super) program: &'s Program<'a>,
    pub(super) meanings: IndexVec<TaskId, Meaning>,
    pub(super) flow: Flow,
    /// Numbers of the tasks, the finest first; the last are those of the tasks by themselves.
    numbers: Vec<IndexVec<TaskId, u64>>,
}

impl<'s, 'a> Described<'s, 'a> {
    pub(super) fn of(side: Side<'s, 'a>) -> Described<'s, 'a> {
        let Side { program, order, .. } = side;
        let tasks = program.tasks.indices();
        let meanings: IndexVec<TaskId, Meaning> =
            tasks.map(|task| Meaning::of(program, task)).collect();
        let flow = Flow::of(program, order);
        let plain: IndexVec<TaskId, u64> = meanings.iter().map(Meaning::hash).collect();
        let mut of_kernel: FxHashMap<u32, u64> = FxHashMap::default();
        let mut fine: IndexVec<TaskId, u64> = program
            .tasks
            .indices()
            .map(|task| {
                let kernel = program.tasks[task].kernel.raw();
                let read = *of_kernel
                    .entry(kernel)
                    .or_insert_with(|| constant_hash(program, task));
                let read = if flow.describes(task) { 0 } else { read };
                hash(&(plain[task], read, flow.given(task)))
            })
            .collect();
        let mut numbers = vec![plain, fine.clone()];
        for _ in 0..ROUNDS {
            fine = refine(&flow, &fine);
            numbers.push(fine.clone());
        }
        let labelled = program.tasks.iter_enumerated();
        numbers.push(
            labelled
                .map(|(task, t)| hash(&(fine[task], &t.label)))
                .collect(),
        );
        numbers.reverse();
        Described {
            program,
            meanings,
            flow,
            numbers,
        }
    }

    fn plain(&self, task: TaskId) -> u64 {
        self.numbers.last().map_or(0, |plain| plain[task])
    }

    /// Place of a task in an order that both programs share: by queue, then by number in it.
    fn order(&self, task: TaskId) -> (&str, u32) {
        let t = &self.program.tasks[task];
        (&self.program.queues[t.queue].name, t.index)
    }
}

/// Numbers that say of each task also who makes what it reads, and who reads what it makes.
fn refine(flow: &Flow, numbers: &IndexVec<TaskId, u64>) -> IndexVec<TaskId, u64> {
    let mut refined: IndexVec<TaskId, u64> = numbers.clone();
    let mut readers: IndexVec<TaskId, u64> = numbers.iter().map(|_| 0).collect();
    for task in numbers.indices() {
        for source in flow.sources(task) {
            let maker = match source.maker {
                Maker::Task(maker) => {
                    // A sum, since readers come in no order.
                    let read = hash(&(numbers[task], source.places));
                    readers[maker] = readers[maker].wrapping_add(read);
                    hash(&numbers[maker])
                }
                outside @ Maker::Outside(..) => hash(&outside),
            };
            refined[task] = hash(&(refined[task], maker, source.places));
        }
    }
    for (number, readers) in refined.iter_mut().zip(&readers) {
        *number = hash(&(*number, *readers));
    }
    refined
}

/// A number for a task.
type Number = fn(&Described<'_, '_>, TaskId) -> u64;

/// The pairs, and what has none.
pub(super) struct Pairs {
    /// In the first program's order.
    pub(super) matched: Vec<(TaskId, TaskId)>,
    /// The second program's task for each of the first.
    pub(super) partner: IndexVec<TaskId, Option<TaskId>>,
    /// The first program's task for each of the second.
    back: IndexVec<TaskId, Option<TaskId>>,
    pub(super) added: Vec<TaskId>,
    pub(super) removed: Vec<TaskId>,
}

impl Pairs {
    pub(super) fn of(a: &Described<'_, '_>, b: &Described<'_, '_>) -> Pairs {
        let mut pairs = Pairs {
            matched: Vec::new(),
            partner: a.program.tasks.iter().map(|_| None).collect(),
            back: b.program.tasks.iter().map(|_| None).collect(),
            added: Vec::new(),
            removed: Vec::new(),
        };
        for (level, (x, y)) in a.numbers.iter().zip(&b.numbers).enumerate() {
            let is_plain = level + 1 == a.numbers.len();
            if !is_plain {
                pairs.by_number(a, x, b, y, true);
            }
        }
        pairs.by_neighbours(a, b);
        if let (Some(x), Some(y)) = (a.numbers.last(), b.numbers.last()) {
            pairs.by_number(a, x, b, y, false);
        }
        pairs.removed = unmatched(&pairs.partner);
        pairs.added = unmatched(&pairs.back);
        pairs.matched = pairs
            .partner
            .iter_enumerated()
            .filter_map(|(x, y)| Some((x, (*y)?)))
            .collect();
        pairs
    }

    fn pair(&mut self, x: TaskId, y: TaskId) {
        self.partner[x] = Some(y);
        self.back[y] = Some(x);
    }

    /// Matches what is left by number. `whole`: only numbers that as many tasks of the one program have as of the other.
    fn by_number(
        &mut self,
        a: &Described<'_, '_>,
        of_a: &IndexVec<TaskId, u64>,
        b: &Described<'_, '_>,
        of_b: &IndexVec<TaskId, u64>,
        whole: bool,
    ) {
        let group = |left: Vec<TaskId>, numbers: &IndexVec<TaskId, u64>| {
            let mut groups: BTreeMap<u64, Vec<TaskId>> = BTreeMap::new();
            for task in left {
                groups.entry(numbers[task]).or_default().push(task);
            }
            groups
        };
        let groups = group(unmatched(&self.partner), of_a);
        let mut others = group(unmatched(&self.back), of_b);
        for (number, mut tasks) in groups {
            let Some(mut other) = others.remove(&number) else {
                continue;
            };
            if whole && tasks.len() != other.len() {
                continue;
            }
            tasks.sort_by_key(|task| a.order(*task));
            other.sort_by_key(|task| b.order(*task));
            for (x, y) in tasks.into_iter().zip(other) {
                self.pair(x, y);
            }
        }
    }

    /// Matches what is left of each queue between its matched neighbours.
    fn by_neighbours(&mut self, a: &Described<'_, '_>, b: &Described<'_, '_>) {
        let mut queues_b: FxHashMap<&str, Vec<TaskId>> = by_queue(b.program).into_iter().collect();
        for (name, tasks_a) in by_queue(a.program) {
            let tasks_b = queues_b.remove(name).unwrap_or_default();
            let place: FxHashMap<TaskId, usize> =
                tasks_b.iter().enumerate().map(|(i, t)| (*t, i)).collect();
            let (mut from, mut first) = (0, 0);
            for end in 0..=tasks_a.len() {
                // The next task that is matched with one of the same queue, further on.
                let partner = tasks_a.get(end).map(|x| self.partner[*x]);
                let next = match partner {
                    None => Some(tasks_b.len()),
                    Some(partner) => partner
                        .and_then(|y| place.get(&y).copied())
                        .filter(|at| *at >= first),
                };
                let Some(next) = next else { continue };
                self.align(a, &tasks_a[from..end], b, &tasks_b[first..next]);
                (from, first) = (end + 1, (next + 1).min(tasks_b.len()));
            }
        }
    }

    /// Matches two stretches: tasks that mean the same in order, then, between them, those of one operation.
    fn align(
        &mut self,
        a: &Described<'_, '_>,
        of_a: &[TaskId],
        b: &Described<'_, '_>,
        of_b: &[TaskId],
    ) {
        let left = |tasks: &[TaskId], partners: &IndexVec<TaskId, Option<TaskId>>| {
            let free = tasks.iter().filter(|task| partners[**task].is_none());
            free.copied().collect::<Vec<_>>()
        };
        let (of_a, of_b) = (left(of_a, &self.partner), left(of_b, &self.back));
        if of_a.is_empty() || of_b.is_empty() {
            return;
        }
        if of_a.len().saturating_mul(of_b.len()) > EXACT {
            self.replace(a, &of_a, b, &of_b);
            return;
        }
        let hashes_a: Vec<u64> = of_a.iter().map(|t| a.plain(*t)).collect();
        let hashes_b: Vec<u64> = of_b.iter().map(|t| b.plain(*t)).collect();
        for op in capture_diff_slices(Algorithm::Myers, &hashes_a, &hashes_b) {
            let (old, new) = (op.old_range(), op.new_range());
            match op {
                DiffOp::Equal { .. } => {
                    for (x, y) in of_a[old].iter().zip(&of_b[new]) {
                        self.pair(*x, *y);
                    }
                }
                DiffOp::Replace { .. } => self.replace(a, &of_a[old], b, &of_b[new]),
                DiffOp::Delete { .. } | DiffOp::Insert { .. } => {}
            }
        }
    }

    /// Tasks that stand where others stood: those that mean the same first, then those of one operation, in order; as many as there were are
    /// each other's.
    fn replace(
        &mut self,
        a: &Described<'_, '_>,
        of_a: &[TaskId],
        b: &Described<'_, '_>,
        of_b: &[TaskId],
    ) {
        let rules: [(Number, bool); 3] = [
            (|d, task| d.plain(task), false),
            (|d, task| d.meanings[task].operation(), false),
            (|_, _| 0, true),
        ];
        for (number, only_as_many) in rules {
            let of_a = of_a.iter().filter(|x| self.partner[**x].is_none());
            let of_b = of_b.iter().filter(|y| self.back[**y].is_none());
            let (of_a, of_b): (Vec<_>, Vec<_>) = (of_a.copied().collect(), of_b.copied().collect());
            if only_as_many && of_a.len() != of_b.len() {
                return;
            }
            let mut like: FxHashMap<u64, Vec<TaskId>> = FxHashMap::default();
            for y in of_b.into_iter().rev() {
                like.entry(number(b, y)).or_default().push(y);
            }
            for x in of_a {
                if let Some(y) = like.get_mut(&number(a, x)).and_then(Vec::pop) {
                    self.pair(x, y);
                }
            }
        }
    }
}

fn unmatched(partners: &IndexVec<TaskId, Option<TaskId>>) -> Vec<TaskId> {
    let partners = partners.iter_enumerated();
    partners
        .filter(|(_, partner)| partner.is_none())
        .map(|(task, _)| task)
        .collect()
}

/// Tasks of each queue in order.
fn by_queue<'p>(program: &'p Program<'_>) -> Vec<(&'p str, Vec<TaskId>)> {
    let queues = program.queues.iter();
    let mut queues: Vec<(&str, Vec<TaskId>)> =
        queues.map(|queue| (&*queue.name, Vec::new())).collect();
    for (task, t) in program.tasks.iter_enumerated() {
        queues[t.queue.index()].1.push(task);
    }
    queues
}
