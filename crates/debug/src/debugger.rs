//! A session with what it stops at: breakpoints, watched bytes, caught faults.

use crate::expression::{Expression, Value};
use crate::place::{self, Names, Place, Selection};
use crate::session::Session;
use crate::tensor::Tensor;
use crate::touches::{Bytes, Kind, Touches};
use chipless::suggest;
use chipless_model::{Fault, QueueId, TaskId};
use chipless_report::deadlock;
use chipless_sim::{NonfiniteKind, Stop as End, nonfinite_of};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

mod evaluate;

/// Why the debugger stands where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A breakpoint.
    Breakpoint,
    /// It went as far as it was told to.
    Step,
    /// The next task touches watched bytes.
    Watch,
    /// A NaN, an infinity, a fault or a deadlock.
    Catch,
    /// The end of the run.
    End,
    /// The start of the run.
    Start,
    /// Somebody asked it to.
    Interrupt,
}

impl Reason {
    /// As JSON has it.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Breakpoint => "breakpoint",
            Reason::Step => "step",
            Reason::Watch => "watch",
            Reason::Catch => "catch",
            Reason::End => "end",
            Reason::Start => "start",
            Reason::Interrupt => "interrupt",
        }
    }
}

/// A stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Why.
    pub reason: Reason,
    /// More about it; may be empty.
    pub detail: String,
    /// Numbers of the breakpoints.
    pub breakpoints: Vec<u32>,
}

impl Stop {
    fn new(reason: Reason, detail: impl Into<String>) -> Stop {
        Stop {
            reason,
            detail: detail.into(),
            breakpoints: Vec::new(),
        }
    }
}

/// What can be caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Catch {
    /// A task that writes a NaN.
    Nan,
    /// A task that writes an infinity.
    Inf,
    /// A task that cannot be executed.
    Fault,
    /// Nothing can move and work is left.
    Deadlock,
}

impl Catch {
    /// All of them.
    pub const ALL: [Catch; 4] = [Catch::Nan, Catch::Inf, Catch::Fault, Catch::Deadlock];

    /// As commands name it.
    pub const fn name(self) -> &'static str {
        match self {
            Catch::Nan => "nan",
            Catch::Inf => "inf",
            Catch::Fault => "fault",
            Catch::Deadlock => "deadlock",
        }
    }
}

/// Something to stop at.
#[derive(Clone, Debug)]
pub struct Breakpoint {
    /// As it was given.
    pub text: String,
    /// Whether it goes away when it is hit.
    pub temporary: bool,
    /// How often it was hit.
    pub hits: u64,
    /// What the next task does when it stops there.
    pub watches: Option<Kind>,
    /// The effects before which it stops.
    effects: Vec<usize>,
    condition: Option<Expression>,
}

impl Breakpoint {
    /// Whether it stops before this effect, if its condition holds.
    pub fn stops_at(&self, effect: usize) -> bool {
        self.effects.binary_search(&effect).is_ok()
    }
}

/// A session that stops.
pub struct Debugger<'p, 'a> {
    /// The run.
    pub session: Session<'p, 'a>,
    names: Names,
    touches: OnceCell<Touches>,
    breakpoints: BTreeMap<u32, Breakpoint>,
    catches: BTreeMap<Catch, u32>,
    numbers: u32,
    /// Whether nothing has been reported here yet: a breakpoint on the first task stops there once.
    is_fresh: bool,
    /// The effect before which a NaN or infinity was reported: to go on is to let it happen.
    passed: Option<usize>,
    last: Stop,
}

impl<'p, 'a> Debugger<'p, 'a> {
    /// At the start of a session.
    pub fn new(session: Session<'p, 'a>) -> Debugger<'p, 'a> {
        let names = Names::of(session.program());
        Debugger {
            session,
            names,
            touches: OnceCell::new(),
            breakpoints: BTreeMap::new(),
            catches: BTreeMap::new(),
            numbers: 0,
            is_fresh: true,
            passed: None,
            last: Stop::new(Reason::Start, ""),
        }
    }

    /// The last stop.
    pub const fn last(&self) -> &Stop {
        &self.last
    }

