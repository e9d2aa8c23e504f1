//! Places, bands, turns, preemption, rings, failures.

use super::{MS, US, ideal, job, jobs, with};
use chipless_device::{Figures, Status};

/// Two contexts with these fields, a program each of so many tiles and these tasks, and their arrivals.
fn two(contexts: [&str; 2], tiles: u64, tasks: [&str; 2], arrivals: [&str; 2]) -> String {
    let stream = |name: &str, n: usize| {
        format!(
            "  - {{name: {name}, context: {name}, program: {{synthetic: {{tiles: {tiles}, tasks: [{}]}}}}, arrivals: {}}}\n",
            tasks[n], arrivals[n]
        )
    };
    format!(
        "machine: npu4\nduration: 10s\ncontexts:\n  a: {}\n  b: {}\nstreams:\n{}{}",
        contexts[0],
        contexts[1],
        stream("a", 0),
        stream("b", 1)
    )
}

const ONCE: &str = "{in_flight: 1, count: 1}";
const NORMAL: [&str; 2] = ["{process: 1}", "{process: 2}"];

#[test]
fn what_does_not_fit_waits() {
    let text = two(NORMAL, 4, ["{compute: 30us}", "{compute: 12us}"], [ONCE; 2]);
    let found = jobs(&text, &ideal());
    assert_eq!(job(&found, "a", 0).done_ps, 30 * US);
    assert_eq!(job(&found, "b", 0).done_ps, 42 * US);
    let text = two(NORMAL, 3, ["{compute: 30us}", "{compute: 12us}"], [ONCE; 2]);
    assert_eq!(job(&jobs(&text, &ideal()), "b", 0).done_ps, 12 * US);
}

#[test]
fn a_realtime_job_waits_for_tasks_in_flight_and_the_save() {
    let contexts = ["{process: 1}", "{process: 2, band: realtime}"];
    let text = two(
        contexts,
        6,
        ["{compute: 10us, repeat: 5}", "{compute: 3us}"],
        [ONCE, "{in_flight: 1, count: 1, offset: 14us}"],
    );
    let figures = Figures {
        doorbell_latency: US,
        preempt_save: 2 * US,
        preempt_restore: 4 * US,
        host_complete: 5 * US,
        ..ideal()
    };
    let found = jobs(&text, &figures);
    // Both jobs take a microsecond to the scheduler. Tasks end at 11, 21, …; the request comes at 15.
    let (a, b) = (job(&found, "a", 0), job(&found, "b", 0));
    assert_eq!(b.start_ps, Some(23 * US));
    assert_eq!(a.done_ps, (1 + 50 + 2 + 3 + 4 + 5) * US);
    let p = &a.preemptions[0];
    let times = (
        p.request_ps,
        p.drain_ps,
        p.save_ps,
        p.resume_ps,
        p.by.as_str(),
    );
    assert_eq!(times, (15 * US, 6 * US, 2 * US, Some(30 * US), "b"));
    let b = &a.breakdown_ps;
    assert_eq!(b.save_restore, 6 * US as i64);
    // How long the program takes alone is not told here, so what it ran counts as waiting.
    assert_eq!((b.execution, b.preempted), (0, (3 + 50) * US as i64));
    assert_eq!(b.parts().iter().sum::<i64>(), a.done_ps as i64);
}

#[test]
fn a_task_that_would_start_at_the_request_does_not() {
    let contexts = ["{process: 1}", "{process: 2, band: realtime}"];
    let text = two(
        contexts,
        6,
        ["{compute: 10us, repeat: 5}", "{compute: 3us}"],
        [ONCE, "{in_flight: 1, count: 1, offset: 20us}"],
    );
    let found = jobs(&text, &ideal());
    assert_eq!(job(&found, "b", 0).start_ps, Some(20 * US));
    assert_eq!(job(&found, "a", 0).done_ps, 53 * US);
}

