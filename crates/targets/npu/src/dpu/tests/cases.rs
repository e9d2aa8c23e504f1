//! Known numbers, one rule at a time.

use super::build::{
    INPUT, MAPS, Memory, NO_MAP, ONE, OUTPUT, SECOND, TABLE, Task, WEIGHTS, execute, identity,
    quantised, scale_word,
};
use crate::dpu::registers::HaloRegion;
use crate::dpu::{Operand, Region, TILE_BYTES, Workload};
use crate::generation::PostStages;
use crate::kernels::{Accumulators, Cmx, Descriptors, DpuTask, Knowledge};
use chipless_model::{
    Buffer, BufferId, Builder, Dependence, Direction, Doubt, Kernel, Limits, Loop, MemoryKind,
    Pattern, Role, Storage, Swizzle,
};
use std::ops::Range;
use std::sync::Arc;

/// What the 16 channels of a pixel become.
fn through(task: &Task, memory: &mut Memory, input: [f32; 16]) -> Vec<f32> {
    memory.put_halves(INPUT, &input);
    task.run(memory).expect("runs");
    memory.get_halves(OUTPUT, 16)
}

#[test]
fn bias_comes_before_scale() {
    let (task, mut memory) = identity();
    memory.put_entry(
        3,
        [WEIGHTS + 32 * 3, NO_MAP, 0.5f32.to_bits(), 10f32.to_bits()],
    );
    let got = through(&task, &mut memory, [4.0; 16]);
    assert_eq!((got[2], got[3]), (4.0, 7.0));
}

#[test]
fn relu6_clamps_the_bit_pattern() {
    let (mut task, mut memory) = identity();
    (task.invariant.ppe_fp_prelu_en, task.invariant.ppe_fp_prelu) = (1, (-0.0f32).to_bits());
    task.invariant.ppe_scale_hclamp = 0x4600;
    let mut input = [-3.0; 16];
    input[..3].copy_from_slice(&[5.0, 6.5, 1000.0]);
    let got = through(&task, &mut memory, input);
    assert_eq!(got[..4], [5.0, 6.0, 6.0, 0.0]);
    assert!(
        task.decode()
            .expect("decodes")
            .details()
            .ends_with("ReLU, at most 6")
    );
}

#[test]
fn leaky_slope() {
    let (mut task, mut memory) = identity();
    (task.invariant.ppe_fp_prelu_en, task.invariant.ppe_fp_prelu) = (1, 0.125f32.to_bits());
    let got = through(&task, &mut memory, [-8.0; 16]);
    assert_eq!(got[0], -1.0);
    // It takes the place of the scale: a slope of 1/8 after weights with a scale of 1/4 is 1/32.
    memory.put_entry(0, [WEIGHTS, NO_MAP, 0.25f32.to_bits(), 0]);
    task.invariant.ppe_fp_prelu = 0.03125f32.to_bits();
    assert_eq!(through(&task, &mut memory, [-8.0; 16])[0], -0.25);
    assert_eq!(through(&task, &mut memory, [8.0; 16])[0], 2.0);
}

#[test]
fn float16_saturates_or_overflows() {
    let (mut task, mut memory) = identity();
    memory.put_entry(0, [WEIGHTS, NO_MAP, 2f32.to_bits(), 0]);
    assert_eq!(through(&task, &mut memory, [-60000.0; 16])[0], -65504.0);
    task.invariant.ppe_fp16_clamp = 0;
    assert_eq!(
        through(&task, &mut memory, [-60000.0; 16])[0],
        f32::NEG_INFINITY
    );
}

#[test]
fn float16_denormals_stay_unless_flushed() {
    let (mut task, mut memory) = identity();
    let denormal = 2f32.powi(-20);
    assert_eq!(through(&task, &mut memory, [denormal; 16])[0], denormal);
    task.invariant.ppe_fp16_ftz = 1;
    assert_eq!(through(&task, &mut memory, [denormal; 16])[0], 0.0);
    assert_eq!(through(&task, &mut memory, [1.0; 16])[0], 1.0);
}

