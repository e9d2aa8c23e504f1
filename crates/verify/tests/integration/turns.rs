//! Pieces of a queue that are released in either order.

use crate::late::kernel::Nothing;
use chipless_model::{
    Action, Builder, Limits, NewTask, PieceId, PieceOrder, Program, Signal, TaskId, Time,
};
use chipless_sim::{Order, TimingOnly, run_in};

/// A queue with two pieces of a task each; two tasks that nothing orders release the second and the first.
fn program(order: PieceOrder) -> Program<'static> {
    let mut build = Builder::new("test", &Limits::default());
    build.part("test");
    let kernel = build.kernel(Nothing);
    let task = |build: &mut Builder<'static>, queue, signals: &[Signal]| {
        let task = NewTask {
            signals,
            fixed: Time(1),
            ..NewTask::new(queue, kernel)
        };
        build.task(task).expect("a task")
    };
    let worker = build.queue("worker", 1);
    build.program.queues[worker].order = order;
    for _ in 0..2 {
        let first = task(&mut build, worker, &[]);
        build.piece(worker, first);
    }
    for piece in [1, 0].map(PieceId::from_raw) {
        let queue = build.queue(format!("releases {}", piece.raw()), 1);
        let release = Signal::on_completion(Action::Release(piece));
        let first = task(&mut build, queue, &[release]);
        build.release(queue, first);
    }
    build.finish().expect("a program")
}

#[test]
fn numbers_order_what_releases_do_not() {
    let released = program(PieceOrder::Release);
    let findings = chipless_verify::verify(&released).expect_err("nothing orders the releases");
    assert_eq!(findings[0].rule.code, "release-order");
    let numbered = program(PieceOrder::Number);
    let verified = chipless_verify::verify(&numbered).expect("numbers order the pieces");
    assert!(verified.warnings().is_empty());
    let [first, second] = [0, 1].map(TaskId::from_raw);
    for seed in 0..32 {
        let outcome = run_in(&verified, Order::Random(seed), &mut TimingOnly);
        assert_eq!(outcome.end, Ok(()), "seed {seed}");
        let tasks = &outcome.timeline.tasks;
        assert!(tasks[second].start >= tasks[first].end, "seed {seed}");
    }
}
