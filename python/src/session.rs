//! Programs that keep their state from step to step.

use crate::failure::raise;
use crate::pool::on_pool;
use crate::run::{Finished, Run, Taken, given, packed, step};
use chipless::{Failure, KeptSession};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// A session.
#[pyclass(frozen, module = "chipless._native")]
pub(crate) struct Session(Mutex<KeptSession>);

impl Session {
    pub(crate) fn new(session: KeptSession) -> Session {
        Session(Mutex::new(session))
    }
}

#[pymethods]
impl Session {
    /// Runs one step.
    fn step(&self, py: Python<'_>, inputs: Vec<Taken<'_>>) -> PyResult<Run> {
        let given = given(&inputs)?;
        let finished = on_pool(py, 0, || {
            let mut session = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = session.program().clone();
            let ports = &kept.program().interface.inputs;
            let mut rows = Vec::new();
            for array in &given {
                if let Some(index) = ports.iter().position(|port| port.name == array.name) {
                    rows.push((index, packed(&ports[index], array)?));
                }
            }
            let rows: Vec<(usize, &[u8])> = rows.iter().map(|(i, row)| (*i, &**row)).collect();
            Finished::of(session.step(&rows)?)
        })?;
        step(py, finished)
    }

    /// Back to the start.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        let done: Result<(), Failure> = on_pool(py, 0, || {
            let mut session = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            session.reset()
        })?;
        done.map_err(|failure| raise(py, &failure))
    }
}
