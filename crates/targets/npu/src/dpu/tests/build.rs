//! Descriptors and memories for tests.

use crate::dpu::registers::{HALO_OFFSET, HaloRegion, Invariant, PALETTE_OFFSET, Variant};
use crate::dpu::{DecodeError, Partial, TileMemory, Workload};
use crate::generation::PostStages;
use chipless_model::Fault;

/// Bytes of a tile in tests: less than a real one has, so that whole memories are compared quickly.
pub(super) const TILE: usize = 0x4_8000;

/// Where tests put things; each has 32 KiB.
pub(super) const INPUT: u32 = 0x0_8000;
pub(super) const SECOND: u32 = 0x1_0000;
pub(super) const TABLE: u32 = 0x1_8000;
pub(super) const WEIGHTS: u32 = 0x2_0000;
pub(super) const MAPS: u32 = 0x2_8000;
pub(super) const POINTERS: u32 = 0x3_0000;
pub(super) const INPUT_MAP: u32 = 0x3_4000;
pub(super) const OUTPUT: u32 = 0x3_8000;

/// The bits of 1.0.
pub(super) const ONE: u32 = 0x3f80_0000;
/// The sparsity pointer of dense weights.
pub(super) const NO_MAP: u32 = 0xff_ffff;

/// A task, register by register.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) tile: u8,
    pub(super) invariant: Invariant,
    pub(super) variant: Variant,
    pub(super) halos: Vec<HaloRegion>,
    pub(super) palette: [u16; 16],
}

impl Task {
    /// A 1×1 float16 convolution of one pixel, 16 channels to 16, as the compiler writes it. Tests change what they are about.
    pub(super) fn new() -> Task {
        let invariant = Invariant {
            kernel_x: 1,
            kernel_y: 1,
            act_dense: 1,
            wt_dense: 1,
            zm_input: 1,
            tensor_size_x: 1,
            tensor_size_y: 1,
            tensor_size_z: 16,
            act_offset0: INPUT,
            write_ac: 1,
            dtype: 4,
            te_dim_z: 15,
            ac_base: OUTPUT / 16,
            ppe_scale_mult: 1,
            ppe_scale_override: 1,
            ppe_prelu_mult: 1,
            ppe_scale_hclamp: 0x7fff_ffff,
            ppe_scale_lclamp: 0x8000_0000,
            ppe_fp16_clamp: 1,
            ppe_fp_convert: 1,
            elop_scale_a: 1,
            elop_scale_b: 1,
            ..Invariant::default()
        };
        let variant = Variant {
            workload_size_x: 1,
            workload_size_y: 1,
            workload_size_z: 16,
            dense_se: 1,
            te_end_z: 15,
            weight_start: TABLE,
            ..Variant::default()
        };
        Task {
            tile: 0,
            invariant,
            variant,
            halos: Vec::new(),
            palette: [0; 16],
        }
    }

    /// Sets the extents of input and output, with a window that covers all of the input.
    pub(super) fn extents(mut self, [x, y, z]: [u32; 3], [out_x, out_y, out_z]: [u32; 3]) -> Task {
        let (i, v) = (&mut self.invariant, &mut self.variant);
        (i.tensor_size_x, i.tensor_size_y, i.tensor_size_z) = (x, y, z);
        (v.workload_size_x, v.workload_size_y, v.workload_size_z) = (x, y, z);
        (i.te_dim_x, i.te_dim_y, i.te_dim_z) = (out_x - 1, out_y - 1, out_z - 1);
        (v.te_end_x, v.te_end_y, v.te_end_z) = (out_x - 1, out_y - 1, out_z - 1);
        self
    }

    /// Makes it a max pool of these formats.
    pub(super) fn max_pool(mut self) -> Task {
        let i = &mut self.invariant;
        (i.pool_wt_rd_dis, i.workload_operation, i.dw_input) = (1, 2, 1);
        (i.ppe_fp_bypass, i.ppe_fp_convert, i.ppe_scale_round) = (1, 0, 3);
        self
    }

    /// Makes it an average pool: a sum of the window, scaled by a register.
    pub(super) fn average_pool(mut self, scale: f32) -> Task {
        let i = &mut self.invariant;
        (i.pool_wt_rd_dis, i.dw_input, i.pool_wt_data) = (1, 1, 0x3c00);
        (i.ppe_fp_scale_override, i.ppe_fp_scale) = (1, scale.to_bits());
        self
    }

    /// Makes it an addition of two tensors.
    pub(super) fn add(mut self) -> Task {
        let i = &mut self.invariant;
        (i.elop_wload, i.act_offset0, i.tensor_start) = (1, 0, INPUT / 16);
        (i.ppe_fp_scale_override, i.ppe_fp_scale) = (1, 1f32.to_bits());
        self.variant.weight_start = SECOND / 16;
        self
    }

