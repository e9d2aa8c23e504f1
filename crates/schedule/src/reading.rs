//! Reads a network in the precision that was asked for, or in the one that supports it.

use crate::front::Front;
use crate::frontend;
use crate::images;
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

/// Whether a file is a front end's own, whatever is in it.
pub fn is_front_end(bytes: &[u8]) -> bool {
    chipless_gemini::Network::recognize(bytes)
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

/// A network as it was read.
#[derive(Clone, Debug)]
pub struct Network {
    /// The network.
    pub front: Front,
    /// Images that each layer takes.
    pub batch: i64,
    /// Images that are computed: the batch, or more where layers are repeated for each.
    pub images: i64,
    /// Why layers are repeated for each image.
    pub repeated: Option<String>,
    /// What to say of the precision.
    pub note: Option<String>,
}

impl Network {
    fn new(front: Front, batch: i64) -> Network {
        Network {
            front,
            batch,
            images: batch,
            repeated: None,
            note: None,
        }
    }
}

impl Reading {
    /// The images: the batch, or the first extents of shapes.
    fn images(&self, counts: impl Fn(&String) -> bool) -> i64 {
        let shapes = self.shapes.iter().filter(|(_, shape)| shape.len() > 1);
        let told = shapes.filter(|(name, _)| counts(name));
        let told = told.map(|(_, shape)| shape[0]).max();
        told.filter(|_| self.batch == 1).unwrap_or(self.batch)
    }

    fn in_half(&self, bytes: &[u8], beside: Beside<'_>) -> Result<Network, Refused> {
        // A first dimension that the model fixes counts something else.
        let open = if self.shapes.is_empty() {
            Vec::new()
        } else {
            onnx::of_images(bytes)
        };
        let images = self.images(|name| open.contains(name));
        if images == 1 {
            return Ok(Network::new(import::read(bytes, &self.shapes, beside)?, 1));
        }
        let several = images::read(bytes, (&self.shapes, images), beside)?;
        let inputs = several.front.inputs.iter();
        let mut inputs = inputs.filter_map(|input| input.declared.as_ref());
        if self.batch > 1 && !inputs.any(|input| input.shape.first() == Some(&images)) {
            let text = format!(
                "no input of the model has an open first dimension, or one of 1, for a batch of {images}"
            );
            return Err(Refused(vec![text]));
        }
        let is_known = several.batch > 1 || several.repeated.is_some();
        Ok(Network {
            images: if is_known { images } else { self.batch },
            repeated: several.repeated,
            ..Network::new(several.front, several.batch)
        })
    }

    /// The network of an ONNX or a front-end file.
    ///
    /// # Errors
    /// What cannot be read or is not supported, by node.
    pub fn read(&self, bytes: &[u8], beside: Beside<'_>) -> Result<Network, Refused> {
        if bytes.first() == Some(&b'{') {
            if self.precision == Some(Precision::Half) {
                let text = "in fp16, ONNX models are scheduled; a front-end file says the types of its layers itself";
                return Err(Refused(vec![text.to_owned()]));
            }
            let front = frontend::read(bytes, self.batch, beside)?;
            return Ok(Network::new(front, self.batch));
        }
        if self.precision == Some(Precision::Half)
            || self.precision.is_none() && !self.shapes.is_empty()
        {
            return self.in_half(bytes, beside);
        }
        // In int8, the first dimension is the batch.
        let batch = self.images(|_| true);
        let refused = match onnx::read_shaped(bytes, batch, &self.shapes, beside) {
            Ok(front) => return Ok(Network::new(front, batch)),
            Err(refused) if self.precision.is_none() => refused,
            Err(Refused(mut lines)) => {
                if self.in_half(bytes, beside).is_ok() {
                    lines.push("--precision fp16 takes the whole network; int8 may take a part of it that you cut out (onnx.utils.extract_model)".to_owned());
                }
                return Err(Refused(lines));
            }
        };
        // Recurrent layers are unrolled, a dozen layers for each step: that is done when it is asked for.
        let is_recurrent = |line: &String| {
            let kinds = ["(LSTM)", "(GRU)", "(RNN)"];
            kinds.iter().any(|kind| line.contains(kind))
        };
        if refused.0.iter().any(is_recurrent) {
            let mut lines = refused.0;
            lines.push(
                "--precision fp16 unrolls recurrent layers, into a dozen layers for each step"
                    .to_owned(),
            );
            return Err(Refused(lines));
        }
        // What the network lacks for int8 it may have for fp16; where it does not, that says more.
        let mut network = self.in_half(bytes, beside)?;
        let first = refused.0.first().map_or("", String::as_str);
        network.note = Some(format!(
            "scheduled in fp16, as int8 does not support {first}"
        ));
        Ok(network)
    }
}