#[test]
fn processes_of_a_band_take_turns() {
    let tasks = "{compute: 2ms, repeat: 50}";
    let figures = Figures {
        quantum: [30 * MS; 4],
        process_grace: [5 * MS; 4],
        ..ideal()
    };
    let found = jobs(&two(NORMAL, 6, [tasks; 2], [ONCE; 2]), &figures);
    // Turns of 30 ms, 5 ms more, and the task in flight: 36 ms.
    assert_eq!(
        (job(&found, "a", 0).done_ps, job(&found, "b", 0).done_ps),
        (172 * MS, 200 * MS)
    );
    let turns = "{in_flight: 2, count: 100}";
    let found = jobs(
        &two(NORMAL, 6, ["{compute: 700us}"; 2], [turns; 2]),
        &figures,
    );
    let order: String = found.iter().take(129).map(|r| r.stream.as_str()).collect();
    assert_eq!(
        order,
        ["a".repeat(43), "b".repeat(43), "a".repeat(43)].concat()
    );
}

#[test]
fn the_normal_band_has_its_part_of_the_time() {
    let contexts = ["{process: 1, band: focus}", "{process: 2}"];
    let tasks = "{compute: 100us, repeat: 10}";
    for (percentage, figures) in [10.0, 25.0].map(|p| {
        let figures = Figures {
            normal_percentage: p,
            quantum: [30 * MS; 4],
            grace: [0, 5 * MS, 5 * MS, 0],
            process_grace: [5 * MS; 4],
            ..ideal()
        };
        (p, figures)
    }) {
        let found = jobs(
            &two(contexts, 6, [tasks; 2], ["{in_flight: 2}"; 2]),
            &figures,
        );
        let normal = found.iter().filter(|r| r.stream == "b").count() as f64;
        let part = normal / found.len() as f64 * 100.0;
        assert!(
            (part - percentage).abs() < 1.0,
            "{part} %, {percentage} % expected"
        );
    }
}

#[test]
fn a_full_ring_refuses() {
    let text = two(
        NORMAL,
        6,
        ["{compute: 1050us}", "{compute: 1ps}"],
        [
            "{in_flight: 63, count: 63}",
            "{every: 1s, offset: 1s, count: 1}",
        ],
    );
    let found = jobs(&text, &ideal());
    let last = job(&found, "a", 62);
    assert_eq!(
        (last.push_ps, last.breakdown_ps.ring),
        (Some(1100 * US), 1100 * US as i64)
    );
    assert_eq!(job(&found, "a", 61).push_ps, Some(0));
    let figures = Figures {
        host_retry_limit: MS,
        ..ideal()
    };
    let found = jobs(&text, &figures);
    assert_eq!(job(&found, "a", 62).status, Status::Rejected);
}

#[test]
fn a_hang_costs_the_others_a_reset_and_nothing_else() {
    let text = two(
        NORMAL,
        1,
        ["{compute: 30us}, {hang: true}", "{compute: 2ms}"],
        [ONCE; 2],
    );
    let figures = Figures {
        watchdog_timeout: 700 * US,
        reset_time: 90 * US,
        ..ideal()
    };
    let found = jobs(&text, &figures);
    let (a, b) = (job(&found, "a", 0), job(&found, "b", 0));
    assert_eq!((a.status, a.end_ps), (Status::Hang, Some(730 * US)));
    assert_eq!(
        (b.status, b.done_ps),
        (Status::Done, 730 * US + 90 * US + 2 * MS)
    );
}

#[test]
fn random_arrivals_wait_as_queueing_theory_says() {
    let text = "machine: npu4\nseed: 7\ncontexts: {c: {process: 1}}\nstreams:\n  - {name: s, context: c, \
                program: {synthetic: {tasks: [{compute: 1ms}]}}, arrivals: {poisson: 600/s, count: 300000}}\n";
    let mean = with(text, &ideal(), None, |found| found.mean(0) / 1e9);
    let expected = 1.0 + 0.6 / 2.0 / 0.4;
    assert!(
        (mean / expected - 1.0).abs() < 0.02,
        "{mean} ms, {expected} ms expected"
    );
}