    /// Back to the start, as if nothing had run. Breakpoints stay.
    pub fn restart(&mut self) -> Stop {
        let _ = self.session.goto(0);
        self.is_fresh = true;
        self.passed = None;
        self.stop(Stop::new(Reason::Start, ""))
    }

    pub(crate) fn touches(&self) -> &Touches {
        self.touches
            .get_or_init(|| Touches::of(self.session.program(), &self.session.timeline().order))
    }

    /// A task by name.
    ///
    /// # Errors
    /// No task has it.
    pub fn task(&self, name: &str) -> Result<TaskId, String> {
        let program = self.session.program();
        self.names.task(program, name).ok_or_else(|| {
            let (queue, index) = name.split_at(name.find('[').unwrap_or(name.len()));
            let queues: Vec<&str> = program.queues.iter().map(|q| &*q.name).collect();
            if queues.contains(&queue) {
                let tasks = program
                    .tasks
                    .iter()
                    .filter(|t| program.queues[t.queue].name == queue);
                let last = tasks.count().saturating_sub(1);
                return format!("expected a task {queue}[0] to {queue}[{last}], found \"{name}\"");
            }
            let hint = place::hint(queue, queues.iter().copied(), index);
            let example = program
                .tasks
                .indices()
                .next()
                .map(|task| program.task_name(task));
            format!(
                "expected a task such as {}, found \"{name}\"{hint}; `list` shows them",
                example.unwrap_or_default()
            )
        })
    }

    /// A place that is all of a text.
    ///
    /// # Errors
    /// It is none.
    pub fn place(&self, text: &str) -> Result<Place, String> {
        match self.names.place(self.session.program(), text.trim())? {
            Some((place, rest)) if rest.trim().is_empty() => Ok(place),
            _ => Err(self.names.unknown(self.session.program(), text)),
        }
    }

    /// How a place is written.
    pub fn text_of(&self, place: &Place) -> String {
        place::text(self.session.program(), place)
    }

    /// Where a place is, and how it is read.
    pub fn select(&self, place: &Place) -> Selection {
        place::select(&self.session, self.touches(), place)
    }

