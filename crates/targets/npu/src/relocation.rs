//! Kinds of relocations and what they write.
//!
//! S is the value of the symbol (the address of its section plus `st_value`, or a fixed on-chip address), A the addend,
//! old the field before. The compiler writes only `R_VPU_64` and `R_VPU_32` for NPU4000; the other kinds that make sense
//! there follow the loader's formulas.
//!
//! Source: `npu_compiler_elf`, `vpux_elf/types/vpu_extensions.hpp` and `loader/src/vpux_loader.cpp`.

/// One kind.
#[derive(Debug)]
pub struct RelocationKind {
    /// `r_type`.
    pub number: u32,
    /// Name in the loader's sources.
    pub name: &'static str,
    /// Bytes of the field.
    pub size: u8,
    /// What it writes.
    pub formula: Formula,
}

/// What a relocation writes.
#[derive(Clone, Copy, Debug)]
pub enum Formula {
    /// S + A, whatever was there.
    Replace,
    /// A function of the old field and S + A.
    Merge(fn(old: u64, sum: u64) -> u64),
    /// A function of the old field, S, the slots that the runtime has at S, and A: symbols of the runtime (NPU3720).
    Runtime(fn(old: u64, symbol: u64, slots: u64, addend: i64) -> u64),
    /// Nothing that can be known here, and why.
    Foreign(&'static str),
}

const fn kind(number: u32, name: &'static str, size: u8, formula: Formula) -> RelocationKind {
    RelocationKind {
        number,
        name,
        size,
        formula,
    }
}

/// Offset inside a tile's CMX.
const LOCAL: u64 = 0x1f_ffff;
/// The tile bits of a CMX address.
const TILES: u64 = 0x7e0_0000;
pub(crate) const RUNTIME: &str = "it counts slots of the runtime's own symbols (NPU3720)";
const MULTICAST: &str = "it spreads an NPU3720 address over tiles";
const STRIDES: &str = "it computes a descriptor from strides that are known only at the inference";

use Formula::{Foreign, Merge, Replace, Runtime};

/// Every public kind, by number.
pub static KINDS: &[RelocationKind] = &[
    kind(0, "R_VPU_64", 8, Replace),
    kind(1, "R_VPU_64_OR", 8, Merge(|old, sum| old | sum)),
    kind(
        2,
        "R_VPU_DISP40_RTM",
        8,
        Runtime(|old, symbol, slots, addend| {
            old | slot(old & DISP40, symbol, slots, addend) & DISP40
        }),
    ),
    kind(
        3,
        "R_VPU_64_LSHIFT",
        8,
        Runtime(|old, symbol, _, _| old << (symbol & 63)),
    ),
    kind(4, "R_VPU_32", 4, Replace),
    kind(5, "R_VPU_32_RTM", 4, Runtime(slot)),
    kind(6, "R_VPU_32_SUM", 4, Merge(u64::saturating_add)),
    kind(7, "R_VPU_32_MULTICAST_BASE", 4, Runtime(multicast_base)),
    kind(8, "R_VPU_32_MULTICAST_BASE_SUB", 4, Foreign(MULTICAST)),
    kind(9, "R_VPU_DISP28_MULTICAST_OFFSET", 4, Foreign(MULTICAST)),
    kind(
        10,
        "R_VPU_DISP4_MULTICAST_OFFSET_CMP",
        4,
        Foreign(MULTICAST),
    ),
    kind(
        11,
        "R_VPU_LO_21",
        4,
        Merge(|old, sum| old & !LOCAL | sum & LOCAL),
    ),
    kind(
        12,
        "R_VPU_LO_21_SUM",
        4,
        Merge(|old, sum| old + (sum & LOCAL)),
    ),
    kind(13, "R_VPU_LO_21_MULTICAST_BASE", 4, Foreign(MULTICAST)),
    kind(
        14,
        "R_VPU_16_LSB_21_RSHIFT_5",
        4,
        Merge(|old, sum| old & !0xffff | (sum & LOCAL) >> 5),
    ),
    kind(
        15,
        "R_VPU_LO_21_RSHIFT_4",
        4,
        Merge(|old, sum| old & !LOCAL | (sum & LOCAL) >> 4),
    ),
    kind(
        16,
        "R_VPU_CMX_LOCAL_RSHIFT_5",
        4,
        Merge(|_, sum| (sum & !TILES & 0xffff_ffff) >> 5),
    ),
    kind(
        17,
        "R_VPU_32_BIT_OR_B21_B26_UNSET",
        4,
        Merge(|old, sum| old | sum & !TILES),
    ),
    kind(
        18,
        "R_VPU_64_BIT_OR_B21_B26_UNSET",
        8,
        Merge(|old, sum| old | sum & !TILES),
    ),
    kind(
        19,
        "R_VPU_16_LSB_21_RSHIFT_5_LSHIFT_16",
        4,
        Merge(|old, sum| old & 0xffff | (sum & LOCAL) >> 5 << 16),
    ),
    kind(
        20,
        "R_VPU_16_LSB_21_RSHIFT_5_LSHIFT_CUSTOM",
        4,
        Merge(preempted),
    ),
    kind(
        21,
        "R_VPU_32_BIT_OR_B21_B26_UNSET_HIGH_16",
        2,
        Merge(|old, sum| old | (sum & !TILES & 0xffff_ffff) >> 16),
    ),
    kind(
        22,
        "R_VPU_32_BIT_OR_B21_B26_UNSET_LOW_16",
        2,
        Merge(|old, sum| old | sum & 0xffff),
    ),
    kind(
        23,
        "R_VPU_HIGH_27_BIT_OR",
        8,
        Foreign("it knows three tile bits (NPU5)"),
    ),
    kind(
        24,
        "R_VPU_32_OR_LO_19_LSB_21_RSHIFT_2",
        4,
        Merge(|old, sum| old & !(LOCAL >> 2) | (sum & LOCAL) >> 2),
    ),
    kind(25, "R_VPU_DMA_TASK_INPUT", 192, Foreign(STRIDES)),
    kind(26, "R_VPU_DMA_TASK_OUTPUT", 192, Foreign(STRIDES)),
    kind(27, "R_VPU_DMA_TASK_INPUT_BIT", 192, Foreign(STRIDES)),
    kind(28, "R_VPU_DMA_TASK_OUTPUT_BIT", 192, Foreign(STRIDES)),
    kind(1011, "R_VPU_16_SUM", 2, Merge(u64::saturating_add)),
    kind(
        1012,
        "R_VPU_64_MULT",
        8,
        Runtime(|old, symbol, _, _| old.wrapping_mul(symbol)),
    ),
    kind(
        1013,
        "R_VPU_64_MULT_SUB",
        8,
        Runtime(|old, symbol, _, addend| old.wrapping_mul((addend as u64).wrapping_sub(symbol))),
    ),
];

/// The address field of an NPU3720 DMA link.
const DISP40: u64 = 0xff_ffff_ffff;

/// The slot of the runtime for a descriptor whose number is in the field.
fn slot(old: u64, symbol: u64, slots: u64, addend: i64) -> u64 {
    let number = old & slots.wrapping_sub(1);
    symbol.wrapping_add_signed(addend.wrapping_mul(number as i64))
}

/// An NPU3720 address with the tile select of a multicast (bits 22 and 23) as the DPU takes it; where none is, it is the address.
fn multicast_base(_: u64, symbol: u64, _: u64, addend: i64) -> u64 {
    const SELECT: u64 = 0x00c0_0000;
    let address = symbol.wrapping_add_signed(addend);
    let base = match (address & SELECT) >> 20 {
        0 => 0,
        4 | 12 => 2 << 20,
        _ => 1 << 20,
    };
    address & !SELECT | base
}

/// A variant's link as the preemption workaround stores it: bits 1 to 15 at 17 to 31, bit 0 at 14.
fn preempted(old: u64, sum: u64) -> u64 {
    let link = (sum & LOCAL) >> 5;
    old & !0xfffe_4000 | (link & 0xfffe) << 16 | (link & 1) << 14
}

impl RelocationKind {
    /// The kind of this number.
    pub fn of(number: u32) -> Option<&'static RelocationKind> {
        match KINDS.get(number as usize) {
            Some(kind) if kind.number == number => Some(kind),
            _ => KINDS.iter().find(|kind| kind.number == number),
        }
    }

