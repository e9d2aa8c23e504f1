//! Programs for NPU3720: what only they have, and damage that must be told.

use chipless_model::{Finding, Limits};
use chipless_npu::{Document, Image, Options, lower};

/// Bytes of a DMA descriptor, of a variant and of a barrier.
const DMA: usize = 128;
const VARIANT: usize = 64;
const BARRIER: usize = 12;

/// A program that is changed in place.
struct Blob(Vec<u8>);

impl Blob {
    fn open(name: &str) -> Blob {
        Blob(crate::program(name))
    }

    /// Where a section begins in the file, and its bytes.
    fn section(&self, name: &str) -> (usize, usize) {
        let document = Document::read(&self.0).expect("a sound file");
        let (section, bytes) = document.section(name).expect("the section exists");
        (section.offset as usize, bytes.len())
    }

    fn put(&mut self, section: &str, at: usize, bytes: &[u8]) {
        let (start, _) = self.section(section);
        self.0[start + at..][..bytes.len()].copy_from_slice(bytes);
    }

    fn lowered<T>(
        &self,
        check: impl FnOnce(Result<&chipless_model::Program<'_>, Vec<Finding>>) -> T,
    ) -> T {
        let document = Document::read(&self.0).expect("a sound file");
        match Image::load(&document, &Limits::default()) {
            Ok(image) => match lower(&document, &image, &Options::default()) {
                Ok(program) => check(Ok(&program)),
                Err(findings) => check(Err(findings)),
            },
            Err(findings) => check(Err(findings)),
        }
    }

    /// The codes of what is wrong.
    fn codes(&self) -> Vec<&'static str> {
        self.lowered(|program| match program {
            Ok(program) => {
                let lint = program.lint.as_ref().expect("lints");
                let findings = lint.check(program);
                let errors = findings.iter().filter(|finding| finding.is_error());
                errors.map(|finding| finding.rule.code).collect()
            }
            Err(findings) => findings.iter().map(|finding| finding.rule.code).collect(),
        })
    }
}

#[test]
fn tasks_stand_on_the_queues_of_two_engines_and_two_tiles() {
    Blob::open("conv_leaky_3720").lowered(|program| {
        let program = program.expect("a good program");
        let names: Vec<&str> = program.queues.iter().map(|queue| &*queue.name).collect();
        assert_eq!(names, ["dma0", "dma1", "dpu0", "dpu1"]);
        let memories: Vec<&str> = program
            .memories
            .iter()
            .map(|memory| &*memory.name)
            .collect();
        assert_eq!(memories, ["ddr", "cmx"]);
        let input = &program.interface.inputs[0];
        assert_eq!(program.buffers[input.buffer].name, "io.NetworkInput.0");
    });
}

#[test]
fn damage_is_told() {
    type Damage = fn(&mut Blob);
    let cases: [(&str, Damage); 5] = [
        ("npu-dma-link", |blob| blob.put(".text.dmaTasks0", 0, &[9])),
        ("program-barrier-index", |blob| {
            blob.put(".text.dmaTasks0", 80, &[0xff, 0x7f]);
        }),
        ("program-barrier-index", |blob| {
            blob.put(".text.BarrierConfigs", 0, &[0]);
            blob.put(".text.BarrierConfigs", 1, &[0, 0, 0]);
        }),
        ("npu-barrier-id", |blob| {
            blob.put(".text.BarrierConfigs", BARRIER + 8, &[99]);
        }),
        ("npu-invariant-pointer", |blob| {
            blob.put(".text.DPUVariants", VARIANT + 0x30, &[99]);
        }),
    ];
    for (code, damage) in cases {
        let mut blob = Blob::open("conv_leaky_3720");
        assert_eq!(blob.codes(), Vec::<&str>::new());
        damage(&mut blob);
        let codes = blob.codes();
        assert!(codes.contains(&code), "{code} is not among {codes:?}");
    }
}

#[test]
fn what_is_not_executed_is_refused_by_name() {
    let mut blob = Blob::open("conv_leaky_3720");
    let (start, size) = blob.section(".text.dmaTasks0");
    let cfg = blob.0[start + size - DMA + 11];
    blob.put(".text.dmaTasks0", size - DMA + 11, &[cfg | 0x10]);
    let found = blob.lowered(|program| {
        let program = program.expect("a program that is listed");
        let findings = program.lint.as_ref().expect("lints").check(program);
        findings
            .iter()
            .any(|f| f.message.contains("DMA decompression"))
    });
    assert!(found);
}
