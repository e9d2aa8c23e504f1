//! Races and uninitialised reads of random strided accesses, against the definition byte by byte.
//!
//! Tasks stand on three queues; some wait for the token of an earlier one. So happens-before is the transitive closure of
//! queue order and tokens, and can be written down without the verifier.

use chipless_model::{
    Access, Action, Buffer, Builder, Condition, Counter, Direction, Fault, Kernel, Limits, Loop,
    MemoryKind, NewTask, Pattern, Program, Role, Signal, Storage, SyncId, Time, Wait,
};
use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeSet;

const BYTES: u64 = 64;
const QUEUES: u32 = 3;

#[derive(Clone, Debug)]
struct Touches(Vec<(Direction, Pattern)>);

impl Kernel for Touches {
    fn operation(&self) -> Cow<'static, str> {
        "touch".into()
    }
    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        for (direction, pattern) in &self.0 {
            visit(Access {
                direction: *direction,
                ..Access::read(0usize.into(), pattern.clone())
            });
        }
    }
    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct Draft {
    queue: u32,
    touches: Touches,
    /// Waits for the task so many places earlier in the list, if there is one.
    after: Option<usize>,
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let loops = prop::collection::vec((1u64..5, 0i64..13), 0..3);
    (0..BYTES / 2, 1u64..6, loops).prop_map(|(offset, run, loops)| {
        Pattern::new(
            offset,
            run,
            loops
                .into_iter()
                .map(|(count, stride)| Loop { count, stride }),
        )
    })
}

fn draft() -> impl Strategy<Value = Draft> {
    let direction = any::<bool>().prop_map(|write| {
        if write {
            Direction::Write
        } else {
            Direction::Read
        }
    });
    let touches = prop::collection::vec(
        (
            direction,
            pattern().prop_filter("inside", |p| p.fits(BYTES)),
        ),
        1..4,
    )
    .prop_map(Touches);
    (0..QUEUES, touches, prop::option::weighted(0.7, 1usize..4)).prop_map(
        |(queue, touches, after)| Draft {
            queue,
            touches,
            after,
        },
    )
}

/// The program; its tasks stand queue by queue, and `drafts` are brought into the same order.
fn program(drafts: &[Draft], role: Role) -> (Program<'static>, Vec<usize>) {
    let mut build = Builder::new("test", &Limits::default());
    build.part("test");
    let memory = build.memory("m", BYTES, MemoryKind::Scratchpad);
    build.buffer(Buffer::new("b", memory, BYTES, role));
    for i in 0..drafts.len() {
        build.counter(format!("T{i}"), Counter::FLAG);
    }
    let mut order = Vec::new();
    for queue in 0..QUEUES {
        let id = build.queue(format!("q{queue}"), 1);
        let first = build.program.tasks.next_idx();
        for (i, d) in drafts.iter().enumerate().filter(|(_, d)| d.queue == queue) {
            let before = d.after.and_then(|back| i.checked_sub(back));
            let wait = before.map(|t| Wait {
                sync: SyncId::from_usize(t),
                condition: Condition::AtLeast(1),
            });
            let kernel = build.kernel(d.touches.clone());
            let task = NewTask {
                waits: wait.as_slice(),
                signals: &[Signal::on_completion(Action::Add(SyncId::from_usize(i), 1))],
                fixed: Time(1),
                ..NewTask::new(id, kernel)
            };
            build.task(task).expect("a task");
            order.push(i);
        }
        build.release(id, first);
    }
    (build.finish().expect("a program"), order)
}

fn bytes(touches: &Touches, direction: Direction) -> BTreeSet<u64> {
    let of = |p: &Pattern| {
        p.runs()
            .flat_map(|start| start..start + p.run)
            .collect::<Vec<_>>()
    };
    touches
        .0
        .iter()
        .filter(|(d, _)| *d == direction)
        .flat_map(|(_, p)| of(p))
        .collect()
}

