//! Programs, and what is wrong with them.

use crate::failure::{options, raise};
use crate::pool::on_pool;
use crate::run::{Given, Run, Taken};
use crate::session::Session;
use chipless::diff::Wanted;
use chipless::disk::{self, Contents};
use chipless::{Failure, FailureKind, KeptDocument, KeptProgram, Policy, npy};
use chipless_model::ElementType;
use chipless_report::findings::{self, FileReport, Report};
use chipless_report::info::InfoReport;
use chipless_report::{Paint, card, sarif};
use chipless_sim::Order;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Programs of one file that are kept for the next run: of a few machines, or of a few seeds.
const KEPT: usize = 4;

/// Names and values of options.
type Given2 = Vec<(String, String)>;

/// The bytes of a file, shared by the documents that are made of it.
#[derive(Clone)]
struct Shared(Arc<Contents>);

impl Deref for Shared {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// A file.
#[pyclass(frozen, module = "chipless._native")]
pub(crate) struct Program {
    name: String,
    bytes: Shared,
    options: Given2,
    kept: KeptDocument,
    made: Mutex<Vec<(Key, KeptProgram)>>,
}

/// What a program of a file depends on.
#[derive(Clone, PartialEq)]
struct Key {
    /// Options beside the file's own.
    more: Given2,
    /// Whether somebody will compute with it, where weights are made up for that.
    computes: bool,
    /// The seed, where the program depends on it.
    seed: u64,
}

/// What a run is asked for besides its inputs.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) seed: u64,
    pub(crate) timing_only: bool,
    pub(crate) verify: bool,
    pub(crate) more: Given2,
    pub(crate) order: Order,
}

/// Opens a file by its path, or by its bytes with a name for messages.
#[pyfunction]
#[pyo3(signature = (name, data, target, options))]
pub(crate) fn open(
    py: Python<'_>,
    name: String,
    data: Option<Bound<'_, PyBytes>>,
    target: Option<String>,
    options: Given2,
) -> PyResult<Program> {
    let data = data.map(|data| data.as_bytes().to_vec());
    on_pool(py, 0, || {
        let contents = match data {
            Some(data) => Contents::Read(data),
            None => disk::open(Path::new(&name)).map_err(|why| Failure::unreadable(&name, why))?,
        };
        let bytes = Shared(Arc::new(contents));
        let kept = kept(&name, &bytes, target.as_deref(), &options, &Key::plain())?;
        Ok(Program {
            name,
            bytes,
            options,
            kept,
            made: Mutex::default(),
        })
    })?
    .map_err(|failure: Failure| raise(py, &failure))
}

/// What changed from one program to another: whether nothing did, what `diff --json` prints, and what `diff` prints.
#[pyfunction]
pub(crate) fn diff(
    py: Python<'_>,
    a: &Bound<'_, Program>,
    b: &Bound<'_, Program>,
    time: bool,
    values: Option<u64>,
) -> PyResult<(bool, String, String)> {
    let (a, b) = (a.get(), b.get());
    on_pool(py, 0, || {
        let (of_a, of_b) = (a.target_name(), b.target_name());
        if of_a != of_b {
            let text = format!("expected a second program of target {of_a}, found one of {of_b}");
            return Err(Failure::misuse(&b.name, text));
        }
        let (first, second) = (a.kept.document(), b.kept.document());
        let found = chipless::diff::diff(first, second, Wanted { time, values })?;
        let json = serde_json::to_string(&found).unwrap_or_default();
        Ok((
            found.equal,
            json,
            found.text(&a.name, &b.name, Paint::PLAIN),
        ))
    })?
    .map_err(|failure: Failure| raise(py, &failure))
}

impl Key {
    /// Of a run without wishes.
    fn plain() -> Key {
        Key {
            more: Vec::new(),
            computes: true,
            seed: 0,
        }
    }
}

