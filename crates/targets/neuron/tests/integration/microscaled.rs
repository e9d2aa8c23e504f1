//! Numbers in groups that share a scale: rounded to them, and multiplied.

use crate::common::{assembled, buffer, with_program};
use chipless_model::{Limits, Program, Storage};
use chipless_neuron::{Container, Neff, lint};
use chipless_sim::{Functional, Stop, Verified, run};
use proptest::prelude::*;

const PARTITION: usize = 0x4_0000;
const PSUM_PARTITION: usize = 0x8000;
const ELEMENTS: usize = 0x4000;
const SCALES: usize = 0x6000;
const SOURCE: usize = 0x2000;

/// A program of two engines.
fn text([vector, tensor]: [&str; 2]) -> String {
    format!(
        "neff test trn3\ninput x uint8 [4]\noutput o uint8 [4]\nsubgraph sg00\nvar SB state-buffer\nvar x input\nvar o output\n\
         engine dve\n{vector}\nengine pe\n{tensor}\n"
    )
}

/// State buffer and PSUM after streams of two engines.
fn after(
    streams: [&str; 2],
    prepare: impl FnOnce(&mut [u8]),
) -> (Vec<u8>, Vec<u8>, Result<(), Stop>) {
    with_program(&assembled(&text(streams)), |program: &Program<'_>, _| {
        let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
        let sbuf = buffer(program, "sg00.sbuf");
        prepare(storage.bytes_mut(sbuf));
        let end = run(
            &Verified::assume(program),
            &mut Functional::new(&mut storage),
        )
        .end;
        let psum = storage.bytes(buffer(program, "sg00.psum")).to_vec();
        (storage.bytes(sbuf).to_vec(), psum, end)
    })
}

fn refused(streams: [&str; 2]) -> String {
    match after(streams, |_| {}).2 {
        Err(Stop::Fault { fault, .. }) => fault.message,
        other => panic!("{other:?}"),
    }
}

/// The types of elements, as the standard has them.
#[derive(Clone, Copy, Debug)]
enum Type {
    E4M3,
    E5M2,
    E2M1,
}

impl Type {
    const ALL: [Type; 3] = [Type::E4M3, Type::E5M2, Type::E2M1];

    fn name(self) -> &'static str {
        match self {
            Type::E4M3 => "fp8e4",
            Type::E5M2 => "fp8e5",
            Type::E2M1 => "type0x10",
        }
    }

    /// Bits of mantissa and exponent.
    fn bits(self) -> (u32, u32) {
        match self {
            Type::E4M3 => (3, 4),
            Type::E5M2 => (2, 5),
            Type::E2M1 => (1, 2),
        }
    }

    fn codes(self) -> u8 {
        if let Type::E2M1 = self { 16 } else { 255 }
    }

    /// What a code stands for; `None` for infinity and NaN.
    fn number(self, code: u8) -> Option<f64> {
        let (mantissa, exponent) = self.bits();
        let bits = u32::from(code);
        let (m, e) = (
            bits & ((1 << mantissa) - 1),
            bits >> mantissa & ((1 << exponent) - 1),
        );
        let strange = match self {
            Type::E4M3 => e == 15 && m == 7,
            Type::E5M2 => e == 31,
            Type::E2M1 => false,
        };
        let bias = (1 << (exponent - 1)) - 1;
        let fraction = f64::from(m) / f64::from(1 << mantissa);
        let magnitude = if e == 0 {
            fraction * f64::from(1 - bias).exp2()
        } else {
            (1.0 + fraction) * f64::from(e as i32 - bias).exp2()
        };
        let is_negative = bits >> (mantissa + exponent) & 1 == 1;
        (!strange).then_some(if is_negative { -magnitude } else { magnitude })
    }

    /// The code nearest to a number, the even one of two that are as near.
    fn nearest(self, number: f64) -> u8 {
        let finite = (0..=255u8).filter_map(|code| Some((code, self.number(code)?)));
        let same_sign = finite.filter(|(_, n)| n.is_sign_negative() == number.is_sign_negative());
        let by_distance = |(a, x): &(u8, f64), (b, y): &(u8, f64)| {
            let order = (x - number).abs().total_cmp(&(y - number).abs());
            order.then((a & 1).cmp(&(b & 1)))
        };
        same_sign.min_by(by_distance).expect("numbers").0
    }

    /// Writes the code of an element of a place.
    fn write(self, bytes: &mut [u8], partition: usize, place: usize, packed: usize, code: u8) {
        let first = partition * PARTITION + ELEMENTS;
        if let Type::E2M1 = self {
            let byte = &mut bytes[first + 2 * place + packed / 2];
            let shift = packed % 2 * 4;
            *byte = *byte & !(0xf << shift) | code << shift;
        } else {
            bytes[first + 4 * place + packed] = code;
        }
    }
}

