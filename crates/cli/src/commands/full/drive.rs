//! `chipless drive`

mod elements;
mod script;
mod talk;

use crate::commands::{Opened, contract};
use crate::failure::{Exit, Failure};
use crate::files;
use crate::options::TargetOptions;
use crate::output::OutputOptions;
use chipless::Options;
use chipless::spu::iospec::{self, Document, Session, Vector, Violation, wire};
use chipless_report::SCHEMA_VERSION;
use clap::Args;
use elements::{Encoding, Values};
use schemars::JsonSchema;
use script::{Reader, Step};
use serde::{Serialize, Serializer};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Drive an IOSpec as a host does, call by call.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Arguments {
    /// An IOSpec (YAML), or a .femto container, whose own is taken.
    #[arg(value_name = "SPEC")]
    spec: PathBuf,
    /// Steps to take, or `-` for standard input.
    ///
    /// YAML, JSON, one JSON object a line, or words. Default: each line of standard input is a step, taken as it arrives.
    #[arg(long, short, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Program behind the contract, of any target.
    ///
    /// Reads then return its values. Options of `chipless run` for that program are accepted.
    #[arg(long, short, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Answer each input line with one JSON object.
    ///
    /// For programs that talk to this one.
    #[arg(long, conflicts_with_all = ["script", "format"])]
    lines: bool,
    /// Print the words on the wire, header first, as 32-bit halves.
    #[arg(long)]
    wire: bool,
    /// Treat values as real numbers.
    ///
    /// Written values are quantised by scale and zero point; read values are dequantised.
    #[arg(long)]
    quantize: bool,
    #[command(flatten)]
    answer: OutputOptions,
    /// Print the C application of `chipless host` and exit.
    #[arg(long, conflicts_with_all = ["script", "program", "wire", "quantize"])]
    host_code: bool,
    #[command(flatten)]
    options: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless drive iospec.yaml                by hand, a step a line
  chipless drive iospec.yaml --script steps.yaml --program model.pt
  chipless drive contract.yaml --program model.blob --script steps.json
  chipless drive contract.yaml --program schedule.json --network network.json
  chipless drive iospec.yaml --script steps.json --wire --format json
  chipless drive iospec.yaml --host-code    an application in C; chipless host writes all of it
  printf 'write B=1,2,3\\nread\\n' | chipless drive iospec.yaml

A script is a list of steps (YAML or JSON); file names are relative to it:
  - write: [B, C]                                  names, for their order alone
  - write: {B: [1, 2, 3], C: c.npy}                values, or a file of them
  - write: {sequence_id: 0, vectors: [[1], [2]]}   as SpuWriteData takes them
  - write: {words64: [\"0000000900000001\", ...]}    messages as on the bus
  - read: true                                     what is ready
  - read: {sequence_id: 0}                         or {mailbox: 5}
  - read: {words64: [...]}                         as a device sent them
  - reset: true

In words, a step a line: `write B=1,2,3 C=c.npy`, `read`, `reset`; by hand and from standard input also `next`, which says what may \
come, and `quit`. `read` takes everything that is ready, and no names. A script is read to its end before its first step is taken; from standard input without --script, a line that cannot be \
understood is a step that failed, and the next one is taken.

Long arrays are cut short in the text; --json has all elements, as `{steps: [{ok, error, code, expected, fired, outputs, values, wire}]}`.

Exit status: 0 every step was in order, 1 one was not, 2 a file cannot be used or the command was misused.";

/// The answer to `drive --json`, which is written as the steps are taken.
#[derive(JsonSchema, Serialize)]
pub(super) struct Driven {
    /// Version of the form.
    schema_version: u32,
    /// The steps that were taken.
    steps: Vec<Report>,
}

/// A step and what came of it.
#[derive(Default, JsonSchema, Serialize)]
struct Report {
    /// Whether it was in order.
    ok: bool,
    /// Whose turn it is, what was expected, what came.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// `kSpuSequenceError`, of violations of the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// Calls that would have been legal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expected: Vec<String>,
    /// Sequences, after a write.
    #[serde(skip_serializing_if = "Option::is_none")]
    fired: Option<Vec<String>>,
    /// Names in order, after a read.
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<Vec<String>>,
    /// Elements by name, where a program or a reply gave them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, Values>")]
    values: Option<InOrder>,
    /// Messages as lists of 32-bit words in hexadecimal, with `--wire`.
    #[serde(skip_serializing_if = "Option::is_none")]
    wire: Option<Vec<Vec<String>>>,
}

/// An object with its entries as they came.
struct InOrder(Vec<(String, Values)>);

impl Serialize for InOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, values)| (name, values)))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = arguments.options.load()?;
    let rules = chipless::rule_set(&options);
    let document = contract::open(&arguments.spec, rules)?;
    if arguments.host_code {
        return super::host::application(&arguments.spec, &document);
    }
    let mut session = Session::new(&document, rules);
    if arguments.wire {
        session = session.with_wire();
    }
    match &arguments.program {
        None => {
            super::host::without_program(&options)?;
            Driver::new(arguments, &document, session, Encoding::default()).run()
        }
        Some(path) => with_program(arguments, path, &options, &document, session),
    }
}

