//! What nodes do to memory. A node is a list of actions; loops and strided subgraphs hold the actions of their bodies.
//!
//! All arithmetic is in 64-bit integers, as the reference runtime has it: sums are not wrapped to the 32 bits of an
//! accumulator.

mod convolve;
mod elementwise;
mod gmac;
mod health;
mod matrix;
mod watch;
mod watched;

pub(crate) use convolve::Convolve;
pub(crate) use elementwise::{Elementwise, Function, Operand, Relation};
pub(crate) use gmac::Gmac;
pub use health::{Distances, Health, NodeHealth};
pub(crate) use matrix::{Bias, Matrix};
pub(crate) use watch::{Unwatched, Watch};
pub(crate) use watched::{Scales, Watched};

use crate::fqir::tensor::{Move, Region, Tensor, at, load, load_all, saturate, shift, store};
use chipless_model::{Access, BufferId, Direction, Fault, Kernel, Storage};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// One effect.
#[derive(Debug)]
pub(crate) enum Action {
    /// Element by element, with broadcasting.
    Elementwise(Elementwise),
    /// A table, addressed by shifted and clipped elements.
    Lookup {
        x: Tensor,
        table: Tensor,
        out: Tensor,
        shift: i32,
        bits: u8,
        first: i64,
    },
    /// A matrix product.
    Matrix(Matrix),
    /// Products, shifted and summed.
    Gmac(Gmac),
    /// A convolution over frames and bands.
    Convolve(Convolve),
    /// A copy in another order.
    Move(Move),
    /// One value everywhere.
    Fill { out: Tensor, value: i64 },
    /// A sum over dimensions: for each output the elements at `inner`, `outer` says where they start.
    Sum {
        outer: Region,
        inner: Region,
        out: Tensor,
        shift: i32,
        bits: u8,
    },
    /// Reals to integers.
    Quantize {
        x: Tensor,
        out: Tensor,
        quanta: i32,
        bits: u8,
    },
    /// Integers to reals.
    Dequantize { x: Tensor, out: Tensor, quanta: i32 },
    /// A body, several times.
    Loop(Loop),
    /// A body, once in several steps.
    Strided(Strided),
    /// One of two bodies.
    Conditional(Conditional),
    /// The actions of a node, under observation.
    Watched(Box<Watched>),
}

/// A counted loop.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) iterations: u64,
    /// Before the first iteration.
    pub(crate) before: Vec<Action>,
    /// In each iteration before the body: moves whose source advances by so many elements, from the end where reversed.
    pub(crate) slices: Vec<(Move, u64, bool)>,
    pub(crate) body: Vec<Action>,
    /// After the body: moves whose target advances.
    pub(crate) concatenated: Vec<(Move, u64, bool)>,
    /// After that, for the next iteration.
    pub(crate) carried: Vec<Action>,
    /// After the last iteration.
    pub(crate) after: Vec<Action>,
}

/// A body that runs when a counter has a value; the counter goes round with each step.
#[derive(Debug)]
pub(crate) struct Strided {
    pub(crate) counter: Tensor,
    pub(crate) period: i64,
    pub(crate) phase: i64,
    pub(crate) body: Vec<Action>,
    pub(crate) otherwise: Vec<Action>,
}

/// Two bodies, of which the first element of a condition chooses one.
#[derive(Debug)]
pub(crate) struct Conditional {
    pub(crate) condition: Tensor,
    /// Where it is not zero.
    pub(crate) holds: Vec<Action>,
    pub(crate) otherwise: Vec<Action>,
}

