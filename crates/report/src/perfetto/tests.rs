//! Reads traces back, field by field.

use super::*;
use crate::example;
use chipless_sim::TimingOnly;
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

/// The trace as lines, the way its viewer understands it.
fn read(trace: &[u8]) -> String {
    let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
    let mut interned: BTreeMap<(u32, u64), String> = BTreeMap::new();
    let mut lines = String::new();
    for packet in Message::parse(trace).messages(field::TRACE_PACKET) {
        assert_eq!(packet.number(field::PACKET_SEQUENCE), Some(1));
        for data in packet.messages(field::PACKET_INTERNED) {
            for table in [
                field::INTERNED_CATEGORIES,
                field::INTERNED_NAMES,
                field::INTERNED_ANNOTATION_NAMES,
                field::INTERNED_ANNOTATION_STRINGS,
            ] {
                for entry in data.messages(table) {
                    let old = interned.insert(
                        (table, entry.number(field::ENTRY_IID).unwrap()),
                        entry.text(field::ENTRY_TEXT).unwrap(),
                    );
                    assert_eq!(old, None, "interned twice");
                }
            }
        }
        for track in packet.messages(field::PACKET_TRACK) {
            let process = track
                .messages(field::TRACK_PROCESS)
                .iter()
                .find_map(|p| p.text(field::PROCESS_NAME));
            let name = process.or_else(|| track.text(field::TRACK_NAME)).unwrap();
            let parent = track
                .number(field::TRACK_PARENT)
                .map(|p| format!("{} > ", tracks[&p]))
                .unwrap_or_default();
            let unit = track
                .messages(field::TRACK_COUNTER)
                .iter()
                .find_map(|c| c.text(field::COUNTER_UNIT_NAME))
                .unwrap_or_default();
            let _ = writeln!(lines, "track {parent}{name} {unit}");
            tracks.insert(track.number(field::TRACK_UUID).unwrap(), name);
        }
        for event in packet.messages(field::PACKET_EVENT) {
            let track = &tracks[&event.number(field::EVENT_TRACK).unwrap()];
            let _ = write!(
                lines,
                "{:>6} {track}",
                packet.number(field::PACKET_TIMESTAMP).unwrap()
            );
            match event.number(field::EVENT_TYPE).unwrap() {
                SLICE_BEGIN => {
                    let name = &interned[&(
                        field::INTERNED_NAMES,
                        event.number(field::EVENT_NAME_IID).unwrap(),
                    )];
                    let category = &interned[&(
                        field::INTERNED_CATEGORIES,
                        event.number(field::EVENT_CATEGORY_IIDS).unwrap(),
                    )];
                    let _ = write!(lines, " begin {name} ({category})");
                    for annotation in event.messages(field::EVENT_ANNOTATIONS) {
                        let name = &interned[&(
                            field::INTERNED_ANNOTATION_NAMES,
                            annotation.number(field::ANNOTATION_NAME_IID).unwrap(),
                        )];
                        let number = annotation
                            .number(field::ANNOTATION_UINT)
                            .map(|n| n.to_string());
                        let string = annotation.number(field::ANNOTATION_STRING_IID);
                        let value = number.unwrap_or_else(|| {
                            interned[&(field::INTERNED_ANNOTATION_STRINGS, string.unwrap())].clone()
                        });
                        let _ = write!(lines, " {name}={value}");
                    }
                    for flow in event.numbers(field::EVENT_FLOWS) {
                        let _ = write!(lines, " →{flow}");
                    }
                    for flow in event.numbers(field::EVENT_ENDING_FLOWS) {
                        let _ = write!(lines, " {flow}→");
                    }
                }
                SLICE_END => lines.push_str(" end"),
                COUNTER => {
                    let _ = write!(
                        lines,
                        " {}",
                        event.number(field::EVENT_COUNTER_VALUE).unwrap()
                    );
                }
                other => panic!("event type {other}"),
            }
            lines.push('\n');
        }
    }
    lines
}

#[test]
fn a_viewer_reads_back_what_happened() {
    let program = example::pipeline();
    let outcome = chipless_sim::run(&chipless_sim::Verified::assume(&program), &mut TimingOnly);
    assert_eq!(outcome.end, Ok(()));
    let said = read(&trace("model.blob", &program, &outcome.timeline));
    let (events, counters): (Vec<&str>, Vec<&str>) =
        said.lines().partition(|l| !l.contains(" ddr "));
    insta::assert_snapshot!(events.join("\n"));
    // Three transfers of 4096 bytes at 32 GB/s after 100 ns: about 18 GB/s over their time, none in between.
    let values: Vec<u64> = counters
        .iter()
        .filter_map(|l| l.split(' ').next_back()?.parse().ok())
        .collect();
    assert_eq!(
        values.iter().filter(|v| **v == 0).count(),
        3,
        "{counters:?}"
    );
    assert_eq!(values.iter().max(), Some(&17965), "{counters:?}");
}

#[test]
fn tasks_of_several_servers_do_not_overlap_on_a_track() {
    let record = |start, end| Record {
        start: Time(start),
        end: Time(end),
        state: State::Done,
        ..Record::default()
    };
    let timeline = Timeline {
        tasks: [record(0, 10), record(0, 4), record(4, 9), record(9, 12)]
            .into_iter()
            .collect(),
        ..Timeline::default()
    };
    let tasks: Vec<TaskId> = timeline.tasks.indices().collect();
    let id = TaskId::from_raw;
    assert_eq!(
        lanes(&timeline, &tasks),
        [vec![id(0)], vec![id(1), id(2), id(3)]]
    );
}

#[test]
fn tasks_that_never_ran_leave_no_trace() {
    let program = example::forgetful();
    let outcome = chipless_sim::run(&chipless_sim::Verified::assume(&program), &mut TimingOnly);
    let said = read(&trace("model.blob", &program, &outcome.timeline));
    assert_eq!(said.matches(" begin ").count(), 4);
    assert!(!said.contains("dma0.cmx begin"), "{said}");
    let unstarted = trace(
        "model.blob",
        &program,
        &Timeline {
            tasks: vec![Record::default(); 5].into(),
            ..Timeline::default()
        },
    );
    assert_eq!(
        read(&unstarted),
        "track model.blob (npu) \ntrack model.blob (npu) > queues \n"
    );
}
