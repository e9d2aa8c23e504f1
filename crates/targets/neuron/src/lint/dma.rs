//! DMA descriptors.

use super::{Findings, Hardware, Object, SEMAPHORES, keys};
use crate::def::{Owner, QueueType, VariableType};
use crate::engine::{
    AccessPattern, ConstantType, DataType, Descriptor, DmaEntry, MAX_DIMENSIONS, Operation,
};
use crate::graph::Architecture;
use crate::memory;
use crate::read::{EngineRoom, Neff, Subgraph};
use crate::rules::dma as rules;
use crate::stream::operand::{kept_bytes, leaves_partitions, overlaps};
use crate::stream::rules::{KEPT_BYTES, NOT_EXECUTED};
use crate::stream::{Space, Stream};
use chipless_model::Rule;
use std::collections::HashMap;

/// Sources of a compute operation, at most (NEFF specification, `from_arr`).
const MAX_SOURCES: usize = 16;
/// Hardware descriptors of a ring, at most (driver, ring limits).
const MAX_RING_DESCRIPTORS: u64 = (1 << 24) - 16;
/// Opcode of the slot that begins a function.
const FUNCTION_BEGIN: u8 = 0xd1;

pub(super) fn check(
    neff: &Neff<'_>,
    hardware: Hardware,
    subgraph: &Subgraph<'_>,
    findings: &mut Findings,
) {
    for room in &subgraph.engines {
        let Some(source) = &room.source else { continue };
        let mut amounts: HashMap<(u64, &str), (u64, u64, usize)> = HashMap::new();
        let mut functions: HashMap<&str, &str> = HashMap::new();
        for (index, entry) in room.file.dma.iter().enumerate() {
            if entry.is_unread {
                continue;
            }
            let pointer = format!("/dma/{index}");
            let object = Object {
                source,
                text: entry.text,
                pointer: &pointer,
            };
            let set = entry
                .queue_name()
                .and_then(|name| subgraph.definition.queue_set(name))
                .and_then(|set| subgraph.definition.queues.get_index(set));
            let context = Context {
                neff,
                subgraph,
                room,
                object,
                hardware,
                rings: set.map_or(1, |(_, set)| set.queues()),
            };
            context.entry(entry, findings);
            // Functions belong to queue sets: `function_start` holds for the entries of the same set behind it.
            let queue = entry.queue_name().unwrap_or_default();
            if let Some(start) = &entry.function_start {
                functions.insert(queue, start);
            }
            let function = functions.get(queue).copied().unwrap_or_default();
            let rows = entry
                .descriptors
                .iter()
                .map(|d| d.to.rows().unwrap_or(u64::MAX))
                .fold(0, u64::saturating_add);
            let amount = (entry.descriptors.len() as u64, rows);
            let Some(id) = entry.id else { continue };
            let first = *amounts
                .entry((id, function))
                .or_insert((amount.0, amount.1, index));
            if (first.0, first.1) != amount {
                let message = format!(
                    "id {id} has {} transfers and {} destination rows here, {} and {} in entry {}",
                    amount.0, amount.1, first.0, first.1, first.2
                );
                findings.report(&rules::DMA_AMOUNT, || object.at("/id"), message);
            }
        }
        undeclared_functions(room, findings);
    }
    for ((name, queue), descriptors) in subgraph
        .definition
        .queues
        .iter()
        .zip(memory::ring_descriptors(subgraph))
    {
        let each = descriptors / queue.queues().max(1);
        if each > MAX_RING_DESCRIPTORS {
            let message = format!(
                "queue set `{name}` puts about {each} descriptors into each of its {} rings",
                queue.queues()
            );
            let place = || {
                subgraph
                    .source
                    .place(queue.text, &format!("/dma_queue/{name}"), "")
            };
            findings.report(&rules::RING_LENGTH, place, message);
        }
    }
}

