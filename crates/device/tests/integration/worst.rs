//! Preemptions that cannot be waited for, and how long jobs of the realtime band take at worst.

use super::{MS, US, ideal, job, jobs, with_setup, workload};
use chipless_device::{Figures, Status, WorstCase, worst_cases};
use proptest::prelude::*;

const S: u64 = 1_000_000_000_000;

/// A batch job of these tasks on all tiles, one behind it, one beside it where there is room, and a realtime job that comes later.
fn text(tiles: u64, tasks: &str, offset: &str, extra: &str) -> String {
    let stream = |name: &str, tiles: u64, tasks: &str, arrivals: &str| {
        format!(
            "  - {{name: {name}, context: {name}, program: {{synthetic: {{tiles: {tiles}, tasks: [{tasks}]}}}}, arrivals: {arrivals}}}\n"
        )
    };
    format!(
        "machine: npu4\nduration: 10s\ncontexts: {{batch: {{process: 1}}, beside: {{process: 2}}, camera: {{process: 3, band: realtime}}, other: {{process: 4, band: realtime}}}}\nstreams:\n{}{}{extra}",
        stream("batch", tiles, tasks, "{in_flight: 2, count: 2}"),
        stream(
            "camera",
            6,
            "{compute: 3us}",
            &format!("{{every: 1s, count: 1, offset: {offset}}}")
        )
    )
}

fn figures() -> Figures {
    Figures {
        host_complete: 5 * US,
        doorbell_latency: US,
        preempt_save: 2 * US,
        preempt_timeout: 100 * MS,
        reset_time: 10 * MS,
        ..ideal()
    }
}

#[test]
fn what_does_not_drain_in_time_is_given_up_with_a_reset() {
    let beside = "  - {name: beside, context: beside, program: {synthetic: {tasks: [{compute: 1s}]}}, arrivals: {in_flight: 1, count: 1}}\n";
    let found = jobs(&text(5, "{compute: 3s}", "20ms", beside), &figures());
    let (beside, camera) = (job(&found, "beside", 0), job(&found, "camera", 0));
    // Both leave for the camera, and neither drains by 120 ms and a microsecond. The one that was asked first takes the engine down.
    let given_up = 120 * MS + US;
    assert_eq!(
        (beside.status, beside.end_ps),
        (Status::Timeout, Some(given_up))
    );
    // The other one has to leave behind the reset, and is saved; the camera comes then.
    assert_eq!(camera.start_ps, Some(given_up + 10 * MS + 2 * US));
    let batch = job(&found, "batch", 0);
    assert_eq!(batch.status, Status::Done);
    assert!(batch.done_ps > 3 * S + given_up, "{batch:?}");
}

#[test]
fn later_jobs_of_the_context_are_aborted() {
    let found = jobs(&text(6, "{compute: 3s}", "20ms", ""), &figures());
    assert_eq!(job(&found, "batch", 0).status, Status::Timeout);
    assert_eq!(job(&found, "batch", 1).status, Status::Aborted);
    assert_eq!(job(&found, "camera", 0).start_ps, Some(130 * MS + US));
}

#[test]
fn what_drains_in_time_is_preempted_as_ever() {
    let found = jobs(
        &text(6, "{compute: 50ms, repeat: 2}", "20ms", ""),
        &figures(),
    );
    assert_eq!(job(&found, "batch", 0).status, Status::Done);
    assert_eq!(job(&found, "batch", 0).preemptions.len(), 1);
    // With no time-out a task of three seconds is waited for.
    let patient = Figures {
        preempt_timeout: 0,
        ..figures()
    };
    let found = jobs(&text(6, "{compute: 3s}", "20ms", ""), &patient);
    assert_eq!(
        job(&found, "camera", 0).done_ps,
        3 * S + US + 3 * US + 5 * US + US + 5 * US - 6 * US
    );
}

fn worst(text: &str, figures: &Figures, alone: [u64; 3], camera: u64) -> WorstCase {
    let workload = workload(text);
    with_setup(&workload, alone, |setup| {
        let times = vec![Some(camera); setup.streams.len()];
        worst_cases(setup, figures, &times).remove(0)
    })
}

#[test]
fn the_worst_case_is_what_the_worst_arrival_takes() {
    let tasks = "{compute: 10us, repeat: 5}";
    let figures = figures();
    // A microsecond to the scheduler, three of work, five back; ten of drain and two of save.
    let case = worst(&text(6, tasks, "0us", ""), &figures, [50 * US; 3], 9 * US);
    assert_eq!((case.alone_ns, case.blocking_ns), (9e3, Some(12e3)));
    assert_eq!(
        (case.interference_ns, case.worst_ns),
        (Some(0.0), Some(21e3))
    );
    let took = |offset: u64| {
        let found = jobs(&text(6, tasks, &format!("{offset}ns"), ""), &figures);
        let camera = job(&found, "camera", 0);
        camera.done_ps - camera.arrival_ps
    };
    let longest = (0..60).map(|n| took(n * 1000 + 1)).max();
    // A nanosecond behind the start of a task.
    assert_eq!(longest, Some(21 * US - 1000));
}

#[test]
fn what_nothing_bounds_has_no_bound() {
    let never = "  - {name: other, context: other, program: {synthetic: {tiles: 6, tasks: [{compute: 1ms}]}}, arrivals: {in_flight: 1}}\n";
    let case = worst(
        &text(6, "{compute: 1ms}", "0us", never),
        &figures(),
        [MS; 3],
        9 * US,
    );
    assert_eq!(case.worst_ns, None);
    assert!(case.unbounded.is_some_and(|why| why.contains("other")));
    let hangs = Figures {
        preempt_timeout: 0,
        ..figures()
    };
    let case = worst(&text(6, "{hang: true}", "0us", ""), &hangs, [0; 3], 9 * US);
    assert!(
        case.unbounded
            .is_some_and(|why| why.contains("never drains"))
    );
    // With a time-out it is bounded: that, the reset, and a save.
    let case = worst(
        &text(6, "{hang: true}", "0us", ""),
        &figures(),
        [0; 3],
        9 * US,
    );
    assert_eq!(case.blocking_ns, Some(110_002e3));
}

proptest! {
    #![proptest_config(chipless_rounds::cases(48))]

    #[test]
    fn no_arrival_takes_longer_than_the_bound(
        task in 1u64..40, repeat in 1u64..6, offset in 0u64..200_000, period in 30u64..90, band in 1u64..20,
    ) {
        let other = format!(
            "  - {{name: other, context: other, program: {{synthetic: {{tiles: 4, tasks: [{{compute: {band}us}}]}}}}, arrivals: {{every: {period}us, count: 8}}}}\n"
        );
        let tasks = format!("{{compute: {task}us, repeat: {repeat}}}");
        let text = text(5, &tasks, &format!("{offset}ns"), &other);
        let figures = Figures { preempt_timeout: 0, ..figures() };
        let case = worst(&text, &figures, [band * US; 3], 9 * US);
        let found = jobs(&text, &figures);
        let camera = job(&found, "camera", 0);
        if let Some(worst) = case.worst_ns {
            prop_assert!((camera.done_ps - camera.arrival_ps) as f64 * 1e-3 <= worst, "{case:?} {camera:?}");
        }
    }
}
