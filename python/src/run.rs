//! Runs, and what they leave. A program begins runs, and a run keeps the program that it is of: the two know each other.

use crate::failure::raise;
use crate::pool::on_pool;
use crate::program::{Asked, Program};
use crate::table::Table;
use chipless::{Failure, KeptProgram, Ran, disk, npy};
use chipless_model::Port;
use chipless_report::attribution::{Attribution, Lives, lives};
use chipless_report::tables::{self, Form};
use chipless_report::{card, chrome, page, perfetto};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;

/// An input as Python gives it: name, element type, shape, and the bytes row by row.
pub(crate) type Taken<'py> = (String, String, Vec<u64>, PyReadonlyArray1<'py, u8>);

/// An input.
pub(crate) struct Given<'a> {
    pub(crate) name: String,
    pub(crate) element: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) bytes: &'a [u8],
}

/// The bytes of inputs. They must not change before the run has ended.
pub(crate) fn given<'a>(inputs: &'a [Taken<'_>]) -> PyResult<Vec<Given<'a>>> {
    let each = inputs.iter().map(|(name, element, shape, array)| {
        Ok(Given {
            name: name.clone(),
            element: element.clone(),
            shape: shape.clone(),
            bytes: array.as_slice()?,
        })
    });
    each.collect()
}

/// A run that came to its end: its outputs with their shapes.
pub(crate) struct Finished {
    pub(crate) ran: Ran,
    pub(crate) shapes: Vec<Vec<u64>>,
    pub(crate) outputs: Vec<Vec<u8>>,
}

impl Finished {
    /// Of one step.
    pub(crate) fn of(mut ran: Ran) -> Result<Finished, Failure> {
        let bytes = ran.take_outputs();
        let ports = ran.program().program().interface.outputs.iter();
        let shapes = ports.map(|port| port.shape.clone()).collect();
        let ports = ran.program().program().interface.outputs.iter();
        let outputs = ports
            .zip(bytes)
            .map(|(port, bytes)| unpacked(port, bytes))
            .collect::<Result<_, _>>()?;
        Ok(Finished {
            ran,
            shapes,
            outputs,
        })
    }
}

/// Elements of less than a byte get one each.
fn unpacked(port: &Port, bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
    if port.element.bits() >= 8 {
        return Ok(bytes);
    }
    npy::unpack(port.element, &port.shape, &bytes)
        .map_err(|why| Failure::unreadable(format_args!("output \"{}\"", port.name), why))
}

/// The bytes of an input as the program has them.
pub(crate) fn packed<'a>(port: &Port, given: &Given<'a>) -> Result<Cow<'a, [u8]>, Failure> {
    let subject = format!("input \"{}\"", given.name);
    let bytes = if port.element.bits() < 8 {
        let bytes = npy::pack(port.element, given.bytes);
        Cow::Owned(bytes.map_err(|why| Failure::misuse(&subject, why))?)
    } else {
        Cow::Borrowed(given.bytes)
    };
    let (expected, found) = (port.bytes().unwrap_or(u64::MAX), bytes.len() as u64);
    if expected != found {
        let text = format!(
            "expected {} {:?}, found {} {:?}",
            port.element, port.shape, given.element, given.shape
        );
        return Err(Failure::misuse(subject, text));
    }
    Ok(bytes)
}

