//! Scheduling as the firmware does it: bands, turns of processes and contexts, preemption after a grace period.

use super::turns::{Level, State, Turns};
use super::{Candidate, Holder, Place, Plan, Policy};
use crate::figures::Figures;

const NORMAL: u8 = 1;
const FOCUS: u8 = 2;

/// A process in a band.
type Process = (u8, u32);
/// A context with its process and its priority.
type Member = (u8, u32, i8, usize);

pub(super) struct Hardware {
    quantum: [u64; 4],
    grace: [u64; 4],
    process_grace: [u64; 4],
    context_quantum: u64,
    context_grace: u64,
    processes: Turns<Process>,
    contexts: Turns<Member>,
    /// Contexts whose job does not fit while lower bands run, and since when.
    blocked: Vec<(usize, u64)>,
    share: Share,
}

/// The part of the time that the normal band has while focus work would keep it from the device.
#[derive(Debug)]
struct Share {
    part: f64,
    /// What is owed before the normal band comes first, in picoseconds.
    limit: f64,
    owed: f64,
    /// Whether the normal band comes before focus now.
    is_paid: bool,
    /// Since the last look: whether both wanted the device, and whether normal work ran.
    contended: bool,
    running: bool,
    looked: u64,
}

impl Share {
    fn pass(&mut self, now: u64) {
        if self.contended {
            let time = (now - self.looked) as f64;
            self.owed += time * (self.part - f64::from(u8::from(self.running)));
        }
        self.looked = now;
        if self.owed >= self.limit && self.part > 0.0 {
            self.is_paid = true;
        } else if self.owed <= 0.0 || !self.contended {
            self.is_paid = false;
        }
    }

    /// When it changes its mind, if all stays as it is.
    fn turns_at(&self) -> Option<u64> {
        let change = self.part - f64::from(u8::from(self.running));
        let way = if self.is_paid {
            -self.owed
        } else {
            self.limit - self.owed
        };
        let is_near = self.contended && self.part > 0.0 && way * change > 0.0;
        is_near.then(|| {
            self.looked
                .saturating_add((way / change).ceil() as u64)
                .max(self.looked + 1)
        })
    }
}

impl Hardware {
    pub(super) fn new(figures: &Figures) -> Hardware {
        Hardware {
            quantum: figures.quantum,
            grace: figures.grace,
            process_grace: figures.process_grace,
            context_quantum: figures.context_quantum,
            context_grace: figures.context_grace,
            processes: Turns::default(),
            contexts: Turns::default(),
            blocked: Vec::new(),
            share: Share {
                part: figures.normal_percentage / 100.0,
                limit: figures.quantum[NORMAL as usize] as f64,
                owed: 0.0,
                is_paid: false,
                contended: false,
                running: false,
                looked: 0,
            },
        }
    }

    /// Bands in order; the normal one comes between focus and realtime while it is paid what it is owed.
    const fn rank(&self, band: u8) -> u8 {
        if band == NORMAL && self.share.is_paid {
            2 * FOCUS + 1
        } else {
            2 * band
        }
    }

    /// Turns begin and end.
    fn turn(&mut self, now: u64, waiting: &[Candidate], holding: &[Holder], plan: &mut Plan) {
        let mut wake = |at| plan.wake_at(at);
        let quantum = self.quantum;
        let processes: Vec<Process> = waiting.iter().map(|c| (c.band, c.process)).collect();
        let placed: Vec<Process> = holding.iter().map(|h| (h.band, h.process)).collect();
        let level = Level {
            waiting: &processes,
            holding: &placed,
            quantum: &|(band, _)| quantum[band as usize],
            competes: &|other: Process, key: Process| other != key && other.0 == key.0,
        };
        self.processes.update(now, &level, &mut wake);
        let members: Vec<Member> = waiting
            .iter()
            .map(|c| (c.band, c.process, c.priority, c.context))
            .collect();
        let placed: Vec<Member> = holding
            .iter()
            .map(|h| (h.band, h.process, h.priority, h.context))
            .collect();
        let of_one = self.context_quantum;
        let level = Level {
            waiting: &members,
            holding: &placed,
            quantum: &|_| of_one,
            competes: &|other: Member, key: Member| {
                (other.0, other.1) == (key.0, key.1) && other.3 != key.3 && other.2 >= key.2
            },
        };
        self.contexts.update(now, &level, &mut wake);
    }

    /// Turns that have just begun end while others wait.
    fn wake_for_turns(&self, now: u64, waiting: &[Candidate], plan: &mut Plan) {
        let is_placed = |c: &&Candidate| plan.place.contains(&c.context);
        let mut ends = Vec::new();
        for c in waiting.iter().filter(is_placed) {
            for other in waiting.iter().filter(|c| !is_placed(c)) {
                if other.band == c.band && other.process != c.process {
                    ends.push(now.saturating_add(self.quantum[c.band as usize]));
                } else if other.band == c.band && other.priority >= c.priority {
                    ends.push(now.saturating_add(self.context_quantum));
                }
            }
        }
        for end in ends {
            plan.wake_at(end);
        }
    }

