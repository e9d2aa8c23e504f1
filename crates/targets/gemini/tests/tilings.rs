//! Whatever the tiling, the number of cores and the way through memory: the same numbers come out.

use crate::generate::Plan;
use chipless_gemini::{Array, Arrays, Data, Machine, Network, Schedule, WeightData, lower};
use chipless_model::{Finding, Limits, Storage};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// Every output by name, of a run that the verifier and the checks had nothing to say about.
fn outputs(plan: &Plan, weights: WeightData<'_>) -> Vec<(String, Vec<u8>)> {
    let schedule = crate::generate::schedule(plan);
    let errors = errors(plan, &schedule);
    assert!(errors.is_empty(), "{plan:?}: {}", errors[0]);
    computed(plan, &schedule, weights, true)
}

/// What is wrong with a schedule of the network of a plan.
pub(crate) fn errors(plan: &Plan, schedule: &Value) -> Vec<Finding> {
    errors_of(&crate::generate::network(plan), schedule)
}

/// What is wrong with a schedule of a network.
pub(crate) fn errors_of(network: &Value, schedule: &Value) -> Vec<Finding> {
    let limits = Limits::default();
    let text = schedule.to_string();
    let schedule = match Schedule::read(&text) {
        Ok(schedule) => schedule,
        Err(finding) => return vec![*finding],
    };
    let network = read(network);
    let given = chipless_gemini::Given {
        network: Some(&network),
        ..Default::default()
    };
    chipless_gemini::lint(&schedule, &text, given, &limits)
        .into_iter()
        .filter(Finding::is_error)
        .collect()
}

fn read(network: &Value) -> Network {
    Network::read(network.to_string().as_bytes(), &Limits::default()).expect("a network")
}

/// The outputs of a schedule that is executed.
pub(crate) fn computed(
    plan: &Plan,
    schedule: &Value,
    weights: WeightData<'_>,
    verified: bool,
) -> Vec<(String, Vec<u8>)> {
    let size = u64::from(plan.size);
    // What nobody reads is something else.
    let element = |row: u64, i: u64| {
        if i % row < size {
            ((i / row * size + i % row) * 31 % 251) as u8
        } else {
            99
        }
    };
    computed_of(
        &crate::generate::network(plan),
        schedule,
        weights,
        verified,
        &element,
    )
}

/// The outputs of a schedule of a network that is executed; elements of inputs by the width of their rows and their index.
pub(crate) fn computed_of(
    network: &Value,
    schedule: &Value,
    weights: WeightData<'_>,
    verified: bool,
    element: &dyn Fn(u64, u64) -> u8,
) -> Vec<(String, Vec<u8>)> {
    let limits = Limits::default();
    let schedule = Schedule::read(&schedule.to_string()).expect("a schedule");
    let network = read(network);
    let data = Data {
        network: Some(&network),
        weights: Some(weights),
    };
    let machine = Machine::named("spec").expect("known");
    let lowered = lower(&schedule, &data, &machine, &limits).unwrap_or_else(|e| panic!("{e}"));
    let program = &lowered.program;
    if verified {
        chipless_verify::verify(program).unwrap_or_else(|findings| panic!("{}", findings[0]));
    }
    let mut storage = Storage::new(&program.buffers, &limits).expect("small");
    for port in &program.interface.inputs {
        let bytes = port.bytes().expect("small");
        let bytes = (0..bytes).map(|i| element(port.shape[3], i)).collect();
        storage.set(port.buffer, Cow::Owned(bytes));
    }
    let outcome = chipless_sim::run(
        &chipless_sim::Verified::assume(program),
        &mut chipless_sim::Functional::new(&mut storage),
    );
    outcome.end.unwrap_or_else(|stop| panic!("{stop:?}"));
    let outputs = program.interface.outputs.iter();
    let mut outputs: Vec<_> = outputs
        .map(|p| (p.name.clone(), storage.bytes(p.buffer).to_vec()))
        .collect();
    outputs.sort();
    outputs
}

fn last(outputs: &[(String, Vec<u8>)]) -> &[u8] {
    &outputs
        .iter()
        .find(|(name, _)| name == "Conv_last")
        .expect("the network's output")
        .1
}

