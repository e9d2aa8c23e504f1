//! What findings advise has been tried: following it gives a program without errors.

use crate::common::assembled;
use chipless_model::{Finding, Limits};
use chipless_neuron::machine::Machine;
use chipless_neuron::{Container, Lowered, Neff, lower};

/// What is wrong with a program, with advice.
fn findings(text: &str) -> Vec<Finding> {
    let limits = Limits::default();
    let file = assembled(text);
    let container = Container::open(&file, &limits).expect("container");
    let neff = Neff::read(&container, &limits).expect("document");
    let machine = neff
        .architecture
        .machine()
        .unwrap_or_else(|| Machine::named("trn2").expect("machine"));
    let Lowered { mut program, .. } = lower(&neff, &machine, &limits).expect("program");
    let Err(mut findings) = chipless_verify::verify(&program) else {
        return Vec::new();
    };
    let waits = |program: &chipless_model::Program<'_>| {
        let tasks = program.tasks.indices();
        let tasks: Vec<_> = tasks
            .map(|task| (program.waits(task).to_vec(), program.signals(task).to_vec()))
            .collect();
        (
            tasks,
            program.waits.len(),
            program.signals.len(),
            program.syncs.len(),
        )
    };
    let before = waits(&program);
    chipless_verify::advise(&mut program, &mut findings);
    assert!(before == waits(&program), "the program is as it was");
    findings.retain(Finding::is_error);
    findings
}

fn fixture(name: &str) -> String {
    let path = format!(
        "{}/../../../fixtures/neuron/{name}/program.asm",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(path).expect("the fixture")
}

/// The line of an instruction, by its name in findings: `sg00.act[1]`.
fn line_of(lines: &[String], name: &str) -> usize {
    let (queue, index) = name.trim_end_matches(']').split_once('[').expect("a task");
    let (subgraph, engine) = queue.split_once('.').expect("an engine");
    let (mut at, mut left) = (("", ""), index.parse::<usize>().expect("a number"));
    for (number, line) in lines.iter().enumerate() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("subgraph") => at = (words.next().expect("a name"), ""),
            Some("engine") => at.1 = words.next().expect("a name"),
            Some(word) if at == (subgraph, engine) && word.starts_with(char::is_uppercase) => {
                if left == 0 {
                    return number;
                }
                left -= 1;
            }
            _ => {}
        }
    }
    panic!("no instruction {name}");
}

/// The text with the first advice of a hint followed to the letter.
fn followed(text: &str, hint: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let words: Vec<&str> = hint
        .split_whitespace()
        .map(|word| word.trim_end_matches(['.', ',']))
        .collect();
    let mut replace = |task: &str, old: String, new: String| {
        let at = line_of(&lines, task);
        assert!(lines[at].contains(&old), "{}: {old}", lines[at]);
        lines[at] = lines[at].replace(&old, &new);
    };
    match words[..] {
        [
            "Let",
            task,
            "wait",
            "for",
            _,
            sync,
            "≥",
            value,
            "instead",
            "of",
            "≥",
            old,
            ..,
        ] => {
            replace(task, format!("{sync}>={old}"), format!("{sync}>={value}"));
        }
        [
            "Let",
            task,
            "wait",
            "for",
            _,
            sync,
            "≥",
            value,
            "instead",
            "of",
            _,
            other,
            "≥",
            old,
            ..,
        ] => {
            replace(task, format!("{other}>={old}"), format!("{sync}>={value}"));
        }
        ["Let", task, "wait", "for", _, sync, "≥", value, ..] => {
            let at = line_of(&lines, task);
            let end = lines[at].find(" $S").unwrap_or(lines[at].len());
            lines[at].insert_str(end, &format!(" {sync}>={value}"));
        }
        [
            "Insert",
            "an",
            "instruction",
            "before",
            task,
            "that",
            "waits",
            "for",
            _,
            sync,
            "≥",
            value,
            ..,
        ] => {
            lines.insert(line_of(&lines, task), format!("NOP {sync}>={value}"));
        }
        ["Let", task, "raise", _, sync, "by", amount, ..] => {
            let at = line_of(&lines, task);
            assert_eq!(amount, "1");
            lines[at].push_str(&format!(" {sync}++@complete"));
        }
        [
            "Let",
            task,
            "signal",
            _,
            sync,
            "when",
            "it",
            "completes",
            ..,
        ] => {
            replace(task, format!("{sync}++@read"), format!("{sync}++@complete"));
        }
        _ => panic!("{hint}"),
    }
    lines.join("\n")
}

