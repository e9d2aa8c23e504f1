//! Small programs for the tests: two tiles of an input go through one engine, with barriers that are used twice.

use chipless_model::{
    Access, Action, Buffer, BufferId, Condition, Configuration, ConfigurationId, Counter, Demand,
    ElementType, Fault, Kernel, Location, Loop, Memory, MemoryKind, Pattern, Piece, Place, Port,
    Program, Queue, QueueId, Resource, ResourceId, Role, Signal, Span, Storage, Sync, SyncId,
    SyncKind, Task, TaskId, Time, Wait,
};
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
    program: &mut Program<'static>,
    queue: u32,
    kernel: Example,
    waits: &[(SyncId, Condition)],
    signals: &[Action],
    bytes: u64,
) -> TaskId {
    let queue = QueueId::from_raw(queue);
    let index = program.tasks.iter().filter(|t| t.queue == queue).count() as u32;
    let label = (kernel.operation != "dma").then(|| format!("block1/conv{index}").into());
    let kernel = program.kernels.push(Box::new(kernel));
    let waits = Span::push(
        &mut program.waits,
        waits.iter().map(|(sync, condition)| Wait {
            sync: *sync,
            condition: *condition,
        }),
    );
    let signals = Span::push(
        &mut program.signals,
        signals.iter().map(|a| Signal::on_completion(*a)),
    );
    let demands = Span::push(
        &mut program.demands,
        (bytes > 0).then_some(Demand {
            resource: ResourceId::from_raw(0),
            bytes,
        }),
    );
    let offset = 0x8000 + program.tasks.len() as u64 * 224;
    let location = Location {
        part: 0usize.into(),
        offset,
        size: 224,
    };
    let fixed = Time::from_ns(if bytes > 0 { 100.0 } else { 1500.0 });
    let first = program.tasks.push(Task {
        queue,
        index,
        kernel,
        waits,
        signals,
        demands,
        fixed,
        location,
        label,
    });
    let piece = program.pieces.push(Piece {
        queue,
        first,
        count: 1,
    });
    program.initial.push(piece);
    first
}

fn empty(queues: &[(&str, u32)]) -> Program<'static> {
    let mut program = Program {
        target: "npu",
        name: "example".into(),
        ..Program::default()
    };
    program.parts.push("task.dma.0.0".into());
    program
        .queues
        .extend(queues.iter().map(|(name, servers)| Queue {
            name: (*name).into(),
            servers: *servers,
        }));
    program
}

fn barrier(program: &mut Program<'static>, uses: &[(u32, u32, u32)]) -> SyncId {
    let barrier = SyncId::from_usize(program.syncs.len());
    let preloaded = uses
        .iter()
        .map(|(number, producers, consumers)| {
            let (number, producers, consumers) = (*number, *producers, *consumers);
            let place = Place::bytes(0x7000 + u64::from(number) * 12, 12).in_part("barriers");
            program.configurations.push(Configuration {
                barrier,
                number,
                producers,
                consumers,
                releases: Vec::new(),
                place,
            })
        })
        .collect();
    program.syncs.push(Sync {
        name: format!("barrier {}", barrier.raw()),
        kind: SyncKind::Barrier {
            preloaded,
            depth: None,
        },
    })
}

/// Input by tiles, compute, output. Barrier 0 is used twice; its second use needs that the first tile is done.
pub(crate) fn pipeline() -> Program<'static> {
    let mut p = empty(&[("dma0.ddr", 1), ("dpu0", 1), ("dma0.cmx", 1)]);
    let ddr = p.memories.push(Memory {
        name: "ddr".into(),
        size: 1 << 20,
        kind: MemoryKind::Dram,
    });
    let cmx = p.memories.push(Memory {
        name: "cmx0".into(),
        size: 1 << 20,
        kind: MemoryKind::Scratchpad,
    });
    let mut buffer = |name: &str, memory, size, role| {
        p.buffers.push(Buffer {
            name: name.into(),
            memory,
            address: None,
            size,
            role,
            initial: Cow::Borrowed(&[]),
        })
    };
    let x = buffer("x", ddr, 8192, Role::Input);
    let y = buffer("y", ddr, 4096, Role::Output);
    let local = buffer("cmx0", cmx, 1 << 20, Role::Scratch);
    p.resources.push(Resource {
        name: "ddr".into(),
        capacity: 64e9,
        per_transfer: 32e9,
    });
    let b0 = barrier(&mut p, &[(0, 1, 1), (2, 1, 1)]);
    let b1 = barrier(&mut p, &[(1, 1, 1), (3, 1, 1)]);
    let b2 = barrier(&mut p, &[(4, 1, 0)]);
    p.completion = Some(ConfigurationId::from_raw(4));
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
    let last = p.initial.pop();
    p.configurations[ConfigurationId::from_raw(1)]
        .releases
        .extend(last);
    let port = |name: &str, buffer, element, shape: &[u64]| Port {
        name: name.into(),
        buffer,
        element,
        shape: shape.to_vec(),
    };
    p.interface
        .inputs
        .push(port("x", x, ElementType::Float16, &[1, 16, 16, 16]));
    p.interface
        .outputs
        .push(port("y", y, ElementType::Float16, &[1, 8, 16, 16]));
    p
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
    let mut semaphore = |i: u32| {
        p.syncs.push(Sync {
            name: format!("S[{i}]"),
            kind: SyncKind::Counter(Counter::up_to(15)),
        })
    };
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
    p
}
