//! Elements that move between partitions, by their indices, and by predicates.

use crate::common::{assembled, buffer, with_program};
use chipless_model::{Limits, Program, Storage};
use chipless_sim::{Functional, Stop, Verified, run};
use proptest::prelude::*;
use std::fmt::Write as _;

const PARTITION: usize = 0x4_0000;

/// The state buffer after a stream of an engine, where byte `b` of partition `p` was `p * 31 + b * 7` at first.
fn after(
    engine: &str,
    stream: &str,
    prepare: impl FnOnce(&mut [u8]),
) -> (Vec<u8>, Result<(), Stop>) {
    let text = format!(
        "neff test trn2\ninput x uint8 [4]\noutput o uint8 [4]\nsubgraph sg00\nvar SB state-buffer\nvar x input\nvar o output\n\
         engine {engine}\n{stream}\n"
    );
    with_program(&assembled(&text), |program: &Program<'_>, _| {
        let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
        let sbuf = buffer(program, "sg00.sbuf");
        let bytes = storage.bytes_mut(sbuf);
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = (at / PARTITION * 31 + at % PARTITION * 7) as u8;
        }
        prepare(bytes);
        let end = run(
            &Verified::assume(program),
            &mut Functional::new(&mut storage),
        )
        .end;
        (storage.bytes(sbuf).to_vec(), end)
    })
}

fn refused(engine: &str, stream: &str) -> String {
    match after(engine, stream, |_| {}).1 {
        Err(Stop::Fault { fault, .. }) => fault.message,
        other => panic!("{other:?}"),
    }
}

fn load_mask(mask: &[u8; 32]) -> String {
    let mut text = "LOAD_MASK_SELECT partitions=".to_owned();
    for partition in mask {
        write!(text, "{partition:02x}").expect("text");
    }
    text
}

const SHUFFLE: &str = "STREAM_SHUFFLE dst=uint16@0x5000[1,0,0,0][6,1,1,1] src=uint16@0x4000[2,0,0,0][6,1,1,1] channels=";

proptest! {
    #![proptest_config(chipless_rounds::cases(24))]
    #[test]
    fn each_partition_takes_the_elements_that_the_mask_says(
        mask in prop::array::uniform32(prop_oneof![4 => 0u8..32, 1 => Just(255)]), quadrants in 1usize..5,
    ) {
        let stream = format!("{}\n{SHUFFLE}{}", load_mask(&mask), quadrants * 32);
        let (before, after) = (after("dve", "NOP", |_| {}).0, after("dve", &stream, |_| {}));
        prop_assert_eq!(after.1, Ok(()));
        for partition in 0..128 {
            let (first, row) = (partition / 32 * 32, usize::from(mask[partition % 32]));
            for element in 0..6 {
                let to = partition * PARTITION + 0x5000 + 2 * element;
                let from = if partition < quadrants * 32 && row != 255 {
                    (first + row) * PARTITION + 0x4000 + 4 * element
                } else {
                    to
                };
                prop_assert_eq!(&after.0[to..to + 2], &before[from..from + 2], "{} {}", partition, element);
            }
        }
    }
}

#[test]
fn a_shuffle_needs_a_mask_that_is_understood() {
    let message = refused("dve", &format!("{SHUFFLE}32"));
    assert!(message.contains("LOAD_MASK_SELECT"), "{message}");
    let mut mask = [0; 32];
    mask[5] = 40;
    let message = refused("dve", &format!("{}\n{SHUFFLE}32", load_mask(&mask)));
    assert!(message.contains("partition 40"), "{message}");
    mask[5] = 64;
    let message = refused("dve", &load_mask(&mask));
    assert!(message.contains("partition 64"), "{message}");
    // The last mask counts.
    let stream = format!(
        "{}\n{}\n{SHUFFLE}32",
        load_mask(&[40; 32]),
        load_mask(&[3; 32])
    );
    assert_eq!(after("dve", &stream, |_| {}).1, Ok(()));
}

const LOAD: &str = "POOL_BUFFER_LOAD src=fp32@0x4000[1,0,0,0][16,1,1,1] channels=4";
const GATHER: &str =
    "GATHER dst=fp32@0x6000[1,0,0,0][8,1,1,1] src=uint32@0x5000[1,0,0,0][8,1,1,1] channels=4";

