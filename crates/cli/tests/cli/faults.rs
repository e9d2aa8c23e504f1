//! Every command that writes, while the system fails: no room, no directory, no rights, no reader, signals, small limits, awkward paths.
//! Whatever happens, a file that the user had is the old one or the new one, the message names the file, and nothing else stays behind.
//!
//! `kernels import` is missing, since its input is a vendor's library; it writes by the same function.

use crate::support::{chipless, root};
use chipless_model::SplitMix64;
use chipless_rounds::are_all;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

/// What a user had before.
const OLD: &[u8] = b"what the user had\n";

/// The user `nobody`, for a test that runs as root, to whom every directory is writable.
const NOBODY: u32 = 65534;

/// A file that a command writes, below the directory of the test, and the arguments; `{}` stands for that directory.
type Writer = (&'static str, &'static str);

const WRITERS: &[Writer] = &[
    (
        "out/add_1.npy",
        "run fixtures/npu/add/program.blob --output-dir {}/out",
    ),
    (
        "t.json",
        "run fixtures/npu/add/program.blob --trace {}/t.json",
    ),
    (
        "t.pftrace",
        "run fixtures/npu/add/program.blob --trace {}/t.pftrace",
    ),
    (
        "t.csv",
        "run fixtures/npu/add/program.blob --tasks {}/t.csv",
    ),
    (
        "w.parquet",
        "run fixtures/npu/add/program.blob --waits {}/w.parquet",
    ),
    (
        "m.json",
        "run fixtures/npu/add/program.blob --memory {}/m.json",
    ),
    ("r.html", "report fixtures/dsa/kernels/dot.dfg -o {}/r.html"),
    ("c.json", "convert fixtures/gemini/set.json -o {}/c.json"),
    (
        "s.json",
        "schedule fixtures/schedule/small.onnx --machine fixtures/schedule/mesh2x2.json --trees 2 -o {}/s.json",
    ),
    (
        "map.json",
        "map fixtures/dsa/kernels/add.dfg --adg fixtures/dsa/adg/mesh3x3.json -o {}/map.json",
    ),
    ("p.neff", "pack fixtures/broken/ring.asm {}/p.neff"),
    (
        "j.jsonl",
        "device fixtures/device/one_camera.yaml --jobs {}/j.jsonl",
    ),
    (
        "d.html",
        "device fixtures/device/one_camera.yaml --report {}/d.html",
    ),
    ("adg.json", "adg new mesh 3x3 -o {}/adg.json"),
    (
        "io.yaml",
        "iospec fixtures/spu/addition/model.pt -o {}/io.yaml",
    ),
    (
        "host/model.c",
        "host fixtures/spu/dense/iospec.yaml --force -o {}/host",
    ),
    ("man/chipless-run.1", "completions --man {}/man"),
    ("s.csv", "sweep {}/plan.yaml --restart -o {}/s.csv"),
    (
        "front.csv",
        "tune fixtures/schedule/small.onnx --space {}/space.yaml --restart -o {}/front.csv",
    ),
    (
        "found/summary.json",
        "explore {}/kernels.yaml --start fixtures/dsa/adg/mesh3x3.json --budget vu9p --moves 2 -o {}/found",
    ),
];

/// Commands that write a file in its place: what was in it must be there afterwards, or what it becomes.
const IN_PLACE: &[Writer] = &[
    ("odd.dfg", "format --write {}/odd.dfg"),
    ("odd.dfg", "check --fix --exit-zero {}/odd.dfg"),
];

const ODD: &[u8] = b"Input64:a\r\nInput64: b\r\nc = Add64( a,b )\r\nOutput64: c\r\n";

/// A directory with what the commands read.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    furnish(directory.path());
    directory
}

fn furnish(directory: &Path) {
    let fixtures = root().canonicalize().expect("the root").join("fixtures");
    let plan = |steps: u32| {
        format!(
            "version: 1\nprograms: [{}/npu/add/program.blob]\nmachine: {{dma.latency: {{from: 100, to: 1000, steps: {steps}, scale: linear}}}}\n\
             options: {{timing_only: true}}\ncolumns: [latency_ns]\n",
            fixtures.display()
        )
    };
    let kernels = format!(
        "workloads: [{{name: add, weight: 1, variants: [{}/dsa/kernels/add.dfg]}}]\n",
        fixtures.display()
    );
    let space = |rates: &str| {
        format!(
            "version: 1\nbase: {}/schedule/mesh2x2.json\nmachine: {{dram.bytes_per_cycle: {rates}, noc.cycles_per_hop: [0, 3]}}\n\
             schedule: {{trees: 4}}\n",
            fixtures.display()
        )
    };
    // The long ones take about as long as a test waits before it sends a signal.
    for (name, text) in [
        ("space.yaml", space("[2]").as_bytes()),
        ("long-space.yaml", space("[2, 4, 8, 16]").as_bytes()),
        ("plan.yaml", plan(3).as_bytes()),
        ("long-plan.yaml", plan(50).as_bytes()),
        ("kernels.yaml", kernels.as_bytes()),
        ("odd.dfg", ODD),
    ] {
        fs::write(directory.join(name), text).expect("written");
    }
}

