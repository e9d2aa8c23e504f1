//! `neff.json`, the kelf files, and how subgraphs fit them.

use super::{Findings, Hardware};
use crate::def::VariableType;
use crate::graph::{Architecture, Engine, GraphNode, Tensor};
use crate::json::{Name, Source, child, entries};
use crate::memory::{CONTIGUOUS_PAGE, MemoryPlan};
use crate::read::Neff;
use crate::rules::container as rules;
use chipless_model::{Place, Rule, count};
use std::collections::{HashMap, HashSet};

pub(super) fn check(neff: &Neff<'_>, hardware: Hardware, findings: &mut Findings) {
    let root = &neff.graph_source;
    for (pointer, message) in &neff.interface.faults {
        findings.report(
            &rules::GRAPH,
            || root.place(root.text, "", pointer),
            message.as_str(),
        );
    }
    if neff.subgraphs.is_empty() && neff.dangling.is_empty() {
        findings.report(
            &rules::NO_PROGRAM,
            || root.place(root.text, "", "/nodes"),
            "no node names a kelf file with subgraphs",
        );
    }
    nodes(neff, findings);
    kelfs(neff, findings);
    repeated(neff, findings);
    engines(neff, findings);
    function_sets(neff, findings);
    device_memory(neff, hardware, findings);
    for tensor in &neff.interface.inputs {
        interface(neff, tensor, VariableType::Input, findings);
    }
    for tensor in &neff.interface.outputs {
        interface(neff, tensor, VariableType::Output, findings);
    }
    unlisted(neff, findings);
    for room in neff.subgraphs.iter().flat_map(|s| &s.engines) {
        if let (Some(member), Some(name), Some(source)) =
            (room.instructions, &room.file.instr, &room.source)
            && member.path.rsplit('/').next() != name.rsplit('/').next()
        {
            let message = format!("`{name}` here, `{}` in def.json", member.path);
            findings.report(
                &rules::INSTRUCTION_NAME,
                || source.place(source.text, "", "/instr"),
                message,
            );
        }
    }
}

/// Numbers of nodes, outputs and entries that stand in `neff.json` itself.
fn nodes(neff: &Neff<'_>, findings: &mut Findings) {
    let graph = &neff.graph;
    // Outputs of a node: an argument is its own.
    let outputs = |node: &GraphNode<'_>| {
        if &*node.op == "null" {
            1
        } else {
            node.output_names.len() as u64
        }
    };
    let leads_somewhere = |entry: &[u64], before: usize| match *entry {
        [node, output] | [node, output, _] => graph
            .nodes
            .get(..before)
            .and_then(|n| n.get(node as usize))
            .is_some_and(|n| output < outputs(n)),
        _ => false,
    };
    let mut entries = 0u64;
    for (index, node) in graph.nodes.iter().enumerate() {
        if !matches!(&*node.op, "null" | "tvm_op") {
            report(
                neff,
                findings,
                &rules::GRAPH_NODE,
                &format!("/nodes/{index}/op"),
                format!("op `{}`: expected `null` or `tvm_op`", node.op),
            );
        }
        let function = node.attrs.func_name.as_deref();
        if &*node.op == "tvm_op" && function != Some("__kelf") {
            let message = format!(
                "func_name `{}`: expected `__kelf`",
                function.unwrap_or_default()
            );
            report(
                neff,
                findings,
                &rules::GRAPH_NODE,
                &format!("/nodes/{index}/attrs/func_name"),
                message,
            );
        }
        if let Some(row) = graph.node_row_ptr.get(index).filter(|row| **row != entries) {
            let message =
                format!("outputs of node {index} begin at entry {row}, expected {entries}");
            report(
                neff,
                findings,
                &rules::GRAPH_INDEX,
                &format!("/node_row_ptr/{index}"),
                message,
            );
        }
        entries = entries.saturating_add(outputs(node));
        for (input, entry) in node
            .inputs
            .iter()
            .enumerate()
            .filter(|(_, entry)| !leads_somewhere(entry, index))
        {
            let message = format!(
                "expected the number of a node before this one, of its output, and a version, found {entry:?}"
            );
            report(
                neff,
                findings,
                &rules::GRAPH_INDEX,
                &format!("/nodes/{index}/inputs/{input}"),
                message,
            );
        }
    }
    for (index, head) in graph
        .heads
        .iter()
        .enumerate()
        .filter(|(_, head)| head.len() > 3)
    {
        let message = format!("expected a node, an output and a version, found {head:?}");
        report(
            neff,
            findings,
            &rules::GRAPH_INDEX,
            &format!("/heads/{index}"),
            message,
        );
    }
    entry_lists(neff, entries, findings);
    arguments(neff, findings);
}

