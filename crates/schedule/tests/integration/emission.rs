//! What is written reads back without errors, in both dialects.

use crate::onnx::{Graph, Node};
use crate::{errors, machine, options, small};
use chipless_gemini::Network;
use chipless_model::Limits;
use chipless_schedule::emit::{Written, searched, segment_times, set_dialect, spec_dialect};
use chipless_schedule::model::{Impossible, Objective};
use chipless_schedule::search::{Found, search};
use chipless_schedule::tree::Tree;
use fastrand::Rng;
use serde_json::json;
use std::sync::atomic::AtomicBool;

fn found(batch: i64) -> Found {
    let never = AtomicBool::new(false);
    let options = options(400, 1, 1, batch);
    search(
        &small(batch).network,
        &machine(),
        &options,
        &never,
        &mut |_| {},
    )
    .unwrap()
}

#[test]
fn the_dialect_of_the_specification_has_no_errors() {
    for batch in [1, 2] {
        let (front, found) = (small(batch), found(batch));
        let written = Written::of(&front, batch, true).unwrap();
        let best = spec_dialect(&written, (&front.network, &machine()), &found.tree).unwrap();
        assert_eq!((&best.tree, best.cost), (&found.tree, found.cost));
        let network = Network::read(written.network_text().as_bytes(), &Limits::default()).unwrap();
        assert_eq!(errors(&best.text, Some(&network)), [""; 0], "batch {batch}");
        assert!(best.replay.0 > 0.0 && best.replay.1 > 0);
        // Weights, multipliers and biases of four layers.
        assert_eq!(written.arrays().unwrap().len(), 12);
    }
}

#[test]
fn sets_dialect_has_no_errors_and_moves_what_the_model_says() {
    let (front, found) = (small(1), found(1));
    let mut text = String::new();
    set_dialect::<Impossible>(&front.network, &machine(), &found.tree, &mut |part| {
        text.push_str(part);
        Ok(())
    })
    .unwrap();
    assert_eq!(errors(&text, None), [""; 0]);
    let schedule = chipless_gemini::Schedule::read(&text).unwrap();
    let loaded: u64 = schedule.dram_out.iter().map(|entry| entry.size).sum();
    let stored: u64 = schedule
        .dram_in
        .iter()
        .map(|entry| entry.bounds.elements())
        .sum();
    assert_eq!(loaded + stored, found.cost.dram as u64);
}

#[test]
fn elements_are_moved_before_the_reader_that_a_tree_has_first() {
    let mut graph = Graph::default();
    graph.input([4, 8, 8]);
    let weight = graph.random(&mut Rng::with_seed(1), &[4, 4, 1, 1]);
    let wide = graph.random(&mut Rng::with_seed(2), &[4, 8, 1, 1]);
    graph.add(&Node::new("Conv", "a", &["input", &weight]));
    graph.add(&Node::new("Conv", "b", &["input", &weight]));
    graph.add(&Node::new("Concat", "joined", &["a", "b"]).number("axis", 1));
    graph.add(&Node::new("Conv", "c", &["joined", &wide]));
    graph.add(&Node::new("Conv", "d", &["joined", &wide]));
    graph.output("c");
    graph.output("d");
    let front = chipless_schedule::onnx::read(&graph.bytes(), 1, &|_| None).unwrap();
    let leaves = ["a", "b", "d", "c"].map(|name| json!({"layer": name, "batch": 1}));
    let root = json!({"cut": "T", "batch": 1, "groups": 1, "children": leaves});
    let tree = Tree::read(&json!({"batch": 1, "root": root}).to_string()).unwrap();
    let written = Written::of(&front, 1, true).unwrap();
    let best = spec_dialect(&written, (&front.network, &machine()), &tree).unwrap();
    let network = Network::read(written.network_text().as_bytes(), &Limits::default()).unwrap();
    assert_eq!(errors(&best.text, Some(&network)), [""; 0]);
}

/// What the summary compares a schedule with is of the same replay, and the segments of the page are the whole of it.
#[test]
fn a_schedule_is_between_its_floor_and_one_layer_at_a_time() {
    for batch in [1, 4] {
        let (front, machine) = (small(batch), machine());
        let written = Written::of(&front, batch, true).unwrap();
        let of = (&front.network, &machine);
        let delay = chipless_schedule::search::Options {
            objective: Objective::Delay,
            ..options(400, 1, 1, batch)
        };
        let never = AtomicBool::new(false);
        let (found, best) = searched(&written, of, &delay, &never, &mut |_| {}).unwrap();
        let cycles = best.replay.1;
        let (_, alone) = best.layer_by_layer.unwrap();
        assert!(
            best.floor.cycles() <= cycles && cycles <= alone,
            "{cycles}, {alone}, {:?}",
            best.floor
        );
        let dram = best.dram;
        assert!(dram.bytes as i64 >= best.floor.dram_bytes, "{dram:?}");
        assert!(
            dram.at_bandwidth <= dram.busy && dram.busy <= cycles,
            "{dram:?} of {cycles}"
        );
        assert!(best.floor.padding_bytes < best.floor.dram_bytes);
        assert!(best.floor.cycles() > 0);
        assert_eq!(found.trees, 400);
        let segments = segment_times(&written, of, &best.tree, &best.text).unwrap();
        let all: i64 = segments.iter().map(|segment| segment.cycles).sum();
        assert!((all - cycles).abs() <= 1, "{segments:?}");
        let bytes: i64 = segments.iter().map(|segment| segment.dram_bytes).sum();
        assert!(bytes >= best.floor.dram_bytes, "{segments:?}");
        assert!(
            segments
                .iter()
                .all(|s| s.busy.iter().all(|part| (0.0..=1.001).contains(part))),
            "{segments:?}"
        );
    }
}

/// Layers that only move elements, which the tree does not have, go from core to core as all others of their segment.
#[test]
fn what_is_joined_within_a_segment_stays_on_the_cores() {
    let mut rng = Rng::with_seed(9);
    let mut graph = Graph::default();
    graph.input([8, 12, 12]);
    for (name, input) in [("first", "input"), ("second", "first")] {
        let weights = graph.random(&mut rng, &[8, 8, 3, 3]);
        graph.add(&Node::new("Conv", name, &[input, &weights]).list("pads", &[1; 4]));
    }
    // Of two scales, so that one is stored again.
    graph.add(&Node::new("Concat", "joined", &["second", "input"]).number("axis", 1));
    let weights = graph.random(&mut rng, &[8, 16, 1, 1]);
    graph.add(&Node::new("Conv", "last", &["joined", &weights]));
    graph.output("last");
    let front = chipless_schedule::onnx::read(&graph.bytes(), 1, &|_| None).unwrap();
    let written = Written::of(&front, 1, true).unwrap();
    let network = Network::read(written.network_text().as_bytes(), &Limits::default()).unwrap();
    assert!(written.network_text().contains("\"concat\""));
    let never = AtomicBool::new(false);
    let of = (&front.network, &machine());
    let (_, best) = searched(&written, of, &options(400, 1, 1, 1), &never, &mut |_| {}).unwrap();
    assert_eq!(errors(&best.text, Some(&network)), [""; 0]);
    assert_eq!(best.dram.result_bytes, 0, "{:?}", best.dram);
}