    /// The field after the relocation; `None` where it does not fit, or cannot be known.
    pub fn apply(&self, old: u64, sum: u64) -> Option<u64> {
        let new = match self.formula {
            Formula::Replace => sum,
            Formula::Merge(merge) => merge(old, sum),
            Formula::Runtime(_) | Formula::Foreign(_) => return None,
        };
        self.fitting(new)
    }

    /// The field after a relocation against a symbol of the runtime; `None` where it does not fit.
    pub fn apply_runtime(&self, old: u64, symbol: u64, slots: u64, addend: i64) -> Option<u64> {
        match self.formula {
            Formula::Runtime(formula) => self.fitting(formula(old, symbol, slots, addend)),
            _ => self.apply(old, symbol.checked_add_signed(addend)?),
        }
    }

    fn fitting(&self, new: u64) -> Option<u64> {
        (self.size >= 8 || new >> (u32::from(self.size) * 8) == 0).then_some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(number: u32, old: u64, sum: u64) -> Option<u64> {
        RelocationKind::of(number).and_then(|kind| kind.apply(old, sum))
    }

    #[test]
    fn fields_are_replaced_or_refused_where_they_overflow() {
        assert_eq!(apply(0, 7, 0x8000_1000), Some(0x8000_1000));
        assert_eq!(apply(4, 7, 0x8000_1000), Some(0x8000_1000));
        assert_eq!(apply(4, 7, 0x1_8000_1000), None);
        assert_eq!(apply(6, 0xffff_ffff, 1), None);
        assert_eq!(apply(1011, 3, 4), Some(7));
        assert_eq!(apply(25, 0, 0), None);
        assert!(RelocationKind::of(99).is_none() && RelocationKind::of(29).is_none());
    }

    #[test]
    fn merged_fields_keep_the_bits_that_are_not_theirs() {
        let cmx = 0x4040_d2a0;
        assert_eq!(apply(1, 1 << 63, cmx), Some(1 << 63 | cmx));
        assert_eq!(apply(11, 0xffe0_0001, cmx), Some(0xffe0_d2a0));
        assert_eq!(apply(12, 0x10, cmx), Some(0xd2b0));
        assert_eq!(apply(14, 0xabcd_0000, cmx), Some(0xabcd_0695));
        assert_eq!(apply(15, 0, cmx), Some(0xd2a));
        assert_eq!(apply(16, 5, cmx), Some((0x4000_d2a0) >> 5));
        assert_eq!(apply(17, 0x20_0000, cmx), Some(0x4020_d2a0));
        assert_eq!(apply(18, 0x20_0000, cmx), Some(0x4020_d2a0));
        assert_eq!(apply(19, 0x1234, cmx), Some(0x0695_1234));
        assert_eq!(apply(20, 0x1, cmx), Some(0x0694_4001));
        assert_eq!(apply(21, 0, cmx), Some(0x4000));
        assert_eq!(apply(22, 0, cmx), Some(0xd2a0));
        assert_eq!(apply(24, 0xfff8_0000, cmx), Some(0xfff8_34a8));
    }

    #[test]
    fn kinds_are_in_the_place_of_their_number() {
        for (index, kind) in KINDS.iter().enumerate() {
            assert!(kind.number as usize == index || kind.number > 1000);
            assert!(std::ptr::eq(
                RelocationKind::of(kind.number).expect("every number is found"),
                kind
            ));
        }
    }
}
