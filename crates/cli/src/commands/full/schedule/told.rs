//! What is said beside the report: how the search goes, and what to do with what was written.

use super::{Arguments, Dialect};
use crate::terminal;
use chipless_schedule::emit::Written;
use chipless_schedule::front::{Front, Layout};
use chipless_schedule::model::Objective;
use chipless_schedule::search::{Found, Progress, Stopped};
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

/// Warns of a search whose time was over before it had changed each layer once.
pub(super) fn few_trees(arguments: &Arguments, found: &Found, layers: usize) {
    if found.stopped == Stopped::Time && found.trees < layers as u64 {
        let trees = match found.trees {
            1 => "1 tree was".to_owned(),
            trees => format!("{trees} trees were"),
        };
        terminal::complain(&format!(
            "{}: warning: only {trees} evaluated for {layers} layers: the schedule may be far from the best. --seconds or --trees with a larger number gives more\n",
            arguments.network.display()
        ));
    }
}

/// The files that were written, and how to run them.
pub(super) fn next(
    arguments: &Arguments,
    output: &Path,
    front: &Front,
    written: Option<&Written>,
) -> String {
    let option = |name: &str, path: &Option<PathBuf>| {
        let given = path.as_ref();
        given.map_or_else(String::new, |path| format!(" --{name} {}", path.display()))
    };
    let is_whole = arguments.network_out.is_some() && arguments.weights_out.is_some();
    let (output, machine) = (output.display(), arguments.machine.display());
    let (network, weights) = (
        option("network", &arguments.network_out),
        option("weights", &arguments.weights_out),
    );
    let encodings = || written.map_or_else(String::new, |written| encodings(front, written));
    let again = "schedule again with --network-out net.json --weights-out weights";
    match (arguments.dialect, is_whole) {
        (Dialect::Spec, _) => {
            let values = if is_whole {
                encodings()
            } else {
                format!("for its values, {again}\n")
            };
            format!(
                "written: {output}; run it with\n  chipless run {output} --machine {machine}{network}{weights}\n{values}"
            )
        }
        // It has times alone; what it was made from has values in the other dialect.
        (Dialect::Set, _) => {
            let values = if front.bits() != 8 {
                let network = arguments.network_out.as_ref();
                let what = network
                    .or(arguments.weights_out.as_ref())
                    .map_or_else(String::new, |path| {
                        format!(" {} is for such a schedule.", path.display())
                    });
                format!(
                    "SET's dialect counts a byte for each element, so it has no values in fp16: schedule without --dialect set for values.{what}\n"
                )
            } else if is_whole {
                format!(
                    "for its values, convert it first\n  chipless convert {output}{network} -o spec.json\n  chipless run spec.json --machine {machine}{network}{weights}\n{}",
                    encodings()
                )
            } else {
                format!("for its values, {again}, then convert it\n")
            };
            format!(
                "written: {output}; time it with\n  chipless run {output} --machine {machine} --timing-only\n{values}"
            )
        }
    }
}

/// What the integers of inputs and outputs stand for, and how the schedule has their axes.
fn encodings(front: &Front, written: &Written) -> String {
    let [of_inputs, of_outputs] = &front.called;
    let [inputs, outputs] = written.stored();
    let offset = |by: f64| match by {
        by if by < 0.0 => format!(" - {}", -by),
        by if by > 0.0 => format!(" + {by}"),
        _ => String::new(),
    };
    let mut text = String::new();
    if inputs.is_empty() {
        for name in of_inputs {
            let _ = writeln!(
                text,
                "  --input {name}=FILE.npy: shape and type of the model's"
            );
        }
    }
    for (at, (name, how)) in inputs.into_iter().enumerate() {
        let (scale, zero) = (how.scale as f32, offset(how.zero));
        let model = of_inputs.get(at);
        let real = model.map_or("x", String::as_str);
        let of = model.map_or_else(String::new, |model| format!(" of the model's {model}"));
        let _ = writeln!(
            text,
            "  --input {name}=FILE.npy: int8, round({real} / {scale}){zero}{of}"
        );
        if let Some(input) = front.inputs.get(at) {
            let [c, h, w] = input.extents;
            let _ = writeln!(
                text,
                "      of shape {}",
                axes(input.layout, real, [c, h, w])
            );
        }
    }
    for (at, (name, how)) in outputs.into_iter().enumerate() {
        let (scale, zero) = (how.scale as f32, offset(-how.zero));
        let stored = if zero.is_empty() {
            name.to_owned()
        } else {
            format!("({name}{zero})")
        };
        let model = of_outputs.get(at);
        let real = model.filter(|model| *model != name).map_or_else(
            || format!("in real numbers {stored} * {scale}"),
            |model| format!("the model's {model} = {stored} * {scale}"),
        );
        let _ = writeln!(text, "  output {name}: {real}");
    }
    text
}

/// The shape that a schedule has an input in, and how it follows from the model's.
fn axes(layout: Layout, real: &str, [c, h, w]: [i64; 3]) -> String {
    let shape = format!("[N, {c}, {h}, {w}]");
    match layout {
        Layout::Map => shape,
        Layout::Sequence => format!(
            "{shape}; from the model's [N, {h}, {c}]:\n      numpy.transpose({real}, (0, 2, 1)).reshape(-1, {c}, {h}, {w})"
        ),
        _ => format!("{shape}: numpy.reshape({real}, (-1, {c}, {h}, {w}))"),
    }
}