/// The arguments of a command, with a directory in its place.
fn arguments(line: &str, directory: &Path) -> Vec<OsString> {
    let put = |word: &str| {
        let Some((_, rest)) = word.split_once("{}") else {
            return OsString::from(word);
        };
        let mut path = directory.as_os_str().to_owned();
        path.push(rest);
        path
    };
    line.split(' ').map(put).collect()
}

/// Puts what the user had where the command writes.
fn keep_old(path: &Path) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    fs::write(path, OLD).expect("written");
}

/// The binary behind a limit of the shell, such as `ulimit -f 0`.
fn limited(limit: &str, arguments: &[OsString]) -> Output {
    Command::new("sh")
        .args(["-c", &format!("{limit} && exec \"$@\""), "sh"])
        .arg(env!("CARGO_BIN_EXE_chipless"))
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .expect("a shell")
}

/// A failure that says which file and why, and is no panic.
fn refused(output: &Output, line: &str, named: &Path) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {text}");
    let name = named.file_name().expect("a name").to_string_lossy();
    assert!(
        text.contains(&*name) && !text.contains("panicked"),
        "{line}: expected {name} in: {text}"
    );
}

/// No file under a temporary name.
fn swept(directory: &Path) {
    for entry in fs::read_dir(directory).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        assert!(!name.contains(".tmp"), "left behind: {}", path.display());
        if path.is_dir() {
            swept(&path);
        }
    }
}

#[test]
fn a_full_disk_costs_no_file() {
    for (file, line) in WRITERS.iter().chain(IN_PLACE) {
        let directory = directory();
        let path = directory.path().join(file);
        if !path.exists() {
            keep_old(&path);
        }
        let old = fs::read(&path).expect("readable");
        let output = limited("ulimit -f 0", &arguments(line, directory.path()));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(
            text.contains("cannot be written") && !text.contains("panicked"),
            "{line}: {text}"
        );
        let folder = directory.path().to_string_lossy();
        assert!(text.contains(&*folder), "{line} names no file: {text}");
        assert_eq!(fs::read(&path).expect("still there"), old, "{line}");
        swept(directory.path());
    }
}

/// `/dev/full` says "no space left on device", and is a device at the end of a link: it is written to, not replaced.
#[cfg(target_os = "linux")]
#[test]
fn a_device_without_room_is_named() {
    for (file, line) in WRITERS {
        let directory = directory();
        let path = directory.path().join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        symlink("/dev/full", &path).expect("a link");
        let output = chipless()
            .args(arguments(line, directory.path()))
            .output()
            .expect("it runs");
        refused(&output, line, &path);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("No space left"), "{line}: {text}");
    }
}

#[test]
fn a_directory_that_is_not_there_or_takes_no_file_is_named() {
    for (file, line) in WRITERS {
        // A file stands where the directory should be: nobody can make it.
        let around = directory();
        let blocked = around.path().join("blocked");
        fs::write(&blocked, OLD).expect("written");
        let line = line
            .replace("{}/plan", "PLAN")
            .replace("{}/kernels", "KERNELS")
            .replace("{}/space", "SPACE");
        let put = |text: &str| {
            arguments(text, &blocked)
                .into_iter()
                .map(|word| {
                    let word = word.into_string().expect("text");
                    let inputs = around.path().display();
                    word.replace("PLAN", &format!("{inputs}/plan"))
                        .replace("KERNELS", &format!("{inputs}/kernels"))
                        .replace("SPACE", &format!("{inputs}/space"))
                        .into()
                })
                .collect::<Vec<OsString>>()
        };
        let output = chipless().args(put(&line)).output().expect("it runs");
        refused(
            &output,
            &line,
            &blocked.join(Path::new(file).iter().next().expect("a name")),
        );
        assert_eq!(fs::read(&blocked).expect("still there"), OLD, "{line}");

        // A directory without the right to write.
        fs::remove_file(&blocked).expect("removed");
        fs::create_dir(&blocked).expect("made");
        let path = blocked.join(file);
        keep_old(&path);
        for folder in [path.parent().expect("a directory"), &blocked] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o555)).expect("set");
        }
        fs::set_permissions(around.path(), fs::Permissions::from_mode(0o755)).expect("set");
        let mut command = chipless();
        command.args(put(&line));
        if is_root(around.path()) {
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(
            text.contains("blocked") && text.contains("ermission denied"),
            "{line}: {text}"
        );
        assert_eq!(fs::read(&path).expect("still there"), OLD, "{line}");
        for folder in [path.parent().expect("a directory"), &blocked] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("set");
        }
    }
}

