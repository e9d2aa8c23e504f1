//! Every executed instruction against its definition, element by element.

use crate::common::{assembled, buffer, with_program};
use chipless_kernels::cast::{Rounding, decode_f32, encode_f32};
use chipless_model::{ElementType, Limits, Program, Storage};
use chipless_neuron::stream::ELEMENT_CODES;
use chipless_sim::{Functional, Stop, Verified, run};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

const PARTITION: usize = 0x4_0000;

/// A program of one engine, assembled, lowered and run on memory that `fill` prepares.
fn execute<T>(
    declarations: &str,
    lines: &[String],
    fill: impl FnOnce(&Program<'_>, &mut Storage<'_>),
    then: impl FnOnce(&Program<'_>, &Storage<'_>, Result<(), Stop>) -> T,
) -> T {
    let text = format!("neff test trn2\n{declarations}\n{}\n", lines.join("\n"));
    with_program(&assembled(&text), |program, _| {
        let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
        fill(program, &mut storage);
        let end = run(
            &Verified::assume(program),
            &mut Functional::new(&mut storage),
        )
        .end;
        then(program, &storage, end)
    })
}

const ONE_ENGINE: &str = "input x uint8 [4]\noutput o uint8 [4]\nsubgraph sg00\nvar SB state-buffer\nvar x input\nvar o output\nengine dve";

/// A tensor operand: element type, address, steps and counts.
#[derive(Clone, Debug)]
struct Tensor {
    element: ElementType,
    psum: bool,
    offset: u32,
    steps: Vec<i16>,
    counts: Vec<u16>,
}

impl Tensor {
    fn text(&self) -> String {
        let list = |numbers: Vec<String>| format!("[{}]", numbers.join(","));
        let (steps, counts) = (
            self.steps.iter().map(ToString::to_string).collect(),
            self.counts.iter().map(ToString::to_string).collect(),
        );
        let code = ELEMENT_CODES.iter().find(|c| c.element == self.element);
        let code = code.expect("code").name;
        let space = if self.psum { "psum+" } else { "" };
        format!(
            "{code}@{space}{:#x}{}{}",
            self.offset,
            list(steps),
            list(counts)
        )
    }

    /// Where each element is, partition by partition, in the order of the instruction.
    fn places(&self, partitions: usize) -> Vec<usize> {
        let size = self.element.bits() as i64 / 8;
        let mut offsets = vec![i64::from(self.offset)];
        for (step, count) in self.steps.iter().zip(&self.counts) {
            offsets = (0..i64::from(*count))
                .flat_map(|i| {
                    offsets
                        .iter()
                        .map(move |o| o + i * i64::from(*step) * size)
                        .collect::<Vec<_>>()
                })
                .collect();
        }
        let stride = if self.psum { 0x8000 } else { PARTITION };
        (0..partitions)
            .flat_map(|p| offsets.iter().map(move |o| p * stride + *o as usize))
            .collect()
    }

    fn read(&self, bytes: &[u8], place: usize) -> f32 {
        let mut value = [0.0];
        decode_f32(
            self.element,
            &bytes[place..place + self.element.bits() as usize / 8],
            &mut value,
        )
        .expect("element");
        value[0]
    }

    fn write(&self, bytes: &mut [u8], place: usize, value: f32) {
        let size = self.element.bits() as usize / 8;
        encode_f32(
            self.element,
            &[value],
            Rounding::NearestEven,
            &mut bytes[place..place + size],
        )
        .expect("element");
    }
}

/// A tensor whose elements lie in the first 16 KiB after 0x4000 (or in PSUM), for any steps.
fn tensor(
    elements: &'static [ElementType],
    dimensions: usize,
    counts: Vec<u16>,
) -> impl Strategy<Value = Tensor> {
    let steps = prop::collection::vec(-40i16..40, dimensions);
    (
        prop::sample::select(elements),
        any::<bool>(),
        0u32..64,
        steps,
    )
        .prop_map(move |(element, psum, shift, steps)| Tensor {
            element,
            psum,
            offset: if psum { 0x2000 } else { 0x6000 } + shift * 8,
            steps,
            counts: counts.clone(),
        })
}