/// Functions are declared by slots. What else such a slot says is not public, so only their absence is reported.
fn undeclared_functions(room: &EngineRoom<'_>, findings: &mut Findings) {
    let stream = Stream::new(room.instructions.map_or(&[][..], |m| m.bytes));
    if stream
        .slots
        .iter()
        .any(|slot| slot.head.opcode == FUNCTION_BEGIN)
    {
        return;
    }
    let mut starts = room
        .file
        .dma
        .iter()
        .enumerate()
        .filter(|(_, e)| e.function_start.as_ref().is_some_and(|f| !f.is_empty()));
    if let (Some((index, first)), Some(source)) = (starts.next(), &room.source) {
        let name = first.function_start.as_deref().unwrap_or_default();
        let message = match starts.count() {
            0 => format!("function `{name}` is named, the instructions declare none"),
            more => format!(
                "function `{name}` and {more} more are named, the instructions declare none"
            ),
        };
        findings.report(
            &rules::DMA_FUNCTION,
            || source.place(first.text, &format!("/dma/{index}"), "/function_start"),
            message,
        );
    }
}

/// Where a descriptor stands.
#[derive(Clone, Copy)]
struct Context<'c, 'a> {
    neff: &'c Neff<'a>,
    subgraph: &'c Subgraph<'a>,
    room: &'c EngineRoom<'a>,
    object: Object<'a, 'c>,
    hardware: Hardware,
    /// Rings of the queue set.
    rings: u64,
}