impl Action {
    pub(crate) fn execute<W: Watch>(
        &self,
        storage: &mut Storage<'_>,
        watch: &mut W,
    ) -> Result<(), Fault> {
        match self {
            Action::Elementwise(elementwise) => elementwise.execute(storage, watch),
            Action::Lookup {
                x,
                table,
                out,
                shift,
                bits,
                first,
            } => lookup(storage, x, table, out, (*shift, *bits, *first), watch)?,
            Action::Matrix(matrix) => matrix.execute(storage, watch),
            Action::Gmac(gmac) => gmac.execute(storage, watch),
            Action::Convolve(convolve) => convolve.execute(storage, watch),
            Action::Move(moved) => moved.execute(storage),
            Action::Fill { out, value } => {
                let values = vec![*value; out.count() as usize];
                store(storage.bytes_mut(out.buffer), out.element, 0, &values);
            }
            Action::Sum {
                outer,
                inner,
                out,
                shift,
                bits,
            } => sum(storage, outer, inner, out, (*shift, *bits), watch),
            Action::Quantize {
                x,
                out,
                quanta,
                bits,
            } => quantize(storage, x, out, (*quanta, *bits), watch)?,
            Action::Dequantize { x, out, quanta } => {
                let scale = 2f64.powi(*quanta);
                let values: Vec<u8> = load_all(storage, x)
                    .into_iter()
                    .flat_map(|v| (v as f64 * scale).to_le_bytes())
                    .collect();
                storage.bytes_mut(out.buffer)[..values.len()].copy_from_slice(&values);
            }
            Action::Loop(looped) => looped.execute(storage, watch)?,
            Action::Strided(strided) => strided.execute(storage, watch)?,
            Action::Conditional(conditional) => conditional.execute(storage, watch)?,
            Action::Watched(watched) => watched.execute(storage, watch)?,
        }
        Ok(())
    }

    /// Visits every byte that it may touch.
    pub(crate) fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        use Direction::{Read, Write};
        match self {
            Action::Elementwise(elementwise) => elementwise.accesses(visit),
            Action::Lookup { x, table, out, .. } => {
                visit(x.access(Read));
                visit(table.access(Read).may());
                visit(out.access(Write));
            }
            Action::Matrix(matrix) => matrix.accesses(visit),
            Action::Gmac(gmac) => gmac.accesses(visit),
            Action::Convolve(convolve) => convolve.accesses(visit),
            Action::Move(Move { from, to }) => {
                visit(from.access(Read));
                visit(to.access(Write));
            }
            Action::Fill { out, .. } => visit(out.access(Write)),
            Action::Sum {
                outer, inner, out, ..
            } => {
                let loops = outer.loops.iter().chain(&inner.loops).copied().collect();
                visit(
                    Region {
                        loops,
                        ..outer.clone()
                    }
                    .access(Read),
                );
                visit(out.access(Write));
            }
            Action::Quantize { x, out, .. } | Action::Dequantize { x, out, .. } => {
                visit(x.access(Read));
                visit(out.access(Write));
            }
            Action::Loop(looped) => looped.accesses(visit),
            Action::Strided(strided) => strided.accesses(visit),
            Action::Conditional(conditional) => conditional.accesses(visit),
            Action::Watched(watched) => watched.actions.iter().for_each(|a| a.accesses(visit)),
        }
    }

    /// Clock cycles by the model that `machine.toml` names: the words of its longest operand.
    pub(crate) fn words(&self) -> u64 {
        match self {
            Action::Elementwise(elementwise) => elementwise.words(),
            Action::Lookup { x, out, .. }
            | Action::Quantize { x, out, .. }
            | Action::Dequantize { x, out, .. } => x.words().max(out.words()),
            Action::Matrix(matrix) => matrix.words(),
            Action::Gmac(gmac) => gmac.words(),
            Action::Convolve(convolve) => convolve.words(),
            Action::Move(moved) => (moved.from.count() * moved.from.element.bytes()).div_ceil(8),
            Action::Fill { out, .. } => out.words(),
            Action::Sum { outer, inner, .. } => {
                (outer.count() * inner.count() * outer.element.bytes()).div_ceil(8)
            }
            Action::Loop(Loop {
                iterations,
                body,
                before,
                slices,
                concatenated,
                carried,
                after,
            }) => {
                let each = |moves: &[(Move, u64, bool)]| {
                    moves
                        .iter()
                        .map(|(m, ..)| Action::Move(m.clone()).words())
                        .fold(0, u64::saturating_add)
                };
                let once = total(body)
                    .saturating_add(total(carried))
                    .saturating_add(each(slices))
                    .saturating_add(each(concatenated));
                once.saturating_mul(*iterations)
                    .saturating_add(total(before))
                    .saturating_add(total(after))
            }
            Action::Strided(strided) => total(&strided.body).max(total(&strided.otherwise)),
            Action::Conditional(conditional) => {
                total(&conditional.holds).max(total(&conditional.otherwise))
            }
            Action::Watched(watched) => total(&watched.actions),
        }
    }
}

