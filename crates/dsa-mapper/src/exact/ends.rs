//! Where ways begin and end.

use super::Model;
use crate::fabric::FAR;
use crate::kernel::Place;
use crate::place::Placer;
use batsat::Lit;
use chipless_dsa::adg::ElementId;
use std::collections::BTreeMap;

/// Wires of one value to one place, that have one way.
pub(super) struct Job {
    pub(super) net: usize,
    pub(super) wires: Vec<usize>,
    pub(super) source: usize,
    pub(super) sink: usize,
    /// Cycles from the start of the source until the value is ready.
    pub(super) ready: i32,
}

/// The jobs of a graph.
pub(super) fn jobs(placer: &Placer<'_>) -> Vec<Job> {
    let kernel = placer.kernel;
    let mut jobs: Vec<Job> = Vec::new();
    for (number, wire) in kernel.wires.iter().enumerate() {
        let of_port = kernel.vertices[wire.sink].place == Place::Output;
        let ordered = of_port
            && placer.candidates.of[wire.sink]
                .iter()
                .any(|(port, _)| placer.fabric.is_ordered(*port));
        let one_way = |job: &&mut Job| {
            let other = &kernel.wires[job.wires[0]];
            job.net == wire.net
                && other.sink == wire.sink
                && (of_port && !ordered || other.offset == wire.offset)
                && (!ordered || other.operand == wire.operand)
        };
        match jobs.iter_mut().find(one_way) {
            Some(job) => job.wires.push(number),
            None => jobs.push(Job {
                net: wire.net,
                wires: vec![number],
                source: wire.source,
                sink: wire.sink,
                ready: wire.ready,
            }),
        }
    }
    jobs
}

/// For each job the links of its shortest way from any of its places to any other.
pub(super) fn shortest(placer: &Placer<'_>, jobs: &[Job]) -> Vec<i32> {
    let of = |job: &Job| {
        let mut least = FAR;
        for (from, _) in &placer.candidates.of[job.source] {
            for (to, _) in &placer.candidates.of[job.sink] {
                let length = if from == to && !placer.is_shared(*from) {
                    // Around and back.
                    2
                } else {
                    placer.fabric.hops_out(*from, *to)
                };
                least = least.min(length);
            }
        }
        i32::from(least)
    };
    jobs.iter().map(of).collect()
}

/// Whether a slot of a link holds the bit that is so many behind the first of a slot of an element.
fn holds_bit(placer: &Placer<'_>, at: (u32, u32), behind: u32, on: (u32, u32)) -> bool {
    let fabric = placer.fabric;
    let ((element, own_slot), (link, slot)) = (at, on);
    let granularity = fabric.links[link as usize].granularity;
    let own = fabric.adg.elements[ElementId::new(element as usize)].granularity;
    let bit = own_slot * own + behind;
    slot * granularity == bit - bit % granularity
}

/// Whether a wire may leave a place on a slot of a link.
pub(crate) fn may_leave(placer: &Placer<'_>, wire: usize, at: (u32, u32), to: (u32, u32)) -> bool {
    let (kernel, fabric) = (placer.kernel, placer.fabric);
    let body = &kernel.wires[wire];
    let element = at.0;
    let source = &kernel.vertices[body.source];
    if source.place == Place::Unit {
        return holds_bit(placer, at, body.low, to);
    }
    let net = &kernel.nets[body.net];
    // The lanes of a temporal port take any link, in turns.
    let lane = if source.temporal {
        0
    } else {
        net.value.wrapping_sub(u32::from(source.stated))
    };
    is_lane(
        placer,
        element,
        &fabric.outputs[element as usize],
        to,
        net.state,
        lane,
    )
}

