//! How long tensors stay in L2, and where.
//!
//! # Why nothing waits in a circle
//!
//! A schedule is made of jobs in an order in which each comes after what it reads; a core has at most one workload of a job. Call the
//! place of a job in that order its *step*. Everything that happens belongs to a step, and inside a step comes in this order: the
//! loads for the workloads of the step, these workloads, the sending of their results to other cores, the storing of their results.
//! What has to wait, waits for something earlier in this order, if tensors stand in snapshots as follows:
//!
//! - *What comes from DRAM* stands there up to its last reader, from any workload on. It waits for workloads of its core before
//!   that, and for the stores of the same elements: these are of earlier steps.
//! - *What comes from another core* stands there from the first workload of its maker's step, or else the next, on. It waits for its maker,
//!   and for the workload before its first snapshot, which is of an earlier step.
//! - *What comes from the same core* stands there from its maker's workload on.
//! - *A result on its way out* stands in the snapshot of its maker alone. Who takes its place stands in later snapshots only, so
//!   they are transfers or workloads of later steps: what other cores send in the same step stands in the same snapshot.
//!
//! So there is an order of everything, whatever the addresses are. The queue of DRAM then follows one such order.

use chipless_gemini::Name;
use chipless_gemini::schedule::{
    Bounds, Core, Peer, Schedule, Tensor, TensorKind, TransferIds, Workload,
};
use std::collections::{HashMap, HashSet};

/// Workloads that a load may come before the one for which it would be early enough.
const AHEAD: usize = 4;

/// What can be done where a core is too full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Relief {
    /// A reader gets what a producer makes through DRAM.
    ThroughDram { reader: Name, producer: Name },
    /// A layer's weights are loaded for each of its jobs.
    LoadAgain { layer: Name },
}

/// Cores that are too full.
pub(super) struct Crowded {
    /// What can be done; nothing where nothing can.
    pub(super) reliefs: Vec<Relief>,
    /// The layer at which it is worst.
    pub(super) layer: Name,
    /// Bytes that it would take there.
    pub(super) needed: u64,
}

/// A tensor from the first snapshot that shows it to the last.
struct Life {
    tensor: Tensor,
    first: usize,
    last: usize,
    /// Workloads that read it.
    read: Vec<usize>,
    /// Whether nothing but DRAM brings it.
    is_loaded: bool,
    at: Option<u64>,
}

/// Gives every tensor its snapshots and its address in so many bytes. `steps` are those of the workloads, core by core.
///
/// # Errors
/// Cores that are too full.
pub(super) fn place(
    schedule: &mut Schedule,
    steps: &[Vec<u32>],
    bytes: u64,
) -> Result<(), Crowded> {
    let mut made: HashMap<u32, u32> = HashMap::new();
    for (core, steps) in schedule.cores.iter().zip(steps) {
        for (workload, step) in core.workloads.iter().zip(steps) {
            made.extend(workload.ofmaps.iter().map(|piece| (piece.transfer, *step)));
        }
    }
    let mut worst: Option<(u64, Name)> = None;
    let mut reliefs = Vec::new();
    for (core, steps) in schedule.cores.iter_mut().zip(steps) {
        let mut lives = lives(core, steps, &made);
        match pack(&mut lives, core.workloads.len(), bytes) {
            Ok(()) => show(core, lives),
            Err(position) => {
                let found = relieve(core, &lives, position, bytes, &mut reliefs);
                worst = worst.max(Some(found));
            }
        }
    }
    reliefs.sort_unstable();
    reliefs.dedup();
    match worst {
        Some((needed, layer)) => Err(Crowded {
            reliefs,
            layer,
            needed,
        }),
        None => Ok(()),
    }
}

/// The tensors of a core with the snapshots that they need.
fn lives(core: &Core, steps: &[u32], made: &HashMap<u32, u32>) -> Vec<Life> {
    let mut lives: Vec<Life> = Vec::new();
    let mut known: HashMap<(TensorKind, TransferIds, Bounds), usize> = HashMap::new();
    for (position, workload) in core.workloads.iter().enumerate() {
        for tensor in &workload.buffer {
            // What the same transfers bring is the same tensor, however long nobody has read it.
            let key = (tensor.kind, tensor.transfers.clone(), tensor.bounds);
            let number = match known.get(&key) {
                Some(number) if tensor.kind != TensorKind::Ofmap => *number,
                _ => {
                    known.insert(key, lives.len());
                    lives.push(Life {
                        tensor: Tensor {
                            tensor_id: Some(lives.len() as u32),
                            ..tensor.clone()
                        },
                        first: position,
                        last: position,
                        read: Vec::new(),
                        is_loaded: tensor.kind != TensorKind::Ofmap
                            && tensor
                                .sources
                                .iter()
                                .all(|source| matches!(source.peer, Peer::Dram(_))),
                        at: None,
                    });
                    lives.len() - 1
                }
            };
            let life = &mut lives[number];
            life.last = position;
            if is_read(workload, tensor) {
                life.read.push(position);
            }
        }
    }
    for life in &mut lives {
        for source in &life.tensor.sources {
            if let (Peer::Core(from), Some(step)) = (source.peer, made.get(&source.transfer))
                && from != core.id
            {
                let from = steps.partition_point(|own| own < step);
                life.first = life.first.min(from);
            }
        }
    }
    lives
}

