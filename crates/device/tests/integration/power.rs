//! Clocks and energy against predictions by hand.

use super::{MS, US, ideal, job, jobs, with};
use chipless_device::{Energy, Figures, Governor, PowerFigures};

/// Half the clock at the efficient point, a quarter at the least; a change takes 10 µs.
fn figures(governor: Governor) -> Figures {
    Figures {
        power: PowerFigures {
            governor,
            clock: [50.0, 25.0],
            voltage: [80.0, 60.0],
            change: 10 * US,
            leakage: 1.0,
            asleep: 0.1,
            tile: 2.0,
            ..PowerFigures::default()
        },
        ..ideal()
    }
}

fn text(more: &str, arrivals: &str) -> String {
    format!(
        "machine: npu4\ncontexts: {{c: {{process: 1}}}}\nstreams:\n  - {{name: s, context: c, program: {{synthetic: {{tiles: 3, tasks: [{{compute: 1ms}}]}}}}, {more}arrivals: {arrivals}}}\n"
    )
}

fn close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-9 * expected.abs(),
        "{found} is not {expected}"
    );
}

fn energy(text: &str, figures: &Figures) -> Energy {
    with(text, figures, None, |s| s.energy)
}

#[test]
fn a_slower_clock_takes_longer_and_less_energy() {
    let one = text("", "{in_flight: 1, count: 1}");
    let cases = [
        (Governor::Full, MS, 1.0, 1.0),
        (Governor::Efficient, 2 * MS, 0.8, 0.5),
        (Governor::Least, 4 * MS, 0.6, 0.25),
    ];
    for (governor, time, volts, clock) in cases {
        let figures = figures(governor);
        assert_eq!(job(&jobs(&one, &figures), "s", 0).done_ps, time);
        let found = energy(&one, &figures);
        let seconds = time as f64 * 1e-12;
        close(found.tiles_j, 3.0 * 2.0 * clock * volts * volts * seconds);
        close(found.leakage_j, volts * seconds);
        close(found.total_j, found.tiles_j + found.leakage_j);
        close(found.energy_delay_js, found.total_j * seconds);
        close(found.mean_w * seconds, found.total_j);
    }
}

#[test]
fn transfers_keep_their_time() {
    let one = "machine: npu4\ncontexts: {c: {process: 1}}\nstreams:\n  - {name: s, context: c, program: {synthetic: {tasks: [{transfer: 1MB, path: [ddr]}]}}, arrivals: {in_flight: 1, count: 1}}\n";
    let mut figures = figures(Governor::Least);
    figures.bandwidth[8] = 10e9;
    figures.power.ddr_byte = 40.0;
    assert_eq!(job(&jobs(one, &figures), "s", 0).done_ps, 100 * US);
    // A megabyte at 40 pJ each.
    close(energy(one, &figures).ddr_j, 40e-6);
}

#[test]
fn on_demand_the_first_job_behind_a_pause_waits_for_the_clock() {
    let figures = figures(Governor::OnDemand);
    let two = text("", "{every: 3ms, count: 2}");
    let found = jobs(&two, &figures);
    assert_eq!(job(&found, "s", 0).done_ps, MS + 10 * US);
    assert_eq!(job(&found, "s", 1).done_ps, 4 * MS + 10 * US);
    assert_eq!(job(&found, "s", 1).breakdown_ps.firmware, (10 * US) as i64);
    // Full voltage for two milliseconds and two changes, the least one for the pause.
    let at_full = 2.0 * 1.01e-3;
    close(
        energy(&two, &figures).leakage_j,
        at_full + 0.6 * (4.01e-3 - at_full),
    );
    // Without a pause there is one change.
    let busy = text("", "{in_flight: 2, count: 2}");
    assert_eq!(
        job(&jobs(&busy, &figures), "s", 1).done_ps,
        2 * MS + 10 * US
    );
}

#[test]
fn by_deadline_a_job_gets_the_least_clock_that_keeps_it() {
    let done = |deadline: &str| {
        let one = text(
            &format!("deadline: {deadline}, "),
            "{in_flight: 1, count: 1}",
        );
        job(&with_alone(&one, &figures(Governor::Deadline)), "s", 0).done_ps
    };
    assert_eq!(done("5ms"), 4 * MS + 10 * US);
    assert_eq!(done("4ms"), 2 * MS + 10 * US);
    assert_eq!(done("2ms"), MS);
    // What cannot be kept is missed at the full clock.
    assert_eq!(done("100us"), MS);
}

/// With the times of a program that computes for a millisecond.
fn with_alone(text: &str, figures: &Figures) -> Vec<chipless_device::Record> {
    let mut records = Vec::new();
    let mut keep = |record: &chipless_device::Record| records.push(record.clone());
    super::with_times(text, figures, [MS, 2 * MS, 4 * MS], Some(&mut keep), |_| ());
    records
}

#[test]
fn a_throttle_slows_the_jobs_that_begin_in_its_part() {
    let mut figures = figures(Governor::Full);
    (figures.power.thermal_period, figures.power.thermal_duty) = (10 * MS, 50.0);
    figures.power.change = 0;
    let found = jobs(&text("", "{every: 5ms, count: 4}"), &figures);
    let took: Vec<u64> = found.iter().map(|r| r.done_ps - r.arrival_ps).collect();
    assert_eq!(took, [MS, 4 * MS, MS, 4 * MS]);
}

#[test]
fn asleep_it_leaks_less() {
    let mut figures = figures(Governor::Full);
    (figures.power.enabled, figures.power.idle) = (true, MS);
    // Two jobs of 1 ms, 10 ms apart: awake for 3 ms, asleep for 8.
    let found = energy(&text("", "{every: 10ms, count: 2}"), &figures);
    close(found.leakage_j, 3e-3);
    close(found.asleep_j, 0.1 * 8e-3);
}

#[test]
fn nothing_is_used_behind_the_last_job() {
    // A push that was refused could have been given up two seconds later. Both jobs are done after two milliseconds.
    let figures = Figures {
        ring_jobs: 1,
        ..figures(Governor::Full)
    };
    let found = energy(&text("", "{in_flight: 2, count: 2}"), &figures);
    close(found.tiles_j, 2.0 * 3.0 * 2e-3);
    close(found.leakage_j, 2e-3);
    close(found.mean_w, found.total_j / 2e-3);
}