/// Words of several actions.
pub(crate) fn total(actions: &[Action]) -> u64 {
    actions
        .iter()
        .map(Action::words)
        .fold(0, u64::saturating_add)
}

fn run<W: Watch>(
    actions: &[Action],
    storage: &mut Storage<'_>,
    watch: &mut W,
) -> Result<(), Fault> {
    actions
        .iter()
        .try_for_each(|action| action.execute(storage, watch))
}

impl Loop {
    fn execute<W: Watch>(&self, storage: &mut Storage<'_>, watch: &mut W) -> Result<(), Fault> {
        run(&self.before, storage, watch)?;
        for iteration in 0..self.iterations {
            let at = |step: u64, reversed: bool| {
                step * if reversed {
                    self.iterations - 1 - iteration
                } else {
                    iteration
                }
            };
            for (Move { from, to }, step, reversed) in &self.slices {
                Move {
                    from: from.shifted(at(*step, *reversed)),
                    to: to.clone(),
                }
                .execute(storage);
            }
            run(&self.body, storage, watch)?;
            for (Move { from, to }, step, reversed) in &self.concatenated {
                Move {
                    from: from.clone(),
                    to: to.shifted(at(*step, *reversed)),
                }
                .execute(storage);
            }
            if iteration + 1 < self.iterations {
                run(&self.carried, storage, watch)?;
            }
        }
        run(&self.after, storage, watch)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        let mut inside = Inside::default();
        self.before
            .iter()
            .for_each(|action| action.accesses(&mut |a| inside.add(a, visit)));
        let repeated = |region: &Region, step: u64| {
            let loops = [(self.iterations, step)]
                .into_iter()
                .chain(region.loops.iter().copied())
                .collect();
            Region {
                loops,
                ..region.clone()
            }
        };
        for (Move { from, to }, step, _) in &self.slices {
            inside.add(repeated(from, *step).access(Direction::Read), visit);
            inside.add(to.access(Direction::Write), visit);
        }
        self.body
            .iter()
            .for_each(|action| action.accesses(&mut |a| inside.add(a, visit)));
        for (Move { from, to }, step, _) in &self.concatenated {
            inside.add(from.access(Direction::Read), visit);
            inside.add(repeated(to, *step).access(Direction::Write), visit);
        }
        self.carried
            .iter()
            .chain(&self.after)
            .for_each(|action| action.accesses(&mut |a| inside.add(a, visit)));
    }
}

impl Strided {
    fn execute<W: Watch>(&self, storage: &mut Storage<'_>, watch: &mut W) -> Result<(), Fault> {
        let mut counter = [0];
        load(
            storage.bytes(self.counter.buffer),
            self.counter.element,
            0,
            &mut counter,
        );
        let actions = if counter[0].rem_euclid(self.period) == self.phase {
            &self.body
        } else {
            &self.otherwise
        };
        run(actions, storage, watch)?;
        counter[0] = counter[0].wrapping_add(1).rem_euclid(self.period);
        store(
            storage.bytes_mut(self.counter.buffer),
            self.counter.element,
            0,
            &counter,
        );
        Ok(())
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(self.counter.access(Direction::Read));
        either_way([&self.body, &self.otherwise], visit);
        visit(self.counter.access(Direction::Write));
    }
}