#[test]
fn float8_results_are_nearest() {
    let (mut task, mut memory) = identity();
    (task.invariant.ppe_fp_convert, task.invariant.dtype) = (3, 3);
    let mut input = [0.0; 16];
    input[..4].copy_from_slice(&[1.0, 1.1, 1.125, -7.0]);
    through(&task, &mut memory, input);
    // E5M2: sign, five exponent bits with bias 15, two of mantissa; 1.125 lies halfway and goes to even.
    assert_eq!(memory.get(OUTPUT, 4), [0x3c, 0x3c, 0x3c, 0xc7]);
    task.invariant.ppe_fp_convert = 5;
    through(&task, &mut memory, input);
    // E4M3: bias 7, three of mantissa.
    assert_eq!(memory.get(OUTPUT, 4), [0x38, 0x39, 0x39, 0xce]);
}

#[test]
fn what_stands_behind_absent_weights_does_not_matter() {
    let (mut task, mut memory) = identity();
    task.invariant.wt_dense = 0;
    for k in 0..16 {
        // Only channels 0 and 1 are stored, with weights 2 and 0.
        memory.put_entry(k, [WEIGHTS + 32 * k, MAPS + 16 * k, ONE, 0]);
        memory.put(MAPS + 16 * k, &[0b11, 0]);
        memory.put_halves(WEIGHTS + 32 * k, &[2.0, 0.0]);
    }
    let mut input = [f32::NAN; 16];
    (input[0], input[1], input[2]) = (3.0, 4.0, f32::INFINITY);
    assert_eq!(through(&task, &mut memory, input), [6.0; 16]);
    // A weight that is stored counts, were it zero.
    input[1] = f32::INFINITY;
    assert!(
        through(&task, &mut memory, input)
            .iter()
            .all(|v| v.is_nan())
    );
    input[1] = 4.0;
    input[0] = f32::NEG_INFINITY;
    task.invariant.ppe_fp16_clamp = 0;
    assert_eq!(through(&task, &mut memory, input), [f32::NEG_INFINITY; 16]);
}

#[test]
fn absent_depthwise_taps_do_not_matter() {
    let mut task = Task::new().extents([2, 1, 16], [1, 1, 16]);
    (
        task.invariant.dw_input,
        task.invariant.kernel_x,
        task.invariant.wt_dense,
    ) = (1, 2, 0);
    let mut memory = Memory::zeroed();
    for k in 0..16 {
        memory.put_entry(k, [WEIGHTS + 32 * k, MAPS + 16 * k, ONE, 0]);
        memory.put(MAPS + 16 * k, &[if k == 5 { 0b11 } else { 0b10 }]);
        memory.put_halves(WEIGHTS + 32 * k, &[3.0, 1.0]);
    }
    memory.put_halves(INPUT, &[f32::INFINITY; 16]);
    memory.put_halves(INPUT + 32, &[2.0; 16]);
    task.invariant.ppe_fp16_clamp = 0;
    task.run(&mut memory).expect("runs");
    let mut want = [6.0; 16];
    want[5] = f32::INFINITY;
    assert_eq!(memory.get_halves(OUTPUT, 16), want);
}

#[test]
fn max_pool_padding_is_below_everything() {
    let mut task = Task::new().extents([2, 2, 16], [2, 2, 16]).max_pool();
    (task.invariant.kernel_x, task.invariant.kernel_y) = (2, 2);
    (task.variant.pad_count_left, task.variant.pad_count_up) = (1, 1);
    let mut memory = Memory::zeroed();
    let pixels: Vec<f32> = [-5.0, -2.0, -4.0, -9.0]
        .iter()
        .flat_map(|v| [*v; 16])
        .collect();
    memory.put_halves(INPUT, &pixels);
    task.run(&mut memory).expect("runs");
    let got = memory.get_halves(OUTPUT, 64);
    assert_eq!(
        [got[0], got[16], got[32], got[48]],
        [-5.0, -2.0, -4.0, -2.0]
    );
}

#[test]
fn average_pool_scales_the_sum() {
    let mut task = Task::new()
        .extents([2, 2, 16], [1, 1, 16])
        .average_pool(0.25);
    (task.invariant.kernel_x, task.invariant.kernel_y) = (2, 2);
    let mut memory = Memory::zeroed();
    let pixels: Vec<f32> = [1.0, 2.0, 3.0, 6.0].iter().flat_map(|v| [*v; 16]).collect();
    memory.put_halves(INPUT, &pixels);
    task.run(&mut memory).expect("runs");
    assert_eq!(memory.get_halves(OUTPUT, 16), [3.0; 16]);
}

