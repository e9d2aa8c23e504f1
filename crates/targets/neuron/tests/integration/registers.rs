//! Registers of the sequencers: operations on them, elements of memory in them, and addresses of transfers.

use crate::common::{assembled, buffer, with_program};
use chipless_model::{Grade, Limits, Program, Severity, Storage};
use chipless_neuron::{Container, Neff, lint};
use chipless_sim::{Functional, Stop, Verified, run};
use proptest::prelude::*;
use std::fmt::Write as _;

/// The bytes of the output after a run, and how the run ended.
fn outcome(text: &str, input: &[u8]) -> (Vec<u8>, Result<(), Stop>) {
    with_program(&assembled(text), |program: &Program<'_>, _| {
        let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
        storage.bytes_mut(buffer(program, "x"))[..input.len()].copy_from_slice(input);
        let end = run(
            &Verified::assume(program),
            &mut Functional::new(&mut storage),
        )
        .end;
        (storage.bytes(buffer(program, "o")).to_vec(), end)
    })
}

fn message(text: &str, input: &[u8]) -> String {
    match outcome(text, input).1 {
        Err(Stop::Fault { fault, .. }) => fault.message,
        other => panic!("{other:?}"),
    }
}

/// Errors and warnings of the file, and of the proof over the program.
fn findings(text: &str) -> Vec<String> {
    let limits = Limits::default();
    let file = assembled(text);
    let container = Container::open(&file, &limits).expect("container");
    let neff = Neff::read(&container, &limits).expect("document");
    let of_file = lint(&neff, &limits);
    let of_program = with_program(&file, |program, _| match chipless_verify::verify(program) {
        Ok(verified) => verified.warnings().to_vec(),
        Err(findings) => findings,
    });
    let all = of_file.iter().chain(&of_program);
    all.filter(|f| f.severity != Severity::Note)
        .map(|f| format!("{}: {}", f.rule.code, f.message))
        .collect()
}

fn program(engine: &str, stream: &str) -> String {
    format!(
        "neff test trn2\ninput x uint8 [256]\noutput o uint8 [64]\nsubgraph sg00\nvar SB state-buffer\nvar x input\nvar o output\n\
         var p pointer to=x\nvar T dge-table x o\nqueue q dynamic owner={engine} queues=16 semaphores=8,9\nengine {engine}\n{stream}\n"
    )
}

/// `registers=` of a few registers.
fn registers(numbers: &[u8]) -> String {
    let mut text = "registers=".to_owned();
    for at in 0..32 {
        write!(text, "{:02x}", numbers.get(at).copied().unwrap_or(0)).expect("text");
    }
    text
}

fn load(from: &str, numbers: &[u8]) -> String {
    format!("PSEUDO_TENSOR_LOAD memory={from} {}", registers(numbers))
}

fn store(to: &str, numbers: &[u8]) -> String {
    format!("PSEUDO_TENSOR_STORE memory={to} {}", registers(numbers))
}

