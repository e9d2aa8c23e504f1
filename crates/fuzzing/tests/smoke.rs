//! The bodies of the fuzz targets on the fixtures, on random mutations of them, and on random bytes.

use chipless_model::SplitMix64;
use chipless_rounds::rounds;
use std::path::PathBuf;

struct Random(SplitMix64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.number()
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn corpus(target: &str, file: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/../../fixtures/{target}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).expect("the fixtures are there");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable entry").path().join(file))
        .filter(|p| p.exists())
        .collect();
    paths.sort();
    let read = |path: &PathBuf| std::fs::read(path).expect("a readable fixture");
    let found: Vec<Vec<u8>> = paths
        .iter()
        .map(read)
        .filter(|bytes| bytes.len() < 200_000)
        .collect();
    assert!(!found.is_empty(), "no fixtures {target}/*/{file}");
    found
}

/// Schedules of every dialect, assembly and a trace.
fn schedules() -> Vec<Vec<u8>> {
    let folder = format!("{}/../../fixtures/gemini", env!("CARGO_MANIFEST_DIR"));
    let names = [
        "set.json",
        "set_address.json",
        "ir_tiling.json",
        "asm.txt",
        "trace.txt",
    ];
    let mut files: Vec<Vec<u8>> = names
        .iter()
        .map(|name| std::fs::read(format!("{folder}/{name}")).expect("a readable fixture"))
        .collect();
    for number in 0..3 {
        let text = String::from_utf8(files[number].clone()).expect("text");
        let schedule = chipless::gemini::Schedule::read(&text).expect("a schedule");
        files.push(schedule.convert(None).write().into_bytes());
    }
    files
}

/// Other numbers and other values: what is still JSON goes deeper.
fn mutate_text(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    if random.below(4) == 0 {
        return mutate(random, bytes);
    }
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(3) {
        chipless_fuzzing::mutate_values(&mut bytes, random.next());
    }
    bytes
}

/// All fixtures of one folder with one ending.
fn folder(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/../../fixtures/{folder}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).expect("the fixtures are there");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable entry").path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == ending));
    paths.sort();
    let found: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| std::fs::read(path).expect("a readable fixture"))
        .collect();
    assert!(found.len() > 5, "only {} fixtures", found.len());
    found
}

/// Cut, flipped, overwritten with numbers that hurt.
fn mutate(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if random.below(8) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        let new: &[u8] = match random.below(4) {
            0 => &[0xff; 8],
            1 => &[0; 8],
            2 => &[0, 0, 0, 0x80],
            _ => &[random.next() as u8],
        };
        let end = (at + new.len()).min(bytes.len());
        bytes[at..end].copy_from_slice(&new[..end - at]);
    }
    bytes
}

fn smoke(corpus: &[Vec<u8>], mutants: usize, body: fn(&[u8])) {
    smoke_with(corpus, mutants, mutate, body);
}

fn smoke_with(
    corpus: &[Vec<u8>],
    mutants: usize,
    mutate: fn(&mut Random, &[u8]) -> Vec<u8>,
    body: fn(&[u8]),
) {
    let mut random = Random(SplitMix64(7));
    for bytes in corpus {
        body(bytes);
    }
    for _ in 0..rounds(mutants) {
        let seed = &corpus[random.below(corpus.len())];
        body(&mutate(&mut random, seed));
    }
    for byte in 0..=u8::MAX {
        body(&[byte]);
    }
    for size in 0..64 {
        body(&(0..size).map(|_| random.next() as u8).collect::<Vec<_>>());
    }
}

#[test]
fn npu_read() {
    smoke(
        &corpus("npu", "program.blob"),
        2000,
        chipless_fuzzing::npu_read,
    );
}

#[test]
fn npu_lower() {
    smoke(
        &corpus("npu", "program.blob"),
        400,
        chipless_fuzzing::npu_lower,
    );
}

#[test]
fn neuron_read() {
    smoke(
        &corpus("neuron", "program.neff"),
        1000,
        chipless_fuzzing::neuron_read,
    );
}

