//! The walk: every queue as far as barriers let it, again and again, until nothing is left.

use super::control::{Control, WorkItem};
use super::fetches::{Content, Fetches};
use super::registers::{self, Write};
use super::sections::{Found, TaskSections};
use super::{
    Configuration, Description, Fetched, Piece, Schedule, Slice, Task, Unit, barriers_of, rules,
};
use crate::address::{self, Target};
use crate::bytes::Record;
use crate::dma::{self, Descriptor, Operation};
use crate::image::Image;
use crate::lint::limits;
use crate::raw::TaskKind;
use chipless_model::{Barrier, Finding, Limits, Place, Rule};
use std::collections::VecDeque;

/// Physical barriers that masks can name.
const BARRIERS: usize = 128;
/// 32-bit writes to registers that one DMA may make: the largest seen programs all barriers four deep.
const REGISTER_WRITES: u64 = 4096;

/// Finds the schedule of a blob.
pub(crate) fn walk(image: &Image<'_>, control: &Control, limits: &Limits) -> Schedule {
    let mut walk = Walk {
        image,
        control,
        limits,
        tasks: TaskSections::new(image),
        schedule: Schedule {
            managed_by_program: control.managed_by_program,
            ..Schedule::default()
        },
        barriers: vec![Barrier::new(None); BARRIERS],
        fetches: Fetches::default(),
        waiting: Vec::new(),
        servers: Vec::new(),
        stuck: false,
    };
    walk.start();
    walk.go();
    walk.finish()
}

struct Walk<'w, 'i> {
    image: &'w Image<'i>,
    control: &'w Control,
    limits: &'w Limits,
    tasks: TaskSections,
    schedule: Schedule,
    /// Faults are ignored: the engine is the judge of those.
    barriers: Vec<Barrier<usize>>,
    fetches: Fetches,
    /// Pieces enqueued and not yet taken, by queue.
    waiting: Vec<VecDeque<usize>>,
    servers: Vec<Server>,
    /// Whether the program had to be forced on; what follows from that is not reported again.
    stuck: bool,
}

#[derive(Debug)]
struct Server {
    queue: usize,
    piece: Option<usize>,
    /// Address of the next descriptor; 0 at the end of the piece.
    cursor: u64,
    /// The task at the cursor, once its descriptor is there, and the address of the one after.
    head: Option<(Box<Task>, u64)>,
}

impl Walk<'_, '_> {
    /// Loads the barriers and enqueues what the firmware enqueues.
    fn start(&mut self) {
        self.schedule.preloaded = vec![Vec::new(); BARRIERS];
        if !self.schedule.managed_by_program {
            for (id, barrier) in self.control.barriers.iter().enumerate() {
                self.schedule.configurations.push(Configuration {
                    barrier: barrier.physical,
                    number: id as u32,
                    producers: barrier.producers,
                    consumers: barrier.consumers,
                    releases: barrier.releases.clone(),
                    place: barrier.place.clone(),
                });
            }
            self.schedule.last = Some(self.control.last_barrier);
            for chain in &self.control.chains {
                let physical = self.control.barriers[chain[0]].physical as usize;
                for configuration in chain {
                    self.configure(physical, *configuration);
                }
                self.schedule.preloaded[physical].extend(chain);
            }
        }
        for item in &self.control.work_items {
            let WorkItem {
                unit,
                address,
                place,
            } = item;
            self.piece(*unit, *address, place.clone());
        }
        self.schedule.initial = (0..self.control.bootstrap_work_items).collect();
        for piece in self.schedule.initial.clone() {
            self.enqueue(piece);
        }
    }

    /// Adds a piece, and its queue if it is the first of it.
    fn piece(&mut self, unit: Unit, start: u64, place: Place) -> usize {
        let queue = self
            .schedule
            .queues
            .iter()
            .position(|u| *u == unit)
            .unwrap_or_else(|| {
                let queue = self.schedule.queues.len();
                self.schedule.queues.push(unit);
                self.waiting.push(VecDeque::new());
                self.servers.extend((0..unit.servers()).map(|_| Server {
                    queue,
                    piece: None,
                    cursor: 0,
                    head: None,
                }));
                queue
            });
        self.schedule.pieces.push(Piece {
            queue,
            start,
            tasks: Vec::new(),
            place,
        });
        self.schedule.pieces.len() - 1
    }

    fn enqueue(&mut self, piece: usize) {
        self.waiting[self.schedule.pieces[piece].queue].push_back(piece);
    }

