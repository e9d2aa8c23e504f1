//! Tasks per second of the engine on one core, against the goal of ten million.
//!
//! Sixteen queues of 62,500 tasks; every fourth task signals and every fourth waits for a neighbour's progress; every second one
//! moves bytes over one of four shared links.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

use chipless_benches::best;
use chipless_model::{
    Access, Action, Condition, Counter, Demand, Fault, Kernel, KernelId, Location, PartId, Piece,
    Program, Queue, QueueId, Resource, ResourceId, Signal, Span, Storage, Sync, SyncId, SyncKind,
    Task, Time, Wait,
};
use chipless_sim::{TimingOnly, run};
use std::borrow::Cow;

const QUEUES: u32 = 16;
const TASKS: u32 = 62_500;
const GOAL: f64 = 10e6;

#[derive(Debug)]
struct Nothing;

impl Kernel for Nothing {
    fn operation(&self) -> Cow<'static, str> {
        "nothing".into()
    }
    fn accesses(&self, _: &mut dyn FnMut(Access)) {}
    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

fn program() -> Program<'static> {
    let mut program = Program::default();
    program.parts.push("bench".into());
    program.kernels.push(Box::new(Nothing));
    for link in 0..4 {
        program.resources.push(Resource {
            name: format!("link{link}"),
            capacity: 100e9,
            per_transfer: 40e9,
        });
    }
    for queue in 0..QUEUES {
        program.queues.push(Queue {
            name: format!("queue{queue}"),
            servers: 1,
        });
        program.syncs.push(Sync {
            name: format!("S[{queue}]"),
            kind: SyncKind::Counter(Counter::up_to(i64::MAX)),
        });
    }
    for q in 0..QUEUES {
        let (queue, first) = (QueueId::from_raw(q), program.tasks.next_idx());
        for index in 0..TASKS {
            let neighbour = SyncId::from_raw((q + 1) % QUEUES);
            let wait = Wait {
                sync: neighbour,
                condition: Condition::AtLeast(i64::from(index) / 4),
            };
            let signal = Signal::on_completion(Action::Add(SyncId::from_raw(q), 1));
            let bytes = 1000 + u64::from((index * 7 + q) % 977);
            program.tasks.push(Task {
                queue,
                index,
                kernel: KernelId::from_raw(0),
                waits: Span::push(&mut program.waits, (index % 4 == 3).then_some(wait)),
                signals: Span::push(&mut program.signals, (index % 4 == 0).then_some(signal)),
                demands: Span::push(
                    &mut program.demands,
                    (index % 2 == 0).then_some(Demand {
                        resource: ResourceId::from_raw(q % 4),
                        bytes,
                    }),
                ),
                fixed: Time(10_000 + u64::from((index * 13 + q * 5) % 1009)),
                location: Location {
                    part: PartId::from_raw(0),
                    offset: 0,
                    size: 0,
                },
                label: None,
            });
        }
        let piece = program.pieces.push(Piece {
            queue,
            first,
            count: TASKS,
        });
        program.initial.push(piece);
    }
    program
}

fn main() {
    let program = program();
    let time = best(|| assert!(run(&program, &mut TimingOnly).end.is_ok()));
    let rate = f64::from(QUEUES * TASKS) / time.as_secs_f64();
    println!(
        "engine: {:.1} million tasks/s on one core, {:.2} of the goal of {:.0} million",
        rate / 1e6,
        rate / GOAL,
        GOAL / 1e6
    );
}
