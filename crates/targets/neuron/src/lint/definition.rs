//! Queue sets and variables.

use super::{Findings, Hardware, Object, SEMAPHORES, keys};
use crate::constant::Constant;
use crate::def::{FabricPath, Owner, QueueSet, QueueType, Variable, VariableType};
use crate::graph::Architecture;
use crate::json::push_key;
use crate::read::Subgraph;
use crate::rules::definition as rules;
use crate::stream::{PARTITIONS, Space};
use std::collections::HashMap;

/// Queues of a queue set, at most (NEFF specification, `num_queues`).
const MAX_QUEUES: u64 = 16;

pub(super) fn check(hardware: Hardware, subgraph: &Subgraph<'_>, findings: &mut Findings) {
    let mut instances: HashMap<&str, &str> = HashMap::new();
    let mut owners: HashMap<u64, &str> = HashMap::new();
    for (name, queue) in &subgraph.definition.queues {
        let mut pointer = "/dma_queue".to_owned();
        push_key(&mut pointer, name);
        let object = Object {
            source: &subgraph.source,
            text: queue.text,
            pointer: &pointer,
        };
        queue_set(name, queue, object, hardware, findings);
        keys::check(object, "", queue.text, (keys::QUEUE, &["type"]), findings);
        semaphores(subgraph, name, queue, object, &mut owners, findings);
        for (index, instance) in queue.queue_instances.iter().enumerate() {
            let other = instances.insert(instance, name).or_else(|| {
                subgraph
                    .definition
                    .queues
                    .get_key_value(&**instance)
                    .map(|(other, _)| &**other)
            });
            if let Some(other) = other {
                let message =
                    format!("instance `{instance}` of `{name}` is also a name of `{other}`");
                findings.report(
                    &rules::INSTANCE_TWICE,
                    || object.at(&format!("/queue_instances/{index}")),
                    message,
                );
            }
        }
    }
    reservations(subgraph, hardware, findings);
    let mut ids: HashMap<u64, &str> = HashMap::new();
    for (index, (name, item)) in subgraph.definition.variables.iter().enumerate() {
        let mut pointer = "/var".to_owned();
        push_key(&mut pointer, name);
        let object = Object {
            source: &subgraph.source,
            text: item.text,
            pointer: &pointer,
        };
        variable(hardware, subgraph, index, name, item, object, findings);
        let known = (keys::VARIABLE, keys::VARIABLE_REQUIRED);
        keys::check(object, "", item.text, known, findings);
        match item.var_id {
            None => findings.report(
                &rules::VARIABLE_ID,
                || object.at(""),
                format!("variable `{name}` has no var_id"),
            ),
            Some(id) => {
                if let Some(other) = ids.insert(id, name) {
                    findings.report(
                        &rules::VARIABLE_ID,
                        || object.at("/var_id"),
                        format!("`{name}` and `{other}` both have var_id {id}"),
                    );
                }
            }
        }
    }
    let count = subgraph.definition.variables.len() as u64;
    if let Some(highest) = ids
        .keys()
        .copied()
        .max()
        .filter(|highest| *highest >= count)
    {
        let message = format!("{count} variables have numbers up to {highest}");
        findings.report(
            &rules::VARIABLE_ID_GAP,
            || subgraph.source.place(subgraph.source.text, "", "/var"),
            message,
        );
    }
}