/// Writes the indices of the first four partitions.
fn indices(of: impl Fn(usize) -> u32) -> impl FnOnce(&mut [u8]) {
    move |bytes| {
        for (partition, element) in (0..4).flat_map(|p| (0..8).map(move |e| (p, e))) {
            let at = partition * PARTITION + 0x5000 + 4 * element;
            bytes[at..at + 4].copy_from_slice(&of(partition * 8 + element).to_le_bytes());
        }
    }
}

#[test]
fn elements_come_by_their_indices_part_by_part() {
    // Two tables of 16 elements each; the second begins at index 16.
    let second = LOAD.replace("0x4000", "0x4040");
    let stream = format!(
        "{LOAD} start=0x0 mask=0xf\n{GATHER} free=1\n{second} start=0x10 mask=0xf\n{GATHER} missing=skip free=1"
    );
    let of = |n: usize| (n as u32 * 11 + 3) % 32;
    let (bytes, end) = after("pool", &stream, indices(of));
    assert_eq!(end, Ok(()));
    for (partition, element) in (0..4).flat_map(|p| (0..8).map(move |e| (p, e))) {
        let row = partition * PARTITION;
        let (to, from) = (
            row + 0x6000 + 4 * element,
            row + 0x4000 + 4 * of(partition * 8 + element) as usize,
        );
        assert_eq!(
            bytes[to..to + 4],
            bytes[from..from + 4],
            "{partition} {element}"
        );
    }
}

#[test]
fn what_is_not_in_the_table_is_a_number_or_stays() {
    let one = |missing: &str| {
        let stream = format!("{LOAD} start=0x0 mask=0xf\n{GATHER} {missing}");
        let (bytes, end) = after("pool", &stream, indices(|_| 99));
        assert_eq!(end, Ok(()));
        bytes[0x6000..0x6004].to_vec()
    };
    assert_eq!(one("imm=2.5"), 2.5f32.to_le_bytes());
    assert_eq!(
        one("missing=skip"),
        (0..4u8).map(|b| b * 7).collect::<Vec<_>>()
    );
}

#[test]
fn what_a_gather_cannot_do_is_said() {
    let gather = |load: &str, gather: &str, index: u32| {
        let (_, end) = after("pool", &format!("{load}\n{gather}"), indices(|_| index));
        match end {
            Err(Stop::Fault { fault, .. }) => fault.message,
            other => panic!("{other:?}"),
        }
    };
    let load = format!("{LOAD} start=0x0 mask=0x1f");
    let message = gather(&load, GATHER, 20);
    assert!(
        message.contains("element 20 of the table, which has 16"),
        "{message}"
    );
    let message = gather("NOP", GATHER, 0);
    assert!(message.contains("POOL_BUFFER_LOAD"), "{message}");
    // A table that is free is gone.
    let message = gather(&load, &format!("{GATHER} free=1\n{GATHER}"), 0);
    assert!(message.contains("POOL_BUFFER_LOAD"), "{message}");
    let message = gather(&load, &GATHER.replace("dst=fp32", "dst=fp16"), 0);
    assert!(message.contains("not supported"), "{message}");
    let message = gather(&format!("{LOAD} start=0x1 mask=0x1f"), GATHER, 0);
    assert!(message.contains("the first index has bits"), "{message}");
    let message = gather(&format!("{LOAD} start=0x0 mask=0x1d"), GATHER, 0);
    assert!(
        message.contains("mask 0x1d") && message.contains("gaps"),
        "{message}"
    );
    // All bits of an index may count: then every one is the table's.
    let message = gather(
        &format!("{LOAD} start=0x0 mask=0xffffffff"),
        GATHER,
        1 << 20,
    );
    assert!(
        message.contains("element 1048576 of the table"),
        "{message}"
    );
}

#[test]
fn a_scalar_is_written_where_the_predicate_does_not_hold() {
    let predicate = |bytes: &mut [u8]| {
        for (at, byte) in bytes[0x5000..0x5008].iter_mut().enumerate() {
            *byte = (at % 3) as u8;
        }
    };
    let written = |reverse: u8| {
        let stream = format!(
            "COPY_PREDICATED_SCALAR dst=fp32@0x6000[1,0,0][8,1,1] src=uint8@0x5000[1,0,0][8,1,1] scalar=-1.5 scalar_type=fp32 reverse={reverse} channels=1"
        );
        let (bytes, end) = after("dve", &stream, predicate);
        assert_eq!(end, Ok(()));
        let is_written = |at: &usize| bytes[0x6000 + 4 * at..][..4] == (-1.5f32).to_le_bytes();
        (0..8).filter(is_written).collect::<Vec<_>>()
    };
    assert_eq!(written(0), [0, 3, 6]);
    assert_eq!(written(1), [1, 2, 4, 5, 7]);
}

