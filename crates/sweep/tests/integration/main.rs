//! Sweeps through the public door: plans in, files out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod tune;

use chipless::disk::{Disk, matching};
use chipless_report::tables::{Form, Values};
use chipless_sweep::{Carried, Plan, Progress, Request, Results, Shard, carry, pareto, run};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn fixture(name: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/");
    format!("{root}{name}")
}

fn plan(text: &str) -> Plan {
    Plan::read("plan.yaml", text, &matching).unwrap()
}

fn refused(text: &str) -> String {
    let read = Plan::read("plan.yaml", text, &matching);
    read.and_then(|plan| sweep(&plan, &request(Shard::WHOLE)))
        .map(|results| results.rows())
        .unwrap_err()
        .to_string()
}

fn request<'r>(shard: Shard) -> Request<'r> {
    Request {
        shard,
        jobs: 2,
        journal: None,
        restart: false,
        progress: None,
    }
}

fn sweep(plan: &Plan, request: &Request<'_>) -> Result<Results, chipless::Failure> {
    run(plan, Disk, request)
}

fn bytes(results: &Results) -> Vec<u8> {
    results.write(Form::Parquet)
}

/// Two programs on 3 × 4 machines.
fn grid() -> Plan {
    plan(&format!(
        "version: 1\nprograms: [{}, {}]\nmachine:\n  dma.latency: [510, 1000.5, 1625]\n  clock.dpu: {{from: 900, to: 1850, steps: 4, scale: log}}\n\
         options: {{timing_only: true}}\ncolumns: [latency_ns, moved_bytes, queues.dpu0.busy_ns]\n",
        fixture("npu/add/program.blob"),
        fixture("npu/resblock/program.blob")
    ))
}

fn column<'r>(results: &'r Results, name: &str) -> &'r Values {
    &results.columns().find(|c| c.name == name).unwrap().values
}