    /// Those whose turn has ended, and whose grace has, too, leave for who waits.
    fn expire(&self, now: u64, waiting: &[Candidate], holding: &[Holder], plan: &mut Plan) {
        for h in holding.iter().filter(|h| !h.is_leaving) {
            let ends = [
                (
                    self.processes.state((h.band, h.process)),
                    self.process_grace[h.band as usize],
                    waiting
                        .iter()
                        .find(|c| c.band == h.band && c.process != h.process),
                ),
                (
                    self.contexts
                        .state((h.band, h.process, h.priority, h.context)),
                    self.context_grace,
                    waiting.iter().find(|c| {
                        (c.band, c.process) == (h.band, h.process) && c.priority >= h.priority
                    }),
                ),
            ];
            for (state, grace, by) in ends {
                let (State::Ended(_, at), Some(by)) = (state, by) else {
                    continue;
                };
                let end = at.saturating_add(grace);
                if now < end {
                    plan.wake_at(end);
                } else if !plan
                    .preempt
                    .iter()
                    .any(|(context, _)| *context == h.context)
                {
                    plan.preempt.push((h.context, by.context));
                }
            }
        }
    }
}

impl Policy for Hardware {
    fn plan(
        &mut self,
        now: u64,
        waiting: &mut [Candidate],
        holding: &[Holder],
        room: Place,
    ) -> Plan {
        let mut plan = Plan::default();
        self.share.pass(now);
        waiting.sort_unstable_by_key(|c| c.number);
        self.turn(now, waiting, holding, &mut plan);
        let key = |c: &Candidate| {
            let member = (c.band, c.process, c.priority, c.context);
            (
                std::cmp::Reverse(self.rank(c.band)),
                self.processes.state((c.band, c.process)).order(),
                std::cmp::Reverse(c.priority),
                self.contexts.state(member).order(),
            )
        };
        waiting.sort_by_key(key);
        self.expire(now, waiting, holding, &mut plan);

        // What is free now, and what will be when those have left that are asked to; what is promised is taken from both.
        let leaving = holding.iter().filter(|h| h.is_leaving);
        let leaving = leaving.fold(Place::default(), |sum, h| sum.plus(h.holds));
        let (mut now_free, mut soon_free) = (room, room.plus(leaving));
        let mut blocked = std::mem::take(&mut self.blocked);
        let mut still: Vec<(usize, u64)> = Vec::new();
        for c in waiting.iter() {
            let member = (c.band, c.process, c.priority, c.context);
            let has_ended = |state: State| matches!(state, State::Ended(..));
            if has_ended(self.processes.state((c.band, c.process)))
                || has_ended(self.contexts.state(member))
            {
                continue;
            }
            if c.need.fits(now_free) && c.need.fits(soon_free) {
                now_free = now_free.minus(c.need);
                soon_free = soon_free.minus(c.need);
                self.processes.start(now, (c.band, c.process));
                self.contexts.start(now, member);
                plan.place.push(c.context);
                continue;
            }
            let mut victims: Vec<&Holder> = holding
                .iter()
                .filter(|h| !h.is_leaving && self.rank(h.band) < self.rank(c.band))
                .filter(|h| {
                    !plan
                        .preempt
                        .iter()
                        .any(|(context, _)| *context == h.context)
                })
                .collect();
            victims.sort_unstable_by_key(|h| (self.rank(h.band), std::cmp::Reverse(h.placed)));
            let mut freed = soon_free;
            let mut needed = Vec::new();
            for h in victims {
                if c.need.fits(freed) {
                    break;
                }
                freed = freed.plus(h.holds);
                needed.push(h.context);
            }
            if !c.need.fits(freed) {
                continue;
            }
            if needed.is_empty() {
                // It waits for those that are leaving, unless they leave for another.
                soon_free = soon_free.minus(c.need);
                continue;
            }
            let since = blocked.iter().find(|(context, _)| *context == c.context);
            let since = since.map_or(now, |(_, since)| *since);
            let end = since.saturating_add(self.grace[c.band as usize]);
            if now < end {
                still.push((c.context, since));
                plan.wake_at(end);
            } else {
                plan.preempt
                    .extend(needed.into_iter().map(|context| (context, c.context)));
                soon_free = freed.minus(c.need);
            }
        }
        blocked.clear();
        self.blocked = still;

        self.wake_for_turns(now, waiting, &mut plan);
        let holds = |band: u8| {
            let placed = |c: &&Candidate| c.band == band && plan.place.contains(&c.context);
            holding.iter().any(|h| h.band == band) || waiting.iter().any(|c| placed(&c))
        };
        let wants = |band: u8| holds(band) || waiting.iter().any(|c| c.band == band);
        let (contended, running) = (wants(NORMAL) && wants(FOCUS), holds(NORMAL));
        (self.share.contended, self.share.running) = (contended, running);
        if let Some(at) = self.share.turns_at() {
            plan.wake_at(at);
        }
        plan
    }
}
