//! NEFFs: a matrix multiply, executed, against the same multiply by the kernels alone; and long streams of slots, in slots a second.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

use chipless_benches::best_of_all_threads as best;
use chipless_kernels::Update;
use chipless_kernels::matrix::{Matrix, MatrixMut, multiply};
use chipless_model::{Limits, Program, Storage};
use chipless_neuron::machine::Machine;
use chipless_neuron::{Container, Neff};
use chipless_sim::{Functional, TimingOnly, Verified, run};
use std::fmt::Write;
use std::time::Duration;

/// Rows and columns of the matrix engine.
const TILE: usize = 128;

fn main() {
    println!(
        "{:<44} {:>10} {:>10} {:>8}",
        "matrix multiply, executed", "run ms", "alone ms", "ratio"
    );
    for (m, n, k) in [(128, 512, 1024), (1024, 512, 1024), (1024, 512, 4096)] {
        multiplication(m, n, k);
    }
    println!(
        "\n{:<28} {:>12} {:>14} {:>14} {:>14}",
        "stream, thousands of slots", "read ms", "lower ms", "verify ms", "replay ms"
    );
    for slots in [10_000, 100_000] {
        stream(slots);
    }
}

fn multiplication(m: usize, n: usize, k: usize) {
    let bytes = assembled(&multiplication_text(m, n, k));
    let executed = with_program(&bytes, |program| {
        let execute = || {
            let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
            let ended = run(
                &Verified::assume(program),
                &mut Functional::new(&mut storage),
            )
            .end;
            assert!(ended.is_ok(), "{ended:?}");
        };
        // On a thread of the pool, as the command line has it.
        best(|| rayon::scope(|_| execute()))
    });
    let (left, right, mut sums) = (vec![1f32; m * k], vec![1f32; k * n], vec![0f32; m * n]);
    let alone = best(|| {
        let (left, right) = (
            Matrix::new(&left, m, k).expect("a matrix"),
            Matrix::new(&right, k, n).expect("a matrix"),
        );
        let sums = MatrixMut::new(&mut sums, m, n).expect("a matrix");
        rayon::scope(|_| multiply(left, right, sums, Update::Set)).expect("a product");
    });
    let ratio = executed.as_secs_f64() / alone.as_secs_f64();
    println!(
        "{:<44} {:>10.2} {:>10.2} {ratio:>8.2}",
        format!("{m} × {k} times {k} × {n}"),
        ms(executed),
        ms(alone)
    );
}

/// The operands are loaded whole, then every tile of 128 × 512 results is added up in a bank of PSUM of its own.
fn multiplication_text(m: usize, n: usize, k: usize) -> String {
    let (columns, depth, row, moving) = (m / TILE, k / TILE, m * 2, n * 2);
    let (weights, data) = (0x4000, 0x4000 + depth * row);
    let results = data + depth * moving;
    let mut text = format!(
        "neff multiply trn2\ninput w float16 [{k}, {m}]\ninput x float16 [{k}, {n}]\noutput out float32 [{m}, {n}]\nsubgraph sg00\n\
         queue qSPDynamicHW dynamic owner=sp queues=16 semaphores=8,9,10,11\n\
         queue qPoolDynamic dynamic owner=pool queues=16 semaphores=24,25,26,27 scratch=0:16384\n\
         var SB state-buffer\nvar w input\nvar x input\nvar out output\nvar T dge-table w x out\nengine sp\nSET_ORDERING_MODE\n"
    );
    let mut line =
        |arguments: std::fmt::Arguments<'_>| writeln!(text, "{arguments}").expect("text");
    for tile in 0..depth {
        let (to, from) = (weights + tile * row, tile * TILE * row);
        line(format_args!(
            "PSEUDO_DMA_DIRECT2D dst=fp16@var[SB]+{to:#x}[262144,1][128,1]*{row} src=fp16@table[w]+{from:#x}[{row},1][128,1]*{row} \
             $S[8]+=16@complete"
        ));
        let (to, from) = (data + tile * moving, tile * TILE * moving);
        line(format_args!(
            "PSEUDO_DMA_DIRECT2D dst=fp16@var[SB]+{to:#x}[262144,1][128,1]*{moving} src=fp16@table[x]+{from:#x}[{moving},1][128,1]*{moving} \
             $S[9]+=16@complete"
        ));
    }
    line(format_args!(
        "engine pe\nSET_ORDERING_MODE\nEVENT_SEMAPHORE $S[8]>={0} $S[9]>={0}",
        16 * depth
    ));
    for column in 0..columns {
        for tile in 0..depth {
            let last_column = weights + tile * row + (column + 1) * TILE * 2 - 2;
            line(format_args!(
                "LDWEIGHTS src=fp16@{last_column:#x}[-1,0,0][128,1,1] rows=128 columns=128"
            ));
            let (first, last) = (tile == 0, tile + 1 == depth);
            let flags = [
                match (first, last) {
                    (true, true) => "sums=start+stop",
                    (true, false) => "sums=start",
                    (false, true) => "sums=stop",
                    (false, false) => "",
                },
                if last { "$S[5]++@complete" } else { "" },
            ]
            .join(" ");
            let (to, from) = (column * n * 4, data + tile * moving);
            line(format_args!(
                "MATMUL dst=fp32@psum+{to:#x}[1,0,0][{n},1,1] src=fp16@{from:#x}[1,0,0][{n},1,1] rows=128 columns=128 {flags}"
            ));
        }
    }
    line(format_args!("engine act\nSET_ORDERING_MODE"));
    for column in 0..columns {
        let (to, from, done) = (results + column * n * 4, column * n * 4, column + 1);
        line(format_args!(
            "COPY dst=fp32@{to:#x}[1,0,0,0][{n},1,1,1] src=fp32@psum+{from:#x}[1,0,0,0][{n},1,1,1] channels=128 $S[5]>={done} $S[4]++@complete"
        ));
    }
    line(format_args!("engine pool\nSET_ORDERING_MODE"));
    for column in 0..columns {
        let (to, from, row, done) = (
            column * TILE * n * 4,
            results + column * n * 4,
            n * 4,
            column + 1,
        );
        line(format_args!(
            "PSEUDO_DMA_DIRECT2D dst=fp32@table[out]+{to:#x}[{row},1][128,1]*{row} src=fp32@var[SB]+{from:#x}[262144,1][128,1]*{row} \
             $S[4]>={done} $S[26]+=16@complete"
        ));
    }
    line(format_args!("NOP $S[26]>={}", 16 * columns));
    text
}

