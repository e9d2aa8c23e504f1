//! A schedule that is clean computes its network, whatever was done to it; and what changes nothing is clean.

use crate::generate::{self, Plan};
use crate::tilings::{computed, errors};
use chipless_gemini::WeightData;
use proptest::prelude::*;
use serde_json::{Value, json};

const SEED: WeightData<'static> = WeightData::Seeded(5);

fn any_plan() -> impl Strategy<Value = Plan> {
    let meshes = prop_oneof![Just((1, 1)), Just((2, 1)), Just((2, 2)), Just((4, 4))];
    let ways = (any::<bool>(), any::<bool>(), any::<bool>());
    (meshes, 0..4usize, 1..4u32, ways, 0..3u32).prop_map(
        |((columns, rows), cut, tiles, (dram, l2, relative), blocks)| Plan {
            columns,
            rows,
            cut,
            tiles,
            through_dram: dram,
            weights_through_l2: l2,
            relative,
            blocks,
            size: 6,
            ..Plan::default()
        },
    )
}

/// The workloads of all cores.
pub(crate) fn workloads(schedule: &mut Value) -> Vec<&mut Value> {
    let cores = schedule.as_object_mut().expect("an object").iter_mut();
    cores
        .filter(|(key, _)| key.bytes().all(|b| b.is_ascii_digit()))
        .flat_map(|(_, list)| list.as_array_mut().expect("a list"))
        .collect()
}

fn list<'v>(value: &'v mut Value, key: &str) -> &'v mut Vec<Value> {
    value[key].as_array_mut().expect("a list")
}

/// One of a list, by any number.
fn pick(length: usize, by: usize) -> Option<usize> {
    by.checked_rem(length)
}

/// Exchanges a value of two entries.
fn exchange(entries: &mut [Value], key: &str, [a, b]: [usize; 2]) {
    let (Some(a), Some(b)) = (pick(entries.len(), a), pick(entries.len(), b)) else {
        return;
    };
    let (one, two) = (entries[a][key].clone(), entries[b][key].clone());
    if !one.is_null() && !two.is_null() {
        (entries[a][key], entries[b][key]) = (two, one);
    }
}

/// Ways in which [`damage`] damages a schedule.
pub(crate) const DAMAGES: usize = 15;

/// Damages a schedule in one of many ways.
pub(crate) fn damage(schedule: &mut Value, how: usize, by: [usize; 3]) {
    let [a, b, c] = by;
    let (of_dram, to_dram) = ("out", "in");
    match how {
        0 => exchange(list(&mut schedule["-1"], of_dram), "lower", [a, b]),
        1 => exchange(list(&mut schedule["-1"], of_dram), "destination", [a, b]),
        2 => {
            let out = list(&mut schedule["-1"], of_dram);
            for key in ["lower", "upper"] {
                exchange(out, key, [a, b]);
            }
        }
        3 => {
            let stores = list(&mut schedule["-1"], to_dram);
            if let Some(a) = pick(stores.len(), a) {
                stores.remove(a);
            }
        }
        4 => {
            let out = list(&mut schedule["-1"], of_dram);
            if let Some(a) = pick(out.len(), a) {
                list(&mut out[a], "destination").clear();
            }
        }
        _ => {
            let mut all = workloads(schedule);
            let Some(w) = pick(all.len(), a) else { return };
            let workload = &mut *all[w];
            match how {
                5 => exchange(list(workload, "buffer"), "address", [b, c]),
                6 => {
                    let tensors = list(workload, "buffer");
                    if let Some(b) = pick(tensors.len(), b) {
                        tensors.remove(b);
                    }
                }
                7 => exchange(list(workload, "ifmap"), "transfer_id", [b, c]),
                8 => {
                    let ifmaps = list(workload, "ifmap");
                    if let (Some(b), true) = (pick(ifmaps.len(), b), ifmaps.len() > 1) {
                        ifmaps[b] = ifmaps[(b + 1) % 2].clone();
                    }
                }
                9 => exchange(list(workload, "ofmap"), "transfer_id", [b, c]),
                10 => {
                    let tensors = list(workload, "buffer");
                    if let Some(b) = pick(tensors.len(), b)
                        && tensors[b]["source"].is_array()
                    {
                        exchange(list(&mut tensors[b], "source"), "lower", [c, c + 1]);
                    }
                }
                11 => workload["wl0_buffer"] = json!(null),
                12 => {
                    let tensors = list(workload, "buffer");
                    if let Some(b) = pick(tensors.len(), b) {
                        tensors[b]["address"] = json!(c % 64 * 32);
                    }
                }
                13 => {
                    let tensors = list(workload, "buffer");
                    exchange(tensors, "tensor_order", [b, c]);
                }
                _ => {
                    let pieces = list(workload, "ofmap");
                    if let Some(b) = pick(pieces.len(), b) {
                        pieces.remove(b);
                    }
                }
            }
        }
    }
}

/// The last layer of all outputs.
fn result(outputs: Vec<(String, Vec<u8>)>) -> Option<Vec<u8>> {
    let mut found = outputs.into_iter();
    Some(found.find(|(name, _)| name == "Conv_last")?.1)
}

proptest! {
    #![proptest_config(chipless_rounds::cases(96))]

    #[test]
    fn clean_schedules_compute_their_network(
        plan in any_plan(), how in 0..DAMAGES, by in any::<[usize; 3]>()
    ) {
        let good = generate::schedule(&plan);
        prop_assert_eq!(errors(&plan, &good), []);
        let mut damaged = good.clone();
        damage(&mut damaged, how, by);
        if errors(&plan, &damaged).is_empty() {
            let [want, got] = [&good, &damaged].map(|s| result(computed(&plan, s, SEED, false)));
            prop_assert!(want.is_some());
            prop_assert!(want == got, "clean, and other numbers: damage {} by {:?}", how, by);
        }
    }

    #[test]
    fn addresses_may_move_on_round_the_ring(plan in any_plan(), by in 1..64u64) {
        let mut schedule = generate::schedule(&plan);
        let bytes = schedule["buffersize"].as_u64().expect("a number");
        let want = result(computed(&plan, &schedule, SEED, true));
        for workload in workloads(&mut schedule) {
            for tensor in list(workload, "buffer") {
                let address = tensor["address"].as_u64().expect("an address");
                tensor["address"] = json!((address + by * 32 * 97) % bytes);
            }
        }
        prop_assert_eq!(errors(&plan, &schedule), []);
        prop_assert!(want.is_some() && want == result(computed(&plan, &schedule, SEED, true)));
    }
}
