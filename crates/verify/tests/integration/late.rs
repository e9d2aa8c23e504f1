//! A barrier that is used again while a task that only consumes its previous use may be late.

use chipless_model::{
    Action, Builder, Condition, Configuration, ConfigurationId, Limits, NewTask, Place, Program,
    Signal, SyncId, TaskId, Time, Wait,
};
use chipless_sim::{Order, TimingOnly, Verified, run_in};

pub(crate) mod kernel {
    use chipless_model::{Access, Fault, Kernel, Storage};
    use std::borrow::Cow;

    #[derive(Debug)]
    pub(crate) struct Nothing;

    impl Kernel for Nothing {
        fn operation(&self) -> Cow<'static, str> {
            "nothing".into()
        }
        fn accesses(&self, _: &mut dyn FnMut(Access)) {}
        fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
            Ok(())
        }
    }
}

/// The first use of barrier 0 is produced, and consumed by a task that signals nothing. The second use is produced behind that; a
/// reader waits for it, and nothing orders the reader after the consumer of the first.
fn program() -> Program<'static> {
    let mut build = Builder::new("test", &Limits::default());
    build.part("test");
    let kernel = build.kernel(kernel::Nothing);
    let (reused, other) = (SyncId::from_raw(0), SyncId::from_raw(1));
    let lit = |sync| Wait {
        sync,
        condition: Condition::Lit,
    };
    let consume = |sync| Signal::on_completion(Action::Consume(sync));
    let produce = |sync| Signal::on_completion(Action::Produce(sync));
    let queues: [&[(&[Wait], &[Signal])]; 3] = [
        &[
            (&[], &[produce(reused)]),
            (&[lit(reused)], &[consume(reused)]),
        ],
        &[
            (&[lit(reused)], &[consume(reused)]),
            (&[], &[produce(other)]),
        ],
        &[(&[lit(other)], &[consume(other), produce(reused)])],
    ];
    for (number, tasks) in queues.into_iter().enumerate() {
        let queue = build.queue(format!("q{number}"), 1);
        let first = build.program.tasks.next_idx();
        for (waits, signals) in tasks {
            let task = NewTask {
                waits,
                signals,
                fixed: Time(1),
                ..NewTask::new(queue, kernel)
            };
            build.task(task).expect("a task");
        }
        build.release(queue, first);
    }
    let used = |number| Configuration {
        barrier: reused,
        number,
        producers: 1,
        consumers: 1,
        releases: Vec::new(),
        place: Place::file(),
    };
    build.barrier("B0", [used(0), used(1)]);
    build.barrier("B1", [used(2)]);
    build.finish().expect("a program")
}

#[test]
fn a_wait_that_means_a_later_use_is_not_met_by_the_one_before() {
    let mut program = program();
    let codes = |program: &Program<'_>| -> Vec<&str> {
        let findings = match chipless_verify::verify(program) {
            Ok(verified) => verified.warnings().to_vec(),
            Err(findings) => findings,
        };
        findings.iter().map(|f| f.rule.code).collect()
    };
    assert!(codes(&program).contains(&"barrier-reuse"));
    let [first, second, other] = [0, 1, 2].map(ConfigurationId::from_raw);
    program.meant = [second, first, other].map(Some).to_vec();
    assert_eq!(codes(&program), ["barrier-reuse-late"]);
    let [first_use, reader, second_use] = [0, 1, 4].map(TaskId::from_raw);
    for seed in 0..64 {
        let verified = Verified::assume(&program);
        let outcome = run_in(&verified, Order::Random(seed), &mut TimingOnly);
        assert_eq!(outcome.end, Ok(()), "seed {seed}");
        let tasks = &outcome.timeline.tasks;
        assert!(
            tasks[reader].start >= tasks[second_use].end
                && tasks[second_use].start >= tasks[first_use].end,
            "seed {seed}"
        );
    }
    program.meant = [other, second, first].map(Some).to_vec();
    assert_eq!(codes(&program), ["program-malformed"]);
}
