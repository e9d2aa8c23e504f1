//! Streams whose jobs follow those of others: prefill, decode, head.

use super::{MS, US, ideal, job, jobs};
use chipless_device::Status;

fn text(decode: &str, requests: u64) -> String {
    let stream = |name: &str, time: &str, arrivals: &str| {
        format!(
            "  - {{name: {name}, context: c, program: {{synthetic: {{tasks: [{{compute: {time}}}]}}}}, arrivals: {{{arrivals}}}}}\n"
        )
    };
    format!(
        "machine: npu4\nduration: 1s\ncontexts: {{c: {{process: 1}}}}\nstreams:\n{}{}{}",
        stream("prefill", "1ms", &format!("every: 10ms, count: {requests}")),
        stream("decode", "100us", decode),
        stream("head", "20us", "after: decode")
    )
}

#[test]
fn tokens_follow_each_other_through_decode_and_head() {
    let found = jobs(&text("after: [prefill, head], turns: 5", 3), &ideal());
    assert_eq!(found.len(), 3 * (1 + 5 + 5));
    for request in 0..3 {
        let start = request * 10 * MS;
        assert_eq!(job(&found, "prefill", request).done_ps, start + MS);
        for token in 0..5 {
            let index = request * 5 + token;
            let decode = job(&found, "decode", index);
            assert_eq!(decode.arrival_ps, start + MS + token * 120 * US);
            assert_eq!(
                job(&found, "head", index).done_ps,
                decode.arrival_ps + 120 * US
            );
        }
    }
}

#[test]
fn a_chain_of_two_goes_on_as_long_as_its_turns() {
    // Decode follows itself: the first from the prefill, each next from the last.
    let text = text("after: [prefill, decode], turns: 4", 1);
    let text = text.replace("after: decode}", "after: prefill}");
    let found = jobs(&text, &ideal());
    assert_eq!(found.iter().filter(|r| r.stream == "decode").count(), 4);
    assert_eq!(found.iter().filter(|r| r.stream == "head").count(), 1);
}

#[test]
fn what_is_aborted_starts_nothing() {
    let text = text("after: [prefill, head], turns: 5", 1);
    let text = text.replace("{process: 1}", "{process: 1, revoked: 1150us}");
    let found = jobs(&text, &ideal());
    // The second decode runs when the doorbell goes, and is done; its head comes too late, and no third token comes.
    let of = |name: &str| -> Vec<Status> {
        let found = found.iter().filter(|r| r.stream == name);
        found.map(|r| r.status).collect()
    };
    assert_eq!(of("decode"), [Status::Done; 2]);
    assert_eq!(of("head"), [Status::Done, Status::Aborted]);
}

#[test]
fn a_circle_that_nothing_counts_needs_a_duration() {
    let read = |decode: &str| {
        let text = text(decode, 1).replace("duration: 1s\n", "");
        chipless_device::read(&text, |_| Err(String::new()))
    };
    assert!(read("after: [prefill, head], turns: 5").is_ok());
    assert!(read("after: prefill").is_ok());
    let finding = read("after: [prefill, head]").expect_err("a circle");
    assert!(finding.message.contains("expected `duration`"), "{finding}");
}

#[test]
fn chains_that_make_no_sense_are_refused() {
    let refusals = [
        ("after: nothing", "one of `streams`"),
        ("after: []", "a stream at least"),
        ("every: 1ms, turns: 3", "beside `after`"),
        ("after: prefill, offset: 1ms", "beside `after`"),
        ("after: [prefill, head], turns: 0", "turns"),
    ];
    for (decode, expected) in refusals {
        let refused = |_: &str| Err(String::new());
        let finding = chipless_device::read(&text(decode, 1), refused).expect_err(decode);
        assert!(finding.message.contains(expected), "{decode}: {finding}");
    }
}