/// Lists that have an entry for each output of a node.
fn entry_lists(neff: &Neff<'_>, entries: u64, findings: &mut Findings) {
    let graph = &neff.graph;
    let count = graph.nodes.len() as u64;
    let last = graph.node_row_ptr.get(graph.nodes.len()).copied();
    if graph.node_row_ptr.len() as u64 != count + 1 || last != Some(entries) {
        let message = format!(
            "expected {} numbers, the last {entries}, found {} numbers",
            count + 1,
            graph.node_row_ptr.len()
        );
        report(
            neff,
            findings,
            &rules::GRAPH_INDEX,
            "/node_row_ptr",
            message,
        );
    }
    let lists = [
        (
            "shape",
            graph.attrs.shape.as_ref().map(|list| list.1.len() as u64),
        ),
        (
            "dltype",
            graph.attrs.dltype.as_ref().map(|list| list.1.len() as u64),
        ),
    ];
    for (name, found) in lists {
        if let Some(found) = found.filter(|found| *found != entries) {
            let message = format!(
                "expected an entry for each of the {entries} outputs of nodes, found {found}"
            );
            report(
                neff,
                findings,
                &rules::GRAPH_INDEX,
                &format!("/attrs/{name}"),
                message,
            );
        }
    }
}

/// Reports a fault of `neff.json` itself.
fn report(
    neff: &Neff<'_>,
    findings: &mut Findings,
    rule: &'static Rule,
    pointer: &str,
    message: String,
) {
    let root = &neff.graph_source;
    findings.report(rule, || root.place(root.text, "", pointer), message);
}

/// The list of arguments names the nodes that are arguments, and all of them are used.
fn arguments(neff: &Neff<'_>, findings: &mut Findings) {
    let (root, graph) = (&neff.graph_source, &neff.graph);
    let count = graph.nodes.len() as u64;
    let mut report = |pointer: &str, message: String| {
        findings.report(
            &rules::GRAPH_INDEX,
            || root.place(root.text, "", pointer),
            message,
        );
    };
    let listed: HashSet<u64> = graph.arg_nodes.iter().copied().collect();
    let used: HashSet<u64> = graph
        .nodes
        .iter()
        .flat_map(|n| &n.inputs)
        .filter_map(|entry| entry.first().copied())
        .collect();
    for (index, node) in graph.nodes.iter().enumerate() {
        let (is_argument, is_listed) = (&*node.op == "null", listed.contains(&(index as u64)));
        if is_argument != is_listed {
            let message = format!(
                "node {index} (`{}`) is {} argument, arg_nodes says otherwise",
                node.name,
                if is_argument { "an" } else { "no" }
            );
            report("/arg_nodes", message);
        }
        if is_argument && !used.contains(&(index as u64)) {
            report(
                &format!("/nodes/{index}"),
                format!("`{}` is an input of no other node", node.name),
            );
        }
    }
    if let Some(beyond) = graph.arg_nodes.iter().find(|node| **node >= count) {
        report(
            "/arg_nodes",
            format!("there are {count} nodes, found {beyond}"),
        );
    }
    if listed.len() != graph.arg_nodes.len() {
        report("/arg_nodes", "a node stands there twice".to_owned());
    }
}

