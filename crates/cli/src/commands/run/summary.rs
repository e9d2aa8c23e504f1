//! What is said of a run that came to its end: tables and traces, the profiling buffer, the summary.

use super::compared_with::{ComparedWith, compared_with};
use super::{Outcomes, Session};
use crate::commands::full;
use crate::failure::{Exit, Failure};
use crate::{files, terminal};
use chipless_model::{Finding, Node, Time};
use chipless_report::Comparison;
use chipless_report::attribution::Attribution;
use chipless_report::schedule_trace::Compared;
use chipless_report::summary::{Budgeted, Run};
use chipless_report::why::{self, ModelNode};
use chipless_sim::{Order, Timeline};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A machine parameter limits a run that is so many times as fast with twice of it.
const LIMITS: f64 = 1.05;

impl<'p> Session<'_, 'p> {
    pub(super) fn trace(&self, timeline: &Timeline) -> Result<(), Failure> {
        let tables = &self.arguments.tables;
        if !tables.are_wanted() {
            return Ok(());
        }
        let attribution = self.attribution(timeline);
        tables.write(&self.opened.path, self.program, timeline, attribution)
    }

    /// The run taken apart. A session has one run that is told of.
    pub(super) fn attribution(&self, timeline: &Timeline) -> &Attribution {
        let apart = || Attribution::of(self.program, timeline);
        self.attribution.get_or_init(apart)
    }

    /// The nodes of the model that was given, by the layers that come from them.
    fn nodes<'r>(&'r self, timeline: &Timeline) -> BTreeMap<&'r str, ModelNode<'r>> {
        let Some(nodes) = self.document.capabilities().names_nodes else {
            return BTreeMap::new();
        };
        let layers = why::layers(self.program, self.attribution(timeline));
        let node = |layer: why::Layer<'r>| {
            let (name, operation) = nodes.node(layer.layer)?;
            Some((layer.layer, ModelNode { name, operation }))
        };
        layers.into_iter().filter_map(node).collect()
    }

    /// The run beside the compiler's schedule, where that was given.
    fn against(&self, timeline: &Timeline) -> Result<Option<Compared>, Failure> {
        let path = self.arguments.compare.as_ref();
        let Some(path) = path.filter(|path| compared_with(path) == ComparedWith::Schedule) else {
            return Ok(None);
        };
        let trace = self.options.open(&path.to_string_lossy())?;
        let schedule = self.document.capabilities().planned()?.schedule(&trace)?;
        Ok(Some(Compared::of(self.program, timeline, &schedule)))
    }

    /// Writes the profiling buffer, and says where.
    fn profile(&self, timeline: &Timeline) -> Result<Option<Node>, Failure> {
        let Some(path) = &self.arguments.profile else {
            return Ok(None);
        };
        let (buffer, records) = self
            .document
            .capabilities()
            .profiles()?
            .profile(self.program, timeline)?;
        files::write(path, &[&buffer])?;
        let named = |name: &str, node: Node| Node {
            name: name.to_owned(),
            ..node
        };
        Ok(Some(Node {
            name: "profiling".to_owned(),
            children: vec![
                named("path", Node::from(path.display().to_string())),
                named("bytes", Node::from(buffer.len() as u64)),
                named("records", Node::from(records as u64)),
            ],
            ..Node::default()
        }))
    }

    /// What the run takes beside what it may, where that was asked.
    fn budgets(&self, timeline: &Timeline) -> Result<Option<Vec<Budgeted>>, Failure> {
        let budgets = self.arguments.budgets.iter().flatten();
        let measured = budgets.map(|budget| budget.measure(self.program, timeline));
        let measured: Vec<Budgeted> = measured.collect::<Result<_, _>>()?;
        Ok((!measured.is_empty()).then_some(measured))
    }

    pub(super) fn summarise(
        &self,
        timeline: &Timeline,
        outcomes: Outcomes,
        seed: Option<u64>,
        notes: Vec<String>,
    ) -> Result<Exit, Failure> {
        let run = self.summary(timeline, outcomes, seed, notes)?;
        if self.arguments.answer.is_json() {
            terminal::print_json(&run.report())?;
        } else {
            terminal::print(&run.text(terminal::out(), terminal::width()))?;
        }
        let budgets = run.budgets.iter().flatten();
        let mut over: Vec<String> = budgets.filter(|b| !b.within).map(Budgeted::text).collect();
        if self.arguments.tolerance.is_some() {
            let off = run.compared.iter().flatten().filter(|c| !c.agrees);
            over.extend(off.map(|c| format!("{} {}", c.output, c.line())));
        }
        for text in &over {
            terminal::complain(&format!("{}: {text}\n", self.opened.path));
        }
        Ok(
            if over.is_empty() && !run.findings.iter().any(Finding::is_error) {
                Exit::Done
            } else {
                Exit::Wrong
            },
        )
    }

    pub(super) fn summary<'r>(
        &'r self,
        timeline: &'r Timeline,
        outcomes: Outcomes,
        seed: Option<u64>,
        mut notes: Vec<String>,
    ) -> Result<Run<'r, 'p>, Failure> {
        let wall_ms = self.started.elapsed().as_micros() as f64 / 1e3;
        let mut facts = self.document.facts(self.program, timeline)?;
        facts.extend(self.profile(timeline)?);
        let nodes = self.nodes(timeline);
        if nodes.is_empty()
            && self.options.value("model").is_some()
            && !why::layers(self.program, self.attribution(timeline)).is_empty()
        {
            notes.push("no layer has the name of a node of --model: is it the model that this program was compiled from?".to_owned());
        }
        let (changes, base) = (&self.arguments.changes, timeline.end);
        let timed = (self.program, self.attribution(timeline), base);
        let what_if = changes.what_if(self.opened, self.options, timed)?;
        let ranking = changes.ranking(self.opened, self.options, (self.program, base));
        let faster = ranking.as_ref().and_then(|rows| {
            // A faster clock makes everything faster, and so says nothing of what limits the run.
            let limits = rows.iter().filter(|row| !row.figure.starts_with("clock"));
            let limit = limits.map(|row| (&*row.figure, row.gain)).next();
            let limit = limit.filter(|(_, gain)| *gain > LIMITS);
            self.document.faster(limit)
        });
        notes.extend(self.document.remarks(&facts));
        let off = |compared: &[Comparison]| compared.iter().any(|output| !output.agrees);
        if outcomes.compared.as_deref().is_some_and(off)
            && let Some(path) = &self.arguments.compare
            && compared_with(path) == ComparedWith::Model
        {
            notes.extend(full::left_out_of(path, self.program.target).map(str::to_owned));
        }
        let budgets = self.budgets(timeline)?;
        if base == Time::ZERO && budgets.is_some() {
            notes.push(
                "the run takes no time, which is within any latency: --budget says nothing of it"
                    .to_owned(),
            );
        }
        Ok(Run {
            file: &self.opened.path,
            program: self.program,
            timeline,
            timed_by: self.document.timed_by()?,
            estimate_ns: self.document.estimate_ns()?,
            is_timed: self.order == Order::Timed,
            outputs: outcomes.written,
            attribution: Cow::Borrowed(self.attribution(timeline)),
            nodes,
            what_if,
            ranking,
            faster,
            budgets,
            against: self.against(timeline)?,
            compared: outcomes.compared,
            searched: outcomes.searched,
            findings: outcomes.findings,
            facts,
            seed,
            notes,
            wall_ms,
        })
    }
}
