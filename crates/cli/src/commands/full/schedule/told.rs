//! What is said beside the report: how the search goes, and what to do with what was written.

use super::searched::Searched;
use super::{Arguments, Dialect};
use crate::terminal;
use chipless_model::Time;
use chipless_schedule::emit::Written;
use chipless_schedule::front::{Front, Layout};
use chipless_schedule::machine::Machine;
use chipless_schedule::model::Objective;
use chipless_schedule::reading::Network;
use chipless_schedule::report::{Figures, energy};
use chipless_schedule::search::{Progress, Stopped};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What is said while the search runs: the best so far by each measure. The search begins anew several times, so the one that it is at may be worse.
pub(super) struct Told {
    objective: Objective,
    clock: f64,
    model: Option<(f64, f64)>,
    replay: Option<(f64, f64)>,
}

impl Told {
    pub(super) fn new(objective: Objective, clock: f64) -> Told {
        Told {
            objective,
            clock,
            model: None,
            replay: None,
        }
    }

    fn better(&self, so_far: Option<(f64, f64)>, new: (f64, f64)) -> Option<(f64, f64)> {
        let score = |(energy, delay)| self.objective.of(energy, delay);
        so_far.filter(|old| score(*old) <= score(new)).or(Some(new))
    }

    pub(super) fn say(&mut self, progress: &Progress) {
        let of_model = (progress.best.energy, progress.best.delay as f64);
        self.model = self.better(self.model, of_model);
        if let Some((energy, delay)) = progress.replay {
            self.replay = self.better(self.replay, (energy, delay as f64));
        }
        let figures = |(pj, cycles): (f64, f64)| {
            let time = Time::from_ns(cycles / self.clock * 1e9);
            format!("{time} and {}", energy(pj))
        };
        let best = match (self.replay, self.model) {
            (Some(replay), _) => format!("{} by the replay", figures(replay)),
            (None, Some(model)) => {
                let bound = progress.bounds.delay / self.clock * 1e9;
                format!(
                    "{} in SET's model, whose bound is {}; the replay decides later",
                    figures(model),
                    Time::from_ns(bound)
                )
            }
            (None, None) => return,
        };
        let tried = match (progress.replay, progress.replayed) {
            (Some(_), (so_far, Some(all))) => format!("{so_far} of {all} trees replayed"),
            (Some(_), (so_far, None)) => format!("{so_far} trees replayed"),
            (None, _) => {
                let rate = progress.trees as f64 / progress.seconds.max(1e-9);
                format!("{rate:.0} trees/s")
            }
        };
        terminal::complain(&format!(
            "{:.0} s: best so far {best}; {tried}\n",
            progress.seconds
        ));
    }
}

/// Layers times cores from which the first figures take seconds.
const MANY: usize = 1000;

/// What is searched for, where it takes long until the first figures are there.
pub(super) fn begun(arguments: &Arguments, front: &Front, machine: &Machine) {
    let layers = front.network.layers.len();
    if layers * machine.cores() < MANY {
        return;
    }
    terminal::complain(&format!(
        "{}: {} in {}; searching for a schedule on the {} cores of {}\n",
        arguments.network.display(),
        chipless_model::count(layers, "layer"),
        if front.bits() == 8 { "int8" } else { "fp16" },
        machine.cores(),
        machine.name,
    ));
}

/// The options of a batch four times as large, where its images share the weights.
pub(super) fn larger_batch(read: &Network) -> Option<String> {
    let shares = read.repeated.is_none();
    shares.then(|| format!("--batch {}", read.images * 4))
}

/// The files that were written, a line each.
pub(super) fn files(paths: &[&PathBuf]) -> String {
    let line = |path: &&PathBuf| format!("written: {}\n", path.display());
    paths.iter().map(line).collect()
}

/// Part of a processor below which a search is starved.
const STARVED: f64 = 0.5;

/// Trees for each layer, below which schedules are often far from the best.
const FEW: u64 = 4;

/// Warns of a search that other work of the computer left little of a processor, or that tried few trees.
pub(super) fn few_trees(arguments: &Arguments, searched: &Searched, layers: usize) {
    let (found, worked) = (&searched.found, searched.worked.as_secs_f64());
    if searched.is_near_floor() {
        return;
    }
    if found.stopped == Stopped::Time && worked < STARVED * found.seconds {
        terminal::complain(&format!(
            "{}: warning: the search had {worked:.1} s of processor time in {:.1} s, as the computer is busy: the schedule may be far from the best. Search again when it is idle, or pass --trees N, which does not depend on the clock\n",
            arguments.network.display(),
            found.seconds,
        ));
        return;
    }
    if found.stopped == Stopped::Time && found.trees < FEW * layers as u64 {
        let trees = match found.trees {
            1 => "1 tree was".to_owned(),
            trees => format!("{trees} trees were"),
        };
        terminal::complain(&format!(
            "{}: warning: only {trees} evaluated for {layers} layers: more may give a much faster schedule (--seconds or --trees with a larger number)\n",
            arguments.network.display()
        ));
    }
}