/// Runs a program.
pub(crate) fn finish(
    program: &Program,
    asked: &Asked,
    given: &[Given<'_>],
) -> Result<Finished, Failure> {
    let made = program.made(asked, given)?;
    if asked.verify {
        made.proven()?;
    }
    if asked.timing_only {
        return Finished::of(made.time()?);
    }
    if let Some(count) = steps(&made, given) {
        return run_steps(&made, asked, given, count);
    }
    let data = |_: usize, port: &Port, _: u64| {
        let array = given.iter().find(|array| array.name == port.name);
        array.map(|array| packed(port, array)).transpose()
    };
    Finished::of(made.run(data, asked.seed, asked.order)?)
}

/// How many steps the inputs have: a dimension more than the program's, in front. Only programs of SPUs keep state from step to step.
fn steps(made: &KeptProgram, given: &[Given<'_>]) -> Option<u64> {
    let program = made.program();
    if program.target != "spu" {
        return None;
    }
    given.iter().find_map(|array| {
        let ports = &program.interface.inputs;
        let port = ports.iter().find(|port| port.name == array.name)?;
        let (count, row) = array.shape.split_first()?;
        (row == port.shape).then_some(*count)
    })
}

/// Runs a step for each row of the inputs.
fn run_steps(
    made: &KeptProgram,
    asked: &Asked,
    given: &[Given<'_>],
    count: u64,
) -> Result<Finished, Failure> {
    let interface = &made.program().interface;
    let mut session = made.session(asked.seed)?;
    let mut outputs: Vec<Vec<u8>> = vec![Vec::new(); interface.outputs.len()];
    let mut last = None;
    for step in 0..count {
        let mut rows = Vec::new();
        for array in given {
            let Some(index) = interface.inputs.iter().position(|p| p.name == array.name) else {
                continue;
            };
            let port = &interface.inputs[index];
            let row = if array.shape.len() == port.shape.len() {
                packed(port, array)?
            } else {
                let size = array.bytes.len() / usize::try_from(count.max(1)).unwrap_or(1);
                let start = usize::try_from(step).unwrap_or_default() * size;
                let row = Given {
                    name: array.name.clone(),
                    element: array.element.clone(),
                    shape: port.shape.clone(),
                    bytes: array.bytes.get(start..start + size).unwrap_or_default(),
                };
                packed(port, &row)?
            };
            rows.push((index, row));
        }
        let rows: Vec<(usize, &[u8])> = rows.iter().map(|(i, row)| (*i, &**row)).collect();
        let finished = Finished::of(session.step(&rows)?)?;
        for (all, one) in outputs.iter_mut().zip(finished.outputs) {
            all.extend_from_slice(&one);
        }
        last = Some(finished.ran);
    }
    let ran = match last {
        Some(ran) => ran,
        None => made.time()?,
    };
    let shapes = interface.outputs.iter();
    let shapes = shapes.map(|port| std::iter::once(count).chain(port.shape.iter().copied()));
    Ok(Finished {
        shapes: shapes.map(Iterator::collect).collect(),
        outputs,
        ran,
    })
}

/// Name, type, shape and bytes of an output.
type Output = (String, &'static str, Vec<u64>, Py<PyArray1<u8>>);

/// A run that came to its end.
#[pyclass(frozen, module = "chipless._native")]
pub(crate) struct Run {
    ran: Ran,
    outputs: Vec<Output>,
    apart: OnceLock<(Attribution, Lives)>,
}

impl Run {
    /// The bytes of the outputs become arrays of Python's, as they are.
    pub(crate) fn new(py: Python<'_>, finished: Finished) -> Run {
        let ports = &finished.ran.program().program().interface.outputs;
        let each = ports.iter().zip(finished.shapes).zip(finished.outputs);
        let outputs = each.map(|((port, shape), bytes)| {
            let array = PyArray1::from_vec(py, bytes).unbind();
            (port.name.clone(), port.element.name(), shape, array)
        });
        Run {
            outputs: outputs.collect(),
            apart: OnceLock::new(),
            ran: finished.ran,
        }
    }

    fn apart(&self) -> &(Attribution, Lives) {
        self.apart.get_or_init(|| {
            let (program, timeline) = (self.ran.program().program(), self.ran.timeline());
            (Attribution::of(program, timeline), lives(program, timeline))
        })
    }

    fn table(
        &self,
        py: Python<'_>,
        make: impl FnOnce(&Attribution, &Lives) -> tables::Table + Send,
    ) -> PyResult<Table> {
        on_pool(py, 0, || {
            let (attribution, lives) = self.apart();
            Table::of(&make(attribution, lives))
        })?
    }

    /// The page of the run.
    fn page(&self) -> String {
        let (attribution, lives) = self.apart();
        let report = self.ran.report();
        let kept = self.ran.program();
        let pictures = kept.kept().document().pictures();
        let read = kept.kept().document().findings().iter();
        let findings: Vec<_> = read.chain(kept.findings()).cloned().collect();
        let run = page::Run {
            file: report.file,
            program: report.program,
            timeline: report.timeline,
            attribution,
            lives,
            timed_by: report.timed_by.as_ref(),
            estimate_ns: None,
            findings: &findings,
            facts: &report.facts,
            notes: &report.notes,
            pictures: &pictures,
            ranking: &[],
        };
        page::page(&run, None, page::Served::No)
    }

    /// What a file of this name holds.
    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        let (program, timeline) = (self.ran.program().program(), self.ran.timeline());
        let tasks = || tables::Table::tasks(program, timeline, &self.apart().0);
        let name = self.ran.program().kept().name();
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        match ending.to_ascii_lowercase().as_str() {
            "pftrace" => {
                let (attribution, lives) = self.apart();
                Ok(perfetto::trace(name, program, timeline, attribution, lives))
            }
            "json" => Ok(chrome::trace(name, program, timeline, &self.apart().0)),
            "csv" => Ok(tasks().write(Form::Csv)),
            "parquet" => Ok(tasks().write(Form::Parquet)),
            "html" => Ok(self.page().into_bytes()),
            _ => Err(format!(
                "expected a name that ends in .pftrace, .json, .csv, .parquet or .html, found {path}"
            )),
        }
    }
}

#[pymethods]
impl Run {
    /// Outputs in the program's order: name, element type, shape, bytes.
    #[getter]
    fn outputs(&self, py: Python<'_>) -> Vec<Output> {
        let each = self.outputs.iter();
        each.map(|(name, element, shape, array)| {
            (name.clone(), *element, shape.clone(), array.clone_ref(py))
        })
        .collect()
    }

    /// From the start until the program reports that it is done, in nanoseconds.
    #[getter]
    fn latency_ns(&self) -> f64 {
        self.ran.timeline().end.ns()
    }

    /// What `run --json` prints, as text.
    fn summary(&self) -> String {
        serde_json::to_string(&self.ran.report().report()).unwrap_or_default()
    }

    /// Tasks.
    fn tasks(&self, py: Python<'_>) -> PyResult<Table> {
        let (program, timeline) = (self.ran.program().program(), self.ran.timeline());
        self.table(py, |attribution, _| {
            tables::Table::tasks(program, timeline, attribution)
        })
    }

    /// Parts of waits.
    fn waits(&self, py: Python<'_>) -> PyResult<Table> {
        let program = self.ran.program().program();
        self.table(py, |attribution, _| {
            tables::Table::waits(program, attribution)
        })
    }

    /// Live bytes.
    fn memory(&self, py: Python<'_>) -> PyResult<Table> {
        let program = self.ran.program().program();
        self.table(py, |_, lives| tables::Table::memory(program, lives))
    }

    /// Writes a trace, a table or a page, by the ending of the name.
    fn save(&self, py: Python<'_>, path: String) -> PyResult<()> {
        let written = on_pool(py, 0, || {
            let bytes = self.file(&path)?;
            Ok(disk::write(Path::new(&path), &[&bytes]))
        })?;
        match written {
            Ok(written) => Ok(written?),
            Err(error) => Err(PyValueError::new_err::<String>(error)),
        }
    }

    /// Summary and timeline as a piece of HTML.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        on_pool(py, 0, || card::run(&self.ran.report()))
    }

    /// What `run` prints.
    fn text(&self) -> String {
        self.ran
            .report()
            .text(chipless_report::Paint::PLAIN, usize::MAX)
    }
}

/// A step of a session, as an exception where it failed.
pub(crate) fn step(py: Python<'_>, finished: Result<Finished, Failure>) -> PyResult<Run> {
    match finished {
        Ok(finished) => Ok(Run::new(py, finished)),
        Err(failure) => Err(raise(py, &failure)),
    }
}
