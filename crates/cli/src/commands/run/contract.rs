//! A run that keeps to an IOSpec: which inputs must be given, and what they may hold.

use super::inputs::Given;
use crate::failure::Failure;
use chipless::spu::iospec::{Document, SequenceKind, Vector};
use chipless_model::{ElementType, Kind, Port, Program};
use std::path::Path;

/// Whether a document has one simple sequence with outputs, besides latched ones: then a run is a firing.
pub(super) fn is_plain(document: &Document) -> bool {
    let mut with_outputs = document.sequences.iter().filter(|s| !s.is_latched());
    with_outputs
        .next()
        .is_some_and(|s| s.kind == SequenceKind::Simple)
        && with_outputs.next().is_none()
}

/// A contract and the program that it is for.
pub(super) struct Contract {
    name: String,
    document: Document,
}

impl Contract {
    /// A document as a contract of a program; [`is_plain`] holds of it.
    pub(super) fn of(
        path: &Path,
        document: Document,
        program: &Program<'_>,
    ) -> Result<Contract, Failure> {
        let contract = Contract {
            name: path.display().to_string(),
            document,
        };
        let document = &contract.document;
        contract.matches(&document.inputs, &program.interface.inputs, "input")?;
        contract.matches(&document.outputs, &program.interface.outputs, "output")?;
        if let Some(port) = program
            .interface
            .inputs
            .iter()
            .find(|p| contract.vector(&p.name).is_none())
        {
            return Err(contract.says(format_args!(
                "expected the program's input \"{}\", found none",
                port.name
            )));
        }
        Ok(contract)
    }

    fn says(&self, text: impl std::fmt::Display) -> Failure {
        Failure::wrong(&self.name, text)
    }

    fn vector(&self, name: &str) -> Option<&Vector> {
        self.document.inputs.iter().find(|v| v.varname == name)
    }

    fn matches(&self, vectors: &[Vector], ports: &[Port], side: &str) -> Result<(), Failure> {
        for vector in vectors {
            let name = &vector.varname;
            let Some(port) = ports.iter().find(|p| p.name == *name) else {
                let names: Vec<&str> = ports.iter().map(|p| &*p.name).collect();
                let hint = chipless::suggest::hint(name, names.iter().copied());
                return Err(self.says(format_args!(
                    "expected an {side} of the program ({}), found \"{name}\"{hint}",
                    names.join(", ")
                )));
            };
            let elements: u128 = port.shape.iter().map(|n| u128::from(*n)).product();
            if vector.length as i128 != elements as i128 {
                return Err(self.says(format_args!(
                    "expected {elements} elements of \"{name}\" as the program has them, found {}",
                    vector.length
                )));
            }
            let bits = port.element.bits();
            if vector.precision != bits as i64 && vector.element() != port.element {
                return Err(self.says(format_args!(
                    "expected {bits} bits of \"{name}\" as the program has them, found {}",
                    vector.precision
                )));
            }
        }
        Ok(())
    }

    /// Inputs that are zero unless they are given: latched ones. Every other one must be given.
    pub(super) fn zeros(
        &self,
        program: &Program<'_>,
        given: &[Given],
    ) -> Result<Vec<usize>, Failure> {
        let lacking = (0..program.interface.inputs.len())
            .filter(|port| !given.iter().any(|g| g.port == *port));
        let mut zeros = Vec::new();
        for port in lacking {
            let name = &program.interface.inputs[port].name;
            let latched = self
                .vector(name)
                .is_some_and(|v| self.document.is_latched(&v.key));
            if !latched {
                let sequence = self
                    .document
                    .sequences
                    .iter()
                    .find(|s| !s.is_latched())
                    .map_or("", |s| &*s.name);
                let text = format_args!(
                    "expected --input {name}=FILE.npy: {sequence} takes \"{name}\" before its outputs come (kSpuSequenceError on the device)"
                );
                return Err(self.says(text));
            }
            zeros.push(port);
        }
        Ok(zeros)
    }

    /// Refuses integers beyond the precision of their vector.
    pub(super) fn in_range(&self, port: &Port, bytes: &[u8]) -> Result<(), Failure> {
        let Some(range) = self.vector(&port.name).and_then(Vector::range) else {
            return Ok(());
        };
        if port.element.kind() != Kind::Signed
            || port.element != ElementType::Int32
            || *range.end() >= i64::from(i32::MAX)
        {
            return Ok(());
        }
        let values = bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| i64::from(i32::from_le_bytes(*b)));
        match values.enumerate().find(|(_, v)| !range.contains(v)) {
            Some((at, value)) => Err(self.says(format_args!(
                "expected integers of {} to {} for \"{}\", found {value} at element {at}",
                range.start(),
                range.end(),
                port.name
            ))),
            None => Ok(()),
        }
    }
}
