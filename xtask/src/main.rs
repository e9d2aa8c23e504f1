//! `cargo xtask ci`: everything that a change must pass, in the order in which it fails fastest.
//!
//! `cargo xtask reference`: writes the pages of docs/ that come from the code. Tests of the command line fail when one is stale.
//!
//! `cargo xtask python`: builds the wheel and runs its tests.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore talks to the person who runs it"
)]

use std::path::Path;
use std::process::{Command, ExitCode};

/// Acceptance scripts that stand beside the repository in the project's own workshop, and the parts that must pass.
const ACCEPTANCE: &[(&str, &[&str])] = &[
    ("house.py", &["machine", "classes", "limits", "json"]),
    // `refuse` holds that NPU5010 is refused, which is read, checked and run now.
    (
        "npu.py",
        &[
            "info",
            "run",
            "survive",
            "clean",
            "broken",
            "latency",
            "names",
            "imports",
            "labels",
            "registers",
            "profile",
        ],
    ),
    (
        "device.py",
        &[
            "alone",
            "contexts",
            "sharing",
            "rings",
            "preempt",
            "translation",
            "faults",
            "laws",
            "files",
            "silicon",
        ],
    ),
    // The other parts give searches seconds, and so depend on what else runs.
    // `refuse` holds that a transposed convolution and an LSTM are refused, which are scheduled in fp16 now.
    (
        "schedule.py",
        &["dialect", "right", "bounds", "deterministic"],
    ),
    // `broken` holds an unknown opcode to be an error, which `unknown` forbids.
    (
        "neff.py",
        &[
            "info", "run", "pack", "clean", "survive", "listing", "unknown", "order", "rules2",
            "triggers", "models",
        ],
    ),
    ("report.py", &["tables", "why", "traces", "diff", "page"]),
    (
        "debug.py",
        &["protocol", "script", "values", "back", "watch", "catch"],
    ),
    // `speed` compares times, and so depends on what else runs.
    (
        "lsp.py",
        &["protocol", "diagnostics", "names", "format", "edits", "fix"],
    ),
    // What users did, and what must come back.
    (
        "cases.py",
        &[
            "--bin",
            "target/release/chipless",
            "../shared/corpus/field/command-line",
            "../shared/corpus/field/npu",
            "../shared/corpus/field/neff",
            "../shared/corpus/field/dsa-spu",
            "../shared/corpus/field/inputs",
        ],
    ),
    (
        "gemini.py",
        &[
            "info", "traffic", "replay", "execute", "convert", "clean", "broken", "survive",
            "whole", "legal", "rings", "mutants",
        ],
    ),
    (
        "dfg.py",
        &[
            "parse", "format", "probes", "streams", "adg", "judge", "map", "shared", "optimum",
            "memory",
        ],
    ),
    (
        "iospec.py",
        &[
            "load",
            "scripts",
            "text",
            "fuzz",
            "wire",
            "fqir",
            "pt",
            "femto",
            "drivable",
            "calibrate",
            "small",
            "any",
            "host",
            "scale",
        ],
    ),
];

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let done = match task.as_deref() {
        Some("ci") => ci(),
        Some("reference") => reference(),
        Some("python") => root().and_then(python),
        _ => Err("usage: cargo xtask ci|reference|python".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository, which becomes the working directory.
fn root() -> Result<&'static Path, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("xtask has no parent directory")?;
    std::env::set_current_dir(root).map_err(|e| format!("{}: {e}", root.display()))?;
    Ok(root)
}

fn ci() -> Result<(), String> {
    let root = root()?;
    run("cargo", &["fmt", "--all", "--check"], &[])?;
    run(
        "cargo",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        &[],
    )?;
    // The build of README's first command.
    run(
        "cargo",
        &["clippy", "--no-default-features", "--", "-D", "warnings"],
        &[],
    )?;
    // `crates/rounds` reads the variable: all cases of random tests.
    run(
        "cargo",
        &["test", "--workspace"],
        &[("CHIPLESS_ALL_ROUNDS", "1")],
    )?;
    python(root)?;
    run(
        "cargo",
        &["doc", "--workspace", "--no-deps"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    )?;
    // Advisories need the network: they are a job of their own.
    run(
        "cargo",
        &["deny", "check", "bans", "licenses", "sources"],
        &[],
    )?;
    acceptance(root)
}

/// Writes the pages that come from the code: all rules, all commands with their options, all JSON outputs with their keys.
fn reference() -> Result<(), String> {
    let root = root()?;
    page(root, &["explain", "--markdown"], "docs/findings.md")?;
    page(root, &["completions", "--markdown"], "docs/commands.md")?;
    page(root, &["schema", "--markdown"], "docs/json-reference.md")
}

/// Writes what a command prints to a page.
fn page(root: &Path, command: &[&str], name: &str) -> Result<(), String> {
    let output = Command::new("cargo")
        .args(["run", "--quiet", "--package", "chipless-cli", "--"])
        .args(command)
        .current_dir(root)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let page = root.join(name);
    std::fs::write(&page, output.stdout).map_err(|error| format!("{}: {error}", page.display()))
}

/// Builds the wheel, and tests it in an environment of its own. `cargo xtask python`
fn python(root: &Path) -> Result<(), String> {
    let (python, wheels) = ("target/python/bin/python", "target/wheels-ci");
    if !root.join(python).exists() {
        run("python3", &["-m", "venv", "target/python"], &[])?;
    }
    let pip = ["-m", "pip", "--disable-pip-version-check"];
    let pip = |arguments: &[&str]| run(python, &[&pip, arguments].concat(), &[]);
    pip(&[
        "install",
        "--quiet",
        "maturin>=1.8,<2",
        "numpy",
        "ml_dtypes",
        "pyarrow",
        "pytest",
        "jsonschema",
        "mypy",
    ])?;
    if root.join(wheels).exists() {
        std::fs::remove_dir_all(root.join(wheels)).map_err(|e| format!("{wheels}: {e}"))?;
    }
    // The flavour of `cargo test`: what it has built is used again.
    let build = [
        "-m",
        "maturin",
        "build",
        "--quiet",
        "--profile",
        "dev",
        "--manifest-path",
        "python/Cargo.toml",
    ];
    run(python, &[&build[..], &["--out", wheels]].concat(), &[])?;
    pip(&[
        "install",
        "--quiet",
        "--force-reinstall",
        "--no-deps",
        "--no-index",
        "--find-links",
        wheels,
        "chipless",
    ])?;
    run(python, &["-m", "pytest", "--quiet", "python/tests"], &[])
}

/// Real programs with reference results, where they are at hand.
fn acceptance(root: &Path) -> Result<(), String> {
    let scripts = root.join("../shared/accept");
    if !scripts.is_dir() {
        println!("no acceptance scripts here: skipped");
        return Ok(());
    }
    run(
        "cargo",
        &["build", "--release", "--package", "chipless-cli"],
        &[],
    )?;
    let python = root.join("target/venv/bin/python3");
    if !python.exists() {
        run("python3", &["-m", "venv", "target/venv"], &[])?;
    }
    run(
        "target/venv/bin/pip",
        &[
            "install",
            "--quiet",
            "numpy",
            "pyarrow",
            "perfetto",
            "playwright",
            "lsprotocol",
        ],
        &[],
    )?;
    for (script, parts) in ACCEPTANCE {
        let script = scripts.join(script).display().to_string();
        let arguments: Vec<&str> = std::iter::once(script.as_str())
            .chain(parts.iter().copied())
            .collect();
        run("target/venv/bin/python3", &arguments, &[])?;
    }
    Ok(())
}

fn run(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let shown = format!("{program} {}", arguments.join(" "));
    println!("$ {shown}");
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown}: {status}")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}