const NONZERO: &str = "NONZERO_WITH_COUNT dst=int32@0x6000[1,0,0][9,1,1] src=fp32@0x4000[1,0,0][8,1,1] offset=100 padding=-1 channels=32";

#[test]
fn indices_of_what_is_not_zero_come_with_their_number() {
    let floats = |partition: usize, values: [f32; 8]| {
        move |bytes: &mut [u8]| {
            let packed: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let at = partition * PARTITION + 0x4000;
            bytes[at..at + 32].copy_from_slice(&packed);
        }
    };
    let first = floats(0, [0.0, 1.0, -0.0, f32::NAN, 0.0, -2.0, 0.0, 1e-45]);
    let second = floats(16, [0.0; 8]);
    let (after, end) = after("pool", NONZERO, |bytes| {
        first(bytes);
        second(bytes);
    });
    assert_eq!(end, Ok(()));
    let row = |partition: usize| -> Vec<i32> {
        let at = partition * PARTITION + 0x6000;
        let words = after[at..at + 36].chunks_exact(4);
        words
            .map(|w| i32::from_le_bytes(w.try_into().expect("a word")))
            .collect()
    };
    assert_eq!(row(0), [101, 103, 105, 107, -1, -1, -1, -1, 4]);
    assert_eq!(row(16), [-1, -1, -1, -1, -1, -1, -1, -1, 0]);
    let short = NONZERO.replace("[9,1,1]", "[8,1,1]");
    assert!(refused("pool", &short).contains('9'));
    let elsewhere = NONZERO.replace("int32@0x6000", "int32@0x806000");
    assert!(refused("pool", &elsewhere).contains("partition"));
}

const REDUCE: &str = "CROSS_LANE_REDUCE dst=fp32@0x6000[1,0,0,0][3,1,1,1] src=fp32@0x4000[2,0,0,0][3,1,1,1] op=add axis=partitions scale=0 channels=32";

/// Writes a number to each of six words of the first 32 partitions, and gives those that the source walks, by partition.
fn numbers(bytes: &mut [u8], of: impl Fn(usize, usize) -> u32) -> Vec<[u32; 3]> {
    for (partition, word) in (0..32).flat_map(|p| (0..6).map(move |w| (p, w))) {
        let at = partition * PARTITION + 0x4000 + 4 * word;
        bytes[at..at + 4].copy_from_slice(&of(partition, word).to_le_bytes());
    }
    (0..32).map(|p| [0, 2, 4].map(|w| of(p, w))).collect()
}

/// The first words at 0x6000 of a partition.
fn results(bytes: &[u8], partition: usize) -> [u32; 3] {
    let word = |n: usize| {
        let at = partition * PARTITION + 0x6000 + 4 * n;
        u32::from_le_bytes(*bytes[at..].first_chunk().expect("a word"))
    };
    [0, 1, 2].map(word)
}

#[test]
fn partitions_become_one() {
    let number = |p: usize, w: usize| ((p * 7 + w * 3) as f32 - 50.0).to_bits();
    let of = |text: &str| {
        let mut rows = Vec::new();
        let (bytes, end) = after("pool", text, |bytes| rows = numbers(bytes, number));
        assert_eq!(end, Ok(()), "{text}");
        let columns: Vec<Vec<f32>> = (0..3)
            .map(|w| rows.iter().map(|row| f32::from_bits(row[w])).collect())
            .collect();
        (columns, results(&bytes, 0), results(&bytes, 1))
    };
    let untouched = results(&after("pool", "NOP", |_| {}).0, 1);
    let (columns, sums, next) = of(REDUCE);
    assert_eq!(
        sums.map(f32::from_bits).to_vec(),
        columns.iter().map(|c| c.iter().sum()).collect::<Vec<f32>>()
    );
    assert_eq!(next, untouched, "only one partition is written");
    let average = REDUCE
        .replace("add", "average")
        .replace("scale=0", "scale=0.03125");
    let (columns, means, _) = of(&average);
    assert_eq!(
        means.map(f32::from_bits).to_vec(),
        columns
            .iter()
            .map(|c| c.iter().sum::<f32>() / 32.0)
            .collect::<Vec<f32>>()
    );
    let (columns, largest, _) = of(&REDUCE.replace("add", "max"));
    assert_eq!(
        largest.map(f32::from_bits).to_vec(),
        columns
            .iter()
            .map(|c| c.iter().copied().fold(f32::MIN, f32::max))
            .collect::<Vec<f32>>()
    );
    // Everything becomes one element.
    let all = REDUCE
        .replace("[3,1,1,1] src", "[1,1,1,1] src")
        .replace("axis=partitions", "axis=all");
    let (columns, one, _) = of(&all);
    let sum: f32 = columns.iter().flatten().sum();
    assert_eq!(one[0], sum.to_bits());
}

