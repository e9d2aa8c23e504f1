//! The engine through its public door: small programs, exact times.

use chipless_model::{
    Access, Action, Buffer, Builder, Condition, Configuration, ConfigurationId, Counter, Demand,
    Fault, Kernel, Limits, MemoryKind, NewTask, Pattern, PieceId, Place, QueueId, ResourceId, Role,
    Signal, Storage, SyncId, TaskId, Time, Wait,
};
use chipless_sim::{
    InstanceId, Order, Outcome, Outside, Part, Session, Stop, TimingOnly, Verified, World, run,
};
use std::borrow::Cow;

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

/// A program built task by task.
struct Built(Builder<'static>);

impl Built {
    fn new(queues: &[u32]) -> Built {
        let mut build = Builder::new("test", &Limits::default());
        build.part("test");
        build.kernel(Nothing);
        for (i, servers) in queues.iter().enumerate() {
            build.queue(format!("q{i}"), *servers);
        }
        Built(build)
    }

    fn semaphore(&mut self) -> SyncId {
        self.0.counter("S", Counter::up_to(99))
    }

    /// A barrier whose configurations have these counts and release these pieces.
    fn barrier(&mut self, uses: &[(u32, u32, &[u32])]) -> SyncId {
        let name = format!("B{}", self.0.program.syncs.len());
        let used = |(i, (producers, consumers, releases)): (usize, &(u32, u32, &[u32]))| {
            let releases = releases.iter().map(|p| PieceId::from_raw(*p));
            Configuration {
                barrier: SyncId::from_raw(0),
                number: i as u32,
                producers: *producers,
                consumers: *consumers,
                releases: releases.collect(),
                place: Place::file(),
            }
        };
        self.0.barrier(name, uses.iter().enumerate().map(used))
    }

    fn task(
        &mut self,
        queue: u32,
        ps: u64,
        waits: &[(SyncId, Condition)],
        signals: &[Signal],
        demands: &[(u32, u64)],
    ) -> TaskId {
        let wait = |&(sync, condition): &(SyncId, Condition)| Wait { sync, condition };
        let demand = |&(resource, bytes): &(u32, u64)| Demand {
            resource: ResourceId::from_raw(resource),
            bytes,
        };
        let task = NewTask {
            waits: &waits.iter().map(wait).collect::<Vec<_>>(),
            signals,
            demands: &demands.iter().map(demand).collect::<Vec<_>>(),
            fixed: Time(ps),
            ..NewTask::new(QueueId::from_raw(queue), 0usize.into())
        };
        self.0.task(task).expect("few tasks")
    }

    fn piece(&mut self, queue: u32, first: TaskId, count: u32, initially: bool) {
        let queue = QueueId::from_raw(queue);
        let piece = if initially {
            self.0.release(queue, first)
        } else {
            self.0.piece(queue, first)
        };
        self.0.program.pieces[piece].count = count;
    }

    fn run(self) -> Outcome {
        let program = self.0.finish().expect("a program");
        run(&Verified::assume(&program), &mut TimingOnly)
    }
}

fn times(outcome: &Outcome) -> Vec<(u64, u64)> {
    outcome
        .timeline
        .tasks
        .iter()
        .map(|t| (t.start.0, t.end.0))
        .collect()
}

#[test]
fn a_wait_holds_a_task_until_enough_signals_came() {
    let mut b = Built::new(&[1, 1]);
    let s = b.semaphore();
    let up = Signal::on_completion(Action::Add(s, 1));
    let a = b.task(0, 10, &[], &[up], &[]);
    b.task(0, 10, &[], &[up], &[]);
    let c = b.task(1, 5, &[(s, Condition::AtLeast(2))], &[], &[]);
    b.piece(0, a, 2, true);
    b.piece(1, c, 1, true);
    let outcome = b.run();
    assert_eq!(outcome.end, Ok(()));
    assert_eq!(times(&outcome), [(0, 10), (10, 20), (20, 25)]);
    assert_eq!(
        outcome.timeline.tasks[c].stall.and_then(|s| s.by),
        Some(TaskId::from_raw(1))
    );
}

#[test]
fn a_signal_at_the_read_does_not_wait_for_completion() {
    let mut b = Built::new(&[1, 1]);
    let s = b.semaphore();
    let a = b.task(0, 10, &[], &[Signal::on_read(Action::Add(s, 1))], &[]);
    let c = b.task(1, 5, &[(s, Condition::Equal(1))], &[], &[]);
    b.piece(0, a, 1, true);
    b.piece(1, c, 1, true);
    assert_eq!(times(&b.run()), [(0, 10), (0, 5)]);
}

#[test]
fn bandwidth_is_shared_equally_under_a_ceiling() {
    // 1000 B/s for all, 600 B/s for one. Alone: 600 B/s. Together: 500 B/s each.
    let mut b = Built::new(&[1, 1]);
    b.0.resource("link", 1e12, 6e11);
    let a = b.task(0, 0, &[], &[], &[(0, 600)]);
    let c = b.task(1, 500, &[], &[], &[(0, 600)]);
    b.piece(0, a, 1, true);
    b.piece(1, c, 1, true);
    // 0..500: a alone gets 300 bytes; 500..1100: both get 300; a is done; c has 300 left at 0.6 B/ps.
    let program = b.0.finish().expect("a program");
    let outcome = run(&Verified::assume(&program), &mut TimingOnly);
    let close = |got: u64, want: u64| assert!(got.abs_diff(want) <= 1, "{got} is not {want}");
    close(outcome.timeline.tasks[a].end.0, 1100);
    close(outcome.timeline.tasks[c].end.0, 1600);
    assert_eq!(outcome.timeline.carried(&program)[0], 1200);
}

/// Every task waits 50 ps before it begins, half of the bytes need not be moved, and the outside has served them at 400 ps.
struct Slow(bool);

impl Outside for Slow {
    fn begins(&mut self, _: InstanceId, _: TaskId, now: Time) -> Time {
        now + Time(50)
    }
    fn passes(&mut self, _: InstanceId, _: TaskId, demand: &Demand) -> u64 {
        demand.bytes / 2
    }
    fn ends(&mut self, _: InstanceId, _: TaskId, now: Time) -> bool {
        self.0 || now >= Time(400)
    }
}

#[test]
fn the_outside_delays_tasks_and_takes_bytes_from_them() {
    let mut b = Built::new(&[1]);
    b.0.resource("link", 1e12, 1e12);
    let first = b.task(0, 100, &[], &[], &[(0, 60)]);
    b.task(0, 20, &[], &[], &[]);
    b.piece(0, first, 2, true);
    let program = b.0.finish().expect("a program");
    let run = |mut outside: Slow| {
        let mut world = World::default();
        let verified = Verified::assume(&program);
        let at = Time(7);
        let instance = world
            .place(&verified, Order::Timed, TimingOnly, &mut outside, at)
            .expect("it starts");
        let mut told = false;
        while let Some(now) = world.next() {
            world.step(&mut outside).expect("no task fails");
            if world.next().is_none() && !std::mem::replace(&mut told, true) {
                // It may wait for that, or not.
                world.served(instance, first, now.max(Time(400)));
            }
        }
        assert!(world.is_done(instance));
        let idled = world.idled(instance);
        let (outcome, _) = world.remove(instance).expect("it is there");
        (times(&outcome), idled)
    };
    // Delay, fixed time, 30 bytes at one a picosecond; delay and fixed time.
    assert_eq!(run(Slow(true)), (vec![(7, 187), (187, 257)], Time(100)));
    assert_eq!(run(Slow(false)), (vec![(7, 400), (400, 470)], Time(100)));
}

#[test]
fn a_retired_barrier_is_reprogrammed_before_it_releases_work() {
    let mut b = Built::new(&[1, 1]);
    // The second use of the barrier is produced by the piece that the first use releases.
    let bar = b.barrier(&[(1, 1, &[2]), (1, 0, &[])]);
    b.0.program.completion = Some(ConfigurationId::from_raw(1));
    let produce = Signal::on_completion(Action::Produce(bar));
    let a = b.task(0, 10, &[], &[produce], &[]);
    let c = b.task(
        1,
        10,
        &[(bar, Condition::Lit)],
        &[Signal::on_completion(Action::Consume(bar))],
        &[],
    );
    let d = b.task(0, 10, &[], &[produce], &[]);
    b.piece(0, a, 1, true);
    b.piece(1, c, 1, true);
    b.piece(0, d, 1, false);
    let outcome = b.run();
    assert_eq!(outcome.end, Ok(()));
    assert_eq!(times(&outcome), [(0, 10), (10, 20), (20, 30)]);
    assert_eq!(outcome.timeline.end, Time(30));
}

#[test]
fn two_servers_take_two_pieces() {
    let mut b = Built::new(&[2]);
    for i in 0..3 {
        let t = b.task(0, 10 + i, &[], &[], &[]);
        b.piece(0, t, 1, true);
    }
    assert_eq!(times(&b.run()), [(0, 10), (0, 11), (10, 22)]);
}

#[test]
fn a_barrier_produced_too_often_is_a_fault() {
    let mut b = Built::new(&[1]);
    let bar = b.barrier(&[(1, 1, &[])]);
    let produce = Signal::on_completion(Action::Produce(bar));
    let a = b.task(0, 10, &[], &[produce, produce], &[]);
    b.piece(0, a, 1, true);
    let Err(Stop::Fault { task, fault }) = b.run().end else {
        panic!("no fault")
    };
    assert_eq!(
        (task, fault.message.as_str()),
        (a, "B0 is produced more often than its configuration says")
    );
}

#[test]
fn a_ring_of_waits_is_reported_as_a_cycle() {
    let mut b = Built::new(&[1, 1]);
    let (s, t) = (b.semaphore(), b.semaphore());
    let a = b.task(
        0,
        1,
        &[(s, Condition::AtLeast(1))],
        &[Signal::on_completion(Action::Add(t, 1))],
        &[],
    );
    let c = b.task(
        1,
        1,
        &[(t, Condition::AtLeast(1))],
        &[Signal::on_completion(Action::Add(s, 1))],
        &[],
    );
    b.piece(0, a, 1, true);
    b.piece(1, c, 1, true);
    let Err(Stop::Deadlock(deadlock)) = b.run().end else {
        panic!("no deadlock")
    };
    assert_eq!(deadlock.cycle, [a, c]);
    assert_eq!(deadlock.stuck[0].missing, [c]);
}

/// Adds its amount and then doubles, so that the order of tasks shows.
#[derive(Debug)]
struct AddAndDouble(u8);

impl Kernel for AddAndDouble {
    fn operation(&self) -> Cow<'static, str> {
        "add and double".into()
    }
    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        let byte = || Pattern::contiguous(0, 1);
        visit(Access::read(0usize.into(), byte()));
        visit(Access::write(0usize.into(), byte()));
    }
    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let byte = &mut storage.bytes_mut(0usize.into())[0];
        *byte = byte.wrapping_add(self.0).wrapping_mul(2);
        Ok(())
    }
}

