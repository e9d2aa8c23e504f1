//! Cost of verification: programs of 10^4, 10^5 and 10^6 tasks with four accesses each, on sixteen queues; or the NPU blobs
//! given on the command line (`-- FILE…`). Times are processor times.

#![allow(clippy::print_stdout, reason = "a benchmark tells what it measured")]

use chipless_model::{
    Access, Action, Buffer, Builder, Condition, Counter, Fault, Kernel, Limits, Loop, MemoryKind,
    NewTask, Pattern, Program, QueueId, Role, Signal, Storage, SyncId, Time, Wait,
};
use cpu_time::ProcessTime;
use std::borrow::Cow;

const QUEUES: u32 = 16;
const SLOT: u64 = 4096;
const SLOTS: u64 = 64;

/// Reads two slots of the queue before, writes rows of two of its own.
#[derive(Debug)]
struct Step {
    queue: u64,
    turn: u64,
}

impl Kernel for Step {
    fn operation(&self) -> Cow<'static, str> {
        "step".into()
    }
    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        let slot = |queue: u64, turn: u64| (queue * SLOTS + turn % SLOTS) * SLOT;
        let rows = |at: u64| {
            Pattern::new(
                at,
                64,
                [Loop {
                    count: SLOT / 64,
                    stride: 64,
                }],
            )
        };
        let half = |at: u64, odd: u64| {
            Pattern::new(
                at + odd * 64,
                64,
                [Loop {
                    count: SLOT / 128,
                    stride: 128,
                }],
            )
        };
        if self.queue > 0 {
            visit(Access::read(
                0usize.into(),
                rows(slot(self.queue - 1, self.turn)),
            ));
            visit(Access::read(
                0usize.into(),
                half(slot(self.queue - 1, self.turn), self.turn & 1),
            ));
        }
        visit(Access::write(
            0usize.into(),
            half(slot(self.queue, self.turn), 0),
        ));
        visit(Access::write(
            0usize.into(),
            half(slot(self.queue, self.turn), 1),
        ));
    }
    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

/// A pipeline: queue `q` does turn `i` after queue `q − 1` has, and when queue `q + 1` is no more than 64 turns behind.
fn pipeline(tasks: u64) -> Program<'static> {
    let mut build = Builder::new("bench", &Limits::default());
    build.part("bench");
    let memory = build.memory("m", 1 << 40, MemoryKind::Scratchpad);
    let size = u64::from(QUEUES) * SLOTS * SLOT;
    build.buffer(Buffer::new("b", memory, size, Role::Scratch));
    for queue in 0..QUEUES {
        build.queue(format!("q{queue}"), 1);
        build.counter(format!("S{queue}"), Counter::up_to(i64::MAX));
    }
    let turns = tasks / u64::from(QUEUES);
    for queue in 0..QUEUES {
        let first = build.program.tasks.next_idx();
        for turn in 0..turns {
            let wait = |queue: u32, n: u64| Wait {
                sync: SyncId::from_raw(queue),
                condition: Condition::AtLeast(n as i64),
            };
            let filled = (queue > 0).then(|| wait(queue - 1, turn + 1));
            let free =
                (queue + 1 < QUEUES && turn >= SLOTS).then(|| wait(queue + 1, turn - SLOTS + 1));
            let waits: Vec<Wait> = filled.into_iter().chain(free).collect();
            let done = Signal::on_completion(Action::Add(SyncId::from_raw(queue), 1));
            let kernel = build.kernel(Step {
                queue: u64::from(queue),
                turn,
            });
            let task = NewTask {
                waits: &waits,
                signals: &[done],
                fixed: Time(1),
                ..NewTask::new(QueueId::from_raw(queue), kernel)
            };
            build.task(task).expect("a task");
        }
        build.release(QueueId::from_raw(queue), first);
    }
    build.finish().expect("a program")
}

fn main() {
    let files: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    if files.is_empty() {
        return synthetic();
    }
    for file in &files {
        blob(file);
    }
}

/// The best of several verifications of a blob.
fn blob(file: &str) {
    let bytes = std::fs::read(file).expect("a file");
    let document = chipless_npu::Document::read(&bytes).expect("a blob");
    let image = chipless_npu::Image::load(&document, &Limits::default()).expect("an image");
    let program = chipless_npu::lower(&document, &image, &chipless_npu::Options::default())
        .expect("a program");
    let mut accesses = 0u64;
    program
        .tasks
        .indices()
        .for_each(|task| program.kernel(task).accesses(&mut |_| accesses += 1));
    let once = |_| {
        let start = ProcessTime::now();
        let is_safe = chipless_verify::verify(&program).is_ok();
        (start.elapsed(), is_safe)
    };
    let (took, is_safe) = (0..15).map(once).min().expect("fifteen runs");
    println!(
        "{:>9} tasks, {accesses:>6} accesses: {took:>10.3?}, safe: {is_safe}  {file}",
        program.tasks.len()
    );
}

fn synthetic() {
    for tasks in [10_000, 100_000, 1_000_000] {
        let program = pipeline(tasks);
        let start = ProcessTime::now();
        let verdict = chipless_verify::verify(&program);
        let took = start.elapsed();
        let per_task = took.as_nanos() / u128::from(tasks);
        println!(
            "{tasks:>9} tasks: {took:>12.3?}, {per_task} ns each, safe: {}",
            verdict.is_ok()
        );
        if let Err(findings) = verdict {
            println!("{}", findings[0]);
        }
    }
}
