//! Queues that spread their tasks over lanes, against the same programs with a queue and tasks for each lane.

use crate::late::kernel::Nothing;
use chipless_model::{
    Access, Action, Buffer, Builder, Condition, Counter, Direction, Fault, Kernel, Limits, Loop,
    MemoryKind, NewTask, Pattern, PieceOrder, Program, QueueId, Role, Signal, Storage, SyncId,
    TaskId, Wait,
};
use proptest::prelude::*;
use std::borrow::Cow;

const CELL: u64 = 8;
const CELLS: u64 = 4;

#[derive(Clone, Debug)]
struct Touch(Direction, Pattern);

impl Kernel for Touch {
    fn operation(&self) -> Cow<'static, str> {
        "touch".into()
    }
    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(Access {
            direction: self.0,
            ..Access::read(0usize.into(), self.1.clone())
        });
    }
    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

/// What an engine does: waits for a counter, and hands a transfer over that writes a cell and raises a counter, or reads a cell itself.
#[derive(Clone, Debug)]
struct Step {
    engine: usize,
    wait: Option<(usize, i64)>,
    moves: Option<usize>,
    cell: u64,
}

struct Making {
    build: Builder<'static>,
    engines: [QueueId; 2],
    counters: [SyncId; 2],
}

impl Making {
    fn new() -> Making {
        let mut build = Builder::new("test", &Limits::default());
        build.part("test");
        let memory = build.memory("memory", CELL * CELLS, MemoryKind::Scratchpad);
        build.buffer(Buffer::new("memory", memory, CELL * CELLS, Role::State));
        let engines = ["one", "other"].map(|name| build.queue(name.to_owned(), 1));
        let counters =
            ["a", "b"].map(|name| build.counter(name.to_owned(), Counter::up_to(1 << 20)));
        Making {
            build,
            engines,
            counters,
        }
    }

    fn task(
        &mut self,
        queue: QueueId,
        touch: Option<Touch>,
        waits: &[Wait],
        signals: &[Signal],
    ) -> TaskId {
        let kernel = match touch {
            Some(touch) => self.build.kernel(touch),
            None => self.build.kernel(Nothing),
        };
        let task = NewTask {
            waits,
            signals,
            ..NewTask::new(queue, kernel)
        };
        self.build.task(task).expect("a task")
    }

    /// The engines' tasks; a transfer is pieces of these queues, `lanes` of a counter's amount in each.
    fn steps(&mut self, steps: &[Step], transfers: &[QueueId], lanes: i64) -> Program<'static> {
        let width = CELL / transfers.len() as u64;
        for step in steps.iter().filter(|s| s.engine == 0) {
            let Some(counter) = step.moves else { continue };
            for (lane, queue) in transfers.iter().enumerate() {
                let rise = Signal::on_completion(Action::Add(self.counters[counter], lanes));
                let at = step.cell * CELL + lane as u64 * width;
                let touch = Touch(Direction::Write, Pattern::contiguous(at, width));
                let task = self.task(*queue, Some(touch), &[], &[rise]);
                self.build.piece(*queue, task);
            }
        }
        let mut piece = 0;
        for engine in 0..2 {
            let queue = self.engines[engine];
            let mut first = None;
            for step in steps.iter().filter(|s| s.engine == engine) {
                let waits: Vec<Wait> = step
                    .wait
                    .iter()
                    .map(|(counter, value)| Wait {
                        sync: self.counters[*counter],
                        condition: Condition::AtLeast(*value),
                    })
                    .collect();
                let hands_over = engine == 0 && step.moves.is_some();
                let releases: Vec<Signal> = (0..transfers.len() as u32)
                    .filter(|_| hands_over)
                    .map(|lane| {
                        Signal::on_completion(Action::Release((piece + lane as usize).into()))
                    })
                    .collect();
                piece += releases.len();
                let touch = (!hands_over)
                    .then(|| Touch(Direction::Read, Pattern::contiguous(step.cell * CELL, CELL)));
                let task = self.task(queue, touch, &waits, &releases);
                first = first.or(Some(task));
            }
            if let Some(first) = first {
                self.build.release(queue, first);
            }
        }
        std::mem::replace(&mut self.build, Builder::new("test", &Limits::default()))
            .finish()
            .expect("a program")
    }
}

/// With a queue of so many lanes.
fn spread(steps: &[Step], lanes: u32) -> Program<'static> {
    let mut making = Making::new();
    let queue = making.build.queue("transfers".to_owned(), 1);
    making.build.program.queues[queue].order = PieceOrder::Lanes(lanes);
    making.steps(steps, &[queue], i64::from(lanes))
}

/// With a queue for each lane.
fn apart(steps: &[Step], lanes: u32) -> Program<'static> {
    let mut making = Making::new();
    let queues: Vec<QueueId> = (0..lanes)
        .map(|lane| making.build.queue(format!("lane {lane}"), 1))
        .collect();
    making.steps(steps, &queues, 1)
}

fn step() -> impl Strategy<Value = Step> {
    let wait = prop::option::weighted(0.6, (0usize..2, 1i64..14));
    let moves = prop::option::weighted(0.7, 0usize..2);
    (0usize..2, wait, moves, 0..CELLS).prop_map(|(engine, wait, moves, cell)| Step {
        engine,
        wait,
        moves,
        cell,
    })
}

/// The codes of what is said, without how often.
fn said(program: &Program<'_>) -> Vec<&'static str> {
    let findings = match chipless_verify::verify(program) {
        Ok(verified) => verified.warnings().to_vec(),
        Err(findings) => findings,
    };
    let mut codes: Vec<&str> = findings.iter().map(|f| f.rule.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

proptest! {
    #![proptest_config(chipless_rounds::cases(3000))]
    #[test]
    fn lanes_are_queues_of_their_own(lanes in prop::sample::select(vec![2u32, 4]), mut steps in prop::collection::vec(step(), 2..9)) {
        // Each cell is written once: transfers that follow each other in a lane touch the same bytes only with other patterns.
        let mut written = [false; CELLS as usize];
        for step in steps.iter_mut().filter(|s| s.engine == 0) {
            if step.moves.is_some() && std::mem::replace(&mut written[step.cell as usize], true) {
                step.moves = None;
            }
        }
        let (spread, apart) = (spread(&steps, lanes), apart(&steps, lanes));
        prop_assert_eq!(said(&spread), said(&apart), "{} lanes, {:?}", lanes, steps);
    }
}

/// Two transfers of a queue that touch the same bytes: nothing orders them, unless each byte is in the same lane of both.
#[test]
fn the_same_bytes_are_in_the_same_lanes_only_in_the_same_order() {
    let race = |forward: bool| {
        let mut making = Making::new();
        let queue = making.build.queue("transfers".to_owned(), 1);
        making.build.program.queues[queue].order = PieceOrder::Lanes(4);
        let (offset, stride) = if forward { (0, 2) } else { (6, -2) };
        let other = Pattern::new(offset, 1, [Loop { count: 4, stride }]);
        let one = Pattern::new(
            0,
            1,
            [Loop {
                count: 4,
                stride: 2,
            }],
        );
        let rise = Signal::on_completion(Action::Add(making.counters[0], 4));
        for (direction, pattern) in [(Direction::Write, one), (Direction::Read, other)] {
            let task = making.task(queue, Some(Touch(direction, pattern)), &[], &[rise]);
            making.build.release(queue, task);
        }
        said(&making.build.finish().expect("a program"))
    };
    assert_eq!(race(true), Vec::<&str>::new());
    assert_eq!(race(false), ["race-read-write"]);
}