#[test]
fn every_tiling_and_every_mesh_gives_the_same_numbers() {
    let whole = outputs(&Plan::default(), WeightData::Seeded(7));
    assert!(
        last(&whole)
            .iter()
            .collect::<std::collections::HashSet<_>>()
            .len()
            > 20,
        "a result worth comparing"
    );
    for (columns, rows) in [(1, 1), (2, 1), (2, 2), (3, 2)] {
        for cut in 0..4 {
            for (tile_cut, tiles) in [(1, 2), (2, 3), (3, 2), (0, 2)] {
                let plan = Plan {
                    columns,
                    rows,
                    cut,
                    tile_cut,
                    tiles,
                    ..Plan::default()
                };
                assert_eq!(
                    last(&whole),
                    last(&outputs(&plan, WeightData::Seeded(7))),
                    "{plan:?}"
                );
            }
        }
    }
}

#[test]
fn the_way_through_memory_makes_no_difference() {
    let whole = outputs(&Plan::default(), WeightData::Seeded(7));
    for through_dram in [false, true] {
        for weights_through_l2 in [false, true] {
            for relative in [false, true] {
                for cut in [1, 2] {
                    let plan = Plan {
                        columns: 2,
                        rows: 2,
                        cut,
                        tiles: 2,
                        through_dram,
                        weights_through_l2,
                        relative,
                        ..Plan::default()
                    };
                    assert_eq!(
                        last(&whole),
                        last(&outputs(&plan, WeightData::Seeded(7))),
                        "{plan:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_layer_that_reaches_dram_is_an_output() {
    let names: Vec<String> = outputs(
        &Plan {
            through_dram: true,
            columns: 2,
            ..Plan::default()
        },
        WeightData::Seeded(1),
    )
    .into_iter()
    .map(|(name, _)| name)
    .collect();
    assert_eq!(
        names,
        ["Add_3", "Conv_0", "Conv_2", "Conv_last", "MaxPool_1"]
    );
}

#[test]
fn a_border_that_nobody_reads_belongs_to_the_input() {
    let plan = |unread| Plan {
        kernel: 1,
        unread,
        columns: 2,
        ..Plan::default()
    };
    assert_eq!(
        last(&outputs(&plan(0), WeightData::Seeded(7))),
        last(&outputs(&plan(3), WeightData::Seeded(7)))
    );
    let (limits, plan) = (Limits::default(), plan(3));
    let schedule =
        Schedule::read(&crate::generate::schedule(&plan).to_string()).expect("a schedule");
    let network = Network::read(
        crate::generate::network(&plan).to_string().as_bytes(),
        &limits,
    )
    .expect("a network");
    let shape = |network: Option<&Network>| {
        let data = Data {
            network,
            weights: None,
        };
        let lowered = lower(
            &schedule,
            &data,
            &Machine::named("spec").expect("known"),
            &limits,
        )
        .expect("a program");
        lowered
            .program
            .interface
            .inputs
            .iter()
            .find(|port| port.name == "input1")
            .expect("the input")
            .shape
            .clone()
    };
    assert_eq!(shape(Some(&network)), [2, 3, 9, 12]);
    assert_eq!(
        shape(None),
        [2, 3, 9, 9],
        "without a network, what the schedule reads"
    );
}

/// Numbers for a layer of `k` output and `c` input channels.
fn numbers(k: usize, c: usize, taps: usize) -> Arrays {
    let side = if taps == 9 { 3 } else { 1 };
    let values = (0..k * c * taps)
        .map(|i| f64::from((i * 37 % 255) as u8 as i8))
        .collect();
    Arrays {
        weight: Array {
            shape: vec![k as u64, c as u64, side, side],
            values,
        },
        k: (0..k)
            .map(|i| 1.0 + i as f64 / 64.0)
            .collect::<Vec<_>>()
            .into(),
        b: (0..k)
            .map(|i| i as f64 * 5.0 - 30.0)
            .collect::<Vec<_>>()
            .into(),
    }
}

#[test]
fn weights_that_the_layer_cannot_have_are_refused() {
    let (plan, limits) = (Plan::default(), Limits::default());
    let schedule =
        Schedule::read(&crate::generate::schedule(&plan).to_string()).expect("a schedule");
    let network = Network::read(
        crate::generate::network(&plan).to_string().as_bytes(),
        &limits,
    )
    .expect("a network");
    let said = |change: fn(&mut Arrays)| {
        let mut arrays: HashMap<String, Arrays> = [
            ("Conv_0", 16, 3, 9),
            ("Conv_2", 16, 16, 1),
            ("Conv_last", 24, 16, 9),
        ]
        .map(|(name, k, c, taps)| (name.to_owned(), numbers(k, c, taps)))
        .into();
        change(arrays.get_mut("Conv_0").expect("there"));
        let data = Data {
            network: Some(&network),
            weights: Some(WeightData::Given(&arrays)),
        };
        match lower(
            &schedule,
            &data,
            &Machine::named("spec").expect("known"),
            &limits,
        ) {
            Ok(_) => String::new(),
            Err(finding) => format!("{}: {}", finding.rule.code, finding.message),
        }
    };
    let refused = |change: fn(&mut Arrays), text: &str| {
        assert_eq!(
            said(change),
            format!("gemini-weights-do-not-fit: layer `Conv_0`: {text}")
        );
    };
    assert_eq!(said(|_| ()), "");
    assert_eq!(
        said(|a| a.k.shape.push(1)),
        "",
        "ones at the end mean nothing"
    );
    refused(
        |a| a.weight.shape = vec![16, 27],
        "expected weights of the shape [16, 3, 3, 3], found [16, 27]",
    );
    refused(
        |a| a.weight.shape.reverse(),
        "expected weights of the shape [16, 3, 3, 3], found [3, 3, 3, 16]",
    );
    refused(
        |a| a.k.shape = vec![4, 4],
        "expected k of the shape [16], found [4, 4]",
    );
    refused(
        |a| a.b.values[3] = f64::NAN,
        "expected finite numbers in b, found NaN",
    );
    let range =
        "expected a whole number from -128 to 127, as int8 has them, as weight [0, 1, 1, 2], found";
    refused(|a| a.weight.values[14] = 0.4, &format!("{range} 0.4"));
    refused(|a| a.weight.values[14] = 128.0, &format!("{range} 128"));
    refused(
        |a| a.weight.values[14] = f64::INFINITY,
        &format!("{range} inf"),
    );
}

/// The definition, loop by loop: a convolution of 3 x 3 with padding 1, relu and requantisation.
#[test]
fn a_convolution_is_what_its_definition_says() {
    let plan = Plan {
        through_dram: true,
        columns: 2,
        tiles: 2,
        ..Plan::default()
    };
    let [n, k, size, c] = [plan.batch, plan.channels, plan.size, 3].map(|v| v as usize);
    let mut arrays = HashMap::new();
    for (name, k, c, taps) in [
        ("Conv_0", k, c, 9),
        ("Conv_2", k, k, 1),
        ("Conv_last", k + 8, k, 9),
    ] {
        arrays.insert(name.to_owned(), numbers(k, c, taps));
    }
    let found = outputs(&plan, WeightData::Given(&arrays));
    let found = &found
        .iter()
        .find(|(name, _)| name == "Conv_0")
        .expect("an output")
        .1;
    let input = |n: usize, c: usize, y: i64, x: i64| {
        let inside = (0..size as i64).contains(&y) && (0..size as i64).contains(&x);
        // Input and zero point; padding is real zero.
        if inside {
            value(n, c, y as usize, x as usize, size) + 3
        } else {
            0
        }
    };
    let weights = &arrays["Conv_0"];
    for image in 0..n {
        for channel in 0..k {
            for y in 0..size {
                for x in 0..size {
                    let mut sum = 0;
                    for from in 0..c {
                        for (r, s) in (0..3).flat_map(|r| (0..3).map(move |s| (r, s))) {
                            let weight =
                                weights.weight.values[(channel * c + from) * 9 + r * 3 + s] as i64;
                            sum += weight
                                * input(
                                    image,
                                    from,
                                    y as i64 + r as i64 - 1,
                                    x as i64 + s as i64 - 1,
                                );
                        }
                    }
                    let real = (sum as f64 + weights.b.values[channel]).max(0.0)
                        * weights.k.values[channel];
                    let want = ((real * 0.003 - 5.0 + 0.5).floor()).clamp(-128.0, 127.0) as i8;
                    let got = found[((image * k + channel) * size + y) * size + x] as i8;
                    assert_eq!(
                        got, want,
                        "image {image}, channel {channel}, row {y}, column {x}"
                    );
                }
            }
        }
    }
}

/// The input that [`outputs`] gives.
fn value(n: usize, c: usize, y: usize, x: usize, size: usize) -> i64 {
    let index = ((n * 3 + c) * size + y) * size + x;
    i64::from((index as u64 * 31 % 251) as u8 as i8)
}
