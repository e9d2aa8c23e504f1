//! What becomes of a program: its order, its times, and what is said of what nobody knows.

use crate::common::{assembled, buffer, values, with_program};
use chipless_model::{
    Certainty, Condition, Direction, Limits, PieceOrder, Program, Storage, TaskId, Time,
};
use chipless_sim::{Functional, Outcome, Stop, TimingOnly, Verified, run};

pub(crate) const HOST: &str = "input x uint8 [65536]\noutput o uint8 [65536]";
pub(crate) const VARIABLES: &str =
    "var SB state-buffer\nvar x input\nvar o output\nvar t tmp-buf size=65536";

pub(crate) fn timed<T>(text: &str, then: impl FnOnce(&Program<'_>, &Outcome) -> T) -> T {
    with_program(&assembled(text), |program, _| {
        then(program, &run(&Verified::assume(program), &mut TimingOnly))
    })
}

fn functional(text: &str) -> Result<(), Stop> {
    with_program(&assembled(text), |program, _| {
        let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
        run(
            &Verified::assume(program),
            &mut Functional::new(&mut storage),
        )
        .end
    })
}

fn task(program: &Program<'_>, name: &str) -> TaskId {
    program
        .task_named(name)
        .unwrap_or_else(|| panic!("no task {name}"))
}

pub(crate) fn duration(program: &Program<'_>, outcome: &Outcome, name: &str) -> f64 {
    let record = &outcome.timeline.tasks[task(program, name)];
    (record.end - record.start).ns()
}

#[test]
fn matrix_products_take_a_cycle_for_each_column_and_hide_the_next_weights() {
    let product = |columns: usize, element: &str, flags: &str| {
        let (one, other) = (
            format!("psum+0x0[1,0,0][{columns},1,1]"),
            format!("0x5000[1,0,0][{columns},1,1]"),
        );
        format!("MATMUL dst=fp32@{one} src={element}@{other} rows=128 columns=128 {flags}")
    };
    let load = "LDWEIGHTS src=fp16@0x40fe[-1,0,0][128,1,1] rows=128 columns=128";
    let lines = [
        load.into(),
        product(512, "fp16", "sums=start+stop"),
        load.into(),
        product(16, "fp16", "sums=start+stop"),
        load.into(),
        load.into(),
        product(512, "fp32", "sums=start+stop"),
    ];
    let text = format!(
        "neff t trn2\n{HOST}\nsubgraph sg00\n{VARIABLES}\nengine pe\n{}\n",
        lines.join("\n")
    );
    timed(&text, |program, outcome| {
        let ns: Vec<f64> = (0..7)
            .map(|i| duration(program, outcome, &format!("sg00.pe[{i}]")))
            .collect();
        let cycles: Vec<u64> = ns.iter().map(|ns| (ns * 2.4).round() as u64).collect();
        // Nothing hides the first load; the second one runs behind 512 cycles; the fourth behind nothing, the third took the 64.
        assert_eq!(cycles, [32, 512, 0, 64, 0, 32, 2048]);
    });
}

/// The two transfers that the vendor shows profiles of: four rows of 8 KiB through one engine took 1416 ns, 128 rows of 256
/// bytes went through all 16.
#[test]
fn transfers_take_as_long_as_on_the_device() {
    let transfer = |rows: usize, bytes: usize, semaphore: usize| {
        format!(
            "PSEUDO_DMA_DIRECT2D dst=fp16@var[SB]+0x4000[262144,1][{rows},1]*{bytes} src=fp16@var[x]+0x0[{bytes},1][{rows},1]*{bytes} \
             $S[{semaphore}]+=16@complete"
        )
    };
    let text = format!(
        "neff t trn2\n{HOST}\nsubgraph sg00\nqueue q dynamic owner=sp queues=16 semaphores=8,9\n{VARIABLES}\nengine sp\n{}\n{}\n",
        transfer(4, 8192, 8),
        transfer(128, 256, 9)
    );
    timed(&text, |program, outcome| {
        assert!(
            (duration(program, outcome, "sg00.q[0]") - 1416.0).abs() < 15.0,
            "{}",
            duration(program, outcome, "sg00.q[0]")
        );
        let all = duration(program, outcome, "sg00.q[1]");
        // 32 KiB at 16 times 27.2 GB/s, and 8 descriptors of each engine.
        assert!((all - (75.3 + 8.0 * 55.0)).abs() < 5.0, "{all}");
        // The second one is handed over 600 ns after the first, and both take 1300 ns to start.
        assert_eq!(
            outcome.timeline.tasks[task(program, "sg00.q[0]")].start,
            Time::from_ns(600.0 + 1300.0)
        );
        assert_eq!(
            outcome.timeline.tasks[task(program, "sg00.q[1]")]
                .ready
                .max(Time::from_ns(2500.0)),
            outcome.timeline.tasks[task(program, "sg00.q[1]")].start
        );
        assert_eq!(values(program, &outcome.timeline)["sg00 $S[9]"], 16);
    });
}

/// Rows go to rings in turn; a section starts at the first ring.
#[test]
fn descriptors_are_dealt_out_to_rings() {
    let copy = "copy o [1:16, 64:3] <- x [1:16, 64:3]";
    let text = format!(
        "neff t trn2\n{HOST}\nsubgraph sg00\nqueue q data owner=sp queues=4\n{VARIABLES}\nengine sp\n\
         dma id=0 queue=q semaphore=7\n{copy}\n{copy}\ndma id=1 queue=q section semaphore=7 event=2\n{copy}\n"
    );
    timed(&text, |program, outcome| {
        let rings = |name: &str| {
            let details = program.kernel(task(program, name)).details();
            details
                .split(" rings=")
                .nth(1)
                .unwrap_or_default()
                .to_owned()
        };
        assert_eq!(
            [rings("sg00.q[0]"), rings("sg00.q[1]"), rings("sg00.q[2]")],
            ["0+3 of 4", "3+3 of 4", "0+3 of 4"]
        );
        let values = values(program, &outcome.timeline);
        assert_eq!((values["sg00 $S[7]"], values["sg00 $E[2]"]), (8, 1));
        assert_eq!(
            program.tasks[task(program, "sg00.q[2]")].label.as_deref(),
            Some("id 1")
        );
    });
}

#[test]
fn an_event_that_is_set_twice_is_a_fault() {
    let entry = "dma id=0 queue=q event=2\ncopy o [1:16] <- x [1:16]\n";
    let text = format!(
        "neff t trn2\n{HOST}\nsubgraph sg00\nqueue q data owner=sp\n{VARIABLES}\nengine sp\n{entry}{entry}"
    );
    timed(&text, |program, outcome| {
        let Err(Stop::Fault { task, fault }) = &outcome.end else {
            panic!("{:?}", outcome.end)
        };
        assert_eq!(program.task_name(*task), "sg00.q[1]");
        assert!(
            fault.message.contains("sg00 $E[2] leaves its range"),
            "{}",
            fault.message
        );
    });
}

#[test]
fn transfers_that_cannot_be_made_out_stop_at_their_instruction_and_count_for_the_timing() {
    let transfer = |destination: &str| {
        format!(
            "PSEUDO_DMA_DIRECT2D dst=fp16@{destination}+0x0[64,1][4,1]*64 src=fp16@var[x]+0x0[64,1][4,1]*64 $S[8]+=16@complete"
        )
    };
    for (destination, unsupported, why) in [
        ("table[9]", false, "no entry 9 of a dge-table"),
        ("var[77]", false, "no the variable with var_id 77"),
        ("address", true, "leads to no variable in particular"),
        ("tag0x5000[0]", true, "address tag 0x5000 is not supported"),
    ] {
        let text = format!(
            "neff t trn2\n{HOST}\nsubgraph sg00\nqueue q dynamic owner=sp queues=16\n{VARIABLES}\nengine sp\n{}\nNOP $S[8]>=16\n",
            transfer(destination)
        );
        timed(&text, |_, outcome| {
            assert_eq!(outcome.end, Ok(()), "{destination}");
        });
        let Err(Stop::Fault { fault, .. }) = functional(&text) else {
            panic!("no fault: {destination}")
        };
        assert_eq!(fault.unsupported, unsupported, "{}", fault.message);
        assert!(
            fault.message.contains(why.trim_start_matches("no the ")),
            "{}",
            fault.message
        );
    }
    // Rows on top of each other: which value stays is not said anywhere.
    let text = format!(
        "neff t trn2\n{HOST}\nsubgraph sg00\nqueue q dynamic owner=sp queues=16\n{VARIABLES}\nengine sp\n\
         PSEUDO_DMA_DIRECT2D dst=fp16@var[o]+0x0[0,0][65535,65535]*64 src=fp16@var[x]+0x0[0,0][65535,65535]*64 $S[8]+=16@complete\n"
    );
    let Err(Stop::Fault { fault, .. }) = functional(&text) else {
        panic!("no fault")
    };
    assert!(
        fault.message.contains("some of them several times"),
        "{}",
        fault.message
    );
}

#[test]
fn subgraphs_of_inferentia_1_run_one_after_the_other() {
    let text = |target: &str| {
        format!(
            "neff t {target}\n{HOST}\nsubgraph sg00\nqueue q data owner=sp\nqueue p data owner=act pinned\nvar x input\nvar t tmp-buf size=4096\nvar m output\n\
             engine sp\ndma id=0 queue=q\ncopy m [1:4096] <- x [1:4096]\nNOP\nengine act\ndma id=1 queue=p\ncopy t [1:4096] <- x [1:4096]\n\
             subgraph sg01\nqueue q data owner=sp\nvar m input\nvar o output\nengine sp\ndma id=0 queue=q\ncopy o [1:4096] <- m [1:4096]\n"
        )
        .replace("var m output", "var m output size=4096")
        .replace("var m input", "var m input size=4096")
    };
    with_program(&assembled(&text("inf1")), |program, notes| {
        let outcome = run(&Verified::assume(program), &mut TimingOnly);
        assert_eq!(outcome.end, Ok(()));
        let record = |name: &str| outcome.timeline.tasks[task(program, name)];
        let (pinned, first, nop, second) = (
            record("sg00.p[0]"),
            record("sg00.q[0]"),
            record("sg00.sp[0]"),
            record("sg01.q[0]"),
        );
        assert_eq!([first.start, nop.start], [pinned.end; 2]);
        assert_eq!(second.start, first.end);
        assert!(notes.iter().any(|n| n.contains("one after the other")));
        // What one subgraph puts out is what the next one takes, and no business of the host.
        assert_eq!(program.buffers.iter().filter(|b| b.name == "m").count(), 1);
        let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
        storage.bytes_mut(buffer(program, "x"))[..4096].fill(7);
        assert_eq!(
            run(
                &Verified::assume(program),
                &mut Functional::new(&mut storage)
            )
            .end,
            Ok(())
        );
        assert_eq!(storage.bytes(buffer(program, "o"))[..4096], [7; 4096]);
    });
    timed(&text("trn2"), |program, outcome| {
        let start = |name: &str| outcome.timeline.tasks[task(program, name)].start;
        assert_eq!(start("sg00.q[0]"), start("sg01.q[0]"));
    });
}

#[test]
fn pointers_hold_addresses() {
    let text = format!(
        "neff t trn2\n{HOST}\nsubgraph sg00\nqueue q data owner=sp\nvar x input\nvar o output\nvar a tmp-buf size=100 align=4096\n\
         var v virtual size=64 at=4096\nvar b tmp-buf size=100 align=256\nvar pa pointer to=a\nvar pb pointer to=b\nvar pv pointer to=v\n"
    );
    with_program(&assembled(&text), |program, _| {
        let storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
        let address = |name: &str| {
            u64::from_le_bytes(
                storage
                    .bytes(buffer(program, name))
                    .try_into()
                    .expect("8 bytes"),
            )
        };
        let (a, b, v) = (address("sg00.pa"), address("sg00.pb"), address("sg00.pv"));
        assert_eq!((a % 4096, b % 256), (0, 0));
        assert!(a != 0 && b.abs_diff(a) >= 100);
        assert_eq!(
            v,
            program.buffers[buffer(program, "sg00.scratchpad")]
                .address
                .expect("placed")
                + 4096
        );
        let mut hbm: Vec<(u64, u64)> = program
            .buffers
            .iter()
            .filter(|b| b.memory.index() == 0)
            .filter_map(|b| Some((b.address?, b.size)))
            .collect();
        hbm.sort_unstable();
        assert!(
            hbm.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0),
            "no two overlap: {hbm:?}"
        );
    });
}

