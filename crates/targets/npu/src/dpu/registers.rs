//! The registers of a DPU task, field by field, under the names of the public register tables (NPU4 types, 40XX).
//!
//! Only fields that decide what a task computes, or that must have one value for it to be computed at all, are listed:
//! tags, clock gates, profiling, barrier masks and links belong to others or change nothing.

use crate::structures::Layout;

/// Bits `bit..bit + width` of the little-endian word at `offset`; zero where the descriptor is too short to hold it.
pub(super) fn field(bytes: &[u8], offset: usize, bit: u32, width: u32) -> u32 {
    let word = bytes
        .get(offset..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |word| u32::from_le_bytes(*word));
    (word >> bit) & (u32::MAX >> (32 - width))
}

#[cfg(test)]
fn set_field(bytes: &mut [u8], offset: usize, bit: u32, width: u32, value: u32) {
    let mask = u32::MAX >> (32 - width);
    assert!(
        value <= mask,
        "{value:#x} does not fit into {width} bits at {offset:#x}"
    );
    let word: &mut [u8; 4] = bytes[offset..]
        .first_chunk_mut()
        .expect("offset inside the descriptor");
    *word = ((u32::from_le_bytes(*word) & !(mask << bit)) | (value << bit)).to_le_bytes();
}

macro_rules! registers {
    ($(#[$doc:meta])* $name:ident $bytes:literal { $($field:ident $offset:literal [$bit:literal + $width:literal];)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub(super) struct $name { $(pub(super) $field: u32,)* }

        impl $name {
            /// Bytes of the descriptor.
            pub(super) const BYTES: usize = $bytes;
            /// Name, word, first bit and width of each field.
            #[allow(dead_code, reason = "errors name no field of a halo region")]
            const FIELDS: &[(&str, usize, u32, u32)] = &[$((stringify!($field), $offset, $bit, $width)),*];

            pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Self {
                $name { $($field: field(bytes, $offset, $bit, $width),)* }
            }

            #[cfg(test)]
            pub(super) fn encode(&self, bytes: &mut [u8]) {
                $(set_field(bytes, $offset, $bit, $width, self.$field);)*
            }
        }
    };
}

/// The same registers where another generation has them; those that it lacks are zero.
macro_rules! layout {
    ($(#[$doc:meta])* $decode:ident $fields:ident $name:ident $bytes:literal { $($field:ident $offset:literal [$bit:literal + $width:literal];)* }) => {
        impl $name {
            $(#[$doc])*
            #[allow(clippy::needless_update, reason = "a variant has all of its registers")]
            pub(super) fn $decode(bytes: &[u8; $bytes]) -> Self {
                $name { $($field: field(bytes, $offset, $bit, $width),)* ..$name::default() }
            }

            /// Name, word, first bit and width of each field there.
            const $fields: &[(&str, usize, u32, u32)] = &[$((stringify!($field), $offset, $bit, $width)),*];
        }
    };
}

/// Where a register field stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// In the variant, or else in the invariant.
    pub in_variant: bool,
    /// Byte of its 32-bit word in the descriptor.
    pub offset: usize,
    /// Its lowest bit.
    pub bit: u32,
    /// Its bits.
    pub width: u32,
}

impl Register {
    /// Its value in a descriptor.
    pub fn value(self, descriptor: &[u8]) -> u32 {
        field(descriptor, self.offset, self.bit, self.width)
    }
}

/// The register field of a name.
pub fn register(layout: Layout, name: &str) -> Option<Register> {
    let find = |fields: &[(&str, usize, u32, u32)], in_variant| {
        let (_, offset, bit, width) = *fields.iter().find(|field| field.0 == name)?;
        Some(Register {
            in_variant,
            offset,
            bit,
            width,
        })
    };
    let (invariant, variant) = match layout {
        Layout::Npu3720 => (Invariant::FIELDS_3720, Variant::FIELDS_3720),
        Layout::Npu4000 => (Invariant::FIELDS, Variant::FIELDS),
    };
    find(invariant, false).or_else(|| find(variant, true))
}

registers! {
    /// `VpuDPUInvariant`: what all variants of a layer on one tile share.
    Invariant 352 {
        se_addr 0x14 [0 + 32];
        sparsity_addr 0x18 [0 + 32];
        se_z_split 0x20 [0 + 4];
        num_ses_in_z_dir 0x20 [4 + 9];
        cm_sp_pattern 0x20 [13 + 16];
        npo2_se_z_split_en 0x20 [29 + 1];
        pad_en 0x24 [1 + 4];
        kernel_y 0x24 [5 + 4];
        kernel_x 0x24 [9 + 4];
        wt_plt_cfg 0x24 [13 + 2];
        act_dense 0x24 [15 + 1];
        wt_dense 0x24 [16 + 1];
        stride_y_en 0x24 [17 + 1];
        stride_y 0x24 [18 + 3];
        layer1_wt_sp_ins 0x24 [23 + 1];
        layer1_cmp_en 0x24 [24 + 1];
        sp_se_tbl_segment 0x24 [29 + 1];
        tensor_size_x 0x28 [0 + 14];
        tensor_size_y 0x28 [14 + 14];
        tensor_size_z 0x2c [0 + 14];
        npo2_se_size 0x2c [14 + 9];
        tensor_cmp_size 0x2c [23 + 4];
        tensor_cmp_offset 0x2c [27 + 4];
        tensor_start 0x30 [0 + 32];
        wmode 0x34 [0 + 4];
        amode 0x34 [4 + 4];
        stride 0x34 [8 + 3];
        zm_input 0x34 [11 + 1];
        dw_input 0x34 [12 + 1];
        cm_input 0x34 [13 + 1];
        workload_operation 0x34 [14 + 2];
        elop_wload 0x40 [0 + 1];
        seed_wload 0x40 [1 + 1];
        fifo_wr_wload 0x40 [2 + 1];
        elop_wload_type 0x40 [3 + 1];
        pool_wt_data 0x40 [4 + 16];
        pool_wt_rd_dis 0x40 [26 + 1];
        elop_operation 0x40 [27 + 3];
        repeat_dis 0x40 [30 + 1];
        act_offset0 0x44 [0 + 32];
        wt_offset 0x5c [0 + 32];
        dtype 0x60 [0 + 3];
        sp_out_en 0x60 [13 + 1];
        write_sp 0x60 [15 + 1];
        write_pt 0x60 [16 + 1];
        write_ac 0x60 [17 + 1];
        swizzle_key 0x60 [21 + 3];
        permutation 0x60 [27 + 3];
        te_dim_y 0x70 [0 + 13];
        te_dim_z 0x70 [13 + 13];
        te_dim_x 0x74 [0 + 13];
        mpe_wtbias 0x80 [0 + 8];
        mpe_actbias 0x80 [8 + 8];
        mpe_daz 0x80 [22 + 1];
        mpe_ftz 0x80 [23 + 1];
        elop_scale_b 0x88 [0 + 16];
        elop_scale_a 0x88 [16 + 16];
        ppe_g8_bias_c 0x8c [0 + 9];
        ppe_bias 0x90 [0 + 32];
        ppe_scale_shift 0x94 [2 + 6];
        ppe_scale_round 0x94 [10 + 2];
        ppe_scale_mult 0x94 [16 + 16];
        ppe_scale_override 0x98 [0 + 1];
        ppe_fp_scale_override 0x98 [1 + 1];
        ppe_prelu_shift 0x9c [8 + 5];
        ppe_prelu_mult 0x9c [16 + 11];
        ppe_scale_hclamp 0xa0 [0 + 32];
        ppe_scale_lclamp 0xa4 [0 + 32];
        ppe_mode 0xa8 [0 + 2];
        ppe_rnd_fd 0xa8 [2 + 2];
        ppe_rnd_int 0xa8 [4 + 2];
        ppe_fp16_ftz 0xa8 [6 + 1];
        ppe_fp16_clamp 0xa8 [7 + 1];
        ppe_i32_convert 0xa8 [8 + 2];
        ppe_mult2_mode 0xa8 [12 + 1];
        ppe_fp_bias 0xac [0 + 32];
        ppe_fp_scale 0xb0 [0 + 32];
        ppe_fp_prelu 0xb4 [0 + 32];
        ppe_fp_convert 0xb8 [0 + 3];
        ppe_fp_bypass 0xb8 [3 + 1];
        ppe_bf16_round 0xb8 [4 + 1];
        ppe_fp_prelu_en 0xb8 [5 + 1];
        ac_base 0xbc [4 + 28];
        cast_enable0 0xc8 [0 + 1];
        cast_enable1 0xcc [0 + 1];
        cast_enable2 0xd0 [0 + 1];
    }
}

registers! {
    /// `VpuDPUVariant`: one box of the output.
    Variant 224 {
        workload_size_x 0x4 [0 + 14];
        workload_size_y 0x4 [14 + 14];
        workload_size_z 0x8 [0 + 14];
        pad_count_up 0x8 [14 + 3];
        pad_count_left 0x8 [17 + 3];
        pad_count_down 0x8 [20 + 3];
        pad_count_right 0x8 [23 + 3];
        workload_start_x 0xc [0 + 14];
        workload_start_y 0xc [14 + 14];
        workload_start_z 0x10 [0 + 14];
        bin_cfg 0x14 [2 + 1];
        nthw_ntk 0x14 [0 + 2];
        conv_cond 0x14 [3 + 1];
        dense_se 0x14 [4 + 1];
        swizzle_key_offset 0x14 [6 + 3];
        sb_read_en 0x14 [22 + 1];
        tensor2_act_dense 0x14 [23 + 1];
        wt_swizzle_key 0x14 [27 + 3];
        te_beg_y 0xa4 [0 + 13];
        te_beg_z 0xa4 [13 + 13];
        te_beg_x 0xa8 [0 + 13];
        te_end_y 0xac [0 + 13];
        te_end_z 0xac [13 + 13];
        te_end_x 0xb0 [0 + 13];
        weight_start 0xbc [0 + 32];
    }
}

layout! {
    /// From the 304 bytes that `VpuDPUInvariant` of NPU3720 takes, the numbers as they stand there.
    decode_3720 FIELDS_3720 Invariant 304 {
        se_addr 0x0 [0 + 32];
        sparsity_addr 0x4 [0 + 32];
        se_z_split 0x2c [0 + 4];
        num_ses_in_z_dir 0x2c [4 + 9];
        cm_sp_pattern 0x2c [13 + 16];
        kernel_y 0x30 [5 + 4];
        kernel_x 0x30 [9 + 4];
        wt_plt_cfg 0x30 [13 + 2];
        act_dense 0x30 [15 + 1];
        wt_dense 0x30 [16 + 1];
        stride_y_en 0x30 [17 + 1];
        stride_y 0x30 [18 + 3];
        layer1_wt_sp_ins 0x30 [23 + 1];
        layer1_cmp_en 0x30 [24 + 1];
        sp_se_tbl_segment 0x30 [29 + 1];
        tensor_size_x 0x40 [0 + 14];
        tensor_size_y 0x40 [14 + 14];
        tensor_size_z 0x44 [0 + 14];
        tensor_start 0x48 [0 + 32];
        wmode 0x4c [0 + 4];
        amode 0x4c [4 + 4];
        stride 0x4c [8 + 3];
        zm_input 0x4c [11 + 1];
        dw_input 0x4c [12 + 1];
        cm_input 0x4c [13 + 1];
        workload_operation 0x4c [14 + 2];
        elop_wload 0x58 [0 + 1];
        seed_wload 0x58 [1 + 1];
        fifo_wr_wload 0x58 [2 + 1];
        elop_wload_type 0x58 [3 + 1];
        pool_wt_data 0x58 [4 + 16];
        pool_wt_rd_dis 0x58 [26 + 1];
        act_offset0 0x5c [0 + 32];
        wt_offset 0x74 [0 + 32];
        dtype 0x78 [0 + 4];
        sp_out_en 0x78 [13 + 1];
        write_sp 0x78 [15 + 1];
        write_pt 0x78 [16 + 1];
        write_ac 0x78 [17 + 1];
        swizzle_key 0x78 [21 + 3];
        permutation 0x78 [27 + 3];
        te_dim_y 0x88 [0 + 13];
        te_dim_z 0x88 [13 + 13];
        te_dim_x 0x8c [0 + 13];
        ac_base 0xa0 [0 + 32];
        cast_enable0 0xb0 [0 + 1];
        cast_enable1 0xb4 [0 + 1];
        cast_enable2 0xb8 [0 + 1];
        mpe_wtbias 0xbc [0 + 8];
        mpe_actbias 0xbc [8 + 8];
        mpe_daz 0xbc [22 + 1];
        mpe_ftz 0xbc [23 + 1];
        elop_scale_b 0xc4 [0 + 16];
        elop_scale_a 0xc4 [16 + 16];
        ppe_g8_bias_c 0xc8 [0 + 9];
        ppe_bias 0xcc [0 + 32];
        ppe_scale_shift 0xd0 [2 + 6];
        ppe_scale_round 0xd0 [10 + 2];
        ppe_scale_mult 0xd0 [16 + 16];
        ppe_scale_override 0xd4 [0 + 1];
        ppe_fp_scale_override 0xd4 [1 + 1];
        ppe_prelu_shift 0xd8 [8 + 5];
        ppe_prelu_mult 0xd8 [16 + 11];
        ppe_scale_hclamp 0xe4 [0 + 32];
        ppe_scale_lclamp 0xe8 [0 + 32];
        ppe_fp16_ftz 0xf0 [6 + 1];
        ppe_fp16_clamp 0xf0 [7 + 1];
        ppe_i32_convert 0xf0 [8 + 2];
        ppe_fp_bias 0xf4 [0 + 32];
        ppe_fp_scale 0xf8 [0 + 32];
        ppe_fp_prelu 0xfc [0 + 32];
        ppe_fp_convert 0x100 [0 + 3];
        ppe_fp_bypass 0x100 [3 + 1];
        ppe_bf16_round 0x100 [4 + 1];
        ppe_fp_prelu_en 0x100 [5 + 1];
    }
}

layout! {
    /// From the 64 bytes that `VpuDPUVariant` of NPU3720 takes, the numbers as they stand there.
    decode_3720 FIELDS_3720 Variant 64 {
        workload_size_x 0x0 [0 + 14];
        workload_size_y 0x0 [14 + 14];
        workload_size_z 0x4 [0 + 14];
        pad_count_up 0x4 [14 + 3];
        pad_count_left 0x4 [17 + 3];
        pad_count_down 0x4 [20 + 3];
        pad_count_right 0x4 [23 + 3];
        workload_start_x 0x8 [0 + 14];
        workload_start_y 0x8 [14 + 14];
        workload_start_z 0xc [0 + 14];
        bin_cfg 0x10 [2 + 1];
        nthw_ntk 0x10 [0 + 2];
        conv_cond 0x10 [3 + 1];
        dense_se 0x10 [4 + 1];
        swizzle_key_offset 0x10 [6 + 3];
        wt_swizzle_key 0x10 [27 + 3];
        te_end_y 0x14 [0 + 13];
        te_end_z 0x14 [13 + 13];
        te_end_x 0x18 [0 + 13];
        te_beg_y 0x1c [0 + 13];
        te_beg_z 0x1c [13 + 13];
        te_beg_x 0x20 [0 + 13];
        weight_start 0x34 [0 + 32];
    }
}

registers! {
    /// One of the six halo regions of a variant.
    HaloRegion 16 {
        tile_select 0x0 [22 + 7];
        enable 0x0 [31 + 1];
        ac_adr_offset 0x4 [0 + 22];
        target_width_lsb 0x4 [22 + 10];
        begin_x 0x8 [0 + 13];
        begin_y 0x8 [13 + 13];
        target_width_msb 0x8 [26 + 4];
        end_x 0xc [0 + 13];
        end_y 0xc [13 + 13];
    }
}

/// Where the halo regions stand in a variant.
pub(super) const HALO_OFFSET: usize = 0x40;

/// The halo regions of a variant, enabled or not.
pub(super) fn halo_regions(variant: &[u8; Variant::BYTES]) -> impl Iterator<Item = HaloRegion> {
    let regions = variant
        .get(HALO_OFFSET..HALO_OFFSET + 6 * HaloRegion::BYTES)
        .unwrap_or_default();
    regions.as_chunks().0.iter().map(HaloRegion::decode)
}

/// Where the palette stands in an invariant.
pub(super) const PALETTE_OFFSET: usize = 0xe0;

/// The sixteen palette entries of an invariant, two to a register, low half first.
pub(super) fn palette(invariant: &[u8; Invariant::BYTES]) -> [u16; 16] {
    let mut entries = [0; 16];
    for (entry, bytes) in entries.iter_mut().zip(
        invariant
            .get(PALETTE_OFFSET..)
            .unwrap_or_default()
            .as_chunks()
            .0,
    ) {
        *entry = u16::from_le_bytes(*bytes);
    }
    entries
}

/// A register value that no DPU can execute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: expected {expected}, found {found}")]
pub struct DecodeError {
    /// The register field, under its name in the register tables.
    pub field: &'static str,
    /// What it may hold.
    pub expected: String,
    /// What it holds.
    pub found: String,
}

impl DecodeError {
    pub(super) fn new(
        field: &'static str,
        expected: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) -> DecodeError {
        DecodeError {
            field,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}