/// What neff.json and info.json say a second time.
fn repeated(neff: &Neff<'_>, findings: &mut Findings) {
    let header = &neff.container.header;
    let root = &neff.graph_source;
    let place = || Place::bytes(552, 4).in_part("header").at("lnc_size");
    if header.lnc_size > 2 {
        let message = format!("lnc_size is {}, possible are 1 and 2", header.lnc_size);
        findings.report(&rules::LOGICAL_CORE, place, message);
    }
    if header.feature_bits.0 & SEVERAL_CORES != 0 && header.lnc_size < 2 && neff.subgraphs.len() < 2
    {
        let message = format!(
            "feature bit {SEVERAL_CORES:#x} is set, lnc_size is {} and there is one subgraph",
            header.lnc_size
        );
        findings.report(&rules::SEVERAL_CORES, place, message);
    }
    for (index, node) in neff.graph.nodes.iter().enumerate() {
        let counts = [
            ("num_inputs", &node.attrs.num_inputs, node.inputs.len()),
            (
                "num_outputs",
                &node.attrs.num_outputs,
                node.output_names.len(),
            ),
        ];
        for (name, said, found) in counts {
            let said = said.as_deref().and_then(|said| said.parse::<u64>().ok());
            if let Some(said) = said.filter(|said| *said != found as u64) {
                let message = format!("{name} is {said}, the node has {found}");
                let pointer = format!("/nodes/{index}/attrs/{name}");
                findings.report(
                    &rules::GRAPH_COUNT,
                    || root.place(root.text, "", &pointer),
                    message,
                );
            }
        }
    }
    signatures(neff, findings);
    let Some(member) = neff.container.member("info.json") else {
        return;
    };
    let Ok(text) = std::str::from_utf8(member.bytes) else {
        return;
    };
    let fields = [
        ("num_tpb", header.num_tpb),
        ("num_tpb_requested", header.requested_tpb_count),
    ];
    for (name, in_header) in fields {
        let said = child(text, name).and_then(|said| said.trim().parse::<u64>().ok());
        if let Some(said) = said.filter(|said| *said != u64::from(in_header)) {
            let message = format!("{name} is {said}, the header says {in_header}");
            let source = Source::of(member.path, text);
            let pointer = format!("/{name}");
            findings.report(
                &rules::INFO_CORES,
                || source.place(text, "", &pointer),
                message,
            );
        }
    }
}

/// Feature bit of programs whose logical core has several physical ones.
const SEVERAL_CORES: u64 = 0x400;

/// Signatures that say something else of a tensor than the graph.
fn signatures(neff: &Neff<'_>, findings: &mut Findings) {
    let root = &neff.graph_source;
    let found = child(root.text, "metadata").and_then(|metadata| child(metadata, "signatures"));
    for (signature, content) in found.and_then(entries).unwrap_or_default() {
        for (side, tensors) in [
            ("inputs", &neff.interface.inputs),
            ("outputs", &neff.interface.outputs),
        ] {
            let described = child(content, side).and_then(entries).unwrap_or_default();
            let known: HashMap<&str, &Tensor<'_>> = match described.len() {
                0 => continue,
                _ => tensors.iter().map(|t| (&*t.name, t)).collect(),
            };
            for (name, text) in described {
                let Some(tensor) = known.get(&*name) else {
                    continue;
                };
                let dtype =
                    child(text, "dtype").and_then(|t| serde_json::from_str::<Name<'_>>(t).ok());
                let shape =
                    child(text, "shape").and_then(|t| serde_json::from_str::<Vec<u64>>(t).ok());
                let differs = dtype.as_ref().is_some_and(|dtype| *dtype != tensor.dtype)
                    || shape.as_ref().is_some_and(|shape| *shape != tensor.shape);
                if differs {
                    let message = format!(
                        "signature `{signature}` has `{name}` as {:?} of {}, the graph as {:?} of {}",
                        shape.unwrap_or_default(),
                        dtype.unwrap_or_default(),
                        tensor.shape,
                        tensor.dtype
                    );
                    let place = || root.place(root.text, "", "/metadata/signatures");
                    findings.report(&rules::GRAPH_COUNT, place, message);
                }
            }
        }
    }
}

/// Files of engines that definitions do not name.
fn engines(neff: &Neff<'_>, findings: &mut Findings) {
    for subgraph in &neff.subgraphs {
        let missing: Vec<String> = Engine::ALL
            .iter()
            .flat_map(|engine| {
                let (names, key) = (subgraph.definition.engine(*engine), engine.name());
                let file = names.is_some_and(|names| names.file.is_some());
                let instructions = names.is_some_and(|names| names.instructions.is_some());
                [
                    (!file, key.to_owned()),
                    (!instructions, format!("{key}_instr")),
                ]
            })
            .filter_map(|(is_missing, key)| is_missing.then_some(key))
            .collect();
        if !missing.is_empty() {
            let source = &subgraph.source;
            findings.report(
                &rules::ENGINE_MISSING,
                || source.place(source.text, "", ""),
                format!("no {}", missing.join(", ")),
            );
        }
    }
}