/// Semaphores of a queue set are its own. `owners` are those of the sets before it.
fn semaphores<'a>(
    subgraph: &Subgraph<'_>,
    name: &'a str,
    queue: &QueueSet<'_>,
    object: Object<'_, '_>,
    owners: &mut HashMap<u64, &'a str>,
    findings: &mut Findings,
) {
    let reserved = subgraph.definition.runtime_semaphores;
    let set = queue
        .semaphore_set
        .iter()
        .enumerate()
        .map(|(index, semaphore)| (format!("/semaphore_set/{index}"), *semaphore));
    for (field, semaphore) in set.chain(
        queue
            .semaphore
            .filter(|s| !queue.semaphore_set.contains(s))
            .map(|s| ("/semaphore".into(), s)),
    ) {
        if semaphore < reserved {
            let message = format!(
                "queue set `{name}` has semaphore {semaphore}, the runtime keeps 0 to {}",
                reserved - 1
            );
            findings.report(
                &rules::QUEUE_SEMAPHORE_RESERVED,
                || object.at(&field),
                message,
            );
        }
        match owners.insert(semaphore, name) {
            Some(owner) if owner == name => {
                let message = format!("queue set `{name}` names semaphore {semaphore} twice");
                findings.report(
                    &rules::QUEUE_SEMAPHORE_SHARED,
                    || object.at(&field),
                    message,
                );
            }
            Some(owner) => {
                let message =
                    format!("queue sets `{owner}` and `{name}` both have semaphore {semaphore}");
                findings.report(
                    &rules::QUEUE_SEMAPHORE_SHARED,
                    || object.at(&field),
                    message,
                );
            }
            None => {}
        }
    }
}

/// What the runtime keeps for itself must exist.
fn reservations(subgraph: &Subgraph<'_>, hardware: Hardware, findings: &mut Findings) {
    let (definition, source) = (&subgraph.definition, &subgraph.source);
    for (key, count) in [
        ("runtime_semaphore_count", definition.runtime_semaphores),
        ("runtime_event_count", definition.runtime_events),
    ] {
        if count > SEMAPHORES {
            let message = format!("{key} is {count}, a core has {SEMAPHORES}");
            findings.report(
                &rules::RESERVATION,
                || source.place(source.text, "", &format!("/{key}")),
                message,
            );
        }
    }
    for (index, kept) in definition.reservations.iter().enumerate() {
        let last = kept.base_partition.saturating_add(kept.partitions);
        let end = kept.offset.saturating_add(kept.size);
        if last > u64::from(PARTITIONS) || end > u64::from(hardware.partition_bytes) {
            let message = format!(
                "partitions {} to {last}, bytes {:#x} to {end:#x} of each; there are {PARTITIONS} of {:#x} bytes",
                kept.base_partition, kept.offset, hardware.partition_bytes
            );
            let pointer = format!("/runtime_statebuffer_reservation/{index}");
            findings.report(
                &rules::RESERVATION,
                || source.place(source.text, "", &pointer),
                message,
            );
        }
    }
}

fn queue_set(
    name: &str,
    queue: &QueueSet<'_>,
    object: Object<'_, '_>,
    hardware: Hardware,
    findings: &mut Findings,
) {
    let architecture = hardware.architecture;
    match queue.kind {
        None => findings.report(
            &rules::QUEUE_TYPE,
            || object.at(""),
            format!("queue set `{name}` has no type"),
        ),
        Some(QueueType::Unknown) => {
            findings.report(
                &rules::QUEUE_TYPE,
                || object.at("/type"),
                format!(
                    "queue set `{name}` has type {}",
                    object.says("/type", findings)
                ),
            );
        }
        Some(_) => {}
    }
    let most = if architecture == Architecture::Inf1 {
        1
    } else {
        MAX_QUEUES
    };
    if !(1..=most).contains(&queue.queues()) {
        let message = format!(
            "queue set `{name}` has {} queues, possible are 1 to {most} on {}",
            queue.queues(),
            architecture.families()
        );
        findings.report(&rules::QUEUE_COUNT, || object.at("/num_queues"), message);
    }
    if let Some(Owner::Other(owner)) = queue.owner() {
        findings.report(
            &rules::QUEUE_OWNER,
            || object.at("/owner"),
            format!("queue set `{name}` is owned by `{owner}`, which is no engine"),
        );
    }
    if queue.fabric_path == Some(FabricPath::Unknown) {
        let message = format!(
            "queue set `{name}` has fabric path {}",
            object.says("/fabric_path", findings)
        );
        findings.report(&rules::QUEUE_FABRIC, || object.at("/fabric_path"), message);
    }
    semaphore_numbers(name, queue, object, findings);
    if queue.kind == Some(QueueType::Dynamic) && queue.owner.is_none() {
        let message = format!("queue set `{name}` is of type dynamic and has no owner");
        findings.report(&rules::DYNAMIC_OWNER, || object.at(""), message);
    }
    if queue.pinned == Some(true) && !matches!(architecture, Architecture::Inf1 | Architecture::Any)
    {
        let message = format!(
            "queue set `{name}` is pinned, which {} does not have",
            architecture.families()
        );
        findings.report(
            &rules::PINNED_ARCHITECTURE,
            || object.at("/pinned"),
            message,
        );
    }
    if architecture == Architecture::Inf1 && !queue.queue_instances.is_empty() {
        let message = format!(
            "queue set `{name}` has {} instances",
            queue.queue_instances.len()
        );
        findings.report(
            &rules::INSTANCES_ARCHITECTURE,
            || object.at("/queue_instances"),
            message,
        );
    }
    if let Some(scratch) = queue.dynamic_dma {
        let end = scratch.partition_offset.checked_add(scratch.partition_size);
        if end.is_none_or(|end| end > u64::from(hardware.partition_bytes)) {
            let message = format!(
                "queue set `{name}` takes {} bytes at {} of partitions of {} bytes",
                scratch.partition_size, scratch.partition_offset, hardware.partition_bytes
            );
            findings.report(
                &rules::DYNAMIC_SCRATCH,
                || object.at("/dynamic_dma"),
                message,
            );
        }
    }
}