proptest! {
    #![proptest_config(chipless_rounds::cases(48))]
    /// Against the same operation on numbers of this machine.
    #[test]
    fn operations_on_registers(
        a in any::<u32>(), b in prop_oneof![any::<u32>(), 1u32..40], which in 0usize..16, is_constant in any::<bool>(),
    ) {
        let (x, y) = (a as i32, b as i32);
        let shift = b % 32;
        let (name, element, second, expected) = [
            ("add", "uint32", b, a.wrapping_add(b)),
            ("subtract", "int32", b, a.wrapping_sub(b)),
            ("multiply", "int32", b, a.wrapping_mul(b)),
            ("divide", "uint32", b.max(1), a / b.max(1)),
            ("divide", "int32", b.max(1), x.wrapping_div((b.max(1)) as i32) as u32),
            ("max", "int32", b, x.max(y) as u32),
            ("max", "uint32", b, a.max(b)),
            ("min", "int32", b, x.min(y) as u32),
            ("and", "uint32", b, a & b),
            ("xor", "uint32", b, a ^ b),
            ("not", "uint32", 0, !a),
            ("shift_left", "uint32", shift, a << shift),
            ("shift_right", "uint32", shift, a >> shift),
            ("shift_right_arithmetic", "uint32", shift, (x >> shift) as u32),
            ("less", "int32", b, u32::from(x < y)),
            ("integer_modulo", "int32", b.max(1), x.wrapping_rem(b.max(1) as i32) as u32),
        ][which];
        let from = if is_constant {
            format!("from=instruction imm={second:#x}")
        } else {
            "src1=9".to_owned()
        };
        let stream = format!(
            "{}\nALU_OP op={name} element={element} src0=3 {from} dst=63\n{}",
            load("uint32@var[x]+0x4[-1,0][2,1]", &[3, 9]),
            store("uint32@var[o][1,0][1,1]", &[63]),
        );
        let input = [second.to_le_bytes(), a.to_le_bytes()].concat();
        let (bytes, end) = outcome(&program("sp", &stream), &input);
        prop_assert_eq!(end, Ok(()));
        prop_assert_eq!(&bytes[..4], &expected.to_le_bytes(), "{} {} {:#x} {:#x}", name, element, a, second);
    }

    #[test]
    fn numbers_of_64_bits_take_two_registers(a in any::<u64>(), b in any::<u64>()) {
        let stream = format!(
            "{}\nALU_OP op=multiply element=uint64 src0=2 src0_high=3 src1=6 src1_high=7 dst=40 dst_high=20\n\
             ALU_OP op=add element=int64 src0=40 src0_high=20 from=instruction imm=0xfffffff0 imm_high=0xffffffff dst=12 dst_high=13\n{}",
            load("uint64@var[x][1,0][2,1]", &[2, 6]),
            store("uint64@var[o]+0x8[1,0][1,1]", &[12]),
        );
        let (bytes, end) = outcome(&program("pe", &stream), &[a.to_le_bytes(), b.to_le_bytes()].concat());
        prop_assert_eq!(end, Ok(()));
        let expected = a.wrapping_mul(b).wrapping_sub(16);
        prop_assert_eq!(&bytes[8..16], &expected.to_le_bytes());
    }
}

#[test]
fn narrow_elements_are_widened_and_stores_keep_their_lowest_bits() {
    for (element, wide) in [
        ("int8", 0xffff_ff90u32),
        ("uint8", 0x90),
        ("int16", 0xffff_8190),
        ("uint16", 0x8190),
        ("fp32", 0x7f00_8190),
    ] {
        let stream = format!(
            "{}\n{}\n{}",
            load(&format!("{element}@var[x][1,0][1,1]"), &[1]),
            store("int32@var[o][1,0][1,1]", &[1]),
            store("uint8@var[o]+0x8[1,0][2,1]", &[1, 1]),
        );
        let (bytes, end) = outcome(&program("act", &stream), &0x7f00_8190u32.to_le_bytes());
        assert_eq!(end, Ok(()), "{element}");
        assert_eq!(bytes[..4], wide.to_le_bytes(), "{element}");
        assert_eq!(bytes[8..10], [wide as u8; 2], "{element}");
    }
}

#[test]
fn elements_on_the_chip_and_in_the_instruction() {
    let constants = |bytes: &[u8]| {
        let text = registers(bytes);
        format!("TENSOR_STORE memory=uint16@address+0x44000[2,-4][2,2] from=instruction {text}")
    };
    let back = format!(
        "TENSOR_LOAD memory=uint16@address+0x44004[-2,-4][2,2] {}\n{}",
        registers(&[4, 5, 6, 7]),
        store("uint8@var[o][1,0][4,1]", &[4, 5, 6, 7])
    );
    let stream = format!("{}\n{back}", constants(&[1, 0, 2, 0, 3, 0, 4, 0]));
    let (bytes, end) = outcome(&program("dve", &stream), &[]);
    assert_eq!(end, Ok(()));
    assert_eq!(bytes[..4], [2, 1, 4, 3]);
}