/// Whether a workload names a transfer of a tensor.
fn is_read(workload: &Workload, tensor: &Tensor) -> bool {
    let ifmaps = workload.ifmaps.iter().flat_map(|ifmap| &ifmap.transfers);
    let weights = workload.weight.iter().flat_map(|weight| &weight.transfers);
    ifmaps
        .chain(weights)
        .any(|id| tensor.transfers.contains(id))
}

/// Addresses below `bytes`, and earlier snapshots for loads where there is room; otherwise a workload for which there is none.
fn pack(lives: &mut [Life], positions: usize, bytes: u64) -> Result<(), usize> {
    let mut full = vec![0u64; positions];
    for life in lives.iter() {
        full[life.first..=life.last]
            .iter_mut()
            .for_each(|sum| *sum += life.tensor.size);
    }
    if let Some(position) = full.iter().position(|sum| *sum > bytes) {
        return Err(position);
    }
    let needed: Vec<usize> = lives.iter().map(|life| life.first).collect();
    let mut failed = 0;
    for ahead in [AHEAD, 1, 0] {
        for (life, first) in lives.iter_mut().zip(&needed) {
            (life.first, life.at) = (*first, None);
        }
        match in_turn(lives, full.clone(), bytes, ahead) {
            Ok(()) => return Ok(()),
            Err(position) => failed = position,
        }
    }
    by_size(lives, bytes).map_err(|()| failed)
}

/// Each tensor at the lowest free bytes when it comes, and loads for the next workloads above them where there is room.
fn in_turn(lives: &mut [Life], mut full: Vec<u64>, bytes: u64, ahead: usize) -> Result<(), usize> {
    let mut coming: Vec<Vec<usize>> = vec![Vec::new(); full.len()];
    for (number, life) in lives.iter().enumerate() {
        coming[life.first].push(number);
    }
    // The large ones first, so that the small ones fill what is left between.
    for list in &mut coming {
        list.sort_by_key(|number| std::cmp::Reverse(lives[*number].tensor.size));
    }
    let mut taken: Vec<(u64, u64, usize)> = Vec::new();
    for position in 0..full.len() {
        // Whoever takes the place of a result that just left waits for it.
        let leaving: Vec<(u64, u64, usize)> = taken
            .iter()
            .copied()
            .filter(|(.., last)| *last < position && last + 1 >= position)
            .collect();
        taken.retain(|(.., last)| *last >= position);
        for &number in &coming[position] {
            let life = &mut lives[number];
            if life.at.is_some() {
                continue;
            }
            let at = lowest(&taken, life.tensor.size);
            if at + life.tensor.size > bytes {
                return Err(position);
            }
            life.at = Some(at);
            put(&mut taken, (at, at + life.tensor.size, life.last));
        }
        let next = (position + 1)..(position + 1 + ahead).min(full.len());
        for later in next {
            for &number in &coming[later] {
                let life = &mut lives[number];
                let size = life.tensor.size;
                let fits = |sum: &u64| sum + size <= bytes;
                if life.at.is_some() || !life.is_loaded || !full[position..later].iter().all(fits) {
                    continue;
                }
                let mut avoided = taken.clone();
                for span in &leaving {
                    put(&mut avoided, *span);
                }
                let Some(at) = highest(&avoided, size, bytes).or(highest(&taken, size, bytes))
                else {
                    continue;
                };
                full[position..later]
                    .iter_mut()
                    .for_each(|sum| *sum += size);
                (life.first, life.at) = (position, Some(at));
                put(&mut taken, (at, at + size, life.last));
            }
        }
    }
    Ok(())
}

fn put(taken: &mut Vec<(u64, u64, usize)>, span: (u64, u64, usize)) {
    let at = taken.partition_point(|other| *other < span);
    taken.insert(at, span);
}

/// The lowest free bytes.
fn lowest(taken: &[(u64, u64, usize)], size: u64) -> u64 {
    let mut at = 0;
    for (first, end, _) in taken {
        if at + size <= *first {
            break;
        }
        at = at.max(*end);
    }
    at
}

/// The highest free bytes below an end.
fn highest(taken: &[(u64, u64, usize)], size: u64, end: u64) -> Option<u64> {
    let mut top = end;
    for (first, last, _) in taken.iter().rev() {
        if *last + size <= top {
            break;
        }
        top = top.min(*first);
    }
    top.checked_sub(size).filter(|at| {
        taken
            .iter()
            .all(|(first, last, _)| *last <= *at || *first >= at + size)
    })
}