const MOVED: &[ElementType] = &[
    ElementType::Float16,
    ElementType::BFloat16,
    ElementType::Float32,
    ElementType::Int32,
    ElementType::UInt8,
    ElementType::Int8,
];

/// Small whole numbers of any type, everywhere: every cast and every sum is exact.
fn pattern(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i * 7 % 251) as u8).collect()
}

fn numbers(tensor: &Tensor, places: &[usize], bytes: &mut [u8]) {
    for (i, place) in places.iter().enumerate() {
        tensor.write(bytes, *place, (i * 5 % 61) as f32);
    }
}

/// Runs an instruction of two operands and compares both memories with what `expect` makes of copies of them.
fn check(
    lines: &[String],
    prepare: impl Fn(&mut [u8], &mut [u8]),
    expect: impl Fn(&mut [u8], &mut [u8]),
) {
    let (mut sbuf, mut psum) = (pattern(0xa000), pattern(0x4000));
    // Three partitions are enough to see that all are walked alike.
    let spread = |bytes: &[u8], size: usize| {
        let mut all = vec![0; size];
        for partition in 0..3 {
            all[partition * PARTITION..][..bytes.len()].copy_from_slice(bytes);
        }
        all
    };
    (sbuf, psum) = (spread(&sbuf, 3 * PARTITION), spread(&psum, 3 * PARTITION));
    prepare(&mut sbuf, &mut psum);
    let fill = |program: &Program<'_>, storage: &mut Storage<'_>| {
        storage.bytes_mut(buffer(program, "sg00.sbuf"))[..sbuf.len()].copy_from_slice(&sbuf);
        storage.bytes_mut(buffer(program, "sg00.psum"))[..psum.len()].copy_from_slice(&psum);
    };
    execute(ONE_ENGINE, lines, fill, |program, storage, end| {
        assert_eq!(end, Ok(()), "{lines:?}");
        let (mut want_sbuf, mut want_psum) = (sbuf.clone(), psum.clone());
        expect(&mut want_sbuf, &mut want_psum);
        for (name, want) in [("sg00.sbuf", &want_sbuf), ("sg00.psum", &want_psum)] {
            let found = &storage.bytes(buffer(program, name))[..want.len()];
            let wrong = found.iter().zip(want).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "{name}: {lines:?}");
        }
    });
}

fn memory<'m>(tensor: &Tensor, sbuf: &'m mut [u8], psum: &'m mut [u8]) -> &'m mut [u8] {
    if tensor.psum { psum } else { sbuf }
}

#[test]
fn copy_and_cast() {
    let counts = prop::collection::vec(1u16..4, 4);
    let case = counts.prop_flat_map(|counts| {
        (
            tensor(MOVED, 4, counts.clone()),
            tensor(MOVED, 4, counts),
            1usize..4,
        )
    });
    let mut runner = TestRunner::new(chipless_rounds::cases(64));
    let result = runner.run(&case, |(from, to, partitions)| {
        let name = if from.element == to.element {
            "COPY"
        } else {
            "CAST"
        };
        let line = format!(
            "{name} dst={} src={} channels={partitions}",
            to.text(),
            from.text()
        );
        let (read, written) = (from.places(partitions), to.places(partitions));
        check(
            &[line],
            |sbuf, psum| numbers(&from, &read, memory(&from, sbuf, psum)),
            |sbuf, psum| {
                let values: Vec<f32> = read
                    .iter()
                    .map(|place| from.read(memory(&from, sbuf, psum), *place))
                    .collect();
                for (place, value) in written.iter().zip(values) {
                    to.write(memory(&to, sbuf, psum), *place, value);
                }
            },
        );
        Ok(())
    });
    result.expect("every case");
}

