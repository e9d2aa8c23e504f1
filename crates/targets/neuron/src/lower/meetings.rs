//! Where cores wait for each other: `PSEUDO_CORE_BARRIER`, and the exchange of `SB2SB_COLLECTIVE`.
//!
//! The task of such a slot says that its core is there. What comes of it when all are there is a task of a queue of its own, and the next
//! slot of the engine waits for that.

use crate::graph::Engine;
use chipless_model::{Action, Condition, Fault, Signal, SyncId, Wait};
use std::collections::BTreeMap;

/// What cores meet at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// A barrier, by its id.
    Barrier(u32),
    /// The start of an exchange.
    ExchangeStart,
    /// Its end.
    ExchangeEnd,
}

/// Every place, and who has come how often.
#[derive(Debug, Default)]
pub(super) struct Meetings(BTreeMap<Place, Meeting>);

#[derive(Debug)]
struct Meeting {
    sync: SyncId,
    /// The engine of each core that comes, and how often it has been lowered.
    engines: BTreeMap<usize, (Engine, i64)>,
}

/// One time that all cores meet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    sync: SyncId,
    /// What the counter stands at when all are there.
    all: i64,
}

impl Met {
    /// Says that a core is there.
    pub(super) fn arrival(self) -> Signal {
        Signal::on_completion(Action::Add(self.sync, 1))
    }

    /// Holds until all are.
    pub(super) fn wait(self) -> Wait {
        Wait {
            sync: self.sync,
            condition: Condition::AtLeast(self.all),
        }
    }
}

impl Meetings {
    /// The next time that a core of so many comes to a place, with an engine; `counter` makes the counter of a new one.
    ///
    /// # Errors
    /// Another engine of the core comes there too: which of them meets which of the other core, nothing says.
    pub(super) fn meet(
        &mut self,
        place: Place,
        (core, cores): (usize, usize),
        engine: Engine,
        counter: impl FnOnce(String) -> SyncId,
    ) -> Result<Met, Fault> {
        let name = match place {
            Place::Barrier(id) => format!("core barrier {id}"),
            Place::ExchangeStart => "exchange begins".to_owned(),
            Place::ExchangeEnd => "exchange ends".to_owned(),
        };
        let sync = match self.0.get(&place) {
            Some(meeting) => meeting.sync,
            None => counter(name.clone()),
        };
        let meeting = self.0.entry(place).or_insert_with(|| Meeting {
            sync,
            engines: BTreeMap::new(),
        });
        let (known, times) = meeting.engines.entry(core).or_insert((engine, 0));
        if *known != engine {
            return Err(Fault::unsupported(format!(
                "{engine} and {known} come to {name}: which of them meets which of the other core is not known, and not supported"
            )));
        }
        *times += 1;
        Ok(Met {
            sync,
            all: *times * cores as i64,
        })
    }
}
