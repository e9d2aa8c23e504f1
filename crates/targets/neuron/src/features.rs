//! The header's feature bits by name.
//!
//! The vendor documents no names for most bits. Those marked measured agree with what the programs that set them
//! really use; the others come from a third party's analysis of the runtime and are hints.

use std::fmt;

/// What a runtime must know to take a file (header, offset 544).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Features(pub u64);

/// One feature bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The bit's value.
    pub bit: u64,
    /// Short name.
    pub name: &'static str,
    /// What it stands for.
    pub meaning: &'static str,
    /// Whether programs at hand confirm the meaning.
    pub measured: bool,
}

const fn feature(bit: u32, name: &'static str, meaning: &'static str, measured: bool) -> Feature {
    Feature {
        bit: 1 << bit,
        name,
        meaning,
        measured,
    }
}

/// Queue sets have instances that can be swapped.
pub const QUEUE_SET_INSTANCES: u64 = 1 << 4;
/// The program calls functions.
pub const HAS_FUNCTIONS: u64 = 1 << 5;
/// Static descriptors have three or four dimensions.
pub const HIGHER_DIMENSIONS: u64 = 1 << 9;
/// A logical core has more than one physical core.
pub const LOGICAL_CORES: u64 = 1 << 10;
/// Instructions hand over transfers whose descriptors are made at run time.
pub const DYNAMIC_DESCRIPTORS: u64 = 1 << 12;
/// Such transfers convert elements.
pub const DYNAMIC_CAST: u64 = 1 << 15;
/// Hardware makes such descriptors.
pub const HARDWARE_DESCRIPTORS: u64 = 1 << 21;
/// Transfers signal semaphores of the other core.
pub const REMOTE_SEMAPHORES: u64 = 1 << 14;

/// The known bits, lowest first.
pub const FEATURES: &[Feature] = &[
    feature(
        1,
        "collectives-offset",
        "collective operations take an offset",
        false,
    ),
    feature(2, "custom-ops", "custom operators", false),
    feature(3, "coalesced-cc", "coalesced collective operations", false),
    feature(
        4,
        "queue-set-instances",
        "queue sets have instances that can be swapped",
        true,
    ),
    feature(5, "on-chip-functions", "the program calls functions", true),
    feature(
        6,
        "dynamic-pwp",
        "activation tables loaded at run time",
        false,
    ),
    feature(
        7,
        "indirect-memcpy-32b-sem-wait",
        "indirect copies wait for 32-bit semaphores",
        false,
    ),
    feature(
        8,
        "indirect-memcpy-bound-check",
        "indirect copies check their bounds",
        false,
    ),
    feature(
        9,
        "dma-desc-higher-dim",
        "DMA descriptors of three and four dimensions",
        true,
    ),
    feature(
        10,
        "vnc",
        "a logical core of more than one physical core",
        true,
    ),
    feature(
        11,
        "dve-perf-mode",
        "the vector engine's performance mode",
        true,
    ),
    feature(12, "dge", "descriptors made at run time (DGE)", true),
    feature(
        13,
        "pool-rsqrt",
        "reciprocal square root on the GpSimd engine",
        false,
    ),
    feature(
        14,
        "remote-semaphores",
        "transfers signal semaphores of the other core",
        true,
    ),
    feature(
        15,
        "dge-cast",
        "casts in descriptors made at run time",
        true,
    ),
    feature(
        16,
        "vector-dge",
        "descriptors made at run time from vectors of indices",
        false,
    ),
    feature(
        17,
        "embedding-stride-32",
        "embedding updates with 32-bit strides",
        false,
    ),
    feature(
        20,
        "sqi-no-rearm",
        "queue instances without rearming",
        false,
    ),
    feature(21, "hardware-dge", "descriptors made by hardware", true),
    feature(
        22,
        "partial-sb2sb-ccop",
        "collective operations between parts of state buffers",
        false,
    ),
    feature(
        24,
        "architecture-extension",
        "instructions of later architectures",
        false,
    ),
    feature(25, "large-tensors", "tensors beyond 4 GiB", false),
];

impl Features {
    /// Whether all bits of a mask are set.
    pub const fn has(self, mask: u64) -> bool {
        self.0 & mask == mask
    }

    /// The known features that are set, lowest first.
    pub fn known(self) -> impl Iterator<Item = &'static Feature> {
        FEATURES.iter().filter(move |f| self.has(f.bit))
    }

    /// The bits that are set and have no name.
    pub fn unknown(self) -> u64 {
        self.0 & !FEATURES.iter().fold(0, |mask, f| mask | f.bit)
    }
}

/// Names, joined by commas; bits without a name as `bit 40`.
impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("none");
        }
        let unknown = self.unknown();
        let unnamed = (0..64)
            .filter(|bit| unknown >> bit & 1 == 1)
            .map(|bit| format!("bit {bit}"));
        let names: Vec<String> = self
            .known()
            .map(|feature| feature.name.to_owned())
            .chain(unnamed)
            .collect();
        f.write_str(&names.join(", "))
    }
}