#[test]
fn more_tasks_than_the_limit_are_an_error() {
    let text = format!(
        "neff t trn2\n{HOST}\nsubgraph sg00\n{VARIABLES}\nengine sp\n{}",
        "NOP\n".repeat(20)
    );
    let file = assembled(&text);
    let limits = Limits {
        tasks: 19,
        ..Limits::default()
    };
    let container = chipless_neuron::Container::open(&file, &limits).expect("container");
    let neff = chipless_neuron::Neff::read(&container, &limits).expect("document");
    let machine = neff.architecture.machine().expect("machine");
    let error = chipless_neuron::lower(&neff, &machine, &limits).expect_err("too many");
    assert!(error.message.contains("limit tasks = 19"), "{error}");
}

/// A transfer is over when all of its rings are. Each takes the transfers of its set in their order, whatever the others do.
#[test]
fn rings_of_a_set_are_lanes_of_a_queue() {
    let order = |rings: u32| {
        let text = format!(
            "neff t trn2\n{HOST}\nsubgraph sg00\nqueue qSPDynamicHW dynamic owner=sp queues={rings} semaphores=8,9\n{VARIABLES}\nengine sp\n\
             PSEUDO_DMA_DIRECT2D dst=uint8@var[t]+0x0[64,1][32,1]*64 src=uint8@var[x]+0x0[64,1][32,1]*64 $S[8]+={rings}@complete\n\
             NOP $S[8]>={}\n",
            rings + 1
        );
        with_program(&assembled(&text), |program, _| {
            let wait = program.waits(task(program, "sg00.sp[1]"))[0];
            assert_eq!(wait.condition, Condition::AtLeast(i64::from(rings) + 1));
            let transfer = task(program, "sg00.qSPDynamicHW[0]");
            program.queues[program.tasks[transfer].queue].order
        })
    };
    assert_eq!(order(16), PieceOrder::Lanes(16));
    assert_eq!(order(1), PieceOrder::Release);
}