/// All channels of a position make one output: softmax divides by such sums (NPU5010).
#[test]
fn a_reduction_sums_the_channels() {
    let mut task = Task::new().extents([2, 1, 48], [2, 1, 1]).average_pool(1.0);
    task.invariant.dw_input = 0;
    let mut memory = Memory::zeroed();
    let pixels: Vec<f32> = (0..96).map(|n| if n < 48 { 1.0 } else { 2.0 }).collect();
    memory.put_halves(INPUT, &pixels);
    task.run(&mut memory).expect("runs");
    assert_eq!(memory.get_halves(OUTPUT, 1), [48.0]);
    assert_eq!(memory.get_halves(OUTPUT + 2, 1), [96.0]);
    let workload = task.decode().expect("decodes");
    assert_eq!(workload.operation(), "reduce sum 1x1 stride 1");
    task.invariant.workload_operation = 3;
    let unsupported = task.decode().expect("decodes").unsupported();
    assert_eq!(
        unsupported.as_deref(),
        Some("sums of squares (workload_operation 3)")
    );
}

#[test]
fn addition_of_floats() {
    let task = Task::new().add();
    let mut memory = Memory::zeroed();
    memory.put_halves(INPUT, &[1.5; 16]);
    memory.put_halves(SECOND, &[-4.0; 16]);
    task.run(&mut memory).expect("runs");
    assert_eq!(memory.get_halves(OUTPUT, 16), [-2.5; 16]);
}

#[test]
fn integers_lose_their_zero_points_and_gain_one() {
    let (task, mut memory) = quantised();
    task.run(&mut memory).expect("runs");
    let want: Vec<u8> = (0..16).map(|k| 20 + 5 * k).collect();
    assert_eq!(memory.get(OUTPUT, 16), want);
    assert_eq!(
        task.decode().expect("decodes").details(),
        "uint8→uint8, in 1x1x16, out 1x1x16 at (0,0,0), zero point 20, clamp 0 to 255"
    );
}

#[test]
fn integers_round_as_the_table_says() {
    let (task, mut memory) = quantised();
    // Sums 10·k with bias: 5, 15 and -5 quarters.
    for (k, (bias, round)) in [
        (5, 0),
        (5, 2),
        (6, 0),
        (6, 2),
        (6, 3),
        (-6, 0),
        (-6, 2),
        (-6, 3),
        (7, 3),
    ]
    .into_iter()
    .enumerate()
    {
        memory.put(WEIGHTS + 16 * k as u32, &[128; 16]);
        memory.put_entry(
            k as u32,
            [
                WEIGHTS + 16 * k as u32,
                NO_MAP,
                scale_word(1, 2, round),
                bias as u32,
            ],
        );
    }
    task.run(&mut memory).expect("runs");
    // 1.25, 1.25, 1.5 to even, away, down, -1.5 to even, away, down, 1.75 down.
    assert_eq!(memory.get(OUTPUT, 9), [21, 21, 22, 22, 21, 18, 18, 18, 21]);
}

#[test]
fn the_scale_of_a_real_program() {
    let (mut task, mut memory) = quantised();
    task.invariant.ppe_g8_bias_c = 0;
    // 0x5c38 · 2^-25 = 7.036e-4, on top of a bias of 0xbcb.
    memory.put_entry(0, [WEIGHTS, NO_MAP, 0x5c38_1900, 0xbcb]);
    memory.put_entry(1, [WEIGHTS, NO_MAP, 0x5c38_1900, 30_000]);
    task.run(&mut memory).expect("runs");
    assert_eq!(memory.get(OUTPUT, 2), [2, 21]);
}

