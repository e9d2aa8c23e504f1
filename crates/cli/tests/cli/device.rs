//! `device` and `yield`: a program alone takes as long as `run` says, whatever its target; outputs stay what they are.

use crate::support::{done, json_of, root, run};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// A program of each target.
const PROGRAMS: [&str; 5] = [
    "fixtures/npu/net_cnn_dpu/program.blob",
    "fixtures/neuron/gelu_mlp/program.neff",
    "fixtures/gemini/set.json",
    "fixtures/dsa/kernels/axpy.dfg",
    "fixtures/spu/dense/plan.json",
];
const BLOB: &str = PROGRAMS[0];

fn latency(program: &str) -> f64 {
    json_of(&["run", "--timing-only", "--json", program])["latency_ns"]
        .as_f64()
        .expect("a time")
}

/// Writes a workload beside which nothing else lies.
fn workload(folder: &Path, streams: &Value, contexts: &Value) -> String {
    let path = folder.join("workload.yaml");
    let all = json!({
        "machine": "npu4", "duration": "10s", "set": {"device.ideal": true}, "contexts": contexts, "streams": streams,
    });
    fs::write(&path, all.to_string()).expect("a file");
    path.display().to_string()
}

fn path_of(program: &str) -> String {
    let path = fs::canonicalize(root().join(program)).expect("a fixture");
    path.display().to_string()
}

#[test]
fn a_program_alone_takes_as_long_as_it_does_without_a_device() {
    let folder = tempfile::tempdir().expect("a folder");
    for program in PROGRAMS {
        let streams = json!([{
            "name": "it", "context": "c", "program": path_of(program), "arrivals": {"in_flight": 1, "count": 1},
        }]);
        let path = workload(folder.path(), &streams, &json!({"c": {"process": 1}}));
        let found = json_of(&["device", &path, "--json"]);
        assert_eq!(
            found["streams"][0]["latency_ns"]["mean"],
            latency(program),
            "{program}"
        );
        assert_eq!(
            found["streams"][0]["breakdown_ns"]["execution"],
            latency(program),
            "{program}"
        );
    }
}

#[test]
fn a_preempted_program_keeps_its_bits() {
    let folder = tempfile::tempdir().expect("a folder");
    let (alone, out) = (folder.path().join("alone"), folder.path().join("out"));
    let third = (latency(BLOB) / 3.0) as u64;
    let streams = json!([
        {"name": "low", "context": "low", "program": path_of(BLOB), "arrivals": {"in_flight": 1, "count": 1}},
        {
            "name": "high", "context": "high", "program": {"synthetic": {"tiles": 6, "tasks": [{"compute": "3us"}]}},
            "arrivals": {"every": format!("{third}ns"), "offset": "100ns", "count": 3},
        },
    ]);
    let contexts = json!({"low": {"process": 1}, "high": {"process": 2, "band": "realtime"}});
    let path = workload(folder.path(), &streams, &contexts);
    let jobs = folder.path().join("jobs.jsonl");
    let named = |path: &Path| path.display().to_string();
    done(&[
        "run",
        BLOB,
        "--seed",
        "3",
        "--output-dir",
        &named(&alone),
        "--json",
    ]);
    let (out_name, jobs_name) = (named(&out), named(&jobs));
    let found = json_of(&[
        "device",
        &path,
        "--json",
        "--output-dir",
        &out_name,
        "--jobs",
        &jobs_name,
        "--set",
        "preempt.save=1us",
        "--seed",
        "3",
    ]);
    assert!(found["device"]["preemptions"].as_u64() >= Some(2));
    for entry in fs::read_dir(&alone).expect("outputs") {
        let name = entry.expect("an output").file_name();
        let (one, two) = (
            fs::read(alone.join(&name)),
            fs::read(out.join("low").join(&name)),
        );
        assert_eq!(one.expect("an output"), two.expect("the same output"));
    }
    for line in fs::read_to_string(&jobs).expect("jobs").lines() {
        let job: Value = serde_json::from_str(line).expect("JSON");
        let parts = job["breakdown_ps"].as_object().expect("parts").values();
        let sum: i64 = parts.map(|part| part.as_i64().expect("a number")).sum();
        assert_eq!(
            sum,
            job["done_ps"].as_i64().expect("a time") - job["arrival_ps"].as_i64().expect("a time")
        );
    }
}

#[test]
fn what_yield_says_of_an_instant_happens_on_the_device() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = format!("{}ns", (latency(BLOB) * 0.4) as u64);
    let yields = json_of(&["yield", BLOB, "--json", "--at", &at]);
    let streams = json!([
        {"name": "low", "context": "low", "program": path_of(BLOB), "arrivals": {"in_flight": 1, "count": 1}},
        {
            "name": "high", "context": "high", "program": {"synthetic": {"tiles": 6, "tasks": [{"compute": "3us"}]}},
            "arrivals": {"in_flight": 1, "count": 1, "offset": at},
        },
    ]);
    let contexts = json!({"low": {"process": 1}, "high": {"process": 2, "band": "realtime"}});
    let path = workload(folder.path(), &streams, &contexts);
    // The wait is the drain and the time that the state takes; here it takes none.
    let found = json_of(&["device", &path, "--json", "--set", "preempt.bandwidth=inf"]);
    assert_eq!(
        found["streams"][1]["breakdown_ns"]["scheduler"],
        yields["at"]["drain_ns"]
    );
    assert_eq!(yields["latency_ns"], latency(BLOB));
    assert_eq!(yields["best"][0]["drain_ns"], 0.0);
}

