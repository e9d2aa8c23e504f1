//! What is said beside the report: how the search goes, and what to do with what was written.

use super::{Arguments, Dialect};
use crate::terminal;
use chipless_schedule::emit::Written;
use chipless_schedule::model::Objective;
use chipless_schedule::search::Progress;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What is said while the search runs: the best so far by each measure. The search begins anew several times, so the one that it is at may be worse.
pub(super) struct Told {
    objective: Objective,
    model: f64,
    replay: f64,
}

impl Told {
    pub(super) fn new(objective: Objective) -> Told {
        let (model, replay) = (f64::INFINITY, f64::INFINITY);
        Told {
            objective,
            model,
            replay,
        }
    }

    pub(super) fn say(&mut self, progress: &Progress) {
        let score = |energy: f64, delay: f64| self.objective.of(energy, delay);
        let unit = match self.objective {
            Objective::Edp => "pJ cycles",
            Objective::Delay => "cycles",
            Objective::Energy => "pJ",
        };
        let of_model = score(progress.best.energy, progress.best.delay as f64);
        let bound = score(progress.bounds.energy, progress.bounds.delay);
        let of_replay = progress
            .replay
            .map(|(energy, delay)| score(energy, delay as f64));
        self.model = self.model.min(of_model);
        self.replay = self.replay.min(of_replay.unwrap_or(f64::INFINITY));
        let replay = if self.replay.is_finite() {
            format!(", {:.4e} by the replay", self.replay)
        } else {
            String::new()
        };
        let rate = progress.trees as f64 / progress.seconds.max(1e-9);
        terminal::complain(&format!(
            "{:.0} s: best so far {:.4e} {unit} in SET's model ({:.2} times its lower bound){replay}; {rate:.0} trees/s\n",
            progress.seconds,
            self.model,
            self.model / bound.max(1e-300),
        ));
    }
}

/// The files that were written, and how to run them.
pub(super) fn next(arguments: &Arguments, output: &Path, written: Option<&Written>) -> String {
    let option = |name: &str, path: &Option<PathBuf>| {
        let given = path.as_ref();
        given.map_or_else(String::new, |path| format!(" --{name} {}", path.display()))
    };
    let is_whole = arguments.network_out.is_some() && arguments.weights_out.is_some();
    let values = match (arguments.dialect, is_whole) {
        (Dialect::Set, _) => return format!("written: {}\n", output.display()),
        (Dialect::Spec, true) => written.map_or_else(String::new, encodings),
        (Dialect::Spec, false) => {
            "for its values, schedule again with --network-out net.json --weights-out weights\n"
                .to_owned()
        }
    };
    format!(
        "written: {0}; run it with\n  chipless run {0} --machine {1}{2}{3}\n{values}",
        output.display(),
        arguments.machine.display(),
        option("network", &arguments.network_out),
        option("weights", &arguments.weights_out),
    )
}

/// What the integers of inputs and outputs stand for.
fn encodings(written: &Written) -> String {
    let [inputs, outputs] = written.stored();
    let offset = |by: f64| match by {
        by if by < 0.0 => format!(" - {}", -by),
        by if by > 0.0 => format!(" + {by}"),
        _ => String::new(),
    };
    let mut text = String::new();
    for (name, how) in inputs {
        let (scale, zero) = (how.scale as f32, offset(how.zero));
        let _ = writeln!(
            text,
            "  --input {name}=FILE.npy: int8, round(x / {scale}){zero}"
        );
    }
    for (name, how) in outputs {
        let (scale, zero) = (how.scale as f32, offset(-how.zero));
        let stored = if zero.is_empty() {
            name.to_owned()
        } else {
            format!("({name}{zero})")
        };
        let _ = writeln!(text, "  output {name}: x = {stored} * {scale}");
    }
    text
}