    /// A place as a tensor.
    ///
    /// # Errors
    /// Bytes beyond the buffer.
    pub fn read(&self, place: &Place) -> Result<Tensor, String> {
        place::read(&self.session, &self.select(place))
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// It cannot be read, or does not fit together.
    pub fn evaluate(&self, text: &str) -> Result<Value, String> {
        self.value(&self.parse(text)?)
    }

    /// An expression that has been read, to be [evaluated](Debugger::value) whenever the debugger stands somewhere.
    ///
    /// # Errors
    /// What was expected, and what was found.
    pub fn parse(&self, text: &str) -> Result<Expression, String> {
        Expression::parse(&self.names, self.session.program(), text)
    }

    /// The effects that touch a place, among those of these numbers.
    pub fn touching(
        &self,
        bytes: &Bytes,
        kind: Kind,
        within: std::ops::Range<usize>,
    ) -> Vec<usize> {
        let (program, order) = (self.session.program(), &self.session.timeline().order);
        let found = self.touches().find(program, order, bytes, kind, within);
        let found: BTreeSet<usize> = found.collect();
        found.into_iter().collect()
    }

    /// Breakpoints by number.
    pub const fn breakpoints(&self) -> &BTreeMap<u32, Breakpoint> {
        &self.breakpoints
    }

    /// What is caught, each under its number.
    pub const fn catches(&self) -> &BTreeMap<Catch, u32> {
        &self.catches
    }

    /// Stops before the tasks of a name, operation or layer, where the condition holds. Returns the number of the breakpoint.
    ///
    /// # Errors
    /// Nothing has the name; the condition cannot be read.
    pub fn add_break(
        &mut self,
        target: &str,
        condition: Option<&str>,
        temporary: bool,
    ) -> Result<u32, String> {
        let effects = self.effects_of(target.trim())?;
        self.add(target.trim(), effects, condition, temporary, None)
    }

    /// Stops before these tasks.
    ///
    /// # Errors
    /// The condition cannot be read.
    pub fn add_break_on(
        &mut self,
        text: &str,
        tasks: &[TaskId],
        condition: Option<&str>,
    ) -> Result<u32, String> {
        let mut effects: Vec<usize> = tasks
            .iter()
            .filter_map(|task| self.session.effect_of(*task))
            .collect();
        effects.sort_unstable();
        self.add(text, effects, condition, false, None)
    }

    /// Stops before the tasks that touch a place.
    ///
    /// # Errors
    /// There is no such place; the condition cannot be read.
    pub fn add_watch(
        &mut self,
        text: &str,
        kind: Kind,
        condition: Option<&str>,
    ) -> Result<u32, String> {
        let place = self.place(text)?;
        let bytes = self.select(&place).bytes();
        let effects = self.touching(&bytes, kind, 0..self.session.effects());
        let text = format!("{} {}", self.text_of(&place), kind.name());
        self.add(&text, effects, condition, false, Some(kind))
    }

    /// Stops at faults of this kind.
    pub fn add_catch(&mut self, catch: Catch) -> u32 {
        let next = self.numbers + 1;
        let number = *self.catches.entry(catch).or_insert(next);
        self.numbers = self.numbers.max(number);
        number
    }

    fn add(
        &mut self,
        text: &str,
        effects: Vec<usize>,
        condition: Option<&str>,
        temporary: bool,
        watches: Option<Kind>,
    ) -> Result<u32, String> {
        let parsed = condition
            .map(|condition| {
                let parsed = self.parse(condition)?;
                match self.value(&parsed)? {
                    Value::Bool(_) | Value::Number(_) => Ok(parsed),
                    other => Err(format!("expected a comparison, found {}", other.text())),
                }
            })
            .transpose()?;
        self.numbers += 1;
        let text = match condition {
            Some(condition) => format!("{text} if {}", condition.trim()),
            None => text.to_owned(),
        };
        let breakpoint = Breakpoint {
            text,
            temporary,
            hits: 0,
            watches,
            effects,
            condition: parsed,
        };
        self.breakpoints.insert(self.numbers, breakpoint);
        Ok(self.numbers)
    }

    /// Takes a breakpoint, watchpoint or catchpoint away. Returns whether there was one of this number.
    pub fn remove(&mut self, number: u32) -> bool {
        let caught = self.catches.len();
        self.catches.retain(|_, own| *own != number);
        self.breakpoints.remove(&number).is_some() || self.catches.len() < caught
    }

    /// The effects that a breakpoint on this text stops before: one task, all tasks of an operation, or the first of a layer.
    fn effects_of(&self, target: &str) -> Result<Vec<usize>, String> {
        let program = self.session.program();
        if let Some(name) = target.strip_prefix("layer:") {
            let layers = self.layers();
            return layers
                .get(name)
                .map(|(first, _)| vec![*first])
                .ok_or_else(|| {
                    let hint = suggest::hint(name, layers.keys().copied());
                    format!("expected a layer, found \"{name}\"{hint}; `info layers` shows them")
                });
        }
        if let Some(task) = self.names.task(program, target) {
            return Ok(self.session.effect_of(task).into_iter().collect());
        }
        let is_meant = |task: &TaskId| program.kernel(*task).operation() == target;
        let mut operations = program.tasks.indices();
        if operations.any(|task| is_meant(&task)) {
            let order = self.session.timeline().order.iter().enumerate();
            return Ok(order
                .filter(|(_, task)| is_meant(task))
                .map(|(at, _)| at)
                .collect());
        }
        let no_task = self.task(target).err().unwrap_or_default();
        if target.ends_with(']') {
            return Err(no_task);
        }
        let names: BTreeSet<String> = program
            .tasks
            .indices()
            .map(|task| program.kernel(task).operation().into_owned())
            .collect();
        let hint = suggest::hint(target, names.iter().map(String::as_str));
        Err(format!(
            "expected a task, an operation or layer:NAME, found \"{target}\"{hint}"
        ))
    }

    /// The layers of the program in the order of their names, each with the first and the last of its effects.
    pub fn layers(&self) -> BTreeMap<&'p str, (usize, usize)> {
        let program = self.session.program();
        let mut layers: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (effect, task) in self.session.timeline().order.iter().enumerate() {
            if let Some(layer) = program.layer(*task) {
                layers.entry(layer).or_insert((effect, effect)).1 = effect;
            }
        }
        layers
    }