fn kept(
    name: &str,
    bytes: &Shared,
    target: Option<&str>,
    given: &[(String, String)],
    key: &Key,
) -> Result<KeptDocument, Failure> {
    let mut options = options(given)?;
    for (name, value) in &key.more {
        options.set(name, value.as_str())?;
    }
    (options.data.computes, options.data.seed) = (key.computes, key.seed);
    KeptDocument::open(name.to_owned(), Box::new(bytes.clone()), target, options)
}

impl Program {
    fn target_name(&self) -> &'static str {
        self.kept.file().target().name()
    }

    /// The program for a run: one that was made before, or a new one.
    pub(crate) fn made(&self, asked: &Asked, given: &[Given<'_>]) -> Result<KeptProgram, Failure> {
        let document = self.kept.document();
        let (data, weights) = (document.depends_on_data(), document.makes_weights());
        let key = Key {
            more: asked.more.clone(),
            computes: !(weights && asked.timing_only),
            seed: if data || weights { asked.seed } else { 0 },
        };
        if data && !given.is_empty() {
            return self.made_for(&key, given);
        }
        let lock = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, made)) = lock().iter().find(|(known, _)| *known == key) {
            return Ok(made.clone());
        }
        let kept = if key == Key::plain() {
            self.kept.clone()
        } else {
            kept(
                &self.name,
                &self.bytes,
                Some(self.target_name()),
                &self.options,
                &key,
            )?
        };
        let made = kept.lower()?;
        let mut programs = lock();
        if programs.len() >= KEPT {
            programs.remove(0);
        }
        programs.push((key, made.clone()));
        Ok(made)
    }

    /// The program that has the lengths of these arrays.
    fn made_for(&self, key: &Key, given: &[Given<'_>]) -> Result<KeptProgram, Failure> {
        let mut arrays = HashMap::new();
        for array in given {
            let element = ElementType::from_name(&array.element).ok_or_else(|| {
                let text = format!("expected numbers, found {}", array.element);
                Failure::misuse(format_args!("input \"{}\"", array.name), text)
            })?;
            let (mut file, data) = npy::write(element, &array.shape, array.bytes)
                .map_err(|why| Failure::misuse(format_args!("input \"{}\"", array.name), why))?;
            file.extend_from_slice(&data);
            arrays.insert(array.name.clone(), file);
        }
        let plain = kept(
            &self.name,
            &self.bytes,
            Some(self.target_name()),
            &self.options,
            key,
        )?;
        let options = plain.options().with_arrays(arrays);
        let (name, bytes) = (self.name.clone(), Box::new(self.bytes.clone()));
        KeptDocument::open(name, bytes, Some(self.target_name()), options)?.lower()
    }
}

