//! One transfer of an entry: where its sides lie, and how much each of them moves.

use super::super::Findings;
use super::Context;
use crate::def::VariableType;
use crate::engine::{AccessPattern, DataType, Descriptor, MAX_DIMENSIONS, Operation};
use crate::memory::hardware_descriptors;
use crate::rules::dma as rules;
use crate::rules::stream::KEPT_BYTES;
use crate::stream::Space;
use crate::stream::operand::{kept_bytes, leaves_partitions, overlaps};

/// Runs from which on it matters how short they are: together their descriptors take a DMA engine about a millisecond.
const MANY_ROWS: u64 = 1 << 14;
/// Part of the rate below which a transfer is called slow.
const SMALL_SHARE: f64 = 0.1;

/// Bytes that the size of a write to the state buffer should be a multiple of.
const WRITE_GRANULE: u64 = 4;

/// Sources of a compute operation, at most (NEFF specification, `from_arr`).
const MAX_SOURCES: usize = 16;

impl<'a> Context<'_, 'a> {
    /// Reports transfers that spend their time on descriptors, not on bytes.
    fn short_rows(&self, descriptor: &Descriptor<'a>, at: &str, findings: &mut Findings) {
        let Some((per_descriptor, rate)) = self.hardware.dma_engine else {
            return;
        };
        let sides = descriptor.sources().chain([&descriptor.to]);
        let rows = sides.map(hardware_descriptors).max().unwrap_or(0);
        let Some(bytes) = descriptor.to.bytes().filter(|_| rows >= MANY_ROWS) else {
            return;
        };
        let moving = bytes as f64 / rate;
        let share = moving / (moving + rows as f64 * per_descriptor);
        if share < SMALL_SHARE {
            let message = format!(
                "{bytes} bytes in {rows} runs of {} bytes: each run takes a hardware descriptor of {:.0} ns, so the transfer reaches {:.1} % of the rate of its DMA engines",
                bytes / rows,
                per_descriptor * 1e9,
                share * 100.0
            );
            self.report(findings, &rules::DMA_SMALL_ROWS, at, message);
        }
    }

    pub(super) fn descriptor_on_inf1(
        &self,
        descriptor: &Descriptor<'a>,
        at: &str,
        findings: &mut Findings,
    ) {
        let scaled =
            descriptor.scale.is_some() || descriptor.from_arr.iter().any(|s| s.scale.is_some());
        let is_typed = |side: &AccessPattern<'_>| side.data_type() != DataType::UInt8;
        let fields = [
            (
                &rules::DMA_OPERATION_ARCHITECTURE,
                "op",
                descriptor.operation != Operation::Copy,
            ),
            (
                &rules::DMA_DTYPE_ARCHITECTURE,
                "from_dtype",
                descriptor.sources().any(is_typed),
            ),
            (
                &rules::DMA_DTYPE_ARCHITECTURE,
                "to_dtype",
                is_typed(&descriptor.to),
            ),
            (
                &rules::DMA_FROM_LIST_ARCHITECTURE,
                "from_arr",
                !descriptor.from_arr.is_empty(),
            ),
            (&rules::DMA_SCALE_ARCHITECTURE, "scale", scaled),
            (
                &rules::DMA_CONSTANT_ARCHITECTURE,
                "constant",
                descriptor.constant.is_some(),
            ),
            (
                &rules::DMA_TRANSPOSE_ARCHITECTURE,
                "transpose_shape",
                descriptor.transpose_shape.is_some(),
            ),
            (
                &rules::DMA_TRANSPOSE_ARCHITECTURE,
                "transpose_element_size",
                descriptor.transpose_element_size.is_some(),
            ),
        ];
        self.not_on_inf1(at, &fields, findings);
    }

    pub(super) fn descriptor(
        &self,
        descriptor: &Descriptor<'a>,
        at: &str,
        findings: &mut Findings,
    ) {
        let operation = descriptor.operation;
        let field = |name: &str| format!("{at}/{name}");
        self.short_rows(descriptor, at, findings);
        if operation == Operation::Unknown {
            let message = format!(
                "op {} is none of copy, cast, fma, add, min, max, transpose",
                self.object.says(&field("op"), findings)
            );
            self.report(findings, &rules::DMA_OPERATION, &field("op"), message);
        }
        if descriptor.from.is_some() && !descriptor.from_arr.is_empty() {
            let message = "from stands beside from_arr, which replaces it".to_owned();
            self.report(findings, &rules::DMA_FROM_BESIDE, &field("from"), message);
        }
        if operation.is_compute() {
            if descriptor.from_arr.is_empty() {
                self.report(
                    findings,
                    &rules::DMA_FROM_LIST,
                    at,
                    format!("{operation} has no from_arr"),
                );
            } else if descriptor.from_arr.len() > MAX_SOURCES {
                let message = format!(
                    "{} sources, at most {MAX_SOURCES} are possible",
                    descriptor.from_arr.len()
                );
                self.report(
                    findings,
                    &rules::DMA_FROM_LIST_LONG,
                    &field("from_arr"),
                    message,
                );
            }
        } else {
            if !descriptor.from_arr.is_empty() {
                self.report(
                    findings,
                    &rules::DMA_FROM_LIST_UNUSED,
                    &field("from_arr"),
                    format!("from_arr on {operation}"),
                );
            }
            if descriptor
                .from
                .as_ref()
                .is_none_or(|f| f.variable.is_none())
            {
                self.report(
                    findings,
                    &rules::DMA_FROM,
                    at,
                    format!("{operation} has no from"),
                );
            }
        }
        if descriptor.to.variable.is_none() {
            self.report(
                findings,
                &rules::DMA_TO,
                at,
                format!("{operation} has no to"),
            );
        }
        let mut sound = self.side(&descriptor.to, at, "to", findings);
        if descriptor.from_arr.is_empty() {
            sound &= descriptor
                .from
                .as_ref()
                .is_some_and(|from| self.side(from, at, "from", findings));
        }
        for (index, source) in descriptor.from_arr.iter().enumerate() {
            sound &= self.side(
                source,
                &field(&format!("from_arr/{index}")),
                "from",
                findings,
            );
        }
        self.destination(descriptor, &field("to"), findings);
        self.extras(descriptor, at, findings);
        if sound {
            self.amounts(descriptor, at, findings);
        }
    }

    /// Reports runs of another size than compilers like to write to the state buffer.
    fn write_size(&self, side: &AccessPattern<'a>, at: &str, findings: &mut Findings) {
        let (Some(1), Some(&run)) = (side.steps.first().copied(), side.sizes.first()) else {
            return;
        };
        if !run.is_multiple_of(WRITE_GRANULE) {
            let message = format!(
                "writes runs of {run} bytes to the state buffer, no multiple of {WRITE_GRANULE}"
            );
            self.report(
                findings,
                &rules::DMA_WRITE_SIZE,
                &format!("{at}/to_sizes"),
                message,
            );
        }
    }

    /// One side of a transfer; whether its sizes can be compared with the other side's.
    fn side(
        &self,
        side: &AccessPattern<'a>,
        at: &str,
        which: &str,
        findings: &mut Findings,
    ) -> bool {
        let field = |name: &str| format!("{at}/{which}{name}");
        if side.dtype == Some(DataType::Unknown) {
            let message = format!(
                "{which}_dtype {} is no element type",
                self.object.says(&field("_dtype"), findings)
            );
            self.report(findings, &rules::DMA_DTYPE, &field("_dtype"), message);
            return false;
        }
        let Some(name) = &side.variable else {
            return false;
        };
        if side.offset.is_none() {
            self.report(
                findings,
                &rules::DMA_FIELD,
                at,
                format!("{which}_off is missing"),
            );
        }
        let (steps, sizes) = (side.steps.len(), side.sizes.len());
        if steps != sizes || !(1..=MAX_DIMENSIONS).contains(&sizes) {
            let message = format!(
                "{which}_steps has {steps} numbers and {which}_sizes has {sizes}, expected 1 to {MAX_DIMENSIONS} in both"
            );
            self.report(findings, &rules::DMA_DIMENSIONS, &field("_steps"), message);
            return false;
        }
        if let Some(index) = side.sizes.iter().position(|size| *size == 0) {
            self.report(
                findings,
                &rules::DMA_ZERO,
                &field(&format!("_sizes/{index}")),
                format!("dimension {index} of {which} has size 0"),
            );
            return false;
        }
        let Some(variable) = self.subgraph.definition.variables.get(&**name) else {
            self.report(
                findings,
                &rules::DMA_VARIABLE,
                &field(""),
                format!("no variable is called `{name}`"),
            );
            return true;
        };
        let Some(pattern) = side.pattern() else {
            return false;
        };
        match variable.kind {
            Some(VariableType::DgeTable) => {
                self.report(
                    findings,
                    &rules::DMA_TABLE,
                    &field(""),
                    format!("`{name}` is a dge-table"),
                );
            }
            Some(VariableType::StateBuffer) => {
                if let Some(fault) =
                    leaves_partitions(&pattern, Space::StateBuffer, self.hardware.partition_bytes)
                {
                    let message = format!("{which} reaches {fault} of `{name}`");
                    self.report(
                        findings,
                        &rules::DMA_STATE_BUFFER,
                        &field("_sizes"),
                        message,
                    );
                }
                if which == "to" {
                    self.write_size(side, at, findings);
                }
                if which == "to"
                    && let Some(why) = kept_bytes(&self.subgraph.definition, &pattern)
                {
                    self.report(
                        findings,
                        &KEPT_BYTES,
                        &field("_sizes"),
                        format!("to reaches {why}"),
                    );
                }
            }
            _ => {
                if let Some(size) = variable.size.filter(|size| !pattern.fits(*size)) {
                    let extent = pattern.extent();
                    let message = format!(
                        "{which} touches bytes {} to {} of `{name}`, which has {size}",
                        extent.start, extent.end
                    );
                    self.report(findings, &rules::DMA_BOUNDS, &field("_sizes"), message);
                }
            }
        }
        if which == "to" && overlaps(&pattern) && self.rings > 1 {
            let message = "rows of the destination overlap".to_owned();
            self.report(findings, &rules::STATIC_OVERLAP, &field("_steps"), message);
        }
        true
    }

    fn destination(&self, descriptor: &Descriptor<'a>, field: &str, findings: &mut Findings) {
        let Some(name) = &descriptor.to.variable else {
            return;
        };
        let kind = self
            .subgraph
            .definition
            .variables
            .get(&**name)
            .and_then(|v| v.kind);
        if let Some(kind) = kind.filter(|k| {
            matches!(
                k,
                VariableType::Input | VariableType::File | VariableType::Pointer
            )
        }) {
            self.report(
                findings,
                &rules::DMA_WRITE_CONSTANT,
                field,
                format!("writes `{name}`, a variable of type {kind}"),
            );
        }
    }

    /// How much each side moves.
    fn amounts(&self, descriptor: &Descriptor<'a>, at: &str, findings: &mut Findings) {
        let field = |name: &str| format!("{at}/{name}");
        let show = |n: Option<u64>| n.map_or("more than 2^64".to_owned(), |n| n.to_string());
        let to = &descriptor.to;
        if matches!(
            descriptor.operation,
            Operation::Copy | Operation::Transpose | Operation::Unknown
        ) {
            let Some(from) = descriptor.sources().next() else {
                return;
            };
            let (from_bytes, to_bytes) = (from.bytes(), to.bytes());
            if from_bytes != to_bytes || from_bytes.is_none() {
                let message = format!(
                    "{} bytes are read and {} written",
                    show(from_bytes),
                    show(to_bytes)
                );
                self.report(findings, &rules::DMA_BYTES, &field("to_sizes"), message);
            } else if descriptor.operation == Operation::Copy
                && from.dtype.is_some()
                && to.dtype.is_some()
                && from.dtype != to.dtype
            {
                let message = format!("copy from {} to {}", from.data_type(), to.data_type());
                self.report(
                    findings,
                    &rules::DMA_COPY_TYPES,
                    &field("to_dtype"),
                    message,
                );
            }
            let elements = descriptor
                .transpose_shape
                .as_ref()
                .map(|s| s.iter().try_fold(1u64, |n, d| n.checked_mul(*d)));
            if let (Operation::Transpose, Some(elements), Some(size)) = (
                descriptor.operation,
                elements,
                descriptor.transpose_element_size,
            ) {
                let bytes = elements.and_then(|n| n.checked_mul(size));
                if bytes != to_bytes
                    && descriptor
                        .transpose_shape
                        .as_ref()
                        .is_some_and(|s| s.len() == MAX_DIMENSIONS)
                {
                    let message = format!(
                        "transpose_shape and transpose_element_size make {} bytes, {} are moved",
                        show(bytes),
                        show(to_bytes)
                    );
                    self.report(
                        findings,
                        &rules::DMA_TRANSPOSE_SHAPE,
                        &field("transpose_shape"),
                        message,
                    );
                }
            }
            return;
        }
        let Some(wanted) = self.elements(to, &field("to_sizes"), findings) else {
            return;
        };
        for (index, source) in descriptor.sources().enumerate() {
            let name = if descriptor.from_arr.is_empty() {
                field("from_sizes")
            } else {
                field(&format!("from_arr/{index}/from_sizes"))
            };
            if let Some(count) = self
                .elements(source, &name, findings)
                .filter(|count| *count != wanted)
            {
                let message = format!(
                    "{count} elements of {} are read, {wanted} of {} written",
                    source.data_type(),
                    to.data_type()
                );
                self.report(findings, &rules::DMA_ELEMENTS, &name, message);
            }
        }
    }

    /// Elements of a side.
    fn elements(
        &self,
        side: &AccessPattern<'a>,
        field: &str,
        findings: &mut Findings,
    ) -> Option<u64> {
        let size = side.data_type().element()?.bits() / 8;
        let Some(bytes) = side.bytes() else {
            self.report(
                findings,
                &rules::DMA_BYTES,
                field,
                "the sizes multiply to more than 2^64 bytes".into(),
            );
            return None;
        };
        if bytes % size != 0 {
            self.report(
                findings,
                &rules::DMA_PARTIAL,
                field,
                format!("{bytes} bytes are no whole number of {}", side.data_type()),
            );
            return None;
        }
        Some(bytes / size)
    }
}