/// Three jobs of each of these programs, every one in a process of its own, with few translations, little cache and a slow memory.
fn crowded(folder: &Path, programs: &[&str], more: &[&str]) -> (Value, String) {
    let (mut streams, mut contexts) = (Vec::new(), json!({}));
    for (number, program) in programs.iter().enumerate() {
        let name = format!("s{number}");
        contexts[&name] = json!({"process": number});
        streams.push(json!({
            "name": name, "context": name, "program": path_of(program), "arrivals": {"every": "60us", "count": 3, "jitter": "90us"},
        }));
    }
    let path = workload(folder, &json!(streams), &contexts);
    let jobs = folder.join("jobs.jsonl").display().to_string();
    let mut arguments = vec!["device", &path, "--json", "--jobs", &jobs];
    for figure in [
        "mmu.enabled=true",
        "mmu.page=4KiB",
        "mmu.tlb.entries=16",
        "cache.enabled=true",
        "cache.size=64KiB",
        "ddr.bandwidth=20GB/s",
    ]
    .iter()
    .chain(more)
    {
        arguments.extend(["--set", figure]);
    }
    let found = json_of(&arguments);
    (found, fs::read_to_string(&jobs).expect("jobs"))
}

#[test]
fn what_is_known_of_a_program_beforehand_is_what_happens() {
    let folder = tempfile::tempdir().expect("a folder");
    let small = "fixtures/npu/spill_ddr_t1/program.blob";
    let all: Vec<&str> = PROGRAMS.iter().copied().chain([small]).collect();
    let mut mixtures: Vec<&[&str]> = PROGRAMS.chunks(1).collect();
    let two = [BLOB, small, small];
    mixtures.extend([&all[..], &two[..]]);
    for programs in mixtures {
        let (found, jobs) = crowded(folder.path(), programs, &[]);
        // With a mask, nothing is computed before it happens.
        let (other, live) = crowded(folder.path(), programs, &["cache.mask.nobody=1"]);
        assert_eq!(jobs, live, "{programs:?}");
        assert_eq!(found["device"], other["device"], "{programs:?}");
        assert_eq!(found["resources"], other["resources"], "{programs:?}");
        for job in jobs.lines() {
            let job: Value = serde_json::from_str(job).expect("JSON");
            let parts = job["breakdown_ps"].as_object().expect("parts").values();
            let sum: i64 = parts.map(|part| part.as_i64().expect("a number")).sum();
            let time = |key: &str| job[key].as_i64().expect("a time");
            assert_eq!(sum, time("done_ps") - time("arrival_ps"));
        }
    }
}

#[test]
fn programs_that_run_at_once_share_the_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let programs = [BLOB, "fixtures/npu/spill_ddr_t1/program.blob"];
    let mean = |found: &Value, stream: usize| {
        found["streams"][stream]["latency_ns"]["mean"]
            .as_f64()
            .expect("a time")
    };
    let off = ["mmu.enabled=false", "cache.enabled=false"];
    let wide = [
        "mmu.enabled=false",
        "cache.enabled=false",
        "ddr.bandwidth=1000GB/s",
    ];
    let (narrow, wide) = (
        crowded(folder.path(), &programs, &off).0,
        crowded(folder.path(), &programs, &wide).0,
    );
    for (stream, program) in programs.iter().enumerate() {
        assert!(mean(&narrow, stream) > mean(&wide, stream));
        assert!(mean(&wide, stream) >= latency(program));
    }
    assert_eq!(narrow["resources"], wide["resources"]);
}

#[test]
fn small_pages_and_a_small_cache_cost_a_program_of_a_file_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = ["fixtures/npu/spill_ddr_t1/program.blob"];
    let of = |more: &[&str]| crowded(folder.path(), &program, more).0;
    let part = |found: &Value, name: &str| {
        found["streams"][0]["breakdown_ns"][name]
            .as_f64()
            .expect("a time")
    };
    let (small, large) = (of(&[]), of(&["mmu.page=64KiB", "mmu.tlb.entries=512"]));
    assert!(part(&small, "translation") > 10.0 * part(&large, "translation"));
    // All that it touches fits: only the first of three jobs finds nothing.
    let fits = of(&["cache.size=8MiB"]);
    let count = |found: &Value, name: &str| found["device"]["cache"][name].as_u64();
    assert_eq!(count(&fits, "accesses"), count(&small, "accesses"));
    assert!(count(&fits, "misses") < count(&small, "misses"));
    assert!(part(&fits, "memory") < part(&small, "memory"));
}

