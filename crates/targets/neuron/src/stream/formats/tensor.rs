//! Elements as slots name them: an address, and steps and counts of each dimension.

/// Elements of one partition; all partitions of an instruction are walked alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// On-chip address of the first element, see `OnChip`.
    pub address: u32,
    /// Dimensions; of those behind them the step is 0 and the count 1.
    pub dimensions: usize,
    /// Elements from one index to the next, innermost first.
    pub steps: [i16; 4],
    /// Elements of each dimension, innermost first.
    pub counts: [u16; 4],
}

impl Tensor {
    /// Elements in each partition. Only four counts of 65535 reach beyond 2^63, and none beyond 2^64.
    pub fn elements(&self) -> u64 {
        self.counts.iter().map(|n| u64::from(*n)).product()
    }

    /// Elements in so many dimensions, at the start of these bytes.
    #[inline]
    pub(super) fn read<const N: usize>(bytes: &[u8]) -> Tensor {
        let bytes = &bytes[..4 + 4 * N];
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let mut tensor = Tensor {
            address: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            dimensions: N,
            steps: [0; 4],
            counts: [1; 4],
        };
        for d in 0..N {
            tensor.steps[d] = half(4 + 2 * d).cast_signed();
            tensor.counts[d] = half(4 + 2 * (N + d));
        }
        tensor
    }
}

/// Elements of one partition in groups that share a scale (OCP MX): four at each place, packed, and the scales elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Microscaled {
    /// On-chip address of the first place.
    pub address: u32,
    /// On-chip address of the first scale; of its partition only the quadrant counts.
    pub scales: u32,
    /// Elements in each partition, all four of each place counted.
    pub elements: u16,
    /// Places from one to the next.
    pub step: i8,
    /// First partition of the scales in each quadrant.
    pub scale_partition: u8,
}

impl Microscaled {
    /// Bytes of it in a slot; four more are reserved.
    pub(super) const BYTES: u8 = 12;
    /// Elements at each place.
    pub const PACKED: u16 = 4;

    /// What stands there.
    pub(super) fn read(bytes: [u8; Self::BYTES as usize]) -> Microscaled {
        let [a, b, c, d, e, f, g, h, low, high, step, scale_partition] = bytes;
        Microscaled {
            address: u32::from_le_bytes([a, b, c, d]),
            scales: u32::from_le_bytes([e, f, g, h]),
            elements: u16::from_le_bytes([low, high]),
            step: step.cast_signed(),
            scale_partition,
        }
    }

    /// Places in each partition.
    pub fn places(&self) -> u16 {
        self.elements / Self::PACKED
    }
}

/// Numbers from a base on: base plus the sum of index times step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    /// The first number.
    pub base: i32,
    /// From one index to the next, innermost first.
    pub steps: [i16; 4],
    /// Indices of each dimension, innermost first.
    pub counts: [u16; 4],
}