#[test]
fn integers_as_float16_keep_their_fractions_and_obey_the_clamp() {
    let (mut task, mut memory) = quantised();
    let i = &mut task.invariant;
    (i.ppe_i32_convert, i.dtype, i.ppe_g8_bias_c) = (1, 4, 0);
    (i.ppe_scale_hclamp, i.ppe_scale_lclamp) = (0x4400, 0x8000_0000);
    for k in 0..16 {
        memory.put_entry(k, [WEIGHTS + 16 * k, NO_MAP, scale_word(1, 5, 0), 0]);
    }
    memory.put_entry(9, [WEIGHTS, NO_MAP, scale_word(1, 5, 0), -48i32 as u32]);
    task.run(&mut memory).expect("runs");
    let got = memory.get_halves(OUTPUT, 16);
    assert_eq!(
        (got[0], got[1], got[3], got[15], got[9]),
        (0.0, 0.3125, 0.9375, 4.0, -1.5)
    );
    task.invariant.ppe_prelu_mult = 0;
    task.run(&mut memory).expect("runs");
    assert_eq!(
        memory.get(OUTPUT + 18, 2),
        [0, 0],
        "an integer zero has no sign"
    );
}

#[test]
fn integer_padding_is_the_zero_point() {
    let mut task = Task::new().extents([1, 1, 16], [1, 1, 16]).integers(1);
    let i = &mut task.invariant;
    (
        i.pool_wt_rd_dis,
        i.dw_input,
        i.pool_wt_data,
        i.kernel_x,
        i.mpe_actbias,
    ) = (1, 1, 0x0101, 2, 90);
    (i.ppe_scale_override, i.ppe_g8_bias_c) = (1, 90);
    task.variant.pad_count_right = 1;
    let mut memory = Memory::zeroed();
    memory.put(INPUT, &[100; 16]);
    task.run(&mut memory).expect("runs");
    assert_eq!(memory.get(OUTPUT, 16), [100; 16]);
}

#[test]
fn a_continued_convolution_is_one_convolution() {
    let mut memory = Memory::zeroed();
    let mut parts = [
        Task::new().extents([2, 1, 16], [2, 1, 16]),
        Task::new().extents([2, 1, 16], [2, 1, 16]),
    ];
    parts[0].variant.conv_cond = 1;
    parts[1].variant.weight_start = TABLE + 0x1000;
    parts[1].invariant.act_offset0 = SECOND;
    for k in 0..16 {
        let scale = [2f32.to_bits(), 1f32.to_bits()];
        memory.put_entry(k, [WEIGHTS, NO_MAP, 7f32.to_bits(), 99f32.to_bits()]);
        memory.put_entry(k + 0x100, [WEIGHTS + 0x400, NO_MAP, scale[0], scale[1]]);
    }
    memory.put_halves(WEIGHTS, &[1.0; 16]);
    memory.put_halves(WEIGHTS + 0x400, &[0.5; 16]);
    memory.put_halves(INPUT, &[2.0; 32]);
    memory.put_halves(SECOND, &[4.0; 32]);
    let before = memory.clone();
    let [first, last] = parts.map(|task| task.decode().expect("decodes"));
    assert_eq!(
        first.unproven().as_deref(),
        Some("convolution continue (conv_cond)")
    );
    first.accesses(&mut |region| assert!(!region.write));

    let mut accumulators = None;
    execute(&first, &mut memory, &mut accumulators).expect("runs");
    assert!(memory == before, "nothing is written");
    let kept = accumulators.clone();
    execute(&last, &mut memory, &mut accumulators).expect("runs");
    assert!(accumulators.is_none());
    // (16 · 2 · 1 + 16 · 4 · 0.5 + 1) · 2, with bias and scale of the last one only.
    assert_eq!(memory.get_halves(OUTPUT, 32), [130.0; 32]);
    let alone = execute(&last, &mut memory, &mut None);
    assert_eq!((alone, memory.get_halves(OUTPUT, 1)), (Ok(()), vec![66.0]));

    let (other, mut other_memory) = identity();
    let other = other.decode().expect("decodes");
    let fault = execute(&other, &mut other_memory, &mut kept.clone()).expect_err("another box");
    assert_eq!(
        fault.message,
        "the accumulators hold a continued box of 2x1x16, this workload computes 1x1x16"
    );
    let quantised = Task::new()
        .extents([2, 1, 16], [2, 1, 16])
        .integers(1)
        .decode()
        .expect("decodes");
    let fault =
        execute(&quantised, &mut Memory::zeroed(), &mut kept.clone()).expect_err("another type");
    assert_eq!(
        fault.message,
        "the accumulators hold continued sums of another type"
    );
}

