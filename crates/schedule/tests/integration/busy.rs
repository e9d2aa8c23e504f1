//! Of schedules that are as good, the one that lets most cores work.

use crate::onnx::{Graph, Node};
use crate::{machine, options};
use chipless_gemini::Schedule;
use chipless_schedule::emit::{Best, Written, searched};
use chipless_schedule::model::Objective;
use chipless_schedule::search::Options;
use fastrand::Rng;
use std::sync::atomic::AtomicBool;

/// The best schedule of a network that is so small that DRAM decides how long it takes, with two cores or four.
fn best(objective: Objective) -> Best {
    let mut graph = Graph::default();
    graph.input([16, 12, 12]);
    let weight = graph.random(&mut Rng::with_seed(3), &[16, 16, 3, 3]);
    let node = Node::new("Conv", "conv", &["input", &weight]);
    graph.add(&node.list("pads", &[1; 4]));
    graph.add(&Node::new("Sigmoid", "node", &["conv"]));
    graph.output("node");
    let front = chipless_schedule::onnx::read(&graph.bytes(), 1, &|_| None).unwrap();
    let written = Written::of(&front, 1, true).unwrap();
    let options = Options {
        objective,
        ..options(1000, 1, 1, 1)
    };
    let (machine, never) = (machine(), AtomicBool::new(false));
    let of = (&front.network, &machine);
    let found = searched(&written, of, &options, &never, &mut |_| {});
    found.unwrap().1
}

/// Cores that work.
fn cores(best: &Best) -> usize {
    let schedule = Schedule::read(&best.text).unwrap();
    let cores = schedule.cores.iter();
    cores.filter(|core| !core.workloads.is_empty()).count()
}

/// How much worse by the replay it is than the next one, by what was asked for.
fn ratio(best: &Best, objective: Objective) -> f64 {
    let of = |(energy, delay): (f64, i64)| objective.of(energy, delay as f64);
    of(best.replay) / of(best.runner_up.unwrap().1)
}

#[test]
fn of_schedules_as_good_the_one_with_most_working_cores_is_taken() {
    let fastest = best(Objective::Delay);
    assert!(ratio(&fastest, Objective::Delay) <= 1.0);
    let chosen = best(Objective::Edp);
    let ratio = ratio(&chosen, Objective::Edp);
    // Not the best, but as good, and no core is idle; who wants the least delay gets what is best by that.
    assert!(1.0 < ratio && ratio <= 1.02, "{ratio}");
    assert_eq!((cores(&chosen), cores(&fastest)), (4, 2));
}
