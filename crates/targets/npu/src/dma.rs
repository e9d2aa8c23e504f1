//! DMA descriptors: what they move.
//!
//! A descriptor is 224 bytes: 192 of hardware fields, then fields of the scheduler. Source and destination are walked
//! independently, each a run of `width` bytes inside up to five loops; the byte streams match.

use crate::address::Target;
use crate::bytes::{Record, bits};
use crate::image::Image;
use chipless_model::{ElementType, Loop, Pattern};

/// Bytes of a descriptor (NPU4 `VpuDMATask`).
pub(crate) const SIZE: usize = 224;

/// A decoded descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// Address of the next descriptor of the list; 0 ends it.
    pub(crate) link: u64,
    /// Physical barriers waited for and consumed.
    pub(crate) waits: u128,
    /// Physical barriers produced.
    pub(crate) posts: u128,
    /// Whether its barriers count at all.
    pub(crate) uses_barriers: bool,
    /// Whether it starts after the transfer before it has ended. Otherwise the two may be under way together.
    pub(crate) in_order: bool,
    /// A mode whose meaning is not public: it is not known what the descriptor touches, or which one comes after it.
    pub(crate) mode: Option<&'static str>,
    /// What moves.
    pub(crate) operation: Operation,
}

/// What a descriptor does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Nothing moves: barriers only.
    Synchronise,
    /// Bytes move, possibly converted.
    Move {
        /// Source address and walk, the walk relative to the address.
        source: u64,
        /// Walk of the source.
        from: Pattern,
        /// Destination address.
        destination: u64,
        /// Walk of the destination.
        to: Pattern,
        /// Element types before and after, if they differ.
        conversion: Option<(ElementType, ElementType)>,
    },
    /// Rows picked by a list of indices move to consecutive places.
    Gather {
        /// Address of row 0.
        source: u64,
        /// Bytes of a row.
        row: u64,
        /// CMX address of the list of 64-bit row indices.
        list: u64,
        /// Entries of the list.
        count: u64,
        /// Destination address.
        destination: u64,
        /// Walk of the destination.
        to: Pattern,
    },
    /// A pattern of eight bytes is repeated over the destination.
    Fill {
        /// The bytes.
        value: u64,
        /// Destination address.
        destination: u64,
        /// Walk of the destination.
        to: Pattern,
    },
    /// Known by its layout only: named, never executed.
    Unsupported {
        /// What it is.
        what: &'static str,
        /// Destination address.
        destination: u64,
        /// Destination bytes, for the estimate of time.
        bytes: u64,
    },
}

impl Operation {
    /// Decodes what a descriptor does with its two sides.
    fn decode(
        r: Record<'_>,
        mode: Option<&'static str>,
        loops: usize,
        from: Pattern,
        to: Pattern,
    ) -> Operation {
        let (cfg, word) = (r.u64(16), |at| u64::from(r.u32(at)));
        let (source, destination) = (bits(r.u64(40), 0, 48), bits(r.u64(48), 0, 48));
        let (memset, source_list, destination_list) =
            (bits(cfg, 30, 1), bits(cfg, 35, 2), bits(cfg, 37, 2));
        let (conversion, acceleration, tile4) =
            (bits(cfg, 39, 3), bits(cfg, 42, 2), bits(cfg, 44, 2));
        let unsupported = |what| Operation::Unsupported {
            what,
            destination,
            bytes: to.bytes().unwrap_or(0),
        };
        if let Some(mode) = mode {
            unsupported(mode)
        } else if loops > 5 {
            unsupported("a DMA of more than six dimensions")
        } else if acceleration != 0 {
            unsupported(
                [
                    "",
                    "DMA compression",
                    "DMA decompression",
                    "DMA weight preparation",
                ][acceleration as usize],
            )
        } else if tile4 != 0 {
            unsupported("DMA to or from the tile4 layout")
        } else if destination_list != 0 {
            unsupported("DMA scatter (a list of destinations)")
        } else if source_list == 1 || source_list == 3 {
            unsupported("DMA gather by a list of addresses")
        } else if source_list == 2 {
            if conversion == 0 {
                let (row, count, list) = (word(24), word(96), word(112));
                Operation::Gather {
                    source,
                    row,
                    list,
                    count,
                    destination,
                    to: Pattern::contiguous(0, word(28)),
                }
            } else {
                unsupported("DMA gather with a conversion")
            }
        } else if to.run == 0 && (from.run == 0 || memset != 0) {
            Operation::Synchronise
        } else if memset != 0 {
            Operation::Fill {
                value: r.u64(32),
                destination,
                to,
            }
        } else {
            use ElementType::{BFloat16, Float16, Float32, Int4, Int8};
            match conversion {
                0 => Operation::Move {
                    source,
                    from,
                    destination,
                    to,
                    conversion: None,
                },
                1 => Operation::Move {
                    source,
                    from,
                    destination,
                    to,
                    conversion: Some((Int8, Int4)),
                },
                3 => Operation::Move {
                    source,
                    from,
                    destination,
                    to,
                    conversion: Some((Float32, Float16)),
                },
                4 => Operation::Move {
                    source,
                    from,
                    destination,
                    to,
                    conversion: Some((Float32, BFloat16)),
                },
                2 => unsupported(
                    "DMA conversion fp16 to fp8 (which of the two fp8 formats is not public)",
                ),
                _ => unsupported("a DMA conversion that is not public"),
            }
        }
    }
}

