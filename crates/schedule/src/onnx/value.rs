//! What the tensors of a graph are.

use super::attributes::Attributes;
use super::constant::Constant;
use crate::front::{Layout, Piece, Quantisation};
use std::rc::Rc;

/// Scales of a quantised constant, and their axis.
pub(super) type Scales = (Vec<f64>, i64);

/// What a tensor is.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// A constant, with scales where it is made of stored integers.
    Constant(Constant, Option<Scales>),
    /// Made by layers or given to the network.
    Value(Value),
    /// Made by what is not supported.
    Unknown,
}

/// A tensor that is no constant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    pub(super) pieces: Vec<Piece>,
    /// Channels, rows, columns.
    pub(super) extents: [i64; 3],
    pub(super) layout: Layout,
    pub(super) quantisation: Option<Quantisation>,
    /// What the file stores it as, where it is stored.
    pub(super) stored_as: Stored,
    /// The node that joined the pieces or took a part.
    pub(super) name: Option<Rc<str>>,
}

impl Value {
    /// Its pieces, with how they are stored here before they become a part of something else.
    pub(super) fn stored(&self) -> impl Iterator<Item = Piece> {
        self.pieces.iter().map(|piece| {
            let mut piece = piece.clone();
            piece.through.extend(self.quantisation);
            piece
        })
    }

    /// Extents as the file writes them, without the batch.
    pub(super) fn dims(&self) -> Vec<i64> {
        let [c, h, w] = self.extents;
        match self.layout {
            Layout::Map => vec![c, h, w],
            Layout::Line => vec![c, h],
            Layout::Sequence => vec![h, c],
            Layout::Vector => vec![c * h * w],
            Layout::Split(g) => vec![h, g, c / g],
            Layout::Heads(g) => vec![g, h, c / g],
            Layout::Parts(p, g) => vec![h, p, g, c / p / g],
            Layout::Stacked(p, g) => vec![p, g, h, c / p / g],
        }
    }

    /// Extents as the file writes them.
    pub(super) fn shape(&self, batch: i64) -> Vec<i64> {
        let mut shape = self.dims();
        let images = usize::from(matches!(self.layout, Layout::Stacked(..)));
        shape.insert(images, batch);
        shape
    }
}

/// What came of a node.
pub(super) type Outcome = Result<Known, String>;

/// What 8 bits stand for in the file; here they are always signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    Signed,
    Unsigned,
}

impl Stored {
    /// From the ONNX type of a zero point; where there is none, as the node says or `otherwise`.
    pub(super) fn of(
        zero: Option<i32>,
        attributes: &Attributes<'_>,
        otherwise: Stored,
    ) -> Result<Stored, String> {
        let said = attributes.int("output_dtype").filter(|kind| *kind != 0);
        match zero.map(i64::from).or(said) {
            None => Ok(otherwise),
            Some(2) => Ok(Stored::Unsigned),
            Some(3) => Ok(Stored::Signed),
            Some(kind) => Err(format!(
                "integers of ONNX type {kind} are not supported; expected 8 bits (types 2 and 3)"
            )),
        }
    }

    /// ONNX's number of the type.
    pub(super) const fn kind(self) -> i32 {
        match self {
            Stored::Unsigned => 2,
            Stored::Signed => 3,
        }
    }

    pub(super) const fn range(self) -> [f64; 2] {
        match self {
            Stored::Unsigned => [0.0, 255.0],
            Stored::Signed => [-128.0, 127.0],
        }
    }

    /// What is taken away to make signed numbers of it.
    pub(super) const fn shift(self) -> f64 {
        match self {
            Stored::Unsigned => 128.0,
            Stored::Signed => 0.0,
        }
    }
}
