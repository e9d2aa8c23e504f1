//! What TLB and cache hold when programs begin alone, and what each program makes of it.
//!
//! A program that nothing shares with takes as long as the last time that it found the same in TLB and cache, and leaves the same. So each pair
//! of a program and a state is computed once, and jobs that come later only go from state to state.

use crate::memory::{Counts, Memory};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// Bytes of states that are kept.
const ROOM: usize = 64 << 20;

/// The number of a state.
pub(crate) type State = usize;

/// A run of a program alone, from a state on.
#[derive(Debug)]
pub(crate) struct Alone {
    /// How long it takes, and how long of that nothing went on but walks, in picoseconds.
    pub(crate) time: u64,
    pub(crate) walked: u64,
    pub(crate) counts: Counts,
    pub(crate) after: State,
}

/// States, and what programs make of them.
#[derive(Default)]
pub(crate) struct States {
    kept: Vec<Vec<u64>>,
    by_hash: BTreeMap<u64, Vec<State>>,
    runs: BTreeMap<(usize, State), Rc<Alone>>,
    /// Where the memory is; `None`: what its tables hold, whatever that is.
    now: Option<State>,
    /// The state that the tables hold, where they hold one.
    held: Option<State>,
    bytes: usize,
    is_full: bool,
}

impl States {
    /// States are not told apart: everything is computed as it comes.
    pub(crate) const fn give_up(&mut self) {
        self.is_full = true;
    }

    /// The state that the memory is in, unless there are too many.
    pub(crate) fn state(&mut self, memory: &Memory) -> Option<State> {
        if self.now.is_some() || self.is_full {
            return self.now;
        }
        let contents = memory.contents();
        let mut hasher = DefaultHasher::new();
        contents.hash(&mut hasher);
        let same = self.by_hash.entry(hasher.finish()).or_default();
        let known = same.iter().find(|state| self.kept[**state] == contents);
        let state = if let Some(state) = known {
            *state
        } else {
            self.bytes += size_of_val(contents.as_slice());
            if self.bytes > ROOM {
                self.is_full = true;
                return None;
            }
            same.push(self.kept.len());
            self.kept.push(contents);
            self.kept.len() - 1
        };
        (self.now, self.held) = (Some(state), Some(state));
        self.now
    }

    /// The tables hold what the memory holds from now on, and change it.
    pub(crate) fn live(&mut self, memory: &mut Memory) {
        if let Some(state) = self.now.take()
            && self.held != Some(state)
        {
            memory.hold(&self.kept[state]);
        }
        self.held = None;
    }

    /// The memory is in a state; its tables may hold another.
    pub(crate) const fn go(&mut self, state: State) {
        self.now = Some(state);
    }

    /// The run of a loaded program from a state on, if it is known.
    pub(crate) fn run(&self, loaded: usize, state: State) -> Option<Rc<Alone>> {
        self.runs.get(&(loaded, state)).cloned()
    }

    pub(crate) fn learn(&mut self, loaded: usize, state: State, run: Alone) -> Rc<Alone> {
        let run = Rc::new(run);
        self.runs.insert((loaded, state), Rc::clone(&run));
        run
    }
}