    fn go(&mut self) {
        loop {
            let mut moved = false;
            // Queues may come into being while the walk goes on, so the bound is not fixed.
            let mut server = 0;
            while server < self.servers.len() {
                while self.advance(server, false) {
                    moved = true;
                }
                server += 1;
            }
            if moved {
                continue;
            }
            // Nothing can move. Force the first task that is there; if there is none, descriptors are missing for good.
            let forced = (0..self.servers.len()).find(|s| self.servers[*s].head.is_some());
            self.stuck |= forced.is_some();
            match forced {
                Some(server) => _ = self.advance(server, true),
                None => {
                    if !(0..self.servers.len()).any(|s| self.give_up(s)) {
                        return;
                    }
                }
            }
            if self.schedule.tasks.len() as u64 > self.limits.tasks {
                let message = format!("more than {} tasks", self.limits.tasks);
                self.report(&rules::LIMIT, Place::file(), message);
                return;
            }
        }
    }

    /// Runs the task at the head of a server, if it can run or is forced to. Returns whether anything happened.
    fn advance(&mut self, server: usize, force: bool) -> bool {
        let queue = self.servers[server].queue;
        if self.servers[server].cursor == 0 {
            let Some(piece) = self.waiting[queue].pop_front() else {
                return false;
            };
            let at = &mut self.servers[server];
            (at.piece, at.cursor, at.head) = (Some(piece), self.schedule.pieces[piece].start, None);
        }
        if self.servers[server].head.is_none() {
            let cursor = self.servers[server].cursor;
            match self.resolve(self.schedule.queues[queue], cursor) {
                Resolved::Task(task, next) => self.servers[server].head = Some((task, next)),
                Resolved::NotYet => return false,
                Resolved::Broken => {
                    self.servers[server].cursor = 0;
                    return true;
                }
            }
        }
        let lit = |task: &Task| barriers_of(task.waits).all(|b| self.barriers[b as usize].is_lit());
        if !force
            && !self.servers[server]
                .head
                .as_ref()
                .is_some_and(|(task, _)| lit(task))
        {
            return false;
        }
        let Some((task, next)) = self.servers[server].head.take() else {
            return false;
        };
        self.servers[server].cursor = next;
        let piece = self.servers[server].piece;
        self.run(*task, piece);
        true
    }

    /// Drops the piece of a server whose next descriptor never comes.
    fn give_up(&mut self, server: usize) -> bool {
        let Server {
            queue,
            piece,
            cursor,
            ..
        } = self.servers[server];
        let (Some(piece), true) = (piece, cursor != 0) else {
            return false;
        };
        self.servers[server].cursor = 0;
        let unit = self.schedule.queues[queue];
        let count = self.schedule.pieces[piece].tasks.len();
        let message = format!(
            "{} is sent to the descriptor at {cursor:#x}, but no DMA brings a whole descriptor there",
            unit.name()
        );
        let place = match count {
            0 => self.schedule.pieces[piece].place.clone(),
            _ => self.place(
                self.schedule.tasks[self.schedule.pieces[piece].tasks[count - 1]]
                    .description
                    .bytes(),
                "chain",
            ),
        };
        self.report(&rules::NEVER_FETCHED, place, message);
        true
    }

    /// A task happens: fetches and register writes, then its barriers.
    fn run(&mut self, mut task: Task, piece: Option<usize>) {
        if let Description::Dma { descriptor, bytes } = &task.description {
            self.fetches.follow(self.image, descriptor);
            let (descriptor, bytes) = (descriptor.clone(), *bytes);
            self.write_registers(&descriptor, bytes, &mut task);
        }
        let (waits, posts) = (task.waits, task.posts);
        let (configures, releases) = (task.configures.clone(), task.releases.clone());
        let id = self.schedule.tasks.len();
        self.schedule.tasks.push(task);
        if let Some(piece) = piece {
            self.schedule.pieces[piece].tasks.push(id);
        }
        for configuration in configures {
            let barrier = self.schedule.configurations[configuration].barrier;
            self.configure(barrier as usize, configuration);
            self.settle(barrier);
        }
        for piece in releases {
            self.enqueue(piece);
        }
        for barrier in barriers_of(waits) {
            self.barriers[barrier as usize].consume().ok();
            self.settle(barrier);
        }
        for barrier in barriers_of(posts) {
            let produces = &mut self.schedule.tasks[id].produces;
            *produces = produces.or(self.barriers[barrier as usize].active().copied());
            self.barriers[barrier as usize].produce().ok();
            self.settle(barrier);
        }
    }

    fn configure(&mut self, barrier: usize, configuration: usize) {
        let Configuration {
            producers,
            consumers,
            ..
        } = self.schedule.configurations[configuration];
        self.barriers[barrier]
            .push(configuration, producers, consumers)
            .ok();
    }

