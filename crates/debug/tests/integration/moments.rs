//! State at an effect is a function of its number.

use crate::{DSA, GEMINI, How, NEURON, NPU, PLAIN, SPU, with};
use chipless_debug::Console;
use chipless_model::SplitMix64;
use chipless_sim::Order;
use std::collections::HashMap;

/// All bytes in one number. The hasher of the standard library would be compiled here, not optimised, and take most of a minute.
fn state(console: &Console<'_, '_>) -> u32 {
    let session = &console.debugger.session;
    let mut hasher = crc32fast::Hasher::new();
    for buffer in session.program().buffers.indices() {
        hasher.update(session.storage().bytes(buffer));
    }
    hasher.finalize()
}

/// The state before each effect, and at the end, going forward once.
fn all_states(console: &mut Console<'_, '_>) -> Vec<u32> {
    let effects = console.debugger.session.effects();
    (0..=effects)
        .map(|effect| {
            console.debugger.session.goto(effect).unwrap();
            state(console)
        })
        .collect()
}

fn jumps(name: &str, how: &How, count: usize) {
    with(name, how, |console| {
        let expected = all_states(console);
        assert!(expected.len() > 2, "{name}");
        let mut random = SplitMix64(7);
        for _ in 0..count {
            let effect = (random.number() % expected.len() as u64) as usize;
            console.debugger.session.goto(effect).unwrap();
            assert_eq!(state(console), expected[effect], "{name} effect {effect}");
            console.debugger.session.back();
            let before = effect.saturating_sub(1);
            assert_eq!(console.debugger.session.at(), before);
            assert_eq!(state(console), expected[before], "{name} back to {before}");
        }
    });
}

#[test]
fn every_target_goes_back_to_the_bytes_that_were_there() {
    for name in [NPU, NEURON, DSA, SPU, GEMINI] {
        jumps(name, &PLAIN, 20);
    }
}

#[test]
fn a_small_budget_goes_back_through_merged_records() {
    // A few pages: records are merged into stretches, and stretches into longer ones.
    for budget in [1, 1 << 14, 1 << 18] {
        let how = How { budget, ..PLAIN };
        jumps(NPU, &how, 20);
        jumps(DSA, &how, 20);
    }
}

#[test]
fn a_random_order_is_one_order() {
    let how = How {
        order: Order::Random(3),
        ..PLAIN
    };
    jumps(NPU, &how, 10);
    let order = |how: &How| {
        with(NPU, how, |console| {
            console.debugger.session.timeline().order.clone()
        })
    };
    assert_eq!(order(&how), order(&how));
    assert_ne!(order(&how), order(&PLAIN));
}

#[test]
fn syncs_are_those_of_the_moment() {
    with(NPU, &PLAIN, |console| {
        let mut seen = HashMap::new();
        let effects = console.debugger.session.effects();
        for effect in (0..=effects).chain((0..effects).rev()) {
            console.debugger.session.goto(effect).unwrap();
            let moment = console.debugger.session.moment();
            assert_eq!(
                moment.time,
                console
                    .debugger
                    .session
                    .time()
                    .expect("an order with times"),
                "effect {effect}"
            );
            let syncs = moment.syncs.clone();
            assert_eq!(*seen.entry(effect).or_insert(syncs.clone()), syncs);
            // Whoever waits does so for something that does not hold.
            let current = console.debugger.session.current();
            let own = moment
                .servers
                .iter()
                .find(|at| at.task == current && current.is_some());
            assert!(own.is_none_or(|at| at.waits.is_empty()), "effect {effect}");
        }
        let end = &seen[&effects];
        assert_ne!(end, &seen[&0]);
    });
}