#[test]
fn what_is_advised_leaves_no_error() {
    let mut followed_to_the_end = 0;
    for name in [
        "argmax",
        "attention_causal",
        "gelu_mlp",
        "layer_norm",
        "matmul_five_engines",
        "rmsnorm",
        "softmax",
        "top_k",
    ] {
        let text = fixture(name);
        for (at, _) in text.match_indices(" $S[") {
            // One wait, or one signal of an engine, is left out.
            let rest = &text[at + 1..];
            let end = rest.find([' ', '\n']).expect("the end of a line");
            let left_out = &rest[..end];
            if left_out.contains("+=") {
                continue;
            }
            let broken = format!("{}{}", &text[..at], &rest[end..]);
            let found = findings(&broken);
            let Some(first) = found.first() else { continue };
            let hint = first.hint.as_deref().expect("advice");
            assert!(
                hint.contains("With that, no error is left."),
                "{name}, without {left_out}: {hint}"
            );
            let mended = followed(&broken, hint);
            let left = findings(&mended);
            assert!(
                left.is_empty(),
                "{name}, without {left_out}: {hint}\n{}",
                left[0].message
            );
            followed_to_the_end += 1;
        }
    }
    assert!(followed_to_the_end > 60, "{followed_to_the_end}");
}

#[test]
fn a_signal_that_nobody_awaits_says_what_was_meant() {
    let ring = include_str!("../../../../../fixtures/broken/ring.asm");
    let found = findings(ring);
    assert_eq!(
        found[0].hint.as_deref(),
        Some(
            "Let sg00.act[1] wait for sg00 $S[5] ≥ 1 instead of sg00 $S[6] ≥ 1. With that, no error is left."
        )
    );
    // Either order is possible here; that of the signal which nobody waits for comes first.
    let text = fixture("rotary_embedding").replacen(" $S[6]>=3", "", 1);
    let hint = findings(&text)[0].hint.clone().expect("advice");
    assert!(
        hint.contains("has to come first, which gives other values"),
        "{hint}"
    );
}

/// The finding of this code.
fn of_code<'f>(found: &'f [Finding], code: &str) -> &'f Finding {
    let finding = found.iter().find(|finding| finding.rule.code == code);
    finding.expect("a finding of this code")
}

#[test]
fn a_race_names_the_first_task_that_comes_too_early() {
    // The activation reads the same bytes and waits for the reduction, which waits for nothing.
    let text = fixture("softmax").replacen(" $S[8]>=16", "", 1);
    let found = findings(&text);
    let race = of_code(&found, "race-read-write");
    assert_eq!(
        race.message,
        "sg00.qSPDynamicHW[0] (dma copy) writes sg00.sbuf 0x4000..0x4080 (likewise in 63 more rows, 0x40000 bytes apart) and sg00.dve[0] (TENSOR_REDUCE) reads them, and nothing orders the two (and 1 more like this)"
    );
    let read = of_code(&found, "read-before-write");
    assert_eq!(read.place.item, "sg00.dve[0]");
    for finding in [race, read] {
        assert_eq!(
            finding.hint.as_deref(),
            Some("Let sg00.dve[0] wait for sg00 $S[8] ≥ 16. With that, no error is left.")
        );
    }
    assert_eq!(found.len(), 2);
}

/// A transfer raises its semaphore once for each ring; fifteen of sixteen are a part of its bytes.
#[test]
fn a_wait_for_a_part_of_a_transfer_is_to_wait_for_all() {
    for (name, task, semaphore) in [
        ("mixture_of_experts", "sg00.dve[0]", "$S[9]"),
        ("vector_stream", "sg00.dve[1]", "$S[8]"),
    ] {
        let whole = format!("{semaphore}>=16");
        let text = fixture(name).replacen(&whole, &format!("{semaphore}>=15"), 1);
        let found = findings(&text);
        let expected = format!(
            "Let {task} wait for sg00 {semaphore} ≥ 16 instead of ≥ 15. With that, no error is left."
        );
        assert_eq!(found[0].hint.as_deref(), Some(&*expected), "{name}");
        assert_eq!(
            followed(&text, &expected),
            fixture(name).trim_end(),
            "{name}"
        );
    }
}

/// The tasks of one transfer short, or of one instruction: the advice is to raise that wait again, which gives the program as it was, and so its outputs.
#[test]
fn a_wait_for_one_signal_too_few_is_to_wait_for_it_as_well() {
    let mut wrong = 0;
    for name in [
        "argmax",
        "attention_causal",
        "gelu_mlp",
        "layer_norm",
        "matmul_five_engines",
        "mixture_of_experts",
        "rmsnorm",
        "rotary_embedding",
        "softmax",
        "top_k",
    ] {
        let text = fixture(name);
        for (at, _) in text.match_indices(">=") {
            let rest = &text[at + 2..];
            let end = rest.find([' ', '\n']).expect("the end of a line");
            let value: i64 = rest[..end].parse().expect("a number");
            // A transfer raises its semaphore by 16.
            let step = if value % 16 == 0 { 16 } else { 1 };
            let broken = format!("{}{}{}", &text[..at + 2], value - step, &rest[end..]);
            let found = findings(&broken);
            let Some(first) = found.first() else { continue };
            wrong += 1;
            let line = text[..at].matches('\n').count() + 1;
            let hint = first.hint.as_deref().expect("advice");
            assert!(
                hint.contains("With that, no error is left."),
                "{name}, line {line}: {hint}"
            );
            let mended = followed(&broken, hint);
            assert_eq!(mended, text.trim_end(), "{name}, line {line}: {hint}");
            let task = hint
                .split_whitespace()
                .nth(1)
                .expect("the task that is changed");
            let related = first.related.iter();
            let mut places = related.map(|(place, _)| place).chain([&first.place]);
            assert!(
                places.any(|place| place.item == task),
                "{name}, line {line}: {task} is no place of the finding"
            );
        }
    }
    assert!(wrong > 40, "{wrong}");
}