#[test]
fn neuron_lower() {
    smoke(
        &corpus("neuron", "program.neff"),
        1000,
        chipless_fuzzing::neuron_lower,
    );
}

#[test]
fn gemini_read() {
    smoke_with(
        &schedules(),
        1000,
        mutate_text,
        chipless_fuzzing::gemini_read,
    );
}

#[test]
fn gemini_lower() {
    smoke_with(
        &schedules(),
        600,
        mutate_text,
        chipless_fuzzing::gemini_lower,
    );
}

#[test]
fn dfg_read() {
    let files: Vec<Vec<u8>> = ["dsa", "dsa/kernels"]
        .iter()
        .flat_map(|name| folder(name, "dfg"))
        .collect();
    smoke(&files, 4000, chipless_fuzzing::dfg_read);
}

#[test]
fn adg_read() {
    smoke(&folder("dsa/adg", "json"), 400, chipless_fuzzing::adg_read);
}

/// Whatever the bytes, the model's promise holds.
#[test]
fn model() {
    let mut random = Random(SplitMix64(3));
    for _ in 0..rounds(30_000) {
        let size = 40 + random.below(300);
        let bytes: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
        chipless_fuzzing::model(&bytes);
    }
}

#[test]
fn spu_iospec() {
    smoke_with(
        &corpus("spu", "iospec.yaml"),
        2000,
        mutate_text,
        chipless_fuzzing::spu_iospec,
    );
}

#[test]
fn spu_plan() {
    smoke_with(
        &corpus("spu", "plan.json"),
        400,
        mutate_text,
        chipless_fuzzing::spu_plan,
    );
}

#[test]
fn spu_saved() {
    smoke(&corpus("spu", "model.pt"), 400, chipless_fuzzing::spu_saved);
}

#[test]
fn spu_femto() {
    smoke(
        &corpus("spu", "program.femto"),
        2000,
        chipless_fuzzing::spu_femto,
    );
}

/// One file of the fixtures.
fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/../../fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).expect("a readable fixture")
}

#[test]
fn npy_read() {
    let files = corpus("npu", "input_0.npy");
    smoke(&files, 2000, chipless_fuzzing::npy_read);
}

#[test]
fn onnx_read() {
    let files = [fixture("schedule/small.onnx")];
    smoke(&files, 400, chipless_fuzzing::onnx_read);
}

#[test]
fn yaml_read() {
    let files = corpus("spu", "iospec.yaml");
    smoke(&files, 2000, chipless_fuzzing::yaml_read);
}

#[test]
fn sweep_plan() {
    let plan = b"version: 1\nprograms: [a.blob, \"more/*.blob\"]\nmachine:\n  dma.latency: [510, 1625]\n  \
        dma.ddr_bytes_per_second: {from: 10e9, to: 160e9, steps: 5, scale: log}\noptions: {timing_only: true}\n\
        sample: {method: latin_hypercube, count: 10, seed: 1}\ncolumns: [latency_ns]\n";
    smoke_with(
        &[plan.to_vec()],
        2000,
        mutate_text,
        chipless_fuzzing::sweep_plan,
    );
}

#[test]
fn device_workload() {
    let names = ["cameras", "memory", "one_camera", "two_networks"];
    let files = names.map(|name| fixture(&format!("device/{name}.yaml")));
    smoke_with(&files, 2000, mutate_text, chipless_fuzzing::device_workload);
}

#[test]
fn schedule_tree() {
    let files = [fixture("schedule/small.tree.json")];
    smoke_with(&files, 1000, mutate_text, chipless_fuzzing::schedule_tree);
}

#[test]
fn machine_read() {
    let mut files: Vec<Vec<u8>> = chipless::TARGETS
        .iter()
        .flat_map(|target| target.machines())
        .map(|(_, text)| text.as_bytes().to_vec())
        .collect();
    files.push(fixture("schedule/mesh2x2.json"));
    smoke_with(&files, 1000, mutate_text, chipless_fuzzing::machine_read);
}

