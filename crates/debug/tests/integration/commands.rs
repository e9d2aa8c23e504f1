//! Commands and what they answer.

use crate::{DSA, How, NEURON, NPU, PLAIN, field, opened, say, with};
use chipless_debug::script;
use serde_json::{Value, json};

fn error(console: &mut chipless_debug::Console<'_, '_>, line: &str) -> String {
    console.execute(line).map(|answer| answer.text).unwrap_err()
}

#[test]
fn breakpoints_stop_once_for_each_task_in_both_directions() {
    with(NPU, &PLAIN, |console| {
        say(console, "break eltwise add");
        let tasks = [
            "dpu0[0]", "dpu1[0]", "dpu2[0]", "dpu3[0]", "dpu0[5]", "dpu1[5]", "dpu2[5]", "dpu3[5]",
        ];
        for task in tasks {
            assert_eq!(field(console, "continue", "task"), task);
        }
        assert_eq!(field(console, "continue", "reason"), "end");
        for task in tasks.iter().rev() {
            assert_eq!(field(console, "reverse-continue", "task"), *task);
        }
        say(console, "reverse-continue");
        assert_eq!(console.debugger.last().reason.name(), "start");
    });
}

#[test]
fn a_breakpoint_on_the_first_task_stops_before_anything_runs() {
    with(NPU, &PLAIN, |console| {
        let first = field(console, "where", "task");
        say(console, &format!("break {}", first.as_str().unwrap()));
        assert_eq!(field(console, "continue", "effect"), 0);
        assert_eq!(field(console, "continue", "reason"), "end");
        // Who steps leaves it.
        assert_eq!(field(console, "run", "effect"), 0);
        assert_eq!(field(console, "step", "effect"), 1);
    });
}

#[test]
fn conditions_hold_at_the_moment() {
    with(NPU, &PLAIN, |console| {
        say(
            console,
            "break conv 3x3 stride 1 if effect > 27 and not max(dpu0[1].out[0]) == 0",
        );
        let stop = console.execute("continue").unwrap();
        assert_eq!(
            (&stop.fields["effect"], &stop.fields["task"]),
            (&json!(28), &json!("dpu3[1]"))
        );
        say(console, "delete");
        say(console, "tbreak dpu0[4]");
        assert_eq!(field(console, "continue", "task"), "dpu0[4]");
        assert_eq!(say(console, "info breakpoints"), "none\n");
    });
}

#[test]
fn tensors_have_the_types_of_their_kernels_and_ports() {
    with(NPU, &PLAIN, |console| {
        say(console, "until dpu0[1]");
        assert_eq!(
            field(console, "print dpu0[1].in[2].shape", "value"),
            json!([7, 24, 32])
        );
        assert_eq!(
            field(console, "print dtype(dpu0[1].in[2])", "value"),
            "float16"
        );
        let whole = field(console, "print dpu0[1].in[2]", "value");
        let half = field(console, "print dpu0[1].in[2][:3, ::2, -1]", "value");
        assert_eq!(half["shape"], json!([3, 12]));
        assert!(half["max"].as_f64() <= whole["max"].as_f64());
        let locals = say(console, "info locals");
        assert!(
            locals
                .starts_with("in[0]  descriptor of 224 bytes  cmx0+0xc7a0..0xc880 (descriptor)\n"),
            "{locals}"
        );
        let numbers = field(console, "x/3 float16 cmx0+0x33800", "value");
        let first = field(console, "print dpu0[1].in[2][0, 0, 1]", "value");
        assert_eq!(numbers[1], first["min"]);
    });
}

#[test]
fn writers_and_readers_are_those_of_the_value_that_is_there() {
    with(NPU, &PLAIN, |console| {
        say(console, "goto dpu0[2]");
        let writers = field(console, "writer dpu0[1].out[0]", "tasks");
        assert_eq!(writers[0]["task"], "dpu0[1]");
        let readers = field(console, "readers dpu0[1].out[0]", "tasks");
        assert_eq!(readers[0]["task"], "dpu0[2]");
        let input = console.debugger.session.program().interface.inputs[0]
            .name
            .clone();
        let of_input = console.execute(&format!("writer \"{input}\"")).unwrap();
        assert_eq!(of_input.fields["tasks"], json!([]));
        assert!(of_input.fields["initial_bytes"].as_u64().unwrap() > 0);
    });
}

#[test]
fn a_nan_is_caught_before_the_task_that_writes_it_from_both_sides() {
    let how = How { nan: true, ..PLAIN };
    with(NPU, &how, |console| {
        say(console, "catch nan");
        let caught = console.execute("continue").unwrap();
        assert_eq!(caught.fields["reason"], "catch");
        let effect = caught.fields["effect"].as_u64().unwrap();
        let task = caught.fields["task"].as_str().unwrap().to_owned();
        let detail = caught.fields["detail"].as_str().unwrap().to_owned();
        assert!(
            detail.starts_with(&format!("{task} writes a NaN (float16)")),
            "{detail}"
        );
        // To step is to let it happen.
        assert_eq!(field(console, "step", "effect"), effect + 1);
        say(console, "delete");
        say(console, &format!("goto {}", effect + 1));
        say(console, "catch nan");
        let back = console.execute("reverse-continue").unwrap();
        assert_eq!(
            (&back.fields["reason"], &back.fields["effect"]),
            (&json!("catch"), &json!(effect))
        );
        say(console, "delete");
        say(console, "catch inf");
        say(console, "goto 0");
        // The largest of nothing but NaN is an infinity: another task, which the first catch has nothing to do with.
        let infinity = console.execute("continue").unwrap();
        assert_eq!(infinity.fields["reason"], "catch");
        let detail = infinity.fields["detail"].as_str().unwrap();
        assert!(detail.contains("writes an infinity (float16)"), "{detail}");
    });
}