#[pymethods]
impl Program {
    /// The name of the target.
    #[getter]
    fn target(&self) -> &'static str {
        self.target_name()
    }

    /// The file, as messages call it.
    #[getter]
    fn file(&self) -> &str {
        &self.name
    }

    /// What `info --format json` prints, as text.
    fn info(&self) -> String {
        let info = self.kept.document().info();
        let report = InfoReport::new(&self.name, self.bytes.len() as u64, &info, None);
        serde_json::to_string(&report).unwrap_or_default()
    }

    /// Inputs and outputs: name, element type, shape.
    fn interface(&self) -> [Vec<(String, &'static str, Vec<u64>)>; 2] {
        let info = self.kept.document().info();
        [info.inputs, info.outputs].map(|side| {
            side.into_iter()
                .map(|tensor| (tensor.name, tensor.element.name(), tensor.shape))
                .collect()
        })
    }

    /// Whether each run is as long as its inputs.
    #[getter]
    fn depends_on_data(&self) -> bool {
        self.kept.document().depends_on_data()
    }

    /// What is wrong with it.
    fn check(&self, py: Python<'_>, allow: Vec<String>, deny: Vec<String>) -> PyResult<Checked> {
        on_pool(py, 0, || {
            let mut policy = Policy::default();
            for code in &allow {
                policy.allow("allow", code)?;
            }
            for code in &deny {
                policy.deny("deny", code)?;
            }
            let mut options = options(&self.options)?;
            options.data.computes = true;
            let target = self.kept.file().target();
            let mut checked = chipless::check_as(target, &self.name, &self.bytes, &options)?;
            let left_out = policy.apply(&self.name, &mut checked.findings);
            Ok(Checked {
                name: self.name.clone(),
                bytes: self.bytes.clone(),
                all: checked,
                left_out,
            })
        })?
        .map_err(|failure: Failure| raise(py, &failure))
    }

    /// Runs it.
    #[pyo3(signature = (inputs, seed, timing_only, verify, more, threads, order))]
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a keyword of Program.run"
    )]
    fn run(
        &self,
        py: Python<'_>,
        inputs: Vec<Taken<'_>>,
        seed: u64,
        timing_only: bool,
        verify: bool,
        more: Given2,
        threads: usize,
        order: Option<u64>,
    ) -> PyResult<Run> {
        let given = crate::run::given(&inputs)?;
        let asked = Asked {
            seed,
            timing_only,
            verify,
            more,
            order: order.map_or(Order::Timed, Order::Random),
        };
        let finished = on_pool(py, threads, || crate::run::finish(self, &asked, &given))?;
        let finished = finished.map_err(|failure| raise(py, &failure))?;
        Ok(Run::new(py, finished))
    }

    /// A session at its start.
    fn session(&self, py: Python<'_>, seed: u64) -> PyResult<Session> {
        let asked = Asked {
            seed,
            timing_only: false,
            verify: true,
            more: Vec::new(),
            order: Order::Timed,
        };
        let session = on_pool(py, 0, || {
            let made = self.made(&asked, &[])?;
            made.proven()?;
            made.session(seed)
        })?;
        session
            .map(Session::new)
            .map_err(|failure| raise(py, &failure))
    }

    /// What it is, as a piece of HTML, with the timeline of a timing run where there is one.
    fn html(&self, py: Python<'_>) -> PyResult<String> {
        let asked = Asked {
            seed: 0,
            timing_only: true,
            verify: false,
            more: Vec::new(),
            order: Order::Timed,
        };
        on_pool(py, 0, || {
            let info = self.kept.document().info();
            let ran = self.made(&asked, &[]).and_then(|made| made.time());
            match &ran {
                Ok(ran) => card::program(&info, Some(&ran.report())),
                Err(failure) if failure.kind == FailureKind::Deadlock => card::program(&info, None),
                Err(_) => card::program(&info, None),
            }
        })
    }
}

/// What was found.
#[pyclass(frozen, module = "chipless._native")]
pub(crate) struct Checked {
    name: String,
    bytes: Shared,
    all: chipless::Checked,
    left_out: usize,
}

impl Checked {
    fn shown(&self) -> findings::Checked<'_> {
        findings::Checked {
            path: &self.name,
            target: self.all.target,
            bytes: &self.bytes,
            parts: &self.all.parts,
            findings: &self.all.findings,
        }
    }
}

#[pymethods]
impl Checked {
    /// What `check --format json` prints, as text.
    fn json(&self) -> String {
        let report = Report::new(vec![FileReport::from(&self.shown())]);
        serde_json::to_string(&report).unwrap_or_default()
    }

    /// What `check` prints.
    fn text(&self) -> String {
        let shown = self.shown();
        shown.text(Paint::PLAIN, false, false) + &shown.verdict(Paint::PLAIN, self.all.unchecked)
    }

    /// What `check --format sarif` prints.
    fn sarif(&self) -> String {
        let log = sarif::log([self.shown()], self.all.is_readable);
        serde_json::to_string_pretty(&log).unwrap_or_default()
    }

    /// Findings that `allow` left out.
    #[getter]
    fn left_out(&self) -> usize {
        self.left_out
    }
}