/// Weights of experts by their indices: each is 16 bytes of the input behind the two indices.
fn pick(first: &str, between: &str) -> String {
    let mut stream = load("int32@var[x][1,0][2,1]", &[1, 2]);
    for (n, register) in [(0, 1), (1, 2)] {
        write!(
            stream,
            "\nALU_OP op=multiply element=int32 src0={register} from=instruction imm=16 dst=5\n\
             ALU_OP op=add element=int32 src0=5 from=instruction imm=16 dst=5\n\
             PSEUDO_DMA_DIRECT2D dst=uint8@var[SB]+{:#x}[1,1][1,1]*16 src=uint8@table[x]+register[5][1,1][1,1]*16{first} $S[8]+=16@complete",
            0x4000 + 16 * n
        )
        .expect("text");
    }
    write!(
        stream,
        "\nNOP $S[8]>=32\n{between}\
         PSEUDO_DMA_DIRECT2D dst=uint8@var[o][1,1][1,1]*32 src=uint8@var[SB]+0x4000[1,1][1,1]*32 $S[9]+=16@complete\nNOP $S[9]>=16\n\
         PSEUDO_DMA_DIRECT2D dst=uint8@table[o]+register[5][1,1][1,1]*16 src=uint8@var[SB]+0x4000[1,1][1,1]*16 $S[9]+=16@complete\nNOP $S[9]>=32"
    )
    .expect("text");
    stream
}

fn experts(indices: [u32; 2]) -> Vec<u8> {
    let mut input: Vec<u8> = (0..=255).collect();
    input[..4].copy_from_slice(&indices[0].to_le_bytes());
    input[4..8].copy_from_slice(&indices[1].to_le_bytes());
    input
}

#[test]
fn transfers_go_where_registers_say_when_they_are_handed_over() {
    let text = program(
        "sp",
        &pick(
            "",
            "MOVE moves=1 element=uint32 from=instruction destinations=0500000000000000 immediates=2000000000000000000000000000000000000000000000000000000000000000\n",
        ),
    );
    let (bytes, end) = outcome(&text, &experts([9, 3]));
    assert_eq!(end, Ok(()));
    let expert = |n: u8| (0..16).map(move |b| n * 16 + 16 + b);
    let expected: Vec<u8> = expert(9).chain(expert(3)).chain(expert(9)).collect();
    assert_eq!(bytes[..48], expected);
    // The last offset is a constant: so it is known what the transfer leaves out.
    let found = findings(&text);
    assert!(
        found.len() == 1 && found[0].contains("no task writes 0x30..0x40"),
        "{found:?}"
    );
    let weakest = with_program(&assembled(&text), |program, _| {
        program.kernels.iter().map(|kernel| kernel.grade()).min()
    });
    assert_eq!(weakest, Some(Grade::Assumed));
}

#[test]
fn an_address_beyond_its_variable_stops_the_run() {
    let text = program("sp", &pick("", ""));
    let message = message(&text, &experts([9, 15]));
    assert!(
        message.contains("byte 0x100 of x, which has 0x100"),
        "{message}"
    );
}

#[test]
fn an_address_stays_below_its_bound() {
    let bound = |bytes: u32| {
        let set = format!(
            "MOVE moves=1 element=uint32 from=instruction destinations=0600000000000000 immediates={:02x}00{}\n",
            bytes,
            "00".repeat(30)
        );
        program("sp", &format!("{set}{}", pick(" src_bound=0x86", "")))
    };
    assert_eq!(outcome(&bound(0xb0), &experts([9, 1])).1, Ok(()));
    let why = message(&bound(0xaf), &experts([9, 1]));
    assert!(why.contains("beyond its bound 0xaf"), "{why}");
    // A register that does not count is not understood.
    let text = program("sp", &pick(" src_bound=6", ""));
    let why = message(&text, &experts([1, 1]));
    assert!(why.contains("byte 0x26 (src_bound) is 0x06"), "{why}");
}

