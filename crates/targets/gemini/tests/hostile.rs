//! Schedules with wrong numbers: whatever stands in a file, lowering, verifying and replaying it end, and nothing panics.

use crate::generate::Plan;
use chipless_gemini::{Data, Machine, Network, Schedule, WeightData, lower, pictures, replay};
use chipless_model::{Limits, Storage};
use serde_json::{Value, json};

struct Sequence(u64);

impl Sequence {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }
}

/// Pointers of all values below one.
fn pointers(value: &Value, path: &str, all: &mut Vec<String>) {
    all.push(path.to_owned());
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| pointers(value, &format!("{path}/{key}"), all)),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(i, value)| pointers(value, &format!("{path}/{i}"), all)),
        _ => {}
    }
}

fn wreck(value: &mut Value, pointer: &str, sequence: &mut Sequence) {
    let replacements = [
        json!(0),
        json!(1),
        json!(7),
        json!(65_535),
        json!(u32::MAX),
        json!(i32::MAX),
        json!(-1),
        json!([]),
        json!({}),
        Value::Null,
        json!(true),
        json!("x"),
    ];
    let Some(target) = value.pointer_mut(pointer) else {
        return;
    };
    match target {
        Value::Array(list) if !list.is_empty() && sequence.below(2) == 0 => {
            let at = sequence.below(list.len());
            if sequence.below(2) == 0 {
                list.remove(at);
            } else {
                list.push(list[at].clone());
            }
        }
        Value::Number(n) if n.is_u64() && sequence.below(2) == 0 => {
            let n = n.as_u64().unwrap_or(0);
            *target = json!(if sequence.below(2) == 0 {
                n + 1
            } else {
                n.saturating_sub(1)
            });
        }
        target => *target = replacements[sequence.below(replacements.len())].clone(),
    }
}

fn all_the_way(text: &str, network: &Network) {
    let limits = Limits {
        memory_bytes: 64 << 20,
        tasks: 10_000,
        ..Limits::default()
    };
    let Ok(schedule) = Schedule::read(text) else {
        return;
    };
    let machine = Machine::named("spec").expect("known");
    let data = Data {
        network: Some(network),
        weights: Some(WeightData::Seeded(1)),
    };
    let Ok(lowered) = lower(&schedule, &data, &machine, &limits) else {
        return;
    };
    let program = &lowered.program;
    let verdict = chipless_verify::verify(program);
    let outcome = chipless_sim::run(
        &chipless_sim::Verified::assume(program),
        &mut chipless_sim::TimingOnly,
    );
    replay::facts(
        &schedule,
        program,
        &lowered.workloads,
        &outcome.timeline,
        &machine,
    );
    pictures::pictures(
        &schedule,
        &lowered.program,
        &lowered.workloads,
        &outcome.timeline,
        &machine,
    );
    if verdict.is_ok()
        && let Ok(mut storage) = Storage::new(&program.buffers, &limits)
    {
        // It may fault, and say so.
        let _ = chipless_sim::run(
            &chipless_sim::Verified::assume(program),
            &mut chipless_sim::Functional::new(&mut storage),
        )
        .end;
    }
}

#[test]
fn wrong_numbers_anywhere() {
    let plans = [
        Plan {
            columns: 2,
            tiles: 2,
            size: 6,
            channels: 8,
            batch: 1,
            ..Plan::default()
        },
        Plan {
            columns: 2,
            through_dram: true,
            weights_through_l2: true,
            relative: true,
            size: 6,
            channels: 8,
            batch: 2,
            cut: 1,
            ..Plan::default()
        },
    ];
    for (index, plan) in plans.iter().enumerate() {
        let limits = Limits::default();
        let network = Network::read(
            crate::generate::network(plan).to_string().as_bytes(),
            &limits,
        )
        .expect("a network");
        let schedule = crate::generate::schedule(plan);
        all_the_way(&schedule.to_string(), &network);
        let mut all = Vec::new();
        pointers(&schedule, "", &mut all);
        let mut sequence = Sequence(index as u64 + 1);
        for _ in 0..chipless_rounds::rounds(1500) {
            let mut wrecked = schedule.clone();
            for _ in 0..=sequence.below(2) {
                let pointer = all[sequence.below(all.len())].clone();
                wreck(&mut wrecked, &pointer, &mut sequence);
            }
            all_the_way(&wrecked.to_string(), &network);
        }
        let text = schedule.to_string();
        for length in (0..text.len()).step_by(997) {
            all_the_way(&text[..length], &network);
        }
    }
}

#[test]
fn a_box_of_more_bits_than_numbers_count_is_a_finding() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../fixtures/gemini/set.json"
    );
    let text = std::fs::read_to_string(path).expect("a fixture");
    let mut schedule: Value = serde_json::from_str(&text).expect("JSON");
    for pointer in ["/1/0/workload/1", "/1/0/buffer/1/source/0/upper"] {
        let upper = schedule.pointer_mut(pointer).expect("a box");
        *upper = json!([u32::MAX, u32::MAX, 3, 3]);
    }
    let text = schedule.to_string();
    let limits = Limits::default();
    let schedule = Schedule::read(&text).expect("a schedule");
    let findings =
        chipless_gemini::lint(&schedule, &text, chipless_gemini::Given::default(), &limits);
    let said =
        |finding: &chipless_model::Finding| finding.message.contains("18446744073709551615 bits");
    assert!(findings.iter().any(said), "{findings:?}");
}