/// The semaphores of a queue set exist, and its own is one of them.
fn semaphore_numbers(
    name: &str,
    queue: &QueueSet<'_>,
    object: Object<'_, '_>,
    findings: &mut Findings,
) {
    for (index, semaphore) in queue
        .semaphore_set
        .iter()
        .enumerate()
        .filter(|(_, s)| **s >= SEMAPHORES)
    {
        let message =
            format!("queue set `{name}` reserves semaphore {semaphore}, a core has {SEMAPHORES}");
        findings.report(
            &rules::QUEUE_SEMAPHORE,
            || object.at(&format!("/semaphore_set/{index}")),
            message,
        );
    }
    if let Some(semaphore) = queue.semaphore.filter(|s| *s >= SEMAPHORES) {
        let message =
            format!("queue set `{name}` reserves semaphore {semaphore}, a core has {SEMAPHORES}");
        findings.report(&rules::QUEUE_SEMAPHORE, || object.at("/semaphore"), message);
    }
    if let Some(semaphore) = queue
        .semaphore
        .filter(|s| !queue.semaphore_set.is_empty() && !queue.semaphore_set.contains(s))
    {
        let message = format!(
            "queue set `{name}` has semaphore {semaphore}, which is not in its semaphore_set"
        );
        findings.report(&rules::OWN_SEMAPHORE, || object.at("/semaphore"), message);
    }
}