#[test]
fn bits_of_partitions_become_one() {
    let bits = |p: usize, w: usize| (p as u32).wrapping_mul(0x9e37_79b9).rotate_left(w as u32);
    let text = REDUCE
        .replace("REDUCE", "REDUCE_BITVEC")
        .replace("fp32", "uint32");
    for (name, fold) in [
        ("or", (|a, b| a | b) as fn(u32, u32) -> u32),
        ("and", |a, b| a & b),
        ("xor", |a, b| a ^ b),
    ] {
        let mut rows = Vec::new();
        let (bytes, end) = after(
            "pool",
            &text.replace("op=add", &format!("op={name}")),
            |bytes| rows = numbers(bytes, bits),
        );
        assert_eq!(end, Ok(()), "{name}");
        let expected = [0, 1, 2].map(|w| rows.iter().map(|row| row[w]).reduce(fold).expect("rows"));
        assert_eq!(results(&bytes, 0), expected, "{name}");
    }
}

#[test]
fn what_a_reduction_over_partitions_does_not_have_is_refused() {
    let refused = |text: &str| refused("pool", text);
    assert!(refused(&REDUCE.replace("op=add", "op=xor")).contains("no operation 5"));
    assert!(refused(&REDUCE.replace("scale=0", "scale=0.5")).contains("scale 0.5"));
    assert!(
        refused(&REDUCE.replace("axis=partitions", "axis=all"))
            .contains("1 elements are made of each partition, 3 written")
    );
    let bits = REDUCE
        .replace("REDUCE", "REDUCE_BITVEC")
        .replace("op=add", "op=or");
    assert!(refused(&bits).contains("integers"));
    let strange = REDUCE.replace("axis=partitions", "axis=7");
    assert!(
        refused(&strange).contains("axis 7"),
        "{}",
        refused(&strange)
    );
}

const RUNS: &str = "INDIRECT_COPY dst=uint16@0x6000[1,0,0,0][80,1,1,1] index=0x20005000 data=0x4000 data_type=uint16 size=200 elements=80 run=4 channels=48";

/// Writes the 20 indices of each 16 partitions: one in each before the second in the first.
fn shared_indices(of: impl Fn(usize, usize) -> u16) -> impl FnOnce(&mut [u8]) {
    move |bytes| {
        for (core, n) in (0..3).flat_map(|c| (0..20).map(move |n| (c, n))) {
            let at = (core * 16 + n % 16) * PARTITION + 0x5000 + n / 16 * 2;
            bytes[at..at + 2].copy_from_slice(&of(core, n).to_le_bytes());
        }
    }
}

#[test]
fn partitions_of_a_core_share_indices() {
    let of = |core: usize, n: usize| ((core * 61 + n * 29) % 197) as u16;
    let before = after("pool", "NOP", shared_indices(of)).0;
    let (bytes, end) = after("pool", RUNS, shared_indices(of));
    assert_eq!(end, Ok(()));
    for (partition, n) in (0..48).flat_map(|p| (0..20).map(move |n| (p, n))) {
        let row = partition * PARTITION;
        let from = row + 0x4000 + 2 * usize::from(of(partition / 16, n));
        let to = row + 0x6000 + 8 * n;
        assert_eq!(bytes[to..to + 8], before[from..from + 8], "{partition} {n}");
    }
    let beyond = 48 * PARTITION + 0x6000;
    assert_eq!(bytes[beyond..beyond + 160], before[beyond..beyond + 160]);
}