/// The large tensors first, each at the lowest bytes that are free as long as it is there.
fn by_size(lives: &mut [Life], bytes: u64) -> Result<(), ()> {
    let mut order: Vec<usize> = (0..lives.len()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(lives[*number].tensor.size));
    for life in lives.iter_mut() {
        life.at = None;
    }
    for number in order {
        let life = &lives[number];
        let mut taken: Vec<(u64, u64, usize)> = lives
            .iter()
            .filter(|other| other.first <= life.last && life.first <= other.last)
            .filter_map(|other| Some((other.at?, other.at? + other.tensor.size, other.last)))
            .collect();
        taken.sort_unstable();
        let at = lowest(&taken, life.tensor.size);
        if at + life.tensor.size > bytes {
            return Err(());
        }
        lives[number].at = Some(at);
    }
    Ok(())
}

/// Writes the snapshots of a core.
fn show(core: &mut Core, lives: Vec<Life>) {
    let mut buffers: Vec<Vec<Tensor>> = vec![Vec::new(); core.workloads.len()];
    for mut life in lives {
        let is_result = life.tensor.kind == TensorKind::Ofmap;
        life.tensor.address = life.at.and_then(|at| u32::try_from(at).ok());
        for (position, buffer) in buffers
            .iter_mut()
            .enumerate()
            .take(life.last + 1)
            .skip(life.first)
        {
            buffer.push(Tensor {
                newly_added: (!is_result).then_some(position == life.first),
                current: life.tensor.kind == TensorKind::Ifmap
                    && is_read(&core.workloads[position], &life.tensor),
                ..life.tensor.clone()
            });
        }
    }
    for (workload, buffer) in core.workloads.iter_mut().zip(buffers) {
        workload.buffer = buffer.into();
    }
}

/// What can be done about a core that is too full at a workload, and wherever else it is; the most bytes and the layer that takes
/// them.
fn relieve(
    core: &Core,
    lives: &[Life],
    failed: usize,
    bytes: u64,
    reliefs: &mut Vec<Relief>,
) -> (u64, Name) {
    let mut full = vec![0u64; core.workloads.len()];
    for life in lives {
        full[life.first..=life.last]
            .iter_mut()
            .for_each(|sum| *sum += life.tensor.size);
    }
    let mut known: HashSet<Relief> = HashSet::new();
    for (position, sum) in full.iter().enumerate() {
        let excess = sum.saturating_sub(bytes);
        if excess == 0 && position != failed {
            continue;
        }
        let mut gains: Vec<(u64, Relief)> = gains(core, lives, position).into_iter().collect();
        gains.sort_unstable_by(|a, b| b.cmp(a));
        let already = gains.iter().filter(|(_, relief)| known.contains(relief));
        let mut gained: u64 = already.map(|(gain, _)| gain).sum();
        for (gain, relief) in gains {
            if gained > 0 && gained >= excess {
                break;
            }
            if known.insert(relief) {
                gained += gain;
            }
        }
    }
    reliefs.extend(known);
    let most = (0..full.len()).max_by_key(|position| full[*position]);
    let most = most.unwrap_or(failed);
    (full[most], core.workloads[most].layer)
}

/// Bytes that each way out frees at a workload.
fn gains(core: &Core, lives: &[Life], position: usize) -> Vec<(u64, Relief)> {
    let mut gains: HashMap<Relief, u64> = HashMap::new();
    let workload = &core.workloads[position];
    let here = |life: &&Life| life.first <= position && position <= life.last;
    for life in lives.iter().filter(here) {
        let tensor = &life.tensor;
        let mut gain = |relief| *gains.entry(relief).or_insert(0) += tensor.size;
        if tensor.kind == TensorKind::Ofmap {
            let pieces = workload.ofmaps.iter();
            let pieces = pieces.filter(|piece| piece.bounds == tensor.bounds);
            let mut to = pieces.flat_map(|piece| &piece.destinations);
            if let Some(reader) = to.find_map(|to| to.layer) {
                let producer = workload.layer;
                gain(Relief::ThroughDram { reader, producer });
            }
        } else if !life.is_loaded {
            if life.read.contains(&position) {
                continue;
            }
            let reader = core.workloads[life.last].layer;
            for source in &tensor.sources {
                if let (Peer::Core(_), Some(producer)) = (source.peer, source.layer) {
                    gain(Relief::ThroughDram { reader, producer });
                    break;
                }
            }
        } else if tensor.kind == TensorKind::Weight
            && let Some(layer) = tensor.layer
            && layer != workload.layer
        {
            gain(Relief::LoadAgain { layer });
        }
    }
    gains
        .into_iter()
        .map(|(relief, gain)| (gain, relief))
        .collect()
}