fn variable(
    hardware: Hardware,
    subgraph: &Subgraph<'_>,
    index: usize,
    name: &str,
    item: &Variable<'_>,
    object: Object<'_, '_>,
    findings: &mut Findings,
) {
    let kind = item.kind;
    match kind {
        None => findings.report(
            &rules::VARIABLE_TYPE,
            || object.at(""),
            format!("variable `{name}` has no type"),
        ),
        Some(VariableType::Unknown) => {
            findings.report(
                &rules::VARIABLE_TYPE,
                || object.at("/type"),
                format!(
                    "variable `{name}` has type {}",
                    object.says("/type", findings)
                ),
            );
        }
        Some(_) => {}
    }
    size(hardware, name, item, object, findings);
    alignment(name, item, object, findings);
    if item.fabric_path == Some(FabricPath::Unknown) {
        let message = format!(
            "variable `{name}` has fabric path {}",
            object.says("/fabric_path", findings)
        );
        findings.report(
            &rules::VARIABLE_FABRIC,
            || object.at("/fabric_path"),
            message,
        );
    }
    match kind {
        Some(VariableType::File) if item.file_name.as_ref().is_none_or(|n| n.is_empty()) => {
            findings.report(
                &rules::FILE_NAME,
                || object.at(""),
                format!("variable `{name}` has type file and no file_name"),
            );
        }
        Some(VariableType::Pointer) => pointer(subgraph, name, item, object, findings),
        Some(VariableType::DgeTable) => {
            table(subgraph, name, item, object, findings);
        }
        _ => {}
    }
    let unused = [
        (
            &rules::FILE_NAME_UNUSED,
            "/file_name",
            VariableType::File,
            item.file_name.is_some(),
        ),
        (
            &rules::BACKING_UNUSED,
            "/backing_variable_off",
            VariableType::Virtual,
            item.backing_variable_off.is_some(),
        ),
        (
            &rules::REFERENCE_UNUSED,
            "/referenced_var_id",
            VariableType::Pointer,
            item.referenced_var_id.is_some(),
        ),
        (
            &rules::TABLE_UNUSED,
            "/list",
            VariableType::DgeTable,
            !item.list.is_empty(),
        ),
    ];
    for (rule, field, user, present) in unused {
        if present && kind.is_some_and(|k| k != user && k != VariableType::Unknown) {
            findings.report(
                rule,
                || object.at(field),
                format!(
                    "variable `{name}` has type {}",
                    kind.unwrap_or(VariableType::Unknown)
                ),
            );
        }
    }
    if let Some(constant) = subgraph.constants.get(index).and_then(Option::as_ref) {
        constant_of(constant, name, item, object, findings);
    }
}

/// What a variable says of its size.
fn size(
    hardware: Hardware,
    name: &str,
    item: &Variable<'_>,
    object: Object<'_, '_>,
    findings: &mut Findings,
) {
    let kind = item.kind;
    let sizeless = matches!(
        kind,
        None | Some(VariableType::Unknown | VariableType::StateBuffer | VariableType::DgeTable)
    );
    match item.size {
        None if sizeless => {}
        None => findings.report(
            &rules::VARIABLE_SIZE,
            || object.at(""),
            format!("variable `{name}` has no size"),
        ),
        Some(size)
            if kind == Some(VariableType::StateBuffer) && size > Space::StateBuffer.bytes() =>
        {
            let message = format!(
                "variable `{name}` has {size} bytes, the state buffer at most {}",
                Space::StateBuffer.bytes()
            );
            findings.report(&rules::STATE_BUFFER_SIZE, || object.at("/size"), message);
        }
        Some(0) if !sizeless => findings.report(
            &rules::VARIABLE_EMPTY,
            || object.at("/size"),
            format!("variable `{name}` has size 0"),
        ),
        Some(size) => {
            let device = hardware.device_bytes;
            if size > device {
                let message = format!(
                    "variable `{name}` has {size} bytes, a device of {} has {device}",
                    hardware.architecture.families()
                );
                findings.report(&rules::VARIABLE_LARGE, || object.at("/size"), message);
            }
            let end = item.backing_variable_off.unwrap_or(0).checked_add(size);
            if kind == Some(VariableType::Virtual)
                && size <= device
                && end.is_none_or(|end| end > device)
            {
                let message = format!(
                    "variable `{name}` takes {size} bytes at {}",
                    item.backing_variable_off.unwrap_or(0)
                );
                findings.report(
                    &rules::SCRATCHPAD,
                    || object.at("/backing_variable_off"),
                    message,
                );
            }
        }
    }
}

fn alignment(name: &str, item: &Variable<'_>, object: Object<'_, '_>, findings: &mut Findings) {
    if let Some(alignment) = item.alignment.filter(|a| *a != 0 && !a.is_power_of_two()) {
        findings.report(
            &rules::ALIGNMENT,
            || object.at("/alignment"),
            format!("variable `{name}` has alignment {alignment}"),
        );
    }
    let alignment = item
        .alignment
        .filter(|a| *a > 1 && item.kind == Some(VariableType::Virtual));
    if let (Some(alignment), Some(offset)) = (alignment, item.backing_variable_off)
        && !offset.is_multiple_of(alignment)
    {
        let message = format!("variable `{name}` lies at {offset}, its alignment is {alignment}");
        findings.report(
            &rules::BACKING_ALIGNMENT,
            || object.at("/backing_variable_off"),
            message,
        );
    }
}

