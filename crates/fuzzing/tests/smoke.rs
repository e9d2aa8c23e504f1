//! The bodies of the fuzz targets on the fixtures, on random mutations of them, and on random bytes.

use std::path::PathBuf;

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn corpus(target: &str, file: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/../../fixtures/{target}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).expect("the fixtures are there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable entry").path().join(file)).filter(|p| p.exists()).collect();
    paths.sort();
    let read = |path: &PathBuf| std::fs::read(path).expect("a readable fixture");
    let found: Vec<Vec<u8>> = paths.iter().map(read).filter(|bytes| bytes.len() < 200_000).collect();
    assert!(!found.is_empty(), "no fixtures {target}/*/{file}");
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
    let mut random = Random(7);
    for bytes in corpus {
        body(bytes);
    }
    for _ in 0..mutants {
        let seed = &corpus[random.below(corpus.len())];
        body(&mutate(&mut random, seed));
    }
    for size in 0..64 {
        body(&(0..size).map(|_| random.next() as u8).collect::<Vec<_>>());
    }
}

#[test]
fn npu_read() {
    smoke(&corpus("npu", "program.blob"), 2000, chipless_fuzzing::npu_read);
}

#[test]
fn npu_lower() {
    smoke(&corpus("npu", "program.blob"), 400, chipless_fuzzing::npu_lower);
}

#[test]
fn neuron_read() {
    smoke(&corpus("neuron", "program.neff"), 1000, chipless_fuzzing::neuron_read);
}

#[test]
fn neuron_lower() {
    smoke(&corpus("neuron", "program.neff"), 1000, chipless_fuzzing::neuron_lower);
}

/// Whatever the bytes, the model's promise holds.
#[test]
fn model() {
    let mut random = Random(3);
    for _ in 0..30_000 {
        let size = 40 + random.below(300);
        let bytes: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
        chipless_fuzzing::model(&bytes);
    }
}

#[test]
fn spu_iospec() {
    smoke(&corpus("spu", "iospec.yaml"), 2000, chipless_fuzzing::spu_iospec);
}

#[test]
fn spu_plan() {
    smoke(&corpus("spu", "plan.json"), 400, chipless_fuzzing::spu_plan);
}

#[test]
fn spu_femto() {
    smoke(&corpus("spu", "program.femto"), 2000, chipless_fuzzing::spu_femto);
}