/// Drives with a program behind the contract.
fn with_program(
    arguments: &Arguments,
    path: &Path,
    options: &Options,
    document: &Document,
    session: Session<'_>,
) -> Result<Exit, Failure> {
    let program = Opened::open(path)?;
    let mut options = contract::for_program(options, &program);
    options.data.shapes = contract::shapes(document);
    program.with_behind(&options, |behind| {
        let differ = |text: String| Failure::unreadable(arguments.spec.display(), text);
        if arguments.quantize {
            same_scales(&arguments.spec, document, &options, &behind.expected)?;
        }
        let encoding = Encoding {
            elements: behind.elements,
            is_plain: !behind.is_spu,
        };
        let session = session
            .with_behind(behind.program)
            .map_err(|violation| differ(violation.to_string()))?;
        Driver::new(arguments, document, session, encoding).run()
    })
}

/// Whether the vectors have the scales of the program: with others every number would be wrong, and nothing would tell.
pub(super) fn same_scales(
    spec: &Path,
    document: &Document,
    options: &Options,
    expected: &[iospec::Expected],
) -> Result<(), Failure> {
    let findings = iospec::against(document, chipless::rule_set(options), expected);
    match findings.iter().find(|f| f.rule.code == "program-scale") {
        Some(finding) => Err(Failure::unreadable(spec.display(), finding.to_string())),
        None => Ok(()),
    }
}

/// The text of a script.
fn script_text(path: &Path) -> Result<String, Failure> {
    let bytes = files::open(path).map_err(|error| Failure::unreadable(path.display(), error))?;
    let name = path.display().to_string();
    if let Ok(text) = std::str::from_utf8(&bytes) {
        return Ok(text.to_owned());
    }
    let found = contract::program_by_mistake(&name, &bytes);
    let found = found.unwrap_or_else(|| "a file that is no text".to_owned());
    let text = format_args!("expected a script (steps in YAML, JSON or words), found {found}");
    Err(Failure::unreadable(&name, text))
}

struct Driver<'a, 'd> {
    arguments: &'a Arguments,
    document: &'d Document,
    session: Session<'d>,
    encoding: Encoding,
    /// Outputs by name, where they are shown as reals.
    quantised: HashMap<&'d str, &'d Vector>,
    steps: usize,
    wrong: usize,
}

impl<'a, 'd> Driver<'a, 'd> {
    fn new(
        arguments: &'a Arguments,
        document: &'d Document,
        session: Session<'d>,
        encoding: Encoding,
    ) -> Driver<'a, 'd> {
        Driver {
            arguments,
            document,
            session,
            encoding,
            quantised: document
                .outputs
                .iter()
                .filter(|_| arguments.quantize)
                .map(|v| (&*v.varname, v))
                .collect(),
            steps: 0,
            wrong: 0,
        }
    }

