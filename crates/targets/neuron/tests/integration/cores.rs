//! Cores that wait for each other and exchange elements.

use crate::common::{assembled, buffer, with_program};
use chipless_model::{Limits, Program, Storage};
use chipless_sim::{Functional, Stop, Verified, run};

/// Two cores with the same variables and a stream each.
fn program(streams: [&str; 2]) -> String {
    let mut text = "neff test trn2\ninput x uint8 [256]\noutput o uint8 [256]\n".to_owned();
    for (core, stream) in streams.iter().enumerate() {
        text += &format!(
            "subgraph sg0{core}\nvar SB state-buffer\nvar x input\nvar o output\nqueue q dynamic owner=pool queues=16 semaphores=8\nengine pool\n{stream}\n"
        );
    }
    text
}

fn outcome(text: &str) -> (Vec<u8>, Result<(), Stop>) {
    with_program(&assembled(text), |program: &Program<'_>, _| {
        let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
        for (n, byte) in storage
            .bytes_mut(buffer(program, "x"))
            .iter_mut()
            .enumerate()
        {
            *byte = n as u8;
        }
        let mut functional = Functional::new(&mut storage);
        let end = run(&Verified::assume(program), &mut functional).end;
        (storage.bytes(buffer(program, "o")).to_vec(), end)
    })
}

fn proof(text: &str) -> Vec<String> {
    with_program(
        &assembled(text),
        |program, _| match chipless_verify::verify(program) {
            Ok(verified) => verified.warnings().to_vec(),
            Err(findings) => findings,
        },
    )
    .iter()
    .map(|f| format!("{}: {}", f.rule.code, f.message))
    .collect()
}

const BARRIER: &str = "PSEUDO_CORE_BARRIER id=3 semaphore=20";

/// Each core writes its half of the output, and the first copies all of it after the barrier.
fn halves(barrier: &str) -> String {
    let write = |core: usize| {
        format!(
            "PSEUDO_DMA_DIRECT2D dst=uint8@var[o]+{0:#x}[1,1][1,1]*64 src=uint8@var[x]+{0:#x}[1,1][1,1]*64 $S[8]+=16@complete\nNOP $S[8]>=16\n",
            core * 64
        )
    };
    let copy = "PSEUDO_DMA_DIRECT2D dst=uint8@var[o]+0x80[1,1][1,1]*128 src=uint8@var[o][1,1][1,1]*128 $S[8]+=16@complete\nNOP $S[8]>=32";
    program([
        &format!("{}{barrier}\n{copy}", write(0)),
        &format!("{}{barrier}", write(1)),
    ])
}

#[test]
fn cores_meet_at_a_barrier() {
    let text = halves(BARRIER);
    let (bytes, end) = outcome(&text);
    assert_eq!(end, Ok(()));
    let expected: Vec<u8> = (0..128).chain(0..128).collect();
    assert_eq!(bytes, expected);
    assert_eq!(proof(&text), Vec::<String>::new());
    // Without it, the other core may not have written yet.
    let found = proof(&halves("NOP"));
    assert!(found.iter().any(|f| f.contains("race")), "{found:?}");
}

#[test]
fn a_barrier_that_the_other_core_does_not_have_is_a_deadlock() {
    let text = program([BARRIER, "NOP"]).replace("NOP", "NOP\nNOP");
    let text = text.replacen(BARRIER, &format!("{BARRIER}\nNOP"), 1);
    assert!(
        matches!(outcome(&text).1, Err(Stop::Deadlock { .. })),
        "{:?}",
        outcome(&text).1
    );
    assert!(
        proof(&text)
            .iter()
            .any(|f| f.contains("deadlock") || f.contains("never")),
        "{:?}",
        proof(&text)
    );
    // Other ids are other barriers.
    let other =
        program([BARRIER, &BARRIER.replace('3', "4")]).replace("semaphore=20", "semaphore=20\nNOP");
    assert!(matches!(outcome(&other).1, Err(Stop::Deadlock { .. })));
}

