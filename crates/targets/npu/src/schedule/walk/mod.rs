//! The walk: every queue as far as barriers let it, again and again, until nothing is left.

mod descriptors;
mod writes;

use super::control::{Control, WorkItem};
use super::fetches::Fetches;
use super::sections::TaskSections;
use super::{Configuration, Description, Piece, Schedule, Slice, Task, Unit, barriers_of, rules};
use crate::image::Image;
use chipless_model::{Barrier, Finding, Limits, Place, Rule, Turns};
use std::collections::VecDeque;

/// Physical barriers that masks can name.
const BARRIERS: usize = 128;

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
        turns: Turns::default(),
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
    /// Which work items of a queue have their turn, where the firmware enqueues them.
    turns: Turns,
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
            self.schedule.last = self.control.last_barrier;
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
        self.turns = Turns::new(self.schedule.pieces.iter().map(|piece| piece.queue));
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
        let queue = self.schedule.pieces[piece].queue;
        if self.schedule.managed_by_program {
            self.waiting[queue].push_back(piece);
            return;
        }
        self.turns.release(piece);
        self.waiting[queue].extend(std::iter::from_fn(|| self.turns.take(queue)));
    }

    fn go(&mut self) {
        loop {
            let mut moved = false;
            // Queues may come into being while the walk goes on, so the bound is not fixed.
            let mut server = 0;
            while server < self.servers.len() {
                while self.advance(server, false) {
                    moved = true;
                    self.consume_in_time();
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

    /// Runs tasks that only consume as soon as they can: compilers count on it that they are done before their barriers are used
    /// again.
    fn consume_in_time(&mut self) {
        for server in 0..self.servers.len() {
            let consumes = |task: &Task| {
                task.waits != 0
                    && task.posts == 0
                    && task.configures.is_empty()
                    && task.releases.is_empty()
            };
            let is_next = |server: &Server| {
                let head = server.head.as_ref();
                head.is_some_and(|(task, _)| consumes(task))
            };
            while is_next(&self.servers[server]) && self.advance(server, false) {}
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
        let active = |barrier: u8| self.barriers[barrier as usize].active().copied();
        task.meets = barriers_of(waits)
            .map(|barrier| active(barrier).filter(|_| !self.stuck))
            .collect();
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

    /// What the walk leaves over: tasks that nothing reaches, invariants with another number of variants than they say.
    fn finish(mut self) -> Schedule {
        if !self.stuck && self.schedule.findings.is_empty() {
            let mut findings = Vec::new();
            self.tasks.unreached(|section, kind, size, index, count| {
                let size = size as u64;
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
                .miscounted(self.image, |section, size, index, says, ran| {
                    let slice = Slice {
                        section,
                        offset: index * size as u64,
                        size: size as u64,
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
