//! Tasks per second of the engine on one core, against the goal of ten million.
//!
//! Sixteen queues of 62,500 tasks; every fourth task signals and every fourth waits for a neighbour's progress; every second one
//! moves bytes over one of four shared links.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

use chipless_benches::best;
use chipless_model::{
    Access, Action, Builder, Condition, Counter, Demand, Fault, Kernel, Limits, NewTask, Program,
    QueueId, ResourceId, Signal, Storage, SyncId, Time, Wait,
};
use chipless_sim::{TimingOnly, Verified, run};
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
    let mut build = Builder::new("bench", &Limits::default());
    build.part("bench");
    let kernel = build.kernel(Nothing);
    for link in 0..4 {
        build.resource(format!("link{link}"), 100e9, 40e9);
    }
    for queue in 0..QUEUES {
        build.queue(format!("queue{queue}"), 1);
        build.counter(format!("S[{queue}]"), Counter::up_to(i64::MAX));
    }
    for q in 0..QUEUES {
        let (queue, first) = (QueueId::from_raw(q), build.program.tasks.next_idx());
        for index in 0..TASKS {
            let wait = Wait {
                sync: SyncId::from_raw((q + 1) % QUEUES),
                condition: Condition::AtLeast(i64::from(index) / 4),
            };
            let signal = Signal::on_completion(Action::Add(SyncId::from_raw(q), 1));
            let demand = Demand {
                resource: ResourceId::from_raw(q % 4),
                bytes: 1000 + u64::from((index * 7 + q) % 977),
            };
            let task = NewTask {
                waits: &[wait][..usize::from(index % 4 == 3)],
                signals: &[signal][..usize::from(index % 4 == 0)],
                demands: &[demand][..usize::from(index % 2 == 0)],
                fixed: Time(10_000 + u64::from((index * 13 + q * 5) % 1009)),
                ..NewTask::new(queue, kernel)
            };
            build.task(task).expect("a task");
        }
        build.release(queue, first);
    }
    build.finish().expect("a program")
}

fn main() {
    let program = program();
    let time = best(|| {
        assert!(
            run(&Verified::assume(&program), &mut TimingOnly)
                .end
                .is_ok()
        );
    });
    let rate = f64::from(QUEUES * TASKS) / time.as_secs_f64();
    println!(
        "engine: {:.1} million tasks/s on one core, {:.2} of the goal of {:.0} million",
        rate / 1e6,
        rate / GOAL,
        GOAL / 1e6
    );
}