/// The byte of a scale: of eight partitions each, from one partition of a quadrant on.
fn scale_at(partition: usize, from: usize, place: usize) -> usize {
    (partition / 32 * 32 + from + partition % 32 / 8) * PARTITION + SCALES + place
}

fn quantise(partitions: usize, places: usize, to: Type, from: usize) -> String {
    format!(
        "QUANTIZE_MX dst={}@[{ELEMENTS:#x},{SCALES:#x},{from}][1][{}] src=bf16@{SOURCE:#x}[1,0,0][{},1,1] channels={partitions}",
        to.name(),
        4 * places,
        4 * places,
    )
}

proptest! {
    #![proptest_config(chipless_rounds::cases(16))]
    #[test]
    fn groups_get_the_scale_of_their_largest_number(
        seed in any::<u64>(), quadrants in 1usize..5, from in 0usize..4, wide in any::<bool>(), saturates in any::<bool>(),
    ) {
        let (partitions, places, to) = (quadrants * 32, 5, if wide { Type::E5M2 } else { Type::E4M3 });
        // Upper halves of binary32 with every exponent but that of infinity; a group in four is small, and some are zero.
        let number = |partition: usize, n: usize| {
            let mixed = (seed ^ (partition * 64 + n) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let (sign, mantissa) = ((mixed & 1) << 15, mixed >> 1 & 0x7f);
            let exponent = match (partition / 8 + n / 4) % 4 {
                0 => return 0,
                1 => mixed >> 8 & 0xf,
                2 => 120 + (mixed >> 8 & 0xf),
                _ => 1 + (mixed >> 8) % 254,
            };
            (sign | exponent << 7 | mantissa) as u16
        };
        let mut text = quantise(partitions, places, to, 4 * from);
        if saturates {
            text += " byte[0x01]=0x11";
        }
        let (bytes, _, end) = after([&text, "NOP"], |bytes| {
            for (partition, n) in (0..partitions).flat_map(|p| (0..4 * places).map(move |n| (p, n))) {
                let at = partition * PARTITION + SOURCE + 2 * n;
                bytes[at..at + 2].copy_from_slice(&number(partition, n).to_le_bytes());
            }
        });
        prop_assert_eq!(end, Ok(()));
        let value = |p: usize, n: usize| f64::from(f32::from_bits(u32::from(number(p, n)) << 16));
        for (first, place) in (0..partitions).step_by(8).flat_map(|p| (0..places).map(move |n| (p, n))) {
            let group = (0..8).flat_map(|p| (0..4).map(move |n| (first + p, 4 * place + n)));
            let largest = group.clone().map(|(p, n)| value(p, n).abs()).fold(0.0, f64::max);
            // 2^(floor(log2(largest)) - (most - 1)), as the documentation has it.
            let most = if wide { 15 } else { 8 };
            let exponent = if largest == 0.0 { -127 } else { (largest.log2().floor() as i32 - (most - 1)).max(-127) };
            prop_assert_eq!(i32::from(bytes[scale_at(first, 4 * from, place)]), exponent + 127);
            for (p, n) in group {
                let expected = to.nearest(value(p, n) / f64::from(exponent).exp2());
                prop_assert_eq!(bytes[p * PARTITION + ELEMENTS + n], expected, "partition {}, element {}", p, n);
            }
        }
    }

    #[test]
    fn four_elements_of_each_place_are_multiplied(
        seed in any::<u64>(), quadrants in prop_oneof![Just(1usize), Just(2), Just(4)],
        kinds in (0usize..3, 0usize..3), adds in any::<bool>(), back in any::<bool>(),
    ) {
        let (rows, columns, moving) = (quadrants * 32, 6, 5);
        let [weights, data] = [Type::ALL[kinds.0], Type::ALL[kinds.1]];
        let random = |n: usize| (seed ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        // Small integers, so that sums are exact in any order.
        let code = |kind: Type, n: usize| {
            let finite = (0..kind.codes()).filter(|c| kind.number(*c).is_some_and(|x| x.fract() == 0.0 && x.abs() <= 8.0));
            let all: Vec<u8> = finite.collect();
            all[random(n) as usize % all.len()]
        };
        let scale = |n: usize| 126 + (random(n) % 4) as u8;
        // Weights lie at the front, moving data behind them, each with their scales.
        let (behind, behind_scales, from) = (ELEMENTS + 0x800, SCALES + 0x800, 8);
        let size = |kind: Type| if let Type::E2M1 = kind { 2 } else { 4 };
        let (first, first_scale, step) = if back {
            (ELEMENTS + (columns - 1) * size(weights), SCALES + columns - 1, -1)
        } else {
            (ELEMENTS, SCALES, 1)
        };
        let load = format!(
            "LDWEIGHTS_MX src={}@[{first:#x},{first_scale:#x},0][{step}][{}] rows={rows} columns={columns}",
            weights.name(), 4 * columns,
        );
        let multiply = |sums: &str| format!(
            "MATMUL_MX dst=fp32@psum+0x0[1,0,0][{moving},1,1] src={}@[{behind:#x},{behind_scales:#x},{from}][1][{}] rows={rows} columns={columns} sums={sums}",
            data.name(), 4 * moving,
        );
        let second = if adds { multiply("stop") } else { "NOP".to_owned() };
        let stream = format!("{load}\n{}\n{second}", multiply("start"));
        let (_, psum, end) = after(["NOP", &stream], |bytes| {
            for row in 0..rows {
                for (place, packed) in (0..columns).flat_map(|c| (0..4).map(move |k| (c, k))) {
                    weights.write(bytes, row, place, packed, code(weights, (row * columns + place) * 4 + packed));
                    bytes[scale_at(row, 0, place)] = scale(row / 8 * columns + place);
                }
                for (place, packed) in (0..moving).flat_map(|c| (0..4).map(move |k| (c, k))) {
                    let at = place + 0x800 / size(data);
                    data.write(bytes, row, at, packed, code(data, 5000 + (row * moving + place) * 4 + packed));
                    bytes[scale_at(row, from, place + 0x800)] = scale(9000 + row / 8 * moving + place);
                }
            }
        });
        prop_assert_eq!(end, Ok(()), "{}", stream);
        for (column, n) in (0..columns).flat_map(|c| (0..moving).map(move |n| (c, n))) {
            // What enters last is the first column of the array.
            let place = if back { column } else { columns - 1 - column };
            let mut sum = 0.0;
            for (row, packed) in (0..rows).flat_map(|r| (0..4).map(move |k| (r, k))) {
                let weight = weights.number(code(weights, (row * columns + place) * 4 + packed)).expect("finite");
                let moved = data.number(code(data, 5000 + (row * moving + n) * 4 + packed)).expect("finite");
                let scales = i32::from(scale(row / 8 * columns + place)) + i32::from(scale(9000 + row / 8 * moving + n));
                sum += weight * moved * f64::from(scales - 254).exp2();
            }
            let at = column * PSUM_PARTITION + 4 * n;
            let found = f32::from_le_bytes(*psum[at..].first_chunk().expect("a number"));
            // Sums of nothing are zero of either sign.
            let expected: f64 = if adds { 2.0 * sum } else { sum };
            prop_assert!((f64::from(found) - expected).abs().to_bits() == 0, "column {}, element {}", column, n);
        }
    }
}

/// Ones as weights, and numbers that are rounded before they are multiplied: each sum is that of a place of all partitions.
fn rounded_and_multiplied() -> [String; 2] {
    let vector = format!(
        "MEMSET dst=uint32@0x8000[1,0,0,0][4,1,1,1] value=0x38383838 channels=32\n\
         MEMSET dst=uint8@0xa000[1,0,0,0][4,1,1,1] value=0x7f channels=32\n{} $S[3]++@complete",
        quantise(32, 2, Type::E4M3, 0)
    );
    let tensor = "LDWEIGHTS_MX src=fp8e4@[0x8000,0xa000,0][1][16] rows=32 columns=4 row_groups=0x1 $S[3]>=1\n\
         MATMUL_MX dst=bf16@psum+0x40[1,0,0][2,1,1] src=fp8e4@[0x4000,0x6000,0][1][8] rows=32 columns=4 sums=start+stop row_groups=0x1";
    [vector, tensor.to_owned()]
}

#[test]
fn what_was_rounded_can_be_multiplied() {
    let number = |partition: usize, n: usize| (partition % 8 + n) as f32 - 5.0;
    let [vector, tensor] = rounded_and_multiplied();
    let (_, psum, end) = after([&vector, &tensor], |bytes| {
        for (partition, n) in (0..32).flat_map(|p| (0..8).map(move |n| (p, n))) {
            let at = partition * PARTITION + SOURCE + 2 * n;
            let upper = (number(partition, n).to_bits() >> 16) as u16;
            bytes[at..at + 2].copy_from_slice(&upper.to_le_bytes());
        }
    });
    assert_eq!(end, Ok(()));
    for (column, place) in (0..4).flat_map(|c| (0..2).map(move |n| (c, n))) {
        let sum: f32 = (0..32)
            .flat_map(|p| (0..4).map(move |n| number(p, 4 * place + n)))
            .sum();
        let at = column * PSUM_PARTITION + 0x40 + 2 * place;
        let found = u16::from_le_bytes(*psum[at..].first_chunk().expect("a number"));
        assert_eq!(u32::from(found) << 16, sum.to_bits());
    }
}

#[test]
fn what_groups_do_not_have_is_refused() {
    let text = quantise(32, 2, Type::E4M3, 0);
    let vector = |from: &str, to: &str| refused([&text.replace(from, to), "NOP"]);
    assert!(vector("channels=32", "channels=16").contains("16 partitions, expected a multiple"));
    assert!(vector("[1][8]", "[2][8]").contains("step 2"));
    assert!(vector("[1][8]", "[1][6]").contains("6 elements"));
    assert!(vector(",0][1][8]", ",3][1][8]").contains("partition 3 of a quadrant"));
    assert!(vector("dst=fp8e4", "dst=fp32").contains("type 0xa have no scales"));
    assert!(vector("dst=fp8e4", "dst=type0x10").contains("half a byte"));
    assert!(vector("src=bf16", "src=fp32").contains("the source is float32"));
    assert!(vector("[1,0,0][8,1,1]", "[1,0,0][4,1,1]").contains("4 elements of the source"));
    let infinite = |bytes: &mut [u8]| bytes[SOURCE..SOURCE + 2].copy_from_slice(&[0x80, 0x7f]);
    assert!(format!("{:?}", after([&text, "NOP"], infinite).2).contains("infinity or NaN"));
    let tensor = "MATMUL_MX dst=fp32@psum+0x0[1,0,0][2,1,1] src=fp8e4@[0x4000,0x6000,0][1][8] rows=32 columns=4 sums=start row_groups=0x1";
    let tensor = |from: &str, to: &str| refused(["NOP", &tensor.replace(from, to)]);
    assert!(tensor("dst=fp32", "dst=fp16").contains("sums are float16"));
    assert!(tensor("sums=start", "sums=5").contains("sums 0x05"));
    assert!(tensor("[2,1,1]", "[3,1,1]").contains("3 elements of the destination"));
    assert!(tensor("sums=start", "sums=start zero_region=1").contains("zero_region"));
    let load = "LDWEIGHTS_MX src=fp8e4@[0x4000,0x6000,0][1][8] rows=32 columns=3 row_groups=0x1";
    assert!(refused(["NOP", load]).contains("3 columns of the array, 2 of the source"));
    // No number to multiply with.
    let whole = "LDWEIGHTS_MX src=fp8e4@[0x4000,0x6000,0][1][8] rows=32 columns=2 row_groups=0x1";
    let large = |bytes: &mut [u8]| {
        (bytes[ELEMENTS], bytes[SCALES]) = (0x7e, 254);
    };
    assert!(format!("{:?}", after(["NOP", whole], large).2).contains("beyond binary32"));
}

#[test]
fn rules_know_them() {
    let codes = |streams: [&str; 2], target: &str| -> Vec<&str> {
        let file = assembled(&text(streams).replace("trn3", target));
        let limits = Limits::default();
        let container = Container::open(&file, &limits).expect("sound");
        let neff = Neff::read(&container, &limits).expect("sound");
        lint(&neff, &limits).iter().map(|f| f.rule.code).collect()
    };
    let [vector, tensor] = rounded_and_multiplied();
    assert_eq!(codes([&vector, &tensor], "trn3"), [""; 0]);
    let generation = "neff-generation";
    assert_eq!(codes([&vector, &tensor], "trn2"), [generation; 3]);
    let behind = vector.replace("dst=fp8e4@[0x4000,", "dst=fp8e4@[0x3fffe,");
    assert!(codes([&behind, &tensor], "trn3").contains(&"neff-tile-bounds"));
    let scales = vector
        .replace("0x6000,0]", "0x1806000,12]")
        .replace("[0x4000", "[0x1804000");
    assert_eq!(
        codes([&scales, &tensor], "trn3"),
        [""; 0],
        "the last quadrant"
    );
    let open = tensor.replace("start+stop", "start");
    assert_eq!(codes([&vector, &open], "trn3"), ["neff-psum-group"]);
    let in_psum = vector.replace("0x6000,0]", "0x2000000,0]");
    assert_eq!(codes([&in_psum, &tensor], "trn3"), ["neff-operand-memory"]);
}