    fn run(mut self) -> Result<Exit, Failure> {
        let stdin = std::io::stdin();
        if self.arguments.lines {
            return talk::answer(&mut self, stdin.lock());
        }
        if self.arguments.script.is_none() && stdin.is_terminal() {
            return talk::talk(&mut self, stdin.lock());
        }
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        let put = |out: &mut dyn Write, text: &str| {
            out.write_all(text.as_bytes())
                .map_err(|error| Failure::output(&error))
        };
        let json = self.arguments.answer.is_json();
        let head = format!("{{\"schema_version\": {SCHEMA_VERSION}, \"steps\": [");
        let arguments = self.arguments;
        let (name, directory) = match &arguments.script {
            Some(path) if path.as_os_str() != "-" => (
                path.display().to_string(),
                path.parent().map(Path::to_path_buf).unwrap_or_default(),
            ),
            _ => ("standard input".to_owned(), PathBuf::new()),
        };
        let reader = self.reader(name, directory);
        if let Some(path) = &arguments.script {
            let text = if path.as_os_str() == "-" {
                std::io::read_to_string(stdin.lock())
                    .map_err(|error| Failure::misuse("standard input", error))?
            } else {
                script_text(path)?
            };
            // A script that cannot be read is answered by its failure alone.
            let mut began = !json;
            reader.steps(&text, &mut |step| {
                if !std::mem::replace(&mut began, true) {
                    put(&mut out, &head)?;
                }
                put(&mut out, &self.line(&step, json)?)
            })?;
            if !began {
                put(&mut out, &head)?;
            }
        } else {
            if json {
                put(&mut out, &head)?;
            }
            for (number, line) in stdin.lock().lines().enumerate() {
                let line = line.map_err(|error| Failure::misuse("standard input", error))?;
                match line.trim() {
                    "" => {}
                    "quit" | "exit" => break,
                    "help" | "?" if !json => put(&mut out, talk::HELP)?,
                    "next" if !json => put(&mut out, &talk::may_come(&self))?,
                    _ => {
                        let said = match reader.line(&line, Some(number + 1)) {
                            Ok(step) => self.line(&step, json)?,
                            Err(Failure::BrokenPipe) => return Err(Failure::BrokenPipe),
                            Err(failure) => self.misunderstood(&line, &failure, json)?,
                        };
                        put(&mut out, &said)?;
                    }
                }
            }
        }
        if json {
            put(&mut out, "\n]}\n")?;
        }
        out.flush().map_err(|error| Failure::output(&error))?;
        Ok(if self.wrong > 0 {
            Exit::Wrong
        } else {
            Exit::Done
        })
    }

    fn reader(&self, name: String, directory: PathBuf) -> Reader<'d> {
        Reader {
            name,
            directory,
            document: self.document,
            inputs: script::by_name(self.document),
            encoding: self.encoding.clone(),
            quantize: self.arguments.quantize,
            clipped: RefCell::default(),
        }
    }

    /// Takes a step; what is printed about it.
    fn line(&mut self, step: &Step, json: bool) -> Result<String, Failure> {
        let report = self.step(step);
        self.said(&report, json, || told(self.document, step, &report))
    }

    /// What is printed about a line that is no step. It counts as one that failed.
    fn misunderstood(
        &mut self,
        line: &str,
        failure: &Failure,
        json: bool,
    ) -> Result<String, Failure> {
        let report = self.refused(failure);
        let words = line.trim();
        let error = report.error.clone().unwrap_or_default();
        self.said(&report, json, || format!("{words}: {error}"))
    }

    fn refused(&mut self, failure: &Failure) -> Report {
        self.steps += 1;
        self.wrong += 1;
        Report {
            error: Some(failure.text().trim_end().to_owned()),
            ..Report::default()
        }
    }

    fn said(
        &self,
        report: &Report,
        json: bool,
        told: impl FnOnce() -> String,
    ) -> Result<String, Failure> {
        if !json {
            return Ok(format!("{:>4} {}\n", self.steps, told()));
        }
        let separator = if self.steps > 1 { ",\n" } else { "\n" };
        let report = serde_json::to_string(report)
            .map_err(|error| Failure::misuse("standard output", error))?;
        Ok(format!("{separator}{report}"))
    }

    fn step(&mut self, step: &Step) -> Report {
        self.steps += 1;
        let done = self.act(step);
        done.unwrap_or_else(|violation| {
            self.wrong += 1;
            let expected = violation.expected.clone();
            // The codes of the SPU library are those of programs of an SPU.
            let (error, code) = if self.encoding.is_plain {
                (violation.message.clone(), None)
            } else {
                (violation.to_string(), violation.code())
            };
            Report {
                error: Some(error),
                code,
                expected,
                ..Report::default()
            }
        })
    }

    fn act(&mut self, step: &Step) -> Result<Report, Violation> {
        let session = &mut self.session;
        let reading = match step {
            Step::Write(act) => {
                let sent = session_write(session, act)?;
                return Ok(self.sent(sent));
            }
            Step::WriteSequence(id, vectors) => {
                let sent = session.write_sequence(*id, vectors)?;
                return Ok(self.sent(sent));
            }
            Step::WriteWords(words) => {
                let sent = session.write_words(words)?;
                return Ok(self.sent(sent));
            }
            Step::Reset => {
                session.reset();
                return Ok(Report {
                    ok: true,
                    ..Report::default()
                });
            }
            Step::Read => session.read()?,
            Step::ReadSequence(id) => session.read_sequence(*id)?,
            Step::ReadMailbox(mailbox) => session.read_mailbox(*mailbox)?,
            Step::Receive(words) => session.receive(words)?,
        };
        let mut values = Vec::with_capacity(reading.values.len());
        for (name, integers) in reading.values {
            let quantised = self.quantised.get(&*name).copied();
            let shown = self.encoding.decode(&name, integers, quantised)?;
            values.push((name, shown));
        }
        let values =
            (!values.is_empty() || self.arguments.program.is_some()).then_some(InOrder(values));
        let wire = self.arguments.wire.then(|| hexadecimal(&reading.messages));
        Ok(Report {
            ok: true,
            outputs: Some(reading.outputs),
            values,
            wire,
            ..Report::default()
        })
    }

    fn sent(&self, sent: iospec::Sent) -> Report {
        let wire = self.arguments.wire.then(|| hexadecimal(&sent.messages));
        Report {
            ok: true,
            fired: Some(sent.fired),
            wire,
            ..Report::default()
        }
    }
}