#[test]
fn signals_of_a_barrier_come_when_all_are_there() {
    // The second core only comes once the first has been released elsewhere: the signal of the barrier is not that.
    let text = program([
        &format!("{BARRIER} $S[9]++@complete\nNOP $S[9]>=1\n{BARRIER}"),
        &format!("{BARRIER}\n{BARRIER}"),
    ]);
    assert_eq!(outcome(&text).1, Ok(()));
    let found = proof(&text);
    assert!(
        found.iter().all(|f| f.starts_with("output-not-written")),
        "{found:?}"
    );
}

const EXCHANGE: &str = "SB2SB_COLLECTIVE dst=int16@0x6000[1,0,0][4,1,1] src=int16@0x4000[2,0,0][4,1,1] cores=two channels=2";

/// Each core loads 16 bytes of two partitions from a place of its own, exchanges every second element, and stores what it got.
fn exchange(instruction: &str) -> String {
    let core = |core: usize| {
        format!(
            "PSEUDO_DMA_DIRECT2D dst=uint8@var[SB]+0x4000[262144,1][2,1]*16 src=uint8@var[x]+{:#x}[16,1][2,1]*16 $S[8]+=16@complete\nNOP $S[8]>=16\n\
             {instruction}\n\
             PSEUDO_DMA_DIRECT2D dst=uint8@var[o]+{:#x}[8,1][2,1]*8 src=uint8@var[SB]+0x6000[262144,1][2,1]*8 $S[8]+=16@complete\nNOP $S[8]>=32",
            core * 64,
            core * 16
        )
    };
    program([&core(0), &core(1)])
}

#[test]
fn cores_exchange_elements() {
    let text = exchange(EXCHANGE);
    let (bytes, end) = outcome(&text);
    assert_eq!(end, Ok(()));
    let of = |core: u8| {
        let row = move |row: u8| {
            (0..4u8).flat_map(move |e| {
                [
                    core * 64 + row * 16 + 4 * e,
                    core * 64 + row * 16 + 4 * e + 1,
                ]
            })
        };
        row(0).chain(row(1)).collect::<Vec<u8>>()
    };
    assert_eq!(bytes[..16], of(1));
    assert_eq!(bytes[16..32], of(0));
    assert!(
        proof(&text).iter().all(|f| !f.contains("race")),
        "{:?}",
        proof(&text)
    );
    for (instruction, why) in [
        (
            EXCHANGE.replace("cores=two", "cores=four"),
            "only exchanges between two cores",
        ),
        (
            EXCHANGE.replace("dst=int16", "dst=bf16"),
            "change their type",
        ),
        (EXCHANGE.replace("[4,1,1]", "[5,1,60]"), "300 elements"),
        (
            EXCHANGE.replace("channels=2", "channels=2 byte[0x22]=1"),
            "byte 0x22 is 0x01",
        ),
    ] {
        match outcome(&exchange(&instruction)).1 {
            Err(Stop::Fault { fault, .. }) => {
                assert!(fault.message.contains(why), "{}", fault.message);
            }
            other => panic!("{instruction}: {other:?}"),
        }
    }
    // A program of one core has no other.
    let text = exchange(EXCHANGE);
    let alone = &text[..text.find("subgraph sg01").expect("two cores")];
    match outcome(alone).1 {
        Err(Stop::Fault { fault, .. }) => assert!(
            fault.message.contains("the program has 1"),
            "{}",
            fault.message
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_engines_at_one_barrier_are_refused() {
    let text = program([BARRIER, BARRIER])
        .replace("engine pool", &format!("engine sp\n{BARRIER}\nengine pool"));
    match outcome(&text).1 {
        Err(Stop::Fault { fault, .. }) => assert!(
            fault.message.contains("come to core barrier 3"),
            "{}",
            fault.message
        ),
        other => panic!("{other:?}"),
    }
}
