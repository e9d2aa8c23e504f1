//! FIFOs that work is pushed into, against predictions by hand.

use super::{US, ideal, job, jobs, with};
use chipless_device::{FifoCounts, Figures, Record, Status};

fn workload(contexts: &str, streams: &[(&str, &str, &str)]) -> String {
    let mut text = format!("machine: npu4\ncontexts: {{{contexts}}}\nstreams:\n");
    for (name, arrivals, tasks) in streams {
        text.push_str(&format!(
            "  - {{name: {name}, context: {name}, program: {{synthetic: {{tiles: 2, {tasks}}}}}, arrivals: {{{arrivals}}}}}\n"
        ));
    }
    text
}

const ONCE: &str = "in_flight: 1, count: 1";

fn one(tasks: &str) -> String {
    workload("s: {process: 1}", &[("s", ONCE, tasks)])
}

/// Ends of the tasks of a job, in microseconds.
fn ends(record: &Record) -> Vec<u64> {
    let tasks = record.tasks.iter().flatten();
    tasks.map(|(_, end)| *end / US).collect()
}

fn with_rate(rate: f64) -> Figures {
    Figures {
        bandwidth: [rate; 9],
        ..ideal()
    }
}

#[test]
fn a_work_fifo_holds_so_many_pointers_and_its_writer_waits() {
    let text = one("tasks: [{queue: w, enqueue: 3us, fifo: shave, number: 1, repeat: 5}]");
    // Two entries, whether a FIFO has them or a block divides as many for each of its FIFOs among them.
    for (entries, divided) in [(2, false), (32, true)] {
        let figures = Figures {
            fifo_entries: [1, 1, 1, entries],
            fifo_divided: divided,
            ..ideal()
        };
        let found = jobs(&text, &figures);
        assert_eq!(ends(job(&found, "s", 0)), [0, 0, 3, 6, 9]);
        assert_eq!(job(&found, "s", 0).done_ps, 15 * US);
        let counts = with(&text, &figures, None, |s| s.fifos[4]);
        let expected = FifoCounts {
            writes: 5,
            waits: 3,
            waited: 9 * US,
            deepest: 2,
        };
        assert_eq!(counts, expected);
    }
}

#[test]
fn the_scheduler_cpu_writes_one_entry_after_another_and_dmas_side_by_side() {
    let ends_with = |writer: &str| {
        let text = one(&format!(
            "tasks: [{{queue: a, enqueue: 1ps, fifo: dpu, number: 0, writer: {writer}, repeat: 2}}, {{queue: b, enqueue: 1ps, fifo: dpu, number: 1, writer: {writer}, repeat: 2}}]"
        ));
        let figures = Figures {
            fifo_write: [US, 2 * US],
            ..ideal()
        };
        ends(job(&jobs(&text, &figures), "s", 0))
    };
    assert_eq!(ends_with("cpu"), [1, 3, 2, 4]);
    assert_eq!(ends_with("dma"), [2, 4, 2, 4]);
}

const TWO: &str = "a: {process: 1}, b: {process: 2}";

#[test]
fn a_shared_link_agent_does_the_lists_of_all_contexts_in_the_order_of_their_pushes() {
    let push = |name, group: u32, shared: bool| {
        let tasks = format!(
            "tasks: [{{push: 1MB, link_agent: 3, shared: {shared}, path: [group{group}], repeat: 3}}]"
        );
        (name, tasks)
    };
    let done = |shared: bool, entries: u64| {
        let all = [push("a", 0, shared), push("b", 1, shared)];
        let streams = all.each_ref().map(|(name, tasks)| (*name, ONCE, &**tasks));
        let figures = Figures {
            agent_entries: entries,
            ..with_rate(10e9)
        };
        let found = jobs(&workload(TWO, &streams), &figures);
        ["a", "b"].map(|name| job(&found, name, 0).done_ps / US)
    };
    // Each has a group to itself: side by side with agents of their own, one behind the other with one agent.
    assert_eq!(done(false, 8), [300, 300]);
    assert_eq!(done(true, 8), [300, 600]);
    // With one entry, b's first push waits before a's third does.
    assert_eq!(done(true, 1), [400, 600]);
}

#[test]
fn a_context_that_faults_leaves_its_entries_and_others_go_on() {
    let text = workload(
        TWO,
        &[
            (
                "a",
                ONCE,
                "maps: [{base: 0x80000000, size: 4KiB}], tasks: [{push: 1MB, link_agent: 0, shared: true, path: [group0]}, {push: 4KiB, link_agent: 0, shared: true, path: [group0], address: 0x90000000, repeat: 3}]",
            ),
            (
                "b",
                ONCE,
                "tasks: [{push: 1MB, link_agent: 0, shared: true, path: [group0]}]",
            ),
        ],
    );
    let figures = Figures {
        mmu_enabled: true,
        ..with_rate(10e9)
    };
    let found = jobs(&text, &figures);
    let (a, b) = (job(&found, "a", 0), job(&found, "b", 0));
    assert_eq!((a.status, a.done_ps), (Status::Fault, 100 * US));
    assert_eq!((b.status, b.done_ps), (Status::Done, 200 * US));
}

#[test]
fn a_job_that_must_leave_takes_back_what_waits_and_waits_for_what_has_entered() {
    let text = workload(
        "low: {process: 1, band: idle}, high: {process: 2, band: realtime}",
        &[
            (
                "low",
                ONCE,
                "tasks: [{enqueue: 10us, fifo: dpu, writer: cpu, repeat: 4}]",
            ),
            (
                "high",
                "every: 1s, count: 1, offset: 15us",
                "tasks: [{compute: 5us}]",
            ),
        ],
    );
    let figures = Figures {
        nn_slots: 1,
        fifo_entries: [2, 1, 1, 1],
        fifo_write: [US, US],
        ..ideal()
    };
    let found = jobs(&text, &figures);
    // Entries are written at 1, 2 and, in room made at 11, at 11 µs; the fourth, written at 12 µs, waits. Asked to leave at 15 µs, the job
    // drains the second and third until 31 µs. It comes back at 36 µs, writes the fourth again and ends 10 µs after that.
    assert_eq!(job(&found, "high", 0).start_ps, Some(31 * US));
    assert_eq!(job(&found, "low", 0).done_ps, (36 + 1 + 10) * US);
    assert_eq!(ends(job(&found, "low", 0)), [1, 2, 11, 37]);
}