impl Descriptor {
    /// Decodes the fields of a descriptor (offsets in bytes as the NPU4 header of the firmware interface gives them).
    pub(crate) fn decode(bytes: &[u8]) -> Descriptor {
        let r = Record(bytes);
        let cfg = r.u64(16);
        let loops = bits(cfg, 0, 3) as usize;
        // Sizes hold n − 1; strides are signed.
        let side = |width: usize, sizes: [u64; 5], strides: [usize; 5]| {
            let levels = sizes.into_iter().zip(strides).take(loops.min(5));
            Pattern::new(
                0,
                u64::from(r.u32(width)),
                levels.map(|(n, at)| Loop {
                    count: n + 1,
                    stride: i64::from(r.u32(at) as i32),
                }),
            )
        };
        let (word, half) = (|at| u64::from(r.u32(at)), |at| u64::from(r.u16(at)));
        let from = side(
            24,
            [word(96), word(112), half(128), half(130), half(136)],
            [104, 120, 144, 152, 160],
        );
        let to = side(
            28,
            [word(100), word(116), half(132), half(134), half(140)],
            [108, 124, 148, 156, 164],
        );
        let is_relative = |at: usize| bits(r.u64(at), 63, 1) == 1;
        let mode = if is_relative(0) || is_relative(40) || is_relative(48) {
            Some("addresses that are relative (dma_lra, dma_sra, dma_dra)")
        } else if bits(cfg, 33, 2) != 0 {
            Some("the modes rwf_en and rws_en")
        } else {
            None
        };
        Descriptor {
            link: if is_relative(0) {
                0
            } else {
                bits(r.u64(0), 0, 48)
            },
            mode,
            waits: r.mask(72, 88),
            posts: r.mask(64, 80),
            uses_barriers: bits(cfg, 29, 1) == 1,
            in_order: bits(cfg, 28, 1) == 1,
            operation: Operation::decode(r, mode, loops, from, to),
        }
    }

    /// Bytes read and written, if they can be counted: they must match.
    pub(crate) fn lengths(&self) -> Option<(u64, u64)> {
        match &self.operation {
            Operation::Move {
                from,
                to,
                conversion,
                ..
            } => {
                let read = from.bytes()?;
                let read = match conversion {
                    None => read,
                    Some((before, after)) => (read.checked_mul(8)? / before.bits())
                        .checked_mul(after.bits())?
                        .div_ceil(8),
                };
                Some((read, to.bytes()?))
            }
            Operation::Gather { row, count, to, .. } => {
                Some((row.checked_mul(*count)?, to.bytes()?))
            }
            Operation::Fill { to, .. } => to.bytes().map(|n| (n, n)),
            Operation::Synchronise | Operation::Unsupported { .. } => Some((0, 0)),
        }
    }

    /// Bytes that cross the memory system.
    pub(crate) fn moved(&self) -> u64 {
        match &self.operation {
            Operation::Synchronise => 0,
            Operation::Unsupported { bytes, .. } => *bytes,
            Operation::Move { from, to, .. } => {
                from.bytes().unwrap_or(0).max(to.bytes().unwrap_or(0))
            }
            Operation::Gather { to, .. } | Operation::Fill { to, .. } => to.bytes().unwrap_or(0),
        }
    }

    /// Where the descriptor writes, if it writes.
    pub(crate) fn destination(&self, image: &Image<'_>) -> Option<Target> {
        match &self.operation {
            Operation::Move { destination, .. }
            | Operation::Gather { destination, .. }
            | Operation::Fill { destination, .. } => Some(image.resolve(*destination)),
            Operation::Synchronise | Operation::Unsupported { .. } => None,
        }
    }
}
