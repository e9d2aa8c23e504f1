//! The ways to the device: doorbells that come and go, rows of the context map.

use super::{MS, US, ideal, job, jobs, with};
use chipless_device::{Figures, MapCounts, Status};

#[test]
fn pushes_wait_for_the_doorbell_and_end_with_it() {
    let text = "machine: npu4\ncontexts: {c: {process: 1, granted: 1ms, revoked: 3500us}}\nstreams:\n  - {name: s, context: c, program: {synthetic: {tasks: [{compute: 900us}]}}, arrivals: {every: 1ms, count: 6}}\n";
    let figures = Figures {
        doorbell_grant: 50 * US,
        host_retry: 100 * US,
        ..ideal()
    };
    let found = jobs(text, &figures);
    // Granted at 1.05 ms: the first is pushed when it is tried again at 1.1 ms, the second too.
    assert_eq!(job(&found, "s", 0).push_ps, Some(MS + 100 * US));
    let ends: Vec<(Status, u64)> = found.iter().map(|r| (r.status, r.done_ps)).collect();
    // The third runs when the doorbell goes, and ends; the fourth waits, and is aborted; the others come too late.
    let expected = [
        (Status::Done, 2 * MS),
        (Status::Done, 2 * MS + 900 * US),
        (Status::Aborted, 3 * MS + 500 * US),
        (Status::Done, 3 * MS + 800 * US),
        (Status::Aborted, 4 * MS),
        (Status::Aborted, 5 * MS),
    ];
    assert_eq!(ends, expected);
}

/// So many processes take turns on a device with room for one, three jobs each.
fn rows(processes: u32, rows: u64) -> (MapCounts, u64) {
    let mut text = "machine: npu4\ncontexts:\n".to_owned();
    for n in 0..processes {
        text.push_str(&format!("  c{n}: {{process: {n}}}\n"));
    }
    text.push_str("streams:\n");
    for n in 0..processes {
        text.push_str(&format!(
            "  - {{name: s{n}, context: c{n}, program: {{synthetic: {{tiles: 6, tasks: [{{compute: 10us}}]}}}}, arrivals: {{every: 1ms, count: 3, offset: {}us}}}}\n",
            20 * n
        ));
    }
    let figures = Figures {
        map_rows: rows,
        map_load: US,
        ..ideal()
    };
    let mut last = 0;
    let mut keep = |record: &chipless_device::Record| last = record.done_ps - record.arrival_ps;
    let counts = with(&text, &figures, Some(&mut keep), |s| s.map);
    (counts, last)
}

#[test]
fn a_process_without_a_row_loads_one() {
    // With a row for each, a load each; one short, the least recently used is always the next.
    let counts = |loads, evictions| MapCounts { loads, evictions };
    assert_eq!(rows(5, 5), (counts(5, 0), 10 * US));
    assert_eq!(rows(5, 4), (counts(15, 11), 11 * US));
}

#[test]
fn times_of_a_doorbell_are_in_order() {
    let text = "machine: npu4\ncontexts: {c: {process: 1, granted: 5ms, revoked: 5ms}}\nstreams:\n  - {name: s, context: c, program: {synthetic: {tasks: [{compute: 1us}]}}, arrivals: {in_flight: 1, count: 1}}\n";
    let finding = chipless_device::read(text, |_| Err(String::new())).expect_err("never granted");
    assert!(finding.message.contains("behind `granted`"), "{finding}");
}
