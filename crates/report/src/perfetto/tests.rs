//! Reads traces back, field by field.

use super::*;
use crate::example;
use chipless_sim::{TimingOnly, Verified};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A message: the fields in their order.
struct Message(Vec<(u32, Value)>);

enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Message {
    fn parse(mut bytes: &[u8]) -> Message {
        fn take<'b>(bytes: &mut &'b [u8], n: usize) -> &'b [u8] {
            bytes.split_off(..n).unwrap()
        }
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let byte = take(bytes, 1)[0];
                value |= u64::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
            }
            value
        }
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = match tag & 7 {
                0 => Value::Number(varint(&mut bytes)),
                1 => Value::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    Value::Bytes(take(&mut bytes, length).to_vec())
                }
                wire => panic!("wire type {wire}"),
            };
            fields.push(((tag >> 3) as u32, value));
        }
        Message(fields)
    }

    fn numbers(&self, field: u32) -> Vec<u64> {
        self.0
            .iter()
            .filter_map(|(f, v)| {
                if let Value::Number(n) = v {
                    (*f == field).then_some(*n)
                } else {
                    None
                }
            })
            .collect()
    }

    fn number(&self, field: u32) -> Option<u64> {
        self.numbers(field).first().copied()
    }

    fn messages(&self, field: u32) -> Vec<Message> {
        let parse = |(f, v): &(u32, Value)| {
            if let Value::Bytes(b) = v {
                (*f == field).then(|| Message::parse(b))
            } else {
                None
            }
        };
        self.0.iter().filter_map(parse).collect()
    }

    fn text(&self, field: u32) -> Option<String> {
        let text = |(f, v): &(u32, Value)| {
            if let Value::Bytes(b) = v {
                (*f == field).then(|| b.clone())
            } else {
                None
            }
        };
        self.0
            .iter()
            .find_map(text)
            .map(|b| String::from_utf8(b).unwrap())
    }
}

/// The trace as lines, the way its viewer understands it: each sequence has a track, a clock and names of its own.
fn read(trace: &[u8]) -> String {
    let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
    let mut clocks: BTreeMap<u64, u64> = BTreeMap::new();
    let mut interned: BTreeMap<(u64, u32, u64), String> = BTreeMap::new();
    let mut lines = String::new();
    for packet in Message::parse(trace).messages(field::TRACE_PACKET) {
        let sequence = packet.number(field::PACKET_SEQUENCE).unwrap();
        for data in packet.messages(field::PACKET_INTERNED) {
            for table in [
                field::INTERNED_CATEGORIES,
                field::INTERNED_NAMES,
                field::INTERNED_ANNOTATION_NAMES,
            ] {
                for entry in data.messages(table) {
                    let key = (sequence, table, entry.number(field::ENTRY_IID).unwrap());
                    let old = interned.insert(key, entry.text(field::ENTRY_TEXT).unwrap());
                    assert_eq!(old, None, "interned twice");
                }
            }
        }
        for track in packet.messages(field::PACKET_TRACK) {
            let process = track.messages(field::TRACK_PROCESS);
            let process = process.iter().find_map(|p| p.text(field::PROCESS_NAME));
            let name = process.or_else(|| track.text(field::TRACK_NAME)).unwrap();
            let parent = track.number(field::TRACK_PARENT);
            let parent = parent.map(|p| format!("{} > ", tracks[&p]));
            let counter = track.messages(field::TRACK_COUNTER);
            let unit = counter
                .iter()
                .find_map(|c| c.text(field::COUNTER_UNIT_NAME));
            let (parent, unit) = (parent.unwrap_or_default(), unit.unwrap_or_default());
            let _ = writeln!(lines, "track {parent}{name} {unit}");
            tracks.insert(track.number(field::TRACK_UUID).unwrap(), name);
        }
        for event in packet.messages(field::PACKET_EVENT) {
            let clock = clocks.entry(sequence).or_default();
            *clock += packet.number(field::PACKET_TIMESTAMP).unwrap();
            let name = |table, iid| &interned[&(sequence, table, iid)];
            let _ = write!(lines, "{clock:>6} {}", tracks[&sequence]);
            match event.number(field::EVENT_TYPE).unwrap() {
                1 => {
                    let slice = event.number(field::EVENT_NAME_IID).unwrap();
                    let category = event.number(field::EVENT_CATEGORY_IIDS).unwrap();
                    let slice = name(field::INTERNED_NAMES, slice);
                    let category = name(field::INTERNED_CATEGORIES, category);
                    let _ = write!(lines, " begin {slice} ({category})");
                    for annotation in event.messages(field::EVENT_ANNOTATIONS) {
                        let argument = annotation.number(field::ANNOTATION_NAME_IID).unwrap();
                        let argument = name(field::INTERNED_ANNOTATION_NAMES, argument);
                        let value = annotation.number(field::ANNOTATION_UINT).unwrap();
                        let _ = write!(lines, " {argument}={value}");
                    }
                    for flow in event.numbers(field::EVENT_FLOWS) {
                        let _ = write!(lines, " →{flow}");
                    }
                    for flow in event.numbers(field::EVENT_ENDING_FLOWS) {
                        let _ = write!(lines, " {flow}→");
                    }
                }
                2 => lines.push_str(" end"),
                4 => {
                    let value = event.number(field::EVENT_COUNTER_VALUE).unwrap();
                    let _ = write!(lines, " {value}");
                }
                other => panic!("event type {other}"),
            }
            lines.push('\n');
        }
    }
    lines
}

/// A run of a program, as its trace tells it.
fn told(program: &Program<'_>) -> String {
    let timeline = chipless_sim::run(&Verified::assume(program), &mut TimingOnly).timeline;
    let attribution = Attribution::of(program, &timeline);
    let lives = crate::attribution::lives(program, &timeline);
    read(&trace(
        "model.blob",
        program,
        &timeline,
        &attribution,
        &lives,
    ))
}

#[test]
fn a_viewer_reads_back_what_happened() {
    let said = told(&example::pipeline());
    let (events, counters): (Vec<&str>, Vec<&str>) =
        said.lines().partition(|l| !l.contains(" ddr "));
    insta::assert_snapshot!(events.join("\n"));
    // Three transfers of 4096 bytes at 32 GB/s after 100 ns: about 18 GB/s over their time, none in between.
    let values = counters
        .iter()
        .filter_map(|l| l.split(' ').next_back()?.parse::<u64>().ok());
    assert_eq!(values.max(), Some(17965), "{counters:?}");
}

#[test]
fn tasks_that_never_ran_leave_no_trace() {
    let said = told(&example::forgetful());
    assert_eq!(said.matches("(task)").count(), 4);
    assert!(!said.contains("dma0.cmx begin"), "{said}");
}
