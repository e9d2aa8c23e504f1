//! Random tasks and memories against the definition. Numbers are small integers, so that float sums are exact and every
//! byte of every tile must be equal.

use super::build::{
    INPUT, INPUT_MAP, MAPS, Memory, OUTPUT, POINTERS, SECOND, TILE, Task, WEIGHTS, execute,
    scale_word,
};
use super::reference;
use crate::dpu::Workload;
use crate::dpu::registers::HaloRegion;
use crate::machine::Machine;
use half::{bf16, f16};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A source of decisions that shrinks: every decision is a number of the list, and lists of zeros make simple tasks.
struct Choices<'a>(std::slice::Iter<'a, u16>);

impl Choices<'_> {
    /// A number below `bound`.
    fn below(&mut self, bound: u32) -> u32 {
        u32::from(self.0.next().copied().unwrap_or(0)) % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == n - 1
    }
}

/// Simple pseudo-random numbers, to fill memories.
fn noise(seed: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(seed | 1), |s| {
        let s = s ^ (s << 13);
        let s = s ^ (s >> 17);
        Some(s ^ (s << 5))
    })
    .map(|s| s >> 8)
}

/// The bits of a small number in a format.
fn small(mode: u32, random: u32) -> u16 {
    let number = (random % 9) as f32 - 4.0;
    match mode {
        0 => f16::from_f32(number).to_bits(),
        5 => bf16::from_f32(number).to_bits(),
        8 => f16::from_f32(number).to_bits() >> 8,
        _ => random as u16,
    }
}

/// Fills a tile's region with numbers of a format.
fn fill(memory: &mut Memory, offset: u32, mode: u32, seed: u32) {
    let wide = matches!(mode, 0 | 5);
    for (k, random) in (0..0x8000 / if wide { 2 } else { 1 }).zip(noise(seed)) {
        let bytes = small(mode, random).to_le_bytes();
        if wide {
            memory.put(offset + 2 * k, &bytes);
        } else {
            memory.put(offset + k, &bytes[..1]);
        }
    }
}

fn random_task(numbers: &[u16]) -> (Task, Memory) {
    let mut choose = Choices(numbers.iter());
    let mut task = Task::new();
    task.tile = choose.below(6) as u8;
    let mut memory = Memory::zeroed();
    for tile in &mut memory.tiles {
        tile.fill(0xa5);
    }
    let kind = Kind::random(&mut choose);
    let [channels, filters] = geometry(&mut choose, kind, &mut task);
    formats(&mut choose, kind, &mut task);
    let has_scales = stages(&mut choose, kind, &mut task);
    sparsity(&mut choose, kind, channels, &mut task);
    let mut own = contents(&mut choose, kind, (filters, has_scales), &task);
    memory.tiles[usize::from(task.tile)] = own.tiles.swap_remove(0);
    output(&mut choose, &mut task);
    (task, memory)
}

/// What a task computes, and the formats of its operands.
#[derive(Clone, Copy)]
struct Kind {
    operation: &'static str,
    mode: u32,
    weight_mode: u32,
}

impl Kind {
    fn random(choose: &mut Choices<'_>) -> Kind {
        let operation = choose.pick(&["convolution", "depthwise", "max", "average", "sum", "add"]);
        let mode = choose.pick(&[0, 0, 1, 1, 2, 5, 8, 3]);
        let float = matches!(mode, 0 | 5 | 8);
        let weight_mode = match (operation, float) {
            ("add", _) => mode,
            (_, true) => choose.pick(&[mode, 0, 2, 1, 3]),
            (_, false) => choose.pick(&[mode, 1, 2, 6]),
        };
        Kind {
            operation,
            mode,
            weight_mode,
        }
    }

    fn is_float(self) -> bool {
        matches!(self.mode, 0 | 5 | 8)
    }

    fn has_weights(self) -> bool {
        matches!(self.operation, "convolution" | "depthwise")
    }
}

