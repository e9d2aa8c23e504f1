//! Writing a graph as the generator's JSON, whatever form it came from.

use super::{Adg, Element, ElementKind, LinkId, ProcessingElement};
use serde_json::{Map, Value, json};

impl Adg {
    /// The graph in the generator's form, with everything that its file says of elements.
    pub fn to_json(&self) -> Value {
        let nodes: Map<String, Value> = self
            .elements
            .iter()
            .map(|element| (element.to_string(), Value::Object(node(element))))
            .collect();
        // The place of each link among those of its ends.
        let mut places = vec![(0, 0); self.links.len()];
        for element in &self.elements {
            for (place, id) in element.outputs.iter().enumerate() {
                places[id.index()].0 = place;
            }
            for (place, id) in element.inputs.iter().enumerate() {
                places[id.index()].1 = place;
            }
        }
        let edge = |id: LinkId| {
            let link = self.links[id];
            let (source, sink) = (self.source(id), self.sink(id));
            let (source_index, sink_index) = places[id.index()];
            let mut edge = json!({
                "SourceNodeType": source.kind.name(), "SourceNodeId": source.number, "SourceIndex": source_index,
                "SinkNodeType": sink.kind.name(), "SinkNodeId": sink.number, "SinkIndex": sink_index,
            });
            // The generator knows no links that are shared in time.
            if link.is_shared() {
                edge["Values"] = json!(link.values);
            }
            edge
        };
        let edges: Vec<Value> = self.links.indices().map(edge).collect();
        let mut file = json!({ "DSAGenNodes": nodes, "DSAGenEdges": edges });
        if let Some(system) = self.system {
            file["SystemParameters"] = json!({
                "NumberOfCores": system.cores, "NumberOfBanks": system.banks, "SystemBusWidth": system.bus_width,
            });
        }
        file
    }
}

/// Packages of the generator's sections.
const COMPONENT: &str = "dsagen2.comp.config.CompKeys";
const PORT: &str = "dsagen2.sync.config.SyncKeys";
const MEMORY: &str = "dsagen2.mem.config.MemKeys";

/// Puts fields into a section of a node; what else the section has stays.
fn put(node: &mut Map<String, Value>, package: &str, section: &str, fields: Value) {
    let known = node
        .keys()
        .find(|key| key.split('$').nth(1).unwrap_or(key) == section)
        .cloned();
    let key = known.unwrap_or_else(|| format!("{package}${section}$"));
    let entry = node.entry(key).or_insert_with(|| json!({}));
    if let (Value::Object(entry), Value::Object(fields)) = (entry, fields) {
        for (key, value) in fields {
            // What a tool wrote as a number or a truth, and means the same, stays as it is.
            let same = match (entry.get(&key), &value) {
                (Some(Value::Number(old)), Value::Bool(new)) => (old.as_f64() != Some(0.0)) == *new,
                (Some(Value::Bool(true)), Value::Number(new)) => {
                    key != "sizeLUT" && new.as_u64() == Some(1)
                }
                _ => false,
            };
            if !same {
                entry.insert(key, value);
            }
        }
    }
}

