//! The definition of a DPU task, element by element and bit by bit, from the registers themselves. Slow, and written
//! without a line of what it checks.

use super::build::{Memory, Task};
use half::{bf16, f16};
use std::collections::BTreeSet;

/// What a task does.
pub(super) struct Outcome {
    pub(super) memory: Memory,
    /// Bytes of the own tile that decided it.
    pub(super) read: BTreeSet<usize>,
    /// Tile and byte.
    pub(super) written: BTreeSet<(usize, usize)>,
    /// Whether a byte is written several times.
    pub(super) rewritten: bool,
}

/// Rotation of the 32-byte units of 1 KiB rows.
fn swizzled(address: usize, key: u32) -> usize {
    let (row, column) = (address >> 10, address & 1023);
    let turn = (row & ((1 << key) - 1)) << (10 - key);
    row << 10 | (column + turn) & 1023
}

struct Reader<'a> {
    tile: &'a [u8],
    read: BTreeSet<usize>,
}

impl Reader<'_> {
    fn byte(&mut self, address: usize, key: u32) -> u8 {
        let at = swizzled(address, key);
        self.read.insert(at);
        self.tile[at]
    }

    fn bit(&mut self, base: usize, index: usize, key: u32) -> bool {
        self.byte(base + index / 8, key) >> (index % 8) & 1 == 1
    }

    fn word(&mut self, address: usize, key: u32) -> u32 {
        (0..4).fold(0, |word, i| {
            word | u32::from(self.byte(address + i, key)) << (8 * i)
        })
    }

    /// An element, `index` elements from `base`.
    fn element(&mut self, mode: u32, base: usize, index: usize, key: u32) -> f32 {
        match mode {
            3 | 6 => {
                let byte = self.byte(base + index / 2, key);
                value(
                    mode,
                    u16::from(if index.is_multiple_of(2) {
                        byte & 15
                    } else {
                        byte >> 4
                    }),
                )
            }
            0 | 5 => {
                let low = u16::from(self.byte(base + 2 * index, key));
                value(
                    mode,
                    low | u16::from(self.byte(base + 2 * index + 1, key)) << 8,
                )
            }
            _ => value(mode, u16::from(self.byte(base + index, key))),
        }
    }
}

/// The number that the bits of an element mean.
fn value(mode: u32, bits: u16) -> f32 {
    match mode {
        0 => f16::from_bits(bits).to_f32(),
        1 => f32::from(bits as u8),
        2 => f32::from(bits as u8 as i8),
        3 => f32::from(((bits as u8) << 4) as i8 >> 4),
        5 => bf16::from_bits(bits).to_f32(),
        6 => f32::from(bits as u8 & 15),
        8 => f16::from_bits(bits << 8).to_f32(),
        _ => panic!("mode {mode} is not tested"),
    }
}

fn zero_point(mode: u32, register: u32) -> f32 {
    match mode {
        1 | 6 => register as f32,
        2 | 3 => f32::from(register as u8 as i8),
        _ => 0.0,
    }
}

pub(super) fn execute(task: &Task, before: &Memory) -> Outcome {
    let (i, v) = (&task.invariant, &task.variant);
    let tile = usize::from(task.tile);
    let mut reader = Reader {
        tile: &before.tiles[tile],
        read: BTreeSet::new(),
    };
    let mut memory = before.clone();
    let (mut written, mut rewritten) = (BTreeSet::new(), false);
    for z in v.te_beg_z..=v.te_end_z {
        for y in v.te_beg_y..=v.te_end_y {
            for x in v.te_beg_x..=v.te_end_x {
                let element = element(task, &mut reader, x, y, z);
                for (tile, address) in places(task, x as i64, y as i64, z as i64, element.len()) {
                    for (k, byte) in element.iter().enumerate() {
                        let at = swizzled(address + k, i.swizzle_key);
                        memory.tiles[tile][at] = *byte;
                        rewritten |= !written.insert((tile, at));
                    }
                }
            }
        }
    }
    Outcome {
        memory,
        read: reader.read,
        written,
        rewritten,
    }
}