#[test]
fn two_registers_hold_the_address_of_a_variable() {
    let stream = format!(
        "{}\nALU_OP op=add element=uint64 src0=2 src0_high=3 from=instruction imm=5 dst=2 dst_high=3\n\
         TENSOR_LOAD memory=uint8@registers[2,3][1,0][2,1] {}\n\
         PSEUDO_DMA_DIRECT2D dst=uint8@var[o][1,1][1,1]*4 src=uint8@registers[2,3][1,1][1,1]*4 $S[8]+=16@complete\n\
         PSEUDO_DMA_DIRECT2D dst=uint8@var[o]+0x6[1,1][1,1]*58 src=uint8@var[x][1,1][1,1]*58 $S[8]+=16@complete\n\
         NOP $S[8]>=32\n{}",
        load("uint64@var[p][1,0][1,1]", &[2]),
        registers(&[10, 11]),
        store("uint8@var[o]+0x4[1,0][2,1]", &[10, 11])
    );
    let text = program("sp", &stream);
    let (bytes, end) = outcome(&text, &(0..=255).collect::<Vec<u8>>());
    assert_eq!(end, Ok(()));
    assert_eq!(bytes[..6], [5, 6, 7, 8, 5, 6]);
    assert_eq!(findings(&text), Vec::<String>::new());
    let nowhere = program(
        "sp",
        "TENSOR_LOAD memory=uint8@registers[60,61][1,0][1,1] registers=0000000000000000000000000000000000000000000000000000000000000000\nMOVE moves=1 element=uint32 from=instruction destinations=3c00000000000000 immediates=0000000300000000000000000000000000000000000000000000000000000000\nTENSOR_LOAD memory=uint8@registers[60,61][1,0][1,1] registers=0000000000000000000000000000000000000000000000000000000000000000",
    );
    let why = message(&nowhere, &[]);
    assert!(why.contains("address 0x3000000, where nothing is"), "{why}");
}

#[test]
fn what_registers_do_not_take_is_said() {
    for (stream, code, why) in [
        (load("bf16@var[x][1,0][1,1]", &[1]), "neff-instruction", "type 0x6"),
        (load("int8@var[x][1,0][33,1]", &[1]), "neff-instruction", "33 elements"),
        (load("int8@var[x][1,0][0,1]", &[]), "neff-instruction", "0 elements"),
        (load("uint64@var[x][1,0][1,1]", &[3]), "neff-instruction", "register 3 for an element of 64 bits"),
        (load("int8@var[x][1,0][1,1]", &[64]), "neff-instruction", "register 64"),
        (load("int8@var[x]+0xf0[1,0][32,1]", &[]), "neff-dma-bounds", "0xf0 to 0x110"),
        (load("int8@var[99][1,0][1,1]", &[1]), "neff-dma-variable", "var_id 99"),
        (load("int32@var[x]+0x2[1,0][1,1]", &[1]), "neff-operand-alignment", "elements of int32"),
        (format!("{} from=instruction", load("int8@var[x][1,0][1,1]", &[1])), "neff-instruction", "loaded from memory"),
        (format!("{} from=instruction", store("int32@var[o][1,0][9,1]", &[])), "neff-instruction", "possible are 1 to 8"),
        ("PSEUDO_DMA_DIRECT2D dst=uint8@var[SB]+0x4000[1,1][1,1]*512 src=uint8@table[x]+register[5][1,1][1,1]*512 $S[8]+=16@complete\nNOP $S[8]>=16".to_owned(),
            "neff-dma-bounds", "spans 0x200 bytes of"),
    ] {
        let found = findings(&program("sp", &stream));
        assert!(found.iter().any(|f| f.starts_with(code) && f.contains(why)), "{stream}: {found:?}");
    }
    for (stream, why) in [
        (
            "ALU_OP op=greater element=fp32 src0=1 src1=2 dst=3",
            "what it gives is not known",
        ),
        (
            "ALU_OP op=add element=bf16 src0=1 src1=2 dst=3",
            "registers of type 0x6",
        ),
        (
            "ALU_OP op=add element=int32 result=fp32 src0=1 src1=2 dst=3",
            "byte 0x0f (result)",
        ),
        (
            "ALU_OP op=add element=int32 src0=1 src1=2 dst=128",
            "register 128",
        ),
        (
            "ALU_OP op=add element=int32 src0=1 src0_high=2 src1=2 dst=3",
            "byte 0x11 (src0_high) is 0x02",
        ),
        (
            "ALU_OP op=divide element=int32 src0=1 src1=2 dst=3",
            "divisor of 0",
        ),
        (
            "TENSOR_LOAD memory=uint8@address+0x8000000[1,0][1,1] registers=0000000000000000000000000000000000000000000000000000000000000000",
            "it is not on the chip",
        ),
    ] {
        let found = message(&program("sp", stream), &[]);
        assert!(found.contains(why), "{stream}: {found}");
    }
}