#[test]
fn a_session_keeps_the_bytes_from_run_to_run() {
    let mut build = Builder::new("test", &Limits::default());
    build.part("test");
    let memory = build.memory("m", 1, MemoryKind::Scratchpad);
    build.buffer(Buffer {
        initial: vec![1].into(),
        ..Buffer::new("b", memory, 1, Role::State)
    });
    // The second queue's task comes first, and stands last in the program.
    let queues = [build.queue("q0", 1), build.queue("q1", 1)];
    let first = build.counter("first", Counter::FLAG);
    let kernels = [
        build.kernel(AddAndDouble(1)),
        build.kernel(AddAndDouble(10)),
    ];
    let wait = Wait {
        sync: first,
        condition: Condition::AtLeast(1),
    };
    let late = build.task(NewTask {
        waits: &[wait],
        ..NewTask::new(queues[0], kernels[0])
    });
    let late = late.expect("a task");
    build.release(queues[0], late);
    let early = build.task(NewTask {
        signals: &[Signal::on_completion(Action::Add(first, 1))],
        ..NewTask::new(queues[1], kernels[1])
    });
    let early = early.expect("a task");
    build.release(queues[1], early);
    let program = build.finish().expect("a program");
    let storage = Storage::new(&program.buffers, &Limits::default()).expect("a byte");
    let mut session = Session::new(&Verified::assume(&program), storage);
    let byte = |session: &Session<'_, '_>| session.storage().bytes(0usize.into())[0];
    for order in [Order::Timed, Order::Random(5)] {
        session.set_order(order);
        assert_eq!(
            (session.run(), byte(&session)),
            (Ok(()), 46),
            "((1 + 10) · 2 + 1) · 2"
        );
        assert_eq!(
            (session.run(), byte(&session)),
            (Ok(()), 226),
            "((46 + 10) · 2 + 1) · 2"
        );
        session.storage_mut().bytes_mut(0usize.into())[0] = 3;
        let part = Part::new(&program, [late]);
        assert_eq!(
            (session.run_part(&part), byte(&session)),
            (Ok(()), 8),
            "(3 + 1) · 2"
        );
        session.reset();
        assert_eq!(byte(&session), 1);
    }
}
