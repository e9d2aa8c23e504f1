//! Frames of boxes. The format description counts the boxes of `ofmap` from the corner of the layer; published files count
//! them from the lower corner of their workload, in which case most of them begin at 0.

use crate::schedule::{Bounds, Dialect, Ofmap, Schedule, Workload};

/// From where a file counts the boxes of `ofmap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// From the corner of the layer.
    Layer,
    /// From the lower corner of the workload.
    Workload,
}

impl Frames {
    /// From where this file counts: from the workload if a box would not lie in its workload otherwise.
    pub fn of(schedule: &Schedule) -> Frames {
        let outside = |w: &Workload| w.ofmaps.iter().any(|o| !w.bounds.contains(&o.bounds));
        if schedule.dialect == Dialect::Spec && schedule.workloads().any(|(_, w)| outside(w)) {
            Frames::Workload
        } else {
            Frames::Layer
        }
    }

    /// The box of a piece in its layer. Channels that lie in the workload as they are were not moved: hand-made files count
    /// only N, H and W from the workload.
    pub fn piece(self, workload: &Workload, ofmap: &Ofmap) -> Bounds {
        let (mut piece, of) = (ofmap.bounds, &workload.bounds);
        if self == Frames::Workload {
            for d in 0..4 {
                if d != 1 || piece.lower[d] < of.lower[d] || piece.upper[d] > of.upper[d] {
                    piece.lower[d] = piece.lower[d].saturating_add(of.lower[d]);
                    piece.upper[d] = piece.upper[d].saturating_add(of.lower[d]);
                }
            }
        }
        piece
    }
}
