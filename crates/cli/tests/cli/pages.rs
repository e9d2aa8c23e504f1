//! The page of a run: which machine it rests on, what stands beside what, what is said meanwhile.

use crate::support::{chipless, done, run};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

/// A program whose compiler left an estimate.
const NPU: &str = "fixtures/npu/resblock/program.blob";

/// A page that is written to a directory of its own.
struct Made {
    directory: tempfile::TempDir,
}

impl Made {
    fn new() -> Made {
        Made {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("page.html")
    }

    /// The data of the page of these arguments, and what was said besides.
    fn report(&self, arguments: &[&str]) -> (Value, String) {
        let path = self.path();
        let all = [&["report"], arguments, &["-o", path.to_str().unwrap()]].concat();
        let (code, _, err) = run(&all);
        assert_eq!(code, 0, "{err}");
        let html = std::fs::read_to_string(&path).unwrap();
        let data = html.split("id=\"report\">").nth(1).unwrap();
        let data = data.split("</script>").next().unwrap();
        (serde_json::from_str(data).unwrap(), err)
    }
}

#[test]
fn the_compilers_estimate_stands_beside_its_own_machine_only() {
    let made = Made::new();
    let estimate = |more: &[&str]| {
        let (report, _) = made.report(&[&[NPU], more].concat());
        report["run"]["estimate_ps"].clone()
    };
    assert!(estimate(&[]).is_u64());
    assert!(estimate(&["--calibration", "compiler"]).is_u64());
    assert!(estimate(&["--machine", "npu4"]).is_u64());
    for other in [
        ["--machine", "npu5"],
        ["--calibration", "silicon"],
        ["--set", "clock.dpu=2x"],
    ] {
        assert!(estimate(&other).is_null(), "{other:?}");
    }
}

#[test]
fn options_hold_for_both_programs_but_those_of_the_other() {
    let made = Made::new();
    let both = [NPU, "--against", NPU, "--machine", "npu5"];
    let (report, said) = made.report(&both);
    assert_eq!(report["run"]["latency_ps"], report["against"]["latency_ps"]);
    assert!(
        said.contains("note: both programs take ") && said.contains("`--other machine=npu5`"),
        "{said}"
    );
    let (report, said) = made.report(&[NPU, "--against", NPU, "--other", "machine=npu5"]);
    assert_eq!(said, "");
    let names = ["run", "against"].map(|run| report[run]["timed_by"].as_str().unwrap());
    assert!(names[0].starts_with("NPU4 (") && names[1].starts_with("NPU5 ("));
    assert_ne!(report["run"]["latency_ps"], report["against"]["latency_ps"]);

    let page = made.path();
    let page = page.to_str().unwrap();
    let (code, _, err) = run(&["report", NPU, "--other", "machine=npu5", "-o", page]);
    assert!(
        code == 2 && err.starts_with("--other: expected --against OTHER beside it"),
        "{err}"
    );
    let (code, _, err) = run(&["report", NPU, "--against", NPU, "--other", "machin=npu5"]);
    assert!(
        code == 2 && err.contains("did you mean \"machine\"?"),
        "{err}"
    );
}

#[test]
fn a_second_program_may_have_a_mesh_of_its_own() {
    let schedule = "fixtures/gemini/four_cores/schedule.json";
    let directory = tempfile::tempdir().unwrap();
    let mesh = directory.path().join("wide.json");
    std::fs::write(&mesh, done(&["machine", "mesh2x2", "--template"])).unwrap();
    let other = format!("machine={}", mesh.display());
    let (report, _) = Made::new().report(&[schedule, "--against", schedule, "--other", &other]);
    assert!(
        report["against"]["timed_by"]
            .as_str()
            .unwrap()
            .starts_with(mesh.to_str().unwrap())
    );
}

#[test]
fn report_says_which_command_takes_data() {
    let (code, _, err) = run(&["report", NPU, "--input", "x=x.npy", "-o", "page.html"]);
    assert!(
        code == 2 && err.contains("computes no values; `chipless view FILE --input"),
        "{err}"
    );
}

#[test]
fn view_says_at_once_what_it_does() {
    let mut view = chipless()
        .args(["view", NPU, "--no-open"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut err = BufReader::new(view.stderr.take().unwrap());
    err.read_line(&mut said).unwrap();
    view.kill().unwrap();
    view.wait().unwrap();
    assert_eq!(
        said,
        format!("{NPU}: making the page; its address follows\n")
    );
}

#[test]
fn transfers_are_bound_by_what_takes_most_of_their_time() {
    let bound = |more: &[&str]| {
        let said = done(&[&["run", NPU, "--timing-only", "--json"], more].concat());
        let report: Value = serde_json::from_str(&said).unwrap();
        let roofline = report["roofline"].as_array().unwrap().clone();
        let transfers = roofline.into_iter().find(|row| row["operation"] == "dma");
        transfers.unwrap()["bound"].clone()
    };
    assert_eq!(bound(&[]), "latency");
    assert_eq!(bound(&["--set", "dma.latency=0.01x"]), "memory");
}