fn numbers(results: &Results, name: &str) -> Vec<f64> {
    match column(results, name) {
        Values::OptionalNumber(v) => v.iter().map(|n| n.unwrap_or(f64::NAN)).collect(),
        Values::Time(v) => v.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_grid_has_a_row_for_each_run_that_equals_a_single_run() {
    let results = sweep(&grid(), &request(Shard::WHOLE)).unwrap();
    let names: Vec<_> = results.columns().map(|c| c.name.to_string()).collect();
    assert_eq!(
        names,
        [
            "run",
            "program",
            "dma.latency",
            "clock.dpu",
            "status",
            "message",
            "latency_ns",
            "moved_bytes",
            "queues.dpu0.busy_ns"
        ]
    );
    assert_eq!((results.rows(), results.failed()), (24, 0));
    let (latency, dma) = (
        numbers(&results, "latency_ns"),
        numbers(&results, "dma.latency"),
    );
    let clock = numbers(&results, "clock.dpu");
    let path = fixture("npu/resblock/program.blob");
    for row in [12, 17, 23] {
        let mut options = chipless::Options::with_files(Disk);
        options
            .set("set", format!("dma.latency={}", dma[row]))
            .unwrap();
        options
            .set("set", format!("clock.dpu={}", clock[row]))
            .unwrap();
        let file = Box::new(chipless::disk::open(Path::new(&path)).unwrap());
        let kept = chipless::KeptDocument::open(path.clone(), file, None, options).unwrap();
        let ran = kept.lower().unwrap().time().unwrap();
        let again = ran.report().report().latency_ns;
        assert!(again.total_cmp(&latency[row]).is_eq(), "{row}");
    }
}

#[test]
fn shards_in_any_order_make_the_same_file_as_one_machine() {
    let plan = grid();
    let whole = bytes(&sweep(&plan, &request(Shard::WHOLE)).unwrap());
    let shard = |index| {
        let results = sweep(&plan, &request(Shard { index, count: 5 })).unwrap();
        let name = format!("{index}.parquet");
        let read = Results::read(&name, &bytes(&results)).unwrap();
        (name, read)
    };
    let merged = Results::merge([3, 1, 5, 2, 4].map(shard).into()).unwrap();
    assert_eq!(bytes(&merged), whole);
    let missing = Results::merge([3, 1, 5].map(shard).into()).err().unwrap();
    assert!(
        missing.to_string().contains("missing 2/5, 4/5"),
        "{missing}"
    );
    let twice = Results::merge([3, 3].map(shard).into()).err().unwrap();
    assert!(twice.to_string().contains("3/5 twice"), "{twice}");
    assert!(Results::read("x", b"PAR1 nonsense").is_err());
}

/// A journal that was cut at any byte, as a kill leaves it, leads to the same results.
#[test]
fn a_sweep_goes_on_where_it_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let output: PathBuf = folder.path().join("results.parquet");
    let journal = folder.path().join("results.parquet.journal");
    let plan = grid();
    let done = AtomicU64::new(0);
    let count = |_: u64, _: u64, _: &str| {
        done.fetch_add(1, Ordering::Relaxed);
    };
    let progress: Progress<'_> = &count;
    let with_journal = || Request {
        journal: Some(&output),
        progress: Some(progress),
        ..request(Shard::WHOLE)
    };
    let whole = bytes(&sweep(&plan, &with_journal()).unwrap());
    let full = std::fs::read(&journal).unwrap();
    for cut in [
        0,
        10,
        full.len() / 3,
        full.len() / 2 + 1,
        full.len() - 1,
        full.len(),
    ] {
        std::fs::write(&journal, &full[..cut]).unwrap();
        let lines = full[..cut].split(|b| *b == b'\n').count() as u64 - 1;
        done.store(0, Ordering::Relaxed);
        assert_eq!(
            bytes(&sweep(&plan, &with_journal()).unwrap()),
            whole,
            "cut at {cut}"
        );
        assert_eq!(
            done.load(Ordering::Relaxed),
            24 - lines.saturating_sub(1),
            "cut at {cut}"
        );
    }
    let other = Plan::read("plan.yaml", &plan_text_without_add(), &matching).unwrap();
    let changed = sweep(&other, &with_journal()).err().unwrap().to_string();
    assert!(changed.contains("--restart"), "{changed}");
    let restarted = Request {
        restart: true,
        ..with_journal()
    };
    assert_eq!(sweep(&other, &restarted).unwrap().rows(), 1);
}

fn plan_text_without_add() -> String {
    format!(
        "version: 1\nprograms: [{}]\noptions: {{timing_only: true}}\n",
        fixture("npu/resblock/program.blob")
    )
}

#[test]
fn what_goes_wrong_in_a_run_is_a_row() {
    let plan = plan(&format!(
        "version: 1\nprograms: [{}, {}]\n",
        fixture("broken/ring.neff"),
        fixture("dsa/kernels/dot.dfg")
    ));
    let results = sweep(&plan, &request(Shard::WHOLE)).unwrap();
    let Values::Text(status) = column(&results, "status") else {
        panic!("text")
    };
    assert_eq!(*status, ["refused", "ok"]);
    assert_eq!(results.failed(), 1);
}

#[test]
fn seeds_and_whole_figures_have_columns_of_whole_numbers() {
    let plan = plan(&format!(
        "version: 1\nprograms: [{}]\noptions: {{seed: [3, 1]}}\nmachine: {{mesh.links_per_hop: {{from: 1, to: 3, steps: 2}}}}\n",
        fixture("dsa/kernels/dot.dfg")
    ));
    // The figure stands for any: a target that does not have it refuses it, with the line.
    let error = sweep(&plan, &request(Shard::WHOLE))
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("plan.yaml:4: expected a figure of dsa"),
        "{error}"
    );
}

#[test]
fn samples_are_the_same_each_time() {
    for method in ["random", "latin_hypercube"] {
        let plan = plan(&format!(
            "version: 1\nprograms: [{}]\nmachine: {{dma.latency: {{from: 100, to: 2000}}, clock.dpu: [900, 1850]}}\n\
             sample: {{method: {method}, count: 20, seed: 4}}\noptions: {{timing_only: true}}\n",
            fixture("npu/add/program.blob")
        ));
        let results = sweep(&plan, &request(Shard::WHOLE)).unwrap();
        assert_eq!(results.rows(), 20);
        let again = sweep(
            &plan,
            &Request {
                jobs: 1,
                ..request(Shard::WHOLE)
            },
        )
        .unwrap();
        assert_eq!(bytes(&results), bytes(&again), "{method}");
    }
}