impl<'a> Context<'_, 'a> {
    fn report(&self, findings: &mut Findings, rule: &'static Rule, field: &str, message: String) {
        findings.report(rule, || self.object.at(field), message);
    }

    /// Fields that inf1 does not have. One that says what holds without it asks for nothing and is no fault.
    fn not_on_inf1(
        &self,
        at: &str,
        fields: &[(&'static Rule, &str, bool)],
        findings: &mut Findings,
    ) {
        for (rule, name, _) in fields.iter().filter(|(_, _, present)| *present) {
            self.report(
                findings,
                rule,
                &format!("{at}/{name}"),
                format!("{name} is not supported on inf1"),
            );
        }
    }

    fn descriptor_on_inf1(&self, descriptor: &Descriptor<'a>, at: &str, findings: &mut Findings) {
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

    fn entry(&self, entry: &DmaEntry<'a>, findings: &mut Findings) {
        if entry.id.is_none() {
            self.report(
                findings,
                &rules::DMA_ID,
                "",
                "the descriptor has no id".into(),
            );
        }
        self.queue(entry, findings);
        if self.hardware.architecture == Architecture::Inf1 {
            let fields = [
                (
                    &rules::DMA_INSTANCE_ARCHITECTURE,
                    "instance_name",
                    entry.instance_name.as_ref().is_some_and(|n| !n.is_empty()),
                ),
                (
                    &rules::DMA_FUNCTION_ARCHITECTURE,
                    "function_start",
                    entry.function_start.as_ref().is_some_and(|f| !f.is_empty()),
                ),
                (
                    &rules::DMA_SECTION_ARCHITECTURE,
                    "section_start_desc",
                    entry.section_start_desc,
                ),
            ];
            self.not_on_inf1("", &fields, findings);
        }
        if let Some(event) = entry.event.filter(|e| *e >= SEMAPHORES) {
            self.report(
                findings,
                &rules::DMA_EVENT,
                "/event",
                format!("event {event}, a core has {SEMAPHORES}"),
            );
        }
        if let Some(semaphore) = entry.semaphore.filter(|s| *s >= SEMAPHORES) {
            self.report(
                findings,
                &rules::DMA_SEMAPHORE,
                "/semaphore",
                format!("semaphore {semaphore}, a core has {SEMAPHORES}"),
            );
        }
        let definition = &self.subgraph.definition;
        if let Some(semaphore) = entry
            .semaphore
            .filter(|s| *s < definition.runtime_semaphores)
        {
            let message = format!(
                "semaphore {semaphore}, the runtime keeps 0 to {}",
                definition.runtime_semaphores - 1
            );
            self.report(findings, &rules::DMA_RESERVED, "/semaphore", message);
        }
        if let Some(event) = entry.event.filter(|e| *e < definition.runtime_events) {
            let message = format!(
                "event {event}, the runtime keeps 0 to {}",
                definition.runtime_events - 1
            );
            self.report(findings, &rules::DMA_RESERVED, "/event", message);
        }
        for (index, semaphore) in entry
            .remote_semaphores
            .iter()
            .enumerate()
            .filter(|(_, s)| **s >= SEMAPHORES)
        {
            let message = format!("remote semaphore {semaphore}, a core has {SEMAPHORES}");
            self.report(
                findings,
                &rules::DMA_REMOTE,
                &format!("/remote_semaphores/{index}"),
                message,
            );
        }
        if !entry.remote_semaphores.is_empty() {
            if !self.hardware.architecture.has_logical_cores() {
                let message = format!(
                    "remote_semaphores on {}",
                    self.hardware.architecture.families()
                );
                self.report(
                    findings,
                    &rules::DMA_REMOTE_ARCHITECTURE,
                    "/remote_semaphores",
                    message,
                );
            }
            if self.neff.subgraphs.len() < 2 {
                let message = format!(
                    "remote_semaphores, but the program has {} subgraph",
                    self.neff.subgraphs.len()
                );
                self.report(
                    findings,
                    &rules::DMA_REMOTE_ALONE,
                    "/remote_semaphores",
                    message,
                );
            }
        }
        if entry.descriptors.is_empty() {
            self.report(
                findings,
                &rules::DMA_EMPTY,
                "",
                "the descriptor has no transfer in desc".into(),
            );
        }
        self.keys(entry, findings);
        for (index, descriptor) in entry.descriptors.iter().enumerate() {
            let at = if entry.bare {
                "/desc".to_owned()
            } else {
                format!("/desc/{index}")
            };
            self.descriptor(descriptor, &at, findings);
            if self.hardware.architecture == Architecture::Inf1 {
                self.descriptor_on_inf1(descriptor, &at, findings);
            }
        }
    }

    /// Optional keys that are misspelt, in the entry, its transfers and their sources.
    fn keys(&self, entry: &DmaEntry<'a>, findings: &mut Findings) {
        if findings.full() {
            return;
        }
        let known = (keys::ENTRY, keys::ENTRY_REQUIRED);
        keys::check(self.object, "", entry.text, known, findings);
        let Some(list) = crate::json::child(entry.text, "desc") else {
            return;
        };
        let mut transfer = |at: &str, text: &str| {
            let known = (keys::TRANSFER, keys::TRANSFER_REQUIRED);
            keys::check(self.object, at, text, known, findings);
            if let Some(sources) = crate::json::child(text, "from_arr") {
                crate::json::items(sources, |index, source| {
                    let known = (keys::SOURCE, keys::SOURCE_REQUIRED);
                    let at = format!("{at}/from_arr/{index}");
                    keys::check(self.object, &at, source, known, findings);
                    true
                });
            }
        };
        if entry.bare {
            transfer("/desc", list);
        } else {
            crate::json::items(list, |index, text| {
                transfer(&format!("/desc/{index}"), text);
                true
            });
        }
    }

    fn queue(&self, entry: &DmaEntry<'a>, findings: &mut Findings) {
        let definition = &self.subgraph.definition;
        let instance = entry.instance_name.as_ref().filter(|n| !n.is_empty());
        let queue = entry.queue.as_ref().filter(|n| !n.is_empty());
        let set = match (instance, queue) {
            (None, None) => {
                self.report(
                    findings,
                    &rules::DMA_QUEUE,
                    "",
                    "neither queue nor instance_name".into(),
                );
                return;
            }
            (Some(instance), _) => {
                let set = definition
                    .queue_set(instance)
                    .filter(|_| !definition.queues.contains_key(&**instance));
                if set.is_none() {
                    self.report(
                        findings,
                        &rules::DMA_INSTANCE_UNKNOWN,
                        "/instance_name",
                        format!("no queue set has an instance `{instance}`"),
                    );
                }
                set
            }
            (None, Some(queue)) => {
                let set = definition.queues.get_index_of(&**queue);
                if set.is_none() {
                    self.report(
                        findings,
                        &rules::DMA_QUEUE_UNKNOWN,
                        "/queue",
                        format!("no queue set is called `{queue}`"),
                    );
                }
                set
            }
        };
        let Some((name, set)) = set.and_then(|set| definition.queues.get_index(set)) else {
            return;
        };
        let is_own = |semaphore: u64| {
            set.semaphore == Some(semaphore) || set.semaphore_set.contains(&semaphore)
        };
        let has_own = set.semaphore.is_some() || !set.semaphore_set.is_empty();
        if let Some(semaphore) = entry
            .semaphore
            .filter(|semaphore| has_own && !is_own(*semaphore))
        {
            let message = format!("semaphore {semaphore} is none of queue set `{name}`");
            self.report(findings, &rules::DMA_SEMAPHORE_SET, "/semaphore", message);
        }
        let field = if instance.is_some() {
            "/instance_name"
        } else {
            "/queue"
        };
        let to = |descriptor: &Descriptor<'_>| {
            let name = descriptor.to.variable.as_deref()?;
            definition.variables.get(name)?.kind
        };
        let (direction, strange) = match set.kind {
            Some(QueueType::In) => ("in", VariableType::Output),
            Some(QueueType::Out) => ("out", VariableType::Input),
            _ => ("", VariableType::Unknown),
        };
        if !direction.is_empty() && entry.descriptors.iter().any(|d| to(d) == Some(strange)) {
            let message =
                format!("queue set `{name}` is of type {direction} and writes an {strange}");
            self.report(findings, &rules::DMA_DIRECTION, field, message);
        }
        if set.kind == Some(QueueType::Dynamic) {
            let message = format!(
                "queue set `{name}` is of type dynamic: its descriptors are made at run time"
            );
            self.report(findings, &rules::DMA_QUEUE_TYPE, field, message);
        }
        let variable =
            |d: &Descriptor<'_>| definition.variables.get(&**d.to.variable.as_ref()?)?.kind;
        let leaves =
            |d: &Descriptor<'_>| variable(d).is_some_and(|kind| kind != VariableType::StateBuffer);
        if set.pinned == Some(true)
            && self.hardware.architecture == Architecture::Inf1
            && entry.descriptors.iter().any(leaves)
        {
            let message = format!(
                "queue set `{name}` is pinned, the transfer does not go to the state buffer"
            );
            self.report(findings, &rules::DMA_QUEUE_TYPE, field, message);
        }
        if let Some(Owner::Engine(owner)) = set
            .owner()
            .filter(|owner| *owner != Owner::Engine(self.room.engine))
        {
            let message = format!(
                "queue set `{name}` is owned by {owner}, the descriptor stands in the file of {}",
                self.room.engine
            );
            self.report(findings, &rules::DMA_OWNER, field, message);
        }
    }

    fn descriptor(&self, descriptor: &Descriptor<'a>, at: &str, findings: &mut Findings) {
        let operation = descriptor.operation;
        let field = |name: &str| format!("{at}/{name}");
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

    /// Fields that belong to one operation only.
    fn extras(&self, descriptor: &Descriptor<'a>, at: &str, findings: &mut Findings) {
        let operation = descriptor.operation;
        let field = |name: &str| format!("{at}/{name}");
        let scaled = descriptor.from_arr.iter().position(|s| s.scale.is_some());
        let scale_field = scaled.map_or_else(
            || field("scale"),
            |index| field(&format!("from_arr/{index}/scale")),
        );
        let has_scale = descriptor.scale.is_some() || scaled.is_some();
        if has_scale && operation != Operation::Fma {
            self.report(
                findings,
                &rules::DMA_SCALE,
                &scale_field,
                format!("scale on {operation}"),
            );
        }
        if descriptor.scale_dtype.is_some() && operation != Operation::Fma {
            self.report(
                findings,
                &rules::DMA_SCALE,
                &field("scale_dtype"),
                format!("scale_dtype on {operation}"),
            );
        }
        if let Some(dtype) = descriptor.scale_dtype.filter(|d| *d != DataType::Float32) {
            self.report(
                findings,
                &rules::DMA_SCALE_DTYPE,
                &field("scale_dtype"),
                format!("scale_dtype is {dtype}, expected float32"),
            );
        }
        self.constant(descriptor, at, findings);
        let transposed =
            descriptor.transpose_shape.is_some() || descriptor.transpose_element_size.is_some();
        let name = if descriptor.transpose_shape.is_some() {
            "transpose_shape"
        } else {
            "transpose_element_size"
        };
        if transposed && operation != Operation::Transpose {
            self.report(
                findings,
                &rules::DMA_TRANSPOSE_UNUSED,
                &field(name),
                format!("{name} on {operation}"),
            );
        }
        if operation == Operation::Transpose && descriptor.transpose_shape.is_none() {
            let message = "a transposition without transpose_shape: which dimensions change places is not public";
            self.report(findings, &NOT_EXECUTED, at, message.into());
        }
        if let Some(shape) = descriptor
            .transpose_shape
            .as_ref()
            .filter(|s| s.len() != MAX_DIMENSIONS)
        {
            let message = format!(
                "transpose_shape has {} numbers, expected {MAX_DIMENSIONS}",
                shape.len()
            );
            self.report(
                findings,
                &rules::DMA_TRANSPOSE_SHAPE,
                &field("transpose_shape"),
                message,
            );
        }
        if let Some(size) = descriptor
            .transpose_element_size
            .filter(|s| !matches!(s, 2 | 4))
        {
            let message = format!("elements of {size} bytes, the hardware transposes 2 and 4");
            self.report(
                findings,
                &rules::DMA_TRANSPOSE_ELEMENT,
                &field("transpose_element_size"),
                message,
            );
        }
        if let (Operation::Transpose, Some(size), Some(element)) = (
            operation,
            descriptor.transpose_element_size,
            descriptor.to.dtype.and_then(DataType::element),
        ) && size != element.bits() / 8
        {
            let message = format!(
                "elements of {size} bytes, to_dtype is {}",
                descriptor.to.data_type()
            );
            self.report(
                findings,
                &rules::DMA_TRANSPOSE_ELEMENT,
                &field("transpose_element_size"),
                message,
            );
        }
        let dimensions = descriptor
            .sources()
            .map(|s| s.sizes.len())
            .chain([descriptor.to.sizes.len()])
            .max()
            .unwrap_or(0);
        if let Some(tiled) = descriptor
            .num_tiling_dimensions
            .filter(|n| !(1..=dimensions as u64).contains(n))
        {
            let message = format!("{tiled} tiling dimensions, the transfer has {dimensions}");
            self.report(
                findings,
                &rules::DMA_TILING,
                &field("num_tiling_dimensions"),
                message,
            );
        }
    }

    fn constant(&self, descriptor: &Descriptor<'a>, at: &str, findings: &mut Findings) {
        let field = |name: &str| format!("{at}/{name}");
        let takes = matches!(descriptor.operation, Operation::Min | Operation::Max);
        let fits = |low: f64, high: f64| {
            descriptor
                .constant
                .is_none_or(|c| c.fract() == 0.0 && (low..=high).contains(&c))
        };
        let valid = match descriptor.constant_dtype {
            None => {
                if descriptor.constant.is_some() {
                    self.report(
                        findings,
                        &rules::DMA_CONSTANT_UNUSED,
                        &field("constant"),
                        "constant without constant_dtype is ignored".into(),
                    );
                }
                return;
            }
            Some(ConstantType::Unknown) => {
                let message = format!(
                    "constant_dtype {} is none of float32, int32, uint32",
                    self.object.says(&field("constant_dtype"), findings)
                );
                self.report(
                    findings,
                    &rules::DMA_CONSTANT_DTYPE,
                    &field("constant_dtype"),
                    message,
                );
                return;
            }
            Some(ConstantType::Float32) => {
                descriptor.constant.is_none_or(|c| (c as f32).is_finite())
            }
            Some(ConstantType::Int32) => fits(f64::from(i32::MIN), f64::from(i32::MAX)),
            Some(ConstantType::UInt32) => fits(0.0, f64::from(u32::MAX)),
        };
        if !takes {
            let message = format!("constant_dtype on {}", descriptor.operation);
            self.report(
                findings,
                &rules::DMA_CONSTANT_UNUSED,
                &field("constant_dtype"),
                message,
            );
        } else if descriptor.constant.is_none() {
            self.report(
                findings,
                &rules::DMA_CONSTANT,
                &field("constant_dtype"),
                "constant_dtype without constant".into(),
            );
        } else if !valid {
            let message = format!(
                "constant {} is no {}",
                self.object.says(&field("constant"), findings),
                self.object.says(&field("constant_dtype"), findings)
            );
            self.report(findings, &rules::DMA_CONSTANT, &field("constant"), message);
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