/// Where an output element goes.
fn places(task: &Task, x: i64, y: i64, z: i64, size: usize) -> Vec<(usize, usize)> {
    let i = &task.invariant;
    let (dx, dy, dz) = (
        i64::from(i.te_dim_x) + 1,
        i64::from(i.te_dim_y) + 1,
        i64::from(i.te_dim_z) + 1,
    );
    let [(inner, inner_dim), (middle, middle_dim), (outer, _)] = match i.permutation {
        0 => [(z, dz), (x, dx), (y, dy)],
        1 => [(z, dz), (y, dy), (x, dx)],
        2 => [(y, dy), (z, dz), (x, dx)],
        3 => [(y, dy), (x, dx), (z, dz)],
        4 => [(x, dx), (z, dz), (y, dy)],
        _ => [(x, dx), (y, dy), (z, dz)],
    };
    let base = i64::from(i.ac_base) * 16;
    let at = |base: i64, width: i64| {
        (base + size as i64 * (inner + inner_dim * (middle + width * outer))) as usize
    };
    let mut places = vec![(usize::from(task.tile), at(base, middle_dim))];
    for halo in task.halos.iter().filter(|halo| halo.enable == 1) {
        let inside =
            |value: i64, begin: u32, end: u32| i64::from(begin) <= value && value <= i64::from(end);
        if inside(middle, halo.begin_x, halo.end_x) && inside(outer, halo.begin_y, halo.end_y) {
            let offset = i64::from((halo.ac_adr_offset << 10) as i32 >> 10);
            let width = i64::from(halo.target_width_lsb) + 1024 * i64::from(halo.target_width_msb);
            places.extend(
                (0..6)
                    .filter(|t| halo.tile_select >> t & 1 == 1)
                    .map(|t| (t, at(base + offset, width))),
            );
        }
    }
    places
}

fn element(task: &Task, reader: &mut Reader<'_>, x: u32, y: u32, z: u32) -> Vec<u8> {
    let (i, v) = (&task.invariant, &task.variant);
    let channel = z - v.te_beg_z;
    let max = i.pool_wt_rd_dis == 1 && i.workload_operation == 2;
    let all_channels = i.elop_wload == 0 && i.dw_input == 0;
    let act_zero = if max {
        0.0
    } else {
        zero_point(i.amode, i.mpe_actbias)
    };
    let weight_zero = zero_point(i.wmode, i.mpe_wtbias);

    // The input channels that this output channel looks at, in the order of its weights.
    let channels: Vec<u32> = if !all_channels {
        vec![v.workload_start_z + channel]
    } else if i.layer1_cmp_en == 1 || i.layer1_wt_sp_ins == 1 {
        let stored = if i.layer1_cmp_en == 1 { 4 } else { 16 };
        (0..stored)
            .filter(|c| i.cm_sp_pattern >> c & 1 == 1)
            .collect()
    } else {
        (v.workload_start_z..v.workload_start_z + v.workload_size_z).collect()
    };
    let stride_y = if i.stride_y_en == 1 {
        i.stride_y
    } else {
        i.stride
    } + 1;
    let mut sum = if max { f32::NEG_INFINITY } else { 0.0 };
    let mut stored = 0;
    for ky in 0..i.kernel_y {
        for kx in 0..i.kernel_x {
            let row = i64::from((y - v.te_beg_y) * stride_y + ky) - i64::from(v.pad_count_up);
            let column =
                i64::from((x - v.te_beg_x) * (i.stride + 1) + kx) - i64::from(v.pad_count_left);
            let inside = (0..i64::from(v.workload_size_y)).contains(&row)
                && (0..i64::from(v.workload_size_x)).contains(&column);
            for (n, c) in channels.iter().enumerate() {
                let tap = (ky * i.kernel_x + kx) as usize * channels.len() + n;
                let weight = if i.elop_wload == 1 || max {
                    Some(0.0)
                } else if i.pool_wt_rd_dis == 1 {
                    Some(value(i.wmode, i.pool_wt_data as u16))
                } else {
                    weight(task, reader, channel, tap, &mut stored).map(|w| w - weight_zero)
                };
                if !inside {
                    continue;
                }
                let (row, column) = (
                    row as u32 + v.workload_start_y,
                    column as u32 + v.workload_start_x,
                );
                let activation =
                    activation(task, reader, column, row, *c).map_or(0.0, |a| a - act_zero);
                if i.elop_wload == 1 {
                    let index = ((row * i.tensor_size_x + column) * i.tensor_size_z + c) as usize;
                    let b = reader.element(
                        i.wmode,
                        v.weight_start as usize * 16,
                        index,
                        v.wt_swizzle_key,
                    ) - weight_zero;
                    let (a, b) = (
                        activation * i.elop_scale_a as f32,
                        b * i.elop_scale_b as f32,
                    );
                    sum = match i.elop_operation {
                        0 => a + b,
                        1 => a - b,
                        _ => a * b,
                    };
                } else if max {
                    sum = sum.max(activation);
                } else if let Some(weight) = weight {
                    sum += activation * weight;
                }
            }
        }
    }
    let entry = |reader: &mut Reader<'_>, at: usize| {
        reader.word(
            v.weight_start as usize + 16 * channel as usize + at,
            v.wt_swizzle_key,
        )
    };
    let from_table = i.elop_wload == 0
        && if matches!(i.amode, 0 | 5 | 8) {
            i.ppe_fp_scale_override == 0 && i.ppe_fp_bypass == 0
        } else {
            i.ppe_scale_override == 0
        };
    if from_table || i.elop_wload + i.pool_wt_rd_dis == 0 {
        // Entries are read as a whole.
        (0..4).for_each(|word| _ = entry(reader, 4 * word));
    }
    let (scale, bias) = if from_table {
        (entry(reader, 8), entry(reader, 12))
    } else {
        (0, 0)
    };
    post(task, sum, from_table.then_some((scale, bias)))
}

