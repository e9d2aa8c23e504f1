//! What the hardware holds at most, and what a compiler should not do: one damaged program for each rule.

use chipless_model::{Finding, Limits, Storage};
use chipless_npu::dpu::register;
use chipless_npu::registers::of_task;
use chipless_npu::structures::Layout;
use chipless_npu::{Document, Image, Options, lower};

const DMA: usize = 224;
const INVARIANT: usize = 352;
const VARIANT: usize = 224;
const BARRIER: usize = 24;

/// A program that is changed in place.
struct Blob(Vec<u8>);

impl Blob {
    fn open(name: &str) -> Blob {
        Blob(crate::program(name))
    }

    /// Where the records of the sections begin whose names start so.
    fn records(&self, prefix: &str, size: usize) -> Vec<usize> {
        let document = Document::read(&self.0).expect("a sound file");
        let sections = document
            .elf()
            .sections()
            .iter()
            .filter(|s| s.name.starts_with(prefix));
        sections
            .flat_map(|s| (0..s.size as usize / size).map(|n| s.offset as usize + n * size))
            .collect()
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    fn put(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// The value of a register field of the record at `at`.
    fn field(&self, at: usize, name: &str) -> u32 {
        register(Layout::Npu4000, name)
            .expect("a register")
            .value(&self.0[at..])
    }

    fn set_field(&mut self, at: usize, name: &str, value: u32) {
        let register = register(Layout::Npu4000, name).expect("a register");
        let mask = (u64::MAX >> (64 - register.width)) as u32;
        let word = self.u32(at + register.offset);
        self.put(
            at + register.offset,
            word & !(mask << register.bit) | (value & mask) << register.bit,
        );
    }

    /// Errors and warnings of the program.
    fn findings(&self) -> Vec<Finding> {
        let document = Document::read(&self.0).expect("a sound file");
        let image = Image::load(&document, &Limits::default()).expect("an image");
        match lower(&document, &image, &Options::default()) {
            Ok(program) => {
                let lint = program.lint.as_ref().expect("a lint");
                lint.check(&program)
            }
            Err(findings) => findings,
        }
    }

    fn codes(&self) -> Vec<&'static str> {
        self.findings().iter().map(|f| f.rule.code).collect()
    }
}

/// Each change to each record makes a program of its own; one of them must be found to break the rule.
fn is_found(
    code: &str,
    fixture: &str,
    section: &str,
    size: usize,
    change: impl Fn(&mut Blob, usize) -> bool,
) {
    let good = Blob::open(fixture);
    assert!(!good.codes().contains(&code), "{code}: {fixture} is good");
    let mut changed = 0;
    for at in good.records(section, size) {
        let mut blob = Blob(good.0.clone());
        if change(&mut blob, at) {
            changed += 1;
            if blob.codes().contains(&code) {
                return;
            }
        }
    }
    panic!("{code}: not found in {changed} programs");
}

#[test]
fn transfers() {
    is_found("npu-dma-size", "conv1x1", "task.dma", DMA, |blob, at| {
        // 16 MiB, of one width on both sides.
        blob.put(at + 24, 1 << 24);
        blob.put(at + 28, 1 << 24);
        let word = blob.u32(at + 16);
        blob.put(at + 16, word & !7);
        true
    });
    is_found("npu-dma-gather", "conv1x1", "task.dma", DMA, |blob, at| {
        // Rows by a list of indices, which stands at address 0.
        let word = blob.u32(at + 20);
        blob.put(at + 20, word | 2 << 3);
        true
    });
    is_found("npu-dma-lengths", "conv1x1", "task.dma", DMA, |blob, at| {
        let width = blob.u32(at + 28);
        blob.put(at + 28, 0);
        width != 0
    });
    is_found(
        "npu-dma-barriers-off",
        "conv1x1",
        "task.dma",
        DMA,
        |blob, at| {
            let word = blob.u32(at + 16);
            blob.put(at + 16, word & !(1 << 29));
            true
        },
    );
    is_found(
        "npu-not-executed",
        "conv1x1",
        "task.dma",
        DMA,
        |blob, at| {
            // Compression.
            let word = blob.u32(at + 20);
            blob.put(at + 20, word | 1 << 10);
            true
        },
    );
    // The second of two transfers of one list writes where the first does.
    is_found(
        "npu-dma-overtakes",
        "conv1x1",
        "task.dma.0.0",
        DMA,
        |blob, at| {
            let word = blob.u32(at + 16);
            let is_free = blob.u32(at + 72) == 0 && blob.u32(at + 76) == 0 && word & 1 << 28 == 0;
            let (before, now) = (blob.u32(at - DMA + 48), blob.u32(at + 48));
            blob.put(at + 48, before);
            is_free && before != now && before >> 28 == 4
        },
    );
}

#[test]
fn barriers_and_schedules() {
    is_found(
        "npu-barrier-count",
        "conv1x1",
        "program.managedBarrier",
        BARRIER,
        |blob, at| {
            blob.put(at + 4, 256);
            true
        },
    );
    is_found(
        "npu-schedule-hint",
        "conv1x1",
        "task.dma",
        DMA,
        |blob, at| {
            blob.put(at + 0xc0, 1000);
            true
        },
    );
    is_found(
        "npu-schedule-hint",
        "conv1x1",
        "task.dpu.invariant",
        INVARIANT,
        |blob, at| {
            blob.put(at + 0x14c, 1000);
            true
        },
    );
    is_found(
        "npu-final-consumers",
        "conv1x1",
        "program.managedBarrier",
        BARRIER,
        |blob, at| {
            blob.put(at + 6, blob.u32(at + 6) & 0xffff_0000 | 6);
            true
        },
    );
    for (field, count) in [(8, 0), (12, 0), (16, 0), (16, 65), (20, 0), (20, 129)] {
        is_found(
            "npu-task-storage",
            "conv1x1",
            "program.mapped_inference",
            1728,
            |blob, at| {
                blob.put(at + 24 + field, count);
                true
            },
        );
    }
    is_found(
        "npu-several-waits",
        "conv1x1",
        "task.dma",
        DMA,
        |blob, at| {
            let waits = blob.u32(at + 72);
            blob.put(at + 72, waits | waits << 1 | waits >> 1);
            waits != 0
        },
    );
}

#[test]
fn channels_of_workloads() {
    is_found(
        "npu-dpu-channels",
        "conv1x1",
        "task.dpu.invariant",
        INVARIANT,
        |blob, at| {
            let channels = blob.field(at, "tensor_size_z");
            blob.set_field(at, "tensor_size_z", channels + 4);
            true
        },
    );
    for fixture in ["dwconv5x5_s2", "maxpool3x3_s2", "avgpool2x2"] {
        is_found(
            "npu-dpu-depthwise-channels",
            fixture,
            "task.dpu.variant",
            VARIANT,
            |blob, at| {
                let (end, size) = (
                    blob.field(at, "te_end_z"),
                    blob.field(at, "workload_size_z"),
                );
                if end < 8 || size < 8 {
                    return false;
                }
                blob.set_field(at, "te_end_z", end - 8);
                blob.set_field(at, "workload_size_z", size - 8);
                true
            },
        );
    }
}

#[test]
fn weights_of_workloads() {
    is_found(
        "npu-dpu-weight-table",
        "conv1x1",
        "task.dpu.variant",
        VARIANT,
        |blob, at| {
            let start = blob.field(at, "weight_start");
            blob.set_field(at, "weight_start", start + 8);
            true
        },
    );
    is_found(
        "npu-weight-count",
        "conv1x1",
        "task.dpu.variant",
        VARIANT,
        |blob, at| {
            blob.put(at + 0xb8, 33);
            true
        },
    );
}

#[test]
fn swizzles() {
    is_found(
        "npu-dpu-swizzle-alignment",
        "net_cnn_dpu",
        "task.dpu.invariant",
        INVARIANT,
        |blob, at| {
            let offset = blob.field(at, "act_offset0");
            blob.set_field(at, "act_offset0", offset + 1024);
            true
        },
    );
    // A producer that does not rotate any more, and a consumer.
    is_found(
        "npu-swizzle-key",
        "net_cnn_dpu",
        "task.dpu.invariant",
        INVARIANT,
        |blob, at| {
            let key = blob.field(at, "swizzle_key");
            blob.set_field(at, "swizzle_key", 0);
            key != 0
        },
    );
    is_found(
        "npu-swizzle-key",
        "net_cnn_dpu",
        "task.dpu.variant",
        VARIANT,
        |blob, at| {
            let key = blob.field(at, "swizzle_key_offset");
            blob.set_field(at, "swizzle_key_offset", 5 - key);
            true
        },
    );
    // The producer of what a product of two activations takes for its weights.
    is_found(
        "npu-swizzle-key",
        "bmm",
        "task.dpu.invariant.0.0",
        INVARIANT,
        |blob, at| {
            let key = blob.field(at, "swizzle_key");
            blob.set_field(at, "swizzle_key", 5 - key);
            true
        },
    );
    // A slice of the channels: a run for each of 2304 pixels.
    let slice = Blob::open("spill_ddr_t1").records("task.dpu.variant", VARIANT)[3];
    is_found(
        "npu-swizzle-key",
        "spill_ddr_t1",
        "task.dpu.variant",
        VARIANT,
        |blob, at| {
            blob.set_field(at, "swizzle_key_offset", 0);
            at == slice
        },
    );
}

#[test]
fn workloads_that_overlap() {
    is_found(
        "npu-workload-overlap",
        "spill_ddr_t1",
        "task.dpu.variant",
        VARIANT,
        |blob, at| {
            // The box of the variant before, where both are of one layer.
            if at < VARIANT || blob.0[at..at + 2] != blob.0[at - VARIANT..at - VARIANT + 2] {
                return false;
            }
            for name in [
                "te_beg_x", "te_beg_y", "te_beg_z", "te_end_x", "te_end_y", "te_end_z",
            ] {
                let value = blob.field(at - VARIANT, name);
                blob.set_field(at, name, value);
            }
            for name in [
                "workload_size_x",
                "workload_size_y",
                "workload_size_z",
                "workload_start_x",
                "workload_start_y",
                "workload_start_z",
            ] {
                let value = blob.field(at - VARIANT, name);
                blob.set_field(at, name, value);
            }
            for name in [
                "pad_count_up",
                "pad_count_down",
                "pad_count_left",
                "pad_count_right",
            ] {
                let value = blob.field(at - VARIANT, name);
                blob.set_field(at, name, value);
            }
            true
        },
    );
}

#[test]
fn a_weight_table_where_a_result_is() {
    let good = Blob::open("chain_tiles4");
    let output = good.field(good.records("task.dpu.invariant", INVARIANT)[0], "ac_base") * 16;
    is_found(
        "npu-weight-table-computed",
        "chain_tiles4",
        "task.dpu.variant",
        VARIANT,
        |blob, at| {
            blob.set_field(at, "weight_start", output);
            true
        },
    );
}

#[test]
fn a_weight_table_where_a_copy_of_a_result_is() {
    // The first convolution's result is copied there, pixels become channels, and the second reads it.
    let good = Blob::open("pixels_as_channels");
    let copy = good.field(
        good.records("task.dpu.invariant", INVARIANT)[2],
        "act_offset0",
    );
    is_found(
        "npu-weight-table-computed",
        "pixels_as_channels",
        "task.dpu.variant",
        VARIANT,
        |blob, at| {
            blob.set_field(at, "weight_start", copy);
            true
        },
    );
}

#[test]
fn a_weight_table_where_a_spilled_result_is() {
    let rule = "npu-weight-table-computed";
    let good = Blob::open("spill_ddr_t1");
    assert!(!good.codes().contains(&rule));
    let last = |prefix, size| *good.records(prefix, size).last().expect("a record");
    // Until the last layer writes there, its output's place holds a result that was spilled to DDR and fetched again.
    let fetched = good.field(last("task.dpu.invariant", INVARIANT), "ac_base") * 16;
    let mut blob = Blob(good.0.clone());
    blob.set_field(last("task.dpu.variant", VARIANT), "weight_start", fetched);
    let findings = blob.findings();
    let found = findings.iter().find(|f| f.rule.code == rule);
    let message = &found.expect("a finding").message;
    assert!(message.contains("which copies what dpu0["), "{message}");
}

/// Rows that have gaps, which transfers put between each other: who wrote a byte is asked of each that may have.
#[test]
fn a_weight_table_where_interleaved_copies_of_a_result_are() {
    let good = Blob::open("upsample_nearest");
    let copies = good.field(
        good.records("task.dpu.invariant", INVARIANT)[1],
        "act_offset0",
    );
    is_found(
        "npu-weight-table-computed",
        "upsample_nearest",
        "task.dpu.variant",
        VARIANT,
        |blob, at| {
            blob.set_field(at, "weight_start", copies);
            true
        },
    );
}

#[test]
fn a_weight_table_where_a_converted_input_is() {
    let rule = "npu-weight-table-computed";
    let mut blob = Blob::open("conv_f32io");
    assert!(!blob.codes().contains(&rule));
    // The first workload of tile 0 adds an input, which a transfer makes 16 bits wide, to itself; the second one has weights.
    let variants = blob.records("task.dpu.variant", VARIANT);
    let input = blob.field(variants[0], "weight_start") * 16;
    blob.set_field(variants[1], "weight_start", input);
    let findings = blob.findings();
    let found = findings.iter().find(|f| f.rule.code == rule);
    let message = &found.expect("a finding").message;
    assert!(message.contains("last written by dma"), "{message}");
}

/// A mode of the DMA engine: bits of the upper half of its configuration, the register field, and how it is called.
const MODES: [(u32, &str, u64, &str); 7] = [
    (
        1 << 3,
        "dma_cfg_fields_src_list_cfg",
        1,
        "DMA gather by a list of addresses",
    ),
    (
        3 << 3,
        "dma_cfg_fields_src_list_cfg",
        3,
        "DMA gather by a list of addresses",
    ),
    (
        1 << 5,
        "dma_cfg_fields_dst_list_cfg",
        1,
        "DMA scatter (a list of destinations)",
    ),
    (
        1 << 10,
        "dma_cfg_fields_acceleration_cfg",
        1,
        "DMA compression",
    ),
    (
        2 << 10,
        "dma_cfg_fields_acceleration_cfg",
        2,
        "DMA decompression",
    ),
    (
        3 << 10,
        "dma_cfg_fields_acceleration_cfg",
        3,
        "DMA weight preparation",
    ),
    (
        1 << 12,
        "dma_cfg_fields_tile4_cfg",
        1,
        "DMA to or from the tile4 layout",
    ),
];

#[test]
fn modes_whose_meaning_is_not_public_are_listed_by_field_and_refused_by_name() {
    let good = Blob::open("conv1x1");
    for (bits, field, value, name) in MODES {
        let is_refused = |at: usize| {
            let mut blob = Blob(good.0.clone());
            blob.put(at + 20, blob.u32(at + 20) | bits);
            let document = Document::read(&blob.0).expect("a sound file");
            let image = Image::load(&document, &Limits::default()).expect("an image");
            // What fetches descriptors cannot be followed any more, which is another finding.
            let Ok(program) = lower(&document, &image, &Options::default()) else {
                return false;
            };
            let section = document.elf().sections().iter().find(|section| {
                let start = section.offset as usize;
                section.name.starts_with("task.dma")
                    && (start..start + section.size as usize).contains(&at)
            });
            let part = &section.expect("a list of descriptors").name;
            let generation = document.generation().expect("a known chip");
            let structures = of_task(&image, generation, part, at as u64);
            let listed = structures[0].fields.iter().find(|f| f.name == field);
            assert_eq!(listed.map(|f| f.value), Some(value), "{field}");
            let task = program
                .tasks
                .iter()
                .find(|task| task.location.offset == at as u64);
            let Some(task) = task else { return false };
            let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
            let fault = program.kernels[task.kernel]
                .execute(&mut storage)
                .expect_err(name);
            let findings = program.lint.as_ref().expect("a lint").check(&program);
            let is_named =
                |f: &Finding| f.rule.code == "npu-not-executed" && f.message.contains(name);
            fault.message.contains(name) && findings.iter().any(is_named)
        };
        let mut records = good.records("task.dma", DMA).into_iter();
        assert!(records.any(is_refused), "{name}");
    }
}

#[test]
fn work_for_the_media_unit_is_refused_by_name() {
    is_found(
        "npu-unsupported-media",
        "conv1x1",
        "program.workItem",
        64,
        |blob, at| {
            let word = blob.u32(at + 8);
            blob.put(at + 8, word & !0xff | 3);
            true
        },
    );
}