/// Whether a wire may enter a place on a slot of a link.
pub(crate) fn may_enter(placer: &Placer<'_>, wire: usize, at: (u32, u32), on: (u32, u32)) -> bool {
    let (kernel, fabric) = (placer.kernel, placer.fabric);
    let body = &kernel.wires[wire];
    let element = at.0;
    let link = on.0;
    let sink = &kernel.vertices[body.sink];
    if sink.place == Place::Unit {
        let granularity = fabric.links[link as usize].granularity;
        return body.offset.is_multiple_of(granularity) && holds_bit(placer, at, body.offset, on);
    }
    let state = body.operand >= sink.lanes;
    let lane = if sink.temporal { 0 } else { body.operand };
    is_lane(
        placer,
        element,
        &fabric.inputs[element as usize],
        on,
        state,
        lane,
    )
}

/// Whether a lane, or the state, of a port may be on a slot of a link.
fn is_lane(
    placer: &Placer<'_>,
    port: u32,
    links: &[u32],
    (link, slot): (u32, u32),
    state: bool,
    lane: u32,
) -> bool {
    let Some(position) = links.iter().position(|other| *other == link) else {
        return false;
    };
    if state {
        return position == 0 && slot == 0;
    }
    let stated = placer.fabric.adg.elements[ElementId::new(port as usize)]
        .port()
        .is_some_and(|port| port.stated);
    !(stated && position == 0)
        && (!placer.fabric.is_ordered(port) || position == lane as usize + usize::from(stated))
}

impl Model<'_> {
    /// Every job ends where its sink is, or inside the element that its ends share.
    pub(super) fn arrive(&mut self) {
        let (placer, kernel) = (self.placer, self.placer.kernel);
        for job in self.jobs {
            let ways = &self.ways[job.net];
            // For each step the candidates of the sink that it enters.
            let mut enters: BTreeMap<usize, Vec<Lit>> = BTreeMap::new();
            let mut needs: Vec<(Lit, Vec<usize>, Option<Lit>)> = Vec::new();
            for (at, there) in placer.candidates.of[job.sink]
                .iter()
                .zip(&self.place[job.sink])
            {
                let steps = ways.entering(at.0).iter().copied().filter(|step| {
                    let step = &ways.steps[*step];
                    job.wires
                        .iter()
                        .any(|wire| may_enter(placer, *wire, *at, (step.link, step.slot)))
                });
                let steps: Vec<usize> = steps.collect();
                for step in &steps {
                    enters.entry(*step).or_default().push(*there);
                }
                let shares =
                    placer.is_shared(at.0) && kernel.vertices[job.sink].place == Place::Unit;
                let beside = placer.candidates.of[job.source]
                    .iter()
                    .position(|from| from.0 == at.0);
                let beside = beside
                    .filter(|_| shares)
                    .map(|from| self.place[job.source][from]);
                needs.push((*there, steps, beside));
            }
            let ends: Vec<(usize, Lit)> = enters
                .keys()
                .map(|step| (*step, self.formula.fresh()))
                .collect();
            for ((step, end), there) in ends.iter().zip(enters.values()) {
                self.formula
                    .imply(&[*end], [self.ways[job.net].steps[*step].used]);
                self.formula.imply(&[*end], there.iter().copied());
            }
            let all: Vec<Lit> = ends.iter().map(|(_, end)| *end).collect();
            self.formula.at_most(1, &all);
            let inside = needs
                .iter()
                .any(|(.., beside)| beside.is_some())
                .then(|| self.formula.fresh());
            for (there, steps, beside) in needs {
                let on = ends
                    .iter()
                    .filter(|(step, _)| steps.contains(step))
                    .map(|(_, end)| *end);
                let on: Vec<Lit> = on.collect();
                let Some((beside, inside)) = beside.zip(inside) else {
                    self.formula.imply(&[there], on);
                    if let Some(inside) = inside {
                        self.formula.imply(&[there], [!inside]);
                    }
                    continue;
                };
                // Together there is no way, apart there is one.
                self.formula.imply(&[there, beside], [inside]);
                self.formula.imply(&[there, inside], [beside]);
                for end in &all {
                    self.formula.imply(&[inside], [!*end]);
                }
                self.formula.imply(&[there, !beside], on);
            }
            self.ends.push(ends);
            self.inside.push(inside);
        }
    }
}