/// An input element; `None` where the sparsity map says that it is zero.
fn activation(task: &Task, reader: &mut Reader<'_>, x: u32, y: u32, c: u32) -> Option<f32> {
    let (i, v) = (&task.invariant, &task.variant);
    let pixel = (y * i.tensor_size_x + x) as usize;
    let base = i.act_offset0 as usize + i.tensor_start as usize * 16;
    let depth = i.tensor_size_z as usize;
    if i.act_dense == 1 {
        if i.layer1_cmp_en == 1 || i.layer1_wt_sp_ins == 1 {
            // A pixel is read as a whole.
            let stored = if i.layer1_cmp_en == 1 { 4 } else { depth };
            (0..stored).for_each(|c| {
                _ = reader.element(i.amode, base, pixel * stored + c, v.swizzle_key_offset);
            });
            return Some(reader.element(
                i.amode,
                base,
                pixel * stored + c as usize,
                v.swizzle_key_offset,
            ));
        }
        return Some(reader.element(
            i.amode,
            base,
            pixel * depth + c as usize,
            v.swizzle_key_offset,
        ));
    }
    let pointer = reader.word(i.se_addr as usize + 4 * pixel, 0);
    let map = i.sparsity_addr as usize;
    if !reader.bit(map, pixel * depth + c as usize, 0) {
        return None;
    }
    let before = (0..c as usize)
        .filter(|c| reader.bit(map, pixel * depth + c, 0))
        .count();
    Some(reader.element(i.amode, base + (pointer >> 9) as usize * 16, before, 0))
}

/// A stored weight; `None` where it is absent. `stored` counts those of the channel so far.
fn weight(
    task: &Task,
    reader: &mut Reader<'_>,
    channel: u32,
    tap: usize,
    stored: &mut usize,
) -> Option<f32> {
    let (i, v) = (&task.invariant, &task.variant);
    let key = v.wt_swizzle_key;
    let entry = v.weight_start as usize + 16 * channel as usize;
    let data = (reader.word(entry, key) + i.wt_offset) as usize;
    if i.wt_dense == 0 {
        let map = (reader.word(entry + 4, key) + i.wt_offset) as usize;
        if !reader.bit(map, tap, key) {
            return None;
        }
    }
    let index = *stored;
    *stored += 1;
    if i.wt_plt_cfg == 3 {
        let byte = reader.byte(data + index / 2, key);
        let code = if index.is_multiple_of(2) {
            byte & 15
        } else {
            byte >> 4
        };
        return Some(value(i.wmode, task.palette[usize::from(code)]));
    }
    Some(reader.element(i.wmode, data, index, key))
}