/// Whether this process may write where nobody may.
fn is_root(directory: &Path) -> bool {
    let closed = directory.join("closed");
    fs::create_dir(&closed).expect("made");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).expect("set");
    let is_root = fs::write(closed.join("probe"), OLD).is_ok();
    fs::remove_dir_all(&closed).expect("removed");
    is_root
}

#[test]
fn a_link_keeps_pointing_where_it_points() {
    for (file, line) in WRITERS {
        let directory = directory();
        let path = directory.path().join(file);
        let target = directory.path().join("elsewhere");
        keep_old(&path);
        fs::rename(&path, &target).expect("moved");
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).expect("set");
        symlink(&target, &path).expect("a link");
        let output = chipless()
            .args(arguments(line, directory.path()))
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {text}");
        assert_eq!(
            fs::read_link(&path).expect("still a link"),
            target,
            "{line}"
        );
        assert_ne!(fs::read(&target).expect("readable"), OLD, "{line}");
        let mode = fs::metadata(&target).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{line}");
    }
}

#[test]
fn no_home_another_locale_and_odd_paths_change_nothing() {
    for (file, line) in WRITERS {
        let usual = directory();
        let done = |output: &Output| {
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{line}: {text}");
        };
        done(
            &chipless()
                .args(arguments(line, usual.path()))
                .output()
                .expect("it runs"),
        );
        assert!(usual.path().join(file).exists(), "{line} writes no {file}");

        let around = directory();
        let odd = around.path().join(OsStr::from_bytes(b"\xff\xfe \x1b[31m"));
        fs::create_dir(&odd).expect("made");
        furnish(&odd);
        let mut command = chipless();
        command.env_clear().env("LC_ALL", "C");
        done(
            &command
                .args(arguments(line, &odd))
                .output()
                .expect("it runs"),
        );
        assert!(odd.join(file).exists(), "{line} writes no {file}");

        let long = around.path().join("x".repeat(4000));
        let output = chipless()
            .args(arguments(line, &long))
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(!text.contains("panicked"), "{line}: {text}");
    }
}

#[test]
fn nobody_reads_what_is_printed() {
    for (file, line) in WRITERS {
        let directory = directory();
        let path = directory.path().join(file);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = chipless()
            .args(arguments(line, directory.path()))
            .stdout(writer)
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {text}");
        assert!(path.exists(), "{line} writes no {file}");
    }
}

#[test]
fn small_limits_end_with_a_message() {
    for (file, line) in WRITERS {
        for limit in ["ulimit -v 400000", "ulimit -n 6", "ulimit -s 256"] {
            let directory = directory();
            let path = directory.path().join(file);
            keep_old(&path);
            let output = limited(limit, &arguments(line, directory.path()));
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(
                matches!(output.status.code(), Some(0..=2)) && !text.contains("panicked"),
                "{limit}: {line}: {:?} {text}",
                output.status
            );
            let is_old = fs::read(&path).expect("still there") == OLD;
            assert_eq!(is_old, !output.status.success(), "{limit}: {line}");
        }
    }
}