#[test]
fn what_a_copy_by_indices_does_not_have_is_refused() {
    let changed = |from: &str, to: &str| refused("pool", &RUNS.replace(from, to));
    assert!(changed("run=4", "run=3").contains("runs of 3"));
    assert!(changed("elements=80", "elements=76").contains("76 elements"));
    assert!(changed("channels=48", "channels=40").contains("40 partitions"));
    assert!(changed("data_type=uint16", "data_type=uint32").contains("one type"));
    assert!(changed("0x20005000", "0x5000").contains("without bit 29"));
    assert!(changed("size=200", "size=65736").contains("scattered"));
    assert!(changed("run=4", "run=4 scattered=1").contains("scattered"));
    let end = after(
        "pool",
        RUNS,
        shared_indices(|_, n| if n == 19 { 198 } else { 0 }),
    )
    .1;
    assert!(
        format!("{end:?}").contains("index 198 names elements up to 202 of 200"),
        "{end:?}"
    );
}

const SELECT: &str = "SELECT_REDUCE dst=fp32@0x6000[1,0][6,1] src0=uint8@0x5000[1,0][6,1] src1=fp32@0x4000[1,0][6,1] op0=bypass op1=max imm=-3.5 imm_type=fp32 channels=2";

/// The selected elements of two partitions, and the largest of each.
fn selected(text: &str) -> Vec<[f32; 7]> {
    let stream = format!(
        "{text} accumulator=zero_and_accumulate\nDVE_READ_ACCUMULATOR dst=fp32@0x7000[1][1] elements=1 channels=2"
    );
    let (bytes, end) = after("dve", &stream, |bytes| {
        for (partition, n) in (0..2).flat_map(|p| (0..6).map(move |n| (p, n))) {
            let row = partition * PARTITION;
            bytes[row + 0x5000 + n] = ((n + partition) % 3) as u8;
            let number = (n * 7 % 5) as f32 - 4.0 * partition as f32;
            bytes[row + 0x4000 + 4 * n..][..4].copy_from_slice(&number.to_le_bytes());
        }
    });
    assert_eq!(end, Ok(()), "{text}");
    let number = |at: usize| f32::from_le_bytes(*bytes[at..].first_chunk().expect("a number"));
    let of = |partition: usize| {
        let row = partition * PARTITION;
        let mut all = [0; 7].map(|_: i32| number(row + 0x7000));
        for (n, place) in all[..6].iter_mut().enumerate() {
            *place = number(row + 0x6000 + 4 * n);
        }
        all
    };
    (0..2).map(of).collect()
}

#[test]
fn a_number_stands_where_the_predicate_does_not_hold() {
    assert_eq!(
        selected(SELECT),
        [
            [-3.5, 2.0, 4.0, -3.5, 3.0, 0.0, 4.0],
            [-4.0, -2.0, -3.5, -3.0, -1.0, -3.5, -1.0]
        ]
    );
    let reversed = selected(&format!("{SELECT} reverse=op0"));
    assert_eq!(reversed[..1], [[0.0, -3.5, -3.5, 1.0, -3.5, -3.5, 1.0]]);
}

#[test]
fn what_a_selection_with_a_reduction_does_not_have_is_refused() {
    let changed = |from: &str, to: &str| refused("dve", &SELECT.replace(from, to));
    assert!(changed("op1=max", "op1=min").contains("bypass and min"));
    assert!(changed("src0=uint8", "src0=fp32").contains("expected an integer"));
    assert!(changed("src1=fp32", "src1=int32").contains("other instructions"));
    assert!(changed("channels=2", "channels=2 accumulator=zero").contains("command 1"));
}

const EXPONENTIAL: &str =
    "EXPONENTIAL dst=fp32@0x6000[1,0,0][5,1,1] src=fp16@0x4000[1,0,0][5,1,1] imm0=1.5 channels=2";

