//! The page of a run, for `report` and `view`.

use super::{Opened, retime};
use crate::failure::Failure;
use crate::options::OtherOptions;
use crate::terminal;
use chipless::{Lowered, OpenDocument, Options};
use chipless_model::{Finding, Node, Program, Value};
use chipless_report::TimedBy;
use chipless_report::attribution::{Attribution, Lives, lives};
use chipless_report::diff::{self, Side};
use chipless_report::page::{self, Against, Picture, Served};
use chipless_report::why::Ranked;
use chipless_sim::{Timeline, TimingOnly, Verified};
use clap::Args;
use std::path::{Path, PathBuf};

/// A program with more tasks is not timed again with every figure of the machine for its page.
const RANKED: usize = 10_000;

/// The second program of a page.
#[derive(Args, Debug)]
pub(super) struct AgainstOptions {
    /// Show a second program of the same target beside the first.
    ///
    /// --machine and all other options hold for both programs; --other changes the second only. Give the same file twice and --other machine=npu5 to
    /// compare two machines.
    #[arg(long, value_name = "OTHER")]
    pub(super) against: Option<PathBuf>,
    #[command(flatten)]
    other: OtherOptions,
}

impl AgainstOptions {
    /// The second program, given the options of the first.
    pub(super) fn load(
        &self,
        first: &Options,
        command: &str,
    ) -> Result<Option<Second<'_>>, Failure> {
        match &self.against {
            Some(path) => Ok(Some(Second {
                path,
                changes: self.other.changes(),
                options: self.other.load(first, command)?,
            })),
            None if self.other.is_empty() => Ok(None),
            None => {
                let text =
                    "expected --against OTHER beside it: it sets options of the second program";
                Err(Failure::misuse("--other", text))
            }
        }
    }
}

/// A second program, and how it is run.
pub(super) struct Second<'s> {
    path: &'s Path,
    /// What `--other` changes.
    changes: &'s [String],
    options: Options,
}

impl Second<'_> {
    /// Its path, and what is changed for it alone.
    pub(super) fn name(&self) -> String {
        let path = self.path.display();
        match self.changes {
            [] => path.to_string(),
            changes => format!("{path} with {}", changes.join(", ")),
        }
    }
}

/// The page of a file, beside another program of its target where one is given.
pub(super) fn html(
    opened: &Opened,
    options: &Options,
    against: Option<&Second<'_>>,
    served: Served,
) -> Result<String, Failure> {
    opened.with_document(options, |document| {
        if !document.is_program() {
            return without_run(opened, document, against, served);
        }
        let lowered = document.lower()?;
        let shown = Shown::of(opened, options, document, &lowered)?;
        let run = shown.run(&opened.path, &lowered.program);
        let Some(second) = against else {
            return Ok(page::page(&run, None, served));
        };
        let other = Opened::open(second.path)?;
        let target = opened.target().unwrap_or_default();
        other.expect(target, &format!("a second program of target {target}"))?;
        other.with_document(&second.options, |document| {
            let lowered = document.lower()?;
            let beside = Shown::of(&other, &second.options, document, &lowered)?;
            note_equal(&shown, &beside);
            let beside = beside.run(&other.path, &lowered.program);
            let (a, b) = (side(&run), side(&beside));
            let (mut difference, pairs) = diff::diff(a, b);
            difference.time = Some(diff::time(a, b));
            let against = Against {
                run: &beside,
                difference: &difference,
                pairs: &pairs,
            };
            Ok(page::page(&run, Some(against), served))
        })
    })
}

/// Says so where two runs take the same time: whoever set an option for one of them would look for a difference.
fn note_equal(first: &Shown, second: &Shown) {
    let [a, b] = [first, second].map(|shown| shown.timeline.end);
    if a.0 / 1000 == b.0 / 1000 {
        terminal::complain(&format!(
            "note: both programs take {a}, the same to the nanosecond. Options hold for both; `--other machine=npu5` changes the second only\n"
        ));
    }
}

