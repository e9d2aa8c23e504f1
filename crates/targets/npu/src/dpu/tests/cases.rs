//! Known numbers, limits and errors, one at a time.

use super::build::{INPUT, INPUT_MAP, MAPS, Memory, OUTPUT, POINTERS, SECOND, TABLE, Task, WEIGHTS, scale_word};
use crate::dpu::registers::HaloRegion;
use crate::dpu::{DpuFigures, Region, TILE_BYTES};
use chipless_model::{Loop, Pattern};

const ONE: u32 = 0x3f80_0000;
const NO_MAP: u32 = 0xff_ffff;

/// A 1×1 float16 convolution whose weight of channel k for channel k is 1, with scale 1 and no bias.
fn identity() -> (Task, Memory) {
    let mut memory = Memory::zeroed();
    for k in 0..16 {
        memory.put_entry(k, [WEIGHTS + 32 * k, NO_MAP, ONE, 0]);
        let weights: Vec<f32> = (0..16).map(|c| if c == k { 1.0 } else { 0.0 }).collect();
        memory.put_halves(WEIGHTS + 32 * k, &weights);
    }
    (Task::new(), memory)
}

/// What the 16 channels of a pixel become.
fn through(task: &Task, memory: &mut Memory, input: [f32; 16]) -> Vec<f32> {
    memory.put_halves(INPUT, &input);
    task.run(memory).expect("runs");
    memory.get_halves(OUTPUT, 16)
}

#[test]
fn bias_comes_before_scale() {
    let (task, mut memory) = identity();
    memory.put_entry(3, [WEIGHTS + 32 * 3, NO_MAP, 0.5f32.to_bits(), 10f32.to_bits()]);
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
    assert!(task.decode().expect("decodes").details().ends_with("ReLU, at most 6"));
}

#[test]
fn leaky_slope() {
    let (mut task, mut memory) = identity();
    (task.invariant.ppe_fp_prelu_en, task.invariant.ppe_fp_prelu) = (1, 0.125f32.to_bits());
    let got = through(&task, &mut memory, [-8.0; 16]);
    assert_eq!(got[0], -1.0);
}

#[test]
fn float16_saturates_or_overflows() {
    let (mut task, mut memory) = identity();
    memory.put_entry(0, [WEIGHTS, NO_MAP, 2f32.to_bits(), 0]);
    assert_eq!(through(&task, &mut memory, [-60000.0; 16])[0], -65504.0);
    task.invariant.ppe_fp16_clamp = 0;
    assert_eq!(through(&task, &mut memory, [-60000.0; 16])[0], f32::NEG_INFINITY);
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
    assert!(through(&task, &mut memory, input).iter().all(|v| v.is_nan()));
    input[1] = 4.0;
    input[0] = f32::NEG_INFINITY;
    task.invariant.ppe_fp16_clamp = 0;
    assert_eq!(through(&task, &mut memory, input), [f32::NEG_INFINITY; 16]);
}

#[test]
fn absent_depthwise_taps_do_not_matter() {
    let mut task = Task::new().extents([2, 1, 16], [1, 1, 16]);
    (task.invariant.dw_input, task.invariant.kernel_x, task.invariant.wt_dense) = (1, 2, 0);
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
    let pixels: Vec<f32> = [-5.0, -2.0, -4.0, -9.0].iter().flat_map(|v| [*v; 16]).collect();
    memory.put_halves(INPUT, &pixels);
    task.run(&mut memory).expect("runs");
    let got = memory.get_halves(OUTPUT, 64);
    assert_eq!([got[0], got[16], got[32], got[48]], [-5.0, -2.0, -4.0, -2.0]);
}