/// Boxes, kernel and padding; gives how many channels are read and written.
fn geometry(choose: &mut Choices<'_>, kind: Kind, task: &mut Task) -> [u32; 2] {
    let kernel = [choose.below(3) + 1, choose.below(3) + 1];
    let kernel = if kind.operation == "add" {
        [1, 1]
    } else {
        kernel
    };
    let stride = [choose.below(3) + 1, choose.below(3) + 1];
    let stride = if kind.operation == "add" {
        [1, 1]
    } else {
        stride
    };
    let pad = kernel.map(|k| choose.below(k));
    let pad_after = kernel.map(|k| choose.below(k));
    let outputs = [choose.below(5) + 1, choose.below(5) + 1];
    let size: Vec<u32> = (0..2)
        .map(|a| {
            ((outputs[a] - 1) * stride[a] + kernel[a])
                .saturating_sub(pad[a] + pad_after[a])
                .max(1)
                + choose.below(2)
        })
        .collect();
    // Elements of half a byte start on whole ones.
    let odd = kind.mode != 3;
    let start = [
        choose.below(3),
        choose.below(3),
        if odd {
            choose.pick(&[0, 8, 3])
        } else {
            8 * choose.below(2)
        },
    ];
    let channels = choose.pick(&[16, 8, 24, if odd { 13 } else { 40 }]);
    let filters = if matches!(kind.operation, "convolution" | "sum") {
        choose.pick(&[16, 5, 24])
    } else {
        channels
    };
    let begin = [choose.below(3), choose.below(3), choose.below(3) * 8];
    let (i, v) = (&mut task.invariant, &mut task.variant);
    (i.kernel_x, i.kernel_y) = (kernel[0], kernel[1]);
    (i.stride, i.stride_y, i.stride_y_en) = (
        stride[0] - 1,
        stride[1] - 1,
        u32::from(stride[0] != stride[1]),
    );
    (v.pad_count_left, v.pad_count_up) = (pad[0], pad[1]);
    (v.pad_count_right, v.pad_count_down) = (pad_after[0], pad_after[1]);
    (v.workload_start_x, v.workload_start_y, v.workload_start_z) = (start[0], start[1], start[2]);
    (v.workload_size_x, v.workload_size_y, v.workload_size_z) = (size[0], size[1], channels);
    i.tensor_size_x = start[0] + size[0] + choose.below(2);
    i.tensor_size_y = start[1] + size[1] + choose.below(2);
    i.tensor_size_z = start[2] + channels + 8 * choose.below(2);
    (v.te_beg_x, v.te_beg_y, v.te_beg_z) = (begin[0], begin[1], begin[2]);
    (v.te_end_x, v.te_end_y, v.te_end_z) = (
        begin[0] + outputs[0] - 1,
        begin[1] + outputs[1] - 1,
        begin[2] + filters - 1,
    );
    (i.te_dim_x, i.te_dim_y, i.te_dim_z) = (
        v.te_end_x + choose.below(2),
        v.te_end_y + choose.below(2),
        v.te_end_z + choose.below(2) * 3,
    );
    [channels, filters]
}

/// The operation and its formats.
fn formats(choose: &mut Choices<'_>, kind: Kind, task: &mut Task) {
    let (i, v) = (&mut task.invariant, &mut task.variant);
    (i.amode, i.wmode) = (kind.mode, kind.weight_mode);
    (i.mpe_actbias, i.mpe_wtbias) = (choose.pick(&[0, 3, 128, 250]), choose.pick(&[0, 5, 128]));
    v.swizzle_key_offset = choose.pick(&[0, 0, 5, 1, 2, 3, 4]);
    v.wt_swizzle_key = choose.pick(&[0, 0, 5, 1, 2, 3, 4]);
    i.swizzle_key = choose.pick(&[0, 0, 5, 1, 2, 3, 4]);
    i.permutation = choose.below(6);
    match kind.operation {
        "convolution" => {}
        "depthwise" => i.dw_input = 1,
        "max" => (i.pool_wt_rd_dis, i.workload_operation, i.dw_input) = (1, 2, 1),
        "average" | "sum" => {
            (i.pool_wt_rd_dis, i.pool_wt_data) =
                (1, u32::from(small(kind.weight_mode, choose.below(9))));
            i.dw_input = u32::from(kind.operation == "average");
        }
        _ => {
            (i.elop_wload, i.act_offset0, i.tensor_start) = (1, 0, INPUT / 16);
            v.weight_start = SECOND / 16;
            (i.elop_scale_a, i.elop_scale_b) = (choose.pick(&[1, 0x80]), choose.pick(&[1, 0x50]));
            i.elop_operation = choose.below(if kind.is_float() { 3 } else { 2 });
        }
    }
}