    fn settle(&mut self, barrier: u8) {
        while let Some(retired) = self.barriers[barrier as usize].retire() {
            for piece in self.schedule.configurations[retired].releases.clone() {
                self.enqueue(piece);
            }
        }
    }

    /// The task whose descriptor stands at an address.
    fn resolve(&mut self, unit: Unit, address: u64) -> Resolved {
        match unit {
            Unit::Dma { engine, list } => self.resolve_dma(engine, list, address),
            Unit::Dpu(tile) => self.resolve_dpu(tile, address),
            Unit::Shave { tile, .. } => self.resolve_shave(tile, address),
        }
    }

    fn resolve_dma(&mut self, engine: u8, list: u8, address: u64) -> Resolved {
        let kind = if list == 0 {
            TaskKind::DmaDdr
        } else {
            TaskKind::DmaCmx
        };
        let found = match address::resolve(self.image, address) {
            Target::Section(section, offset) => match self.tasks.record(section, offset) {
                Some(found) if found.kind == kind && found.unit == engine as usize => {
                    Some((section, offset, found.index))
                }
                _ => None,
            },
            _ => None,
        };
        let Some((section, offset, index)) = found else {
            let message = format!(
                "{} goes on at {address:#x}, where no descriptor of task.dma.{engine}.{list} starts",
                Unit::Dma { engine, list }.name()
            );
            self.report(
                &rules::DMA_LINK,
                Place::file().in_part(format!("task.dma.{engine}.{list}")),
                message,
            );
            return Resolved::Broken;
        };
        let bytes = Slice {
            section,
            offset,
            size: dma::SIZE as u64,
        };
        if self.tasks.count(section, index) > 1 {
            let message =
                format!("descriptor {index} is reached a second time: the links form a cycle");
            self.report(
                &rules::DMA_CYCLE,
                self.place(bytes, &format!("descriptor {index}")),
                message,
            );
            return Resolved::Broken;
        }
        let descriptor = Descriptor::decode(self.bytes(bytes));
        match descriptor.lengths() {
            Some((read, written)) if read == written => {}
            Some((read, written)) => {
                let message = format!("reads {read} bytes and writes {written}");
                self.report(
                    &rules::DMA_LENGTHS,
                    self.place(bytes, &format!("descriptor {index}")),
                    message,
                );
            }
            None => self.report(
                &rules::DMA_LENGTHS,
                self.place(bytes, &format!("descriptor {index}")),
                "moves more than 2^64 bytes",
            ),
        }
        if let Some(finding) = limits::transfer(
            &descriptor,
            self.image,
            &self.place(bytes, &format!("descriptor {index}")),
        ) {
            self.schedule.findings.push(finding);
        }
        let (link, waits, posts) = (descriptor.link, descriptor.waits, descriptor.posts);
        self.check_masks(bytes, waits | posts, &format!("descriptor {index}"));
        let task = Task {
            description: Description::Dma {
                descriptor: Box::new(descriptor),
                bytes,
            },
            waits,
            posts,
            configures: Vec::new(),
            releases: Vec::new(),
            produces: None,
        };
        Resolved::Task(Box::new(task), link)
    }