/// Which elements a predicated copy writes, data decide. It may be any of them, so that nobody else may touch one of them meanwhile.
#[test]
fn a_predicated_copy_writes_all_that_it_may() {
    let text = format!(
        "neff t trn2\n{HOST}\nsubgraph sg00\n{VARIABLES}\nengine dve\n\
         COPY_PREDICATED dst=fp32@0x5000[1,0,0][8,1,1] src0=uint32@0x4000[1,0,0][8,1,1] src1=fp32@0x4800[1,0,0][8,1,1] channels=32\n"
    );
    with_program(&assembled(&text), |program, _| {
        let mut written = Vec::new();
        let kernel = program.kernel(task(program, "sg00.dve[0]"));
        kernel.accesses(&mut |access| {
            if access.direction == Direction::Write {
                written.push(access.certainty);
            }
        });
        assert_eq!(written, [Certainty::Exact]);
    });
}

/// The tasks that move bytes, as they run, by what they write.
fn moved(engine: &str) -> String {
    let text = format!(
        "neff t trn2\ninput x uint8 [64]\noutput y uint8 [512]\nsubgraph sg00\nqueue q data owner=sp\n\
         queue r data owner=sp instances=r_a,r_b\nvar x input\nvar y output\nengine sp\n{engine}\n"
    );
    timed(&text, |program, outcome| {
        assert_eq!(outcome.end, Ok(()));
        let order = outcome.timeline.order.iter();
        let writes = order.filter_map(|task| {
            let mut first = None;
            program.kernel(*task).accesses(&mut |access| {
                if access.direction == Direction::Write && access.certainty == Certainty::Exact {
                    first = Some(access.pattern.offset / 64);
                }
            });
            first
        });
        writes.map(|row| row.to_string()).collect()
    })
}