fn node(element: &Element) -> Map<String, Value> {
    let mut node = (*element.body).clone();
    let fresh = node.is_empty();
    let (name, number) = (element.kind.name(), element.number);
    if matches!(
        element.kind,
        ElementKind::ProcessingElement(_) | ElementKind::Switch(_)
    ) {
        let mut body = json!({
            "compBits": element.width, "compUnitBits": element.granularity, "nodeType": name, "nodeId": number,
        });
        if fresh {
            body["supportNodeActive"] = json!(true);
            body["parameterClassName"] = json!("dsagen2.comp.config.CompNodeParameters");
        }
        if let Some((row, column)) = element.place {
            body["comment"] = json!(format!("row{row}_col{column}"));
        }
        put(&mut node, COMPONENT, "CompNode", body);
    }
    match &element.kind {
        ElementKind::ProcessingElement(unit) => processing_element(&mut node, unit, fresh),
        ElementKind::Switch(switch) => {
            let buffer = json!({
                "outputBufferDepth": switch.output_buffer_depth, "staticOutputBuffer": switch.static_output_buffer,
            });
            put(&mut node, COMPONENT, "OutputBuffer", buffer);
            if fresh {
                let buffer = json!({ "parameterClassName": "dsagen2.comp.config.common.CompNodeOutputBufferParameters" });
                put(&mut node, COMPONENT, "OutputBuffer", buffer);
                let routing = json!({ "initFullMatrix": [], "initIndividualMatrix": [], "parameterClassName": "dsagen2.comp.config.switch.SWRoutingParameters" });
                put(&mut node, COMPONENT, "SwitchRouting", routing);
            }
        }
        ElementKind::InputPort(port) => {
            let body = json!({
                "vpImpl": port.implementation, "vpStated": port.stated, "depthByte": port.depth,
                "repeatedIVP": port.repeated, "broadcastIVP": port.broadcast, "nodeType": name, "nodeId": number,
            });
            put(&mut node, PORT, "IVPNode", body);
            if fresh {
                let class =
                    json!({ "parameterClassName": "dsagen2.sync.config.IVPNodeParameters" });
                put(&mut node, PORT, "IVPNode", class);
            }
        }
        ElementKind::OutputPort(port) => {
            let body = json!({
                "vpImpl": port.implementation, "vpStated": port.stated, "depthByte": port.depth,
                "discardOVP": port.discard, "nodeType": name, "nodeId": number,
            });
            put(&mut node, PORT, "OVPNode", body);
            if fresh {
                let rest = json!({ "taskOVP": false, "parameterClassName": "dsagen2.sync.config.OVPNodeParameters" });
                put(&mut node, PORT, "OVPNode", rest);
            }
        }
        ElementKind::Memory(memory) => {
            let mut body = json!({
                "readWidth": memory.read_width, "writeWidth": memory.write_width, "memUnitBits": memory.unit_bits,
                "capacity": memory.capacity, "LinearPadding": memory.padding, "nodeType": name, "nodeId": number,
            });
            if !memory.indirect {
                for flag in super::INDIRECT_STREAMS {
                    body[flag] = json!(false);
                }
            } else if fresh {
                body[super::INDIRECT_STREAMS[0]] = json!(true);
            }
            put(&mut node, MEMORY, "MemNode", body);
            if fresh {
                let generates = memory.kind == super::MemoryKind::Generate;
                let rest = json!({
                    "numRead": 1, "numWrite": u32::from(!generates), "MaxLength1D": i32::MAX - 1, "LinearLength1DStream": true,
                    "streamStated": true, "numSpmBank": 0, "numPendingRequest": 16, "AtomicOperations": [],
                    "parameterClassName": "dsagen2.mem.config.MemNodeParameters",
                });
                put(&mut node, MEMORY, "MemNode", rest);
            }
        }
    }
    node
}

/// What only processing elements have.
fn processing_element(node: &mut Map<String, Value>, unit: &ProcessingElement, fresh: bool) {
    let buffer = json!({
        "outputBufferDepth": unit.output_buffer_depth, "staticOutputBuffer": unit.static_output_buffer,
    });
    put(node, COMPONENT, "OutputBuffer", buffer);
    put(
        node,
        COMPONENT,
        "RegFile",
        json!({ "numReg": unit.registers }),
    );
    let control = json!({
        "sizeLUT": unit.control_entries, "inputLSBCtrl": unit.input_control, "outputLSBCtrl": unit.output_control,
    });
    put(node, COMPONENT, "MetaControl", control);
    let operations = json!({
        "isDynamic": unit.dynamic, "OperationDataTypeSet": unit.operations,
        "instSlotSize": unit.instruction_slots, "maxFifoDepth": unit.delay_depth,
    });
    put(node, COMPONENT, "DsaOperations", operations);
    if fresh {
        let file = json!({ "asyncRF": true, "update": true, "resetRegIdx": [], "parameterClassName": "dsagen2.comp.config.processing_element.PERegFileParameters" });
        put(node, COMPONENT, "RegFile", file);
        let full = unit.control_entries > 0;
        let control = json!({ "reuseOperand": full, "discardResult": full, "resetRegister": full, "abstain": full, "parameterClassName": "dsagen2.comp.config.processing_element.PEMetaCtrlParameters" });
        put(node, COMPONENT, "MetaControl", control);
        let operations = json!({ "maxInstRepeatTime": 0, "definedLatency": 0, "parameterClassName": "dsagen2.comp.config.processing_element.PEDsaOperationParameters" });
        put(node, COMPONENT, "DsaOperations", operations);
        let buffer = json!({ "parameterClassName": "dsagen2.comp.config.common.CompNodeOutputBufferParameters" });
        put(node, COMPONENT, "OutputBuffer", buffer);
    }
}
