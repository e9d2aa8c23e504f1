//! Profiles of the vendor's tools beside a program.

use crate::common::assembled;
use chipless_model::Limits;
use chipless_neuron::profile::{Measured, Profile};
use chipless_neuron::{Container, Neff};

const PROGRAM: &str = "neff t trn2\ninput x uint8 [4]\noutput o uint8 [4]\nsubgraph sg00\nvar SB state-buffer\nvar x input\nvar o output\nengine dve\n\
    NOP\nMEMSET dst=fp32@0x4000[1,0,0,0][64,1,1,1] value=0x0 channels=128\nCOPY dst=fp32@0x8000[1,0,0,0][64,1,1,1] src=fp32@0x4000[1,0,0,0][64,1,1,1] channels=128\n";

fn beside(json: &str) -> Result<Vec<Measured>, String> {
    let (file, limits) = (assembled(PROGRAM), Limits::default());
    let container = Container::open(&file, &limits).expect("container");
    let neff = Neff::read(&container, &limits).expect("document");
    Profile::read(json.as_bytes())?.beside(&neff)
}

#[test]
fn instructions_find_their_slots_and_times_their_unit() {
    let json = |unit: u32, total: &str| {
        let [first, second, short, long] = [5000, 5200, 112, 187].map(|n| n * unit);
        format!(
            r#"{{"summary":[{{"total_time":{total}}}],"instruction":[
            {{"label":"Vector","opcode":"COPY","compiler_pc":2,"timestamp":{second},"duration":{long},"nki_source_location":"k.py:9"}},
            {{"label":"Vector","engine":"Vector","opcode":"MEMSET","compiler_pc":1,"timestamp":{first},"duration":{short}}},
            {{"label":"qSyncIO0","opcode":"DMA","timestamp":0,"duration":1}}]}}"#
        )
    };
    for text in [json(1, "1e-6"), json(1000, "1e-6")] {
        let found = beside(&text).expect("a profile");
        let seen: Vec<_> = found
            .iter()
            .map(|m| {
                (
                    &*m.queue,
                    &*m.opcode,
                    m.at,
                    m.start_ns,
                    m.duration_ns,
                    &*m.source,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("sg00.dve", "MEMSET", Some(64), 0.0, 112.0, ""),
                ("sg00.dve", "COPY", Some(128), 200.0, 187.0, "k.py:9")
            ]
        );
    }
    assert!(
        beside(&json(1, "10"))
            .expect_err("a unit")
            .contains("picoseconds")
    );
}

#[test]
fn without_counters_the_order_says_which_slots_they_are() {
    let list = |opcodes: [&str; 3]| {
        let record = |(n, opcode)| {
            format!(r#"{{"engine":"vector","opcode":"{opcode}","start_ts":{n},"duration_ns":1}}"#)
        };
        let records: Vec<String> = opcodes.into_iter().enumerate().map(record).collect();
        format!(r#"{{"instruction":[{}]}}"#, records.join(","))
    };
    let found = beside(&list(["WRITE", "MEMSET", "COPY"])).expect("a profile");
    assert_eq!(
        found.iter().map(|m| m.at).collect::<Vec<_>>(),
        [None, Some(64), Some(128)]
    );
    let wrong = beside(&list(["WRITE", "COPY", "MEMSET"])).expect_err("another order");
    assert!(
        wrong.contains("compiler_pc") && wrong.contains("dve[1] (MEMSET)"),
        "{wrong}"
    );
}

#[test]
fn what_is_no_profile_of_the_program_is_refused() {
    for (json, says) in [
        ("{}", "instruction"),
        (r#"{"instruction":[]}"#, "none"),
        (
            r#"{"instruction":[{"label":"Vector","opcode":"COPY"}]}"#,
            "timestamp",
        ),
        (
            r#"{"instruction":[{"label":"Vector","opcode":"COPY","timestamp":0,"duration":-1}]}"#,
            "numbers",
        ),
        (
            r#"{"instruction":[{"label":"Vector","subgraph":"sg07","opcode":"COPY","timestamp":0,"duration":1}]}"#,
            "sg07",
        ),
        (
            r#"{"instruction":[{"label":"Vector","opcode":"COPY","compiler_pc":99999999999999999,"timestamp":0,"duration":1}]}"#,
            "another program",
        ),
    ] {
        let refused = beside(json).expect_err(json);
        assert!(refused.contains(says), "{json}: {refused}");
    }
}
