//! A propositional formula under construction, with what the search says in it: choices of at most one, and numbers.

use crate::deadline::Deadline;
use batsat::{Callbacks, ClauseKind, Lit, Solver, SolverInterface, SolverOpts, lbool};
use std::cell::Cell;
use std::ops::RangeInclusive;

/// Ends a search when its effort is spent.
struct Budget {
    deadline: Deadline,
    conflicts: u64,
    most: u64,
    asked: Cell<u32>,
    over: Cell<bool>,
}

impl Callbacks for Budget {
    fn on_new_clause(&mut self, _: &[Lit], kind: ClauseKind) {
        self.conflicts += u64::from(kind == ClauseKind::Learnt);
    }

    fn stop(&self) -> bool {
        self.asked.set(self.asked.get().wrapping_add(1));
        if self.asked.get().is_multiple_of(64) && self.deadline.is_over() {
            self.over.set(true);
        }
        self.over.get() || self.conflicts >= self.most
    }
}

/// A formula in conjunctive normal form.
pub(super) struct Formula {
    solver: Solver<Budget>,
    always: Lit,
    clause: Vec<Lit>,
}

/// A number: for each value above the least whether it is at least that.
#[derive(Clone)]
pub(super) struct Number {
    least: i32,
    from: Vec<Lit>,
}

impl Formula {
    /// A formula that a search of so many conflicts is spent on.
    pub(super) fn new(deadline: Deadline, conflicts: u64) -> Formula {
        let budget = Budget {
            deadline,
            conflicts: 0,
            most: conflicts,
            asked: Cell::new(0),
            over: Cell::new(false),
        };
        let mut solver = Solver::new(SolverOpts::default(), budget);
        let always = Lit::new(solver.new_var_default(), true);
        let mut formula = Formula {
            solver,
            always,
            clause: Vec::new(),
        };
        formula.add([always]);
        formula
    }

    pub(super) fn fresh(&mut self) -> Lit {
        Lit::new(self.solver.new_var_default(), true)
    }

    /// At least one of these holds.
    pub(super) fn add(&mut self, clause: impl IntoIterator<Item = Lit>) {
        let mut reused = std::mem::take(&mut self.clause);
        reused.clear();
        reused.extend(clause);
        // A formula that has become impossible stays so.
        self.solver.add_clause_reuse(&mut reused);
        self.clause = reused;
    }

    /// If all of `when` hold, one of `then` does.
    pub(super) fn imply(&mut self, when: &[Lit], then: impl IntoIterator<Item = Lit>) {
        let not = when.iter().map(|literal| !*literal);
        self.add(not.chain(then).collect::<Vec<Lit>>());
    }

    /// At most so many of these hold (a sequential counter).
    pub(super) fn at_most(&mut self, most: usize, of: &[Lit]) {
        if of.len() <= most {
            return;
        }
        if most == 1 && of.len() <= 5 {
            for (index, one) in of.iter().enumerate() {
                for other in &of[index + 1..] {
                    self.add([!*one, !*other]);
                }
            }
            return;
        }
        // `count[i]`: more than `i` of those so far hold.
        let mut count: Vec<Lit> = Vec::new();
        for literal in of {
            if count.len() == most {
                self.add([!*literal, !count[most - 1]]);
            }
            let next: Vec<Lit> = (0..most.min(count.len() + 1))
                .map(|_| self.fresh())
                .collect();
            for (index, more) in next.iter().enumerate() {
                if let Some(before) = count.get(index) {
                    self.imply(&[*before], [*more]);
                }
                match index.checked_sub(1) {
                    None => self.imply(&[*literal], [*more]),
                    Some(below) => self.imply(&[*literal, count[below]], [*more]),
                }
            }
            count = next;
        }
    }

    /// A number in a range.
    pub(super) fn number(&mut self, range: RangeInclusive<i32>) -> Number {
        let (least, most) = range.into_inner();
        let from: Vec<Lit> = (least..most).map(|_| self.fresh()).collect();
        for pair in from.windows(2) {
            self.imply(&[pair[1]], [pair[0]]);
        }
        if most < least {
            self.add([]);
        }
        Number { least, from }
    }

    /// Whether a number is at least `value`.
    pub(super) fn at_least(&self, number: &Number, value: i32) -> Lit {
        if value <= number.least {
            return self.always;
        }
        let literal = number.from.get((value - number.least - 1) as usize);
        literal.copied().unwrap_or(!self.always)
    }

    /// What the search came to: whether it can hold; `None` where its effort was spent.
    pub(super) fn solve(&mut self) -> Option<bool> {
        match self.solver.solve_limited(&[]) {
            result if result == lbool::TRUE => Some(true),
            result if result == lbool::FALSE => Some(false),
            _ => None,
        }
    }

    /// Whether a literal holds in the solution.
    pub(super) fn holds(&self, literal: Lit) -> bool {
        self.solver.value_lit(literal) == lbool::TRUE
    }

    /// The value of a number in the solution.
    pub(super) fn value(&self, number: &Number) -> i32 {
        number.least + number.from.iter().take_while(|l| self.holds(**l)).count() as i32
    }
}

impl Number {
    /// Values that it may have.
    pub(super) fn values(&self) -> RangeInclusive<i32> {
        self.least..=self.least + self.from.len() as i32
    }
}