/// The stages behind the sums; whether scales stand in the weight table.
fn stages(choose: &mut Choices<'_>, kind: Kind, task: &mut Task) -> bool {
    let i = &mut task.invariant;
    i.ppe_prelu_mult = choose.pick(&[1, 0, 0x666]);
    i.ppe_prelu_shift = if i.ppe_prelu_mult == 0x666 { 14 } else { 0 };
    i.ppe_g8_bias_c = choose.pick(&[0, 7, 0x1f0]);
    i.ppe_scale_round = choose.pick(&[0, 2, 3]);
    i.ppe_fp_prelu_en = choose.below(2);
    i.ppe_fp_prelu = choose.pick(&[-0.0f32, 0.125]).to_bits();
    i.ppe_fp_scale = choose.pick(&[1f32, 0.5, 0.25, -2.0]).to_bits();
    i.ppe_fp_bias = choose.pick(&[0f32, 1.0, -3.0]).to_bits();
    (i.ppe_scale_mult, i.ppe_scale_shift, i.ppe_bias) = (
        choose.pick(&[1, 3, 0x4567]),
        choose.pick(&[0, 1, 12, 63]),
        choose.pick(&[0, 9, u32::MAX]),
    );
    let table_scale = kind.has_weights() || (kind.operation != "add" && choose.one_in(3));
    if kind.is_float() {
        i.ppe_fp_scale_override = u32::from(!table_scale);
        if kind.operation == "max" && kind.mode != 8 && choose.one_in(2) {
            (i.ppe_fp_bypass, i.ppe_fp_convert) = (1, 0);
        } else {
            (i.ppe_fp_convert, i.dtype) = choose.pick(&[(1, 4), (0, 5), (2, 4), (4, 3)]);
            i.ppe_bf16_round = choose.below(2);
            if i.ppe_fp_convert < 2 {
                i.ppe_scale_hclamp = choose.pick(&[
                    0x7fff_ffff,
                    if i.ppe_fp_convert == 1 {
                        0x4600
                    } else {
                        0x40c0_0000
                    },
                ]);
            }
        }
        if i.ppe_fp_convert == 4 {
            (i.ppe_scale_lclamp, i.ppe_scale_hclamp) = (0, 255);
        }
    } else {
        (i.ppe_fp_bypass, i.ppe_fp_convert) = (1, 0);
        i.ppe_scale_override = u32::from(!table_scale);
        if choose.one_in(3) {
            (i.ppe_i32_convert, i.dtype, i.ppe_g8_bias_c) = (1, 4, 0);
            i.ppe_scale_hclamp = choose.pick(&[0x7fff_ffff, 0x4400]);
        } else {
            i.dtype = choose.pick(&[3, 3, 4, 5]);
            if i.dtype == 3 {
                (i.ppe_scale_lclamp, i.ppe_scale_hclamp) =
                    choose.pick(&[(0, 255), (-128i32 as u32, 127)]);
            }
        }
    }
    table_scale
}

/// Sparse and palettised weights, sparse and compressed activations.
fn sparsity(choose: &mut Choices<'_>, kind: Kind, channels: u32, task: &mut Task) {
    let (i, v) = (&mut task.invariant, &mut task.variant);
    if kind.has_weights() {
        i.wt_dense = choose.below(2);
        i.wt_offset = choose.pick(&[0, 0, 0x400]);
        if choose.one_in(3) && !matches!(kind.weight_mode, 3 | 6) {
            i.wt_plt_cfg = 3;
            for (entry, random) in task.palette.iter_mut().zip(noise(77)) {
                *entry = small(kind.weight_mode, random);
            }
        }
    }
    let depth = i.tensor_size_z;
    if kind.operation != "add" && choose.one_in(4) {
        (i.act_dense, v.dense_se, v.swizzle_key_offset) = (0, 0, 0);
        (i.se_addr, i.sparsity_addr) = (POINTERS, INPUT_MAP);
        if depth.is_multiple_of(16) && choose.one_in(2) {
            (i.npo2_se_z_split_en, i.npo2_se_size) = (1, depth / 16 - 1);
        }
    } else if kind.operation == "convolution" && channels == 16 && choose.one_in(2) {
        (i.layer1_cmp_en, i.cm_sp_pattern) = (1, choose.pick(&[7, 15, 5]));
        if depth == 16 && i.wt_dense == 1 && choose.one_in(2) {
            (i.layer1_cmp_en, i.layer1_wt_sp_ins) = (0, 1);
            i.cm_sp_pattern = choose.pick(&[7, 0x3ff, 0xff, 0x8421]);
        }
    }
}