    /// What would stop here has been seen: to step is to leave it.
    pub const fn seen(&mut self) {
        self.is_fresh = false;
    }

    /// Goes on to the next stop.
    pub fn go(&mut self, interrupt: &AtomicBool) -> Stop {
        self.run_to(self.session.effects(), Reason::End, interrupt)
    }

    /// Goes forward to an effect, or to a stop before it.
    pub fn run_to(&mut self, target: usize, reason: Reason, interrupt: &AtomicBool) -> Stop {
        if self.is_fresh {
            self.is_fresh = false;
            if let Some(stop) = self.hit() {
                return stop;
            }
        }
        let target = target.min(self.session.effects());
        while self.session.at() < target {
            if interrupt.swap(false, Ordering::Relaxed) {
                return self.stop(Stop::new(Reason::Interrupt, ""));
            }
            if let Err(stop) = self.execute() {
                return self.stop(stop);
            }
            if let Some(stop) = self.hit() {
                return stop;
            }
        }
        if self.session.current().is_none() {
            return self.stop(self.at_end());
        }
        self.stop(Stop::new(reason, ""))
    }

    /// Goes back to an effect, or to a stop behind it.
    pub fn run_back_to(&mut self, target: usize, reason: Reason, interrupt: &AtomicBool) -> Stop {
        self.is_fresh = false;
        self.passed = None;
        while self.session.at() > target {
            if interrupt.swap(false, Ordering::Relaxed) {
                return self.stop(Stop::new(Reason::Interrupt, ""));
            }
            let before = self.session.at() - 1;
            let caught = self.caught(before);
            self.session.back();
            if let Some(detail) = caught {
                self.passed = Some(before);
                return self.stop(Stop::new(Reason::Catch, detail));
            }
            if let Some(stop) = self.hit() {
                return stop;
            }
        }
        let is_start = self.session.at() == 0;
        self.stop(Stop::new(if is_start { Reason::Start } else { reason }, ""))
    }

    /// Goes to the moment before an effect, past everything that would stop.
    pub fn goto(&mut self, effect: usize) -> Stop {
        self.is_fresh = false;
        self.passed = None;
        if let Err(fault) = self.session.goto(effect) {
            let stop = self.fault(&fault);
            return self.stop(stop);
        }
        let reason = match self.session.at() {
            0 => Reason::Start,
            at if at == self.session.effects() => return self.stop(self.at_end()),
            _ => Reason::Step,
        };
        self.stop(Stop::new(reason, ""))
    }

    fn stop(&mut self, stop: Stop) -> Stop {
        self.last = stop.clone();
        stop
    }

    /// Lets the next effect happen; it is taken back if it leaves something that is caught.
    fn execute(&mut self) -> Result<(), Stop> {
        let effect = self.session.at();
        self.session.forward().map_err(|fault| self.fault(&fault))?;
        if self.passed.take() != Some(effect)
            && let Some(detail) = self.caught(effect)
        {
            self.session.back();
            self.passed = Some(effect);
            return Err(Stop::new(Reason::Catch, detail));
        }
        Ok(())
    }

    /// What the effect that has just happened left and is caught.
    fn caught(&self, effect: usize) -> Option<String> {
        let kinds = [
            (Catch::Nan, NonfiniteKind::Nan),
            (Catch::Inf, NonfiniteKind::Infinity),
        ];
        let (program, task) = (self.session.program(), self.session.task(effect)?);
        kinds.into_iter().find_map(|(catch, kind)| {
            self.catches.get(&catch)?;
            let found = nonfinite_of(program, task, self.session.storage(), kind)?;
            Some(format!(
                "{} writes {} ({}) at {}+{:#x}",
                program.task_name(task),
                match catch {
                    Catch::Nan => "a NaN",
                    _ => "an infinity",
                },
                found.element,
                program.buffers[found.buffer].name,
                found.byte
            ))
        })
    }