/// The newer DPU's last workload behind a lookup table names 16 channels, however many the tensor has.
#[test]
fn sums_of_the_newer_dpu_go_over_all_channels() {
    let mut task = Task::new().extents([1, 1, 32], [1, 1, 16]);
    task.variant.workload_size_z = 16;
    let mut memory = Memory::zeroed();
    for k in 0..16 {
        memory.put_entry(k, [WEIGHTS, NO_MAP, ONE, 0]);
    }
    memory.put_halves(WEIGHTS, &[1.0; 32]);
    memory.put_halves(INPUT, &[2.0; 32]);
    for (stages, sum) in [(PostStages::Separate, 32.0), (PostStages::Float, 64.0)] {
        let workload = task.decode_with(stages).expect("decodes");
        execute(&workload, &mut memory, &mut None).expect("runs");
        assert_eq!(memory.get_halves(OUTPUT, 16), [sum; 16], "{stages:?}");
    }
}

/// Two halves of a convolution as tasks of a program: the sums stand in a buffer, and a second run does not see those of the first.
#[test]
fn continued_sums_stand_in_a_buffer() {
    let (tile, mut memory) = (0, Memory::zeroed());
    let mut parts = [
        Task::new().extents([2, 1, 16], [2, 1, 16]),
        Task::new().extents([2, 1, 16], [2, 1, 16]),
    ];
    parts[0].variant.conv_cond = 1;
    parts[1].invariant.act_offset0 = SECOND;
    for k in 0..16 {
        memory.put_entry(k, [WEIGHTS, NO_MAP, ONE, 0]);
    }
    memory.put_halves(WEIGHTS, &[1.0; 16]);
    memory.put_halves(INPUT, &[2.0; 32]);
    memory.put_halves(SECOND, &[4.0; 32]);
    let mut build = Builder::new("npu", &Limits::default());
    let cmx = build.memory("cmx0", memory.tiles[0].len() as u64, MemoryKind::Scratchpad);
    let size = memory.tiles[0].len() as u64;
    let cmx = build.buffer(Buffer::new("cmx0", cmx, size, Role::Scratch));
    let sums = build.memory("sums", 4 * 16384, MemoryKind::Registers);
    let sums = build.buffer(Buffer::new("sums", sums, 4 * 16384, Role::Scratch));
    let program = build.finish().expect("a program");
    let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
    storage.set(cmx, memory.tiles[0].clone().into());
    let [first, last] = parts.map(|task| Arc::new(task.decode().expect("decodes")));
    let task = |workload: &Arc<Workload>, earlier| DpuTask {
        descriptors: Descriptors(Vec::new()),
        cmx: Cmx {
            buffers: [Some(cmx), None, None, None, None, None],
            size: 0x18_0000,
        },
        workload: Arc::clone(workload),
        accumulators: Some(Accumulators {
            buffer: sums,
            earlier,
        }),
        tile,
        knowledge: Knowledge {
            constants: Arc::default(),
            position: 0,
        },
        profile: None,
    };
    let tasks = [task(&first, None), task(&last, Some(Arc::clone(&first)))];
    let touched = |task: &DpuTask<'_>| {
        let mut touched = Vec::new();
        task.accesses(&mut |access| {
            if access.buffer == sums {
                touched.push((access.direction, access.pattern.bytes()));
            }
        });
        touched
    };
    assert_eq!(touched(&tasks[0]), [(Direction::Write, Some(128))]);
    assert_eq!(touched(&tasks[1]), [(Direction::Read, Some(128))]);
    for _ in 0..2 {
        for task in &tasks {
            task.execute(&mut storage).expect("runs");
        }
        let written = &storage.bytes(cmx)[OUTPUT as usize..][..64];
        let halves = written
            .as_chunks()
            .0
            .iter()
            .map(|b| half::f16::from_le_bytes(*b).to_f32());
        assert_eq!(halves.collect::<Vec<_>>(), [96.0; 32], "16 · (2 + 4)");
    }
    // One sum in doubt makes one element of the output doubtful.
    let doubtful = Sums(sums, 8..12);
    let mut found = Vec::new();
    let dependence = tasks[1].dependence(&doubtful, &mut |buffer, pattern| {
        found.push((buffer, pattern.offset, pattern.bytes()));
    });
    assert_eq!(dependence, Dependence::Bytes);
    assert_eq!(found, [(cmx, u64::from(OUTPUT) + 4, Some(2))]);
}

