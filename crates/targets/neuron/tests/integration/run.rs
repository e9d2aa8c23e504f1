//! Fixtures executed: every output must be what an array library computes.

use crate::common::{values, with_program};
use chipless_model::{ElementType, Limits, Storage};
use chipless_neuron::{Constant, Member};
use chipless_sim::{Functional, TimingOnly, Verified, run};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/neuron");
    let entries = std::fs::read_dir(folder).expect("fixtures");
    let mut fixtures: Vec<PathBuf> = entries
        .map(|e| e.expect("entry").path())
        .filter(|p| p.join("program.neff").exists())
        .collect();
    fixtures.sort();
    fixtures
}

/// Arrays of a folder whose files start with `prefix`, by name.
fn arrays(folder: &Path, prefix: &str) -> BTreeMap<String, Vec<u8>> {
    let mut arrays = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        let name = path
            .file_name()
            .expect("name")
            .to_str()
            .expect("name")
            .to_owned();
        if let Some(name) = name
            .strip_prefix(prefix)
            .and_then(|n| n.strip_suffix(".npy"))
        {
            let bytes = std::fs::read(&path).expect("array");
            let array = Constant::read(Member {
                path: "array.npy",
                bytes: &bytes,
            })
            .expect("npy");
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

/// Programs whose functions are fitted, and whose references are of binary64.
const FITTED: [&str; 5] = [
    "rmsnorm",
    "layer_norm",
    "softmax",
    "gelu_mlp",
    "attention_causal",
];

/// Whether halves are at most two units of the last place apart, of the reference or of the reference's mean magnitude where that is larger.
fn near(found: &[u8], expected: &[u8]) -> bool {
    let numbers = |bytes: &[u8]| {
        let mut numbers = vec![0.0; bytes.len() / 2];
        chipless_kernels::cast::decode_f32(ElementType::Float16, bytes, &mut numbers)
            .expect("halves");
        numbers
    };
    let (found, expected) = (numbers(found), numbers(expected));
    let mean = expected.iter().map(|n| n.abs()).sum::<f32>() / expected.len() as f32;
    let unit = |reference: f32| (reference.abs().max(mean).log2().floor() - 10.0).exp2();
    found
        .iter()
        .zip(&expected)
        .all(|(f, e)| (f - e).abs() <= 2.0 * unit(*e))
}

#[test]
fn outputs_are_what_an_array_library_computes() {
    assert!(fixtures().len() >= 12);
    for folder in fixtures() {
        let file = std::fs::read(folder.join("program.neff")).expect("program");
        let (inputs, outputs) = (arrays(&folder, "input_"), arrays(&folder, "output_"));
        with_program(&file, |program, _| {
            let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
            assert_eq!(
                program.interface.inputs.len(),
                inputs.len(),
                "{}",
                folder.display()
            );
            for port in &program.interface.inputs {
                storage.set(port.buffer, Cow::Owned(inputs[&port.name].clone()));
            }
            let outcome = run(
                &Verified::assume(program),
                &mut Functional::new(&mut storage),
            );
            assert_eq!(outcome.end, Ok(()), "{}", folder.display());
            for (name, expected) in &outputs {
                let port = program
                    .interface
                    .outputs
                    .iter()
                    .find(|p| p.name == *name)
                    .expect("output");
                let size = (port.element.bits() / 8) as usize;
                let found = &storage.bytes(port.buffer)[..expected.len()];
                if FITTED.iter().any(|name| folder.ends_with(name)) {
                    assert!(near(found, expected), "{}: {name}", folder.display());
                    continue;
                }
                for (i, (found, expected)) in
                    found.chunks(size).zip(expected.chunks(size)).enumerate()
                {
                    assert!(
                        same(port.element, found, expected),
                        "{}: {name}[{i}] is {found:02x?}, expected {expected:02x?}",
                        folder.display()
                    );
                }
            }
            // The same events happen in the same order without bytes.
            assert_eq!(
                run(&Verified::assume(program), &mut TimingOnly).timeline,
                outcome.timeline
            );
        });
    }
}

#[test]
fn semaphores_end_where_descriptors_and_instructions_leave_them() {
    let end = |name: &str| {
        let file = std::fs::read(
            fixtures()
                .into_iter()
                .find(|f| f.ends_with(name))
                .expect("fixture")
                .join("program.neff"),
        )
        .expect("file");
        with_program(&file, |program, notes| {
            let outcome = run(&Verified::assume(program), &mut TimingOnly);
            assert_eq!(outcome.end, Ok(()));
            let is_semaphore = |(name, _): &(String, i64)| name.contains("$S");
            let values: Vec<(String, i64)> = values(program, &outcome.timeline)
                .into_iter()
                .filter(is_semaphore)
                .collect();
            (
                values
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect::<Vec<_>>()
                    .join(" "),
                notes.len(),
            )
        })
    };
    let (values, notes) = end("two_subgraphs");
    assert_eq!(
        values,
        "sg00 $S[42]=16 sg00 $S[8]=16 sg01 $S[40]=16 sg01 $S[41]=16 sg01 $S[8]=16"
    );
    assert_eq!(notes, 1, "the order of the descriptors is a convention");
    let (values, notes) = end("matmul_five_engines");
    assert_eq!(
        values,
        "sg00 $S[10]=16 sg00 $S[24]=16 sg00 $S[25]=16 sg00 $S[26]=16 sg00 $S[4]=1 sg00 $S[5]=1 sg00 $S[6]=1 sg00 $S[8]=16 sg00 $S[9]=16"
    );
    assert_eq!(notes, 0, "every transfer is an instruction's");
}
