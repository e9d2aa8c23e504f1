//! Where the time goes, and what changed: `diff`, other figures, the page.

use crate::support::{chipless, done, root, run};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const ENGINES: &str = "fixtures/neuron/matmul_five_engines/program.asm";
const DOT: &str = "fixtures/dsa/kernels/dot.dfg";

/// What `diff` says, and its exit status.
fn diff(a: &str, b: &str, more: &[&str]) -> (i32, Value) {
    let (code, out, err) = run(&[&["diff", a, b, "--json"], more].concat());
    let said = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    (code, said)
}

/// A NEFF made of the fixture's text with some of it replaced.
fn packed(directory: &Path, name: &str, from: &str, to: &str) -> String {
    let text = std::fs::read_to_string(root().join(ENGINES)).unwrap();
    assert!(text.contains(from), "{from}");
    let (source, neff) = (
        directory.join(format!("{name}.asm")),
        directory.join(format!("{name}.neff")),
    );
    std::fs::write(&source, text.replace(from, to)).unwrap();
    let neff = neff.to_str().unwrap().to_owned();
    done(&["pack", source.to_str().unwrap(), &neff]);
    neff
}

fn names(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap();
    list.iter().map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn names_and_places_are_no_difference() {
    let directory = tempfile::tempdir().unwrap();
    let neff = |name, from, to| packed(directory.path(), name, from, to);
    let one = neff("one", "five_engines trn2", "five_engines trn2");
    let renamed = neff("renamed", "neff matmul_five_engines", "neff another");
    assert_eq!(diff(&one, &renamed, &[]).0, 0);
    let (code, moved) = diff(&one, &neff("moved", "0x4600", "0x4700"), &[]);
    assert_eq!((code, &moved["equal"]), (0, &Value::Bool(true)));
    assert!(moved["tasks"]["moved"].as_u64().unwrap() >= 1);
    // Another number for a semaphore.
    let (code, said) = diff(&one, &neff("semaphore", "$S[5]", "$S[7]"), &[]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn what_changed_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let neff = |name, from, to| packed(directory.path(), name, from, to);
    let one = neff("one", "engine act", "engine act");
    let (code, said) = diff(&one, &neff("half", "fp16@0x407e[-1", "fp16@0x403e[-1"), &[]);
    let tasks = &said["tasks"];
    assert_eq!((code, tasks["changed"].as_array().unwrap().len()), (1, 1));
    assert_eq!(names(&tasks["changed"][0]["what"]), ["access"]);
    assert_eq!(names(&tasks["added"]), [] as [&str; 0]);
    let wait = neff(
        "wait",
        "EVENT_SEMAPHORE $S[4]>=1 $S[10]>=16",
        "EVENT_SEMAPHORE $S[4]>=1",
    );
    let (_, said) = diff(&one, &wait, &[]);
    // What an EVENT_SEMAPHORE waits for is its text, too.
    assert_eq!(
        names(&said["tasks"]["changed"][0]["what"]),
        ["parameters", "waits"]
    );
    let more = neff("more", "engine act\n", "engine act\nNOP\n");
    let (_, said) = diff(&one, &more, &[]);
    assert_eq!(names(&said["tasks"]["added"]).len(), 1);
    assert_eq!(said["tasks"]["changed"], Value::Array(Vec::new()));
    let (_, said) = diff(&more, &one, &[]);
    assert_eq!(names(&said["tasks"]["removed"]).len(), 1);
    let (code, said, _) = run(&[
        "diff",
        &one,
        directory.path().join("half.neff").to_str().unwrap(),
    ]);
    assert!(code == 1 && said.contains("LDWEIGHTS"), "{said}");
}

#[test]
fn numbers_differ_from_a_task_on() {
    let directory = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(root().join(DOT)).unwrap();
    let write = |name: &str, text: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let renamed = write("renamed.dfg", text.replace("t0", "first"));
    let (code, said) = diff(DOT, &renamed, &["--values"]);
    assert_eq!((code, &said["values"]["first"]), (0, &Value::Null));
    let other = write("other.dfg", text.replace("t2 = Mul_I64", "t2 = Sub_I64"));
    let (code, said) = diff(DOT, &other, &["--values"]);
    assert_eq!(code, 1);
    assert!(said["values"]["first"]["max_abs"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_difference_of_two_latencies_is_explained() {
    let (a, b) = (
        "fixtures/npu/var_fwlm/program.blob",
        "fixtures/npu/var_prof/program.blob",
    );
    let (code, said) = diff(a, b, &["--time"]);
    let time = &said["time"];
    let ns = |value: &Value| value.as_f64().unwrap();
    let layers = time["layers"].as_array().unwrap();
    let sum: f64 = layers.iter().map(|row| ns(&row["contribution_ns"])).sum();
    let difference = ns(&time["latency_b_ns"]) - ns(&time["latency_a_ns"]);
    assert!(
        code == 1 && (sum - difference).abs() < 0.1,
        "{sum} {difference}"
    );
    assert_eq!(time["machine"], Value::Array(Vec::new()));
    let (code, said) = diff(a, a, &[]);
    assert_eq!((code, &said["tasks"]["moved"]), (0, &Value::from(0)));
}

#[test]
fn figures_of_two_machines_that_differ_are_named() {
    let figures = |a: &str, b: &str, more: &[&str]| {
        let (_, said) = diff(a, b, &[&["--time"], more].concat());
        said["time"]["machine"].as_array().unwrap().clone()
    };
    let (npu4, npu5) = (
        "fixtures/npu/conv_leaky/program.blob",
        "fixtures/npu/conv_leaky_5010/program.blob",
    );
    let faster = figures(npu4, npu4, &["--other", "set=clock.dpu=2x"]);
    let clock = json!({"figure": "clock.dpu", "unit": "MHz", "a": "1850.0", "b": "3700.0"});
    assert_eq!(faster, [clock]);
    let generations = figures(npu4, npu5, &[]);
    let named: Vec<_> = generations.iter().map(|row| &row["figure"]).collect();
    assert!(
        named.contains(&&Value::from("clock.dpu")) && named.contains(&&Value::from("dma.latency"))
    );
}

/// Where only the critical path differs, tasks that take as long as before are not said to take longer, or to be missing.
#[test]
fn a_critical_path_that_moves_is_no_change_of_its_tasks() {
    let npu = "fixtures/npu/spill_ddr_t1/program.blob";
    let (_, said) = diff(npu, npu, &["--time", "--other", "set=dma.latency=4x"]);
    let layers = said["time"]["layers"].as_array().unwrap();
    let why = |layer: &str| {
        let row = layers.iter().find(|row| row["layer"] == layer);
        row.unwrap_or_else(|| panic!("{layer}: {layers:?}"))["why"].clone()
    };
    assert_eq!(why("dma0.ddr: dma"), "works longer");
    // Convolutions take as long as before.
    assert_eq!(
        why("dpu0: conv 3x3 stride 2"),
        "less of it on the critical path"
    );
    let wrong = layers
        .iter()
        .find(|row| row["why"].as_str().unwrap().starts_with("only in"));
    assert_eq!(wrong, None);
}

#[test]
fn what_is_no_option_of_the_second_file_is_said() {
    let npu = "fixtures/npu/add/program.blob";
    for (other, said) in [
        ("precision=int8", "`chipless run FILE --what-if KEY=VALUE`"),
        ("what-if=tiles=2", "`chipless run FILE --what-if KEY=VALUE`"),
        (
            "mchine=a.toml",
            "expected an option of this command (machine, set, ",
        ),
        ("mchine=a.toml", "did you mean \"machine\"?"),
    ] {
        let (code, _, err) = run(&["diff", npu, npu, "--other", other]);
        assert!(
            code == 2 && err.starts_with("--other: ") && err.contains(said),
            "{err}"
        );
    }
}

#[test]
fn contracts_are_compared_entry_by_entry() {
    let spec = "fixtures/spu/latched/iospec.yaml";
    let directory = tempfile::tempdir().unwrap();
    let other = directory.path().join("other.yaml");
    let other = other.to_str().unwrap();
    let text = std::fs::read_to_string(root().join(spec)).unwrap();
    std::fs::write(other, format!("# a comment\n{text}")).unwrap();
    assert_eq!(diff(spec, other, &[]).0, 0);
    std::fs::write(other, text.replacen("precision: 16", "precision: 8", 1)).unwrap();
    let (code, said) = diff(spec, other, &[]);
    let lines = names(&said["interface"]);
    assert!(
        code == 1 && lines[0].ends_with("precision: 8, was 16"),
        "{lines:?}"
    );
}

#[test]
fn what_cannot_be_compared_is_no_difference() {
    let npu = "fixtures/npu/resblock/program.blob";
    for other in [DOT, "no/such.blob", "fixtures/dsa/adg"] {
        let (code, _, err) = run(&["diff", npu, other]);
        assert!(code == 2 && !err.is_empty(), "{other}: {err}");
    }
}

/// As if the model or the compiler's options were others: what the compiler then makes of it is in docs/npu-timing.md.
#[test]
fn a_program_is_timed_as_if_it_were_compiled_otherwise() {
    let timed = |file: &str, changes: &[&str]| -> Value {
        let mut all = vec!["run", file, "--timing-only", "--json"];
        all.extend(changes.iter().flat_map(|change| ["--what-if", *change]));
        serde_json::from_str(&done(&all)).unwrap()
    };
    let four = "fixtures/npu/chain_tiles4/program.blob";
    let run_as = timed(four, &["tiles=4", "tiles=2", "precision=int8", "tiles=4"]);
    let rows = run_as["what_if"].as_array().unwrap();
    // The fastest first, each once; behind them what chips were measured not to bear out.
    let changes: Vec<&Value> = rows.iter().map(|row| &row["change"]).collect();
    assert_eq!(changes, ["tiles=4", "tiles=2", "precision=int8"]);
    let speedup = |n: usize| rows[n]["speedup"].as_f64().unwrap();
    assert!(speedup(2) > 1.0 && (speedup(0) - 1.0).abs() < 1e-9 && speedup(1) < 1.0);
    let how = rows[2]["how"].as_str().unwrap();
    assert!(how.contains("measured no faster"), "{how}");
    let both = timed(
        four,
        &["tiles=2", "precision=int8, tiles=2", "precision=int8"],
    );
    let changes: Vec<&Value> = both["what_if"].as_array().unwrap().iter().collect();
    let names: Vec<&Value> = changes.iter().map(|row| &row["change"]).collect();
    assert_eq!(
        names,
        ["tiles=2", "precision=int8", "precision=int8, tiles=2"]
    );
    let speedups = changes.iter().map(|row| row["speedup"].as_f64().unwrap());
    let speedups: Vec<f64> = speedups.collect();
    assert!(
        speedups[1] > speedups[2] && speedups[2] > speedups[0],
        "{speedups:?}"
    );
    let how = changes[2]["how"].as_str().unwrap();
    assert!(
        how.contains("nncf.quantize") && how.ends_with("NPU_TILES=2"),
        "{how}"
    );
    let named = "fixtures/npu/var_prof/program.blob";
    let layers = timed(named, &[])["layers"].clone();
    let first = layers[0]["layer"].as_str().unwrap();
    let without = timed(named, &[&format!("without={first}")]);
    assert!(without["what_if"][0]["speedup"].as_f64().unwrap() > 1.0);
    let all = timed(named, &["without=*"]);
    let latencies = [all, without].map(|run| run["what_if"][0]["latency_ns"].as_f64());
    assert!(latencies[0] < latencies[1], "{latencies:?}");
    for (file, change, said) in [
        (four, "tiles=7", "expected tiles=1 to 6, found"),
        (four, "precision=fp8", "expected precision=int8, found"),
        (
            four,
            "tiles=6,tiles=2",
            "expected one value of tiles at a time, found two",
        ),
        (
            four,
            "without=banana",
            "Its tasks have no layers: compile it with PERF_COUNT=YES",
        ),
        (
            four,
            "without=layer:weights",
            "found \"weights\", which is a kind of task: kind:weights",
        ),
        (
            named,
            "without=conw",
            "expected a layer or a kind of task of the program, found \"conw\"",
        ),
        (
            DOT,
            "tiles=2",
            "is supported for some files of these targets only: npu",
        ),
    ] {
        let (code, _, err) = run(&["run", file, "--timing-only", "--what-if", change]);
        assert!(code == 2 && err.contains(said), "{err}");
    }
}

/// The two calibrations are two machines: each is what `--set` makes of the other's figures, and both are told.
#[test]
fn a_program_is_timed_by_the_compilers_figures_or_by_silicons() {
    let npu = "fixtures/npu/conv3x3_nobias/program.blob";
    let timed = |more: &[&str]| -> Value {
        let all = [&["run", npu, "--timing-only", "--json"], more].concat();
        serde_json::from_str(&done(&all)).unwrap()
    };
    let plain = timed(&[]);
    let silicon = timed(&["--calibration", "silicon"]);
    assert!(silicon["latency_ns"].as_f64() > plain["latency_ns"].as_f64());
    assert_eq!(
        silicon["calibration"],
        json!({"compiler_ns": plain["latency_ns"], "silicon_ns": silicon["latency_ns"]})
    );
    let compiler = timed(&["--calibration", "compiler"]);
    assert_eq!(compiler["latency_ns"], plain["latency_ns"]);
    assert_eq!(compiler["calibration"], silicon["calibration"]);
    // What starts an inference comes before its first task.
    let late = timed(&["--calibration", "silicon", "--set", "inference.start=1ms"]);
    let extra = late["latency_ns"].as_f64().unwrap() - silicon["latency_ns"].as_f64().unwrap();
    assert!((extra - 850e3).abs() < 1e-6, "{extra}");
    let (code, _, err) = run(&[
        "run",
        "fixtures/npu/conv_leaky_3720/program.blob",
        "--calibration",
        "silicon",
    ]);
    assert_eq!(
        (code, &*err),
        (
            2,
            "--calibration: expected a machine with a section [silicon], found none\n"
        )
    );
}

#[test]
fn figures_are_changed_one_at_a_time() {
    let npu = "fixtures/npu/resblock/program.blob";
    let json = |more: &[&str]| -> Value {
        let all = [&["run", npu, "--timing-only", "--json"], more].concat();
        serde_json::from_str(&done(&all)).unwrap()
    };
    let ranked = json(&["--rank"]);
    let best = &ranked["ranking"][0];
    let (figure, change) = (
        best["figure"].as_str().unwrap(),
        best["change"].as_str().unwrap(),
    );
    let change = format!("{figure}={change}");
    assert_eq!(json(&["--set", &change])["latency_ns"], best["latency_ns"]);
    let same = format!("{figure}=1x");
    let asked = json(&["--what-if", &change, "--what-if", &same]);
    assert_eq!(asked["latency_ns"], ranked["latency_ns"]);
    assert_eq!(asked["what_if"][0]["latency_ns"], best["latency_ns"]);
    assert_eq!(asked["what_if"][1]["speedup"], 1.0);
    let both = json(&["--rank", "--what-if", "precision=int8"]);
    assert_eq!(both["what_if"], ranked["what_if"]);
    let (code, _, err) = run(&["run", npu, "--what-if", "clock.dpv=2x"]);
    assert!(
        code == 2 && err.starts_with("--what-if: ") && err.contains("clock.dpu"),
        "{err}"
    );
    // A figure that only takes whole numbers.
    let neff = "fixtures/neuron/matmul_five_engines/program.neff";
    done(&[
        "run",
        neff,
        "--timing-only",
        "--set",
        "limits.semaphores=0.3x",
    ]);
}

/// A page that is served.
struct Served {
    server: std::process::Child,
    host: String,
}

impl Served {
    fn new(arguments: &[&str]) -> Served {
        let mut server = chipless()
            .arg("view")
            .args(arguments)
            .arg("--no-open")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let mut out = BufReader::new(server.stdout.take().unwrap());
        out.read_line(&mut address).unwrap();
        let host = address.trim().trim_start_matches("http://");
        let host = host.trim_end_matches('/').to_owned();
        Served { server, host }
    }

    fn get_as(&self, path: &str, name: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {name}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn status(answer: &str) -> u16 {
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn get(&self, path: &str) -> String {
        self.get_as(path, &self.host)
    }

    /// What stands there, or why the server does not say.
    fn bytes(&self, memory: &Value, address: &Value, ps: u64) -> Result<Value, String> {
        let answer = self.get(&format!("/bytes?memory={memory}&address={address}&ps={ps}"));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        match Served::status(head) {
            200 => Ok(serde_json::from_str(body).unwrap()),
            status => {
                assert_eq!(status, 400, "{head}");
                Err(body.to_owned())
            }
        }
    }

    /// The data of the page.
    fn report(&self) -> Value {
        let html = self.get("/");
        let data = html.split("id=\"report\">").nth(1).unwrap();
        serde_json::from_str(data.split("</script>").next().unwrap()).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_served_page_follows_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dot.dfg");
    std::fs::copy(root().join(DOT), &file).unwrap();
    let served = Served::new(&[file.to_str().unwrap()]);
    assert!(served.get("/").contains("dot.dfg"));
    assert!(served.get("/version").ends_with("\r\n\r\n1"));
    assert_eq!(
        Served::status(&served.get_as("/", "elsewhere.example")),
        403
    );
    let foreign = format!("{}\r\nOrigin: http://elsewhere.example", served.host);
    assert_eq!(Served::status(&served.get_as("/version", &foreign)), 403);
    let own = format!("{0}\r\nOrigin: http://{0}", served.host);
    assert_eq!(Served::status(&served.get_as("/version", &own)), 200);
    assert_eq!(Served::status(&served.get("/other")), 404);
    // The clock of the file system may be coarse.
    let begun = Instant::now();
    while served.get("/version").ends_with("\r\n\r\n1") {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::fs::write(&file, "Input64: p\nnonsense\n").unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(served.get("/").contains("dot.dfg:"));
    let said = served.bytes(&0.into(), &0.into(), 0).unwrap_err();
    assert!(said.contains("the file is wrong"), "{said}");
}

#[test]
fn a_served_page_shows_what_stands_in_memory_at_an_instant() {
    let four_cores = "fixtures/gemini/four_cores";
    let (schedule, network) = (
        format!("{four_cores}/schedule.json"),
        format!("{four_cores}/network.json"),
    );
    let programs: [&[&str]; 5] = [
        &["fixtures/npu/resblock/program.blob"],
        &["fixtures/spu/recurrent/plan.json"],
        &[&schedule, "--network", &network],
        &["fixtures/neuron/matmul_five_engines/program.neff"],
        &[DOT],
    ];
    for program in programs {
        let file = program[0];
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().to_str().unwrap();
        done(&[&["run", "--seed", "3", "--output-dir", out], program].concat());
        let served = Served::new(&[&["--seed", "3"], program].concat());
        let report = served.report();
        let end = report["run"]["latency_ps"].as_u64().unwrap();
        let memories = report["run"]["memories"].as_array().unwrap();
        let outputs = memories.iter().flat_map(|memory| {
            let blocks = memory["blocks"].as_array().unwrap().iter();
            let outputs = blocks.filter(|block| block["role"] == "output");
            outputs.map(move |block| (memory, block))
        });
        let (memory, block) = outputs
            .last()
            .unwrap_or_else(|| panic!("{file}: no output"));
        let found = served.bytes(&memory["id"], &block["address"], end).unwrap();
        assert!(found["writer"].is_string(), "{file}: {found}");
        let shown = found["bytes"].as_str().unwrap();
        let arrays = std::fs::read_dir(directory.path()).unwrap();
        let is_there = arrays.into_iter().any(|entry| {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            hex.contains(&shown[..shown.len().min(64)])
        });
        assert!(is_there, "{file}: {shown} stands in no output");
        let before = served.bytes(&memory["id"], &block["address"], 0).unwrap();
        assert_eq!(
            (&before["writer"], &before["is_undefined"]),
            (&Value::Null, &true.into()),
            "{file}"
        );
        let far = served
            .bytes(&memory["id"], &u64::MAX.into(), end)
            .unwrap_err();
        assert!(far.contains("expected an address of a buffer"), "{far}");
        let none = served.bytes(&99999.into(), &0.into(), end).unwrap_err();
        assert!(none.contains("found number 99999"), "{none}");
    }
    let npu = "fixtures/npu/resblock/program.blob";
    let (code, _, err) = run(&["view", npu, "--no-open", "--input", "z=z.npy"]);
    assert!(
        code == 2 && err.contains("expected the name of an input (x)"),
        "{err}"
    );
    let timed = Served::new(&[npu, "--timing-only"]);
    assert!(
        timed.report()["no_bytes"]
            .as_str()
            .unwrap()
            .contains("timing-only")
    );
    let said = timed.bytes(&0.into(), &0.into(), 0).unwrap_err();
    assert!(said.contains("timing-only"), "{said}");
    let refused = Served::new(&["fixtures/broken/early_read.neff"]);
    let said = refused.bytes(&0.into(), &0.into(), 0).unwrap_err();
    assert!(said.contains("can only be timed"), "{said}");
}

#[test]
fn a_file_without_a_program_has_a_page_of_its_pictures() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let page = page.to_str().unwrap();
    done(&["report", "fixtures/spu/latched/iospec.yaml", "-o", page]);
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("write latchedC") && html.contains("sequence 1: latched_seq, latched"));
    let (code, _, err) = run(&[
        "report",
        "fixtures/spu/latched/iospec.yaml",
        "--against",
        "fixtures/spu/dense/iospec.yaml",
        "-o",
        page,
    ]);
    assert!(code == 2 && err.contains("expected two programs"), "{err}");
}

#[test]
fn a_run_says_by_which_machine_it_is_timed() {
    let schedule = "fixtures/gemini/four_cores/schedule.json";
    let timed = |more: &[&str]| {
        let all = [&["run", schedule, "--timing-only"], more].concat();
        let said = done(&all);
        said.lines().nth(1).unwrap_or_default().trim().to_owned()
    };
    assert_eq!(timed(&[]), "timed by spec (--machine gives another)");
    assert_eq!(timed(&["--machine", "mesh2x2"]), "timed by mesh2x2");
    let set = timed(&["--machine", "mesh2x2", "--set", "energy.mac=1"]);
    assert_eq!(set, "timed by mesh2x2 with energy.mac=1");
    let said = done(&["run", schedule, "--timing-only"]);
    assert!(
        said.contains("a schedule does not name its machine"),
        "{said}"
    );
    let said = done(&["run", schedule, "--timing-only", "--machine", "mesh2x2"]);
    assert!(!said.contains("does not name its machine"), "{said}");

    // By its name and by its file, a mesh is the same.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mesh.json");
    std::fs::write(&file, done(&["machine", "mesh2x2", "--template"])).unwrap();
    let latency = |machine: &str| {
        let run = [
            "run",
            schedule,
            "--timing-only",
            "--json",
            "--machine",
            machine,
        ];
        let report: Value = serde_json::from_str(&done(&run)).unwrap();
        assert_eq!(report["timed_by"]["file"], machine);
        report["latency_ns"].clone()
    };
    assert_eq!(latency("mesh2x2"), latency(file.to_str().unwrap()));

    let report: Value = serde_json::from_str(&done(&[
        "run",
        "fixtures/npu/resblock/program.blob",
        "--timing-only",
        "--json",
    ]))
    .unwrap();
    assert_eq!(
        report["timed_by"],
        json!({"name": "NPU4", "file": null, "set": [], "other_calibrations": ["silicon"]})
    );
    let page = directory.path().join("page.html");
    done(&["report", schedule, "-o", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("\"timed_by\":\"spec (--machine gives another)\""));
}

#[test]
fn every_key_of_a_ready_made_mesh_is_explained() {
    let said = done(&["machine", "mesh4x4"]);
    assert!(
        said.contains("  stride                        4 columns  cores are numbered in bands"),
        "{said}"
    );
    let (code, _, err) = run(&["machine", "mesh0x4"]);
    assert!(
        code == 2 && err.contains("or a mesh such as mesh4x4"),
        "{err}"
    );
}

#[test]
fn a_ranking_names_other_compilations_and_what_is_slower() {
    let npu = "fixtures/npu/resblock/program.blob";
    let said = done(&[
        "run",
        npu,
        "--timing-only",
        "--rank",
        "--what-if",
        "clock.dpu=0.5x",
    ]);
    for expected in ["tiles=6 ", "precision=int8 ", "slower: 1.202 times as long"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    // An old name that meant another clock.
    let (code, _, err) = run(&["run", npu, "--timing-only", "--set", "shave.clock=2x"]);
    assert!(
        code == 2 && err.contains("did you mean \"clock.shave\"?"),
        "{err}"
    );
}

#[test]
fn a_random_order_has_no_times() {
    let said = done(&[
        "run",
        "fixtures/npu/resblock/program.blob",
        "--order",
        "random:3",
    ]);
    assert!(
        said.contains("51 tasks in another order, without times, 217 kB moved"),
        "{said}"
    );
    for absent in ["estimated", "busy", "critical path", "longest"] {
        assert!(!said.contains(absent), "{absent}: {said}");
    }
}

#[test]
fn a_difference_names_the_wait_that_differs() {
    let directory = tempfile::tempdir().unwrap();
    let neff = |name, from, to| packed(directory.path(), name, from, to);
    let one = neff("one", "engine act", "engine act");
    let other = neff("early", "columns=32 $S[9]>=16", "columns=32 $S[9]>=15");
    let (code, said, _) = run(&["diff", &one, &other]);
    let expected = "waits for sg00 $S[9] ≥ 15, was: waits for sg00 $S[9] ≥ 16";
    assert!(code == 1 && said.contains(expected), "{said}");
    let (_, said) = diff(&one, &other, &[]);
    assert_eq!(names(&said["tasks"]["changed"][0]["syncs"]), [expected]);
    let none = neff("none", "columns=32 $S[9]>=16", "columns=32");
    let (_, said, _) = run(&["diff", &one, &none]);
    assert!(
        said.contains("no longer waits for sg00 $S[9] ≥ 16"),
        "{said}"
    );
}