#[test]
fn workloads_run_and_their_mistakes_are_placed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    for workload in [
        "fixtures/device/two_networks.yaml",
        "fixtures/device/memory.yaml",
        "fixtures/device/cameras.yaml",
    ] {
        let (trace, page) = (file("a.pftrace"), file("a.html"));
        let text = done(&[
            "device",
            workload,
            "--trace",
            &trace,
            "--report",
            &page,
            "--duration",
            "20ms",
        ]);
        assert!(
            text.contains("an estimate: it rests on") && text.contains("what if"),
            "{text}"
        );
        assert!(
            fs::read_to_string(page)
                .expect("a page")
                .contains("Where the time goes")
        );
        assert!(fs::metadata(trace).expect("a trace").len() > 1000);
        let found = |threads: &str| {
            done(&[
                "device",
                workload,
                "--json",
                "--duration",
                "20ms",
                "--threads",
                threads,
            ])
        };
        assert_eq!(found("1"), found("3"));
    }
    let broken = file("broken.yaml");
    let text = "machine: npu4\ncontexts: {c: {process: 1}}\nstreams:\n  - {name: s, context: c, arrivals: {in_flight: 1, count: 1}, \
                program: {synthetic: {tiles: 2, tasks: [{push: 1kB, path: [ddr], link_agent: 12}]}}}\n";
    fs::write(&broken, text).expect("a file");
    let (code, _, err) = run(&["device", &broken]);
    assert!(
        code == 2
            && err.contains("workload-synthetic")
            && err.contains("a link agent FIFO of the program's tiles (0 to 11), found 12"),
        "{err}"
    );
    fs::write(
        &broken,
        "machine: npu4\nduration: 17\ncontexts: {}\nstreams: []\n",
    )
    .expect("a file");
    let (code, _, err) = run(&["device", &broken]);
    assert!(
        code == 2 && err.starts_with(&format!("{broken}:3:")) || err.contains("workload-missing"),
        "{err}"
    );
    let (code, _, err) = run(&[
        "device",
        "fixtures/device/memory.yaml",
        "--set",
        "cache.sise=1MiB",
    ]);
    assert!(
        code == 2 && err.contains("did you mean \"cache.size\""),
        "{err}"
    );
}

#[test]
fn a_page_has_lanes_of_engines_contexts_and_agents() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page.html");
    let name = path.to_str().expect("a name");
    let page = |workload: &str, more: &[&str]| {
        let all = [&["device", workload, "--report", name, "--json"], more].concat();
        let result = json_of(&all);
        (fs::read_to_string(&path).expect("a page"), result)
    };
    let workload = "fixtures/device/gpu_streams.yaml";
    let (text, with_page) = page(workload, &[]);
    for part in ["<h2>Lanes</h2>", ">NN engine<", ">chat<", ">cpu, at most "] {
        assert!(text.contains(part), "{part}");
    }
    // Fifty jobs: each has a bar on the engine, and three phases at least in its context.
    assert_eq!(text.matches(": chat run, ").count(), 50);
    assert!(text.matches("<rect ").count() >= 200);
    // A page changes no result.
    assert_eq!(with_page, json_of(&["device", workload, "--json"]));
    // Preempted jobs say for whom; long runs show their first jobs.
    let (text, _) = page("fixtures/device/realtime.yaml", &[]);
    assert!(
        text.contains("preempted by ") && text.contains("drain"),
        "phases"
    );
    let streams = json!([{
        "name": "s", "context": "c", "program": {"synthetic": {"tasks": [{"compute": "1us"}]}},
        "arrivals": {"in_flight": 1, "count": 3000},
    }]);
    let many = workload_of(folder.path(), &streams);
    let (text, _) = page(&many, &[]);
    assert!(text.contains("The first 1000 of 3000 jobs"));
    assert_eq!(text.matches(": c run, ").count(), 1000);
}

fn workload_of(folder: &Path, streams: &Value) -> String {
    workload(folder, streams, &json!({"c": {"process": 1}}))
}

#[test]
fn what_goes_wrong_stays_in_its_context_and_alone_means_with_a_doorbell() {
    let found = json_of(&["device", "fixtures/device/faults.yaml", "--json"]);
    let of = |name: &str| {
        let mut streams = found["streams"].as_array().expect("streams").iter();
        streams
            .find(|s| s["name"] == name)
            .cloned()
            .expect("a stream")
    };
    assert_eq!(
        (&of("stray")["faults"], &of("stray")["aborted"]),
        (&json!(1), &json!(8))
    );
    assert_eq!(
        (&of("stuck")["hangs"], &found["device"]["resets"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(of("steady")["done"], 10);
    // 100 µs, 35 of the host, 1 of the doorbell, 15 of the firmware: when the doorbell was granted is not part of it.
    assert_eq!(of("guest")["alone_ns"], 151_000.0);
    assert_eq!(of("guest")["breakdown_ns"]["execution"], 100_000.0);
}
