//! The program model: what the verifier lets pass runs, ends, and gives the same bytes in every order.

use arbitrary::{Result, Unstructured};
use chipless_model::{
    Access, Action, Buffer, Builder, Condition, Configuration, Counter, Fault, Kernel, Limits,
    Loop, MemoryKind, Moment, NewTask, Pattern, Place, Program, QueueId, Role, Signal, Storage,
    SyncId, Time, Wait,
};
use chipless_sim::{Functional, Order, Verified, run_in};
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
    crate::tally::past_the_reader();
    // These say that other orders were not looked at.
    if verified
        .warnings()
        .iter()
        .any(|f| matches!(f.rule.code, "semaphore-order-unproven" | "order-not-exact"))
    {
        return;
    }
    let run = |order| {
        let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("48 bytes");
        let end = run_in(
            &Verified::assume(&program),
            order,
            &mut Functional::new(&mut storage),
        )
        .end;
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
    let mut build = Builder::new("model", &Limits::default());
    build.part("model");
    let memory = build.memory("m", BYTES, MemoryKind::Scratchpad);
    build.buffer(Buffer::new("b", memory, BYTES, Role::State));
    build.counter("S0", Counter::up_to(100));
    let from = Counter {
        initial: u.int_in_range(0..=2)?,
        ..Counter::up_to(100)
    };
    build.counter("S1", from);
    build.counter("E", Counter::FLAG);
    let mut counts = [(0u32, 0u32); 4];
    let mut released = Vec::new();
    for queue in 0..u.int_in_range(1..=4u32)? {
        let queue = build.queue(format!("q{queue}"), u.int_in_range(1..=2)?);
        for piece in 0..u.int_in_range(1..=2u32)? {
            let first = build.program.tasks.next_idx();
            for _ in 0..u.int_in_range(0..=4u32)? {
                task(u, &mut build, queue, &mut counts)?;
            }
            if build.program.tasks.next_idx() > first {
                if piece == 0 || u.arbitrary()? {
                    build.release(queue, first);
                } else {
                    released.push(build.piece(queue, first));
                }
            }
        }
    }
    for barrier in 0..2u32 {
        let numbers = [barrier, barrier + 2].into_iter();
        let used = numbers.filter(|u| counts[*u as usize] != (0, 0));
        let uses: Vec<Configuration> = used
            .map(|number| {
                let (producers, consumers) = counts[number as usize];
                let releases = if consumers > 0 {
                    released.pop().into_iter().collect()
                } else {
                    Vec::new()
                };
                Configuration {
                    barrier: SyncId::from_raw(3 + barrier),
                    number,
                    producers,
                    consumers,
                    releases,
                    place: Place::file(),
                }
            })
            .collect();
        build.barrier(format!("B{barrier}"), uses);
    }
    Ok(build.finish().expect("ids of its own"))
}

fn task(
    u: &mut Unstructured<'_>,
    build: &mut Builder<'static>,
    queue: QueueId,
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
    let kernel = build.kernel(Mix {
        seed: build.program.tasks.len() as u8,
        reads,
        writes,
    });
    let task = NewTask {
        waits: &waits,
        signals: &signals,
        fixed: Time(1),
        ..NewTask::new(queue, kernel)
    };
    build.task(task).expect("a few tasks");
    Ok(())
}