    fn fault(&self, fault: &Fault) -> Stop {
        let program = self.session.program();
        let task = self.session.current().map(|task| program.task_name(task));
        let word = if fault.unsupported {
            "not supported"
        } else {
            "fault"
        };
        Stop::new(
            Reason::Catch,
            format!("{word} in {}: {}", task.unwrap_or_default(), fault.message),
        )
    }

    /// What the end of the run is.
    fn at_end(&self) -> Stop {
        let program = self.session.program();
        match self.session.end() {
            None => Stop::new(Reason::End, "the program is done"),
            Some(End::Fault { task, fault }) => Stop::new(
                Reason::Catch,
                format!("fault in {}: {}", program.task_name(*task), fault.message),
            ),
            Some(End::Deadlock(deadlock)) => {
                let report = deadlock::report(program, deadlock);
                let waits = report.stuck.iter().map(|stuck| {
                    let on: Vec<String> = stuck
                        .waits
                        .iter()
                        .map(|w| format!("{} ({})", w.sync, w.state))
                        .collect();
                    let by = if stuck.missing.is_empty() {
                        "no task is left that would signal it".to_owned()
                    } else {
                        format!("should be signalled by {}", stuck.missing.join(", "))
                    };
                    format!("{} waits for {}, {by}", stuck.task, on.join(" and "))
                });
                let waits: Vec<String> = waits.collect();
                let reason = if self.catches.contains_key(&Catch::Deadlock) {
                    Reason::Catch
                } else {
                    Reason::End
                };
                Stop::new(reason, format!("deadlock: {}", waits.join("; ")))
            }
        }
    }

    /// Whether a breakpoint stops before the effect that comes next. Conditions that cannot be evaluated there stop as well, and say why.
    fn hit(&mut self) -> Option<Stop> {
        let at = self.session.at();
        let mut hits: Vec<(u32, Option<String>)> = Vec::new();
        for (number, breakpoint) in &self.breakpoints {
            if !breakpoint.stops_at(at) {
                continue;
            }
            match breakpoint.condition.as_ref().map(|c| self.value(c)) {
                None | Some(Ok(Value::Bool(true))) => hits.push((*number, None)),
                Some(Ok(Value::Number(n))) if n != 0.0 => hits.push((*number, None)),
                Some(Ok(_)) => {}
                Some(Err(error)) => hits.push((*number, Some(error))),
            }
        }
        let mut details = Vec::new();
        let mut reason = Reason::Watch;
        for (number, error) in &hits {
            let Some(breakpoint) = self.breakpoints.get_mut(number) else {
                continue;
            };
            breakpoint.hits += 1;
            let kind = if breakpoint.watches.is_some() {
                "watchpoint"
            } else {
                reason = Reason::Breakpoint;
                "breakpoint"
            };
            let error = error.as_ref().map(|e| format!(" ({e})"));
            details.push(format!(
                "{kind} {number}: {}{}",
                breakpoint.text,
                error.unwrap_or_default()
            ));
            if breakpoint.temporary {
                self.breakpoints.remove(number);
            }
        }
        if hits.is_empty() {
            return None;
        }
        let stop = Stop {
            reason,
            detail: details.join("; "),
            breakpoints: hits.into_iter().map(|(number, _)| number).collect(),
        };
        Some(self.stop(stop))
    }

    /// The effect that `count` effects of a queue lead to: the next of its own behind them, or the end.
    pub fn after(&self, queue: QueueId, count: usize) -> usize {
        let mut at = self.session.at();
        for _ in 0..count {
            match self.session.next_of(queue, at) {
                Some(effect) => at = effect + 1,
                None => return self.session.effects(),
            }
        }
        self.session
            .next_of(queue, at)
            .unwrap_or(self.session.effects())
    }

    /// The effect of a queue that lies `count` of its effects back, or the start.
    pub fn before(&self, queue: QueueId, count: usize) -> usize {
        let mut at = self.session.at();
        for _ in 0..count {
            match self.session.previous_of(queue, at) {
                Some(effect) => at = effect,
                None => return 0,
            }
        }
        at
    }
}
