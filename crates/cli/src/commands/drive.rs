//! `chipless drive`

mod script;
mod talk;

use super::told as refused;
use crate::failure::{Exit, Failure};
use crate::files;
use crate::options::TargetOptions;
use crate::terminal;
use chipless::spu::fqir;
use chipless::spu::iospec::{
    self, Document, Femto, RuleSet, Session, Vector, Violation, dequantize, wire,
};
use clap::{Args, ValueEnum};
use script::{Reader, Step};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Write to and read from a program as a host does, and see what its IOSpec says of each call.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// An IOSpec (YAML), or a .femto container, whose own is taken.
    #[arg(value_name = "SPEC")]
    spec: PathBuf,
    /// The steps: YAML, JSON, or one JSON object a line. Without it they are read from standard input, line by line.
    #[arg(long, short, value_name = "FILE")]
    script: Option<PathBuf>,
    /// The program behind the contract: an FQIR plan. Reads then give its numbers.
    #[arg(long, short, value_name = "PLAN.json")]
    program: Option<PathBuf>,
    /// The words on the wire, header first, as 32-bit halves.
    #[arg(long)]
    wire: bool,
    /// Values are reals: written ones are quantised by scale and zero point, read ones dequantised.
    #[arg(long)]
    quantize: bool,
    /// How to print what happened.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Print the calls that a host program must make, in C, and do nothing else.
    #[arg(long, conflicts_with_all = ["script", "program", "wire", "quantize"])]
    host_code: bool,
    #[command(flatten)]
    options: TargetOptions,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// A line for each step.
    #[default]
    Human,
    /// One object with all steps.
    Json,
}

const EXAMPLES: &str = "\
Examples:
  chipless drive iospec.yaml                by hand, a step a line
  chipless drive iospec.yaml --script steps.yaml --program plan.json
  chipless drive iospec.yaml --script steps.json --wire --format json
  chipless drive iospec.yaml --host-code    the calls of a host program, in C
  printf 'write B=1,2,3\\nread\\n' | chipless drive iospec.yaml

