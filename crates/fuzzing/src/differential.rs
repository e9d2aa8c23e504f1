//! Two ways to the same answer must agree: the verifier and all interleavings, a schedule and its network, a NEFF and its assembler text.

#[path = "../../verify/tests/integration/explore.rs"]
mod explore;

use crate::tally::past_the_reader;
use crate::targets::{GEMINI, limits, tell};
use arbitrary::{Result, Unstructured};
use chipless::gemini::lower::{Precision, whole};
use chipless::gemini::{Array, Arrays, Data, Document, Network, WeightData, lower};
use chipless::neuron::{Container, Neff, disassemble};
use chipless_model::{Direction, ElementType, Finding, Limits, Program, Storage};
use chipless_sim::{Functional, Verified};
use explore::{COUNTERS, Draft, QUEUES, Touch, barriers, counters, disagreement};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// Makes a small program of the bytes. The verifier must find what some interleaving shows, and nothing else.
pub fn brute_force(bytes: &[u8]) {
    let Ok(program) = small_program(&mut Unstructured::new(bytes)) else {
        return;
    };
    past_the_reader();
    if let Some(text) = disagreement(&program) {
        panic!("{text}: {program:#?}");
    }
}

fn small_program(u: &mut Unstructured<'_>) -> Result<Program<'static>> {
    let is_counting: bool = u.arbitrary()?;
    let skew = (
        u.int_in_range(0..=3)?,
        u.int_in_range(-1..=1)?,
        u.arbitrary()?,
    );
    let mut drafts = Vec::new();
    for _ in 0..u.int_in_range(1..=7)? {
        let touch = Touch(if u.ratio(3, 4)? {
            let direction = if u.arbitrary()? {
                Direction::Write
            } else {
                Direction::Read
            };
            Some((u.int_in_range(0..=1)?, direction))
        } else {
            None
        });
        let (mut waits, mut signals) = (Vec::new(), Vec::new());
        for _ in 0..u.int_in_range(0..=1)? {
            waits.push((u.int_in_range(0..=COUNTERS - 1)?, u.int_in_range(1..=2)?));
        }
        for _ in 0..u.int_in_range(0..=2)? {
            // A signal at the read ends a read early, which the brute force does not follow.
            let is_early = touch.0.is_none() && u.arbitrary()?;
            signals.push((
                u.int_in_range(0..=COUNTERS - 1)?,
                u.int_in_range(1..=2)?,
                is_early,
            ));
        }
        drafts.push(Draft {
            queue: u.int_in_range(0..=QUEUES - 1)?,
            touch,
            waits,
            signals,
        });
    }
    Ok(if is_counting {
        counters(&drafts)
    } else {
        barriers(&drafts, skew)
    })
}

/// The network of the schedules of `fixtures/gemini`.
static NETWORK: LazyLock<Network> = LazyLock::new(|| {
    let text = include_bytes!("../../../fixtures/gemini/two_layers.json");
    Network::read(text, &Limits::default()).expect("it comes along")
});

/// Arrays for its layers.
static ARRAYS: LazyLock<HashMap<String, Arrays>> = LazyLock::new(|| {
    let arrays = |shape: [u64; 4]| {
        let values = (0..shape.iter().product()).map(|i| (i * 37 % 255) as f64 - 127.0);
        let weight = Array {
            shape: shape.to_vec(),
            values: values.collect(),
        };
        Arrays {
            weight,
            ..Arrays::default()
        }
    };
    let layers = [
        ("conv1", arrays([4, 3, 1, 1])),
        ("conv2", arrays([2, 4, 1, 1])),
    ];
    layers
        .map(|(name, arrays)| (name.to_owned(), arrays))
        .into()
});

/// What the network computes, without a schedule.
static EXPECTED: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(|| {
    let program = whole(&NETWORK, &ARRAYS, Precision::Stored, &Limits::default());
    computed(&program.expect("it comes along"), true).expect("it runs")
});

/// Reads a file as a schedule of a small network, and brings it into the form that can be executed. If neither the checks nor the verifier
/// find an error, its execution ends, and gives what the network computes.
pub fn gemini_network(bytes: &[u8]) {
    _ = is_compared(bytes);
}

/// Whether it came to the comparison.
fn is_compared(bytes: &[u8]) -> bool {
    let limits = Limits {
        memory_bytes: 16 << 20,
        tasks: 512,
        ..limits()
    };
    let Ok(document) = Document::read(bytes, "", &limits) else {
        return false;
    };
    past_the_reader();
    let text = document.schedule.convert(Some(&NETWORK)).write();
    let Ok(document) = Document::read(text.as_bytes(), "", &limits) else {
        return false;
    };
    let findings = document.findings(Some(&NETWORK), None, &limits);
    tell(&findings);
    if findings.iter().any(Finding::is_error) {
        return false;
    }
    let data = Data {
        network: Some(&NETWORK),
        weights: Some(WeightData::Given(&ARRAYS)),
    };
    let lowered = match lower(&document.schedule, &data, &GEMINI, &limits) {
        Ok(lowered) => lowered,
        Err(finding) => {
            tell(&[*finding]);
            return false;
        }
    };
    if chipless_verify::verify(&lowered.program).is_err() {
        return false;
    }
    let Some(outputs) = computed(&lowered.program, false) else {
        return false;
    };
    for (name, bytes) in &outputs {
        assert_eq!(Some(bytes), EXPECTED.get(name), "output {name} of {text}");
    }
    true
}

/// Every output, its elements in the order C, H, W; nothing where Chipless lacks something. The program of a whole network has its maps in the
/// order H, W, C.
fn computed(program: &Program<'_>, is_whole: bool) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut storage = Storage::new(&program.buffers, &Limits::default()).ok()?;
    let turned = |values: &[u8], rows: usize| -> Vec<u8> {
        let columns = values.len() / rows.max(1);
        (0..columns)
            .flat_map(|x| (0..rows).map(move |y| values[y * columns + x]))
            .collect()
    };
    for port in &program.interface.inputs {
        let size = port.bytes()?;
        if port.element != ElementType::Int8 || size > 1 << 16 {
            return None;
        }
        let bytes: Vec<u8> = (0..size).map(|i| (i * 31 % 251) as u8).collect();
        let bytes = if is_whole { turned(&bytes, 3) } else { bytes };
        storage.set(port.buffer, Cow::Owned(bytes));
    }
    let outcome = chipless_sim::run(
        &Verified::assume(program),
        &mut Functional::new(&mut storage),
    );
    assert_eq!(outcome.end, Ok(()), "without errors, and it stops");
    let outputs = program.interface.outputs.iter().map(|port| {
        let bytes = storage.bytes(port.buffer);
        let channels = *port.shape.last().unwrap_or(&1) as usize;
        let bytes = if is_whole {
            turned(bytes, bytes.len() / channels.max(1))
        } else {
            bytes.to_vec()
        };
        (port.name.clone(), bytes)
    });
    Some(outputs.collect())
}

/// Reads a file as a NEFF, writes it as assembler text, and assembles that: the same members come out, byte for byte.
pub fn neuron_round_trip(bytes: &[u8]) {
    let limits = limits();
    let Ok(container) = Container::open(bytes, &limits) else {
        return;
    };
    if let Ok(neff) = Neff::read(&container, &limits) {
        past_the_reader();
        assembled_again(&neff, &limits);
    }
}

pub(crate) fn assembled_again(neff: &Neff<'_>, limits: &Limits) {
    let mut text = String::new();
    disassemble(neff, &mut text).expect("memory does");
    let draft = chipless_neuron_assembler::assemble(&text)
        .unwrap_or_else(|error| panic!("the listing does not assemble: {error}\n{text}"));
    let file = draft.write(limits).expect("what was read can be written");
    let again = Container::open(&file, limits).expect("what was written opens");
    let members = |container: &Container<'_>| -> BTreeMap<String, Vec<u8>> {
        let members = container.members();
        members
            .map(|member| (member.path.to_owned(), member.bytes.to_vec()))
            .collect()
    };
    assert_eq!(
        members(neff.container),
        members(&again),
        "other members come out\n{text}"
    );
}

#[cfg(test)]
mod tests {
    /// A comparison that no input reaches would find nothing.
    #[test]
    fn schedules_come_to_the_comparison() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/gemini");
        for name in ["set", "set_address", "ir_tiling"] {
            let bytes = std::fs::read(format!("{folder}/{name}.json")).expect("a fixture");
            assert!(super::is_compared(&bytes), "{name}");
        }
    }
}
