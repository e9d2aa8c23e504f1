//! Whether words tell elements what their graph asks for, and nothing else.

use super::read::Decoded;
use super::{Encoding, Unit, write};
use crate::Mapping;
use chipless_dsa::adg::{Adg, LinkId};
use chipless_dsa::graph::{Graph, NodeKind};
use std::collections::BTreeSet;

impl Decoded {
    /// What is wrong with the words besides what the mapping shows.
    pub(super) fn faults(&self, graph: &Graph, adg: &Adg, mapping: &Mapping) -> Vec<String> {
        let mut faults = self.strays(graph, adg, mapping);
        // A header is in one of the two encodings.
        let told = [Encoding::Hardware, Encoding::Scheduler]
            .map(|encoding| self.misled(graph, adg, mapping, encoding));
        let fewest = told.into_iter().min_by_key(Vec::len);
        faults.extend(fewest.unwrap_or_default());
        faults
    }

    /// Values that are sent where nothing takes them. A value goes on when everybody has taken it whom it is sent to, so that such a one stays
    /// for ever.
    fn strays(&self, graph: &Graph, adg: &Adg, mapping: &Mapping) -> Vec<String> {
        let hops = mapping.edges.iter().flat_map(|route| &route.links);
        let used: BTreeSet<LinkId> = hops.map(|hop| hop.link).collect();
        let mut faults = Vec::new();
        for ((switch, output), input) in &self.routes {
            let element = &adg.elements[*switch];
            let Some(from) = element.inputs.get(*input) else {
                faults.push(format!(
                    "output {output} of {element} takes input {input} of {}",
                    element.inputs.len()
                ));
                continue;
            };
            let to = element.outputs[*output];
            if used.contains(from) && !used.contains(&to) {
                faults.push(format!(
                    "output {output} of {element} sends a value to {} that nothing there takes",
                    adg.sink(to)
                ));
            }
        }
        for ((port, output), place) in &self.inputs {
            let element = &adg.elements[*port];
            let to = element.outputs[*output];
            let mut nodes = mapping.nodes.iter_enumerated();
            let node = nodes.find(|(node, location)| {
                let is_input = matches!(graph.nodes[*node].kind, NodeKind::Input(_));
                is_input && location.is_some_and(|location| location.element == *port)
            });
            let Some((node, _)) = node else {
                continue;
            };
            let NodeKind::Input(stream) = &graph.nodes[node].kind else {
                continue;
            };
            let stated = element.port().is_some_and(|port| port.stated);
            let first = usize::from(stated && !stream.stated);
            let values = graph.nodes[node].values.len();
            if !used.contains(&to) && (first..first + values).contains(place) {
                faults.push(format!(
                    "link {output} of {element} sends value {} of {} to {}, where nothing takes it",
                    place - first,
                    graph.nodes[node].name,
                    adg.sink(to)
                ));
            }
        }
        faults
    }

    /// Elements that are told something else than their instructions ask for.
    fn misled(
        &self,
        graph: &Graph,
        adg: &Adg,
        mapping: &Mapping,
        encoding: Encoding,
    ) -> Vec<String> {
        let mut faults = Vec::new();
        for (node, body) in graph.nodes.iter_enumerated() {
            let Some(location) = mapping.nodes[node] else {
                continue;
            };
            let (Some(told), Some(Ok(expected))) = (
                self.units.get(&location.element),
                write::unit(mapping, graph, adg, node, encoding),
            ) else {
                continue;
            };
            let element = &adg.elements[location.element];
            let has_control = element
                .processing()
                .is_some_and(|unit| unit.input_control || unit.output_control);
            for (what, told, expected) in differences(told, &expected, has_control) {
                faults.push(format!(
                    "{element} is told {what} {told} for {}, whose {what} is {expected}",
                    body.name
                ));
            }
        }
        faults
    }
}

/// Fields of an element that are not as its instruction asks for: what they are, what it is told, and what is asked for.
fn differences(told: &Unit, expected: &Unit, has_control: bool) -> Vec<(String, String, String)> {
    let mut fields = vec![
        ("output".to_owned(), told.output, expected.output),
        ("register".to_owned(), told.register, expected.register),
    ];
    if has_control {
        fields.push(("mode of control".to_owned(), told.mode, expected.mode));
    }
    if expected.mode != 0 {
        fields.push(("mask of control".to_owned(), told.mask, expected.mask));
    }
    let number = |(what, told, expected): (String, u64, u64)| {
        (told != expected).then(|| (what, told.to_string(), expected.to_string()))
    };
    let mut found: Vec<_> = fields.into_iter().filter_map(number).collect();
    if expected.mode != 0 {
        for (index, (told, expected)) in told.table.iter().zip(&expected.table).enumerate() {
            let is_entry = told[0] != 0 || expected[0] != 0;
            if is_entry && told != expected {
                let what = format!("entry {index} of the control table");
                found.push((what, format!("{told:?}"), format!("{expected:?}")));
            }
        }
    }
    found
}
