//! A fabric that changes, with the mappings of the kernels on it.
//!
//! Elements and links keep their numbers here while others come and go; the fabric proper, with elements numbered from 0 without gaps, is
//! made of them when it is needed.

use chipless_dsa::adg::{Adg, Element, ElementId, ElementKind, Form, Link, LinkId, MemoryKind};
use chipless_dsa::graph::{EdgeId, Graph, NodeId, NodeKind};
use chipless_dsa_mapper::judge::{Verdict, judge};
use chipless_dsa_mapper::{Hop, Location, Mapping};
use std::collections::{BTreeMap, BTreeSet};

/// Elements and links, those that were taken out as `None`.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) elements: Vec<Option<Element>>,
    pub(crate) links: Vec<Option<(usize, usize)>>,
}

/// Where a graph is on a draft.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed {
    /// The element and slot of each node.
    pub(crate) nodes: Vec<Option<(usize, u32)>>,
    /// The links of each edge, with their first bits.
    pub(crate) ways: Vec<Vec<(usize, u32)>>,
}

/// A draft as a fabric, with the numbers that its elements and links have there.
pub(crate) struct Built {
    pub(crate) adg: Adg,
    pub(crate) elements: Vec<Option<ElementId>>,
    pub(crate) links: Vec<Option<LinkId>>,
}

impl Draft {
    pub(crate) fn of(adg: &Adg) -> Draft {
        Draft {
            elements: adg.elements.iter().cloned().map(Some).collect(),
            links: adg
                .links
                .iter()
                .map(|link| Some((link.source.index(), link.sink.index())))
                .collect(),
        }
    }

    /// Links that are there.
    pub(crate) fn links(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let all = self.links.iter().enumerate();
        all.filter_map(|(id, link)| link.map(|(source, sink)| (id, source, sink)))
    }

    /// Elements that are there.
    pub(crate) fn elements(&self) -> impl Iterator<Item = (usize, &Element)> {
        let all = self.elements.iter().enumerate();
        all.filter_map(|(id, element)| element.as_ref().map(|element| (id, element)))
    }

    /// Takes out an element with its links.
    pub(crate) fn remove(&mut self, element: usize) {
        self.elements[element] = None;
        for link in &mut self.links {
            if link.is_some_and(|(source, sink)| source == element || sink == element) {
                *link = None;
            }
        }
    }

    /// The fabric.
    pub(crate) fn build(&self) -> Built {
        let mut counts: BTreeMap<&'static str, u32> = BTreeMap::new();
        let mut named: Vec<(String, usize, u32)> = Vec::new();
        for (id, element) in self.elements() {
            let count = counts.entry(element.kind.name()).or_default();
            named.push((format!("{}.{count}", element.kind.name()), id, *count));
            *count += 1;
        }
        named.sort();
        let mut elements = vec![None; self.elements.len()];
        let mut adg = Adg {
            form: Form::Generator,
            elements: Vec::with_capacity(named.len()).into(),
            links: Vec::with_capacity(self.links.len()).into(),
            system: None,
        };
        for (_, id, number) in named {
            if let Some(element) = &self.elements[id] {
                elements[id] = Some(adg.elements.push(Element {
                    number,
                    inputs: Vec::new(),
                    outputs: Vec::new(),
                    ..element.clone()
                }));
            }
        }
        let mut links = vec![None; self.links.len()];
        for (id, source, sink) in self.links() {
            if let (Some(source), Some(sink)) = (elements[source], elements[sink]) {
                let link = adg.links.push(Link {
                    source,
                    sink,
                    values: 1,
                });
                adg.elements[source].outputs.push(link);
                adg.elements[sink].inputs.push(link);
                links[id] = Some(link);
            }
        }
        Built {
            adg,
            elements,
            links,
        }
    }
}

impl Placed {
    /// A mapping in the numbers of the draft.
    pub(crate) fn of(mapping: &Mapping, built: &Built) -> Placed {
        let back = |ids: &dyn Fn(usize) -> Option<usize>, most: usize| {
            let mut back = vec![usize::MAX; most];
            let mut id = 0;
            while let Some(own) = ids(id) {
                if own != usize::MAX {
                    back[own] = id;
                }
                id += 1;
            }
            back
        };
        let elements = back(
            &|id| {
                built
                    .elements
                    .get(id)
                    .map(|own| own.map_or(usize::MAX, chipless_dsa::adg::ElementId::index))
            },
            built.adg.elements.len(),
        );
        let links = back(
            &|id| {
                built
                    .links
                    .get(id)
                    .map(|own| own.map_or(usize::MAX, chipless_dsa::adg::LinkId::index))
            },
            built.adg.links.len(),
        );
        Placed {
            nodes: mapping
                .nodes
                .iter()
                .map(|at| at.map(|at| (elements[at.element.index()], at.slot)))
                .collect(),
            ways: mapping
                .edges
                .iter()
                .map(|route| {
                    let hops = route.links.iter();
                    hops.map(|hop| (links[hop.link.index()], hop.bit)).collect()
                })
                .collect(),
        }
    }