#[test]
fn neuron_assemble() {
    let mut files = corpus("neuron", "program.asm");
    files.extend(["ring", "early_read"].map(|name| fixture(&format!("broken/{name}.asm"))));
    smoke_with(&files, 2000, mutate_text, chipless_fuzzing::neuron_assemble);
}

#[test]
fn policy_read() {
    let list = b"unsatisfiable a.blob  # the vendor's runtime\nmissing-kernel-* *.neff # judged\n";
    smoke(&[list.to_vec()], 2000, chipless_fuzzing::policy_read);
}

#[test]
fn npu_run() {
    let files = [
        fixture("npu/convert_f32_f16/program.blob"),
        fixture("npu/add_3720/program.blob"),
    ];
    smoke(&files, 100, chipless_fuzzing::npu_run);
}

#[test]
fn neuron_run() {
    smoke(
        &corpus("neuron", "program.neff"),
        400,
        chipless_fuzzing::neuron_run,
    );
}

#[test]
fn dsa_run() {
    smoke_with(
        &folder("dsa", "dfg"),
        1000,
        mutate_text,
        chipless_fuzzing::dsa_run,
    );
}

#[test]
fn spu_run() {
    let mut files = corpus("spu", "plan.json");
    files.extend(corpus("spu", "model.pt"));
    smoke_with(&files, 200, mutate_text, chipless_fuzzing::spu_run);
}

#[test]
fn gemini_network() {
    let names = ["set", "set_address", "ir_tiling"];
    let files = names.map(|name| fixture(&format!("gemini/{name}.json")));
    smoke_with(&files, 2000, mutate_text, chipless_fuzzing::gemini_network);
}

/// Whatever the bytes, the verifier and all interleavings agree.
#[test]
fn brute_force() {
    let mut random = Random(SplitMix64(3));
    for _ in 0..rounds(4000) {
        let size = 10 + random.below(90);
        let bytes: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
        chipless_fuzzing::brute_force(&bytes);
    }
}

#[test]
fn neuron_round_trip() {
    smoke(
        &corpus("neuron", "program.neff"),
        400,
        chipless_fuzzing::neuron_round_trip,
    );
}

/// The proof of the order of a schedule once had a clock for each pair of cores: 34 GB for this mesh.
#[test]
fn a_large_mesh_of_idle_cores_costs_nothing() {
    // Without optimisation, to write and read as many cores takes ten seconds: where all rounds are run, so is this.
    if !chipless_rounds::are_all() {
        return;
    }
    let output = r#"{"layer_name": "conv2", "type": "core", "workload_id": 1}"#;
    let schedule =
        format!(r#"{{"-1": {output}, "2": [], "top_batch_cut": 1, "xlen": 2, "ylen": 65535}}"#);
    chipless_fuzzing::gemini_network(schedule.as_bytes());
}

/// A target's body.
type Body = fn(&[u8]);

macro_rules! bodies {
    ($($name:ident)*) => {
        &[$((stringify!($name), chipless_fuzzing::$name as Body)),*]
    };
}

const BODIES: &[(&str, Body)] = bodies! {
    adg_read brute_force device_workload dfg_read dsa_run gemini_lower gemini_network gemini_read machine_read model
    neuron_assemble neuron_lower neuron_read neuron_round_trip neuron_run npu_lower npu_read npu_run npy_read onnx_read
    policy_read schedule_tree spu_femto spu_iospec spu_plan spu_run spu_saved sweep_plan yaml_read
};

/// Inputs that fuzzers made and kept: of each target some small ones that reach code which others do not.
#[test]
fn kept_inputs_do_no_harm() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");
    for (name, body) in BODIES {
        let target = format!("{folder}/{name}");
        let files = std::fs::read_dir(&target).unwrap_or_else(|error| panic!("{target}: {error}"));
        let mut paths: Vec<PathBuf> = files
            .map(|file| file.expect("a readable file").path())
            .collect();
        paths.sort();
        assert!(!paths.is_empty(), "{target} has no inputs");
        for path in paths {
            body(&std::fs::read(path).expect("a readable input"));
        }
    }
}
