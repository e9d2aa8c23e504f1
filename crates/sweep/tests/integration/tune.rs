//! Machines explored: spaces in, files out.

use super::{bytes, column, numbers, request};
use chipless::disk::Disk;
use chipless_report::tables::Values;
use chipless_sweep::tune::{Space, carry, run};
use chipless_sweep::{Carried, Request, Results, Shard};
use std::sync::Mutex;

fn network() -> String {
    super::fixture("schedule/small.onnx")
}

/// A space whose name stands beside the fixtures' machine.
fn space(rest: &str) -> Result<Space, chipless::Failure> {
    let name = super::fixture("schedule/space.yaml");
    Space::read(&name, &format!("version: 1\nbase: mesh2x2.json\n{rest}"))
}

/// 2 × 2 × 3 machines, one kind of which is too small for the network's buffers.
fn grid() -> Space {
    space(
        "machine:\n  mesh: [2x2, [4, 2]]\n  dram.bytes_per_cycle: [2, 16]\n  l2.bytes: {from: 16384, to: 65536, steps: 3, scale: log}\n\
         schedule: {trees: 20}\nfront: [latency_ns, energy_pj, cost_usd]\n",
    )
    .unwrap()
}

fn tuned(space: &Space, request: &Request<'_>) -> Results {
    run(space, &[network()], Disk, request).unwrap()
}

fn refused(rest: &str) -> String {
    let made =
        space(rest).and_then(|space| run(&space, &[network()], Disk, &request(Shard::WHOLE)));
    made.map(|results| results.rows()).unwrap_err().to_string()
}

#[test]
fn each_machine_is_scheduled_for_and_the_front_is_that_of_all_pairs() {
    let results = tuned(&grid(), &request(Shard::WHOLE));
    assert_eq!((results.rows(), results.failed()), (12, 0));
    let names = ["latency_ns", "energy_pj", "cost_usd"];
    let points: Vec<Vec<f64>> = (0..12)
        .map(|row| names.map(|name| numbers(&results, name)[row]).to_vec())
        .collect();
    let beats = |a: &[f64], b: &[f64]| a != b && a.iter().zip(b).all(|(x, y)| x <= y);
    let expected: Vec<bool> = points
        .iter()
        .map(|point| !points.iter().any(|other| beats(other, point)))
        .collect();
    assert!(expected.contains(&true) && expected.contains(&false));
    let Values::Flag(flags) = column(&results, "front") else {
        panic!("a flag")
    };
    assert_eq!(*flags, expected);
    let Values::Text(meshes) = column(&results, "mesh") else {
        panic!("text")
    };
    assert_eq!((&*meshes[0], &*meshes[11]), ("2x2", "4x2"));
    // Eight times the bandwidth of DRAM is never slower here, and never cheaper.
    let (latency, cost) = (
        numbers(&results, "latency_ns"),
        numbers(&results, "cost_usd"),
    );
    for row in (0..12).filter(|row| row % 6 < 3) {
        assert!(latency[row + 3] <= latency[row]);
        assert!(cost[row + 3] > cost[row]);
    }
    let edp = numbers(&results, "edp");
    assert!((edp[5] / (points[5][0] * points[5][1]) - 1.0).abs() < 1e-12);
}

/// Few trees find schedules of all qualities: that of the base machine counts as well.
#[test]
fn more_bandwidth_is_never_worse_by_luck() {
    for seed in 1..=6 {
        let of = |rate: u32| {
            let text = format!(
                "machine: {{dram.bytes_per_cycle: {rate}}}\nschedule: {{trees: 5, seed: {seed}, objective: delay}}\n"
            );
            numbers(
                &tuned(&space(&text).unwrap(), &request(Shard::WHOLE)),
                "latency_ns",
            )[0]
        };
        let (base, more) = (of(4), of(64));
        assert!(more <= base, "seed {seed}: {more} beside {base}");
    }
}

