//! The blocks that a DPU works on, and how its accumulator contexts are divided among them.

use super::geometry::Axes;

/// Positions, and output channels, of a block.
pub(super) const BLOCK: (usize, usize) = (4, 16);

/// Blocks that accumulate at a time, as registers name them.
const CONTEXTS: usize = 64;

/// How the contexts are divided: `nthw_ntk`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// Blocks of positions.
    positions: usize,
}

impl Grid {
    pub(super) fn decode(nthw_ntk: u32) -> Grid {
        let positions = match nthw_ntk {
            1 => 4,
            3 => 16,
            _ => 8,
        };
        Grid { positions }
    }

    /// Passes over positions and over output channels that a box takes, with so many contexts.
    pub(super) fn passes(self, extent: Axes, contexts: f64) -> (usize, usize) {
        let Axes { x, y, z } = extent;
        let positions = x.div_ceil(BLOCK.0) * y.div_ceil(BLOCK.0);
        let channels = z.div_ceil(BLOCK.1);
        let share = contexts / CONTEXTS as f64;
        let room = |blocks: usize| ((blocks as f64 * share) as usize).max(1);
        (
            positions.div_ceil(room(self.positions)),
            channels.div_ceil(room(CONTEXTS / self.positions)),
        )
    }

    /// Whether a box accumulates at one time.
    pub(super) fn holds(self, extent: Axes) -> bool {
        self.passes(extent, CONTEXTS as f64) == (1, 1)
    }

    /// `8x8`, as the notes on VPU4 write it.
    pub(super) fn describe(self) -> String {
        format!("{}x{}", self.positions, CONTEXTS / self.positions)
    }
}