/// The task's own tile: inputs, weights, tables.
fn contents(
    choose: &mut Choices<'_>,
    kind: Kind,
    (filters, table_scale): (u32, bool),
    task: &Task,
) -> Memory {
    let depth = task.invariant.tensor_size_z;
    let mut own = Memory {
        tiles: vec![vec![0; TILE]],
    };
    let seed = choose.below(1000);
    fill(&mut own, INPUT, kind.mode, seed);
    fill(&mut own, SECOND, kind.weight_mode, seed + 1);
    fill(&mut own, WEIGHTS, kind.weight_mode, seed + 2);
    for (k, random) in (0..0x8000).zip(noise(seed + 3)) {
        own.put(MAPS + k, &[(random & random >> 8) as u8]);
    }
    let pixels = task.invariant.tensor_size_x * task.invariant.tensor_size_y;
    for (pixel, random) in (0..pixels).zip(noise(seed + 4)) {
        // Storage elements overlap: several pixels may show one.
        own.put(
            POINTERS + 4 * pixel,
            &((random % 64 * 8) << 9).to_le_bytes(),
        );
    }
    for (k, random) in (0..(pixels * depth).div_ceil(8)).zip(noise(seed + 5)) {
        own.put(
            INPUT_MAP + k,
            &[if random % 3 == 0 {
                random as u8
            } else {
                255 * (random >> 8 & 1) as u8
            }],
        );
    }
    for channel in 0..filters {
        let pointer = |base: u32, step: u32| base + channel * step - task.invariant.wt_offset;
        let scale = if kind.is_float() {
            choose.pick(&[1f32, 0.5, -0.25]).to_bits()
        } else {
            scale_word(
                choose.pick(&[1, 77, 0x5c38]),
                choose.pick(&[0, 5, 17]),
                choose.pick(&[0, 2, 3]),
            )
        };
        let bias = if kind.is_float() {
            choose.pick(&[0f32, 2.0, -1.0]).to_bits()
        } else {
            choose.pick(&[0, 40, u32::MAX - 100])
        };
        let words = [pointer(WEIGHTS, 0x300), pointer(MAPS, 0x60), scale, bias];
        let table = task.variant.weight_start;
        for (k, byte) in words.iter().flat_map(|word| word.to_le_bytes()).enumerate() {
            let at = table + 16 * channel + k as u32;
            if kind.has_weights() || table_scale {
                own.tiles[0][swizzled(at, task.variant.wt_swizzle_key)] = byte;
            }
        }
    }
    own
}

/// Some room on both sides for halo offsets. Channels that the halo tiles' tensors lack are not written.
fn output(choose: &mut Choices<'_>, task: &mut Task) {
    let i = &mut task.invariant;
    i.ac_base = (OUTPUT + 0x1000) / 16;
    for _ in 0..choose.below(3) {
        let (bx, by) = (choose.below(4), choose.below(4));
        let width = choose.below(20) + 1;
        task.halos.push(HaloRegion {
            enable: u32::from(!choose.one_in(5)),
            tile_select: choose.below(64) & !(1 << task.tile),
            ac_adr_offset: (choose.below(3) * 0x200).wrapping_sub(0x200) & 0x3f_ffff,
            target_width_lsb: width,
            begin_x: bx,
            begin_y: by,
            end_x: bx + choose.below(12),
            end_y: by + choose.below(6),
            ..HaloRegion::default()
        });
    }
}

fn swizzled(address: u32, key: u32) -> usize {
    let turn = (address >> 10 & ((1 << key) - 1)) << (10 - key);
    (address & !1023 | (address + turn) & 1023) as usize
}

/// Places where two tiles differ. Blocks that are alike are passed over: byte by byte, code that is not optimised takes half a minute for them.
fn differing(one: &[u8], other: &[u8]) -> Vec<usize> {
    const BLOCK: usize = 1024;
    let blocks = one.chunks(BLOCK).zip(other.chunks(BLOCK));
    let places = blocks.enumerate().filter(|(_, (one, other))| one != other);
    places
        .flat_map(|(number, (one, other))| {
            let places = (0..one.len()).filter(move |at| one[*at] != other[*at]);
            places.map(move |at| number * BLOCK + at)
        })
        .collect()
}