#[test]
fn a_store_races_with_a_transfer_that_nothing_orders() {
    let stream = |wait: &str| {
        format!(
            "PSEUDO_DMA_DIRECT2D dst=uint8@var[o][1,1][1,1]*64 src=uint8@var[x][1,1][1,1]*64 $S[8]+=16@complete\n{wait}\n{}",
            store("int32@var[o][1,0][1,1]", &[1])
        )
    };
    let initialised = |s: String| {
        format!("MOVE moves=1 element=uint32 from=instruction destinations=0100000000000000\n{s}")
    };
    let races = findings(&program("sp", &initialised(stream("NOP"))));
    assert!(
        races.iter().any(|f| f.starts_with("race-write")),
        "{races:?}"
    );
    let orderly = findings(&program("sp", &initialised(stream("NOP $S[8]>=16"))));
    assert_eq!(orderly, Vec::<String>::new());
}

/// Sets a register to a constant.
fn set(register: u8, value: u32) -> String {
    let word: String = value
        .to_le_bytes()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    format!(
        "MOVE moves=1 element=uint32 from=instruction destinations={register:02x}{} immediates={word}{}",
        "00".repeat(7),
        "00".repeat(28)
    )
}

#[test]
fn offsets_that_are_known_are_proven_exactly() {
    // Both halves of the output, at offsets that follow from constants: 0x20 and 0x20 - 0x20.
    let stream = |second: u32, wait: &str| {
        let transfer = |from: u32, register: u8, semaphore: u8| {
            format!(
                "PSEUDO_DMA_DIRECT2D dst=uint8@table[o]+register[{register}][1,1][1,1]*32 src=uint8@var[x]+{from:#x}[1,1][1,1]*32 $S[{semaphore}]+=16@complete"
            )
        };
        format!(
            "{}\n{}\nALU_OP op=subtract element=int32 src0=7 from=instruction imm={second:#x} dst=9\n{wait}\n{}\nNOP $S[8]>=16\nNOP $S[9]>=16",
            set(7, 0x20),
            transfer(0, 7, 8),
            transfer(0x40, 9, 9)
        )
    };
    let input: Vec<u8> = (0..=255).collect();
    let text = program("sp", &stream(0x20, "NOP"));
    let (bytes, end) = outcome(&text, &input);
    assert_eq!(end, Ok(()));
    assert_eq!((bytes[0], bytes[32]), (0x40, 0));
    assert_eq!(findings(&text), Vec::<String>::new());
    // One half lies on the other.
    let races = findings(&program("sp", &stream(0x10, "NOP")));
    assert!(
        races.iter().any(|f| f.starts_with("race-write")),
        "{races:?}"
    );
    // And with a wait the first half of the output is missing.
    let lacks = findings(&program("sp", &stream(0x10, "NOP $S[8]>=16")));
    assert!(
        lacks.len() == 1 && lacks[0].contains("0x0..0x10"),
        "{lacks:?}"
    );
    let beyond = findings(&program("sp", &stream(0xffff_ffff, "NOP")));
    assert!(
        beyond.iter().any(|f| f.contains("0x21..0x41")),
        "{beyond:?}"
    );
    // Behind a branch, which may go back to here with other registers, nothing is known of them.
    let branch = findings(&program("sp", &stream(0xffff_ffff, "COMPARE_BRANCH")));
    assert!(
        !branch.iter().any(|f| f.contains("0x21..0x41")),
        "{branch:?}"
    );
}

