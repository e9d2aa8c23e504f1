//! An entry of an engine's descriptors: its queue set, its signals, its keys.

use super::super::{Findings, SEMAPHORES, keys};
use super::Context;
use crate::def::{Owner, QueueType, VariableType};
use crate::engine::{Descriptor, DmaEntry};
use crate::graph::Architecture;
use crate::rules::dma as rules;

impl<'a> Context<'_, 'a> {
    pub(super) fn entry(&self, entry: &DmaEntry<'a>, findings: &mut Findings) {
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
        self.signals(entry, findings);
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

    /// Events and semaphores that an entry signals, of its core and of others.
    fn signals(&self, entry: &DmaEntry<'a>, findings: &mut Findings) {
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
            (Some(instance), _) => self.set_of_instance(instance, findings),
            (None, Some(queue)) => self.set_of_queue(queue, findings),
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

    /// The queue set that has an instance.
    fn set_of_instance(&self, instance: &str, findings: &mut Findings) -> Option<usize> {
        let definition = &self.subgraph.definition;
        let set = definition
            .queue_set(instance)
            .filter(|_| !definition.queues.contains_key(instance));
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

    /// The queue set of a name.
    fn set_of_queue(&self, queue: &str, findings: &mut Findings) -> Option<usize> {
        let set = self.subgraph.definition.queues.get_index_of(queue);
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
}