fn check(task: &Task, memory: &Memory) -> Result<(), TestCaseError> {
    let workload = match task.decode() {
        Ok(workload) => workload,
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    prop_assert_eq!(workload.unsupported(), None);
    let want = reference::execute(task, memory);
    let mut got = memory.clone();
    execute(&workload, &mut got, &mut None)
        .map_err(|fault| TestCaseError::fail(fault.to_string()))?;

    // Accesses: writes to the byte; reads at least what decided, and exactly that where tables are known and dense.
    let own = &memory.tiles[usize::from(task.tile)];
    let known = |offset: u64, size: u64| {
        own.get(offset as usize..(offset + size) as usize)
            .map(<[u8]>::to_vec)
    };
    let (mut read, mut written, mut may) = (BTreeSet::new(), BTreeSet::new(), 0);
    workload.accesses_with(&known, &mut |region| {
        may += usize::from(region.may);
        region.swizzle.each_piece(&region.pattern, |start, size| {
            let bytes = start as usize..(start + size) as usize;
            if region.write {
                written.extend(bytes.map(|byte| (usize::from(region.tile), byte)));
            } else {
                read.extend(bytes);
            }
        });
    });
    prop_assert_eq!(may, 0);
    prop_assert_eq!(&written, &want.written);
    prop_assert!(
        want.read.is_subset(&read),
        "not named: {:x?}",
        want.read.difference(&read).take(8).collect::<Vec<_>>()
    );
    if task.invariant.act_dense == 1 && task.invariant.wt_dense == 1 {
        prop_assert!(
            read.is_subset(&want.read),
            "named for nothing: {:x?}",
            read.difference(&want.read).take(8).collect::<Vec<_>>()
        );
    }

    if want.rewritten {
        // Halo regions write over each other, in another order than the definition, which goes element by element.
        return Ok(());
    }
    for (tile, (got, want)) in got.tiles.iter().zip(&want.memory.tiles).enumerate() {
        let differing = differing(got, want);
        prop_assert!(
            differing.is_empty(),
            "{} {}: tile {tile} differs at {:x?}",
            workload.operation(),
            workload.details(),
            &differing[..differing.len().min(8)]
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(chipless_rounds::cases(600))]
    #[test]
    fn every_task_does_what_its_registers_say(numbers in prop::collection::vec(any::<u16>(), 200)) {
        let (task, memory) = random_task(&numbers);
        check(&task, &memory)?;
    }

    /// Descriptors with any bits: no panic, no long work, and no byte written that the accesses do not name.
    #[test]
    fn broken_tasks_are_refused_or_stay_in_their_bytes(
        numbers in prop::collection::vec(any::<u16>(), 200),
        breaks in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let (task, memory) = random_task(&numbers);
        let (mut invariant, mut variant) = (task.invariant_bytes(), task.variant_bytes());
        for (at, bits) in breaks {
            let at = at.index(invariant.len() + variant.len());
            match at.checked_sub(invariant.len()) {
                None => invariant[at] ^= bits,
                Some(at) => variant[at] ^= bits,
            }
        }
        let Ok(workload) = Workload::decode(&invariant, &variant, task.tile, crate::generation::PostStages::Separate) else { return Ok(()) };
        let own = &memory.tiles[usize::from(task.tile)];
        let known = |offset: u64, size: u64| own.get(offset as usize..usize::try_from(offset + size).ok()?).map(<[u8]>::to_vec);
        let mut written: Vec<Vec<bool>> = vec![vec![false; TILE]; 6];
        let mut pieces = 0;
        workload.accesses_with(&known, &mut |region| {
            pieces += 1;
            if region.write && region.pattern.fits(TILE as u64) {
                region.swizzle.each_piece(&region.pattern, |start, size| {
                    written[usize::from(region.tile)][start as usize..(start + size) as usize].fill(true);
                });
            }
        });
        prop_assert!(pieces < 3_000_000);
        if workload.cycles(&Machine::default().dpu, 1.0) > 1e6 {
            return Ok(());
        }
        let mut after = memory.clone();
        let outcome = execute(&workload, &mut after, &mut None);
        for (tile, written) in written.iter().enumerate() {
            let changed = differing(&memory.tiles[tile], &after.tiles[tile]);
            let outside = changed.into_iter().find(|at| outcome.is_err() || !written[*at]);
            prop_assert_eq!(outside, None, "tile {}", tile);
        }
    }
}
