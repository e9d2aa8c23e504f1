//! Small programs for the tests: two tiles of an input go through one engine, with barriers that are used twice.

use crate::attribution::Attribution;
use crate::summary::Run;
use chipless_model::{
    Access, Action, Buffer, BufferId, Builder, Condition, Configuration, ConfigurationId, Counter,
    Demand, ElementType, Fault, Kernel, Limits, Location, Loop, MemoryKind, NewTask, Pattern,
    Place, Port, Program, QueueId, ResourceId, Role, Signal, Storage, SyncId, TaskId, Time, Wait,
};
use chipless_sim::Timeline;
use std::borrow::Cow;

#[derive(Debug)]
struct Example {
    operation: &'static str,
    details: &'static str,
    accesses: Vec<Access>,
    unproven: Option<&'static str>,
}

impl Kernel for Example {
    fn operation(&self) -> Cow<'static, str> {
        self.operation.into()
    }
    fn details(&self) -> String {
        self.details.into()
    }
    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.accesses.iter().cloned().for_each(visit);
    }
    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
    fn unproven(&self) -> Option<Cow<'static, str>> {
        self.unproven.map(Cow::from)
    }
}

/// Appends a task to a queue, as a piece of its own that is released at the start.
fn task(
    build: &mut Builder<'static>,
    queue: u32,
    kernel: Example,
    waits: &[(SyncId, Condition)],
    signals: &[Action],
    bytes: u64,
) -> TaskId {
    let queue = QueueId::from_raw(queue);
    let before = build.program.tasks.iter().filter(|t| t.queue == queue);
    let label =
        (kernel.operation != "dma").then(|| format!("block1/conv{}", before.count()).into());
    let wait = |&(sync, condition): &(SyncId, Condition)| Wait { sync, condition };
    let signals = signals.iter().map(|a| Signal::on_completion(*a));
    let demand = Demand {
        resource: ResourceId::from_raw(0),
        bytes,
    };
    let kernel = build.kernel(kernel);
    let task = NewTask {
        waits: &waits.iter().map(wait).collect::<Vec<_>>(),
        signals: &signals.collect::<Vec<_>>(),
        demands: &[demand][..usize::from(bytes > 0)],
        fixed: Time::from_ns(if bytes > 0 { 100.0 } else { 1500.0 }),
        location: Location {
            part: 0usize.into(),
            offset: 0x8000 + build.program.tasks.len() as u64 * 224,
            size: 224,
        },
        label,
        ..NewTask::new(queue, kernel)
    };
    let id = build.task(task).expect("a few tasks");
    build.release(queue, id);
    id
}

fn empty(queues: &[(&str, u32)]) -> Builder<'static> {
    let mut build = Builder::new("npu", &Limits::default());
    build.program.name = "example".into();
    build.part("task.dma.0.0");
    for (name, servers) in queues {
        build.queue(*name, *servers);
    }
    build
}

fn barrier(build: &mut Builder<'static>, uses: &[(u32, u32, u32)]) -> SyncId {
    let name = format!("barrier {}", build.program.syncs.len());
    let used = |&(number, producers, consumers): &(u32, u32, u32)| Configuration {
        barrier: SyncId::from_raw(0),
        number,
        producers,
        consumers,
        releases: Vec::new(),
        place: Place::bytes(0x7000 + u64::from(number) * 12, 12).in_part("barriers"),
    };
    build.barrier(name, uses.iter().map(used))
}

/// Input by tiles, compute, output. Barrier 0 is used twice; its second use needs that the first tile is done.
pub(crate) fn pipeline() -> Program<'static> {
    let mut p = empty(&[("dma0.ddr", 1), ("dpu0", 1), ("dma0.cmx", 1)]);
    let ddr = p.memory("ddr", 1 << 20, MemoryKind::Dram);
    let cmx = p.memory("cmx0", 1 << 20, MemoryKind::Scratchpad);
    let x = p.buffer(Buffer::new("x", ddr, 8192, Role::Input));
    let y = p.buffer(Buffer::new("y", ddr, 4096, Role::Output));
    let local = p.buffer(Buffer::new("cmx0", cmx, 1 << 20, Role::Scratch));
    p.resource("ddr", 64e9, 32e9);
    let b0 = barrier(&mut p, &[(0, 1, 1), (2, 1, 1)]);
    let b1 = barrier(&mut p, &[(1, 1, 1), (3, 1, 1)]);
    let b2 = barrier(&mut p, &[(4, 1, 0)]);
    p.program.completion = Some(ConfigurationId::from_raw(4));
    let run = Pattern::contiguous;
    let transfer = |from: (BufferId, Pattern), to: (BufferId, Pattern)| Example {
        operation: "dma",
        details: "",
        accesses: vec![Access::read(from.0, from.1), Access::write(to.0, to.1)],
        unproven: None,
    };
    let compute = |at: u64, unproven| Example {
        operation: "conv 1x1",
        details: "16×16×16 → 16×16×32 float16",
        accesses: vec![
            Access::read(local, run(at, 4096)),
            Access::write(local, run(at + 0x10000, 2048)).may(),
        ],
        unproven,
    };
    let strided = Pattern::new(
        0x18000,
        64,
        [Loop {
            count: 64,
            stride: 512,
        }],
    );
    let lit = |sync| (sync, Condition::Lit);
    task(
        &mut p,
        0,
        transfer((x, run(0, 4096)), (local, run(0x8000, 4096))),
        &[],
        &[Action::Produce(b0)],
        4096,
    );
    task(
        &mut p,
        1,
        compute(0x8000, None),
        &[lit(b0)],
        &[Action::Consume(b0), Action::Produce(b1)],
        0,
    );
    task(
        &mut p,
        0,
        transfer((x, run(4096, 4096)), (local, strided)),
        &[lit(b1)],
        &[Action::Consume(b1), Action::Produce(b0)],
        4096,
    );
    task(
        &mut p,
        1,
        compute(0x18000, Some("rounding of a negative zero point")),
        &[lit(b0)],
        &[Action::Consume(b0), Action::Produce(b1)],
        0,
    );
    task(
        &mut p,
        2,
        transfer((local, run(0x18000, 4096)), (y, run(0, 4096))),
        &[lit(b1)],
        &[Action::Consume(b1), Action::Produce(b2)],
        4096,
    );
    // The output transfer is let go when the second tile has been taken, as its barrier has a use before.
    let mut p = p.finish().expect("ids of its own");
    let last = p.initial.pop();
    p.configurations[ConfigurationId::from_raw(1)]
        .releases
        .extend(last);
    let port = |name: &str, buffer, element, shape: &[u64]| Port {
        name: name.into(),
        alias: None,
        buffer,
        element,
        shape: shape.to_vec(),
        host_element: None,
        scale: None,
    };
    p.interface
        .inputs
        .push(port("x", x, ElementType::Float16, &[1, 16, 16, 16]));
    p.interface
        .outputs
        .push(port("y", y, ElementType::Float16, &[1, 8, 16, 16]));
    p
}