#[test]
fn the_wait_in_front_of_a_task_is_named() {
    let text = fixture("mixture_of_experts").replacen("$S[10]>=128", "$S[10]>=112", 1);
    let found = findings(&text);
    let race = of_code(&found, "race-read-write");
    assert_eq!(
        race.hint.as_deref(),
        Some(
            "Let sg00.pe[0] wait for sg00 $S[10] ≥ 128 instead of ≥ 112. With that, no error is left."
        )
    );
    let roles: Vec<&str> = race.related.iter().map(|(_, role)| &**role).collect();
    assert_eq!(
        roles,
        [
            "sg00.qSPDynamicHW[2] waits for its start (by sg00.sp[4]); signals sg00 $S[10]",
            "sg00.pe[1] has no waits of its own and gives no signal; sg00.pe[0], before it in its queue, waits for sg00 $S[10] ≥ 112",
            "sg00.pe[0] (which the help changes) waits for sg00 $S[8] ≥ 16 (by sg00.qSPDynamicHW[0]), sg00 $S[10] ≥ 112 (by sg00.qSPDynamicHW[8], or parts of transfers behind it, each of which adds as it completes); gives no signal",
        ]
    );
    // Each of the pairs that the one finding stands for.
    assert_eq!(race.alike.len(), 7);
    for (number, alike) in (3..).zip(&race.alike) {
        assert!(
            alike.contains(&format!(
                "sg00.qSPDynamicHW[{number}] (dma copy) writes them"
            )),
            "{alike}"
        );
    }
}

#[test]
fn a_signal_that_comes_too_early_is_to_come_later() {
    let text = fixture("matmul_five_engines").replacen("$S[5]++@complete", "$S[5]++@read", 1);
    let found = findings(&text);
    let race = of_code(&found, "race-read-write");
    let roles: Vec<&str> = race.related.iter().map(|(_, role)| &**role).collect();
    assert!(
        roles
            .iter()
            .any(|role| role.ends_with("signals sg00 $S[5] when it has read its sources")),
        "{roles:?}"
    );
    let hint = race.hint.as_deref().expect("advice");
    assert_eq!(
        hint,
        "Let sg00.pe[5] signal sg00 $S[5] when it completes, not when it has read its sources. With that, no error is left."
    );
    assert!(findings(&followed(&text, hint)).is_empty());
}

#[test]
fn who_brings_data_comes_before_who_reads_them() {
    // Two transfers are awaited by nobody, so that no one change mends it all.
    let wait = "EVENT_SEMAPHORE $S[8]>=16 $S[24]>=16\n";
    let text = fixture("matmul_five_engines").replacen(wait, "", 1);
    let found = findings(&text);
    assert_eq!(found.len(), 3);
    for finding in &found {
        let hint = finding.hint.as_deref().expect("advice");
        assert!(
            hint.starts_with("Let sg00.pe[") && hint.contains("wait for sg00 $S["),
            "{hint}"
        );
        assert!(
            hint.ends_with("With that, 1 of 3 errors is left."),
            "{hint}"
        );
        assert_eq!(findings(&followed(&text, hint)).len(), 1, "{hint}");
    }
    // The activation waits for the transfer, and the reduction for nothing.
    let text =
        fixture("softmax")
            .replacen(" $S[8]>=16", "", 1)
            .replacen(" $S[6]>=1 ", " $S[8]>=16 ", 1);
    let found = findings(&text);
    let hint = found[0].hint.as_deref().expect("advice");
    assert!(
        hint.starts_with("Let sg00.dve[0] wait for sg00 $S[8] ≥ 16."),
        "{hint}"
    );
    let hints = found.iter().filter_map(|finding| finding.hint.as_deref());
    for hint in hints {
        assert!(
            !hint.contains("sg00.sp[0] wait") && !hint.contains("wait for sg00 $S[4]"),
            "{hint}"
        );
    }
}

#[test]
fn a_transfer_names_the_instruction_that_starts_it() {
    let text = fixture("softmax").replacen(" $S[8]>=16", "", 1);
    let found = findings(&text);
    let roles = found[0].related.iter().map(|(_, role)| role);
    assert!(
        roles
            .clone()
            .any(|role| role.contains("waits for its start (by sg00.sp[0]); signals sg00 $S[8]")),
        "{:?}",
        roles.collect::<Vec<_>>()
    );
}