/// Timing only, everything included.
fn stream(slots: usize) {
    let bytes = assembled(&stream_text(slots));
    let limits = Limits::default();
    let read = best(|| {
        assert!(
            Container::open(&bytes, &limits)
                .and_then(|c| Neff::read(&c, &limits).map(drop))
                .is_ok()
        );
    });
    let container = Container::open(&bytes, &limits).expect("a container");
    let neff = Neff::read(&container, &limits).expect("a NEFF");
    let machine = Machine::named("trn2").expect("a machine");
    let lowering = best(|| assert!(chipless_neuron::lower(&neff, &machine, &limits).is_ok()));
    let [verify, replay] = with_program(&bytes, |program| {
        let verify = best(|| assert!(chipless_verify::verify(program).is_ok()));
        [
            verify,
            best(|| assert!(run(&Verified::assume(program), &mut TimingOnly).end.is_ok())),
        ]
    });
    let total = read + lowering + verify + replay;
    println!(
        "{:<28} {:>12.2} {:>14.2} {:>14.2} {:>14.2}   {:.2} million slots a second",
        slots / 1000,
        ms(read),
        ms(lowering),
        ms(verify),
        ms(replay),
        slots as f64 / total.as_secs_f64() / 1e6
    );
}

/// Copies and sums of one engine that feed each other: what a vector kernel with much unrolling looks like.
fn stream_text(slots: usize) -> String {
    let mut text = "neff stream trn2\ninput x float32 [128, 512]\noutput out float32 [128, 512]\nsubgraph sg00\n\
                    queue qSPDynamicHW dynamic owner=sp queues=16 semaphores=8,9,10,11\n\
                    queue qPoolDynamic dynamic owner=pool queues=16 semaphores=24,25,26,27 scratch=0:16384\n\
                    var SB state-buffer\nvar x input\nvar out output\nvar T dge-table x out\nengine sp\nSET_ORDERING_MODE\n\
                    PSEUDO_DMA_DIRECT2D dst=fp32@var[SB]+0x4000[262144,1][128,1]*2048 src=fp32@table[x]+0x0[2048,1][128,1]*2048 $S[8]+=16@complete\n\
                    engine dve\nSET_ORDERING_MODE\nEVENT_SEMAPHORE $S[8]>=16\n"
        .to_owned();
    for slot in 0..slots {
        let (to, from) = (0x4000 + (slot + 1) % 16 * 2048, 0x4000 + slot % 16 * 2048);
        let end = if slot + 1 == slots {
            " $S[4]++@complete"
        } else {
            ""
        };
        writeln!(
            text,
            "TENSOR_TENSOR dst=fp32@{to:#x}[1,0,0][512,1,1] src0=fp32@{from:#x}[1,0,0][512,1,1] src1=fp32@0x4000[1,0,0][512,1,1] op=add channels=128{end}"
        )
        .expect("text");
    }
    let last = 0x4000 + slots % 16 * 2048;
    writeln!(
        text,
        "engine pool\nSET_ORDERING_MODE\nPSEUDO_DMA_DIRECT2D dst=fp32@table[out]+0x0[2048,1][128,1]*2048 \
         src=fp32@var[SB]+{last:#x}[262144,1][128,1]*2048 $S[4]>=1 $S[26]+=16@complete\nNOP $S[26]>=16"
    )
    .expect("text");
    text
}

fn assembled(text: &str) -> Vec<u8> {
    chipless_neuron_assembler::assemble(text)
        .expect("a program")
        .write(&Limits::default())
        .expect("a NEFF")
}

fn with_program<T>(bytes: &[u8], then: impl FnOnce(&Program<'_>) -> T) -> T {
    let limits = Limits::default();
    let container = Container::open(bytes, &limits).expect("a container");
    let neff = Neff::read(&container, &limits).expect("a NEFF");
    let machine = Machine::named("trn2").expect("a machine");
    then(
        &chipless_neuron::lower(&neff, &machine, &limits)
            .expect("a program")
            .program,
    )
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