#[test]
fn the_front_is_what_nothing_beats() {
    let plan = plan(&format!(
        "version: 1\nprograms: [{}]\nmachine: {{dma.latency: [500, 1000, 2000], clock.dpu: [900, 1850]}}\n\
         options: {{timing_only: true}}\n",
        fixture("npu/add/program.blob")
    ));
    let results = sweep(&plan, &request(Shard::WHOLE)).unwrap();
    let front = pareto(results.table(), &["latency_ns", "clock.dpu"], None, None).unwrap();
    let (latency, clock) = (
        numbers(&results, "latency_ns"),
        match column(&results, "clock.dpu") {
            Values::Whole(v) => v.iter().map(|n| *n as f64).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        },
    );
    let beats = |a: usize, b: usize| {
        (latency[a] <= latency[b] && clock[a] <= clock[b])
            && (latency[a] < latency[b] || clock[a] < clock[b])
    };
    let expected: Vec<usize> = (0..6).filter(|b| !(0..6).any(|a| beats(a, *b))).collect();
    let mut found: Vec<usize> = front.rows().collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(front.svg().matches("<circle").count(), 6);
    assert_eq!(
        front.text(results.table()).lines().count(),
        expected.len() + 1
    );
    assert!(pareto(results.table(), &["latency", "clock.dpu"], None, None).is_err());
    // Of equals, the least by another column stays.
    let slow = |tie| pareto(results.table(), &["clock.dpu"], None, tie).unwrap();
    let [all, least] = [None, Some("latency_ns")].map(|tie| slow(tie).rows().count());
    assert_eq!((all, least), (3, 1));
}

#[test]
fn errors_name_the_line() {
    let blob = fixture("npu/add/program.blob");
    for (text, expected) in [
        ("programs: [\n".to_owned(), "plan.yaml:"),
        (
            "version: 2\nprograms: [a]\n".to_owned(),
            "plan.yaml:1: expected version 1, found 2",
        ),
        (
            "version: 1\nprograms: [a]\nmachines: {}\n".to_owned(),
            "plan.yaml:3: expected a key of a plan",
        ),
        (
            "version: 1\nprograms: [nobody.blob]\n".to_owned(),
            "plan.yaml:2: nobody.blob: cannot be read",
        ),
        (
            "version: 1\nprograms: [\"no/*.blob\"]\n".to_owned(),
            "plan.yaml:2: expected a file that fits",
        ),
        (
            format!("version: 1\nprograms: [{blob}]\nmachine:\n  no.such: [1]\n"),
            "plan.yaml:4: expected a figure of npu",
        ),
        (
            format!(
                "version: 1\nprograms: [{blob}]\nmachine: {{dma.latency: {{from: 0, to: 5, scale: log, steps: 2}}}}\n"
            ),
            "plan.yaml:3: expected numbers above 0",
        ),
        (
            format!(
                "version: 1\nprograms: [{blob}]\nmachine: {{dma.latency: {{from: 1, to: 5}}}}\n"
            ),
            "plan.yaml:3: expected `steps`",
        ),
        (
            format!("version: 1\nprograms: [{blob}]\nsample: {{method: random}}\n"),
            "plan.yaml:3: expected `count`",
        ),
        (
            format!("version: 1\nprograms: [{blob}]\noptions: {{seeds: 1}}\n"),
            "plan.yaml:3: expected an option",
        ),
    ] {
        let error = refused(&text);
        assert!(error.starts_with(expected), "{text}\n{error}");
    }
}

#[test]
fn what_a_plan_needs_can_be_carried_to_another_machine() {
    let name = fixture("gemini/four_cores/schedule.json");
    let network = fixture("gemini/four_cores/network.json");
    let text = format!("version: 1\nprograms: [{{file: {name}, network: {network}}}]\n");
    let plan = plan(&text);
    let here = run(&plan, Disk, &request(Shard::WHOLE)).unwrap();
    let contents = carry(&plan, Disk).unwrap();
    assert!(contents.contains_key(&name) && contents.contains_key(&network));
    let there = run(&plan, Carried::new(contents), &request(Shard::WHOLE)).unwrap();
    assert_eq!(bytes(&here), bytes(&there));
    assert_eq!(here.failed(), 0);
    assert!(run(&plan, Carried::new([]), &request(Shard::WHOLE)).is_err());
}

#[test]
fn a_journal_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("results.csv");
    let refused = AtomicBool::new(false);
    let plan = grid();
    let with_journal = |progress| Request {
        journal: Some(&output),
        progress,
        ..request(Shard::WHOLE)
    };
    let again = |_: u64, _: u64, _: &str| {
        let second = sweep(&plan, &with_journal(None));
        let said = second
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        refused.fetch_or(said.contains("another process"), Ordering::Relaxed);
    };
    sweep(&plan, &with_journal(Some(&again))).unwrap();
    assert!(refused.load(Ordering::Relaxed));
}
