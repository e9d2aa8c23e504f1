use super::*;
use crate::example;
use chipless_sim::{TimingOnly, Verified};

#[test]
fn waits_add_up_and_the_critical_path_is_one_chain() {
    let program = example::pipeline();
    let timeline = chipless_sim::run(&Verified::assume(&program), &mut TimingOnly).timeline;
    let attribution = Attribution::of(&program, &timeline);
    assert_eq!(attribution.rows.len(), program.tasks.len());
    for row in &attribution.rows {
        let free = row.before.map_or(Time::ZERO, |b| timeline.tasks[b].end);
        assert_eq!(
            row.waited,
            row.start - free,
            "{}",
            program.task_name(row.task)
        );
        let parts = row.waits.iter().map(|w| (w.end - w.start).0).sum::<u64>();
        assert_eq!(parts, row.waited.0, "{}", program.task_name(row.task));
        assert!(row.alone <= row.end - row.start);
    }
    let mut at = Time::ZERO;
    for task in &attribution.critical {
        let row = attribution.row(*task).unwrap();
        assert_eq!(
            row.start,
            at,
            "{} starts where the path is",
            program.task_name(*task)
        );
        at = row.end;
    }
    assert_eq!(at, timeline.end);
}

/// A task that ends later by its slack, and one that ends later by a little more: the run grows only then.
#[test]
fn slack_is_how_much_later_a_task_may_end() {
    for make in [example::pipeline, example::tied] {
        let program = make();
        let timeline = chipless_sim::run(&Verified::assume(&program), &mut TimingOnly).timeline;
        let attribution = Attribution::of(&program, &timeline);
        let slack = attribution.slack(&program, &timeline);
        for (row, slack) in attribution.rows.iter().zip(slack) {
            let longer = |by: Time| {
                let mut program = make();
                program.tasks[row.task].fixed += by;
                chipless_sim::run(&Verified::assume(&program), &mut TimingOnly)
                    .timeline
                    .end
            };
            let name = program.task_name(row.task);
            assert_eq!(longer(slack), timeline.end, "{name}");
            assert!(longer(slack + Time::from_ns(1.0)) > timeline.end, "{name}");
        }
    }
}

#[test]
fn bytes_that_are_changed_in_place_live_once() {
    let program = example::in_place();
    let timeline = chipless_sim::run(&Verified::assume(&program), &mut TimingOnly).timeline;
    for peak in lives(&program, &timeline).peaks() {
        assert_eq!(peak, 4096);
    }
}