#[test]
fn average_pool_scales_the_sum() {
    let mut task = Task::new().extents([2, 2, 16], [1, 1, 16]).average_pool(0.25);
    (task.invariant.kernel_x, task.invariant.kernel_y) = (2, 2);
    let mut memory = Memory::zeroed();
    let pixels: Vec<f32> = [1.0, 2.0, 3.0, 6.0].iter().flat_map(|v| [*v; 16]).collect();
    memory.put_halves(INPUT, &pixels);
    task.run(&mut memory).expect("runs");
    assert_eq!(memory.get_halves(OUTPUT, 16), [3.0; 16]);
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

/// A quantised 1×1 convolution: weights 128 + k for channel 0, activation 101 + 10 in channel 0, zero points 101 and 128.
fn quantised() -> (Task, Memory) {
    let mut task = Task::new().integers(1);
    (task.invariant.mpe_actbias, task.invariant.mpe_wtbias, task.invariant.ppe_g8_bias_c) = (101, 128, 20);
    let mut memory = Memory::zeroed();
    memory.put(INPUT, &[101; 16]);
    memory.put(INPUT, &[111]);
    for k in 0..16 {
        memory.put_entry(k, [WEIGHTS + 16 * k, NO_MAP, scale_word(1 << 14, 15, 0), 0]);
        memory.put(WEIGHTS + 16 * k, &[128; 16]);
        memory.put(WEIGHTS + 16 * k, &[128 + k as u8]);
    }
    (task, memory)
}

#[test]
fn integers_lose_their_zero_points_and_gain_one() {
    let (task, mut memory) = quantised();
    task.run(&mut memory).expect("runs");
    let want: Vec<u8> = (0..16).map(|k| 20 + 5 * k).collect();
    assert_eq!(memory.get(OUTPUT, 16), want);
    assert_eq!(task.decode().expect("decodes").details(), "uint8→uint8, in 1x1x16, out 1x1x16 at (0,0,0), zero point 20, clamp 0 to 255");
}

#[test]
fn integers_round_as_the_table_says() {
    let (task, mut memory) = quantised();
    // Sums 10·k with bias: 5, 15 and -5 quarters.
    for (k, (bias, round)) in [(5, 0), (5, 2), (6, 0), (6, 2), (6, 3), (-6, 0), (-6, 2), (-6, 3), (7, 3)].into_iter().enumerate() {
        memory.put(WEIGHTS + 16 * k as u32, &[128; 16]);
        memory.put_entry(k as u32, [WEIGHTS + 16 * k as u32, NO_MAP, scale_word(1, 2, round), bias as u32]);
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
    assert_eq!((got[0], got[1], got[3], got[15], got[9]), (0.0, 0.3125, 0.9375, 4.0, -1.5));
    task.invariant.ppe_prelu_mult = 0;
    task.run(&mut memory).expect("runs");
    assert_eq!(memory.get(OUTPUT + 18, 2), [0, 0], "an integer zero has no sign");
}

#[test]
fn integer_padding_is_the_zero_point() {
    let mut task = Task::new().extents([1, 1, 16], [1, 1, 16]).integers(1);
    let i = &mut task.invariant;
    (i.pool_wt_rd_dis, i.dw_input, i.pool_wt_data, i.kernel_x, i.mpe_actbias) = (1, 1, 0x0101, 2, 90);
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
    let mut parts = [Task::new().extents([2, 1, 16], [2, 1, 16]), Task::new().extents([2, 1, 16], [2, 1, 16])];
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
    assert_eq!(first.unproven().as_deref(), Some("convolution continue (conv_cond)"));
    first.accesses(&mut |region| assert!(!region.write));

    let mut accumulators = None;
    first.execute(&mut memory, &mut accumulators).expect("runs");
    assert!(memory == before, "nothing is written");
    let kept = accumulators.clone();
    last.execute(&mut memory, &mut accumulators).expect("runs");
    assert!(accumulators.is_none());
    // (16 · 2 · 1 + 16 · 4 · 0.5 + 1) · 2, with bias and scale of the last one only.
    assert_eq!(memory.get_halves(OUTPUT, 32), [130.0; 32]);
    let alone = last.execute(&mut memory, &mut None);
    assert_eq!((alone, memory.get_halves(OUTPUT, 1)), (Ok(()), vec![66.0]));

    let (other, mut other_memory) = identity();
    let fault = other.decode().expect("decodes").execute(&mut other_memory, &mut kept.clone()).expect_err("another box");
    assert_eq!(fault.message, "the accumulators hold a continued box of 2x1x16, this workload computes 1x1x16");
    let quantised = Task::new().extents([2, 1, 16], [2, 1, 16]).integers(1).decode().expect("decodes");
    let fault = quantised.execute(&mut Memory::zeroed(), &mut kept.clone()).expect_err("another type");
    assert_eq!(fault.message, "the accumulators hold continued sums of another type");
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
    assert!(memory.tiles[1][OUTPUT as usize + row as usize..].iter().all(|byte| *byte == 0));
    let workload = task.decode().expect("decodes");
    assert!(workload.details().ends_with("halo to tile 1"));
    let mut writes = Vec::new();
    workload.accesses(&mut |region| writes.extend(region.write.then_some(region)));
    let [local, halo] = writes.try_into().expect("two pieces");
    assert_eq!((local.tile, local.pattern), (0, Pattern::contiguous(OUTPUT.into(), 28 * u64::from(row))));
    assert_eq!((halo.tile, halo.pattern), (1, Pattern::contiguous(OUTPUT.into(), u64::from(row))));
}

#[test]
fn unknown_tables_give_bounds_and_known_ones_bytes() {
    let (task, memory) = identity();
    let workload = task.decode().expect("decodes");
    let read = |start: u32, size: u64, may: bool| Region { tile: 0, pattern: Pattern::contiguous(start.into(), size), write: false, may };
    let written = Region { write: true, ..read(OUTPUT, 32, false) };
    let mut found = Vec::new();
    workload.accesses(&mut |region| found.push(region));
    assert_eq!(found, [read(INPUT, 32, false), read(TABLE, 256, false), read(0, TILE_BYTES, true), written.clone()]);
    found.clear();
    let known = |offset: u64, size: u64| Some(memory.tiles[0][offset as usize..][..size as usize].to_vec());
    workload.accesses_with(&known, &mut |region| found.push(region));
    assert_eq!(found, [read(INPUT, 32, false), read(TABLE, 256, false), read(WEIGHTS, 512, false), written]);
}

#[test]
fn rows_between_strides_are_not_read() {
    let mut task = Task::new().extents([5, 5, 16], [3, 3, 16]).max_pool();
    task.invariant.stride = 1;
    let mut reads = Vec::new();
    task.decode().expect("decodes").accesses(&mut |region| reads.extend((!region.write).then_some(region.pattern)));
    let loops = [Loop { count: 3, stride: 64 }, Loop { count: 3, stride: 320 }];
    assert_eq!(reads, [Pattern::new(INPUT.into(), 32, loops)]);
}

#[test]
fn pointers_are_checked() {
    let expect = |task: &Task, memory: &Memory, message: &str| {
        let mut after = memory.clone();
        let fault = task.run(&mut after).expect_err(message);
        assert_eq!(fault.message, message);
        assert!(after == *memory, "nothing is written");
    };
    let (task, mut memory) = identity();
    memory.put_entry(5, [0xfff000, NO_MAP, ONE, 0]);
    expect(&task, &memory, "weight table, channel 5: its 16 weights (32 bytes) at 0xfff000 do not lie in the tile's 0x48000 bytes");

    let (mut task, mut memory) = identity();
    task.invariant.wt_dense = 0;
    expect(&task, &memory, "weight table, channel 0: sparse weights without a sparsity map");
    memory.put_entry(0, [WEIGHTS, 0xfff000, ONE, 0]);
    expect(&task, &memory, "weight table, channel 0: its sparsity map of 2 bytes at 0xfff000 does not lie in the tile's 0x48000 bytes");

    let (mut task, memory) = identity();
    task.variant.weight_start = 0x47ff8;
    expect(&task, &memory, "weight table: 256 bytes for 16 channels at 0x47ff8 do not lie in the tile's 0x48000 bytes");
    task.variant.weight_start = u32::MAX;
    expect(&task, &memory, "weight table: 256 bytes for 16 channels at 0xffffffff do not lie in the tile's 0x48000 bytes");

    let (mut task, memory) = identity();
    task.invariant.act_offset0 = 0x47ff0;
    expect(&task, &memory, "activations: ends at 0x48010, beyond the tile's 0x48000 bytes");
    let (mut task, memory) = identity();
    task.invariant.ac_base = 0x47ff;
    expect(&task, &memory, "output: ends at 0x48010 of tile 0, beyond its 0x48000 bytes");

    let (mut task, mut memory) = identity();
    (task.invariant.act_dense, task.variant.dense_se) = (0, 0);
    (task.invariant.se_addr, task.invariant.sparsity_addr) = (POINTERS, INPUT_MAP);
    memory.put(INPUT_MAP, &[0xff, 0xff]);
    memory.put(POINTERS, &(0x40000u32 << 5).to_le_bytes());
    expect(&task, &memory, "storage element of pixel (0, 0) (32 bytes at 0x48000): ends at 0x48020, beyond the tile's 0x48000 bytes");
    memory.put(POINTERS, &3u32.to_le_bytes());
    expect(&task, &memory, "storage element of pixel (0, 0): its pointer 0x3 counts from base 3; only base 0 is known");
    task.invariant.se_addr = 0x47ffe;
    expect(&task, &memory, "storage element table: ends at 0x48002, beyond the tile's 0x48000 bytes");
    task.invariant.sparsity_addr = 0x47fff;
    expect(&task, &memory, "sparsity map: ends at 0x48001, beyond the tile's 0x48000 bytes");

    let (mut task, memory) = quantised();
    let mut memory = memory;
    memory.put_entry(2, [WEIGHTS, NO_MAP, scale_word(1, 0, 1), 0]);
    task.tile = 0;
    expect(&task, &memory, "weight table, channel 2: scale 0x00014000 has a reserved rounding mode");
}

#[test]
fn values_that_mean_nothing_are_refused() {
    let cases: &[(&str, fn(&mut Task))] = &[
        ("te_end_y: expected 0 (te_beg) to 0 (te_dim), found 200", |t| t.variant.te_end_y = 200),
        ("te_end_x: expected 1 (te_beg) to 0 (te_dim), found 0", |t| t.variant.te_beg_x = 1),
        ("workload_size_x: expected 1 to 1, found 0", |t| t.variant.workload_size_x = 0),
        ("workload_size_z: expected 1 to 16, found 17", |t| t.variant.workload_size_z = 17),
        ("workload_size_y: expected 1 to 0, found 1", |t| t.variant.workload_start_y = 1),
        ("kernel_x: expected 1 to 11, found 0", |t| t.invariant.kernel_x = 0),
        ("kernel_y: expected 1 to 11, found 12", |t| t.invariant.kernel_y = 12),
        ("pad_count_up: expected 0 to 0, found 1", |t| t.variant.pad_count_up = 1),
        ("workload_size_x: expected 3 positions with padding, for 1 outputs of kernel 3 and stride 1, found 2", |t| {
            (t.invariant.kernel_x, t.variant.pad_count_left) = (3, 1);
        }),
        ("workload_size_z: expected as many channels as the output box has, 8, found 16", |t| (t.invariant.dw_input, t.variant.te_end_z) = (1, 7)),
        ("stride: expected 0 to 0, found 1", |t| (t.invariant.elop_wload, t.invariant.stride) = (1, 1)),
        ("tensor_size_z: expected 1 to 8192, found 8193", |t| t.invariant.tensor_size_z = 8193),
        ("amode: expected a format, 0 to 9, found 12", |t| t.invariant.amode = 12),
        ("wmode: expected an integer format for uint8 activations, found float16", |t| t.invariant.amode = 1),
        ("wt_swizzle_key: expected a swizzle key, 0 to 5, found 6", |t| t.variant.wt_swizzle_key = 6),
        ("swizzle_key: expected a swizzle key, 0 to 5, found 7", |t| t.invariant.swizzle_key = 7),
        ("permutation: expected 0 to 5, found 6", |t| t.invariant.permutation = 6),
        ("odu dtype: expected an element width, 0 to 5, found 6", |t| t.invariant.dtype = 6),
        ("odu dtype: expected 16 bits for float16 (ppe_fp_convert 1), found 8 bits", |t| t.invariant.dtype = 3),
        ("ppe_fp_convert: expected 0 to 5, found 7", |t| t.invariant.ppe_fp_convert = 7),
        ("ppe_scale_round: expected 0, 2 or 3, found 1", |t| (t.invariant.ppe_fp_convert, t.invariant.dtype, t.invariant.ppe_scale_round) = (4, 3, 1)),
        ("workload_operation: expected 0 for an operation with weights, found 2", |t| t.invariant.workload_operation = 2),
        ("workload_operation: expected 0 (average) or 2 (max) for a pool, found 1", |t| (t.invariant.pool_wt_rd_dis, t.invariant.workload_operation) = (1, 1)),
        ("tile: expected 0 to 5, found 6", |t| t.tile = 6),
        ("halo tile_select: expected tiles 0 to 5, found 0b1000000", |t| t.halos = vec![HaloRegion { enable: 1, tile_select: 64, ..HaloRegion::default() }]),
        ("halo end_x: expected at least begin_x, 2, found 1", |t| t.halos = vec![HaloRegion { enable: 1, begin_x: 2, end_x: 1, ..HaloRegion::default() }]),
        ("halo ac_adr_offset: expected an offset that stays in the tile, found -1048576", |t| {
            t.halos = vec![HaloRegion { enable: 1, tile_select: 2, ac_adr_offset: 3 << 20, ..HaloRegion::default() }];
        }),
    ];
    for (message, change) in cases {
        let mut task = Task::new();
        change(&mut task);
        assert_eq!(task.decode().err().map(|e| e.to_string()).as_deref(), Some(*message));
    }
}

#[test]
fn what_is_not_known_decodes_and_is_refused_by_name() {
    let cases: &[(&str, fn(&mut Task))] = &[
        ("sparse output (write_sp, sp_out_en)", |t| t.invariant.write_sp = 1),
        ("pointer output (write_pt)", |t| t.invariant.write_pt = 1),
        ("an output that is not written (write_ac 0)", |t| t.invariant.write_ac = 0),
        ("output broadcast (odu_cast)", |t| t.invariant.cast_enable1 = 1),
        ("output elements of less than a byte (odu dtype)", |t| t.invariant.dtype = 2),
        ("1- and 2-bit weight palettes (wt_plt_cfg)", |t| t.invariant.wt_plt_cfg = 1),
        ("palettes of elements of less than a byte", |t| (t.invariant.wt_plt_cfg, t.invariant.wmode) = (3, 3)),
        ("pixels that start inside a byte", |t| {
            *t = t.clone().integers(3);
            (t.invariant.dtype, t.invariant.tensor_size_z) = (3, 17);
        }),
        ("channel-major input (cm_input)", |t| t.invariant.cm_input = 1),
        ("seed and FIFO workloads", |t| t.invariant.seed_wload = 1),
        ("elementwise operations other than addition (elop_wload_type)", |t| (t.invariant.elop_wload, t.invariant.elop_wload_type, t.invariant.ppe_fp_scale_override) = (1, 1, 1)),
        ("elementwise scales from a weight table", |t| t.invariant.elop_wload = 1),
        ("binary elements", |t| t.invariant.wmode = 7),
        ("padding with a value (pad_*_en)", |t| t.invariant.pad_en = 8),
        ("several storage elements in z", |t| (t.invariant.act_dense, t.variant.dense_se, t.invariant.num_ses_in_z_dir) = (0, 0, 1)),
        ("several storage elements in z", |t| (t.invariant.act_dense, t.variant.dense_se, t.invariant.npo2_se_z_split_en, t.invariant.tensor_size_z) = (0, 0, 1, 32)),
        ("segmented storage element tables", |t| (t.invariant.act_dense, t.variant.dense_se, t.invariant.sp_se_tbl_segment) = (0, 0, 1)),
        ("activation sparsity without a storage element table", |t| t.invariant.act_dense = 0),
        ("a storage element table without a sparsity map", |t| t.variant.dense_se = 0),
        ("swizzled storage elements", |t| (t.invariant.act_dense, t.variant.dense_se, t.variant.swizzle_key_offset) = (0, 0, 5)),
        ("compressed input of more than four channels", |t| (t.invariant.layer1_cmp_en, t.invariant.cm_sp_pattern) = (1, 0x1f)),
        ("continued operations other than convolution", |t| {
            *t = t.clone().max_pool();
            t.variant.conv_cond = 1;
        }),
        ("float sums that bypass the PPE (ppe_fp_bypass 1)", |t| t.invariant.ppe_fp_bypass = 1),
        ("integer sums in the float PPE (ppe_fp_bypass 0)", |t| {
            *t = t.clone().integers(1);
            t.invariant.ppe_fp_bypass = 0;
        }),
        ("float8 from integers (ppe_i32_convert 2)", |t| {
            *t = t.clone().integers(1);
            t.invariant.ppe_i32_convert = 2;
        }),
        ("integers from floats with scales of the weight table", |t| (t.invariant.ppe_fp_convert, t.invariant.dtype, t.invariant.ppe_scale_override) = (4, 3, 0)),
    ];
    for (reason, change) in cases {
        let mut task = Task::new();
        change(&mut task);
        let workload = task.decode().expect(reason);
        assert_eq!(workload.unsupported().as_deref(), Some(*reason));
        let mut memory = Memory::zeroed();
        let fault = workload.execute(&mut memory, &mut None).expect_err(reason);
        assert!(fault.unsupported && fault.message == *reason && memory == Memory::zeroed());
        // Listings and timing still work.
        workload.accesses(&mut |_| ());
        assert!(workload.cycles(&DpuFigures::default()) > 0.0 && !workload.details().is_empty());
    }
    assert_eq!(Task::new().decode().expect("decodes").unsupported(), None);
}

#[test]
fn what_no_program_proves_is_said() {
    let cases: &[(&str, fn(&mut Task))] = &[
        ("bfloat16 activations; bfloat16 weights; bfloat16 results", |t| (t.invariant.amode, t.invariant.wmode, t.invariant.ppe_fp_convert) = (5, 5, 2)),
        ("float8_e5m2 weights; float8_e4m3fn results", |t| (t.invariant.wmode, t.invariant.ppe_fp_convert, t.invariant.dtype) = (8, 5, 3)),
        ("int8 activations", |t| *t = t.clone().integers(2)),
        ("swizzle keys 1 to 4", |t| t.variant.swizzle_key_offset = 4),
        ("an offset for weight pointers (wt_offset)", |t| t.invariant.wt_offset = 0x18000),
        ("sparse depthwise weights", |t| (t.invariant.dw_input, t.invariant.wt_dense) = (1, 0)),
        ("sparse palettised weights", |t| (t.invariant.wt_plt_cfg, t.invariant.wt_dense) = (3, 0)),
        ("scaled float operands", |t| {
            *t = t.clone().add();
            t.invariant.elop_scale_a = 2;
        }),
        ("denormals as in IEEE arithmetic (mpe_daz and mpe_ftz are ignored)", |t| t.invariant.mpe_daz = 1),
        ("flushing of float16 denormals (ppe_fp16_ftz)", |t| t.invariant.ppe_fp16_ftz = 1),
        ("integer rounding NearestAway (ppe_scale_round)", |t| {
            *t = t.clone().integers(1);
            (t.invariant.ppe_scale_override, t.invariant.ppe_scale_round, t.invariant.ppe_scale_shift) = (1, 2, 4);
        }),
        ("integer results of more than 8 bits", |t| {
            *t = t.clone().integers(1);
            t.invariant.dtype = 5;
        }),
    ];
    for (reason, change) in cases {
        let mut task = Task::new();
        change(&mut task);
        assert_eq!(task.decode().expect(reason).unproven().as_deref(), Some(*reason));
    }
    assert_eq!(Task::new().decode().expect("decodes").unproven(), None);
}

#[test]
fn listings() {
    let mut task = Task::new().extents([16, 16, 64], [14, 14, 32]).integers(1);
    (task.invariant.kernel_x, task.invariant.kernel_y, task.invariant.wt_dense) = (3, 3, 0);
    (task.invariant.ppe_i32_convert, task.invariant.dtype, task.invariant.permutation) = (1, 4, 5);
    (task.invariant.ppe_scale_hclamp, task.invariant.ppe_prelu_mult) = (0x7fff_ffff, 0);
    task.variant.swizzle_key_offset = 5;
    task.halos.push(HaloRegion { enable: 1, tile_select: 6, target_width_lsb: 14, end_x: 13, end_y: 13, ..HaloRegion::default() });
    let workload = task.decode().expect("decodes");
    assert_eq!(workload.operation(), "conv 3x3 stride 1");
    assert_eq!(
        workload.details(),
        "uint8→float16, in 16x16x64, out 14x14x32 at (0,0,0), ReLU, sparse weights, order XYZ, swizzle in 5, halo to tiles 1,2"
    );
    (task.invariant.wmode, task.invariant.stride_y_en, task.invariant.stride_y) = (2, 1, 1);
    (task.variant.te_end_y, task.variant.pad_count_left) = (6, 1);
    let workload = task.decode().expect("decodes");
    assert_eq!(workload.operation(), "conv 3x3 stride 1x2");
    assert!(workload.details().starts_with("uint8*int8→float16, in 15x15x64, out 14x7x32 at (0,0,0), padding 1x0, "), "{}", workload.details());
    assert_eq!(Task::new().max_pool().decode().expect("decodes").operation(), "max pool 1x1 stride 1");
    assert_eq!(Task::new().average_pool(1.0).decode().expect("decodes").operation(), "average pool 1x1 stride 1");
    assert_eq!(Task::new().add().decode().expect("decodes").operation(), "eltwise add");
}

#[test]
fn cycles_of_measured_variants() {
    let figures = DpuFigures { drain: 0.0, ..DpuFigures::default() };
    let mut task = Task::new().extents([30, 7, 48], [28, 5, 64]);
    (task.invariant.kernel_x, task.invariant.kernel_y) = (3, 3);
    // Measured 5873 cycles for 28x5x64 outputs of 48 channels, and half of that for one row less: rows count by four.
    let five = task.decode().expect("decodes").cycles(&figures);
    assert_eq!(five, 6048.0);
    task.variant.te_end_y = 3;
    assert_eq!(task.decode().expect("decodes").cycles(&figures), 3024.0);
    (task.invariant.amode, task.invariant.wmode) = (8, 8);
    assert_eq!(task.decode().expect("decodes").cycles(&figures), 1512.0);
    task.invariant.wt_dense = 0;
    assert!((task.decode().expect("decodes").cycles(&figures) - 786.24).abs() < 1e-9);
    // Measured 1636 cycles.
    let mut pool = Task::new().extents([60, 11, 32], [30, 5, 32]).max_pool();
    (pool.invariant.kernel_x, pool.invariant.kernel_y, pool.invariant.stride, pool.variant.pad_count_left) = (3, 3, 1, 1);
    let pool = pool.decode().expect("decodes").cycles(&figures);
    assert!((pool - 1636.0).abs() < 0.1 * 1636.0, "{pool}");
    let with_drain = Task::new().add().decode().expect("decodes").cycles(&DpuFigures::default());
    assert!((with_drain - 21.1 - 636.0).abs() < 1e-9);
}
