//! Reads a network in the precision that was asked for, or in the one that supports it.

use crate::front::Front;
use crate::frontend;
use crate::import::{self, Shapes};
use crate::onnx::{self, Beside, Refused};
use std::path::{Component, Path, PathBuf};

/// Where a file lies that an ONNX file names: beside it, nowhere else. `None`: the name leads elsewhere.
pub fn beside(network: &Path, name: &str) -> Option<PathBuf> {
    let mut parts = Path::new(name).components();
    let is_plain = parts.all(|part| matches!(part, Component::Normal(_)));
    let folder = network.parent().unwrap_or(Path::new(""));
    is_plain.then(|| folder.join(name))
}

/// What numbers are stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 8-bit integers with a scale for each tensor.
    Int8,
    /// Half precision.
    Half,
}

impl Precision {
    /// As options name it.
    pub const fn name(self) -> &'static str {
        match self {
            Precision::Int8 => "int8",
            Precision::Half => "fp16",
        }
    }
}

/// How a network is read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Images, where the shapes do not say it.
    pub batch: i64,
    /// Without: int8 where it supports all layers, half precision otherwise.
    pub precision: Option<Precision>,
    /// Extents of inputs whose dimensions are open.
    pub shapes: Shapes,
}

impl Reading {
    /// The option that does not fit the others, and what is wrong with it.
    pub fn conflict(&self) -> Option<(&'static str, &'static str)> {
        match self.precision {
            Some(Precision::Half) if self.batch != 1 => Some((
                "batch",
                "expected no --batch with fp16. Pass the whole shape of each input with the batch as its first extent, as in --shape NAME=4,3,224,224: it replaces an open one, or one of 1",
            )),
            _ => None,
        }
    }

    /// The batch: in int8, shapes say it as well.
    pub fn batch(&self) -> i64 {
        let shapes = self.shapes.values().filter(|shape| shape.len() > 1);
        let told = shapes.map(|shape| shape[0]).max();
        let is_told = self.precision == Some(Precision::Int8) && self.batch == 1;
        told.filter(|_| is_told).unwrap_or(self.batch)
    }

    /// The network of an ONNX or a front-end file, and what to say of how it was read.
    ///
    /// # Errors
    /// What cannot be read or is not supported, by node.
    pub fn read(
        &self,
        bytes: &[u8],
        beside: Beside<'_>,
    ) -> Result<(Front, Option<String>), Refused> {
        if bytes.first() == Some(&b'{') {
            return Ok((frontend::read(bytes, self.batch, beside)?, None));
        }
        let in_half = || import::read(bytes, &self.shapes, beside);
        if self.precision == Some(Precision::Half)
            || self.precision.is_none() && !self.shapes.is_empty()
        {
            return Ok((in_half()?, None));
        }
        let refused = match onnx::read_shaped(bytes, self.batch(), &self.shapes, beside) {
            Err(refused) if self.precision.is_none() && self.batch == 1 => refused,
            read => return Ok((read?, None)),
        };
        // Recurrent layers are unrolled, a dozen layers for each step: that is done when it is asked for.
        let is_recurrent = |line: &String| {
            let kinds = ["(LSTM)", "(GRU)", "(RNN)"];
            kinds.iter().any(|kind| line.contains(kind))
        };
        if refused.0.iter().any(is_recurrent) {
            let text = format!("{refused} in int8; --precision fp16 unrolls recurrent layers");
            return Err(Refused(vec![text]));
        }
        // What the network lacks for int8 it may have for fp16; where it does not, that says more.
        let front = in_half()?;
        let first = refused.0.first().map_or("", String::as_str);
        let note = format!("scheduled in fp16, as int8 does not support {first}");
        Ok((front, Some(note)))
    }
}
