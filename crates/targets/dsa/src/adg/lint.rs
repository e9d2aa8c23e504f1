//! The rules that a graph must keep to be a fabric.

use super::{Adg, ElementKind, rules};
use chipless_model::{Finding, Place};

/// Checks the rules.
pub fn lint(adg: &Adg, findings: &mut Vec<Finding>) {
    for element in &adg.elements {
        let mut say = |rule: &'static chipless_model::Rule, message: String| {
            findings.push(rule.at(Place::file().at(element.to_string()), message));
        };
        if matches!(
            element.kind,
            ElementKind::ProcessingElement(_) | ElementKind::Switch(_)
        ) {
            let (width, granularity) = (element.width, element.granularity);
            if ![8, 16, 32, 64].contains(&granularity)
                || width == 0
                || width % granularity != 0
                || width > 4096
            {
                say(
                    &rules::GRANULARITY,
                    format!("{element} is {width} bits wide with a granularity of {granularity}"),
                );
            }
        }
        match &element.kind {
            ElementKind::ProcessingElement(pe) => {
                if pe.dynamic == pe.static_output_buffer {
                    let (a, b) = (pe.dynamic, pe.static_output_buffer);
                    say(
                        &rules::FLOW_CONTROL,
                        format!("{element} has isDynamic {a} and staticOutputBuffer {b}"),
                    );
                }
                if pe.operations.is_empty() {
                    say(&rules::NO_OPERATION, format!("{element} has no operations"));
                }
            }
            ElementKind::InputPort(port) if port.stated && element.outputs.len() == 1 => {
                say(
                    &rules::NO_LANE,
                    format!("{element} is stated and has one link into the fabric"),
                );
            }
            ElementKind::OutputPort(port) if port.stated && element.inputs.len() == 1 => {
                say(
                    &rules::NO_LANE,
                    format!("{element} is stated and has one link out of the fabric"),
                );
            }
            _ => {}
        }
        let needs = match element.kind {
            ElementKind::ProcessingElement(_) | ElementKind::Switch(_) => (true, true),
            ElementKind::InputPort(_) => (false, true),
            ElementKind::OutputPort(_) => (true, false),
            ElementKind::Memory(_) => (false, false),
        };
        if (needs.0 && element.inputs.is_empty()) || (needs.1 && element.outputs.is_empty()) {
            let (inputs, outputs) = (element.inputs.len(), element.outputs.len());
            say(
                &rules::UNCONNECTED,
                format!("{element} has {inputs} links in and {outputs} out"),
            );
        }
    }
    for (number, link) in adg.links.iter_enumerated() {
        let (source, sink) = (
            &adg.elements[link.source].kind,
            &adg.elements[link.sink].kind,
        );
        let possible = match source {
            ElementKind::Memory(_) => {
                matches!(sink, ElementKind::InputPort(_) | ElementKind::Memory(_))
            }
            ElementKind::OutputPort(_) => matches!(sink, ElementKind::Memory(_)),
            _ => matches!(
                sink,
                ElementKind::ProcessingElement(_)
                    | ElementKind::Switch(_)
                    | ElementKind::OutputPort(_)
            ),
        };
        if !possible || link.source == link.sink {
            let message = format!("{} cannot carry a stream", adg.describe(number));
            findings.push(rules::DIRECTION.at(
                Place::file().at(format!("link {}", number.index())),
                message,
            ));
        }
    }
}