fn kelfs(neff: &Neff<'_>, findings: &mut Findings) {
    let cores = u64::from(neff.container.header.lnc_size.max(1));
    for (source, kelf) in &neff.kelfs {
        let architecture = kelf.architecture();
        if architecture == Some(Architecture::Unknown) {
            let target = kelf.target.as_deref().unwrap_or_default();
            let message =
                format!("target `{target}` is not supported; tonga, sunda, cayman and mariana are");
            findings.report(
                &rules::TARGET,
                || source.place(source.text, "", "/target"),
                message,
            );
        } else if architecture.is_some_and(|a| a != neff.architecture) {
            let message = format!(
                "target {} here, {} in `{}`",
                architecture.unwrap_or(Architecture::Any),
                neff.architecture,
                neff.kelfs[0].0.member
            );
            findings.report(
                &rules::TARGETS_DIFFER,
                || source.place(source.text, "", "/target"),
                message,
            );
        }
        if architecture.is_none() {
            findings.report(
                &rules::TARGET_MISSING,
                || source.place(source.text, "", ""),
                "no target",
            );
        }
        let mut names = HashSet::new();
        for (index, graph) in kelf.graphs.iter().enumerate() {
            if !names.insert(&*graph.name) {
                let place = || source.place(source.text, "", &format!("/graphs/{index}/name"));
                findings.report(
                    &rules::SUBGRAPH_TWICE,
                    place,
                    format!("two subgraphs are called `{}`", graph.name),
                );
            }
        }
        let subgraphs = kelf.graphs.len() as u64;
        if subgraphs != cores && neff.architecture != Architecture::Inf1 {
            let message = format!(
                "lnc_size is {}, but the program has {}",
                neff.container.header.lnc_size,
                count(kelf.graphs.len(), "subgraph")
            );
            findings.report(
                &rules::LNC,
                || source.place(source.text, "", "/graphs"),
                message,
            );
        }
    }
}

/// Functions sets that no index describes. What the index lacks is found on reading.
fn function_sets(neff: &Neff<'_>, findings: &mut Findings) {
    for room in neff.subgraphs.iter().flat_map(|s| &s.engines) {
        let (Some(source), Some(name), None) = (
            &room.source,
            room.file.activation_function_sets.first(),
            &room.file.act_info,
        ) else {
            continue;
        };
        let place = || source.place(source.text, "", "/activation_function_sets");
        findings.report(
            &rules::FUNCTION_SET_INDEX,
            place,
            format!("`{name}` is named, but there is no act_info"),
        );
    }
}

/// What all cores need together.
fn device_memory(neff: &Neff<'_>, hardware: Hardware, findings: &mut Findings) {
    let plan = MemoryPlan::new(neff, CONTIGUOUS_PAGE);
    // Rings are estimated from above, and pages of the scratchpad are the runtime's choice.
    let rings = plan
        .cores
        .iter()
        .flat_map(|core| &core.rings)
        .map(|rings| rings.bytes)
        .fold(0, u64::saturating_add);
    let needed = plan
        .total()
        .saturating_sub(rings)
        .saturating_sub(CONTIGUOUS_PAGE);
    if needed > hardware.device_bytes {
        let root = &neff.graph_source;
        let message = format!(
            "tensors, constants, scratch and code of {} need {needed} bytes, a device of {} has {}",
            count(plan.cores.len(), "core"),
            hardware.architecture.families(),
            hardware.device_bytes
        );
        findings.report(
            &rules::DEVICE_MEMORY,
            || root.place(root.text, "", ""),
            message,
        );
        return;
    }
    for (core, subgraph) in plan.cores.iter().zip(&neff.subgraphs) {
        // Rings are estimated from above; the shared scratchpad lies with the core that uses it.
        let rings = core.rings.iter().map(|rings| rings.bytes);
        let own = core
            .total()
            .saturating_sub(rings.fold(0, u64::saturating_add))
            .saturating_add(core.shared_scratch);
        if own > hardware.core_bytes {
            let message = format!(
                "the core of `{}` needs {} for constants, scratch and code; a core of {} can allocate {}: memory is handed out by core, not by chip",
                core.name,
                gib(own),
                hardware.architecture.families(),
                gib(hardware.core_bytes)
            );
            let source = &subgraph.source;
            findings.report(
                &rules::DEVICE_MEMORY,
                || source.place(source.text, "", ""),
                message,
            );
        }
    }
}