    /// Makes it work on 8-bit integers with scales from the weight table.
    pub(super) fn integers(mut self, mode: u32) -> Task {
        let i = &mut self.invariant;
        (i.amode, i.wmode, i.dtype) = (mode, mode, 3);
        (i.ppe_fp_bypass, i.ppe_fp_convert, i.ppe_scale_override) = (1, 0, 0);
        (i.ppe_scale_hclamp, i.ppe_scale_lclamp) = if mode == 1 {
            (255, 0)
        } else {
            (127, -128i32 as u32)
        };
        self
    }

    pub(super) fn invariant_bytes(&self) -> [u8; Invariant::BYTES] {
        let mut bytes = [0; Invariant::BYTES];
        self.invariant.encode(&mut bytes);
        for (index, entry) in self.palette.iter().enumerate() {
            bytes[PALETTE_OFFSET + 2 * index..][..2].copy_from_slice(&entry.to_le_bytes());
        }
        bytes
    }

    pub(super) fn variant_bytes(&self) -> [u8; Variant::BYTES] {
        let mut bytes = [0; Variant::BYTES];
        self.variant.encode(&mut bytes);
        for (index, halo) in self.halos.iter().enumerate() {
            halo.encode(&mut bytes[HALO_OFFSET + index * HaloRegion::BYTES..][..HaloRegion::BYTES]);
        }
        bytes
    }

    pub(super) fn decode(&self) -> Result<Workload, DecodeError> {
        self.decode_with(PostStages::Separate)
    }

    /// As the DPU with these stages does.
    pub(super) fn decode_with(&self, stages: PostStages) -> Result<Workload, DecodeError> {
        Workload::decode(
            &self.invariant_bytes(),
            &self.variant_bytes(),
            self.tile,
            stages,
        )
    }

    /// Decodes and executes.
    pub(super) fn run(&self, memory: &mut Memory) -> Result<(), Fault> {
        execute(&self.decode().expect("decodes"), memory, &mut None)
    }
}

/// The memories of six tiles.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) tiles: Vec<Vec<u8>>,
}

/// Does what a workload does; `partial` carries the accumulators from one to the next.
pub(super) fn execute(
    workload: &Workload,
    memory: &mut Memory,
    partial: &mut Option<Partial>,
) -> Result<(), Fault> {
    let tile = |tile: u8| memory.tiles.get(usize::from(tile)).map(Vec::as_slice);
    let made = workload.compute(&tile, partial.take())?;
    *partial = workload.write(made, memory)?;
    Ok(())
}

impl TileMemory for Memory {
    fn tile_mut(&mut self, tile: u8) -> Option<&mut [u8]> {
        self.tiles.get_mut(usize::from(tile)).map(Vec::as_mut_slice)
    }
}

impl Memory {
    pub(super) fn zeroed() -> Memory {
        Memory {
            tiles: vec![vec![0; TILE]; 6],
        }
    }

    /// Writes to tile 0.
    pub(super) fn put(&mut self, offset: u32, bytes: &[u8]) {
        self.tiles[0][offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    pub(super) fn put_halves(&mut self, offset: u32, values: &[f32]) {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|v| half::f16::from_f32(*v).to_le_bytes())
            .collect();
        self.put(offset, &bytes);
    }

    /// Writes a weight table entry to tile 0.
    pub(super) fn put_entry(&mut self, channel: u32, words: [u32; 4]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(TABLE + 16 * channel, &bytes);
    }

    /// Reads tile 0.
    pub(super) fn get(&self, offset: u32, size: usize) -> &[u8] {
        &self.tiles[0][offset as usize..][..size]
    }

    pub(super) fn get_halves(&self, offset: u32, count: usize) -> Vec<f32> {
        let bytes = self.get(offset, 2 * count).as_chunks().0;
        bytes
            .iter()
            .map(|b| half::f16::from_le_bytes(*b).to_f32())
            .collect()
    }
}

/// The scale word of an integer weight table entry.
pub(super) fn scale_word(multiplier: u32, shift: u32, round: u32) -> u32 {
    multiplier << 16 | round << 14 | shift << 8
}

/// A 1×1 float16 convolution whose weight of channel k for channel k is 1, with scale 1 and no bias.
pub(super) fn identity() -> (Task, Memory) {
    let mut memory = Memory::zeroed();
    for k in 0..16 {
        memory.put_entry(k, [WEIGHTS + 32 * k, NO_MAP, ONE, 0]);
        let weights: Vec<f32> = (0..16).map(|c| if c == k { 1.0 } else { 0.0 }).collect();
        memory.put_halves(WEIGHTS + 32 * k, &weights);
    }
    (Task::new(), memory)
}

/// A quantised 1×1 convolution: weights 128 + k for channel 0, activation 101 + 10 in channel 0, zero points 101 and 128.
pub(super) fn quantised() -> (Task, Memory) {
    let mut task = Task::new().integers(1);
    (
        task.invariant.mpe_actbias,
        task.invariant.mpe_wtbias,
        task.invariant.ppe_g8_bias_c,
    ) = (101, 128, 20);
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