proptest! {
    #![proptest_config(chipless_rounds::cases(3000))]

    #[test]
    fn races_are_those_of_the_definition(drafts in prop::collection::vec(draft(), 1..8)) {
        let (program, order) = program(&drafts, Role::State);
        let n = order.len();
        // The list is in an order that is legal, so that one pass forward closes the relation.
        let mut before = vec![vec![false; n]; n];
        for (i, d) in drafts.iter().enumerate() {
            let queue = (0..i).rev().find(|j| drafts[*j].queue == d.queue);
            for j in queue.into_iter().chain(d.after.and_then(|back| i.checked_sub(back))) {
                let further = before[j].clone();
                before[i][j] = true;
                before[i].iter_mut().zip(further).for_each(|(before, further)| *before |= further);
            }
        }
        let conflict = |a: usize, b: usize| {
            let of = |i: usize, direction| bytes(&drafts[i].touches, direction);
            let (wa, wb) = (of(a, Direction::Write), of(b, Direction::Write));
            !wa.is_disjoint(&wb) || !wa.is_disjoint(&of(b, Direction::Read)) || !wb.is_disjoint(&of(a, Direction::Read))
        };
        let races = (0..n).any(|i| (0..i).any(|j| !before[i][j] && conflict(i, j)));
        let codes: Vec<_> = match chipless_verify::verify(&program) {
            Ok(verified) => verified.warnings().iter().map(|f| f.rule.code).collect(),
            Err(findings) => findings.iter().map(|f| f.rule.code).collect(),
        };
        prop_assert_eq!(races, codes.iter().any(|c| c.starts_with("race")), "{:?}", codes);
        prop_assert!(!codes.contains(&"deadlock"));
    }

    #[test]
    fn reads_before_writes_are_those_of_the_definition(touches in prop::collection::vec(draft().prop_map(|d| d.touches), 1..8)) {
        let drafts: Vec<Draft> = touches.into_iter().map(|touches| Draft { queue: 0, touches, after: None }).collect();
        let (program, _) = program(&drafts, Role::Scratch);
        let mut written = BTreeSet::new();
        let mut early = false;
        for d in &drafts {
            early |= !bytes(&d.touches, Direction::Read).is_subset(&written);
            written.extend(bytes(&d.touches, Direction::Write));
        }
        let codes: Vec<_> = match chipless_verify::verify(&program) {
            Ok(verified) => verified.warnings().iter().map(|f| f.rule.code).collect(),
            Err(findings) => findings.iter().map(|f| f.rule.code).collect(),
        };
        prop_assert_eq!(early, codes.contains(&"read-before-write"), "{:?}", codes);
    }
}

#[test]
fn random_programs_have_races_and_have_none() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = prop::collection::vec(draft(), 1..8);
    let mut racing = 0;
    for _ in 0..500 {
        let drafts = strategy.new_tree(&mut runner).expect("a program").current();
        let (program, _) = program(&drafts, Role::State);
        racing += usize::from(chipless_verify::verify(&program).is_err());
    }
    assert!((100..400).contains(&racing), "{racing} of 500 race");
}

/// A task whose second access has some rows of the first in the same columns: what is known of the others must stay.
#[test]
fn rows_of_one_task_do_not_replace_others() {
    let write = |pattern| (Direction::Write, pattern);
    let rows = Pattern::new(
        1,
        2,
        [Loop {
            count: 3,
            stride: 10,
        }],
    );
    let writer = Touches(vec![write(rows), write(Pattern::contiguous(20, 3))]);
    let reader = Touches(vec![(Direction::Read, Pattern::contiguous(10, 2))]);
    let drafts = [
        Draft {
            queue: 0,
            touches: writer,
            after: None,
        },
        Draft {
            queue: 1,
            touches: reader,
            after: None,
        },
    ];
    let (program, _) = program(&drafts, Role::State);
    let findings = chipless_verify::verify(&program).map(|_| ()).unwrap_err();
    assert!(
        findings.iter().any(|f| f.rule.code == "race-read-write"),
        "{findings:?}"
    );
}