/// Bytes as people read them: `27.94 GiB`.
fn gib(bytes: u64) -> String {
    format!("{:.2} GiB", bytes as f64 / (1u64 << 30) as f64)
}

fn interface(neff: &Neff<'_>, tensor: &Tensor<'_>, kind: VariableType, findings: &mut Findings) {
    let root = &neff.graph_source;
    let place = || root.place(root.text, "", &tensor.pointer);
    let name = &tensor.name;
    if tensor.element.is_none() && !tensor.dtype.is_empty() {
        findings.report(
            &rules::IO_ELEMENT,
            place,
            format!(
                "`{name}` has element type `{}`, which is not supported",
                tensor.dtype
            ),
        );
    }
    let declared: Vec<_> = neff
        .subgraphs
        .iter()
        .filter_map(|s| Some((s, s.definition.variables.get(&**name)?)))
        .collect();
    if declared.is_empty() && !neff.subgraphs.is_empty() {
        findings.report(
            &rules::IO_MISSING,
            place,
            format!("no subgraph declares the {kind} `{name}`"),
        );
    }
    if kind == VariableType::Output && tensor.times > declared.len().max(1) {
        let message = format!(
            "`{name}` is listed {} times, {} subgraphs declare it",
            tensor.times,
            declared.len()
        );
        findings.report(&rules::OUTPUT_TWICE, place, message);
    }
    let mut first = None;
    for (subgraph, variable) in declared {
        if variable.kind.is_some_and(|k| k != kind) {
            let message = format!(
                "`{name}` is an {kind}, but `{}` declares it with another type",
                subgraph.source.member
            );
            findings.report(&rules::IO_TYPE, place, message);
        }
        let Some(size) = variable.size else { continue };
        if *first.get_or_insert(size) != size {
            let message = format!(
                "`{name}` has {size} bytes in `{}`, another subgraph says {}",
                subgraph.source.member,
                first.unwrap_or(size)
            );
            findings.report(&rules::SIDES_DIFFER, place, message);
            continue;
        }
        let bytes = tensor.bytes().or(if tensor.element.is_some() {
            Some(u64::MAX)
        } else {
            None
        });
        if let Some(bytes) = bytes.filter(|bytes| *bytes != size) {
            let rule = if bytes > size {
                &rules::IO_SIZE
            } else {
                &rules::IO_PADDING
            };
            let message = format!(
                "`{name}`, {:?} of {}, has {bytes} bytes, its variable in `{}` {size}",
                tensor.shape, tensor.dtype, subgraph.source.member
            );
            findings.report(rule, place, message);
        }
    }
}

fn unlisted(neff: &Neff<'_>, findings: &mut Findings) {
    // Between several kelf files, and between the stages of inf1, outputs of one are inputs of the next.
    if neff.kelfs.len() > 1 || neff.architecture == Architecture::Inf1 {
        return;
    }
    let inputs: HashSet<&str> = neff.interface.inputs.iter().map(|t| &*t.name).collect();
    let outputs: HashSet<&str> = neff.interface.outputs.iter().map(|t| &*t.name).collect();
    for subgraph in &neff.subgraphs {
        for (name, variable) in &subgraph.definition.variables {
            let listed = match variable.kind {
                Some(VariableType::Input) => &inputs,
                Some(VariableType::Output) => &outputs,
                _ => continue,
            };
            if listed.contains(&**name) {
                continue;
            }
            let mut pointer = "/var".to_owned();
            crate::json::push_key(&mut pointer, name);
            let place = || subgraph.source.place(variable.text, &pointer, "");
            findings.report(
                &rules::IO_UNLISTED,
                place,
                format!("`{name}` is not among the tensors of neff.json"),
            );
        }
    }
}