impl Conditional {
    fn execute<W: Watch>(&self, storage: &mut Storage<'_>, watch: &mut W) -> Result<(), Fault> {
        let condition = at(
            storage.bytes(self.condition.buffer),
            self.condition.element,
            0,
        );
        let actions = if condition == 0 {
            &self.otherwise
        } else {
            &self.holds
        };
        run(actions, storage, watch)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(self.condition.access(Direction::Read));
        either_way([&self.holds, &self.otherwise], visit);
    }
}

/// What two ways touch, between which data decides; outputs are written either way.
fn either_way(ways: [&Vec<Action>; 2], visit: &mut dyn FnMut(Access)) {
    for way in ways {
        let mut inside = Inside::default();
        let mut seen = |access: Access| {
            visit(if access.direction == Direction::Read {
                access.may()
            } else {
                access
            });
        };
        for action in way {
            action.accesses(&mut |access| inside.add(access, &mut seen));
        }
    }
}

/// Accesses of a body: what it has written itself it does not read from outside.
#[derive(Default)]
struct Inside {
    written: HashSet<BufferId>,
}

impl Inside {
    fn add(&mut self, access: Access, visit: &mut dyn FnMut(Access)) {
        match access.direction {
            Direction::Write => {
                self.written.insert(access.buffer);
                visit(access);
            }
            Direction::Read if !self.written.contains(&access.buffer) => visit(access),
            Direction::Read => {}
        }
    }
}

fn lookup<W: Watch>(
    storage: &mut Storage<'_>,
    x: &Tensor,
    table: &Tensor,
    out: &Tensor,
    (by, bits, first): (i32, u8, i64),
    watch: &mut W,
) -> Result<(), Fault> {
    let entries = table.count();
    let mut block = [0; crate::fqir::tensor::BLOCK];
    let count = out.count() as usize;
    for start in (0..count).step_by(block.len()) {
        let block = &mut block[..crate::fqir::tensor::BLOCK.min(count - start)];
        load(storage.bytes(x.buffer), x.element, start, block);
        for value in block.iter_mut() {
            let shifted = shift(*value, by);
            if W::WATCHES {
                let entry = i128::from(shifted) - i128::from(first);
                watch.address(!(0..i128::from(entries)).contains(&entry));
            }
            let address = saturate(shifted, bits).wrapping_sub(first);
            let entry = u64::try_from(address).ok().filter(|entry| *entry < entries);
            let Some(entry) = entry else {
                let message = format!(
                    "expected an address of a table of {entries} entries from {first} on, found {}",
                    address.wrapping_add(first)
                );
                return Err(Fault::program(message));
            };
            *value = at(storage.bytes(table.buffer), table.element, entry as usize);
        }
        store(storage.bytes_mut(out.buffer), out.element, start, block);
    }
    Ok(())
}

fn sum<W: Watch>(
    storage: &mut Storage<'_>,
    outer: &Region,
    inner: &Region,
    out: &Tensor,
    (by, bits): (i32, u8),
    watch: &mut W,
) {
    let mut starts = Vec::new();
    each_element(outer, |offset| starts.push(offset));
    let mut sums = Vec::with_capacity(starts.len());
    for start in starts {
        let mut total = 0i64;
        each_element(&inner.shifted(start), |offset| {
            total = total.wrapping_add(at(
                storage.bytes(inner.buffer),
                inner.element,
                offset as usize,
            ));
        });
        watch.sum(total);
        sums.push(watch.clip(shift(total, by), bits));
    }
    store(storage.bytes_mut(out.buffer), out.element, 0, &sums);
}

