//! The attributes of a node, by name.

use super::constant::{self, Constant, Data, Externals};
use super::proto::Attribute;
use std::rc::Rc;

/// A node's attributes.
pub(super) struct Attributes<'n>(pub(super) &'n [Attribute]);

impl<'n> Attributes<'n> {
    fn find(&self, name: &str) -> Option<&'n Attribute> {
        self.0.iter().find(|a| a.name.as_deref() == Some(name))
    }

    pub(super) fn int(&self, name: &str) -> Option<i64> {
        self.find(name)?.i
    }

    pub(super) fn float(&self, name: &str) -> Option<f64> {
        self.find(name)?.f.map(f64::from)
    }

    pub(super) fn ints(&self, name: &str) -> Option<&'n [i64]> {
        self.find(name)
            .map(|a| a.ints.as_slice())
            .filter(|ints| !ints.is_empty())
    }

    /// A constant.
    pub(super) fn tensor(&self, name: &str) -> Result<Option<Constant>, String> {
        let tensor = self.find(name).and_then(|a| a.t.as_ref());
        tensor
            .map(|tensor| constant::read(tensor, &mut Externals::default(), &|_| None))
            .transpose()
    }

    /// The numbers of a `Constant` that is written without a tensor, with their ONNX type.
    pub(super) fn listed(&self, name: &str) -> Option<Constant> {
        let attribute = self.find(name)?;
        let floats = attribute.f.iter().chain(&attribute.floats);
        let mut numbers: Vec<f64> = floats.map(|v| f64::from(*v)).collect();
        let kind = if name.starts_with("value_float") {
            1
        } else {
            7
        };
        numbers.extend(attribute.i.iter().chain(&attribute.ints).map(|v| *v as f64));
        let several = name.ends_with('s');
        Some(Constant {
            name: name.to_owned(),
            shape: several
                .then_some(numbers.len() as i64)
                .into_iter()
                .collect(),
            kind,
            data: Data::There(Rc::new(numbers)),
        })
    }

    pub(super) fn text(&self, name: &str) -> Option<&'n str> {
        std::str::from_utf8(self.find(name)?.s.as_deref()?).ok()
    }
}
