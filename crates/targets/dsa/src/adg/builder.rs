//! Elements and links of a fabric while its file is read.

use super::json::{Cursor, Error};
use super::{Adg, Element, ElementId, Form, Link, LinkId, System, rules};
use chipless_model::{Finding, Place};
use index_vec::IndexVec;
use std::collections::HashMap;

/// Elements of one graph; the largest real fabrics have some hundreds.
const MOST_ELEMENTS: usize = 65_536;
/// Links of one graph.
const MOST_LINKS: usize = 1 << 20;

/// Collects elements and links, then puts them in order.
#[derive(Default)]
pub(super) struct Builder {
    elements: Vec<(String, Element)>,
    numbers: HashMap<(String, u32), usize>,
    /// Source, its index, sink, its index, values.
    links: Vec<(usize, u32, usize, u32, u32)>,
}

impl Builder {
    pub(super) fn add(
        &mut self,
        key: String,
        kind: &str,
        element: Element,
        at: &Cursor<'_>,
    ) -> Result<usize, Error> {
        if self.elements.len() == MOST_ELEMENTS {
            return Err(at.error(&rules::LIMIT, format!("more than {MOST_ELEMENTS} elements")));
        }
        let number = self.elements.len();
        if self
            .numbers
            .insert((kind.to_owned(), element.number), number)
            .is_some()
        {
            return Err(at.error(&rules::ELEMENT, format!("{element} is there twice")));
        }
        self.elements.push((key, element));
        Ok(number)
    }

    pub(super) fn named(&self, kind: &str, number: u32) -> Option<usize> {
        self.numbers.get(&(kind.to_owned(), number)).copied()
    }

    pub(super) fn link(
        &mut self,
        (source, source_index): (usize, u32),
        (sink, sink_index): (usize, u32),
        values: u32,
        at: &Cursor<'_>,
    ) -> Result<(), Error> {
        if self.links.len() == MOST_LINKS {
            return Err(at.error(&rules::LIMIT, format!("more than {MOST_LINKS} links")));
        }
        self.links
            .push((source, source_index, sink, sink_index, values));
        Ok(())
    }

    pub(super) fn finish(
        self,
        form: Form,
        system: Option<System>,
        findings: &mut Vec<Finding>,
    ) -> Adg {
        let mut order: Vec<usize> = (0..self.elements.len()).collect();
        order.sort_by(|a, b| self.elements[*a].0.cmp(&self.elements[*b].0));
        let mut rank = vec![ElementId::new(0); order.len()];
        for (position, old) in order.iter().enumerate() {
            rank[*old] = ElementId::new(position);
        }
        let mut sorted: Vec<Option<Element>> = self
            .elements
            .into_iter()
            .map(|(_, element)| Some(element))
            .collect();
        let mut elements: IndexVec<ElementId, Element> =
            order.iter().filter_map(|old| sorted[*old].take()).collect();
        let links: IndexVec<LinkId, Link> = self
            .links
            .iter()
            .map(|(source, _, sink, _, values)| Link {
                source: rank[*source],
                sink: rank[*sink],
                values: *values,
            })
            .collect();
        for (id, link) in links.iter_enumerated() {
            elements[link.source].outputs.push(id);
            elements[link.sink].inputs.push(id);
        }
        let index = |id: LinkId, outgoing: bool| {
            if outgoing {
                self.links[id.index()].1
            } else {
                self.links[id.index()].3
            }
        };
        for element in &mut elements {
            element.outputs.sort_by_key(|id| index(*id, true));
            element.inputs.sort_by_key(|id| index(*id, false));
            for (side, ids, outgoing) in [
                ("outputs", &element.outputs, true),
                ("inputs", &element.inputs, false),
            ] {
                if let Some((position, id)) = ids
                    .iter()
                    .enumerate()
                    .find(|(position, id)| index(**id, outgoing) as usize != *position)
                {
                    let message = format!(
                        "the {side} of {element} are not numbered from 0 without gaps: {} at position {position}",
                        index(*id, outgoing)
                    );
                    findings.push(rules::INDEX.at(Place::file().at(element.to_string()), message));
                }
            }
        }
        Adg {
            form,
            elements,
            links,
            system,
        }
    }
}
