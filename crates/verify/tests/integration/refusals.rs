//! NEFFs of which something cannot run, or runs in no fixed order: what is said, and what is not.

use chipless_model::{Finding, Limits, Program};
use chipless_neuron::{Container, Neff, lint, lower, machine::Machine};
use chipless_neuron_assembler::assemble;

/// The codes of all findings of a program in assembler text, the verifier's behind the reader's. `change` may change the program.
pub(crate) fn codes(text: &str, change: impl FnOnce(&mut Program<'_>)) -> Vec<&'static str> {
    let limits = Limits::default();
    let file = assemble(text)
        .unwrap_or_else(|e| panic!("{e}"))
        .write(&limits)
        .expect("written");
    let container = Container::open(&file, &limits).expect("a container");
    let neff = Neff::read(&container, &limits).expect("a document");
    let mut lowered =
        lower(&neff, &Machine::named("trn2").expect("known"), &limits).expect("a program");
    change(&mut lowered.program);
    let verified = match chipless_verify::verify(&lowered.program) {
        Ok(verified) => verified.warnings().to_vec(),
        Err(findings) => findings,
    };
    let found: Vec<Finding> = lint(&neff, &limits).into_iter().chain(verified).collect();
    found.iter().map(|f| f.rule.code).collect()
}

/// Two cores that put different tensors, each out of a state buffer of its own, into the same bytes.
const TWO_CORES: &str = "
neff two trn2
input  x   uint8 [256]
input  z   uint8 [256]
output out uint8 [256]
subgraph sg00
queue q data owner=sp
var SB  state-buffer
var x   input
var out output
engine sp
dma id=0 queue=q
  copy SB [1:256] <- x [1:256]
dma id=1 queue=q
  copy out [1:256] <- SB [1:256]
subgraph sg01
queue q data owner=sp
var SB  state-buffer
var z   input
var out output
engine sp
dma id=0 queue=q
  copy SB [1:256] <- z [1:256]
dma id=1 queue=q
  copy out [1:256] <- SB [1:256]
";

#[test]
fn copies_that_look_alike_race_unless_the_target_cuts_tensors_with_common_rows() {
    assert!(codes(TWO_CORES, |_| {}).contains(&"race-write-write"));
    let halos = codes(TWO_CORES, |program| program.copies_halos = true);
    assert!(
        halos.contains(&"race-duplicate-write") && !halos.contains(&"race-write-write"),
        "{halos:?}"
    );
}

/// Pieces of a tensor that was cut by tiles: those at its edges have fewer common rows. Bytes inside another transfer's are another tensor.
#[test]
fn pieces_of_different_lengths_are_duplicates_if_one_follows_the_other() {
    let with = |second: &str| {
        let (head, tail) = TWO_CORES
            .rsplit_once("copy out [1:256] <- SB [1:256]")
            .unwrap();
        let text = format!(
            "{}{second}{tail}",
            head.replace("copy out [1:256]", "copy out [1:160]")
                .replace("<- SB [1:256]", "<- SB [1:160]")
        );
        let found = codes(&text, |program| program.copies_halos = true);
        (
            found.contains(&"race-duplicate-write"),
            found.contains(&"race-write-write"),
        )
    };
    assert_eq!(with("copy out+128 [1:128] <- SB [1:128]"), (true, false));
    assert_eq!(with("copy out+128 [1:128] <- SB+8 [1:128]"), (false, true));
    assert_eq!(with("copy out+16 [1:128] <- SB [1:128]"), (false, true));
}

/// Either of two transfers that put the same rows somewhere may come last. Where one of them has bytes that nobody has written, the output may be these.
#[test]
fn what_is_in_doubt_in_one_of_two_duplicates_stays_so() {
    let with = |first: bool, second: bool| {
        let mut text = TWO_CORES.to_owned();
        for (input, is_there) in [("x", first), ("z", second)] {
            if !is_there {
                text = text.replace(
                    &format!("copy SB [1:256] <- {input} [1:256]"),
                    &format!("copy SB [1:255] <- {input} [1:255]"),
                );
            }
        }
        let found = codes(&text, |program| program.copies_halos = true);
        assert!(found.contains(&"race-duplicate-write"), "{found:?}");
        !found.contains(&"read-before-write")
    };
    assert_eq!(
        [
            with(true, true),
            with(true, false),
            with(false, true),
            with(false, false)
        ],
        [true, false, false, false]
    );
}

/// A transfer into `t`, and one that takes `t` further.
fn staged(first: &str) -> String {
    format!(
        "
neff staged trn2
input  x   uint8 [256]
output out uint8 [256]
subgraph sg00
queue q data owner=sp
var SB  state-buffer
var x   input
var out output
var t   tmp-buf size=256
engine sp
dma id=0 queue=q
  {first}
dma id=1 queue=q
  copy out [1:256] <- t [1:256]
"
    )
}

#[test]
fn what_is_refused_is_the_finding_and_not_who_reads_behind_it() {
    assert_eq!(
        codes(&staged("copy t [1:256] <- x [1:256]"), |_| {}),
        [""; 0]
    );
    assert!(codes(&staged("copy SB [1:256] <- x [1:256]"), |_| {}).contains(&"read-before-write"));
    for (first, code) in [
        ("transpose t [1:256] <- x [1:256]", "neff-not-executed"),
        ("copy t [1:256] <- x [1:255]", "neff-descriptor-bytes"),
        ("copy t+1 [1:256] <- x [1:256]", "neff-descriptor-bounds"),
        ("copy t [1:256] <- x+1 [1:256]", "neff-descriptor-bounds"),
        ("copy u [1:256] <- x [1:256]", "neff-descriptor-variable"),
        (
            "cast t [1:256] float16 <- x [1:256] float32",
            "neff-descriptor-elements",
        ),
        (
            "cast t [1:255] float16 <- x [1:255] float16",
            "neff-descriptor-partial-element",
        ),
        ("copy t [1:0] <- x [1:256]", "neff-descriptor-zero-size"),
    ] {
        let mut found = codes(&staged(first), |_| {});
        found.dedup();
        assert_eq!(found, [code], "{first}");
    }
    let empty = staged("").replacen(
        "dma id=0 queue=q\n",
        "dma id=0 queue=q\ndma id=2 queue=q\n",
        1,
    );
    assert_eq!(
        codes(&empty, |_| {}),
        ["neff-descriptor-empty", "neff-descriptor-empty"]
    );
    let lost = staged("copy t [1:256] <- x [1:256]").replacen(
        "dma id=0 queue=q",
        "dma id=0 queue=none",
        1,
    );
    assert_eq!(codes(&lost, |_| {}), ["neff-descriptor-queue-unknown"]);
}

#[test]
fn what_an_instruction_writes_that_is_not_executed_is_not_missed() {
    let activation = "
neff act trn2
output out float32 [16]
subgraph sg00
queue q dynamic owner=sp queues=16 semaphores=8
var SB  state-buffer
var out output
engine act
ACTIVATE_QUANTIZE $S[4]++@complete
engine sp
PSEUDO_DMA_DIRECT2D dst=fp32@var[out]+0x0[1,1][1,1]*64 src=fp32@var[SB]+0x4000[1,1][1,1]*64 $S[4]>=1 $S[8]+=16@complete
NOP $S[8]>=16
";
    let found = codes(activation, |_| {});
    assert!(
        found.contains(&"neff-not-executed") && !found.contains(&"read-before-write"),
        "{found:?}"
    );
}