    fn resolve_dpu(&mut self, tile: u8, address: u64) -> Resolved {
        let Some(variant) = self.fetched(tile, address, 224) else {
            return Resolved::NotYet;
        };
        let Some(Found {
            kind: TaskKind::Variant,
            index,
            ..
        }) = self.tasks.record(variant.from.section, variant.from.offset)
        else {
            let message = format!("dpu{tile} is sent to {address:#x}, where no variant starts");
            self.report(
                &rules::VARIANT_POINTER,
                self.place(variant.from, "variant"),
                message,
            );
            return Resolved::Broken;
        };
        let item = format!("variant {index}");
        let record = Record(self.bytes(variant.from));
        let word = record.u32(0x1c);
        let (waits, posts) = (record.mask(0x20, 0x28), record.mask(0x30, 0x38));
        let (pointer, full) = (u64::from(record.u16(0)) << 5, record.u64(0xc0));
        let cmx = 0x4000_0000 | 1 << (21 + tile);
        if full != cmx + pointer {
            let message = format!(
                "its invariant stands at {pointer:#x} of tile {tile} by invar_ptr, and at {full:#x} by its address"
            );
            self.report(
                &rules::INVARIANT_POINTER,
                self.place(variant.from, &item),
                message,
            );
            return Resolved::Broken;
        }
        let Some(invariant) = self.fetched(tile, full, 352) else {
            return Resolved::NotYet;
        };
        let Some(Found {
            kind: TaskKind::Invariant,
            index: which,
            ..
        }) = self
            .tasks
            .record(invariant.from.section, invariant.from.offset)
        else {
            let message =
                format!("its invariant pointer {full:#x} does not name the start of an invariant");
            self.report(
                &rules::INVARIANT_POINTER,
                self.place(variant.from, &item),
                message,
            );
            return Resolved::Broken;
        };
        if self.tasks.count(variant.from.section, index) > 1 {
            let message = format!("variant {index} is reached a second time: the chain is a cycle");
            self.report(
                &rules::CHAIN_CYCLE,
                self.place(variant.from, &item),
                message,
            );
            return Resolved::Broken;
        }
        self.tasks.count(invariant.from.section, which);
        self.check_masks(variant.from, waits | posts, &item);
        let next = if word >> 15 & 1 != 0 {
            cmx + (u64::from(word >> 16) << 5)
        } else {
            0
        };
        let task = Task {
            description: Description::Dpu {
                tile,
                variant,
                invariant,
            },
            waits,
            posts,
            configures: Vec::new(),
            releases: Vec::new(),
            produces: None,
        };
        Resolved::Task(Box::new(task), next)
    }

    fn resolve_shave(&mut self, tile: u8, address: u64) -> Resolved {
        let Some(invocation) = self.fetched(tile, address, 96) else {
            return Resolved::NotYet;
        };
        let Some(Found {
            kind: TaskKind::Invocation,
            index,
            ..
        }) = self
            .tasks
            .record(invocation.from.section, invocation.from.offset)
        else {
            let message =
                format!("shave{tile} is sent to {address:#x}, where no invocation starts");
            self.report(
                &rules::INVOCATION_POINTER,
                self.place(invocation.from, "invocation"),
                message,
            );
            return Resolved::Broken;
        };
        let item = format!("invocation {index}");
        let record = Record(self.bytes(invocation.from));
        let (waits, posts, next) = (
            record.mask(40, 32),
            record.mask(56, 48),
            u64::from(record.u32(92)),
        );
        let pointer = record.u64(0);
        let Some(range) = self.fetched(tile, pointer, 40) else {
            return Resolved::NotYet;
        };
        let Some(Found {
            kind: TaskKind::Range,
            ..
        }) = self.tasks.record(range.from.section, range.from.offset)
        else {
            let message =
                format!("its range pointer {pointer:#x} does not name the start of a range");
            self.report(
                &rules::RANGE_POINTER,
                self.place(invocation.from, &item),
                message,
            );
            return Resolved::Broken;
        };
        if self.tasks.count(invocation.from.section, index) > 1 {
            let message =
                format!("invocation {index} is reached a second time: the chain is a cycle");
            self.report(
                &rules::CHAIN_CYCLE,
                self.place(invocation.from, &item),
                message,
            );
            return Resolved::Broken;
        }
        self.check_masks(invocation.from, waits | posts, &item);
        let task = Task {
            description: Description::Shave {
                tile,
                invocation,
                range,
            },
            waits,
            posts,
            configures: Vec::new(),
            releases: Vec::new(),
            produces: None,
        };
        Resolved::Task(Box::new(task), next)
    }

    /// A descriptor in the CMX of this very tile, if the program has brought it there by now.
    fn fetched(&self, tile: u8, address: u64, size: u64) -> Option<Fetched> {
        let Target::Cmx { tiles, offset } = address::resolve(self.image, address) else {
            return None;
        };
        match self.fetches.at(tile, offset, size) {
            Content::Known(from) if tiles == 1 << tile => Some(Fetched { from, offset }),
            _ => None,
        }
    }