#[test]
fn what_is_wrong_is_said_and_nothing_moves() {
    with(NPU, &PLAIN, |console| {
        for (line, expected) in [
            ("brake dpu0[1]", "expected a command, found \"brake\""),
            (
                "re",
                "expected one command, found \"re\", which may be reverse-continue, reverse-step, reverse-next, readers",
            ),
            ("break dpu0[99]", "expected a task dpu0[0] to dpu0["),
            ("break layer:x", "expected a layer, found \"x\""),
            ("break dpu0[1] if dpu0[1].in[2]", "expected a comparison"),
            (
                "print dpu0[1].in[99]",
                "expected an access of dpu0[1], which reads 5, found number 99",
            ),
            ("print cmx0+0x10..0x8", "expected a tensor"),
            ("print dpu0[1].in[2][0", "expected a closing ]"),
            (
                "print dpu0[1].in[2][9]",
                "dimension 0 of float16[7, 24, 32]: expected an index of 7, found 9",
            ),
            ("print 1 +", "expected the end of the expression, found +"),
            ("print (1", "expected a closing )"),
            ("goto 999", "expected an effect up to 51, found 999"),
            ("catch fire", "expected nan, inf, fault or deadlock"),
            ("watch nothing", "expected a tensor"),
            ("finish", "expected a task of a layer"),
            ("step x", "expected a number of effects"),
            ("x/0 cmx0+0x0", "expected a count from 1"),
            ("save", "expected FILE.npy and a tensor"),
            ("info fish", "expected breakpoints, queues"),
        ] {
            let said = error(console, line);
            assert!(said.starts_with(expected), "{line}: {said}");
        }
        let nested = format!("print {}1{}", "(".repeat(500), ")".repeat(500));
        assert!(error(console, &nested).starts_with("expected at most"));
        assert_eq!(console.debugger.session.at(), 0);
    });
}

#[test]
fn next_and_until_follow_a_queue() {
    with(NEURON, &PLAIN, |console| {
        let queue = field(console, "where", "queue");
        let at = console.execute("next").unwrap();
        assert!(
            at.fields["queue"] == queue || at.fields["reason"] == "end",
            "{:?}",
            at.fields
        );
        say(console, "reverse-next");
        assert_eq!(console.debugger.session.at(), 0);
        let last = console.debugger.session.effects() - 1;
        let task = console.debugger.session.task(last).unwrap();
        let name = console.debugger.session.program().task_name(task);
        assert_eq!(field(console, &format!("until {name}"), "effect"), last);
        say(console, "step");
        assert!(error(console, &format!("until {name}")).contains("`goto"));
    });
}

#[test]
fn watched_bytes_stop_before_their_writers() {
    with(DSA, &PLAIN, |console| {
        let output = console.debugger.session.program().interface.outputs[0]
            .name
            .clone();
        say(console, &format!("watch {output}"));
        let stop = console.execute("continue").unwrap();
        assert_eq!(stop.fields["reason"], "watch");
        let before = field(console, &format!("print crc({output})"), "value");
        say(console, "step");
        let after = field(console, &format!("print crc({output})"), "value");
        assert_ne!(before, after);
    });
}

#[test]
fn a_deadlock_says_who_waits_for_whom() {
    with("broken/ring.neff", &PLAIN, |console| {
        assert_eq!(field(console, "continue", "reason"), "end");
        say(console, "reverse-step");
        say(console, "catch deadlock");
        let caught = console.execute("continue").unwrap();
        assert_eq!(caught.fields["reason"], "catch");
        let detail = caught.fields["detail"].as_str().unwrap();
        assert!(
            detail.contains("sg00.act[1]") && detail.contains("sg00.dve[1]"),
            "{detail}"
        );
    });
}

#[test]
fn a_script_answers_in_text_and_in_json() {
    let script = "# a comment\nstep 2\n\nprint nonsense\nquit\nstep\n";
    let answer = |json: bool| {
        with(NPU, &PLAIN, |console| {
            let mut out = Vec::new();
            let good = script::run(console, script.as_bytes(), &mut out, json).unwrap();
            assert!(!good);
            String::from_utf8(out).unwrap()
        })
    };
    insta::assert_snapshot!(answer(false), @r#"
        > step 2
        step
        effect 2 of 51  1.318 µs  dma0.ddr[2] fetch
        > print nonsense
        error: expected a tensor, TASK.in[K], TASK.out[K] or BUFFER+OFFSET..END within its buffer, found "nonsense"; `info buffers` shows the names
        > quit
    "#);
    let lines: Vec<Value> = answer(true)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        (&lines[0]["effect"], &lines[0]["ok"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(
        (&lines[1]["command"], &lines[1]["ok"]),
        (&json!("print"), &json!(false))
    );
}

#[test]
fn files_that_are_no_programs_are_refused() {
    let path = crate::fixture("spu/make.py");
    assert!(opened(&path, &PLAIN, |_| ()).is_err());
}
