//! Programs of copies in all their orders: what the verifier lets pass gives the same output in each, races without effect included.

use chipless_model::{
    Access, Action, Buffer, BufferId, Builder, Condition, Counter, Dependence, Doubt, ElementType,
    Fault, Kernel, Limits, MemoryKind, NewTask, Pattern, Port, Program, Role, Signal, Storage,
    SyncId, Time, Wait,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::iter;

const QUEUES: u32 = 3;
/// Bytes of memory, the first of which the input has, and the last the output.
const BYTES: u64 = 5;

/// Copies some bytes behind one another to others.
#[derive(Clone, Debug)]
struct Copies {
    from: u64,
    to: u64,
    size: u64,
}

fn buffer(byte: u64) -> (BufferId, u64) {
    match byte {
        0 => (0usize.into(), 0),
        _ if byte == BYTES - 1 => (2usize.into(), 0),
        _ => (1usize.into(), byte - 1),
    }
}

impl Kernel for Copies {
    fn operation(&self) -> Cow<'static, str> {
        "copy".into()
    }
    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        for byte in 0..self.size {
            let (source, offset) = buffer(self.from + byte);
            visit(Access::read(source, Pattern::contiguous(offset, 1)));
            let (target, offset) = buffer(self.to + byte);
            visit(Access::write(target, Pattern::contiguous(offset, 1)));
        }
    }
    fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) -> Dependence {
        for byte in 0..self.size {
            let (source, offset) = buffer(self.from + byte);
            if doubtful.any(source, offset..offset + 1) {
                let (target, offset) = buffer(self.to + byte);
                visit(target, Pattern::contiguous(offset, 1));
            }
        }
        Dependence::Bytes
    }
    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct Draft {
    queue: u32,
    copies: Copies,
    /// Waits for the task so many places earlier in the list, if there is one.
    after: Option<usize>,
}

fn draft() -> impl Strategy<Value = Draft> {
    let copies = (0..BYTES - 1, 1..BYTES, 1u64..3)
        .prop_map(|(from, to, size)| Copies { from, to, size })
        .prop_filter("inside, and apart", |copies| {
            copies.from + copies.size < BYTES
                && copies.to + copies.size <= BYTES
                && copies.from.abs_diff(copies.to) >= copies.size
        });
    (0..QUEUES, copies, prop::option::weighted(0.7, 1usize..4)).prop_map(
        |(queue, copies, after)| Draft {
            queue,
            copies,
            after,
        },
    )
}

/// The last copy makes the output, behind all those of its queue.
fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    (
        prop::collection::vec(draft(), 1..6),
        1..BYTES - 1,
        0..QUEUES,
    )
        .prop_map(|(mut drafts, from, queue)| {
            let copies = Copies {
                from,
                to: BYTES - 1,
                size: 1,
            };
            drafts.push(Draft {
                queue,
                copies,
                after: Some(1),
            });
            drafts
        })
}

fn program(drafts: &[Draft]) -> Program<'static> {
    let mut build = Builder::new("test", &Limits::default());
    build.part("test");
    let roles = [Role::Input, Role::Scratch, Role::Output];
    for (number, (size, role)) in iter::zip([1, BYTES - 2, 1], roles).enumerate() {
        let memory = build.memory(format!("m{number}"), size, MemoryKind::Scratchpad);
        build.buffer(Buffer::new(format!("b{number}"), memory, size, role));
    }
    build.program.interface.outputs.push(Port {
        name: "out".to_owned(),
        alias: None,
        buffer: 2usize.into(),
        element: ElementType::UInt8,
        shape: vec![1],
        host_element: None,
        scale: None,
    });
    for i in 0..drafts.len() {
        build.counter(format!("T{i}"), Counter::FLAG);
    }
    for queue in 0..QUEUES {
        let id = build.queue(format!("q{queue}"), 1);
        let first = build.program.tasks.next_idx();
        for (i, draft) in drafts.iter().enumerate().filter(|(_, d)| d.queue == queue) {
            let before = draft.after.and_then(|back| i.checked_sub(back));
            let wait = before.map(|t| Wait {
                sync: SyncId::from_usize(t),
                condition: Condition::AtLeast(1),
            });
            let kernel = build.kernel(draft.copies.clone());
            let task = NewTask {
                waits: wait.as_slice(),
                signals: &[Signal::on_completion(Action::Add(SyncId::from_usize(i), 1))],
                fixed: Time(1),
                ..NewTask::new(id, kernel)
            };
            build.task(task).expect("a task");
        }
        build.release(id, first);
    }
    build.finish().expect("a program")
}

/// What the output can be: the number of the input, or of what stood in a byte before.
fn outputs(drafts: &[Draft]) -> BTreeSet<u64> {
    /// A state: who has read, who has written, what was read, and the memory.
    type State = (Vec<bool>, Vec<bool>, Vec<Vec<u64>>, Vec<u64>);
    let n = drafts.len();
    let start: State = (
        vec![false; n],
        vec![false; n],
        vec![Vec::new(); n],
        (0..BYTES).collect(),
    );
    let (mut seen, mut open) = (BTreeSet::from([start.clone()]), vec![start]);
    let mut found = BTreeSet::new();
    while let Some((begun, done, read, memory)) = open.pop() {
        if done.iter().all(|done| *done) {
            found.insert(memory[BYTES as usize - 1]);
        }
        for (i, draft) in drafts.iter().enumerate() {
            let Copies { from, to, size } = draft.copies;
            let (from, to) = (from as usize, to as usize);
            let mut next = (begun.clone(), done.clone(), read.clone(), memory.clone());
            let awaited = draft.after.and_then(|back| i.checked_sub(back));
            let earlier = (0..i).filter(|j| drafts[*j].queue == draft.queue);
            if !begun[i] {
                if awaited.into_iter().chain(earlier).any(|j| !done[j]) {
                    continue;
                }
                next.0[i] = true;
                next.2[i] = memory[from..from + size as usize].to_vec();
            } else if !done[i] {
                next.1[i] = true;
                next.3[to..to + size as usize].copy_from_slice(&read[i]);
            } else {
                continue;
            }
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    found
}

/// The codes of what is found, if that lets the program pass.
fn passing(drafts: &[Draft]) -> Option<Vec<&'static str>> {
    let program = program(drafts);
    let verified = chipless_verify::verify(&program).ok()?;
    Some(verified.warnings().iter().map(|f| f.rule.code).collect())
}

proptest! {
    #![proptest_config(chipless_rounds::cases(4000))]

    #[test]
    fn what_passes_has_one_output_and_computes_it(drafts in drafts()) {
        if let Some(codes) = passing(&drafts) {
            prop_assert_eq!(outputs(&drafts), BTreeSet::from([0]), "{:?}", codes);
        }
    }
}

/// Random programs are of use only if enough of them pass, and some of those with a race.
#[test]
fn programs_pass_with_races_and_without() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut clean, mut racing) = (0, 0);
    for _ in 0..2000 {
        let drafts = drafts().new_tree(&mut runner).expect("a program").current();
        match passing(&drafts) {
            Some(codes) if codes.contains(&"race-without-effect") => racing += 1,
            Some(_) => clean += 1,
            None => {}
        }
    }
    assert!(clean > 100 && racing > 20, "{clean} clean, {racing} race");
}
