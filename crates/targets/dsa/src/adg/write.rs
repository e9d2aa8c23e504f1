//! Writing a graph as the generator's JSON, whatever form it came from.

use super::{Adg, Element, ElementKind};
use serde_json::{Value, json};

impl Adg {
    /// The graph in the generator's form. What this crate does not model (stream limits of memories, parameter class names) is left out.
    pub fn to_json(&self) -> Value {
        let nodes: serde_json::Map<String, Value> = self
            .elements
            .iter()
            .map(|element| (element.to_string(), node(element)))
            .collect();
        let edges: Vec<Value> = self
            .links
            .iter_enumerated()
            .map(|(id, link)| {
                let (source, sink) = (&self.elements[link.source], &self.elements[link.sink]);
                let position = |ids: &[super::LinkId]| ids.iter().position(|other| *other == id).unwrap_or(0);
                json!({
                    "SourceNodeType": source.kind.name(), "SourceNodeId": source.number, "SourceIndex": position(&source.outputs),
                    "SinkNodeType": sink.kind.name(), "SinkNodeId": sink.number, "SinkIndex": position(&sink.inputs),
                })
            })
            .collect();
        json!({ "DSAGenNodes": nodes, "DSAGenEdges": edges })
    }
}

fn node(element: &Element) -> Value {
    let comment = element
        .place
        .map(|(row, column)| format!("row{row}_col{column}"))
        .unwrap_or_default();
    let body = json!({
        "compBits": element.width, "compUnitBits": element.granularity, "comment": comment,
        "nodeType": element.kind.name(), "nodeId": element.number,
    });
    match &element.kind {
        ElementKind::ProcessingElement(pe) => json!({
            "dsagen2.comp.config.CompKeys$CompNode$": body,
            "dsagen2.comp.config.CompKeys$OutputBuffer$": {
                "outputBufferDepth": pe.output_buffer_depth, "staticOutputBuffer": pe.static_output_buffer,
            },
            "dsagen2.comp.config.CompKeys$RegFile$": { "numReg": pe.registers },
            "dsagen2.comp.config.CompKeys$MetaControl$": {
                "sizeLUT": pe.control_entries, "inputLSBCtrl": pe.input_control, "outputLSBCtrl": pe.output_control,
            },
            "dsagen2.comp.config.CompKeys$DsaOperations$": {
                "isDynamic": pe.dynamic, "OperationDataTypeSet": pe.operations,
                "instSlotSize": pe.instruction_slots, "maxFifoDepth": pe.delay_depth,
            },
        }),
        ElementKind::Switch(switch) => json!({
            "dsagen2.comp.config.CompKeys$CompNode$": body,
            "dsagen2.comp.config.CompKeys$OutputBuffer$": {
                "outputBufferDepth": switch.output_buffer_depth, "staticOutputBuffer": switch.static_output_buffer,
            },
        }),
        ElementKind::InputPort(port) | ElementKind::OutputPort(port) => {
            let key = if matches!(element.kind, ElementKind::InputPort(_)) {
                "IVPNode"
            } else {
                "OVPNode"
            };
            json!({ format!("dsagen2.sync.config.SyncKeys${key}$"): {
                "vpImpl": port.implementation, "vpStated": port.stated, "depthByte": port.depth,
                "nodeType": element.kind.name(), "nodeId": element.number,
            } })
        }
        ElementKind::Memory(memory) => json!({ "dsagen2.mem.config.MemKeys$MemNode$": {
            "readWidth": memory.read_width, "writeWidth": memory.write_width, "memUnitBits": memory.unit_bits,
            "capacity": memory.capacity, "nodeType": element.kind.name(), "nodeId": element.number,
        } }),
    }
}
