//! Elements on their way: from DRAM into L2, through the workloads, and back.

use super::content::{Held, Memory, Part, Parts, Problem, holds, shift};
use super::{Findings, Proof, Read, weights};
use crate::lower::pack::Operations;
use crate::lower::plan::{Node, Sink};
use crate::lower::region::moved;
use crate::names::Name;
use crate::operation::Operation;
use crate::rules::meaning as rules;
use crate::schedule::{At, Bounds, Ifmap, Ofmap, Workload};
use chipless_model::Rule;
use smallvec::{SmallVec, smallvec};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Operands whose order is tried out; more are taken as they are listed.
const MOST_ORDERED: usize = 4;

/// A workload that does not read what it needs, and why.
struct Reason {
    rule: &'static Rule,
    at: At,
    message: String,
    related: Option<(At, &'static str)>,
    /// Whether it shows in an output.
    reaches: bool,
}

struct Flow<'f, 'p> {
    proof: &'f Proof<'p>,
    operations: &'f mut Operations,
    /// What the tensors of L2 hold, in the order in which it arrived.
    tensors: Vec<Vec<Part>>,
    /// Why the result of a workload is wrong.
    results: Vec<Option<u32>>,
    memory: Memory,
    reasons: Vec<Reason>,
    reads: Vec<Read>,
    /// The operation of each layer, by its name.
    known: HashMap<Name, Option<Arc<Result<Operation, String>>>>,
    /// Transfers to DRAM by their id: index of `dram_in`.
    stored: HashMap<u32, usize>,
    unsupported: HashSet<Name>,
    /// Inputs of the network that the schedule calls by another name: the name of the network, by that of the schedule.
    aliases: HashMap<Name, &'f str>,
}

/// Follows every element, and gives the reads of tensors on the way.
pub(super) fn check(
    proof: &Proof<'_>,
    operations: &mut Operations,
    findings: &mut Findings,
) -> Vec<Read> {
    let schedule = proof.lint.schedule;
    let stored = schedule.dram_in.iter().enumerate();
    let mut flow = Flow {
        proof,
        operations,
        tensors: vec![Vec::new(); proof.residents.all.len()],
        results: vec![None; proof.plan.workloads() as usize],
        memory: Memory::default(),
        reasons: Vec::new(),
        reads: Vec::new(),
        known: HashMap::new(),
        stored: stored
            .map(|(index, entry)| (entry.transfer, index))
            .collect(),
        unsupported: HashSet::new(),
        aliases: aliases(proof),
    };
    for &number in proof.sorted {
        match proof.plan.node(number) {
            Node::Load(index) => flow.load(index, number),
            Node::Workload(index) => flow.workload(index, number, findings),
            Node::Send(index) => flow.send(index, number),
            Node::Store(index) => flow.store(index, number),
            Node::Begin(_) | Node::End(_) => {}
        }
    }
    flow.outputs(findings);
    flow.report(findings);
    flow.reads
}

impl Flow<'_, '_> {
    fn reason(
        &mut self,
        rule: &'static Rule,
        at: At,
        message: String,
        related: Option<(At, &'static str)>,
    ) -> u32 {
        self.reasons.push(Reason {
            rule,
            at,
            message,
            related,
            reaches: false,
        });
        self.reasons.len() as u32 - 1
    }

    /// What a name of the schedule computes; `None` where there is no network or no such layer.
    fn operation(&mut self, name: Name) -> Option<Arc<Result<Operation, String>>> {
        let (proof, operations) = (self.proof, &mut *self.operations);
        self.known
            .entry(name)
            .or_insert_with(|| {
                let network = proof.network?;
                let text = proof.lint.schedule.name(name);
                network
                    .layers
                    .contains_key(text)
                    .then(|| operations.of(network, text))
            })
            .clone()
    }

    /// The box of everything that a name of the schedule has: a layer's result, an input or a constant. `Err` where the
    /// network has no such thing, `Ok(None)` where nobody says how large it is.
    fn extent(&mut self, name: Name) -> Result<Option<Bounds>, ()> {
        let Some(network) = self.proof.network else {
            return Ok(None);
        };
        if let Some(operation) = self.operation(name) {
            return Ok(operation.as_ref().as_ref().ok().map(Operation::whole));
        }
        let text = self.aliases.get(&name).copied();
        let text = text.unwrap_or_else(|| self.proof.lint.schedule.name(name));
        let reader = network
            .layers
            .iter()
            .find(|(_, layer)| crate::network::operands_of(layer).any(|o| o == text));
        let Some((reader, _)) = reader else {
            return Err(());
        };
        let operation = self.operations.of(network, reader);
        let Ok(operation) = operation.as_ref() else {
            return Ok(None);
        };
        let operand = operation.previous.iter().position(|o| o == text);
        let shape = operand
            .and_then(|j| operation.operands.get(j))
            .map(|o| o.shape);
        Ok(shape.map(|shape| Bounds {
            lower: [0; 4],
            upper: shape.map(|extent| u32::try_from(extent.saturating_sub(1)).unwrap_or(u32::MAX)),
        }))
    }

    /// A load of a feature map or a constant.
    fn load(&mut self, index: u32, number: u32) {
        let (proof, schedule) = (self.proof, self.proof.lint.schedule);
        let load = &proof.plan.loads[index as usize];
        let out = &schedule.dram_out[load.out as usize];
        if out.weight {
            return;
        }
        let related: SmallVec<[Option<Name>; 4]> = out
            .related
            .iter()
            .flatten()
            .filter_map(|id| self.stored.get(id))
            .map(|entry| self.stored_layer(*entry))
            .collect();
        for sink in &load.sinks {
            let Sink::Resident(r) = *sink else { continue };
            let tensor = proof.residents.all[r as usize].tensor;
            let source = tensor.sources.iter().find(|s| s.transfer == out.transfer);
            let Some(source) = source else { continue };
            let name = match related.first() {
                Some(first) if related.iter().all(|layer| layer == first) => *first,
                Some(_) => None,
                None => source.layer,
            };
            let Some(name) = name else { continue };
            let fits = match self.extent(name) {
                Ok(whole) => whole.is_none_or(|whole| whole.contains(&out.bounds)),
                Err(()) => false,
            };
            if !fits {
                continue;
            }
            let parts = self.in_memory(name, &out.bounds, number);
            self.deliver(r, &source.bounds, &out.bounds, &parts);
        }
    }

    /// What DRAM holds of a layer, an input or a constant when a load comes to it.
    fn in_memory(&mut self, name: Name, bounds: &Bounds, number: u32) -> Parts {
        let made = self.proof.made.contains(&name);
        if !made && !self.memory.has(name) {
            return smallvec![Part {
                bounds: *bounds,
                held: Held::Elements(name, [0; 4]),
            }];
        }
        let mut parts = Parts::new();
        for stored in self.memory.get(name, bounds) {
            // A store that may come later has put nothing there yet.
            if self.proof.is_before(stored.node, number) {
                parts.extend(stored.part.cut(bounds, [0; 4]));
            }
        }
        parts
    }

    fn stored_layer(&self, entry: usize) -> Option<Name> {
        let (proof, entry) = (self.proof, &self.proof.lint.schedule.dram_in[entry]);
        entry.layer.or_else(|| {
            let (workload, _) = proof.plan.pieces.get(&entry.transfer)?;
            Some(proof.plan.workload(*workload).2.layer)
        })
    }

    /// Puts parts, counted as `from`, at the box of a source in a tensor. What has another shape than its source or lies
    /// outside the tensor arrives nowhere.
    fn deliver(&mut self, resident: u32, to: &Bounds, from: &Bounds, parts: &[Part]) {
        let tensor = self.proof.residents.all[resident as usize].tensor;
        if to.shape() != from.shape() || !tensor.bounds.contains(to) {
            return;
        }
        let by = shift(from.lower, to.lower);
        let landed = parts.iter().filter_map(|part| part.cut(from, by));
        self.tensors[resident as usize].extend(landed);
    }

    /// What a piece of a result holds, counted in its layer.
    fn piece(&self, index: u32, ofmap: &Ofmap) -> (Bounds, Parts) {
        let workload = self.proof.plan.workload(index).2;
        let bounds = self.proof.frames.piece(workload, ofmap);
        let held = match self.results[index as usize] {
            Some(reason) => Held::Wrong(reason),
            None => Held::Elements(workload.layer, [0; 4]),
        };
        let tiles: Vec<Bounds> = workload.tiles.iter().map(|tile| tile.ofmap).collect();
        let mut parts = Parts::new();
        if let Some(inside) = bounds.intersection(&workload.bounds) {
            if super::super::cover::hole(&inside, &tiles).is_none() {
                let bounds = inside;
                parts.push(Part { bounds, held });
            } else {
                let of_tiles = tiles.iter().filter_map(|tile| tile.intersection(&inside));
                parts.extend(of_tiles.map(|bounds| Part { bounds, held }));
            }
        }
        (bounds, parts)
    }

    fn send(&mut self, index: u32, number: u32) {
        let proof = self.proof;
        let send = &proof.plan.sends[index as usize];
        let ofmap = &proof.plan.workload(send.workload).2.ofmaps[send.ofmap as usize];
        let Some(staged) = send.staged else { return };
        self.leaves(number, send.workload, staged, ofmap);
        let (bounds, parts) = self.piece(send.workload, ofmap);
        for &r in &send.sinks {
            let tensor = proof.residents.all[r as usize].tensor;
            if let Some(source) = tensor.sources.iter().find(|s| s.transfer == ofmap.transfer) {
                self.deliver(r, &source.bounds, &bounds, &parts);
            }
        }
    }

    /// A result is read where it waits.
    fn leaves(&mut self, node: u32, workload: u32, staged: u32, ofmap: &Ofmap) {
        let fed = smallvec![self.proof.plan.number(Node::Workload(workload))];
        self.reads.push(Read {
            node,
            resident: staged,
            fed,
            at: ofmap.at,
        });
    }

    fn store(&mut self, index: u32, number: u32) {
        let proof = self.proof;
        let store = &proof.plan.stores[index as usize];
        let ofmap = &proof.plan.workload(store.workload).2.ofmaps[store.ofmap as usize];
        let Some(staged) = store.staged else { return };
        self.leaves(number, store.workload, staged, ofmap);
        let Some(entry) = store.sinks.first().copied() else {
            return;
        };
        let is_sent = proof.residents.all[staged as usize].send_at.is_some();
        let Some(name) = self.stored_layer(entry as usize).filter(|_| is_sent) else {
            return;
        };
        let to = proof.lint.schedule.dram_in[entry as usize].bounds;
        let fits = self
            .extent(name)
            .is_ok_and(|whole| whole.is_none_or(|whole| whole.contains(&to)));
        let (bounds, parts) = self.piece(store.workload, ofmap);
        if !fits || bounds.shape() != to.shape() {
            return;
        }
        let by = shift(bounds.lower, to.lower);
        for part in parts.iter().filter_map(|part| part.cut(&bounds, by)) {
            self.memory.put(name, part, number);
        }
    }

    fn workload(&mut self, index: u32, number: u32, findings: &mut Findings) {
        let proof = self.proof;
        let workload = proof.plan.workload(index).2;
        let operation = self.operation(workload.layer);
        if let Some(Err(why)) = operation.as_deref()
            && self.unsupported.insert(workload.layer)
        {
            findings.report(&rules::UNSUPPORTED, workload.at, || why.clone());
        }
        let operation = operation.as_deref().and_then(|o| o.as_ref().ok());
        let inputs = self.inputs(index, number, workload, operation);
        let weights = weights::check(proof, index, workload, operation, &mut self.reads);
        let wrong = match (inputs, weights) {
            (Some(reason), _) => Some(reason),
            (None, Some((rule, at, message, related))) => {
                Some(self.reason(rule, at, message, related))
            }
            (None, None) => None,
        };
        self.results[index as usize] = wrong;
        // What it makes for its own core is there when it ends.
        for ofmap in &workload.ofmaps {
            let mut sinks: SmallVec<[u32; 2]> = SmallVec::new();
            for sink in proof.plan.sinks.get(&ofmap.transfer).into_iter().flatten() {
                let Sink::Resident(r) = *sink else { continue };
                let makers = proof.plan.own_makers(&proof.residents.all[r as usize]);
                if makers.contains(&(ofmap.transfer, index)) {
                    sinks.push(r);
                }
            }
            if sinks.is_empty() {
                continue;
            }
            let (bounds, parts) = self.piece(index, ofmap);
            for r in sinks {
                let tensor = proof.residents.all[r as usize].tensor;
                if let Some(source) = tensor.sources.iter().find(|s| s.transfer == ofmap.transfer) {
                    self.deliver(r, &source.bounds, &bounds, &parts);
                }
            }
        }
    }

    /// Reads the inputs of a workload, and says why they are not what it needs.
    fn inputs(
        &mut self,
        index: u32,
        number: u32,
        workload: &Workload,
        operation: Option<&Operation>,
    ) -> Option<u32> {
        let holders: Vec<SmallVec<[u32; 2]>> = workload
            .ifmaps
            .iter()
            .map(|ifmap| self.proof.residents.holding(index as usize, ifmap))
            .collect();
        for (ifmap, holders) in workload.ifmaps.iter().zip(&holders) {
            if let Some(&resident) = holders.first() {
                self.reads.push(Read {
                    node: number,
                    resident,
                    fed: self.fed(resident, &ifmap.bounds),
                    at: ifmap.at,
                });
            }
        }
        let Some(operation) = operation else {
            let mut first = None;
            for (ifmap, holders) in workload.ifmaps.iter().zip(&holders) {
                let problem = self.problem(ifmap, holders, None);
                if let Some(problem) = problem.filter(|_| first.is_none()) {
                    first = Some(self.explain(index, workload, ifmap, holders, problem, None));
                }
            }
            return first;
        };
        let needed: Vec<(usize, Bounds)> = (0..operation.operands.len())
            .filter_map(|operand| Some((operand, operation.needs(operand, &workload.bounds)?)))
            .collect();
        if needed.len() != workload.ifmaps.len() {
            let message = format!(
                "expected {} ifmaps, as the operation {} needs them here, found {}",
                needed.len(),
                operation.name,
                workload.ifmaps.len()
            );
            return Some(self.reason(&rules::INPUT, workload.at, message, None));
        }
        let want = |(operand, bounds): &(usize, Bounds)| {
            let text = operation.previous[*operand].as_str();
            let alias = || self.aliases.iter().find(|(_, port)| **port == text);
            let name = self.proof.lint.schedule.names.find(text);
            (name.or_else(|| alias().map(|(name, _)| *name)), *bounds)
        };
        let wants: Vec<(Option<Name>, Bounds)> = needed.iter().map(want).collect();
        // The list of ifmaps may have them in any order.
        let table: Vec<Vec<Option<Problem>>> = workload
            .ifmaps
            .iter()
            .zip(&holders)
            .map(|(ifmap, holders)| {
                let problem = |want| self.problem(ifmap, holders, Some(want));
                wants.iter().map(problem).collect()
            })
            .collect();
        if assigned(&table, 0, &mut vec![false; wants.len()]) {
            return None;
        }
        // The operand that the list has at this place is what was meant.
        let at = (0..wants.len())
            .find(|i| table[*i][*i].is_some())
            .unwrap_or(0);
        let problem = table[at][at]?;
        let (ifmap, holders) = (&workload.ifmaps[at], &holders[at]);
        let wanted = Some((&wants[at], operation.previous[needed[at].0].as_str()));
        Some(self.explain(index, workload, ifmap, holders, problem, wanted))
    }

    /// The nodes that brought what a box of a tensor holds.
    fn fed(&self, resident: u32, bounds: &Bounds) -> SmallVec<[u32; 2]> {
        let plan = self.proof.plan;
        let tensor = &self.proof.residents.all[resident as usize];
        let arrivals = plan.arrivals.residents[resident as usize]
            .iter()
            .map(|(transfer, node)| (*transfer, plan.number(*node)));
        let own = plan.own_makers(tensor);
        let own = own
            .iter()
            .map(|(transfer, workload)| (*transfer, plan.number(Node::Workload(*workload))));
        arrivals
            .chain(own)
            .filter(|(transfer, _)| {
                let part = tensor.part(*transfer);
                part.intersection(bounds).is_some()
            })
            .map(|(_, node)| node)
            .collect()
    }

    /// Why an ifmap is not the box that is wanted: the first that holds it counts.
    fn problem(
        &self,
        ifmap: &Ifmap,
        holders: &[u32],
        wanted: Option<&(Option<Name>, Bounds)>,
    ) -> Option<Problem> {
        let missing = Some(Problem::Missing(ifmap.bounds));
        let mut first = None;
        for &r in holders {
            let tensor = self.proof.residents.all[r as usize].tensor;
            if !tensor.bounds.contains(&ifmap.bounds) {
                continue;
            }
            let of = match wanted {
                None => None,
                Some((Some(name), bounds)) if bounds.shape() == ifmap.bounds.shape() => {
                    Some((*name, shift(ifmap.bounds.lower, bounds.lower)))
                }
                Some(_) => return missing,
            };
            match holds(&self.tensors[r as usize], &ifmap.bounds, of) {
                None => return None,
                problem => first = first.or(problem),
            }
        }
        first.or(missing)
    }

    /// The reason for a problem; the one that was there already, if what was brought was wrong.
    fn explain(
        &mut self,
        index: u32,
        workload: &Workload,
        ifmap: &Ifmap,
        holders: &[u32],
        problem: Problem,
        wanted: Option<(&(Option<Name>, Bounds), &str)>,
    ) -> u32 {
        let lint = self.proof.lint;
        let core = self.proof.plan.workload(index).0;
        let who = lint.label(lint.schedule.cores[core].id, workload);
        let need = wanted.map_or_else(
            || format!("what its ifmap {} names", ifmap.bounds),
            |((_, bounds), name)| format!("{name} {bounds}"),
        );
        let holder = holders
            .first()
            .map(|r| &self.proof.residents.all[*r as usize]);
        let related = holder.map(|r| (r.tensor.at, "the tensor"));
        let found = match problem {
            Problem::Wrong(reason) => return reason,
            Problem::Missing(_) if holder.is_none() => {
                format!(
                    "no tensor with the transfers {:?} in its snapshot",
                    &ifmap.transfers[..]
                )
            }
            Problem::Missing(_)
                if wanted
                    .is_some_and(|((_, bounds), _)| bounds.shape() != ifmap.bounds.shape()) =>
            {
                format!("an ifmap of another shape, {}", ifmap.bounds)
            }
            Problem::Missing(_) if holder.is_some_and(|r| !r.is_filled) => {
                "a tensor that was gone, or lay elsewhere, when its transfers brought it".into()
            }
            Problem::Missing(hole) => format!("that nothing brings {hole} of its tensor"),
            Problem::Other(part) => match part.held {
                Held::Elements(name, by) => {
                    let text = lint.schedule.name(name);
                    let inside = part
                        .bounds
                        .intersection(&ifmap.bounds)
                        .unwrap_or(part.bounds);
                    moved(&inside, by).map_or_else(
                        || format!("elements of {text}"),
                        |bounds| format!("{text} {bounds} at {inside}"),
                    )
                }
                Held::Wrong(reason) => return reason,
            },
        };
        let message = format!("expected {who} to read {need}, found {found}");
        self.reason(&rules::INPUT, ifmap.at, message, related)
    }

    /// Every output of the network lies in DRAM.
    fn outputs(&mut self, findings: &mut Findings) {
        let (proof, lint) = (self.proof, self.proof.lint);
        let Some(network) = proof.network else {
            self.reasons
                .iter_mut()
                .for_each(|reason| reason.reaches = true);
            return;
        };
        for name in network.outputs() {
            let Some(id) = lint.schedule.names.find(name) else {
                findings.report(&rules::OUTPUT, At(0), || {
                    format!("expected workloads of the output {name}, found none")
                });
                continue;
            };
            let Some(Ok(whole)) = self
                .operation(id)
                .map(|o| o.as_ref().as_ref().map(Operation::whole).map_err(drop))
            else {
                continue;
            };
            let stored = self.memory.get(id, &whole);
            let parts: Vec<Part> = stored.iter().map(|stored| stored.part).collect();
            for part in &parts {
                if let Held::Wrong(reason) = part.held {
                    self.reasons[reason as usize].reaches = true;
                }
            }
            let found = match holds(&parts, &whole, Some((id, [0; 4]))) {
                None | Some(Problem::Wrong(_)) => continue,
                Some(Problem::Missing(hole)) => format!("nothing stored at {hole}"),
                Some(Problem::Other(part)) => {
                    let text = match part.held {
                        Held::Elements(name, _) => lint.schedule.name(name),
                        Held::Wrong(_) => "",
                    };
                    format!("other elements, of {text}, at {}", part.bounds)
                }
            };
            let mut makers = lint.schedule.workloads().filter(|(_, w)| w.layer == id);
            let at = makers.next().map_or(At(0), |(_, workload)| workload.at);
            findings.report(&rules::OUTPUT, at, || {
                format!(
                    "expected all of the output {name}, {whole}, in DRAM at the end, found {found}"
                )
            });
        }
    }

    fn report(&mut self, findings: &mut Findings) {
        for reason in std::mem::take(&mut self.reasons) {
            let rule = if reason.reaches {
                reason.rule
            } else {
                &rules::UNUSED
            };
            findings.report_with(rule, reason.at, || reason.message, reason.related);
        }
    }
}

/// Inputs of the network that a schedule calls by a name that the network does not know: where a load of such a name goes to a
/// layer with one input that the schedule does not know either, it is that one.
fn aliases<'p>(proof: &Proof<'p>) -> HashMap<Name, &'p str> {
    let mut aliases = HashMap::new();
    let Some(network) = proof.network else {
        return aliases;
    };
    let schedule = proof.lint.schedule;
    let is_known = |text: &str| {
        let mut layers = network.layers.values();
        network.layers.contains_key(text)
            || layers.any(|layer| layer.previous_layer.iter().any(|name| name == text))
    };
    let mut seen: HashMap<Name, bool> = HashMap::new();
    for load in &proof.plan.loads {
        let out = &schedule.dram_out[load.out as usize];
        if out.weight || out.related.as_ref().is_some_and(|ids| !ids.is_empty()) {
            continue;
        }
        for sink in &load.sinks {
            let Sink::Resident(r) = *sink else { continue };
            let tensor = proof.residents.all[r as usize].tensor;
            let named = tensor.sources.iter().find(|s| s.transfer == out.transfer);
            let Some(name) = named.and_then(|source| source.layer) else {
                continue;
            };
            let unknown = |name: Name| !is_known(schedule.name(name));
            if aliases.contains_key(&name) || !*seen.entry(name).or_insert_with(|| unknown(name)) {
                continue;
            }
            let readers = out.destinations.iter().filter_map(|d| d.layer);
            let ports = readers
                .filter_map(|reader| network.layers.get(schedule.name(reader)))
                .flat_map(crate::network::operands_of)
                .filter(|text| {
                    !network.layers.contains_key(*text) && schedule.names.find(text).is_none()
                });
            let mut ports: Vec<&str> = ports.collect();
            ports.sort_unstable();
            ports.dedup();
            if let [port] = ports[..] {
                aliases.insert(name, port);
            }
        }
    }
    aliases
}

/// Whether every ifmap can stand for an operand of its own.
fn assigned(table: &[Vec<Option<Problem>>], ifmap: usize, taken: &mut Vec<bool>) -> bool {
    if ifmap == table.len() {
        return true;
    }
    let in_order = table.len() > MOST_ORDERED;
    (0..taken.len()).any(|operand| {
        if taken[operand] || table[ifmap][operand].is_some() || (in_order && operand != ifmap) {
            return false;
        }
        taken[operand] = true;
        let rest = assigned(table, ifmap + 1, taken);
        taken[operand] = false;
        rest
    })
}