/// Two sets, whose functions are constants: 7 is in both, 8 in the first alone.
fn sets(stream: &str) -> String {
    let function = |id: u8, segment: u8| {
        format!(
            "function f{id} id={id} octaves=0:-1 control=0 small={segment} large={segment} zero=0 nan=nan infinity=inf,0"
        )
    };
    let sets = format!(
        "functions one\nsegment 1 0 0 0 0\nsegment 2 0 0 0 0\n{}\n{}\nfunctions two\nsegment 3 0 0 0 0\n{}",
        function(7, 0),
        function(8, 1),
        function(7, 0)
    );
    program("act", &format!("{sets}\n{stream}"))
}

#[test]
fn functions_are_those_of_the_set_that_was_loaded_last() {
    let activate = |function: u8, to: u32| {
        format!(
            "ACTIVATE dst=fp32@{to:#x}[1,1,1][1,1,1] src=fp32@0x4000[1,1,1][1,1,1] function={function} scale=1.0 bias_source=instruction channels=1"
        )
    };
    let give = "PSEUDO_DMA_DIRECT2D dst=fp32@var[o][1,1][1,1]*16 src=fp32@var[SB]+0x5000[1,1][1,1]*16 $S[8]+=16@complete\nNOP $S[8]>=16";
    let bring = "PSEUDO_DMA_DIRECT2D dst=fp32@var[SB]+0x4000[1,1][1,1]*4 src=fp32@var[x][1,1][1,1]*4 $S[9]+=16@complete\nNOP $S[9]>=16";
    let set = |name: &str| format!("PSEUDO_LOAD_ACT_FUNC_SET name={name}");
    let stream = [
        bring.to_owned(),
        set("one"),
        activate(7, 0x5000),
        activate(8, 0x5004),
        set("two"),
        activate(7, 0x5008),
        set("one"),
        activate(7, 0x500c),
        give.to_owned(),
    ];
    let (bytes, end) = outcome(&sets(&stream.join("\n")), &5f32.to_le_bytes());
    assert_eq!(end, Ok(()));
    let numbers: Vec<f32> = bytes[..16]
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    assert_eq!(numbers, [1.0, 2.0, 3.0, 1.0]);
    // Whether functions of an earlier set stay is not known.
    let why = message(&sets(&[set("two"), activate(8, 0x5000)].join("\n")), &[]);
    assert!(why.contains("function 8 is not in set `two`"), "{why}");
    let found = findings(&sets(&set("three")));
    assert!(
        found
            .iter()
            .any(|f| f.starts_with("neff-activation-function") && f.contains("`three`")),
        "{found:?}"
    );
}

#[test]
fn a_register_that_nobody_wrote_says_nothing() {
    let found = findings(&program(
        "sp",
        "PSEUDO_DMA_DIRECT2D dst=uint8@var[o][1,1][1,1]*64 src=uint8@table[x]+register[7][1,1][1,1]*64 $S[8]+=16@complete\nNOP $S[8]>=16",
    ));
    assert!(!found.is_empty());
}