fn round(value: f64, mode: u32) -> f64 {
    match mode {
        0 => value.round_ties_even(),
        2 => value.round(),
        _ => value.floor(),
    }
}

/// Scale and bias words of the weight table, or those of the registers, applied to a sum, as stored bytes.
fn post(task: &Task, sum: f32, table: Option<(u32, u32)>) -> Vec<u8> {
    let i = &task.invariant;
    let size = 1usize << (i.dtype - 3);
    let clamp16 = |pattern: u16| {
        (i32::from(pattern as i16).min(i.ppe_scale_hclamp as i32) as u16)
            .to_le_bytes()
            .to_vec()
    };
    let stages = |value: f64, mode: u32| {
        let value = if value < 0.0 {
            round(
                value * f64::from(i.ppe_prelu_mult) / 2f64.powi(i.ppe_prelu_shift as i32),
                mode,
            )
        } else {
            value
        };
        let zero = f64::from((i.ppe_g8_bias_c << 23) as i32 >> 23);
        let value = (value + zero)
            .max(f64::from(i.ppe_scale_lclamp as i32))
            .min(f64::from(i.ppe_scale_hclamp as i32));
        (value as i64).to_le_bytes()[..size].to_vec()
    };
    if !matches!(i.amode, 0 | 5 | 8) {
        let (multiplier, shift, mode, bias) = match table {
            Some((scale, bias)) => (scale >> 16, scale >> 8 & 63, scale >> 14 & 3, bias as i32),
            None => (
                i.ppe_scale_mult,
                i.ppe_scale_shift,
                i.ppe_scale_round,
                i.ppe_bias as i32,
            ),
        };
        let exact =
            (f64::from(sum) + f64::from(bias)) * f64::from(multiplier) / 2f64.powi(shift as i32);
        if i.ppe_i32_convert == 1 {
            let value = if exact < 0.0 {
                exact * f64::from(i.ppe_prelu_mult) / 2f64.powi(i.ppe_prelu_shift as i32)
            } else {
                exact
            };
            // An integer zero has no sign.
            return clamp16(f16::from_f64(value + 0.0).to_bits());
        }
        return stages(round(exact, mode), mode);
    }
    if i.ppe_fp_bypass == 1 {
        return match i.amode {
            0 => f16::from_f32(sum).to_le_bytes().to_vec(),
            _ => bf16::from_f32(sum).to_le_bytes().to_vec(),
        };
    }
    let (scale, bias) = table.unwrap_or((i.ppe_fp_scale, i.ppe_fp_bias));
    let biased = sum + f32::from_bits(bias);
    let factor = if i.ppe_fp_prelu_en == 1 && biased < 0.0 {
        i.ppe_fp_prelu
    } else {
        scale
    };
    let value = biased * f32::from_bits(factor);
    match i.ppe_fp_convert {
        0 => (value.to_bits() as i32)
            .min(i.ppe_scale_hclamp as i32)
            .to_le_bytes()
            .to_vec(),
        1 => {
            let half = f16::from_f32(value);
            let half = if i.ppe_fp16_clamp == 1 && half.is_infinite() {
                f16::MAX.copysign(half)
            } else {
                half
            };
            clamp16(half.to_bits())
        }
        2 => clamp16(if i.ppe_bf16_round == 1 {
            bf16::from_f32(value).to_bits()
        } else {
            (value.to_bits() >> 16) as u16
        }),
        _ => {
            let biased = f64::from(value).round_ties_even() + f64::from(i.ppe_bias as i32);
            let exact = biased * f64::from(i.ppe_scale_mult) / 2f64.powi(i.ppe_scale_shift as i32);
            stages(round(exact, i.ppe_scale_round), i.ppe_scale_round)
        }
    }
}