/// The page of a contract or a fabric: what it is, what was found, its pictures.
fn without_run(
    opened: &Opened,
    document: &OpenDocument<'_>,
    against: Option<&Second<'_>>,
    served: Served,
) -> Result<String, Failure> {
    if against.is_some() {
        let text = "expected two programs, found a file that holds none: chipless diff compares it";
        return Err(Failure::misuse("--against", text));
    }
    let program = Program {
        target: opened.target().unwrap_or_default(),
        ..Program::default()
    };
    let timeline = Timeline::default();
    let info = document.info();
    let counts = info
        .counts
        .into_iter()
        .map(|(name, count)| (name, Value::Integer(count.into())));
    let facts = info.facts.into_iter().chain(counts);
    let shown = Shown {
        attribution: Attribution::of(&program, &timeline),
        lives: lives(&program, &timeline),
        timed_by: None,
        estimate_ns: None,
        findings: document.findings().to_vec(),
        facts: facts
            .map(|(name, value)| Node {
                name,
                value: Some(value),
                ..Node::default()
            })
            .collect(),
        notes: Vec::new(),
        pictures: document.pictures(),
        ranking: Vec::new(),
        timeline,
    };
    let run = shown.run(&opened.path, &program);
    Ok(page::page(&run, None, served))
}

fn side<'s, 'a>(run: &page::Run<'s, 'a>) -> Side<'s, 'a> {
    Side {
        program: run.program,
        timeline: run.timeline,
        order: &run.timeline.order,
    }
}

/// What a page shows of a program besides the program itself.
struct Shown {
    timeline: Timeline,
    attribution: Attribution,
    lives: Lives,
    timed_by: Option<TimedBy>,
    estimate_ns: Option<f64>,
    findings: Vec<Finding>,
    facts: Vec<Node>,
    notes: Vec<String>,
    pictures: Vec<Picture>,
    ranking: Vec<Ranked>,
}

impl Shown {
    fn of(
        opened: &Opened,
        options: &Options,
        document: &OpenDocument<'_>,
        lowered: &Lowered<'_>,
    ) -> Result<Shown, Failure> {
        let program = &lowered.program;
        let verified = match lowered.verify() {
            Ok(verified) => verified.warnings().to_vec(),
            Err(mut findings) => {
                document.advise(&mut findings);
                findings
            }
        };
        let findings = document.findings().iter().cloned().chain(verified);
        let outcome = chipless_sim::run(&Verified::assume(program), &mut TimingOnly);
        if outcome.end.is_err() {
            let text = "does not come to its end: `chipless run` says why";
            return Err(Failure::wrong(&opened.path, text));
        }
        let timeline = outcome.timeline;
        let mut notes = lowered.notes.clone();
        let ranking = if program.tasks.len() <= RANKED {
            retime::rank(opened, options, (program, timeline.end))
        } else {
            notes.push(format!(
                "machine parameters are not ranked here, as the program has more than {RANKED} tasks: `chipless run {} --timing-only --rank` ranks them",
                opened.path
            ));
            Vec::new()
        };
        Ok(Shown {
            attribution: Attribution::of(program, &timeline),
            lives: lives(program, &timeline),
            timed_by: document.timed_by()?,
            estimate_ns: document.estimate_ns()?,
            findings: findings.collect(),
            facts: document.facts(program, &timeline)?,
            notes,
            pictures: document.pictures(),
            ranking,
            timeline,
        })
    }

    fn run<'s, 'a>(&'s self, file: &'s str, program: &'s Program<'a>) -> page::Run<'s, 'a> {
        page::Run {
            file,
            program,
            timeline: &self.timeline,
            attribution: &self.attribution,
            lives: &self.lives,
            timed_by: self.timed_by.as_ref(),
            estimate_ns: self.estimate_ns,
            findings: &self.findings,
            facts: &self.facts,
            notes: &self.notes,
            pictures: &self.pictures,
            ranking: &self.ranking,
        }
    }
}