/// A table of variables: each entry is the number of one that is no table.
fn table(
    subgraph: &Subgraph<'_>,
    name: &str,
    item: &Variable<'_>,
    object: Object<'_, '_>,
    findings: &mut Findings,
) {
    for (index, id) in item
        .list
        .iter()
        .enumerate()
        .filter(|(_, id)| subgraph.definition.variable_by_id(**id).is_none())
    {
        let message = format!("entry {index} of `{name}` is var_id {id}, which no variable has");
        findings.report(
            &rules::TABLE,
            || object.at(&format!("/list/{index}")),
            message,
        );
    }
    if item.list.is_empty() {
        findings.report(
            &rules::TABLE_LIST,
            || object.at(""),
            format!("`{name}` has no list, or an empty one"),
        );
    }
    let is_table = |id: u64| {
        subgraph
            .definition
            .variable_by_id(id)
            .is_some_and(|(_, _, v)| v.kind == Some(VariableType::DgeTable))
    };
    if let Some(index) = item.list.iter().position(|id| is_table(*id)) {
        let message = format!("entry {index} of `{name}` is a dge-table");
        findings.report(
            &rules::TABLE_LIST,
            || object.at(&format!("/list/{index}")),
            message,
        );
    }
}

/// The file of a constant holds as many bytes as its variable.
fn constant_of(
    constant: &Constant<'_>,
    name: &str,
    item: &Variable<'_>,
    object: Object<'_, '_>,
    findings: &mut Findings,
) {
    let bytes = constant.bytes.len() as u64;
    if let Some(size) = item.size.filter(|size| *size != bytes) {
        let rule = if bytes > size {
            &rules::CONSTANT_LARGE
        } else {
            &rules::CONSTANT_SMALL
        };
        let message = format!(
            "`{}` holds {bytes} bytes, variable `{name}` {size}",
            constant.member.path
        );
        findings.report(rule, || object.at("/size"), message);
    }
    if constant.array.as_ref().is_some_and(|a| a.fortran_order) {
        let message = format!(
            "`{}` holds its array in column-major order",
            constant.member.path
        );
        findings.report(&rules::CONSTANT_ORDER, || object.at("/file_name"), message);
    }
}

fn pointer(
    subgraph: &Subgraph<'_>,
    name: &str,
    item: &Variable<'_>,
    object: Object<'_, '_>,
    findings: &mut Findings,
) {
    match item.referenced_var_id {
        None => findings.report(
            &rules::POINTER,
            || object.at(""),
            format!("pointer `{name}` has no referenced_var_id"),
        ),
        Some(id) if subgraph.definition.variable_by_id(id).is_none() => {
            findings.report(
                &rules::POINTER,
                || object.at("/referenced_var_id"),
                format!("pointer `{name}` refers to var_id {id}, which no variable has"),
            );
        }
        Some(id) => {
            let target = subgraph.definition.variable_by_id(id);
            if let Some((_, other, _)) = target
                .filter(|(_, other, v)| &***other == name || v.kind == Some(VariableType::DgeTable))
            {
                let what = if &**other == name {
                    "itself".to_owned()
                } else {
                    format!("`{other}`, a dge-table")
                };
                findings.report(
                    &rules::POINTER_TARGET,
                    || object.at("/referenced_var_id"),
                    format!("pointer `{name}` refers to {what}"),
                );
            }
        }
    }
    if let Some(size) = item.size.filter(|size| *size != 8) {
        findings.report(
            &rules::POINTER_SIZE,
            || object.at("/size"),
            format!("pointer `{name}` has {size} bytes"),
        );
    }
}
