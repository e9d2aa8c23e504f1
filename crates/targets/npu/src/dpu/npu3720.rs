//! Workloads of NPU3720: the registers of NPU4000 in another layout. What differs beyond that:
//!
//! - Addresses are those of the chip, and a DPU reaches the CMX of both tiles.
//! - The input may lie in two tiles, the first rows in one and the rest in the other (`sp_se_tbl_segment`, the size in `se_seg_size`).
//! - The output may be written to the second tile as well (`odu_cast`).
//! - The format of the output is numbered by type instead of by size.
//! - Swizzled addresses rotate in rows of 512 bytes.
//! - An elementwise operation's second operand counts from where the first one does.
//!
//! Sources: `vpu_nce_hw_37xx.h`; the serialisation of DPU tasks in `openvinotoolkit/npu_compiler` (VPUMI37XX).

use super::output::Output;
use super::registers::DecodeError;
use super::registers::{Invariant, Variant, field};
use super::workload::Workload;
use crate::address::CMX_REACH;
use crate::generation::PostStages;

impl Workload {
    /// Decodes a variant (64 bytes) and its invariant (304 bytes) of NPU3720, relocated.
    ///
    /// # Errors
    /// As [`decode`](Workload::decode).
    pub fn decode_3720(invariant: &[u8; 304], variant: &[u8; 64]) -> Result<Workload, DecodeError> {
        let (mut i, mut v) = (
            Invariant::decode_3720(invariant),
            Variant::decode_3720(variant),
        );
        let mut unsupported = Vec::new();
        for address in [
            &mut i.act_offset0,
            &mut i.wt_offset,
            &mut i.se_addr,
            &mut i.sparsity_addr,
            &mut i.ac_base,
        ] {
            *address &= CMX_REACH as u32 - 1;
        }
        i.ac_base >>= 4;
        v.weight_start = if i.elop_wload == 1 {
            let start = (i.act_offset0 / 16).checked_add(v.weight_start);
            start.ok_or_else(|| {
                DecodeError::new("weight_start", "an offset in CMX", v.weight_start)
            })?
        } else {
            v.weight_start & (CMX_REACH as u32 - 1)
        };
        i.dtype = match i.dtype {
            0 => 4,
            1..=3 => 3,
            4 => 5,
            5 => 2,
            6 => 1,
            8 => 0,
            other => {
                return Err(DecodeError::new(
                    "dtype",
                    "an output format, 0 to 6 or 8",
                    other,
                ));
            }
        };
        // odu_cast: whether the output goes to another tile, too, and how many units of 16 bytes further.
        let repeated = i64::from(field(invariant, 0xb0, 4, 28)) * 16;
        let is_repeated = std::mem::take(&mut i.cast_enable0) == 1;
        let mut output = Output::decode(&i, &v, std::iter::empty())?;
        if is_repeated {
            output.repeat(repeated);
        }
        // se_seg_size, in units of four pixels.
        let first = field(invariant, 0x20, 14, 18) as usize * 4;
        let is_split = i.sp_se_tbl_segment == 1 && i.act_dense == 1 && i.elop_wload == 0;
        let mut workload =
            Workload::of_registers(&i, &v, output, 0, PostStages::Separate, [0; 16])?;
        if is_split {
            let row = i.tensor_size_x.max(1) as usize;
            if !first.is_multiple_of(row) {
                unsupported.push("an input that is split between tiles inside a row (se_seg_size)");
            }
            workload.input.first_rows = Some(first / row);
        }
        if i.wt_plt_cfg != 0 {
            unsupported.push("weight palettes (wt_plt_cfg)");
        }
        if !unsupported.is_empty() {
            unsupported.extend(workload.unsupported.as_deref());
            workload.unsupported = Some(unsupported.join("; "));
        }
        workload.reach = CMX_REACH;
        let second = workload.second.as_mut().map(|second| &mut second.swizzle);
        for swizzle in [
            &mut workload.input.swizzle,
            &mut workload.weights.swizzle,
            &mut workload.output.swizzle,
        ]
        .into_iter()
        .chain(second)
        {
            *swizzle = swizzle.narrow();
        }
        Ok(workload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by fuzzing: the second operand of an elementwise operation so far behind the first one that their addresses overflow.
    #[test]
    fn an_operand_beyond_all_addresses_is_refused() {
        let refused = Workload::decode_3720(&[0xff; 304], &[0xff; 64]).unwrap_err();
        assert!(refused.to_string().contains("weight_start"), "{refused}");
    }
}
