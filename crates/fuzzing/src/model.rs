//! The program model: what the verifier lets pass runs, ends, and gives the same bytes in every order.

use arbitrary::{Result, Unstructured};
use chipless_model::{
    Access, Action, Buffer, Condition, Configuration, ConfigurationId, Counter, Fault, Kernel,
    Limits, Location, Loop, Memory, MemoryKind, Moment, PartId, Pattern, Piece, Place, Program,
    Queue, Role, Signal, Span, Storage, Sync, SyncId, SyncKind, Task, Time, Wait,
};
use chipless_sim::{Functional, Order, run_in};
use std::borrow::Cow;

const BYTES: u64 = 48;

/// Mixes what it reads into what it writes, so that every order that matters shows.
#[derive(Debug)]
struct Mix {
    seed: u8,
    reads: Vec<Pattern>,
    writes: Vec<Pattern>,
}

impl Kernel for Mix {
    fn operation(&self) -> Cow<'static, str> {
        "mix".into()
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.reads
            .iter()
            .for_each(|pattern| visit(Access::read(0usize.into(), pattern.clone())));
        self.writes
            .iter()
            .for_each(|pattern| visit(Access::write(0usize.into(), pattern.clone())));
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let mut sum = self.seed;
        let bytes = storage.bytes_mut(0usize.into());
        let indices = |patterns: &[Pattern]| -> Vec<usize> {
            patterns
                .iter()
                .flat_map(|p| p.runs().flat_map(|start| start..start + p.run))
                .map(|byte| byte as usize)
                .collect()
        };
        for at in indices(&self.reads) {
            sum = sum.wrapping_mul(31).wrapping_add(bytes[at]);
        }
        for (i, at) in indices(&self.writes).into_iter().enumerate() {
            bytes[at] = sum.wrapping_add(i as u8);
        }
        Ok(())
    }
}

/// Makes a program of the bytes. If it is proven safe, it must end, and give the same bytes, in orders of several seeds.
pub fn model(bytes: &[u8]) {
    let Ok(program) = program(&mut Unstructured::new(bytes)) else {
        return;
    };
    let Ok(verified) = chipless_verify::verify(&program) else {
        return;
    };
    // These say that other orders were not looked at.
    if verified
        .warnings()
        .iter()
        .any(|f| matches!(f.rule.code, "semaphore-order-unproven" | "order-not-exact"))
    {
        return;
    }
    let run = |order| {
        let mut storage = Storage::new(&program, &Limits::default()).expect("48 bytes");
        let end = run_in(&program, order, &mut Functional::new(&mut storage)).end;
        assert_eq!(end, Ok(()), "verified, in {order:?}: {program:#?}");
        storage.bytes(0usize.into()).to_vec()
    };
    let timed = run(Order::Timed);
    for seed in 0..4 {
        assert_eq!(run(Order::Random(seed)), timed, "seed {seed}: {program:#?}");
    }
}