#[test]
fn tensor_tensor_adds() {
    const SUMMED: &[ElementType] = &[ElementType::Float32];
    let counts = prop::collection::vec(1u16..4, 3);
    let case = counts.prop_flat_map(|counts| {
        let operand = || tensor(SUMMED, 3, counts.clone());
        (
            operand(),
            operand(),
            tensor(MOVED, 3, counts.clone()),
            1usize..4,
        )
    });
    let mut runner = TestRunner::new(chipless_rounds::cases(48));
    let result = runner.run(&case, |(first, second, to, partitions)| {
        let line = format!(
            "TENSOR_TENSOR dst={} src0={} src1={} op=add channels={partitions}",
            to.text(),
            first.text(),
            second.text()
        );
        let (a, b, written) = (
            first.places(partitions),
            second.places(partitions),
            to.places(partitions),
        );
        check(
            &[line],
            |sbuf, psum| {
                numbers(&first, &a, memory(&first, sbuf, psum));
                numbers(&second, &b, memory(&second, sbuf, psum));
            },
            |sbuf, psum| {
                let sums: Vec<f32> = std::iter::zip(&a, &b)
                    .map(|(a, b)| {
                        first.read(memory(&first, sbuf, psum), *a)
                            + second.read(memory(&second, sbuf, psum), *b)
                    })
                    .collect();
                for (place, sum) in written.iter().zip(sums) {
                    to.write(memory(&to, sbuf, psum), *place, sum);
                }
            },
        );
        Ok(())
    });
    result.expect("every case");
}

#[test]
fn memset_writes_the_value_everywhere() {
    let case = prop::collection::vec(1u16..4, 4)
        .prop_flat_map(|counts| (tensor(MOVED, 4, counts), 1usize..4, any::<u32>()));
    let mut runner = TestRunner::new(chipless_rounds::cases(32));
    let result = runner.run(&case, |(to, partitions, value)| {
        let line = format!(
            "MEMSET dst={} value={value:#x} channels={partitions}",
            to.text()
        );
        let written = to.places(partitions);
        check(
            &[line],
            |_, _| {},
            |sbuf, psum| {
                let size = to.element.bits() as usize / 8;
                for place in &written {
                    memory(&to, sbuf, psum)[*place..place + size]
                        .copy_from_slice(&value.to_le_bytes()[..size]);
                }
            },
        );
        Ok(())
    });
    result.expect("every case");
}

/// The array against its definition: three products into one place, of which the first one starts the sum.
#[test]
fn matrix_products_add_up_in_psum() {
    const MULTIPLIED: &[ElementType] = &[
        ElementType::Float16,
        ElementType::BFloat16,
        ElementType::Float32,
    ];
    let shapes = (1usize..=128, 1usize..=128, 1usize..40);
    let case = (
        shapes,
        prop::sample::select(MULTIPLIED),
        prop::sample::select(MULTIPLIED),
        1i16..4,
        1i16..4,
        any::<bool>(),
    );
    let mut runner = TestRunner::new(chipless_rounds::cases(24));
    let result = runner.run(
        &case,
        |((rows, columns, moving), weight, data, step, sum_step, partial)| {
            let tensor = |element, psum, offset, step, count: usize| Tensor {
                element,
                psum,
                offset,
                steps: vec![step, 0, 0],
                counts: vec![count as u16, 1, 1],
            };
            // Weights enter last column first: here the last column stands first, so they are walked forwards.
            let weights = tensor(weight, false, 0x4000, step, columns);
            let source = tensor(data, false, 0x8000, step, moving);
            let sums = tensor(ElementType::Float32, true, 0x800, sum_step, moving);
            let groups = groups(rows, columns, partial);
            let multiply = |flags: &str| {
                format!(
                    "MATMUL dst={} src={} rows={rows} columns={columns} {groups} {flags}",
                    sums.text(),
                    source.text()
                )
            };
            let lines = [
                format!(
                    "LDWEIGHTS src={} rows={rows} columns={columns} {groups}",
                    weights.text()
                ),
                multiply("sums=start"),
                multiply(""),
                multiply("sums=stop"),
            ];
            let (w, x, s) = (
                weights.places(rows),
                source.places(rows),
                sums.places(columns),
            );
            let value = |i: usize| (i * 5 % 13) as f32 - 6.0;
            let fill = |program: &Program<'_>, storage: &mut Storage<'_>| {
                let sbuf = storage.bytes_mut(buffer(program, "sg00.sbuf"));
                for (i, place) in w.iter().enumerate() {
                    weights.write(sbuf, *place, value(i));
                }
                for (i, place) in x.iter().enumerate() {
                    source.write(sbuf, *place, value(i * 3 + 1));
                }
                storage.bytes_mut(buffer(program, "sg00.psum")).fill(0x11);
            };
            execute(
                &ONE_ENGINE.replace("dve", "pe"),
                &lines,
                fill,
                |program, storage, end| {
                    assert_eq!(end, Ok(()), "{lines:?}");
                    let psum = storage.bytes(buffer(program, "sg00.psum"));
                    for column in 0..columns {
                        for n in 0..moving {
                            let product = |row: usize| {
                                value(row * columns + (columns - 1 - column))
                                    * value((row * moving + n) * 3 + 1)
                            };
                            let sum: f32 = (0..rows).map(product).sum();
                            assert_eq!(
                                sums.read(psum, s[column * moving + n]).to_bits(),
                                (3.0 * sum + 0.0).to_bits(),
                                "column {column}, element {n}: {lines:?}"
                            );
                        }
                    }
                },
            );
            Ok(())
        },
    );
    result.expect("every case");
}

