//! What graphs compute, against plain Rust; and both ways of computing it against each other.

#![allow(clippy::unwrap_used, reason = "tests")]

use chipless_dsa::Document;
use chipless_dsa::evaluate::{
    Evaluation, Rows, Settings, Stop, Strategy, Stream, evaluate, state_byte,
};
use chipless_model::Limits;
use proptest::prelude::*;
use std::fmt::Write;

fn document(text: &str) -> Document<'_> {
    let document = Document::read(text.as_bytes(), &Limits::default());
    assert!(document.is_complete(), "{:?}", document.findings);
    document
}

fn kernel(name: &str) -> String {
    std::fs::read_to_string(format!(
        "{}/../../../fixtures/dsa/kernels/{name}.dfg",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}

fn stream(elements: &[u64]) -> Stream<'static> {
    Stream {
        loops: vec![elements.len() as u64],
        bytes: elements
            .iter()
            .flat_map(|e| e.to_le_bytes())
            .collect::<Vec<_>>()
            .into(),
    }
}

/// Evaluates in both ways, which must agree.
fn both(text: &str, inputs: &[Stream<'_>]) -> Result<Evaluation, Stop> {
    let document = document(text);
    let run = |strategy| {
        evaluate(
            &document.graph,
            inputs,
            Settings {
                strategy,
                ..Settings::default()
            },
            &Limits::default(),
        )
    };
    let (blocks, tokens) = (run(Strategy::Automatic), run(Strategy::TokenByToken));
    match (&blocks, &tokens) {
        (Ok(blocks), Ok(tokens)) => {
            assert_eq!(blocks.outputs, tokens.outputs);
            assert_eq!(blocks.course.taken, tokens.course.taken);
            assert_eq!(blocks.course.firings, tokens.course.firings);
        }
        _ => assert_eq!(blocks, tokens),
    }
    blocks
}

fn words(rows: &Rows) -> Vec<u64> {
    rows.bytes
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

#[test]
fn sparse_vectors_are_joined() {
    const END: u64 = 1 << 63;
    let (a, b) = (
        [(1, 10), (4, 20), (5, 30), (9, 40), (END, 0)],
        [(2, 7), (4, 8), (9, 9), (11, 1), (END, 0)],
    );
    let column = |pairs: &[(u64, u64)], second: bool| {
        stream(
            &pairs
                .iter()
                .map(|p| if second { p.1 } else { p.0 })
                .collect::<Vec<_>>(),
        )
    };
    let inputs = [
        column(&a, false),
        column(&b, false),
        column(&a, true),
        column(&b, true),
    ];
    let found = both(&kernel("intersect"), &inputs).unwrap();
    // A plain merge of the two.
    let (mut i, mut j, mut orders, mut sums, mut sum) = (0, 0, Vec::new(), Vec::new(), 0);
    while i < a.len() && j < b.len() {
        let product = a[i].1 * b[j].1;
        sum += product;
        match a[i].0.cmp(&b[j].0) {
            std::cmp::Ordering::Equal => {
                orders.push(if a[i].0 == END { 3 } else { 0 });
                sums.push(sum);
                (i, j) = (i + 1, j + 1);
            }
            std::cmp::Ordering::Greater => {
                orders.push(1);
                j += 1;
            }
            std::cmp::Ordering::Less => {
                orders.push(2);
                i += 1;
            }
        }
    }
    assert_eq!(words(&found.outputs[0]), orders);
    // Products of what does not match are accumulated and discarded: that is what the tables say.
    assert_eq!(words(&found.outputs[1]), sums);
    assert_eq!(found.outputs[1].dropped as usize, orders.len() - sums.len());
    assert!(
        found.course.waiting.is_empty(),
        "{:?}",
        found.course.waiting
    );
    assert_eq!(found.course.taken, [5, 5, 5, 5]);
}

#[test]
fn actions_do_what_they_say() {
    let data: Vec<u64> = (1..=12).collect();
    let control: Vec<u64> = data.iter().map(|x| x * 5 % 7).collect();
    let found = both(&kernel("actions"), &[stream(&data), stream(&control)]).unwrap();
    let pairs = || data.iter().copied().zip(control.iter().copied());
    let discarded: Vec<u64> = pairs()
        .filter(|(_, c)| c & 7 != 1)
        .map(|(x, _)| x)
        .collect();
    assert_eq!(words(&found.outputs[0]), discarded);
    let (mut sum, mut sums) = (0, Vec::new());
    for (x, c) in pairs() {
        sum += x;
        sums.push(sum);
        sum = if c & 7 == 1 { 0 } else { sum };
    }
    assert_eq!(words(&found.outputs[1]), sums);
    let executed = pairs().filter(|(_, c)| c & 7 != 1).scan(0, |sum, (x, _)| {
        *sum += x;
        Some(*sum)
    });
    assert_eq!(words(&found.outputs[2]), executed.collect::<Vec<u64>>());
    let masked: Vec<u64> = pairs()
        .filter(|(_, c)| c & 6 != 2 && c & 6 != 4)
        .map(|(x, _)| x)
        .collect();
    assert_eq!(words(&found.outputs[3]), masked);
    assert_eq!(found.outputs[3].dropped as usize, data.len() - masked.len());
}

#[test]
fn operands_are_held() {
    let found = both(
        &kernel("repeat"),
        &[stream(&[7, 8, 9]), stream(&[0, 0, 1, 1, 0, 1])],
    )
    .unwrap();
    assert_eq!(words(&found.outputs[0]), [7, 7, 7, 8, 9, 9]);
    // A held operand whose control has ended waits for ever, and says so.
    let starved = both(&kernel("repeat"), &[stream(&[7, 8, 9]), stream(&[0, 0])]).unwrap();
    let document = kernel("repeat");
    let graph = Document::read(document.as_bytes(), &Limits::default()).graph;
    assert_eq!(words(&starved.outputs[0]), [7, 7]);
    let waiting: Vec<String> = starved
        .course
        .waiting
        .iter()
        .map(|found| found.message(&graph))
        .collect();
    assert_eq!(
        waiting,
        ["held (Copy) waits for input last with 3 tokens of input data at hand"]
    );
}

#[test]
fn what_holds_everything_is_stopped() {
    let text = "Input: a\nInput: c\nx = Copy(a, ctrl=c{1: b1|b2|a})\nOutput: x\n";
    let stop = both(text, &[stream(&[1, 2]), stream(&[0, 1])]).unwrap_err();
    assert!(matches!(stop, Stop::Spinning(_)), "{stop:?}");
}

/// Found by fuzzing: of what comes back, each row makes the next one, and the stream beside them is not waited for.
#[test]
fn a_recurrence_that_nothing_ends_is_stopped() {
    let text = "Array: carry 0 rec\n----\nInput: before source=carry\nafter = Add_I64(before, before)\nOutput: after destination=carry\n";
    let stop = both(text, &[stream(&[1])]).unwrap_err();
    assert!(matches!(stop, Stop::Endless(_)), "{stop:?}");
}

#[test]
fn queues_are_bounded() {
    // Between `slow`, which waits, and the port lie one queue; the other consumer runs ahead by no more than that.
    let text =
        "Input: a\nInput: b\nslow = Add64(a, b)\nfast = Copy(a)\nOutput: slow\nOutput: fast\n";
    let data: Vec<u64> = (0..100).collect();
    let found = both(text, &[stream(&data), stream(&[1, 1])]).unwrap();
    assert_eq!(words(&found.outputs[0]), [1, 2]);
    assert_eq!(
        words(&found.outputs[1]),
        &data[..2 + chipless_dsa::evaluate::QUEUE]
    );
}

#[test]
fn numbers_saturate_wrap_and_multiply() {
    let lanes = |lanes: [i16; 4]| {
        lanes
            .iter()
            .rev()
            .fold(0u64, |word, lane| word << 16 | u64::from(*lane as u16))
    };
    let complex = |re: f32, im: f32| u64::from(im.to_bits()) << 32 | u64::from(re.to_bits());
    let a = [
        lanes([30000, -30000, 2048, -1]),
        complex(1.5, -2.0),
        250,
        17,
    ];
    let b = [lanes([10000, -10000, -4096, 1]), complex(0.25, 3.0), 7, 0];
    let found = both(&kernel("numbers"), &[stream(&a), stream(&b)]).unwrap();
    let first = |index: usize| words(&found.outputs[index]);
    assert_eq!(first(0)[0], lanes([32767, -32767, -2048, 0]));
    // 11 bits behind the point: 30000 × 10000 / 2048 is beyond the range, 1.0 × −2.0 is −2.0, −1 / 2048 × 1 / 2048 rounds to zero.
    assert_eq!(first(1)[0], lanes([32767, 32767, -4096, 0]));
    assert_eq!(
        first(2)[1],
        complex(1.5 * 0.25 - -2.0 * 3.0, 1.5 * 3.0 + -2.0 * 0.25)
    );
    let bytes = a[0]
        .to_le_bytes()
        .iter()
        .zip(b[0].to_le_bytes())
        .map(|(a, b)| a.wrapping_add(b))
        .collect::<Vec<_>>();
    assert_eq!(first(3)[0].to_le_bytes().to_vec(), bytes);
    assert_eq!((first(4)[2], first(5)[2]), (250 / 7, 250 % 7));
    assert_eq!((first(4)[3], first(5)[3]), (0, 0));
}

#[test]
fn the_state_of_a_stream_steers_accumulators() {
    let (rows, columns) = (6, 5);
    let matrix: Vec<u32> = (0..rows * columns * 2).map(|i| i * i + 3).collect();
    let bytes: Vec<u8> = matrix.iter().flat_map(|x| x.to_le_bytes()).collect();
    let x = Stream {
        loops: vec![rows.into(), columns.into()],
        bytes: bytes.into(),
    };
    let y = Stream {
        loops: vec![3],
        bytes: [1u16, 2, 0xffff]
            .iter()
            .flat_map(|y| y.to_le_bytes())
            .collect::<Vec<_>>()
            .into(),
    };
    let found = both(&kernel("row_sums"), &[x, y]).unwrap();
    let sums: Vec<u64> = matrix
        .chunks_exact(columns as usize * 2)
        .map(|row| row.iter().copied().map(u64::from).sum())
        .collect();
    assert_eq!(words(&found.outputs[0]), sums);
    assert_eq!(words(&found.outputs[1]), sums);
    assert_eq!(found.outputs[2].bytes, [2, 0, 3, 0, 0, 0]);
    // The second sub-graph has rows of its own.
    assert_eq!(found.course.parts.len(), 2);
    assert_eq!(found.course.taken, [30, 3]);
}

#[test]
fn states_say_where_a_row_stands() {
    // Two passes over three rows of two: first of all, last of all, and of the loops.
    let states: Vec<u8> = (0..12).map(|row| state_byte(&[2, 3, 2], row)).collect();
    let (first, last) = (0b000100, 0b001000);
    let want = [
        0b010101, last, first, last, first, 0b101000, 0b010100, last, first, last, first, 0b101010,
    ];
    assert_eq!(states, want);
    assert_eq!(state_byte(&[4], 0), 0b010101);
    assert_eq!(state_byte(&[1], 0), 0b111111);
}

#[test]
fn recurrences_bring_outputs_back() {
    let data: Vec<u64> = (1..=20).map(|x| x * x).collect();
    let found = both(
        &kernel("recurrence"),
        &[stream(&data), stream(&[0, 100, 1000])],
    )
    .unwrap();
    let mut carry = vec![0, 100, 1000];
    for (index, x) in data.iter().enumerate() {
        carry.push(carry[index] + x);
    }
    assert_eq!(words(&found.outputs[0]), &carry[3..]);
}

#[test]
fn wide_operations_work_on_words_side_by_side() {
    let text = "Input: a[2]\nInput: b[2]\nsum = Add_I32x4(a0 a1, b0 b1)\nlow = sum:0:63\nmiddle = sum:32:95\nhigh = sum:64:127\n\
                x = Copy(low)\ny = Copy(middle)\nz = Copy(high)\nOutput: x\nOutput: y\nOutput: z\n";
    let (a, b) = (
        [0xffff_ffff_0000_0001, 5, 6, 7],
        [0x0000_0001_ffff_ffff, 0xffff_ffff_0000_0000, 1, 1],
    );
    let pairs = |words: &[u64]| Stream {
        loops: vec![2],
        ..stream(words)
    };
    let found = both(text, &[pairs(&a), pairs(&b)]).unwrap();
    let add = |a: u64, b: u64| {
        u64::from((a as u32).wrapping_add(b as u32))
            | u64::from(((a >> 32) as u32).wrapping_add((b >> 32) as u32)) << 32
    };
    let sums: Vec<(u64, u64)> = (0..2)
        .map(|row| {
            (
                add(a[2 * row], b[2 * row]),
                add(a[2 * row + 1], b[2 * row + 1]),
            )
        })
        .collect();
    assert_eq!(
        words(&found.outputs[0]),
        sums.iter().map(|s| s.0).collect::<Vec<_>>()
    );
    assert_eq!(
        words(&found.outputs[1]),
        sums.iter()
            .map(|s| s.0 >> 32 | s.1 << 32)
            .collect::<Vec<_>>()
    );
    assert_eq!(
        words(&found.outputs[2]),
        sums.iter().map(|s| s.1).collect::<Vec<_>>()
    );
}

#[test]
fn what_has_no_meaning_is_refused_by_name() {
    for (text, reason) in [
        (
            "Input: a\nInput: b\nInput: c\nx = QuantOp(a, b, c)\nOutput: x\n",
            "QuantOp",
        ),
        ("Input: a\nx = FixedSin_I64(a)\nOutput: x\n", "FixedSin_I64"),
        ("Input: a\nx = Add_I64(a)\nOutput: x\n", "at least 2"),
    ] {
        let document = Document::read(text.as_bytes(), &Limits::default());
        let inputs: Vec<Stream<'_>> = document.graph.inputs().map(|_| stream(&[1])).collect();
        let stop = evaluate(
            &document.graph,
            &inputs,
            Settings::default(),
            &Limits::default(),
        )
        .unwrap_err();
        assert!(
            matches!(stop, Stop::Refused(_)) && stop.message(&document.graph).contains(reason),
            "{stop:?}"
        );
    }
}

#[test]
fn memory_is_bounded() {
    let limits = Limits {
        memory_bytes: 1000,
        ..Limits::default()
    };
    let document = document("Input: a\nx = Copy(a)\nOutput: x\n");
    for strategy in [Strategy::Automatic, Strategy::TokenByToken] {
        let stop = evaluate(
            &document.graph,
            &[stream(&[1; 200])],
            Settings {
                strategy,
                ..Settings::default()
            },
            &limits,
        )
        .unwrap_err();
        assert_eq!(stop, Stop::TooLarge { limit: 1000 });
    }
}

/// Instructions of random graphs: how they are written, with `A`, `B`, `C` for operands, and how many results they have.
const INSTRUCTIONS: &[(&str, usize)] = &[
    ("Add64(A, B)", 1),
    ("Mul16x4(A, B)", 1),
    ("Add_I32x2(A, 5)", 1),
    // With two NaN for operands, which of them comes out is up to the processor.
    ("FMul32x2(A, 1.5 1.5)", 1),
    ("FxSubAdd16x4(A, B)", 1),
    ("LT_U8x8(A, B)", 1),
    ("Select(A, B, C)", 1),
    ("DivRem64(A, B)", 2),
    ("Keep(A, B)", 1),
    ("Discard(A, B)", 1),
    ("Acc64(A, B)", 1),
    ("Acc16x4(A, B)", 1),
    ("Hold(A, B)", 1),
    ("Accumulate64(A, ctrl=B{0: d, 1: r, 2: d|r})", 1),
    ("Min64(A, B, ctrl=C & 12{4: d})", 1),
    ("Compare64(A, B, self={1: d, 2: r})", 1),
    ("Add64(A:8:39 B:0:31, C)", 1),
    ("Copy(A, pred=B)", 1),
    ("Add64(A, $Reg0)", 1),
    // Those above fire once for each token of each operand; those below do not.
    ("Merge(A, B)", 1),
    ("Compare64(A, B, self={1: b1, 2: b2})", 1),
    ("Copy(A, ctrl=B{1: a, 3: b1})", 1),
];

fn graph(steps: &[(usize, [usize; 3])], regular: bool) -> String {
    let mut text = "Input: i0\nInput: i1\nInput: i2\n".to_owned();
    let mut names: Vec<String> = (0..3).map(|i| format!("i{i}")).collect();
    for (number, (kind, operands)) in steps.iter().enumerate() {
        let choices = if regular {
            INSTRUCTIONS.len() - 3
        } else {
            INSTRUCTIONS.len()
        };
        let (form, results) = INSTRUCTIONS[kind % choices];
        let mut call = form.to_owned();
        for (letter, operand) in ["A", "B", "C"].iter().zip(operands) {
            // Operation names have capitals as well: operands stand behind a bracket, a comma, a blank or an equals sign.
            for before in ["(", " ", "="] {
                for after in [",", ")", ":", "{", " "] {
                    call = call.replace(
                        &format!("{before}{letter}{after}"),
                        &format!("{before}{}{after}", names[operand % names.len()]),
                    );
                }
            }
        }
        let made: Vec<String> = (0..results)
            .map(|result| format!("v{number}_{result}"))
            .collect();
        if call.contains("$Reg0") {
            writeln!(text, "#pragma $Reg0 {}", made[0]).unwrap();
        }
        writeln!(text, "{} = {call}", made.join(", ")).unwrap();
        names.extend(made);
    }
    for (index, name) in names.iter().enumerate() {
        writeln!(text, "o{index} = {name}\nOutput: o{index}").unwrap();
    }
    text
}

proptest! {
    #![proptest_config(chipless_rounds::cases(96))]

    #[test]
    fn blocks_and_tokens_agree(
        steps in prop::collection::vec((0usize..100, prop::array::uniform3(0usize..100)), 1..10),
        rows in 0usize..1100,
        seed in any::<u64>(),
        regular in any::<bool>(),
    ) {
        let text = graph(&steps, regular);
        let mut state = seed | 1;
        let mut next = |_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Small numbers, so that tables are met; large ones between them.
            if state >> 62 == 0 { state } else { state >> 40 & 3 }
        };
        let inputs: Vec<Stream<'_>> = (0..3).map(|_| stream(&(0..rows).map(&mut next).collect::<Vec<_>>())).collect();
        match both(&text, &inputs) {
            Ok(found) => prop_assert!(!regular || found.course.parts.iter().all(|part| part.regular)),
            Err(stop) => prop_assert!(!regular && matches!(stop, Stop::Spinning(_)), "{:?}", stop),
        }
    }
}

/// As the simulator's recordings have it.
#[test]
fn shifts_of_words_take_the_low_six_bits() {
    let text = "Input: a\nInput: b\nl = LShf64(a, b)\nr = RShf64(a, b)\nOutput: l\nOutput: r\n";
    let (a, b) = ([3u64, 1 << 63, 5, 7], [1u64, 63, 64, 129]);
    let evaluation = both(text, &[stream(&a), stream(&b)]).unwrap();
    let words = |bytes: &[u8]| -> Vec<u64> {
        let words = bytes.chunks_exact(8);
        words
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect()
    };
    assert_eq!(words(&evaluation.outputs[0].bytes), [6, 0, 5, 14]);
    assert_eq!(words(&evaluation.outputs[1].bytes), [1, 1, 5, 3]);
}