/// Two semaphores, an event, two barriers of two uses; a few queues with one or two servers.
fn program(u: &mut Unstructured<'_>) -> Result<Program<'static>> {
    let mut program = Program {
        target: "model",
        ..Program::default()
    };
    program.parts.push("model".into());
    let memory = program.memories.push(Memory {
        name: "m".into(),
        size: BYTES,
        kind: MemoryKind::Scratchpad,
    });
    let initial = Cow::Borrowed(&[][..]);
    program.buffers.push(Buffer {
        name: "b".into(),
        memory,
        address: None,
        size: BYTES,
        role: Role::State,
        initial,
    });
    for (name, counter) in [
        ("S0", Counter::up_to(100)),
        (
            "S1",
            Counter {
                initial: u.int_in_range(0..=2)?,
                ..Counter::up_to(100)
            },
        ),
        ("E", Counter::FLAG),
    ] {
        program.syncs.push(Sync {
            name: name.into(),
            kind: SyncKind::Counter(counter),
        });
    }
    let mut counts = [(0u32, 0u32); 4];
    let mut released = Vec::new();
    for queue in 0..u.int_in_range(1..=4u32)? {
        let queue = program.queues.push(Queue {
            name: format!("q{queue}"),
            servers: u.int_in_range(1..=2)?,
        });
        for piece in 0..u.int_in_range(1..=2u32)? {
            let first = program.tasks.next_idx();
            for _ in 0..u.int_in_range(0..=4u32)? {
                task(u, &mut program, queue, &mut counts)?;
            }
            let count = program.tasks.len() as u32 - first.raw();
            if count > 0 {
                let id = program.pieces.push(Piece {
                    queue,
                    first,
                    count,
                });
                if piece == 0 || u.arbitrary()? {
                    program.initial.push(id)
                } else {
                    released.push(id)
                }
            }
        }
    }
    for barrier in 0..2u32 {
        let uses: Vec<u32> = [barrier, barrier + 2]
            .into_iter()
            .filter(|u| counts[*u as usize] != (0, 0))
            .collect();
        let mut preloaded: Vec<ConfigurationId> = Vec::new();
        for number in uses {
            let (producers, consumers) = counts[number as usize];
            let releases = if consumers > 0 {
                released.pop().into_iter().collect()
            } else {
                Vec::new()
            };
            let sync = SyncId::from_raw(3 + barrier);
            preloaded.push(program.configurations.push(Configuration {
                barrier: sync,
                number,
                producers,
                consumers,
                releases,
                place: Place::file(),
            }));
        }
        program.syncs.push(Sync {
            name: format!("B{barrier}"),
            kind: SyncKind::Barrier {
                preloaded,
                depth: None,
            },
        });
    }
    Ok(program)
}

fn task(
    u: &mut Unstructured<'_>,
    program: &mut Program<'static>,
    queue: chipless_model::QueueId,
    counts: &mut [(u32, u32); 4],
) -> Result<()> {
    let (mut waits, mut signals) = (Vec::new(), Vec::new());
    for _ in 0..u.int_in_range(0..=2u32)? {
        let sync = SyncId::from_raw(u.int_in_range(0..=2)?);
        let n = u.int_in_range(1..=3)?;
        let condition = if sync.raw() == 2 {
            Condition::Equal(1)
        } else {
            Condition::AtLeast(n)
        };
        waits.push(Wait { sync, condition });
    }
    for _ in 0..u.int_in_range(0..=2u32)? {
        let moment = if u.ratio(1, 4)? {
            Moment::Read
        } else {
            Moment::Completion
        };
        let action = match u.int_in_range(0..=2u32)? {
            2 => Action::Add(SyncId::from_raw(2), 1),
            sync => Action::Add(SyncId::from_raw(sync), u.int_in_range(1..=2)?),
        };
        signals.push(Signal { moment, action });
    }
    // At most one use of each barrier, as on hardware.
    for barrier in 0..2u32 {
        let id = SyncId::from_raw(3 + barrier);
        let number = (barrier + 2 * u.int_in_range(0..=1u32)?) as usize;
        match u.int_in_range(0..=3u32)? {
            0 => {
                waits.push(Wait {
                    sync: id,
                    condition: Condition::Lit,
                });
                signals.push(Signal::on_completion(Action::Consume(id)));
                counts[number].1 += 1;
            }
            1 => {
                signals.push(Signal::on_completion(Action::Produce(id)));
                counts[number].0 += 1;
            }
            _ => {}
        }
    }
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for _ in 0..u.int_in_range(0..=2u32)? {
        let list = if u.arbitrary()? {
            &mut reads
        } else {
            &mut writes
        };
        let walk = Loop {
            count: u.int_in_range(1..=3)?,
            stride: u.int_in_range(0..=12)?,
        };
        let pattern = Pattern::new(
            u.int_in_range(0..=BYTES - 1)?,
            u.int_in_range(1..=4)?,
            [walk],
        );
        if pattern.fits(BYTES) {
            list.push(pattern);
        }
    }
    let index = program.tasks.iter().filter(|t| t.queue == queue).count() as u32;
    let kernel = program.kernels.push(Box::new(Mix {
        seed: program.tasks.len() as u8,
        reads,
        writes,
    }));
    let waits = Span::push(&mut program.waits, waits);
    let signals = Span::push(&mut program.signals, signals);
    let location = Location {
        part: PartId::from_raw(0),
        offset: 0,
        size: 0,
    };
    program.tasks.push(Task {
        queue,
        index,
        kernel,
        waits,
        signals,
        demands: Span::default(),
        fixed: Time(1),
        location,
        label: None,
    });
    Ok(())
}