A script is a list of steps, {steps: [...]}, or a step a line:
  write: [B, C]                                  names, for their order alone
  write: {B: [1, 2, 3], C: c.npy}                values, or a file of them
  write: {sequence_id: 0, vectors: [[1], [2]]}   as SpuWriteData takes them
  write: {words64: [\"0000000900000001\", ...]}    messages as on the bus
  read: true                                     what is ready
  read: {sequence_id: 0}                         or {mailbox: 5}
  read: {words64: [...]}                         as a device sent them
  reset: true

In words, a step a line: `write B=1,2,3 C=c.npy`, `read`, `reset`; by hand and from standard input also `next` and `quit`. \
A script is read to its end before its first step is taken.

JSON is `{steps: [{ok, error, code, expected, fired, outputs, values, wire}]}`.

Exit status: 0 every step was in order, 1 one was not, 2 a file cannot be used or the command was misused.";

/// A step and what came of it.
#[derive(Default, Serialize)]
struct Report {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expected: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fired: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<BTreeMap<String, Values>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wire: Option<Vec<Vec<String>>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Values {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let options = arguments.options.load()?;
    let rules = chipless::rule_set(&options);
    let document = open(&arguments.spec, rules)?;
    if arguments.host_code {
        terminal::print(&iospec::host_code(&document))?;
        return Ok(Exit::Done);
    }
    let session = || {
        let session = Session::new(&document, rules);
        if arguments.wire {
            session.with_wire()
        } else {
            session
        }
    };
    let Some(path) = &arguments.program else {
        return Driver::new(arguments, &document, session()).run();
    };
    let name = path.display().to_string();
    let bytes = files::open(path).map_err(|error| Failure::unreadable(&name, error))?;
    chipless::with_runner(&name, &bytes, &options, |runner| {
        let session = session()
            .with_program(runner)
            .map_err(|violation| Failure::unreadable(arguments.spec.display(), violation))?;
        Driver::new(arguments, &document, session).run()
    })
}

/// The IOSpec of a file, if nothing in it is an error under the rules.
pub(crate) fn open(path: &Path, rules: RuleSet) -> Result<Document, Failure> {
    let name = path.display().to_string();
    let bytes = files::open(path).map_err(|error| Failure::unreadable(&name, error))?;
    let refuse = |bytes: &[u8], findings: Vec<chipless_model::Finding>| {
        let failure = chipless::Failure::reading(findings);
        refused(&name, Some("spu"), bytes, &[], failure)
    };
    if fqir::recognize(&bytes) {
        return Err(Failure::unreadable(
            &name,
            "expected an IOSpec, found an FQIR plan (--program takes it)",
        ));
    }
    let converted;
    let text = if Femto::recognize(&bytes) {
        let femto = Femto::read(&bytes).map_err(|finding| refuse(&bytes, vec![*finding]))?;
        converted = chipless::spu::yaml::write(&femto.iospec());
        &converted
    } else {
        std::str::from_utf8(&bytes).map_err(|e| {
            Failure::unreadable(
                &name,
                format_args!(
                    "expected text in UTF-8, found other bytes at offset {}",
                    e.valid_up_to()
                ),
            )
        })?
    };
    let document =
        Document::read(text, rules).map_err(|findings| refuse(text.as_bytes(), findings))?;
    let findings = iospec::lint(&document, rules);
    if findings.iter().any(chipless_model::Finding::is_error) {
        return Err(refuse(text.as_bytes(), findings));
    }
    Ok(document)
}

struct Driver<'a, 'd> {
    arguments: &'a Arguments,
    document: &'d Document,
    session: Session<'d>,
    steps: usize,
    wrong: usize,
}

impl<'a, 'd> Driver<'a, 'd> {
    fn new(
        arguments: &'a Arguments,
        document: &'d Document,
        session: Session<'d>,
    ) -> Driver<'a, 'd> {
        Driver {
            arguments,
            document,
            session,
            steps: 0,
            wrong: 0,
        }
    }

    fn run(mut self) -> Result<Exit, Failure> {
        let stdin = std::io::stdin();
        if self.arguments.script.is_none() && stdin.is_terminal() {
            return talk::talk(&mut self, stdin.lock());
        }
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        let put = |out: &mut dyn Write, text: &str| {
            out.write_all(text.as_bytes())
                .map_err(|error| Failure::output(&error))
        };
        let json = matches!(self.arguments.format, Format::Json);
        if json {
            put(&mut out, "{\"steps\": [")?;
        }
        let (arguments, document) = (self.arguments, self.document);
        let (name, directory) = match &self.arguments.script {
            Some(path) => (
                path.display().to_string(),
                path.parent().map(Path::to_path_buf).unwrap_or_default(),
            ),
            None => ("standard input".to_owned(), PathBuf::new()),
        };
        let reader = Reader {
            name,
            directory,
            document,
            quantize: self.arguments.quantize,
        };
        match &arguments.script {
            Some(path) => reader.steps(&files::read_text(path)?, &mut |step| {
                put(&mut out, &self.line(&step, json)?)
            })?,
            None => {
                for (number, line) in stdin.lock().lines().enumerate() {
                    let line = line.map_err(|error| Failure::misuse("standard input", error))?;
                    match line.trim() {
                        "" => {}
                        "quit" | "exit" => break,
                        "next" if !json => put(&mut out, &talk::may_come(&self))?,
                        _ => {
                            let step = reader.line(&line, Some(number + 1))?;
                            put(&mut out, &self.line(&step, json)?)?;
                        }
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

    /// Takes a step; what is printed about it.
    fn line(&mut self, step: &Step, json: bool) -> Result<String, Failure> {
        let separator = if self.steps > 0 { ",\n" } else { "\n" };
        let report = self.step(step);
        if !json {
            return Ok(format!("{:>4} {}\n", self.steps, told(step, &report)));
        }
        let report = serde_json::to_string(&report)
            .map_err(|error| Failure::misuse("standard output", error))?;
        Ok(format!("{separator}{report}"))
    }

    fn step(&mut self, step: &Step) -> Report {
        self.steps += 1;
        let done = self.act(step);
        done.unwrap_or_else(|violation| {
            self.wrong += 1;
            let (code, expected) = (violation.code(), violation.expected.clone());
            Report {
                error: Some(violation.to_string()),
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
        let mut values = BTreeMap::new();
        for (name, integers) in reading.values {
            let vector = self.document.outputs.iter().find(|v| v.varname == name);
            let shown = match vector.filter(|_| self.arguments.quantize) {
                Some(vector) => Values::Reals(dequantize(vector, &integers)?),
                None => Values::Integers(integers),
            };
            values.insert(name, shown);
        }
        let values = (!values.is_empty() || self.arguments.program.is_some()).then_some(values);
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
    let names: Vec<String> = session
        .document()
        .inputs
        .iter()
        .map(|v| v.varname.clone())
        .collect();
    session.write(act).map_err(|mut violation| {
        let unknown = act
            .iter()
            .map(|(name, _)| name)
            .find(|name| !names.contains(*name));
        if let Some(unknown) = unknown.filter(|_| violation.code().is_none()) {
            violation.message.push_str(&chipless::suggest::hint(
                unknown,
                names.iter().map(|n| &**n),
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
fn told(step: &Step, report: &Report) -> String {
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
        (_, Some(values), ..) if !values.is_empty() => {
            let one = |(name, values): (&String, &Values)| match values {
                Values::Integers(values) => format!("{name} = {}", listed(values.iter())),
                Values::Reals(values) => format!("{name} = {}", listed(values.iter())),
            };
            values.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        (_, _, Some(outputs), _) if outputs.is_empty() => "nothing is ready".to_owned(),
        (_, _, Some(outputs), _) => outputs.join(", "),
        (_, _, _, Some(fired)) if !fired.is_empty() => format!("ok, {} fired", fired.join(", ")),
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

/// Names of vectors.
fn names(vectors: &[&Vector]) -> String {
    vectors
        .iter()
        .map(|v| &*v.varname)
        .collect::<Vec<_>>()
        .join(", ")
}