/// The fields of the array's groups of rows and columns: all of them, or only those that are needed.
fn groups(rows: usize, columns: usize, partial: bool) -> String {
    if !partial {
        return String::new();
    }
    let needed = |n: usize| (1u8 << n.div_ceil(32)) - 1;
    match (needed(rows), needed(columns)) {
        (0xf, 0xf) => String::new(),
        (rows, columns) => format!("row_groups={rows:#x} column_groups={columns:#x}"),
    }
}

/// A transposition moves bits: what is no number stays what it is.
#[test]
fn a_transposition_selects_weights() {
    let tensor = |psum, offset, count: u16| Tensor {
        element: ElementType::Float16,
        psum,
        offset,
        steps: vec![1, 0, 0],
        counts: vec![count, 1, 1],
    };
    let (weights, identity, result) = (
        tensor(false, 0x4000, 3),
        tensor(false, 0x5000, 4),
        tensor(true, 0, 4),
    );
    let backwards = weights.text().replace("0x4000[1,", "0x4004[-1,");
    let lines = [
        format!("LDWEIGHTS src={backwards} rows=4 columns=3 transpose=1"),
        format!(
            "MATMUL dst={} src={} rows=4 columns=3 transpose=1 sums=start+stop",
            result.text(),
            identity.text()
        ),
    ];
    let values = [
        1.5,
        f32::INFINITY,
        -0.0,
        65504.0,
        f32::NAN,
        2.0,
        -7.0,
        6e-8,
        0.0,
        3.0,
        f32::NEG_INFINITY,
        -1.0,
    ];
    let fill = |program: &Program<'_>, storage: &mut Storage<'_>| {
        let sbuf = storage.bytes_mut(buffer(program, "sg00.sbuf"));
        for (place, value) in weights.places(4).iter().zip(values) {
            weights.write(sbuf, *place, value);
        }
        for (i, place) in identity.places(4).iter().enumerate() {
            identity.write(sbuf, *place, if i % 5 == 0 { 1.0 } else { 0.0 });
        }
    };
    execute(
        &ONE_ENGINE.replace("dve", "pe"),
        &lines,
        fill,
        |program, storage, end| {
            assert_eq!(end, Ok(()));
            let (sbuf, psum) = (
                storage.bytes(buffer(program, "sg00.sbuf")),
                storage.bytes(buffer(program, "sg00.psum")),
            );
            for row in 0..4 {
                for column in 0..3 {
                    let (from, to) = (
                        weights.places(4)[row * 3 + column],
                        result.places(3)[column * 4 + row],
                    );
                    assert_eq!(
                        sbuf[from..from + 2],
                        psum[to..to + 2],
                        "row {row}, column {column}"
                    );
                }
            }
        },
    );
}

