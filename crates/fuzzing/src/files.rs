//! Files of no single target: arrays, networks, and what people write: YAML, plans, workloads, trees, machines, assembler text, lists of
//! allowed findings.

use crate::differential::assembled_again;
use crate::tally::past_the_reader;
use crate::targets::{limits, prove, tell};
use chipless_schedule::{import, onnx, tree::Tree};

/// Reads a file as an array, and writes it back: it must be the same array.
pub fn npy_read(bytes: &[u8]) {
    _ = (chipless::npy::numbers(bytes), chipless::npy::reals(bytes));
    let Ok((element, shape)) = chipless::npy::describe(bytes) else {
        return;
    };
    let Ok(data) = chipless::npy::read(bytes, element, &shape) else {
        return;
    };
    past_the_reader();
    let (header, written) =
        chipless::npy::write(element, &shape, &data).expect("what was read can be written");
    let file = [header.as_slice(), &written].concat();
    let again = chipless::npy::read(&file, element, &shape);
    assert_eq!(again.as_deref(), Ok(&*data), "another array");
}

/// Reads a file as a network, by both readers.
pub fn onnx_read(bytes: &[u8]) {
    let beside = |_: &str| None;
    let int8 = onnx::read(bytes, 1, &beside);
    let fp16 = import::read(bytes, &import::Shapes::new(), &beside);
    if int8.is_ok() || fp16.is_ok() {
        past_the_reader();
    }
    for refused in [int8.err(), fp16.err()].into_iter().flatten() {
        assert!(!refused.to_string().is_empty(), "a refusal says nothing");
    }
}

/// Reads a file as YAML, and prints it: what was printed must read as the same tree.
pub fn yaml_read(bytes: &[u8]) {
    let budget = chipless_yaml::Budget {
        nodes: 10_000,
        ..chipless_yaml::Budget::default()
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(chipless_yaml::Tree {
        root: Some(root), ..
    }) = chipless_yaml::read(text, budget)
    else {
        return;
    };
    past_the_reader();
    // By their texts, since not a number equals nothing.
    let written = chipless_yaml::write(&root);
    let again = chipless_yaml::read(&written, budget).expect("what was printed reads again");
    let again = again.root.map(|root| chipless_yaml::write(&root));
    assert_eq!(again.unwrap_or_default(), written, "another tree");
}

/// Reads a file as the plan of a sweep.
pub fn sweep_plan(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let files = |pattern: &std::path::Path| Ok(vec![pattern.to_owned()]);
    match chipless_sweep::Plan::read("plan.yaml", text, &files) {
        Ok(plan) => {
            past_the_reader();
            _ = plan.runs();
        }
        Err(failure) => assert!(!failure.to_string().is_empty(), "a failure says nothing"),
    }
}

/// Reads a file as the workload of a device.
pub fn device_workload(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match chipless_device::read(text, |_| Err("not there".to_owned())) {
        Ok(_) => past_the_reader(),
        Err(finding) => tell(&[*finding]),
    }
}

/// Reads a file as the tree of a schedule, and writes it: it must be the same tree.
pub fn schedule_tree(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(tree) = Tree::read(text) {
        past_the_reader();
        _ = (tree.batch(), tree.leaves());
        let written = tree.to_json();
        let again = Tree::read(&written.to_string()).expect("what was written reads again");
        assert_eq!(again.to_json(), written, "another tree");
    }
}

/// Reads a file as the machine of every target.
pub fn machine_read(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let read = [
        chipless::npu::Machine::from_toml(text).is_ok(),
        chipless::neuron::machine::Machine::parse(text).is_ok(),
        chipless::gemini::Machine::parse(text).is_ok(),
        chipless::dsa::Machine::from_toml(text).is_ok(),
        chipless::spu::fqir::Machine::parse(text).is_ok(),
        chipless_schedule::machine::Machine::read(text).is_ok(),
    ];
    if read.contains(&true) {
        past_the_reader();
    }
}

/// Reads a file as assembler text, and the NEFF that it makes as a NEFF: its listing assembles to the same, and it lowers.
pub fn neuron_assemble(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(draft) = chipless_neuron_assembler::assemble(text) else {
        return;
    };
    let limits = limits();
    let Ok(file) = draft.write(&limits) else {
        return;
    };
    past_the_reader();
    let container =
        chipless::neuron::Container::open(&file, &limits).expect("what was written opens");
    match chipless::neuron::Neff::read(&container, &limits) {
        Ok(neff) => {
            tell(&chipless::neuron::lint(&neff, &limits));
            assembled_again(&neff, &limits);
            let machine = neff.architecture.machine();
            let machine = machine.or_else(|| chipless::neuron::machine::Machine::named("trn2"));
            match chipless::neuron::lower(&neff, &machine.expect("it comes along"), &limits) {
                Ok(lowered) => prove(&lowered.program),
                Err(finding) => tell(&[*finding]),
            }
        }
        Err(finding) => tell(&[*finding]),
    }
}

/// Reads a file as a list of allowed findings.
pub fn policy_read(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let mut policy = chipless::Policy::default();
    match policy.allow_file("allowed.txt", text) {
        Ok(()) => past_the_reader(),
        Err(failure) => assert!(!failure.to_string().is_empty(), "a failure says nothing"),
    }
}
