//! `.pt` files: what `fmot.save` and `torch.save` leave of a graph, read without executing anything.
//!
//! Such a file is a zip archive with a pickle in it, and a pickle is a program for a stack machine that may call any
//! function of any Python module. [`read`] runs it on a machine of its own that knows no function: names of classes are
//! compared with a list, calls only ever make plain data, and everything else is refused by its name. What comes out is
//! a graph of shared objects by number, so that nothing is copied however often it is referred to, and nothing nests.

mod archive;
mod array;
mod machine;
mod object;

pub(crate) use archive::{data, recognize};
pub(crate) use array::Elements;
pub(crate) use machine::read;
pub(crate) use object::{Class, Fields, Object, Objects, Value};

use chipless_model::{Finding, Place, Rule};

/// Why a file cannot be read.
pub(crate) type Error = Box<Finding>;

/// An error at an offset of the pickle.
fn at(rule: &'static Rule, offset: usize, message: impl Into<String>) -> Error {
    Box::new(rule.at(
        Place::bytes(offset as u64, 1).in_part("data.pkl"),
        message.into(),
    ))
}
