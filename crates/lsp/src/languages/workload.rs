//! Device workloads: who shares a device, what arrives when.

use super::yaml::{self, Key};
use crate::analysis::{Analysis, SymbolKind};
use crate::language::{Language, Suggestion, SuggestionKind, checked};
use chipless::device::{self, Request};
use chipless::{Checked, Options};
use chipless_yaml::{Node, Value};
use std::ops::Range;

/// The language.
pub(super) struct WorkloadFile;

const KEYS: &[Key] = &[
    (
        "machine",
        "The machine that is simulated: `npu4`, or a machine file.",
    ),
    (
        "duration",
        "How long streams go on. Unit: ps, ns, us, ms or s. Default: until every stream has had its `count`.",
    ),
    ("seed", "Seed of random arrivals. Default: 0."),
    (
        "contexts",
        "Who submits jobs: a mapping from names to contexts, each with a ring of its own.",
    ),
    (
        "contexts.*.process",
        "The number of the process, which says whose address space it is: from 0 to 2^20 - 1.",
    ),
    (
        "contexts.*.band",
        "The band of the scheduler: `idle`, `normal`, `focus` or `realtime`. Default: `normal`.",
    ),
    (
        "contexts.*.priority",
        "Priority within the process, from -7 to 7. Default: 0.",
    ),
    (
        "contexts.*.percentage",
        "What the normal band gets at least while others wait. Unit: percent. Default: that of the machine.",
    ),
    ("streams", "What arrives: a list of streams of jobs."),
    ("streams.*.name", "The name of the stream in results."),
    (
        "streams.*.context",
        "The context that submits the jobs: one of `contexts`.",
    ),
    (
        "streams.*.program",
        "The program of each job: a file of any target, found from the folder of the workload, or `synthetic`.",
    ),
    (
        "streams.*.arrivals",
        "When jobs arrive: exactly one of `every`, `poisson`, `in_flight` and `at`.",
    ),
    (
        "streams.*.arrivals.every",
        "A job in each period. Unit: ps, ns, us, ms or s.",
    ),
    (
        "streams.*.arrivals.jitter",
        "How much later than its period a job arrives at most, beside `every`. Unit: a time. Default: 0.",
    ),
    (
        "streams.*.arrivals.poisson",
        "Jobs at random at this mean rate: `40/s`.",
    ),
    (
        "streams.*.arrivals.in_flight",
        "So many jobs are always under way: one that ends is followed by another.",
    ),
    (
        "streams.*.arrivals.at",
        "Jobs at the instants of a file: one on each line, in seconds where there is no unit.",
    ),
    (
        "streams.*.arrivals.offset",
        "When the first job arrives. Unit: a time. Default: 0.",
    ),
    (
        "streams.*.arrivals.count",
        "How many jobs there are. Default: as many as `duration` has room for.",
    ),
    (
        "streams.*.deadline",
        "How long a job may take. Unit: a time. Default: none.",
    ),
    (
        "streams.*.engine",
        "The engine that the job needs: `nn` or `copy`. Default: `nn`.",
    ),
    (
        "streams.*.program.synthetic",
        "A program that is described here instead of read from a file.",
    ),
    (
        "streams.*.program.synthetic.engine",
        "`nn` or `copy`. Default: that of the stream.",
    ),
    (
        "streams.*.program.synthetic.tiles",
        "Tiles that the program takes.",
    ),
    (
        "streams.*.program.synthetic.state",
        "What a preemption saves. Unit: bytes, or B, KiB, MiB, GiB. Default: 0.",
    ),
    (
        "streams.*.program.synthetic.maps",
        "Ranges of addresses that are mapped. Default: all of them.",
    ),
    (
        "streams.*.program.synthetic.tasks",
        "Tasks, in order on their queue, queues side by side.",
    ),
    (
        "streams.*.program.synthetic.tasks.*.compute",
        "The task computes for so long. Unit: a time.",
    ),
    (
        "streams.*.program.synthetic.tasks.*.transfer",
        "The task moves so many bytes. Unit: bytes, or B, KiB, MiB, GiB.",
    ),
    (
        "streams.*.program.synthetic.tasks.*.push",
        "The task pushes a list of so many bytes to a link agent.",
    ),
    (
        "streams.*.program.synthetic.tasks.*.hang",
        "`true`: the task never ends.",
    ),
    (
        "streams.*.program.synthetic.tasks.*.queue",
        "The queue that the task is on. Default: `q`.",
    ),
    (
        "streams.*.program.synthetic.tasks.*.after",
        "Tasks that must have ended: their numbers, from 0, repetitions written out.",
    ),
    (
        "streams.*.program.synthetic.tasks.*.repeat",
        "How often the task is there. Default: 1.",
    ),
    (
        "streams.*.program.synthetic.tasks.*.path",
        "Resources that a transfer passes: `port0` to `port3`, `group0`, `group1`, `network`, `cache`, `ddr`.",
    ),
    (
        "streams.*.program.synthetic.tasks.*.address",
        "The first address of a transfer.",
    ),
    (
        "streams.*.program.synthetic.tasks.*.stride",
        "How much further each repetition begins. Unit: bytes.",
    ),
    (
        "streams.*.program.synthetic.tasks.*.write",
        "`true`: the transfer writes. Default: false.",
    ),
    (
        "streams.*.program.synthetic.tasks.*.agent",
        "The agent of the cache that the transfer counts for.",
    ),
    (
        "streams.*.program.synthetic.tasks.*.link_agent",
        "The link agent that takes a push.",
    ),
    (
        "set",
        "Machine parameters for this workload: a mapping from keys to values. `chipless machine npu4` lists the keys.",
    ),
    (
        "what_if",
        "Simulations beside the first, each with one parameter changed: a list of `KEY=VALUE`.",
    ),
];

