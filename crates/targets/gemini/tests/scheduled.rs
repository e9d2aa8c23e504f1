//! Schedules of random networks, each layer cut in its own way over 1 to 16 cores: they are clean, and give the numbers that the
//! plainest schedule of their network gives.

use crate::proof::{DAMAGES, damage, workloads};
use crate::scheduler;
use crate::tilings::{computed_of, errors_of};
use chipless_gemini::WeightData;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

type Outputs = BTreeMap<String, Vec<u8>>;

fn outputs(network: &Value, schedule: &Value, verified: bool) -> Outputs {
    let element = |_, i: u64| (i * 37 % 253) as u8;
    let weights = WeightData::Seeded(3);
    computed_of(network, schedule, weights, verified, &element)
        .into_iter()
        .collect()
}

/// The layers that feed an output of the network.
fn results(network: &Value, all: &Outputs) -> Outputs {
    let is_last = |name: &str| network[name]["next_layer"] == json!(["output1"]);
    let last = all.iter().filter(|(name, _)| is_last(name));
    last.map(|(name, bytes)| (name.clone(), bytes.clone()))
        .collect()
}

proptest! {
    #![proptest_config(chipless_rounds::cases(64))]

    #[test]
    fn every_schedule_gives_the_numbers_of_its_network(seed in any::<u64>()) {
        let program = scheduler::random(seed);
        let (network, schedule) = (program.network(), program.schedule());
        let plain = program.plain().schedule();
        prop_assert_eq!(errors_of(&network, &plain), []);
        prop_assert_eq!(errors_of(&network, &schedule), []);
        let want = results(&network, &outputs(&network, &plain, true));
        let got = results(&network, &outputs(&network, &schedule, true));
        prop_assert!(!want.is_empty());
        prop_assert_eq!(want, got);
    }

    #[test]
    fn damaged_schedules_that_are_clean_give_the_same_numbers(
        seed in any::<u64>(), how in 0..DAMAGES, by in any::<[usize; 3]>()
    ) {
        let program = scheduler::random(seed);
        let (network, good) = (program.network(), program.schedule());
        let mut damaged = good.clone();
        damage(&mut damaged, how, by);
        if errors_of(&network, &damaged).is_empty() {
            let want = results(&network, &outputs(&network, &good, false));
            let got = results(&network, &outputs(&network, &damaged, true));
            prop_assert!(want == got, "clean, and other numbers");
        }
    }

    #[test]
    fn readers_wait_whatever_the_order_of_the_file(seed in any::<u64>(), by in 1..64usize) {
        let program = scheduler::random(seed);
        let (network, mut schedule) = (program.network(), program.schedule());
        for workload in workloads(&mut schedule) {
            for list in ["buffer", "ofmap"] {
                let list = workload[list].as_array_mut().expect("a list");
                let steps = by % list.len().max(1);
                list.rotate_left(steps);
            }
        }
        for list in ["in", "out"] {
            let list = schedule["-1"][list].as_array_mut().expect("a list");
            let steps = by % list.len().max(1);
            list.rotate_left(steps);
        }
        prop_assert_eq!(errors_of(&network, &schedule), []);
    }
}