/// Visits the offset of every element of a region in order.
pub(crate) fn each_element(region: &Region, mut visit: impl FnMut(u64)) {
    let count = region.count();
    for number in 0..count {
        let mut rest = number;
        let mut offset = region.offset;
        for (count, stride) in region.loops.iter().rev() {
            offset += rest % count * stride;
            rest /= count;
        }
        visit(offset);
    }
}

fn quantize<W: Watch>(
    storage: &mut Storage<'_>,
    x: &Tensor,
    out: &Tensor,
    (quanta, bits): (i32, u8),
    watch: &mut W,
) -> Result<(), Fault> {
    let count = x.count() as usize;
    let values = if x.element == crate::fqir::tensor::Element::F64 {
        let limit = 2f64.powi(i32::from(bits) - 1);
        let scale = 2f64.powi(quanta);
        let bytes = &storage.bytes(x.buffer)[..count * 8];
        let reals = bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|b| f64::from_le_bytes(*b));
        reals
            .map(|real| watch.clip_real((real / scale).floor(), (-limit, limit - 1.0)))
            .collect()
    } else {
        let values = load_all(storage, x);
        if let Some(value) = values.iter().find(|v| saturate(**v, bits) != **v) {
            return Err(Fault::program(format!(
                "expected integers of {bits} bits to quantise, found {value}"
            )));
        }
        values
    };
    store(storage.bytes_mut(out.buffer), out.element, 0, &values);
    Ok(())
}

/// Arithmetic operations of actions; of two bodies the longer one.
fn arithmetic(actions: &[Action]) -> u64 {
    let each = |action: &Action| match action {
        Action::Elementwise(Elementwise { out, .. })
        | Action::Lookup { out, .. }
        | Action::Quantize { out, .. }
        | Action::Dequantize { out, .. } => out.count(),
        Action::Matrix(matrix) => 2 * (matrix.rows * matrix.inner * matrix.columns) as u64,
        Action::Gmac(gmac) => {
            let outputs = gmac.out.first().map_or(0, |(out, _)| out.count());
            2 * outputs * gmac.products.len() as u64
        }
        Action::Convolve(convolve) => {
            let outputs = convolve.outputs.max(1) as u64;
            2 * convolve.out.count() * (convolve.weight.count() / outputs)
        }
        Action::Sum { outer, inner, .. } => outer.count().saturating_mul(inner.count()),
        Action::Move(_) | Action::Fill { .. } => 0,
        Action::Loop(l) => {
            let once = arithmetic(&l.before).saturating_add(arithmetic(&l.after));
            let body = arithmetic(&l.body).saturating_add(arithmetic(&l.carried));
            once.saturating_add(l.iterations.saturating_mul(body))
        }
        Action::Strided(s) => arithmetic(&s.body).max(arithmetic(&s.otherwise)),
        Action::Conditional(c) => arithmetic(&c.holds).max(arithmetic(&c.otherwise)),
        Action::Watched(watched) => arithmetic(&watched.actions),
    };
    actions.iter().map(each).fold(0, u64::saturating_add)
}

/// A node of a plan as a task of the model.
#[derive(Debug)]
pub(crate) struct NodeKernel {
    pub(crate) operation: Cow<'static, str>,
    pub(crate) details: String,
    pub(crate) actions: Vec<Action>,
    /// Who counts what happens to the integers.
    pub(crate) health: Option<Arc<Mutex<Health>>>,
}

impl Kernel for NodeKernel {
    fn operation(&self) -> Cow<'static, str> {
        self.operation.clone()
    }

    fn details(&self) -> String {
        self.details.clone()
    }

    fn arithmetic(&self) -> u64 {
        arithmetic(&self.actions)
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.actions
            .iter()
            .for_each(|action| action.accesses(visit));
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        match &self.health {
            None => run(&self.actions, storage, &mut Unwatched),
            Some(health) => {
                let mut health = health.lock().unwrap_or_else(PoisonError::into_inner);
                run(&self.actions, storage, &mut *health)
            }
        }
    }
}
