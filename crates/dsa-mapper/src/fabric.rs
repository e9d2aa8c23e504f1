//! A fabric as the mapper sees it: distances, and links as arrays.

use chipless_dsa::adg::{Adg, ElementId, ElementKind, LinkId};

/// Elements of a fabric that the mapper takes on: its tables are quadratic.
pub(crate) const MOST_ELEMENTS: usize = 4096;
/// No way.
pub(crate) const FAR: u16 = u16::MAX / 4;

/// A link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wireway {
    pub(crate) source: u32,
    pub(crate) sink: u32,
    /// Bits of a slot.
    pub(crate) granularity: u32,
    pub(crate) slots: u32,
    /// The first of its slots among those of all links.
    pub(crate) first: u32,
}

pub(crate) struct Fabric<'a> {
    pub(crate) adg: &'a Adg,
    pub(crate) links: Vec<Wireway>,
    /// Values that each link can carry: more than one where they share it in time.
    pub(crate) values: Vec<u32>,
    /// Slots of all links.
    pub(crate) slots: usize,
    /// Links out of each element that values travel on: not to or from memories.
    pub(crate) outputs: Vec<Vec<u32>>,
    pub(crate) inputs: Vec<Vec<u32>>,
    pub(crate) is_switch: Vec<bool>,
    size: usize,
    /// `hops[from * size + to]`: links from one element to another through switches only, where `from` itself is passed as a switch.
    hops: Vec<u16>,
    pub(crate) input_ports: Vec<u32>,
    pub(crate) output_ports: Vec<u32>,
    pub(crate) units: Vec<u32>,
}

impl<'a> Fabric<'a> {
    pub(crate) fn new(adg: &'a Adg) -> Result<Fabric<'a>, String> {
        let size = adg.elements.len();
        if size > MOST_ELEMENTS {
            return Err(format!(
                "the fabric has {size} elements, more than the {MOST_ELEMENTS} that are mapped onto"
            ));
        }
        let spatial = |id: ElementId| adg.elements[id].memory().is_none();
        let mut first = 0;
        let links: Vec<Wireway> = adg
            .links
            .iter_enumerated()
            .map(|(id, link)| {
                let slots = adg.slots(id);
                first += slots;
                let (source, sink) = (link.source.index() as u32, link.sink.index() as u32);
                Wireway {
                    source,
                    sink,
                    granularity: adg.granularity(id),
                    slots,
                    first: first - slots,
                }
            })
            .collect();
        let side = |ids: &[LinkId]| -> Vec<u32> {
            let inside = ids
                .iter()
                .filter(|id| spatial(adg.links[**id].source) && spatial(adg.links[**id].sink));
            inside.map(|id| id.index() as u32).collect()
        };
        let of = |wanted: fn(&ElementKind) -> bool| -> Vec<u32> {
            let found = adg
                .elements
                .iter_enumerated()
                .filter(|(_, element)| wanted(&element.kind));
            found.map(|(id, _)| id.index() as u32).collect()
        };
        let mut fabric = Fabric {
            adg,
            links,
            values: adg.links.iter().map(|link| link.values).collect(),
            slots: first as usize,
            outputs: adg
                .elements
                .iter()
                .map(|element| side(&element.outputs))
                .collect(),
            inputs: adg
                .elements
                .iter()
                .map(|element| side(&element.inputs))
                .collect(),
            is_switch: adg
                .elements
                .iter()
                .map(chipless_dsa::adg::Element::is_switch)
                .collect(),
            size,
            hops: Vec::new(),
            input_ports: of(|kind| matches!(kind, ElementKind::InputPort(_))),
            output_ports: of(|kind| matches!(kind, ElementKind::OutputPort(_))),
            units: of(|kind| matches!(kind, ElementKind::ProcessingElement(_))),
        };
        fabric.measure();
        Ok(fabric)
    }

    /// Distances to every element, backwards through switches.
    fn measure(&mut self) {
        self.hops = vec![FAR; self.size * self.size];
        let mut queue = Vec::new();
        for target in 0..self.size {
            self.hops[target * self.size + target] = 0;
            queue.clear();
            queue.push(target);
            let mut next = 0;
            while let Some(&at) = queue.get(next) {
                next += 1;
                let distance = self.hops[at * self.size + target] + 1;
                for link in &self.inputs[at] {
                    let from = self.links[*link as usize].source as usize;
                    if self.is_switch[from] && self.hops[from * self.size + target] == FAR {
                        self.hops[from * self.size + target] = distance;
                        queue.push(from);
                    }
                }
            }
        }
    }

    /// Links from a switch to an element; 0 from an element to itself, [`FAR`] from anything else.
    #[inline]
    pub(crate) fn hops(&self, from: u32, to: u32) -> u16 {
        self.hops[from as usize * self.size + to as usize]
    }

    /// Links from a processing element or input port to an element.
    pub(crate) fn hops_out(&self, from: u32, to: u32) -> u16 {
        if from == to {
            return 0;
        }
        let ways = self.outputs[from as usize].iter().map(|link| {
            self.hops(self.links[*link as usize].sink, to)
                .saturating_add(1)
        });
        ways.min().unwrap_or(FAR).min(FAR)
    }

    /// Slots that so many bits take on a link.
    pub(crate) fn slots_for(&self, link: u32, bits: u32) -> u32 {
        bits.div_ceil(self.links[link as usize].granularity).max(1)
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Cycles that an operand can wait at an element.
    pub(crate) fn delay_depth(&self, element: u32) -> i32 {
        self.adg.elements[ElementId::new(element as usize)]
            .delay_depth()
            .min(1 << 20) as i32
    }

    /// Whether a port keeps its lanes in order, one on each link.
    pub(crate) fn is_ordered(&self, port: u32) -> bool {
        self.adg.elements[ElementId::new(port as usize)]
            .port()
            .is_some_and(chipless_dsa::adg::VectorPort::is_ordered)
    }

    /// The links of a port that carry data, in order: without the one that is kept for state.
    pub(crate) fn data_links(&self, port: u32, outgoing: bool) -> &[u32] {
        let links = if outgoing {
            &self.outputs[port as usize]
        } else {
            &self.inputs[port as usize]
        };
        let stated = self.adg.elements[ElementId::new(port as usize)]
            .port()
            .is_some_and(|port| port.stated);
        links.get(usize::from(stated)..).unwrap_or_default()
    }
}
