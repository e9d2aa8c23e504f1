//! The verifier against all interleavings of small random programs.

use crate::explore::{COUNTERS, Draft, Explorer, QUEUES, Touch, barriers, counters, disagreement};
use chipless_model::Direction;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

fn draft() -> impl Strategy<Value = Draft> {
    let touch = prop_oneof![
        1 => Just(Touch(None)),
        3 => (0u64..2, any::<bool>()).prop_map(|(byte, write)| Touch(Some((byte, if write { Direction::Write } else { Direction::Read })))),
    ];
    let waits = prop::collection::vec((0..COUNTERS, 1i64..3), 0..2);
    let signals = prop::collection::vec((0..COUNTERS, 1i64..3, any::<bool>()), 0..3);
    (0..QUEUES, touch, waits, signals).prop_map(|(queue, touch, waits, signals)| Draft {
        queue,
        touch,
        waits,
        signals,
    })
}

/// Random programs are of use only if enough of them come to their end, with races and without.
#[test]
fn random_programs_are_of_every_kind() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = (prop::collection::vec(draft(), 1..8), any::<bool>());
    let (mut stuck, mut racing, mut clean) = (0, 0, 0);
    for _ in 0..1000 {
        let (drafts, counting) = strategy.new_tree(&mut runner).expect("a program").current();
        let program = if counting {
            counters(&drafts)
        } else {
            barriers(&drafts, (0, 0, true))
        };
        let truth = Explorer::explore(&program);
        match (truth.stuck || truth.fault, truth.races.is_empty()) {
            (true, _) => stuck += 1,
            (false, false) => racing += 1,
            (false, true) => clean += 1,
        }
    }
    assert!(
        stuck > 100 && racing > 40 && clean > 100,
        "{stuck} get stuck, {racing} race, {clean} are clean"
    );
}

proptest! {
    #![proptest_config(chipless_rounds::cases(4000))]

    #[test]
    fn counters_events_and_tokens(mut drafts in prop::collection::vec(draft(), 1..8)) {
        // Signals at the read end a read early; that is tested below.
        for d in &mut drafts {
            if matches!(d.touch, Touch(Some(_))) {
                d.signals.iter_mut().for_each(|s| s.2 = false);
            }
        }
        prop_assert_eq!(disagreement(&counters(&drafts)), None);
    }

    #[test]
    fn barriers_and_their_uses(drafts in prop::collection::vec(draft(), 1..8), skew in (0u32..4, -1i64..2, any::<bool>())) {
        prop_assert_eq!(disagreement(&barriers(&drafts, skew)), None);
    }
}