#[test]
fn exponentials_add_up() {
    let element = |partition: usize, n: usize| (n as f32 - 2.0) / 4.0 - partition as f32;
    let after = |text: &str| {
        let stream =
            format!("{text}\nDVE_READ_ACCUMULATOR dst=fp32@0x7000[1][1] elements=1 channels=2");
        let (bytes, end) = after("dve", &stream, |bytes| {
            for (partition, n) in (0..2).flat_map(|p| (0..5).map(move |n| (p, n))) {
                let row = partition * PARTITION;
                let mut half = [0; 2];
                chipless_kernels::cast::encode_f32(
                    chipless_model::ElementType::Float16,
                    &[element(partition, n)],
                    chipless_kernels::cast::Rounding::NearestEven,
                    &mut half,
                )
                .expect("a half");
                bytes[row + 0x4000 + 2 * n..][..2].copy_from_slice(&half);
                let largest = 0.5 - partition as f32;
                bytes[row + 0x5000..][..4].copy_from_slice(&largest.to_le_bytes());
            }
        });
        assert_eq!(end, Ok(()), "{text}");
        let number = |at: usize| f32::from_le_bytes(*bytes[at..].first_chunk().expect("a number"));
        let of = |partition: usize| {
            let row = partition * PARTITION;
            let values: Vec<u32> = (0..5)
                .map(|n| number(row + 0x6000 + 4 * n).to_bits())
                .collect();
            (values, number(row + 0x7000).to_bits())
        };
        [of(0), of(1)]
    };
    let expected = |less: [f32; 2], start: f32| {
        [0, 1].map(|p| {
            let of = |n: usize| f64::from(element(p, n) - less[p]).exp() as f32;
            let sum = (0..5).map(of).fold(start, |sum, value| sum + value);
            (
                (0..5).map(|n| of(n).to_bits()).collect::<Vec<u32>>(),
                sum.to_bits(),
            )
        })
    };
    let fresh = format!("{EXPONENTIAL} accumulator=zero_and_accumulate");
    assert_eq!(after(&fresh), expected([1.5; 2], 0.0));
    // The largest of each partition, and a sum that goes on from a number.
    let rows = EXPONENTIAL.replace("imm0=1.5", "imm0=0x5000 imm0_source=address");
    let loaded = format!("{rows} imm1=2.0 accumulator=load_and_accumulate");
    assert_eq!(after(&loaded), expected([0.5, -0.5], 2.0));
    let changed = |rest: &str| refused("dve", &format!("{EXPONENTIAL} {rest}"));
    assert!(changed("op0=add").contains("beside the exponential"));
    assert!(changed("imm1=2.0").contains("imm1 without"));
    assert!(changed("accumulator=zero").contains("command 1"));
}

const BOUNDS: &str =
    "GET_SEQUENCE_BOUNDS dst=int32@0x6000[1,0,9][9,1,2] src=int32@0x4000[1,0,0][9,1,1] channels=1";

#[test]
fn segments_know_where_they_begin_and_end() {
    // The vendor's own example.
    let segments = [0, 1, 1, 2, 2, 2, 0, 3, 3];
    let expected = [[9, 1, 1, 3, 3, 3, 9, 7, 7], [-1, 3, 3, 6, 6, 6, -1, 9, 9]];
    let word = |bytes: &[u8], at: usize| *bytes[at..].first_chunk().expect("a word");
    let (bytes, end) = after("pool", BOUNDS, |bytes| {
        for (n, segment) in segments.iter().enumerate() {
            bytes[0x4000 + 4 * n..][..4].copy_from_slice(&i32::to_le_bytes(*segment));
        }
    });
    assert_eq!(end, Ok(()));
    let found = [0, 9].map(|at| {
        let of = |n: usize| i32::from_le_bytes(word(&bytes, 0x6000 + 4 * (at + n)));
        std::array::from_fn(of)
    });
    assert_eq!(found, expected);
    // The same as numbers, with a zero of the other sign.
    let (bytes, end) = after("pool", &BOUNDS.replace("int32", "fp32"), |bytes| {
        for (n, segment) in segments.iter().enumerate() {
            let number = if n == 6 { -0.0 } else { *segment as f32 };
            bytes[0x4000 + 4 * n..][..4].copy_from_slice(&number.to_le_bytes());
        }
    });
    assert_eq!(end, Ok(()));
    for (n, bound) in expected.iter().flatten().enumerate() {
        let found = f32::from_le_bytes(word(&bytes, 0x6000 + 4 * n));
        assert_eq!(found.to_bits(), (*bound as f32).to_bits(), "{n}");
    }
    let changed = |from: &str, to: &str| refused("pool", &BOUNDS.replace(from, to));
    assert!(changed("channels=1", "channels=2").contains("2 partitions"));
    assert!(changed("[9,1,2]", "[18,1,1]").contains("1 in the highest dimension"));
    assert!(changed("[9,1,2]", "[9,1,1]").contains("18 elements are made"));
    assert!(changed("dst=int32", "dst=int16").contains("as int16"));
}