/// An entry that writes row `row` of the output.
fn entry(id: u32, place: &str, row: u32) -> String {
    format!(
        "dma id={id} {place} semaphore=60\n  copy y+{} [1:64] <- x [1:64]\n",
        row * 64
    )
}

const BEGIN: &str = "PSEUDO_FUNCTION_BEGIN name=";
const CALL: &str = "PSEUDO_FUNCTION_CALL name=";
const GO: &str = "PSEUDO_DMA_TRIGGER queue=q";

#[test]
fn what_follows_a_call_belongs_to_the_caller() {
    let entries = [
        entry(0, "queue=q function=f", 0),
        entry(1, "queue=q", 1),
        entry(0, "queue=q function=g", 2),
        entry(1, "queue=q", 3),
    ]
    .concat();
    let stream = format!(
        "{BEGIN}f\n{GO}\n{CALL}g\n{GO} number=1 $S[60]>=2\nPSEUDO_FUNCTION_RETURN\n{BEGIN}g\n{GO} $S[60]>=1\nPSEUDO_FUNCTION_RETURN"
    );
    assert_eq!(moved(&format!("{entries}{stream}")), "021");
    // By count as well: each function has transfers of its own.
    let stream = format!(
        "{BEGIN}f\n{GO} by=1 number=1\n{CALL}g\n{GO} by=1 number=1 $S[60]>=2\n{BEGIN}g\n{GO} by=1 number=1 $S[60]>=1"
    );
    assert_eq!(moved(&format!("{entries}{stream}")), "021");
}