/// Two engines that end at the same instant and wait for each other there; then the second is done before the first.
pub(crate) fn tied() -> Program<'static> {
    let mut p = empty(&[("dpu0", 1), ("dpu1", 1)]);
    let both = barrier(&mut p, &[(0, 2, 2)]);
    let compute = || Example {
        operation: "conv 1x1",
        details: "",
        accesses: Vec::new(),
        unproven: None,
    };
    for queue in 0..2 {
        task(&mut p, queue, compute(), &[], &[Action::Produce(both)], 0);
    }
    for queue in 0..2 {
        let wait = (both, Condition::Lit);
        let consume = Action::Consume(both);
        task(&mut p, queue, compute(), &[wait], &[consume], 0);
    }
    let mut p = p.finish().expect("ids of its own");
    p.tasks[TaskId::from_raw(3)].fixed = Time::from_ns(500.0);
    p
}

/// Two tasks that change the 4096 bytes of a buffer in place.
pub(crate) fn in_place() -> Program<'static> {
    let mut p = empty(&[("dpu0", 1)]);
    let cmx = p.memory("cmx0", 4096, MemoryKind::Scratchpad);
    let buffer = p.buffer(Buffer::new("x", cmx, 4096, Role::Input));
    for _ in 0..2 {
        let whole = || Pattern::contiguous(0, 4096);
        let compute = Example {
            operation: "relu",
            details: "",
            accesses: vec![
                Access::read(buffer, whole()),
                Access::write(buffer, whole()),
            ],
            unproven: None,
        };
        task(&mut p, 0, compute, &[], &[], 0);
    }
    p.finish().expect("ids of its own")
}

/// Cores that work on so many tasks each, side by side.
pub(crate) fn cores(tasks: &[usize]) -> Program<'static> {
    let names: Vec<String> = (0..tasks.len())
        .map(|core| format!("core{core}.pe"))
        .collect();
    let queues: Vec<(&str, u32)> = names.iter().map(|name| (&**name, 1)).collect();
    let mut p = empty(&queues);
    for (core, tasks) in (0..).zip(tasks) {
        for _ in 0..*tasks {
            let compute = Example {
                operation: "conv 1x1",
                details: "",
                accesses: Vec::new(),
                unproven: None,
            };
            task(&mut p, core, compute, &[], &[], 0);
        }
    }
    p.finish().expect("ids of its own")
}

/// The pipeline whose last compute task forgot its signal.
pub(crate) fn forgetful() -> Program<'static> {
    let mut p = pipeline();
    p.tasks[TaskId::from_raw(3)].signals.len = 1;
    p
}

/// Two engines that wait for each other, and a task behind one of them.
pub(crate) fn ring() -> Program<'static> {
    let mut p = empty(&[("dma0.ddr", 1), ("dpu0", 1)]);
    let mut semaphore = |i: u32| p.counter(format!("S[{i}]"), Counter::up_to(15));
    let (s, t) = (semaphore(4), semaphore(5));
    let nothing = || Example {
        operation: "dma",
        details: "",
        accesses: vec![],
        unproven: None,
    };
    task(
        &mut p,
        0,
        nothing(),
        &[(s, Condition::AtLeast(1))],
        &[Action::Add(t, 1)],
        0,
    );
    task(&mut p, 0, nothing(), &[], &[], 0);
    task(
        &mut p,
        1,
        nothing(),
        &[(t, Condition::Equal(1))],
        &[Action::Add(s, 1)],
        0,
    );
    p.finish().expect("ids of its own")
}

/// A run of which nothing is known but its times.
pub(crate) fn run<'r, 'a>(program: &'r Program<'a>, timeline: &'r Timeline) -> Run<'r, 'a> {
    Run {
        file: "empty",
        program,
        timeline,
        timed_by: None,
        estimate_ns: None,
        is_timed: true,
        outputs: vec![],
        attribution: Cow::Owned(Attribution::of(program, timeline)),
        nodes: std::collections::BTreeMap::default(),
        what_if: None,
        ranking: None,
        faster: None,
        budgets: None,
        against: None,
        compared: None,
        searched: None,
        findings: Vec::new(),
        facts: vec![],
        seed: None,
        notes: vec![],
        wall_ms: 0.0,
    }
}