    /// The mapping in the numbers of the fabric, as far as all that it uses is there.
    pub(crate) fn mapping(&self, graph: &Graph, built: &Built) -> Mapping {
        let mut mapping = Mapping::empty(graph);
        for (node, at) in self.nodes.iter().enumerate() {
            let at = at.and_then(|(element, slot)| {
                let element = built.elements[element]?;
                Some(Location { element, slot })
            });
            mapping.nodes[NodeId::new(node)] = at;
        }
        for (edge, way) in self.ways.iter().enumerate() {
            let hops = way
                .iter()
                .map(|(link, bit)| built.links[*link].map(|link| Hop { link, bit: *bit }));
            let hops: Option<Vec<Hop>> = hops.collect();
            mapping.edges[EdgeId::new(edge)].links = hops.unwrap_or_default();
        }
        mapping
    }

    /// The mapping with its cycles, if it is legal and nothing comes too late.
    pub(crate) fn judged(&self, graph: &Graph, built: &Built) -> Option<(Mapping, Verdict)> {
        let mut mapping = self.mapping(graph, built);
        let verdict = judge(graph, &built.adg, &mapping);
        if !verdict.is_legal() || verdict.mismatch > 0 {
            return None;
        }
        settle(graph, &mut mapping, &verdict);
        Some((mapping, verdict))
    }
}

/// Writes the cycles that the judge found into a mapping.
pub(crate) fn settle(graph: &Graph, mapping: &mut Mapping, verdict: &Verdict) {
    for (node, body) in graph.nodes.iter_enumerated() {
        if !matches!(body.kind, NodeKind::Array(_)) {
            mapping.starts[node] = verdict.starts.get(node.index()).copied();
        }
    }
    let is_array = |node: NodeId| matches!(graph.nodes[node].kind, NodeKind::Array(_));
    for (id, edge) in graph.edges.iter_enumerated() {
        if !is_array(edge.source) && !is_array(edge.sink) {
            mapping.edges[id].delay = verdict.delays.get(id.index()).copied();
        }
    }
    mapping.interval = Some(verdict.initiation_interval);
    mapping.claim = Some(chipless_dsa_mapper::Claim {
        latency: verdict.latency,
        mismatch: verdict.mismatch,
    });
}

/// What the kernels on a draft use of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Used {
    pub(crate) elements: BTreeSet<usize>,
    pub(crate) links: BTreeSet<usize>,
    /// Operations by element.
    pub(crate) operations: BTreeMap<usize, BTreeSet<String>>,
    /// Elements whose registers are used, and ports whose state is.
    pub(crate) registers: BTreeMap<usize, u32>,
    pub(crate) stated: BTreeSet<usize>,
    /// The longest wait at each element, cycles.
    pub(crate) waits: BTreeMap<usize, u32>,
    /// Bytes of arrays in each memory.
    pub(crate) bytes: BTreeMap<usize, u64>,
    /// Whether some port takes its addresses from a stream.
    pub(crate) indirect: bool,
}

impl Used {
    /// Adds what a graph uses; `verdict` knows what waits how long.
    pub(crate) fn add(&mut self, graph: &Graph, placed: &Placed, verdict: &Verdict) {
        for (node, body) in graph.nodes.iter_enumerated() {
            let Some((element, _)) = placed.nodes[node.index()] else {
                continue;
            };
            self.elements.insert(element);
            match &body.kind {
                NodeKind::Instruction(instruction) => {
                    let known = self.operations.entry(element).or_default();
                    known.insert(instruction.operation.clone());
                }
                NodeKind::Composite(composite) => {
                    let known = self.operations.entry(element).or_default();
                    known.extend(composite.units.iter().map(|(name, _)| name.clone()));
                }
                NodeKind::Input(port) | NodeKind::Output(port) => {
                    if port.stated {
                        self.stated.insert(element);
                    }
                    self.indirect |= port.indirect;
                }
                NodeKind::Array(array) => {
                    *self.bytes.entry(element).or_default() += array.size;
                }
            }
            let read = body
                .operands
                .iter()
                .filter_map(|operand| match operand.source {
                    chipless_dsa::graph::Source::Register(number) => Some(number),
                    _ => None,
                });
            let written = body
                .values
                .iter()
                .flat_map(|value| value.registers.iter().copied());
            if let Some(highest) = read.chain(written).max() {
                let registers = self.registers.entry(element).or_default();
                *registers = (*registers).max(u32::from(highest) + 1);
            }
        }
        for (id, edge) in graph.edges.iter_enumerated() {
            self.links
                .extend(placed.ways[id.index()].iter().map(|(link, _)| *link));
            if let Some((sink, _)) = placed.nodes[edge.sink.index()] {
                let wait = self.waits.entry(sink).or_default();
                *wait = (*wait).max(verdict.delays.get(id.index()).copied().unwrap_or(0));
            }
        }
    }
}

/// Whether an element is a memory that reaches the system outside.
pub(crate) fn is_outside(element: &Element) -> bool {
    matches!(&element.kind, ElementKind::Memory(memory) if memory.kind == MemoryKind::DirectMemoryAccess)
}