#[test]
fn a_function_ends_where_the_next_one_begins_and_at_the_end_of_the_stream() {
    let entries = [
        entry(0, "queue=q function=f", 0),
        entry(0, "queue=q function=g", 1),
        entry(0, "queue=q function=h", 2),
    ]
    .concat();
    // h is the last of the stream, and goes back to g; the call of g is the last of f, and f does not run on into h.
    let stream = format!(
        "{BEGIN}f\n{GO} $S[60]>=0\n{CALL}g\n{BEGIN}g\n{CALL}h\n{GO} $S[60]>=2\n{BEGIN}h\n{GO} $S[60]>=1"
    );
    assert_eq!(moved(&format!("{entries}{stream}")), "021");
}

#[test]
fn a_function_holds_for_all_instances_of_a_queue_set() {
    let entries = [
        entry(0, "instance=r_a function=f", 0),
        entry(0, "instance=r_b", 1),
        entry(0, "instance=r_a function=g", 2),
        entry(0, "instance=r_b", 3),
    ]
    .concat();
    let go = |name: &str, wait: u32| {
        format!(
            "PSEUDO_DMA_SWAP_QUEUE_SET name={name}\nPSEUDO_DMA_TRIGGER queue={name} $S[60]>={wait}\n"
        )
    };
    let stream = [
        format!("{BEGIN}f\n{CALL}g\n"),
        go("r_b", 2),
        go("r_a", 3),
        format!("{BEGIN}g\n"),
        go("r_b", 0),
        go("r_a", 1),
    ]
    .concat();
    assert_eq!(moved(&format!("{entries}{stream}")), "3210");
}