/// Some bytes of a buffer are in doubt.
struct Sums(BufferId, Range<u64>);

impl Doubt for Sums {
    fn first(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>> {
        let both = self.1.start.max(bytes.start)..self.1.end.min(bytes.end);
        (buffer == self.0 && !both.is_empty()).then_some(both)
    }
}

#[test]
fn a_halo_row_goes_to_the_next_tile() {
    // The permuting task of a real program: row 27 of tile 0 becomes row 0 of tile 1.
    let mut task = Task::new().extents([4, 28, 16], [4, 28, 16]).add();
    task.halos.push(HaloRegion {
        enable: 1,
        tile_select: 2,
        ac_adr_offset: (1 << 22) - 27 * 4 * 16 * 2,
        target_width_lsb: 4,
        begin_y: 27,
        end_x: 3,
        end_y: 27,
        ..HaloRegion::default()
    });
    let mut memory = Memory::zeroed();
    let values: Vec<f32> = (0..4 * 28 * 16).map(|v| v as f32).collect();
    memory.put_halves(INPUT, &values);
    task.run(&mut memory).expect("runs");
    let row = 4 * 16 * 2;
    let last = memory.get(OUTPUT + 27 * row, row as usize).to_vec();
    assert_eq!(memory.tiles[1][OUTPUT as usize..][..row as usize], last);
    assert!(
        memory.tiles[1][OUTPUT as usize + row as usize..]
            .iter()
            .all(|byte| *byte == 0)
    );
    let workload = task.decode().expect("decodes");
    assert!(workload.details().ends_with("halo to tile 1"));
    let mut writes = Vec::new();
    workload.accesses(&mut |region| writes.extend(region.write.then_some(region)));
    let [local, halo] = writes.try_into().expect("two pieces");
    assert_eq!(
        (local.tile, local.pattern),
        (0, Pattern::contiguous(OUTPUT.into(), 28 * u64::from(row)))
    );
    assert_eq!(
        (halo.tile, halo.pattern),
        (1, Pattern::contiguous(OUTPUT.into(), u64::from(row)))
    );
}

#[test]
fn unknown_tables_give_bounds_and_known_ones_bytes() {
    let (task, memory) = identity();
    let workload = task.decode().expect("decodes");
    let read = |start: u32, size: u64, may: bool| Region {
        role: match start {
            INPUT => "activations",
            TABLE => "weight table",
            _ => "weights",
        },
        tile: 0,
        pattern: Pattern::contiguous(start.into(), size),
        swizzle: Swizzle::OFF,
        write: false,
        may,
        tensor: if start == INPUT {
            Operand::Activations
        } else {
            Operand::Weights
        },
    };
    let written = Region {
        write: true,
        role: "result",
        tensor: Operand::Activations,
        ..read(OUTPUT, 32, false)
    };
    let mut found = Vec::new();
    workload.accesses(&mut |region| found.push(region));
    assert_eq!(
        found,
        [
            read(INPUT, 32, false),
            read(TABLE, 256, false),
            read(0, TILE_BYTES, true),
            written.clone()
        ]
    );
    found.clear();
    let known =
        |offset: u64, size: u64| Some(memory.tiles[0][offset as usize..][..size as usize].to_vec());
    workload.accesses_with(&known, &mut |region| found.push(region));
    assert_eq!(
        found,
        [
            read(INPUT, 32, false),
            read(TABLE, 256, false),
            read(WEIGHTS, 512, false),
            written
        ]
    );
}

#[test]
fn rows_between_strides_are_not_read() {
    let mut task = Task::new().extents([5, 5, 16], [3, 3, 16]).max_pool();
    task.invariant.stride = 1;
    let mut reads = Vec::new();
    task.decode()
        .expect("decodes")
        .accesses(&mut |region| reads.extend((!region.write).then_some(region.pattern)));
    let loops = [
        Loop {
            count: 3,
            stride: 64,
        },
        Loop {
            count: 3,
            stride: 320,
        },
    ];
    assert_eq!(reads, [Pattern::new(INPUT.into(), 32, loops)]);
}
