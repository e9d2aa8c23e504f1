//! Converted schedules of the ancestors: what a tile lacks is found before it runs, and what runs is not accused.

use crate::tilings::errors_of;
use chipless_gemini::{Data, Document, Machine, Network, Schedule, WeightData, lower};
use chipless_model::{Finding, Limits, Storage};
use chipless_sim::{Functional, Verified};
use serde_json::{Value, json};

fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fixtures/gemini");
    std::fs::read(format!("{folder}/{name}.json")).expect("a fixture")
}

fn network() -> Network {
    Network::read(&fixture("two_layers"), &Limits::default()).expect("a network")
}

fn converted(name: &str) -> Value {
    let bytes = fixture(name);
    let document = Document::read(&bytes, "", &Limits::default()).expect("a schedule");
    let text = document.schedule.convert(Some(&network())).write();
    serde_json::from_str(&text).expect("JSON")
}

/// The errors of a check with the network, and what a run says that nobody has checked.
fn found(schedule: &Value) -> (Vec<String>, Result<(), String>) {
    let (limits, network) = (Limits::default(), network());
    let said = |finding: &Finding| format!("{}: {}", finding.rule.code, finding.message);
    let two_layers = serde_json::from_slice(&fixture("two_layers")).expect("JSON");
    let mut errors: Vec<String> = errors_of(&two_layers, schedule).iter().map(said).collect();
    let schedule = Schedule::read(&schedule.to_string()).expect("a schedule");
    let machine = Machine::named("spec").expect("it comes along");
    // A check has no weights; a run does.
    let lowered = |weights| {
        let data = Data {
            network: Some(&network),
            weights,
        };
        lower(&schedule, &data, &machine, &limits).expect("a program")
    };
    let findings = chipless_verify::verify(&lowered(None).program).err();
    let findings = findings.into_iter().flatten();
    errors.extend(findings.filter(Finding::is_error).map(|f| said(&f)));
    let program = lowered(Some(WeightData::Seeded(3))).program;
    let mut storage = Storage::new(&program.buffers, &limits).expect("memory");
    let mut functional = Functional::new(&mut storage);
    let run = chipless_sim::run(&Verified::assume(&program), &mut functional);
    (errors, run.end.map_err(|stop| format!("{stop:?}")))
}

#[test]
fn what_runs_is_clean() {
    for name in ["set", "set_address", "ir_tiling"] {
        assert_eq!(found(&converted(name)), (Vec::new(), Ok(())), "{name}");
    }
}

/// A change of a schedule, the finding that it must bring, and what the run says.
type Lack = (fn(&mut Value), &'static str, &'static str);

const LACKS: &[Lack] = &[
    (
        |s| {
            s["0"][0]["weight"] = json!({"lower": [0, 0, 0, 0], "upper": [0, 1, 2, 0], "size": 6, "transfer_id": [0]});
        },
        "gemini-weights: expected workload 0 of core 0 (conv1) to compute its tile [0, 0, 0, 0]..[0, 3, 3, 3] with its weights, \
         found those of 2 output channels, 3 bytes each, where it needs 4 of 3 bytes",
        "needs its weights, found those of 2 output channels",
    ),
    (
        |s| {
            drop(
                s["0"][0]["buffer"]
                    .as_array_mut()
                    .map(|buffer| buffer.remove(0)),
            );
        },
        "gemini-weights: expected workload 0 of core 0 (conv1) to compute its tile [0, 0, 0, 0]..[0, 3, 3, 3] with its weights, \
         found that they are in no buffer",
        "needs its weights, found that they are in no buffer",
    ),
    (
        |s| {
            drop(
                s["-1"]["out"][0]["destination"][0]
                    .as_object_mut()
                    .map(|to| to.remove("layer_name")),
            );
        },
        "gemini-weights: expected workload 0 of core 0 (conv1) to compute with its weights, found transfer 0, which names no layer",
        "needs its weights, found those of 4 output channels, 3 bytes each, where it needs 4 of 40 bytes",
    ),
    (
        |s| {
            s["0"][0]["ifmap"][0]["lower"] = json!([0, 0, 0, 1]);
            s["0"][0]["ifmap"][0]["size"] = json!(36);
        },
        "gemini-input: expected workload 0 of core 0 (conv1) to read input [0, 0, 0, 0]..[0, 2, 3, 3] for its tile \
         [0, 0, 0, 0]..[0, 3, 3, 3], found that no tensor that it reads holds [0, 0, 0, 0]..[0, 2, 3, 0]",
        "and [0, 0, 0, 0]..[0, 2, 3, 0] is in no tensor of L2 that it reads",
    ),
    (
        |s| {
            drop(
                s["0"][0]["buffer"][1]["source"][0]
                    .as_object_mut()
                    .map(|source| source.remove("layer_name")),
            );
        },
        "gemini-not-lowered: expected the load of transfer 1 to name its layer and to have the same box on both sides, \
         found that the file does not say how its bytes lie",
        "the file does not say how this transfer lays out its bytes",
    ),
];

#[test]
fn what_a_tile_lacks_is_found_before_it_runs() {
    for (change, expected, fault) in LACKS {
        let mut schedule = converted("set");
        change(&mut schedule);
        let (errors, run) = found(&schedule);
        assert!(
            errors.iter().any(|error| error == expected),
            "{expected}\n{errors:#?}"
        );
        let said = run.expect_err(expected);
        assert!(said.contains(fault), "{fault}\n{said}");
    }
}