    /// Follows a DMA that writes hardware registers.
    fn write_registers(&mut self, descriptor: &Descriptor, bytes: Slice, task: &mut Task) {
        let Some(Target::Register(_)) = descriptor.destination(self.image) else {
            return;
        };
        let place = self.place(bytes, "register write");
        let Operation::Move {
            source,
            from,
            destination,
            to,
            conversion: None,
        } = &descriptor.operation
        else {
            return self.report(
                &rules::REGISTER_WRITE,
                place,
                "registers are written by a conversion, a gather or a fill",
            );
        };
        let size = to.bytes().unwrap_or(u64::MAX);
        let base = match address::resolve(self.image, *source) {
            Target::Section(section, offset)
                if to.run % 4 == 0 && from.run % 4 == 0 && size <= 4 * REGISTER_WRITES =>
            {
                from.shifted(offset as i64)
                    .filter(|p| p.fits(self.image.bytes(section).len() as u64))
                    .map(|p| (section, p))
            }
            _ => None,
        };
        let (Some((section, from)), Some(to)) = (base, to.shifted(*destination as i64)) else {
            return self.report(
                &rules::REGISTER_WRITE,
                place,
                "registers are written with bytes that are not 32-bit words of the file",
            );
        };
        let contents = self.image.bytes(section);
        let words = from
            .runs()
            .flat_map(|start| (start..start + from.run).step_by(4));
        let values: Vec<u32> = words
            .map(|at| Record(&contents[at as usize..]).u32(0))
            .collect();
        let places = to
            .runs()
            .flat_map(|start| (start..start + to.run).step_by(4));
        for ((register, value), at) in places
            .zip(values)
            .zip(from.runs().flat_map(|s| (s..s + from.run).step_by(4)))
        {
            match registers::decode(self.control, register, value) {
                Write::Nothing => {}
                Write::Enqueue(unit, start) => {
                    let piece = self.piece(unit, start, place.clone());
                    task.releases.push(piece);
                }
                Write::Configure {
                    barrier,
                    producers,
                    consumers,
                    last,
                } => {
                    let id = self.schedule.configurations.len();
                    let uses = self
                        .schedule
                        .configurations
                        .iter()
                        .filter(|c| c.barrier == barrier)
                        .count();
                    let number = self.control.nth_use(barrier, uses).unwrap_or(id as u32);
                    let place = self
                        .image
                        .place(section, at, 4)
                        .at(format!("configuration of barrier {barrier}"));
                    self.schedule.configurations.push(Configuration {
                        barrier,
                        number,
                        producers,
                        consumers,
                        releases: 0..0,
                        place,
                    });
                    task.configures.push(id);
                    if last {
                        self.schedule.last = Some(id);
                    }
                }
                Write::Unknown => {
                    let message = format!(
                        "{value:#x} is written to {register:#x}, which is no register that is known"
                    );
                    self.report(&rules::REGISTER_WRITE, place.clone(), message);
                    return;
                }
            }
        }
    }

    /// What the walk leaves over: tasks that nothing reaches, invariants with another number of variants than they say.
    fn finish(mut self) -> Schedule {
        if !self.stuck && self.schedule.findings.is_empty() {
            let mut findings = Vec::new();
            self.tasks.unreached(|section, kind, index, count| {
                let size = kind.record_size() as u64;
                let slice = Slice {
                    section,
                    offset: index * size,
                    size,
                };
                let more = if count > 1 {
                    format!(", nor are {} after it", count - 1)
                } else {
                    String::new()
                };
                let message = format!(
                    "{} {index} is never reached from a work item{more}",
                    kind.record_name()
                );
                findings.push(rules::UNREACHED.at(
                    self.place(slice, &format!("{} {index}", kind.record_name())),
                    message,
                ));
            });
            self.tasks
                .miscounted(self.image, |section, index, says, ran| {
                    let slice = Slice {
                        section,
                        offset: index * 352,
                        size: 352,
                    };
                    let message =
                        format!("variant_count is {says}, and {ran} variants use this invariant");
                    findings.push(
                        rules::VARIANT_COUNT
                            .at(self.place(slice, &format!("invariant {index}")), message),
                    );
                });
            self.schedule.findings.append(&mut findings);
        }
        self.schedule
    }

    fn check_masks(&mut self, bytes: Slice, mask: u128, item: &str) {
        let limit = self.control.barrier_limit();
        if let Some(barrier) = barriers_of(mask).find(|b| u32::from(*b) >= limit) {
            let message = format!("names physical barrier {barrier}; the program has {limit}");
            self.report(&rules::BARRIER_ID, self.place(bytes, item), message);
        }
    }

    fn bytes(&self, slice: Slice) -> &[u8] {
        &self.image.bytes(slice.section)[slice.offset as usize..][..slice.size as usize]
    }

    fn place(&self, slice: Slice, item: &str) -> Place {
        self.image
            .place(slice.section, slice.offset, slice.size)
            .at(item)
    }

    fn report(&mut self, rule: &'static Rule, place: Place, message: impl Into<String>) {
        let finding: Finding = rule.at(place, message);
        self.schedule.findings.push(finding);
    }
}

enum Resolved {
    /// The task, and the address of the next descriptor of its piece (0: none).
    Task(Box<Task>, u64),
    /// Its descriptor is not there yet.
    NotYet,
    /// Its descriptor is wrong; that has been reported.
    Broken,
}
