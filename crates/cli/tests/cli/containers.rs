//! `unpack`, `pack`, and programs whose files are unusual: large, empty, mistyped.

use crate::support::{root, run};

const NEFF: &str = "fixtures/neuron/matmul_five_engines/program.neff";

fn path(directory: &tempfile::TempDir, name: &str) -> String {
    directory.path().join(name).display().to_string()
}

#[test]
fn members_of_two_files_do_not_mix() {
    let directory = tempfile::tempdir().unwrap();
    let [members, packed, empty] =
        ["members", "packed.neff", "empty"].map(|name| path(&directory, name));
    assert_eq!(run(&["unpack", NEFF, &members]).0, 0);
    let (code, out, err) = run(&["unpack", "fixtures/neuron/constants/program.neff", &members]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("expected an empty directory"), "{err}");
    assert_eq!(run(&["pack", &members, &packed]).0, 0);
    assert_eq!(run(&["check", &packed]).0, 0);
    std::fs::create_dir(&empty).unwrap();
    let (code, out, err) = run(&["pack", &empty, &path(&directory, "none.neff")]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        err.contains("found none") && !directory.path().join("none.neff").exists(),
        "{err}"
    );
}

#[test]
fn assembler_text_is_packed() {
    let directory = tempfile::tempdir().unwrap();
    let [wrong, packed] = ["wrong.asm", "packed.neff"].map(|name| path(&directory, name));
    let (code, out, err) = run(&["pack", "fixtures/broken/ring.asm", &packed]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let read = |name: &str| std::fs::read(root().join(name)).unwrap();
    assert_eq!(read(&packed), read("fixtures/broken/ring.neff"));
    // One name given twice loses nothing.
    let kept = path(&directory, "kept.asm");
    std::fs::copy(root().join("fixtures/broken/ring.asm"), &kept).unwrap();
    let (code, out, err) = run(&["pack", &kept, &kept]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        err.ends_with(
            "kept.asm: is an input of this command, and the output would replace it. Name another file for the output.\n"
        ),
        "{err}"
    );
    assert_eq!(read(&kept), read("fixtures/broken/ring.asm"));
    std::fs::write(&wrong, "neff x trn2\nsubgraf\n").unwrap();
    let (code, _, err) = run(&["pack", &wrong, &packed]);
    assert!(
        code == 2 && err.contains("wrong.asm") && err.contains('2'),
        "{err}"
    );
}

#[test]
fn a_limit_is_no_fault_of_the_program() {
    for command in ["check", "run", "list"] {
        let (code, out, err) = run(&[command, NEFF, "--limit", "tasks=3"]);
        assert!(
            code == 2 && (out + &err).contains("tasks = 3"),
            "{command}: {code} {err}"
        );
    }
}

#[test]
fn the_last_part_of_a_name_is_enough() {
    assert_eq!(run(&["list", NEFF, "pe"]), run(&["list", NEFF, "sg00.pe"]));
}

/// Four gigabytes that nobody reads are not made. An address space of three would not hold them.
#[test]
fn inputs_are_made_where_they_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let [source, packed] = ["large.asm", "large.neff"].map(|name| path(&directory, name));
    let text = "
neff large trn2
input  x   uint8 [4294967296]
output out uint8 [4096]
subgraph sg00
queue q data owner=sp
var x   input
var out output
engine sp
dma id=0 queue=q
  copy out [1:4096] <- x+4000000000 [1:4096]
";
    std::fs::write(&source, text).unwrap();
    assert_eq!(run(&["pack", &source, &packed]).0, 0);
    let started = std::time::Instant::now();
    let (code, out, err) = run(&["run", &packed]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
    assert!(out.contains("out"), "{out}");
}
