//! What operands are called, and which types they have.

use crate::{DSA, GEMINI, NEURON, NPU, PLAIN, SPU, field, say, with};
use chipless_debug::Console;

fn error(console: &mut Console<'_, '_>, line: &str) -> String {
    console.execute(line).map(|answer| answer.text).unwrap_err()
}

/// A program whose cast reads what nobody has written.
const RACE: &str = "broken/early_read.neff";

#[test]
fn types_have_the_short_names_of_listings() {
    with(RACE, &PLAIN, |console| {
        say(console, "goto end");
        let long = say(console, "x/4 float32 sg00.sbuf+0x5800");
        assert!(long.starts_with("   [0]  "), "{long}");
        for short in ["fp32", "f32", "FP32"] {
            assert_eq!(say(console, &format!("x/4 {short} sg00.sbuf+0x5800")), long);
        }
        let printed = field(console, "print out as bf16", "value");
        assert_eq!(printed["dtype"], "bfloat16");
        for line in ["x/4 fp33 sg00.sbuf+0x5800", "print out as fp33"] {
            let said = error(console, line);
            assert_eq!(said, "\"fp33\" is no element type; did you mean \"fp32\"?");
        }
        let said = error(console, "x/4 nonsense sg00.sbuf+0x5800");
        assert!(said.contains("there are float64, float32"), "{said}");
        // The type is right, and the address is not.
        let said = error(console, "x/4 fp32 sg00.sbuff+0x5800");
        assert!(
            said.contains("did you mean \"sg00.sbuf+0x5800\"?"),
            "{said}"
        );
    });
}

#[test]
fn elements_in_lines_have_their_index_in_brackets() {
    with(NPU, &PLAIN, |console| {
        let said = say(console, "x/20 u8 cmx0+0x0");
        let labels: Vec<&str> = said
            .lines()
            .map(|line| line.split_whitespace().next().unwrap())
            .collect();
        assert_eq!(labels, ["[0]", "[8]", "[16]"]);
    });
}

#[test]
fn names_need_no_subgraph_where_there_is_one() {
    with(NEURON, &PLAIN, |console| {
        let whole = field(console, "print crc(sg00.psum+0x800..0x1000)", "value");
        let short = field(console, "print crc(psum+0x800..0x1000)", "value");
        assert_eq!(short, whole);
        say(console, "break act[0]");
        assert_eq!(field(console, "continue", "task"), "sg00.act[0]");
        assert_eq!(
            say(console, "list act[0]"),
            say(console, "list sg00.act[0]")
        );
        let operand = field(console, "print act[1].out[0].shape", "value");
        assert_eq!(
            field(console, "print sg00.act[1].out[0].shape", "value"),
            operand
        );
        for (line, meant) in [
            ("break actt[0]", "sg00.act[0]"),
            ("print actt[0].out[0]", "sg00.act[0].out[0]"),
            ("print psumm+0x800", "sg00.psum+0x800"),
            ("x/4 fp32 sg01.psum+0x800", "sg00.psum+0x800"),
        ] {
            let said = error(console, line);
            assert!(
                said.contains(&format!("did you mean \"{meant}\"?")),
                "{line}: {said}"
            );
        }
    });
    with(NPU, &PLAIN, |console| {
        // Two engines have such a queue.
        let said = error(console, "break ddr[0]");
        assert!(said.contains("did you mean \"dma0.ddr[0]\"?"), "{said}");
    });
}

#[test]
fn a_task_says_the_types_of_what_nobody_has_written() {
    with(RACE, &PLAIN, |console| {
        say(console, "goto sg00.dve[1]");
        let locals = say(console, "info locals");
        assert!(locals.starts_with("in[0]  float16[32, 40] "), "{locals}");
    });
}

/// Tasks of every target whose operands are numbers say of which type, whoever wrote them.
#[test]
fn operands_have_types_in_every_target() {
    let bytes = |name: &str| {
        with(name, &PLAIN, |console| {
            let mut found = Vec::new();
            while console.debugger.session.current().is_some() {
                let task = field(console, "where", "task");
                let locals = field(console, "info locals", "locals");
                for local in locals.as_array().unwrap() {
                    let value = local["value"].as_str().unwrap();
                    if value.starts_with("uint8") {
                        found.push(format!("{task} {} {value}", local["name"]));
                    }
                }
                say(console, "step");
            }
            found
        })
    };
    for name in [RACE, NEURON, SPU, DSA, "npu/convert_f32_f16/program.blob"] {
        assert_eq!(bytes(name), [""; 0], "{name}");
    }
    with(GEMINI, &PLAIN, |console| {
        say(console, "goto core0.pe[1]");
        let locals = say(console, "info locals");
        assert!(locals.starts_with("in[0]  int8["), "{locals}");
    });
    with(SPU, &PLAIN, |console| {
        // Tensors of a plan have dimensions of their own.
        let forms = |console: &mut Console<'_, '_>| {
            let locals = field(console, "info locals", "locals");
            let locals = locals.as_array().unwrap().iter();
            let values = locals.map(|local| local["value"].as_str().unwrap().to_owned());
            values.collect::<Vec<_>>()
        };
        let matrix = forms(console);
        assert!(
            matrix
                .iter()
                .any(|value| value.starts_with("int8[32, 192]")),
            "{matrix:?}"
        );
    });
}

#[test]
fn a_slice_counts_elements_of_the_type_behind_it() {
    with(NPU, &PLAIN, |console| {
        say(console, "until dpu0[1]");
        let whole = field(console, "print dpu0[1].in[2] as u8", "value");
        assert_eq!(whole["shape"], serde_json::json!([7, 24, 64]));
        let before = say(console, "print dpu0[1].in[2][0, 1, :4] as u16");
        let after = say(console, "print dpu0[1].in[2] as u16[0, 1, :4]");
        assert_eq!(before, after);
        let grouped = field(console, "print (dpu0[1].in[2][0, 1, :4]) as u8", "value");
        assert_eq!(grouped["shape"], serde_json::json!([8]));
    });
}

#[test]
fn moves_say_where_they_led_and_why_they_ended() {
    with(NPU, &PLAIN, |console| {
        let said = say(console, "goto dpu0[1]");
        assert!(
            said.starts_with("went forward 27 effects to dpu0[1]\neffect 27 of 51  "),
            "{said}"
        );
        let said = say(console, "goto 26");
        assert!(
            said.starts_with("went back 1 effect to effect 26\n"),
            "{said}"
        );
        let said = say(console, "until dpu0[1]");
        assert!(said.starts_with("reached dpu0[1]\neffect 27 "), "{said}");
        say(console, "goto 0");
        say(console, "break dpu0[0]");
        let said = say(console, "until dpu0[1]");
        assert!(
            said.starts_with("breakpoint: breakpoint 1: dpu0[0]; dpu0[1] is not reached yet\n"),
            "{said}"
        );
    });
}

#[test]
fn idle_queues_that_are_alike_are_one_line() {
    with(GEMINI, &PLAIN, |console| {
        let said = say(console, "info queues");
        assert!(said.contains("core0–3.dt    idle    4 of them\n"), "{said}");
        let all = field(console, "info queues", "queues");
        let idle = all.as_array().unwrap().iter();
        assert!(idle.filter(|queue| queue["state"] == "idle").count() > 4);
    });
}