/// At any instant a file is the old one or the new one, and a command that goes on gets where one gets that was left alone.
#[test]
fn killed_at_any_instant_and_gone_on_with() {
    let mut random = SplitMix64(11);
    for (file, line, go_on) in [
        (
            "s.csv",
            "sweep {}/long-plan.yaml -o {}/s.csv",
            "sweep {}/long-plan.yaml -o {}/s.csv",
        ),
        (
            "front.csv",
            "tune fixtures/schedule/small.onnx --space {}/long-space.yaml -o {}/front.csv",
            "tune fixtures/schedule/small.onnx --space {}/long-space.yaml -o {}/front.csv",
        ),
        (
            "found/moves.jsonl",
            "explore {}/kernels.yaml --start fixtures/dsa/adg/mesh3x3.json --budget vu9p --moves 40 -o {}/found",
            "explore {}/kernels.yaml --start fixtures/dsa/adg/mesh3x3.json --budget vu9p --moves 40 -o {}/found --resume",
        ),
    ] {
        let alone = directory();
        let output = chipless()
            .args(arguments(line, alone.path()))
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{line}");
        let whole = fs::read(alone.path().join(file)).expect("written");
        let rounds = if are_all() { 3 } else { 1 };
        for signal in ["KILL", "TERM", "INT"].repeat(rounds) {
            let directory = directory();
            let mut command = chipless();
            command.args(arguments(line, directory.path()));
            command.stdout(Stdio::null()).stderr(Stdio::piped());
            let child = command.spawn().expect("it runs");
            sleep(Duration::from_millis(random.number() % 400));
            Command::new("kill")
                .args(["-s", signal, &child.id().to_string()])
                .output()
                .expect("kill");
            let ended = child.wait_with_output().expect("it ends");
            let text = String::from_utf8_lossy(&ended.stderr);
            assert!(
                !text.contains("panicked")
                    && ended
                        .status
                        .signal()
                        .is_none_or(|n| [2, 9, 15].contains(&n)),
                "{signal}: {line}: {text}"
            );
            let kept = whole_lines(&directory.path().join(file));
            let arguments = if directory.path().join(file).exists() {
                arguments(go_on, directory.path())
            } else {
                arguments(line, directory.path())
            };
            let output = chipless().args(arguments).output().expect("it runs");
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{signal}: {go_on}: {text}");
            let found = fs::read(directory.path().join(file)).expect("written");
            assert!(
                found.starts_with(&kept),
                "{signal}: {go_on} lost what was done"
            );
            assert!(file != "s.csv" || found == whole, "{signal}: {go_on}");
        }
    }
}

/// The lines of a file that have an end; none of a file that is not there.
fn whole_lines(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap_or_default();
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    bytes[..end.map_or(0, |end| end + 1)].to_vec()
}

#[test]
fn killed_while_it_writes() {
    let mut random = SplitMix64(12);
    for (file, line) in WRITERS {
        let alone = directory();
        let path = alone.path().join(file);
        let output = chipless()
            .args(arguments(line, alone.path()))
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{line}");
        let whole = fs::read(path).expect("written");
        for signal in ["KILL", "TERM", "INT"] {
            let directory = directory();
            let path = directory.path().join(file);
            keep_old(&path);
            let mut command = chipless();
            command.args(arguments(line, directory.path()));
            let child = command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it runs");
            sleep(Duration::from_millis(random.number() % 150));
            Command::new("kill")
                .args(["-s", signal, &child.id().to_string()])
                .output()
                .expect("kill");
            child.wait_with_output().expect("it ends");
            // Times and paths may differ between two runs; the end of a file says that it is all there.
            let found = fs::read(&path).expect("still there");
            let end = |bytes: &[u8]| bytes[bytes.len().saturating_sub(4)..].to_vec();
            assert!(
                found == OLD || end(&found) == end(&whole),
                "{signal}: {line} left half a file"
            );
        }
    }
}

/// The journal belongs to the first; the second says so, and the first is none the worse.
#[test]
fn two_processes_on_one_journal() {
    for (journal, line) in [
        ("s.csv.journal", "sweep {}/plan.yaml -o {}/s.csv"),
        (
            "front.csv.journal",
            "tune fixtures/schedule/small.onnx --space {}/space.yaml -o {}/front.csv",
        ),
        (
            "moves.jsonl",
            "explore {}/kernels.yaml --start fixtures/dsa/adg/mesh3x3.json --budget vu9p --time 3s -o {}/found",
        ),
    ] {
        let directory = directory();
        let place: PathBuf = directory.path().join(if journal == "moves.jsonl" {
            "found"
        } else {
            "."
        });
        fs::create_dir_all(&place).expect("made");
        let file = fs::File::create(place.join(journal)).expect("made");
        file.lock().expect("locked");
        let output = chipless()
            .args(arguments(line, directory.path()))
            .output()
            .expect("it runs");
        refused(&output, line, Path::new(journal));
        drop(file);
        let output = chipless()
            .args(arguments(line, directory.path()))
            .output()
            .expect("it runs");
        assert!(
            output.status.success(),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
