//! A verified program gives the same bytes in every order that it allows: all fixtures, in orders of several seeds.

use chipless_model::{Kind, Limits, Program, Role, Storage};
use chipless_sim::{Functional, Order, Verified, run_in};
use std::path::PathBuf;

const SEEDS: std::ops::Range<u64> = 1..4;

fn fixtures(target: &str, file: &str) -> Vec<PathBuf> {
    let folder = format!("{}/../../fixtures/{target}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).expect("the fixtures are there");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable entry").path().join(file))
        .filter(|p| p.exists())
        .collect();
    found.sort();
    assert!(found.len() > 10, "only {} fixtures", found.len());
    found
}

/// Every byte that the host gets, after a run in this order on inputs of fixed bytes.
fn outputs(name: &str, program: &Program<'_>, order: Order) -> Vec<Vec<u8>> {
    let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
    for port in &program.interface.inputs {
        // Small enough to be numbers in every format, and rows of a table.
        let size = (port.element.bits() / 8).max(1) as usize;
        let is_index = port.element.kind() != Kind::Float && size > 1;
        for (i, byte) in storage.bytes_mut(port.buffer).iter_mut().enumerate() {
            *byte = match i % size {
                0 if is_index => (i / size % 31) as u8,
                _ if is_index => 0,
                _ => (i * 37 % 61) as u8,
            };
        }
    }
    let end = run_in(
        &Verified::assume(program),
        order,
        &mut Functional::new(&mut storage),
    )
    .end;
    assert_eq!(end, Ok(()), "{name} in {order:?}");
    let kept = program
        .buffers
        .iter_enumerated()
        .filter(|(_, buffer)| matches!(buffer.role, Role::Output | Role::State));
    kept.map(|(id, _)| storage.bytes(id).to_vec()).collect()
}

fn agree(name: &str, program: &Program<'_>) {
    assert!(chipless_verify::verify(program).is_ok(), "{name} is safe");
    let timed = outputs(name, program, Order::Timed);
    for seed in SEEDS {
        assert!(
            outputs(name, program, Order::Random(seed)) == timed,
            "{name}: seed {seed} gives other bytes"
        );
    }
}

#[test]
fn npu_blobs() {
    for path in fixtures("npu", "program.blob") {
        let bytes = std::fs::read(&path).expect("a readable fixture");
        let document = chipless_npu::Document::read(&bytes).expect("a blob");
        let image = chipless_npu::Image::load(&document, &Limits::default()).expect("an image");
        let program = chipless_npu::lower(&document, &image, &chipless_npu::Options::default())
            .expect("a program");
        agree(&path.display().to_string(), &program);
    }
}

#[test]
fn neffs() {
    let limits = Limits::default();
    let machine = chipless_neuron::machine::Machine::named("trn2").expect("a machine");
    let mut ran = 0;
    for path in fixtures("neuron", "program.neff") {
        let bytes = std::fs::read(&path).expect("a readable fixture");
        let container = chipless_neuron::Container::open(&bytes, &limits).expect("a container");
        let neff = chipless_neuron::Neff::read(&container, &limits).expect("a NEFF");
        // Some fixtures show what is not executed.
        let Ok(lowered) = chipless_neuron::lower(&neff, &machine, &limits) else {
            continue;
        };
        agree(&path.display().to_string(), &lowered.program);
        ran += 1;
    }
    assert!(ran > 10, "only {ran} fixtures run");
}

/// The orders differ: otherwise the tests above say nothing.
#[test]
fn seeds_give_different_orders() {
    let bytes = std::fs::read(format!(
        "{}/../../fixtures/npu/chain_tiles4/program.blob",
        env!("CARGO_MANIFEST_DIR")
    ))
    .expect("a fixture");
    let document = chipless_npu::Document::read(&bytes).expect("a blob");
    let image = chipless_npu::Image::load(&document, &Limits::default()).expect("an image");
    let program = chipless_npu::lower(&document, &image, &chipless_npu::Options::default())
        .expect("a program");
    let order = |order| {
        run_in(
            &Verified::assume(&program),
            order,
            &mut chipless_sim::TimingOnly,
        )
        .timeline
        .order
    };
    let orders: std::collections::BTreeSet<_> =
        SEEDS.map(|seed| order(Order::Random(seed))).collect();
    assert_eq!(orders.len(), SEEDS.count());
    assert_eq!(order(Order::Random(1)), order(Order::Random(1)));
}
