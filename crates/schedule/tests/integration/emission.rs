//! What is written reads back without errors, in both dialects.

use crate::{errors, machine, options, small};
use chipless_gemini::Network;
use chipless_model::Limits;
use chipless_schedule::emit::{Written, set_dialect, spec_dialect};
use chipless_schedule::model::{Impossible, Objective};
use chipless_schedule::search::{Found, search};
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
        let trees = std::iter::once((&found.tree, found.cost));
        let best = spec_dialect(&written, &front, &machine(), Objective::Edp, trees).unwrap();
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
