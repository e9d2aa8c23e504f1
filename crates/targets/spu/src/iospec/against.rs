//! A contract against the program behind it: names, lengths, precisions and scales.

use super::document::{Document, Side, Vector};
use super::{RuleSet, rules};
use crate::fqir::Lowered;
use chipless_model::{Finding, Interface, Place, Port};
use std::collections::HashMap;

/// What a program says of an input or output.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Its name.
    pub name: String,
    /// From or to the host.
    pub side: Side,
    /// Its elements.
    pub length: u64,
    /// Bits of an element.
    pub precision: u32,
    /// Scale of its integers, whose zero point is 0, where the program states one.
    pub scale: Option<f64>,
}

fn elements(port: &Port) -> u64 {
    port.shape.iter().fold(1, |n, d| n.saturating_mul(*d))
}

/// What the interface of any program says. Programs of the SPU know more: [`of_lowered`].
pub fn of_program(interface: &Interface) -> Vec<Expected> {
    let expected = |port: &Port, side| Expected {
        name: port.name.clone(),
        side,
        length: elements(port),
        precision: port.element.bits() as u32,
        scale: None,
    };
    let inputs = interface
        .inputs
        .iter()
        .map(|port| expected(port, Side::Input));
    let outputs = interface
        .outputs
        .iter()
        .map(|port| expected(port, Side::Output));
    inputs.chain(outputs).collect()
}

/// What a plan says, with precisions and scales.
pub fn of_lowered(lowered: &Lowered<'_>) -> Vec<Expected> {
    let interface = &lowered.program.interface;
    let (inputs, outputs) = (&lowered.bits.0, &lowered.bits.1);
    let bits = inputs.iter().chain(outputs);
    let quanta = lowered.quanta.0.iter().chain(&lowered.quanta.1);
    let known = bits
        .zip(quanta)
        .map(|(bits, quanta)| (u32::from(*bits), quanta.map(f64::exp2)));
    of_program(interface)
        .into_iter()
        .zip(known)
        .map(|(expected, (precision, scale))| Expected {
            precision,
            scale,
            ..expected
        })
        .collect()
}

/// Where a contract and its program differ.
pub fn against(document: &Document, rules: RuleSet, program: &[Expected]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut left: HashMap<(Side, &str), &Expected> =
        program.iter().map(|e| ((e.side, &*e.name), e)).collect();
    for vector in document.vectors() {
        let side = vector.side;
        let found = left
            .remove(&(side, &*vector.varname))
            .or_else(|| left.remove(&(side, &*vector.key)));
        if let Some(expected) = found {
            differences(vector, expected, rules, &mut findings);
        } else {
            let names: Vec<&str> = program
                .iter()
                .filter(|e| e.side == side)
                .map(|e| &*e.name)
                .collect();
            let message = format!(
                "expected an {} of the program ({}), found `{}`",
                side.name(),
                names.join(", "),
                vector.varname
            );
            findings.push(
                rules::PROGRAM_NAME
                    .under(rules)
                    .at(vector.span_of("varname").place(), message),
            );
        }
    }
    for expected in program
        .iter()
        .filter(|e| left.contains_key(&(e.side, &*e.name)))
    {
        let message = format!(
            "expected the {} `{}` of the program in the contract, found none of that name",
            expected.side.name(),
            expected.name
        );
        findings.push(rules::PROGRAM_NAME.under(rules).at(Place::file(), message));
    }
    findings
}

fn differences(vector: &Vector, expected: &Expected, rules: RuleSet, findings: &mut Vec<Finding>) {
    let name = &vector.varname;
    if !vector.varies() && u64::try_from(vector.length) != Ok(expected.length) {
        let message = format!(
            "expected {} elements of `{name}` as the program has them, found {}",
            expected.length, vector.length
        );
        findings.push(
            rules::PROGRAM_LENGTH
                .under(rules)
                .at(vector.span_of("length").place(), message),
        );
    }
    if vector.precision != i64::from(expected.precision) {
        let message = format!(
            "expected elements of {} bits of `{name}` as the program has them, found {}",
            expected.precision, vector.precision
        );
        findings.push(
            rules::PROGRAM_PRECISION
                .under(rules)
                .at(vector.span_of("precision").place(), message),
        );
    }
    let (Some(scale), Some(stated)) = (expected.scale, vector.quantization) else {
        return;
    };
    // Scales are powers of two; a decimal text of one may be off by its last digits.
    let same = (stated.scale - scale).abs() <= 1e-9 * scale.abs();
    if !same || stated.zero_point != 0.0 {
        let message = format!(
            "expected the scale {scale} and the zero point 0 of `{name}` as the program has them, found {} and {}",
            stated.scale, stated.zero_point
        );
        findings.push(
            rules::PROGRAM_SCALE
                .under(rules)
                .at(vector.span_of("quantization").place(), message),
        );
    }
}