impl Language for WorkloadFile {
    fn id(&self) -> &'static str {
        "chipless-workload"
    }

    fn name(&self) -> &'static str {
        "device workload"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["yaml", "yml"]
    }

    fn recognize(&self, text: &str) -> bool {
        let key = |name: &str| {
            text.lines().any(|line| {
                line.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(':'))
            })
        };
        key("streams") && (key("contexts") || key("machine"))
    }

    fn check(&self, name: &str, text: &str, options: &Options) -> Option<Checked> {
        let request = Request {
            name: name.to_owned(),
            text: text.to_owned(),
            folder: folder(name),
            ..Request::default()
        };
        Some(checked(device::check(&request, options)))
    }

    fn analyse(&self, text: &str) -> Analysis {
        let mut analysis = Analysis::default();
        let Some(root) = yaml::tree(text) else {
            return analysis;
        };
        let mut contexts: Vec<(String, usize)> = Vec::new();
        let mut uses: Vec<(String, Range<usize>)> = Vec::new();
        yaml::outline(
            text,
            &root,
            &mut analysis,
            2,
            &mut |analysis, path, key, value, symbol| {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                match (path.as_slice(), symbol) {
                    (["contexts", name], Some(symbol)) => {
                        let own = &mut analysis.symbols[symbol];
                        own.kind = SymbolKind::Variable;
                        "context".clone_into(&mut own.detail);
                        own.renamable = true;
                        analysis.occurs(symbol, yaml::range(text, key.span), true);
                        contexts.push(((*name).to_owned(), symbol));
                    }
                    (["streams", "*", "context"], _) => {
                        uses.push((value.label(), yaml::range(text, value.span)));
                    }
                    _ => {}
                }
            },
        );
        for (name, range) in uses {
            if let Some((_, symbol)) = contexts.iter().find(|(known, _)| *known == name) {
                analysis.occurs(*symbol, range, false);
            }
        }
        streams(text, &root, &mut analysis);
        analysis.sort();
        analysis
    }

    fn explain(&self, text: &str, _: &Analysis, offset: usize) -> Option<(Range<usize>, String)> {
        let path = yaml::path_at(text, offset);
        if path.first().is_some_and(|section| section == "set") {
            return super::machine::figure(text, offset, "npu4");
        }
        yaml::explain(KEYS, text, offset)
    }

    fn complete(&self, text: &str, analysis: &Analysis, offset: usize) -> Vec<Suggestion> {
        let line = text[..text.floor_char_boundary(offset)]
            .rsplit('\n')
            .next()
            .unwrap_or_default();
        let typed = line
            .rsplit([',', '{'])
            .next()
            .unwrap_or_default()
            .trim_start_matches([' ', '-']);
        if typed.starts_with("context:") {
            let contexts = analysis.symbols.iter().filter(|s| s.detail == "context");
            return contexts
                .map(|s| Suggestion::new(s.name.clone(), SuggestionKind::Variable, "context"))
                .collect();
        }
        if typed.starts_with("band:") {
            return ["idle", "normal", "focus", "realtime"]
                .into_iter()
                .map(|band| Suggestion::new(band, SuggestionKind::Value, "band of the scheduler"))
                .collect();
        }
        if yaml::path_at(text, offset)
            .first()
            .is_some_and(|section| section == "set")
        {
            return super::machine::keys("npu4");
        }
        yaml::complete(KEYS, text, offset)
    }
}

/// Streams under their names, below `streams`.
fn streams(text: &str, root: &Node, analysis: &mut Analysis) {
    let below = analysis
        .symbols
        .iter()
        .position(|s| s.name == "streams" && s.below.is_none());
    let Some(Value::List(items)) = root.get("streams").map(|node| &node.value) else {
        return;
    };
    for item in items {
        let Some(name) = item.get("name") else {
            continue;
        };
        let word = yaml::range(text, name.span);
        let whole = yaml::extent(text, name, item);
        analysis.add(crate::analysis::Symbol {
            name: name.label(),
            kind: SymbolKind::Event,
            detail: "stream".to_owned(),
            about: String::new(),
            word,
            range: whole,
            part_of: None,
            below,
            listed: true,
            renamable: false,
        });
    }
}

/// The folder of a file, with a separator at its end.
pub(super) fn folder(name: &str) -> String {
    name.rfind(['/', '\\'])
        .map_or_else(String::new, |at| name[..=at].to_owned())
}
