//! DMA descriptors of NPU3720: planes of lines, on each side.

use crate::bytes::{Record, bits};
use crate::dma::{Descriptor, Operation};
use chipless_model::{Loop, Pattern};

/// Registers that programs read: counters of time. They read as zero.
const TIMERS: std::ops::Range<u64> = 0x2000_0000..0x2e00_0000;

impl Descriptor {
    /// What moves nothing and knows no barriers.
    pub(crate) fn synchronise() -> Descriptor {
        Descriptor {
            link: 0,
            waits: 0,
            posts: 0,
            uses_barriers: false,
            in_order: true,
            mode: None,
            operation: Operation::Synchronise,
        }
    }

    /// Decodes the fields of a descriptor (`vpu_dma_descriptor`), relocated. What follows it is known from the list.
    pub(crate) fn decode_3720(bytes: &[u8]) -> Descriptor {
        let r = Record(bytes);
        let cfg = r.u64(8);
        let (source, destination) = (r.u64(16), r.u64(24));
        let (kind, decodes) = (bits(cfg, 0, 2), bits(cfg, 28, 1) == 1);
        let (length, planes) = (u64::from(r.u32(32)), u64::from(r.u8(36)) + 1);
        let side = |plane: usize, width: usize| {
            let plane = Loop {
                count: planes,
                stride: i64::from(r.u32(plane) as i32),
            };
            let (run, stride) = (u64::from(r.u32(width)), i64::from(r.u32(width + 4) as i32));
            if kind == 0 || run == 0 || run >= length {
                return Some(Pattern::new(0, length, [plane]));
            }
            let lines = Loop {
                count: length / run,
                stride,
            };
            length
                .is_multiple_of(run)
                .then(|| Pattern::new(0, run, [lines, plane]))
        };
        let unsupported = |what| Operation::Unsupported {
            what,
            destination,
            bytes: length.saturating_mul(planes),
        };
        let operation = match (side(40, 48), side(44, 56)) {
            _ if kind > 1 => unsupported("a DMA job type that is not public"),
            _ if decodes => unsupported("DMA decompression"),
            _ if length == 0 => Operation::Synchronise,
            // Profiled programs copy the chip's timers.
            (_, Some(to)) if TIMERS.contains(&source) => Operation::Fill {
                value: 0,
                destination,
                to,
            },
            (Some(from), Some(to)) => Operation::Move {
                source,
                from,
                destination,
                to,
                conversion: None,
            },
            _ => unsupported("a DMA whose last line is shorter than the others"),
        };
        // The masks follow the attributes of lines, where there are any.
        let masks = if kind == 0 { 48 } else { 64 };
        let is_used = bits(cfg, 29, 1) == 1;
        let mask = |at| if is_used { u128::from(r.u64(at)) } else { 0 };
        Descriptor {
            link: 0,
            waits: mask(masks + 8),
            posts: mask(masks),
            uses_barriers: is_used,
            in_order: bits(cfg, 26, 1) == 1,
            mode: None,
            operation,
        }
    }
}
