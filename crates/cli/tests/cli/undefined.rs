//! Memory that nothing has written, and outputs that are compared under their own names.

use crate::support::{done, root, run};
use std::fs;

/// Unwritten bytes are 0 unless somebody asks for others; a clean program gives the same outputs with any.
#[test]
fn memory_is_filled_before_a_run() {
    let softmax = root().join("fixtures/neuron/softmax");
    let file = |name: &str| softmax.join(name).display().to_string();
    let input = format!("x={}", file("input_x.npy"));
    let clean = ["run", &file("program.neff"), "--input", &input];
    let expected = file("output_y.npy");
    let out = done(&[&clean[..], &["--fill", "255", "--compare", &expected]].concat());
    let plain = done(&[&clean[..], &["--compare", &expected]].concat());
    let line = |out: &str| {
        let mut lines = out.lines().skip_while(|line| !line.starts_with("compared"));
        lines.nth(1).unwrap().to_owned()
    };
    assert_eq!(line(&out), line(&plain));

    let broken = "fixtures/broken/early_read.neff";
    let early = [
        "run",
        broken,
        "--no-verify",
        "--order",
        "late:qSPDynamicHW[0]",
    ];
    let statistics = |fill: &str| {
        let out = done(&[&early[..], &["--fill", fill]].concat());
        let found = out
            .lines()
            .find(|line| line.trim_start().starts_with("out "));
        found.unwrap_or_else(|| panic!("{out}")).to_owned()
    };
    assert!(statistics("0").contains("min 1.5"), "{}", statistics("0"));
    let filled = statistics("255");
    assert!(filled.contains("no finite element"), "{filled}");

    let (code, _, err) = run(&["run", broken, "--timing-only", "--fill", "1"]);
    assert!(code == 2 && err.contains("cannot be used with"), "{err}");
    let (code, _, err) = run(&["run", broken, "--fill", "256"]);
    assert!(code == 2 && err.contains("256"), "{err}");
}

/// An output has the file that its name says, or the one that Chipless writes.
#[test]
fn a_reference_has_the_name_of_its_output() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (schedule, network) = ("schedule.json", "network.json");
    let folder = root().join("fixtures/gemini/four_cores");
    for file in [schedule, network] {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        fs::write(path(file), text.replace("Conv_last", "Conv:last")).unwrap();
    }
    let arguments = ["run", &path(schedule), "--network", &path(network)];
    let written = path("written");
    done(&[&arguments[..], &["--output-dir", &written]].concat());
    let own = directory.path().join("own");
    fs::create_dir(&own).unwrap();
    let file = directory.path().join("written/Conv_last.npy");
    fs::copy(file, own.join("Conv:last.npy")).unwrap();
    for expected in [written, own.display().to_string()] {
        let out = done(&[&arguments[..], &["--compare", &expected]].concat());
        assert!(out.contains("Conv:last  equal"), "{out}");
    }
}