/// Transfers between HBM and the state buffer, rows of any step, with and without a cast.
#[test]
fn transfers_move_rows() {
    let case = (1u16..5, 1u16..4, 1u16..9, 0u32..5, 0u32..7, any::<bool>());
    let mut runner = TestRunner::new(chipless_rounds::cases(48));
    let result = runner.run(&case, |(rows, planes, elements, gap, shift, casts)| {
        let (rows_step, plane_step) = (u32::from(elements) * 4 + gap * 4, 512);
        let into = if casts { ("fp16", 2) } else { ("fp32", 4) };
        let declarations = "input x float32 [512]\noutput o float32 [512]\nsubgraph sg00\n\
                            queue qIn dynamic owner=sp queues=16 semaphores=8\nqueue qOut dynamic owner=act queues=16 semaphores=40\n\
                            var SB state-buffer\nvar x input\nvar o output\nvar T dge-table o x\nengine sp";
        let sbuf = format!("[262144,{}][{rows},{planes}]*{}", i32::from(elements) * into.1, i32::from(elements) * into.1);
        let hbm = format!("[{rows_step},{plane_step}][{rows},{planes}]*{}", elements * 4);
        let lines = [
            format!("PSEUDO_DMA_DIRECT2D dst={}@var[SB]+0x4000{sbuf} src=fp32@table[1]+{:#x}{hbm} $S[8]+=16@complete", into.0, shift * 4),
            "engine act".to_owned(),
            format!(
                "PSEUDO_DMA_DIRECT2D dst=fp32@var[o]+{:#x}{hbm} src={}@var[SB]+0x4000{sbuf} $S[8]>=16 $S[40]+=16@complete",
                shift * 4,
                into.0
            ),
        ];
        let fill = |program: &Program<'_>, storage: &mut Storage<'_>| {
            let bytes: Vec<u8> = (0..512).flat_map(|i| (i as f32).to_le_bytes()).collect();
            storage.bytes_mut(buffer(program, "x"))[..2048].copy_from_slice(&bytes);
        };
        execute(declarations, &lines, fill, |program, storage, end| {
            assert_eq!(end, Ok(()), "{lines:?}");
            let mut want = vec![0.0; 512];
            for plane in 0..u32::from(planes) {
                for row in 0..u32::from(rows) {
                    for element in 0..u32::from(elements) {
                        let at = ((shift * 4 + plane * plane_step + row * rows_step) / 4 + element) as usize;
                        want[at] = at as f32;
                    }
                }
            }
            let found: Vec<f32> = storage.bytes(buffer(program, "o")).as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            assert_eq!(found, want, "{lines:?}");
        });
        Ok(())
    });
    result.expect("every case");
}

#[test]
fn what_is_not_proven_stops_a_run_by_name() {
    let reach = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
        execute(
            ONE_ENGINE,
            &lines,
            |_, _| {},
            |program, _, end| match end {
                Err(Stop::Fault { task, fault }) => {
                    (program.task_name(task), fault.unsupported, fault.message)
                }
                other => panic!("{other:?}"),
            },
        )
    };
    let add = "dst=fp32@0x4000[1,0,0][4,1,1] src0=fp32@0x5000[1,0,0][4,1,1] src1=fp32@0x6000[1,0,0][4,1,1]";
    let (task, unsupported, message) = reach(&["NOP", "SORT"]);
    assert_eq!((task.as_str(), unsupported), ("sg00.dve[1]", true));
    assert!(
        message.starts_with("SORT: this instruction is not supported"),
        "{message}"
    );
    assert!(
        reach(&["OPCODE_0xee"])
            .2
            .contains("opcode 0xee is not supported")
    );
    assert!(
        reach(&[&format!("TENSOR_TENSOR {add} op=0x1f channels=4")])
            .2
            .contains("operation 0x1f")
    );
    let (_, unsupported, message) = reach(&["NOP byte[0x30]=0x7"]);
    assert!(
        unsupported && message.contains("NOP: byte 0x30 is 0x07"),
        "{message}"
    );
    let (_, _, message) = reach(&[
        "MATMUL dst=fp32@psum+0x0[1][4] src=fp16@0x4000[1][4] rows=4 columns=4 fp32_pass=low",
    ]);
    assert!(
        message.contains("byte 0x21 (fp32_pass) is 0x01"),
        "{message}"
    );
    let (_, unsupported, message) =
        reach(&["MEMSET dst=fp32@0x37ffc[1,0,0,0][2,1,1,1] value=0x0 channels=1"]);
    assert!(
        !unsupported && message.contains("0x37ffc to 0x38004 of a partition"),
        "{message}"
    );
    assert!(
        reach(&["MEMSET dst=fp32@psum+0x3ffc[1,0,0,0][2,1,1,1] value=0x0 channels=1"])
            .2
            .contains("0x4004")
    );
}
