//! A seed decides everything, the number of threads nothing.

use crate::{machine, options, small};
use chipless_schedule::emit::{Written, searched, spec_dialect};
use chipless_schedule::search::{Found, search};
use std::sync::atomic::AtomicBool;

fn found(trees: u64, threads: usize, seed: u64) -> Found {
    let never = AtomicBool::new(false);
    search(
        &small(2).network,
        &machine(),
        &options(trees, threads, seed, 2),
        &never,
        &mut |_| {},
    )
    .unwrap()
}

#[test]
fn threads_change_nothing() {
    let one = found(2500, 1, 3);
    assert_eq!(one.trees, 2500);
    for threads in [2, 3, 7] {
        let more = found(2500, threads, 3);
        assert_eq!(more.tree, one.tree);
        assert_eq!(more.cost, one.cost);
        let edps = |found: &Found| {
            found
                .history
                .iter()
                .map(|step| step.edp)
                .collect::<Vec<_>>()
        };
        assert_eq!(edps(&more), edps(&one));
    }
}

#[test]
fn history_falls_and_ends_with_the_best() {
    let found = found(2500, 1, 4);
    let edps: Vec<f64> = found.history.iter().map(|step| step.edp).collect();
    assert!(edps.windows(2).all(|two| two[1] <= two[0]), "{edps:?}");
    assert!((edps[edps.len() - 1] / found.cost.edp() - 1.0).abs() < 1e-9);
}

#[test]
fn a_found_tree_costs_what_it_says() {
    let found = found(1500, 1, 5);
    let text = found.tree.to_json().to_string();
    let tree = chipless_schedule::tree::Tree::read(&text).unwrap();
    let (cost, _) = chipless_schedule::evaluate(&small(2).network, &machine(), 2, &tree).unwrap();
    assert_eq!(cost, found.cost);
}

#[test]
fn neither_threads_nor_a_clock_decide_what_is_written() {
    let (front, machine) = (small(2), machine());
    let written = Written::of(&front, 2, true).unwrap();
    let never = AtomicBool::new(false);
    let of = (&front.network, &machine);
    let seen = [1, 2, 5].map(|threads| {
        let options = options(1500, threads, 7, 2);
        let (found, best) = searched(&written, of, &options, &never, &mut |_| {}).unwrap();
        (found.trees, best.text, best.replay.1)
    });
    assert!(seen[0].0 >= 1500);
    assert!(seen.windows(2).all(|two| two[0] == two[1]));
}

#[test]
fn the_replay_guides_the_search() {
    let (front, machine) = (small(1), machine());
    let written = Written::of(&front, 1, true).unwrap();
    let never = AtomicBool::new(false);
    let of = (&front.network, &machine);
    let options = options(8000, 1, 1, 1);
    let (found, best) = searched(&written, of, &options, &never, &mut |_| {}).unwrap();
    let by_model = spec_dialect(&written, of, &found.tree).unwrap();
    let edp = |(energy, delay): (f64, i64)| energy * delay as f64;
    assert!(
        edp(best.replay) < edp(by_model.replay),
        "{best:?} is no better than the model's own tree"
    );
}