/// What a search gains over one layer at a time, at least, where it has found something.
const GAIN: f64 = 1.1;

/// Warns of a search that found nothing better than one layer at a time, although a schedule could be much faster.
pub(super) fn hardly_better(arguments: &Arguments, searched: &Searched) {
    let cycles = |figures: &Option<Figures>| figures.as_ref().map(|figures| figures.delay_cycles);
    let (Some(delay), Some(alone)) = (cycles(&searched.replay), cycles(&searched.layer_by_layer))
    else {
        return;
    };
    let floor = searched
        .floor
        .as_ref()
        .map_or(delay, |floor| floor.delay_cycles as f64);
    if delay * GAIN > alone && delay > floor * GAIN * GAIN {
        terminal::complain(&format!(
            "{}: warning: the schedule is hardly faster than one layer at a time: another --seed or a longer search may find a much faster one\n",
            arguments.network.display()
        ));
    }
}

/// Warns of a file that says less than the machine takes.
pub(super) fn shorter_in_file(arguments: &Arguments, machine: &Machine, taken: i64, stated: i64) {
    if taken == stated {
        return;
    }
    let time = |cycles: i64| Time::from_ns(cycles as f64 / machine.clock * 1e9);
    terminal::complain(&format!(
        "{}: warning: on this machine the schedule takes {}, but `run` and --report say {}: for some layers the format allows no times as long as those of this \
         machine (gemini-layer-time), and the file has the longest that it allows\n",
        arguments.network.display(),
        time(taken),
        time(stated),
    ));
}

/// The files that were written, and how to run them.
pub(super) fn next(
    arguments: &Arguments,
    output: &Path,
    front: &Front,
    written: Option<&Written>,
    images: i64,
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
    let encodings =
        || written.map_or_else(String::new, |written| encodings(front, written, images));
    let again = "schedule again with --network-out net.json --weights-out weights";
    match (arguments.dialect, is_whole) {
        (Dialect::Spec, _) => {
            let values = if is_whole {
                encodings()
            } else {
                format!("for its values, {again}\n")
            };
            let inputs = given_as_they_are(front, written.filter(|_| is_whole));
            format!(
                "written: {output}; run it with\n  chipless run {output} --machine {machine}{network}{weights}{inputs}\n{values}"
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

/// Options for the inputs of a schedule that takes them as the model does.
fn given_as_they_are(front: &Front, written: Option<&Written>) -> String {
    let has_own = written.is_none_or(|written| !written.stored()[0].is_empty());
    let names = front.called[0].iter().filter(|_| !has_own);
    let options = names.map(|name| format!(" --input {name}={name}.npy"));
    options.collect()
}

/// What the integers of inputs and outputs stand for, and how the schedule has their axes.
fn encodings(front: &Front, written: &Written, images: i64) -> String {
    let [of_inputs, of_outputs] = &front.called;
    let [inputs, outputs] = written.stored();
    let offset = |by: f64| match by {
        by if by < 0.0 => format!(" - {}", -by),
        by if by > 0.0 => format!(" + {by}"),
        _ => String::new(),
    };
    let mut text = String::new();
    if inputs.is_empty() {
        let images = if images > 1 {
            format!(", with {images} images")
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "arrays have shape and type of the model's inputs{images}; what is not given is random"
        );
    }
    for (at, (name, how)) in inputs.into_iter().enumerate() {
        let (scale, zero) = (how.scale as f32, offset(how.zero));
        let model = of_inputs.get(at);
        let of = model.map_or_else(String::new, |model| format!("; x is the model's `{model}`"));
        let _ = writeln!(
            text,
            "  --input {name}=FILE.npy: int8, numpy.clip(numpy.round(x / {scale}){zero}, -128, 127){of}"
        );
        if let Some(input) = front.inputs.get(at) {
            let [c, h, w] = input.extents;
            let _ = writeln!(text, "      of shape {}", axes(input.layout, [c, h, w]));
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
fn axes(layout: Layout, [c, h, w]: [i64; 3]) -> String {
    let shape = format!("[N, {c}, {h}, {w}]");
    match layout {
        Layout::Map => shape,
        Layout::Sequence => format!(
            "{shape}; from the model's [N, {h}, {c}]:\n      numpy.transpose(x, (0, 2, 1)).reshape(-1, {c}, {h}, {w})"
        ),
        _ => format!("{shape}: numpy.reshape(x, (-1, {c}, {h}, {w}))"),
    }
}
