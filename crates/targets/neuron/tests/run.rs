//! Fixtures executed: every output must be what an array library computes.

use chipless_model::{Action, ElementType, Limits, Program, Storage};
use chipless_neuron::{Constant, Container, Lowered, Member, Neff, lower, machine::Machine};
use chipless_sim::{Functional, TimingOnly, run};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/neuron");
    let entries = std::fs::read_dir(folder).expect("fixtures");
    let mut fixtures: Vec<PathBuf> = entries.map(|e| e.expect("entry").path()).filter(|p| p.join("program.neff").exists()).collect();
    fixtures.sort();
    fixtures
}

/// Lowers a file for the machine that it names, and does something with the program.
fn with_program<T>(file: &[u8], then: impl FnOnce(&Program<'_>, &[String]) -> T) -> T {
    let limits = Limits::default();
    let container = Container::open(file, &limits).expect("container");
    let neff = Neff::read(&container, &limits).expect("document");
    let machine = neff.architecture.machine().unwrap_or_else(|| Machine::named("trn2").expect("machine"));
    let Lowered { program, notes } = lower(&neff, &machine, &limits).expect("program");
    then(&program, &notes)
}

/// Arrays of a folder whose files start with `prefix`, by name.
fn arrays(folder: &Path, prefix: &str) -> BTreeMap<String, Vec<u8>> {
    let mut arrays = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        let name = path.file_name().expect("name").to_str().expect("name").to_owned();
        if let Some(name) = name.strip_prefix(prefix).and_then(|n| n.strip_suffix(".npy")) {
            let bytes = std::fs::read(&path).expect("array");
            let array = Constant::read(Member { path: "array.npy", bytes: &bytes }).expect("npy");
            arrays.insert(name.to_owned(), array.bytes.into_owned());
        }
    }
    arrays
}

/// Whether two elements are the same bits, or both not a number.
fn same(element: ElementType, a: &[u8], b: &[u8]) -> bool {
    let mut numbers = [[0.0]; 2];
    for (bytes, number) in [a, b].into_iter().zip(&mut numbers) {
        chipless_kernels::cast::decode_f32(element, bytes, number).expect("element");
    }
    a == b || numbers[0][0].is_nan() && numbers[1][0].is_nan()
}

#[test]
fn outputs_are_what_an_array_library_computes() {
    assert!(fixtures().len() >= 12);
    for folder in fixtures() {
        let file = std::fs::read(folder.join("program.neff")).expect("program");
        let (inputs, outputs) = (arrays(&folder, "input_"), arrays(&folder, "output_"));
        with_program(&file, |program, _| {
            let mut storage = Storage::new(program, &Limits::default()).expect("memory");
            assert_eq!(program.interface.inputs.len(), inputs.len(), "{}", folder.display());
            for port in &program.interface.inputs {
                storage.set(port.buffer, Cow::Owned(inputs[&port.name].clone()));
            }
            let outcome = run(program, &mut Functional::new(&mut storage));
            assert_eq!(outcome.end, Ok(()), "{}", folder.display());
            for (name, expected) in &outputs {
                let port = program.interface.outputs.iter().find(|p| p.name == *name).expect("output");
                let size = (port.element.bits() / 8) as usize;
                let found = &storage.bytes(port.buffer)[..expected.len()];
                for (i, (found, expected)) in found.chunks(size).zip(expected.chunks(size)).enumerate() {
                    assert!(same(port.element, found, expected), "{}: {name}[{i}] is {found:02x?}, expected {expected:02x?}", folder.display());
                }
            }
            // The same events happen in the same order without bytes.
            assert_eq!(run(program, &mut TimingOnly).timeline, outcome.timeline);
        });
    }
}

#[test]
fn semaphores_end_where_descriptors_and_instructions_leave_them() {
    let values = |name: &str| {
        let file = std::fs::read(fixtures().into_iter().find(|f| f.ends_with(name)).expect("fixture").join("program.neff")).expect("file");
        with_program(&file, |program, notes| {
            let outcome = run(program, &mut TimingOnly);
            assert_eq!(outcome.end, Ok(()));
            let mut values: BTreeMap<String, i64> = BTreeMap::new();
            for signal in outcome.timeline.order.iter().flat_map(|task| program.signals(*task)) {
                if let Action::Add(sync, by) = signal.action {
                    *values.entry(program.syncs[sync].name.clone()).or_default() += by;
                }
            }
            (values, notes.len())
        })
    };
    let (two_subgraphs, notes) = values("two_subgraphs");
    println!("{two_subgraphs:?} {notes}");
    let (matmul, _) = values("matmul_five_engines");
    println!("{matmul:?}");
}