#[test]
fn a_point_is_what_schedule_finds() {
    use chipless_schedule::{emit, machine::Machine, reading::Reading, search};
    let space = space("machine: {dram.bytes_per_cycle: 8}\nschedule: {trees: 300, seed: 7}\n");
    let results = tuned(&space.unwrap(), &request(Shard::WHOLE));
    let text = std::fs::read_to_string(super::fixture("schedule/mesh2x2.json")).unwrap();
    let (mut machine, _) = Machine::read(&text).unwrap();
    machine.dram.0 = 8.0;
    let reading = Reading {
        batch: 1,
        precision: None,
        shapes: std::collections::BTreeMap::default(),
    };
    let front = reading
        .read(&std::fs::read(network()).unwrap(), &|_| None)
        .unwrap()
        .front;
    let written = emit::Written::of(&front, 1, false).unwrap();
    let options = search::Options {
        batch: 1,
        objective: chipless_schedule::model::Objective::Edp,
        seconds: None,
        trees: Some(300),
        seed: 7,
        threads: 2,
        latest: None,
        one_pass: false,
    };
    let never = std::sync::atomic::AtomicBool::new(false);
    let searched = emit::searched(
        &written,
        (&front.network, &machine),
        &options,
        &never,
        &mut |_| {},
    );
    let (energy, cycles) = searched.unwrap().1.replay;
    assert_eq!(numbers(&results, "energy_pj"), [energy]);
    assert_eq!(numbers(&results, "latency_ns"), [cycles as f64]);
}

#[test]
fn shards_merge_to_the_file_of_one_machine_and_files_can_be_carried() {
    let space = grid();
    let whole = tuned(&space, &request(Shard::WHOLE));
    let shard = |index| {
        let contents = carry(&space, &[network()], Disk).unwrap();
        let shard = Shard { index, count: 3 };
        let made = run(
            &space,
            &[network()],
            Carried::new(contents),
            &request(shard),
        )
        .unwrap();
        let name = format!("shard {index}");
        let read = Results::read(&name, &bytes(&made)).unwrap();
        (name, read)
    };
    let merged = Results::merge(vec![shard(3), shard(1), shard(2)]).unwrap();
    assert!(bytes(&merged) == bytes(&whole));
}

/// A journal that was cut at any line, as a kill leaves it, leads to the same file, and the best so far never gets worse.
#[test]
fn a_killed_search_goes_on_and_the_best_never_gets_worse() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("front.parquet");
    let journal = folder.path().join("front.parquet.journal");
    let space = grid();
    let said = Mutex::new(Vec::new());
    let progress = |done: u64, total: u64, best: &str| {
        said.lock().unwrap().push((done, total, best.to_owned()));
    };
    let with_journal = || Request {
        journal: Some(&output),
        progress: Some(&progress),
        ..request(Shard::WHOLE)
    };
    let whole = bytes(&tuned(&space, &with_journal()));
    let lines = std::fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = lines.split_inclusive('\n').collect();
    std::fs::write(&journal, lines[..6].concat() + "{\"run\": 7, \"sta").unwrap();
    let before = said.lock().unwrap().len();
    assert!(bytes(&tuned(&space, &with_journal())) == whole);
    let said = said.into_inner().unwrap();
    assert_eq!((before, said.len()), (12, 19));
    for half in [&said[..12], &said[12..]] {
        let best = half.iter().map(|(_, _, best)| {
            let number = best.strip_prefix("best edp: small ").unwrap();
            number.parse::<f64>().unwrap()
        });
        let best: Vec<f64> = best.collect();
        assert!(best.is_sorted_by(|a, b| a >= b), "{best:?}");
    }
    assert_eq!(said[12].0, 6);
}

#[test]
fn machines_that_do_not_work_are_rows() {
    let space =
        space("machine: {mesh: [2x2, 3x2], l2.bytes: [16, 65536]}\nschedule: {trees: 20}\n");
    let results = tuned(&space.unwrap(), &request(Shard::WHOLE));
    assert_eq!((results.rows(), results.failed()), (4, 3));
    let Values::Text(messages) = column(&results, "message") else {
        panic!("text")
    };
    assert!(messages[0].contains("bytes"), "{messages:?}");
    assert!(messages[1].is_empty());
    assert!(messages[3].contains("`stride` is 2"), "{messages:?}");
    let front = results.pareto().unwrap();
    assert_eq!(front.rows().collect::<Vec<_>>(), [1]);
}

#[test]
fn what_is_wrong_with_a_space_is_said_with_its_line_before_anything_runs() {
    let errors = [
        "machine: {dram.bytes: [1, 2]}\n",
        "machine: {drum.bytes_per_cycle: 4}\n",
        "machine: {mesh: [4, 4]}\n",
        "machine: {l2.bytes: many}\n",
        "machine: {l2: 4}\n",
        "machine: {l2.bytes: {from: 1, to: 9}}\n",
        "schedule: {tree: 100}\n",
        "schedule: {objective: speed}\n",
        "price: {process: 3nm}\n",
        "front: [latency_ns]\n",
        "front: [latency_ns, area]\n",
        "mesh: 4x4\n",
    ];
    let said: Vec<String> = errors
        .iter()
        .map(|rest| {
            let said = refused(rest);
            let at = said.find("space.yaml").unwrap_or_default();
            said[at..].to_owned()
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}