/// A mistyped name is answered with the one that was probably meant.
fn session_write(
    session: &mut Session<'_>,
    act: &[iospec::Act],
) -> Result<iospec::Sent, Violation> {
    let inputs = &session.document().inputs;
    session.write(act).map_err(|mut violation| {
        let names: HashSet<&str> = inputs.iter().map(|v| &*v.varname).collect();
        let unknown = act
            .iter()
            .map(|(name, _)| name)
            .find(|name| !names.contains(name.as_str()));
        if let Some(unknown) = unknown.filter(|_| violation.code().is_none()) {
            violation.message.push_str(&chipless::suggest::hint(
                unknown,
                inputs.iter().map(|v| &*v.varname),
            ));
        }
        violation
    })
}

fn hexadecimal(messages: &[wire::Message]) -> Vec<Vec<String>> {
    messages
        .iter()
        .map(|message| {
            wire::halves(message)
                .iter()
                .map(|half| format!("{half:08x}"))
                .collect()
        })
        .collect()
}

/// A step and its verdict on a line.
fn told(document: &Document, step: &Step, report: &Report) -> String {
    let what = match step {
        Step::Write(act) => {
            let vector = |(name, values): &iospec::Act| match values {
                Some(values) => format!("{name} = {}", listed(values.iter())),
                None => name.clone(),
            };
            format!(
                "write {}",
                act.iter().map(vector).collect::<Vec<_>>().join(", ")
            )
        }
        Step::WriteSequence(id, vectors) => {
            format!(
                "write sequence {id}: {}",
                vectors
                    .iter()
                    .map(|v| listed(v.iter()))
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
        Step::WriteWords(words) => format!("write {} words", words.len()),
        Step::Read => "read".to_owned(),
        Step::ReadSequence(id) => format!("read sequence {id}"),
        Step::ReadMailbox(mailbox) => format!("read mailbox {mailbox}"),
        Step::Receive(words) => format!("receive {} words", words.len()),
        Step::Reset => "reset".to_owned(),
    };
    let came = match (
        &report.error,
        &report.values,
        &report.outputs,
        &report.fired,
    ) {
        (Some(error), ..) => error.clone(),
        (_, Some(InOrder(values)), ..) if !values.is_empty() => {
            let one = |(name, values): &(String, Values)| match values {
                Values::Integers(values) => format!("{name} = {}", listed(values.iter())),
                Values::Large(values) => format!("{name} = {}", listed(values.iter())),
                Values::Reals(values) => format!("{name} = {}", listed(values.iter())),
            };
            values.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        (_, _, Some(outputs), _) if outputs.is_empty() => "nothing is ready".to_owned(),
        (_, _, Some(outputs), _) => outputs.join(", "),
        (_, _, _, Some(fired)) if !fired.is_empty() => {
            // A sequence without outputs latches its inputs; the program makes no step.
            let one = |name: &String| {
                let latches = document
                    .sequences
                    .iter()
                    .any(|s| s.name == *name && s.outputs.is_empty());
                format!("{name} {}", if latches { "latched" } else { "fired" })
            };
            format!(
                "ok, {}",
                fired.iter().map(one).collect::<Vec<_>>().join(", ")
            )
        }
        _ => "ok".to_owned(),
    };
    let mut text = format!("{what}: {came}");
    for words in report.wire.iter().flatten() {
        text.push_str(&format!("\n       {}", words.join(" ")));
    }
    text
}

/// The first numbers of a vector.
fn listed(values: impl ExactSizeIterator<Item = impl std::fmt::Display>) -> String {
    const SHOWN: usize = 8;
    let count = values.len();
    let mut shown: Vec<String> = values.take(SHOWN).map(|v| v.to_string()).collect();
    if count > SHOWN {
        shown.push(format!("… ({count})"));
    }
    format!("[{}]", shown.join(", "))
}

/// Names of vectors, with this between them.
fn names(vectors: &[&Vector], between: &str) -> String {
    let names: Vec<&str> = vectors.iter().map(|vector| &*vector.varname).collect();
    names.join(between)
}
