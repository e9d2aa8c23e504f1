//! `cargo xtask ci`: everything that a change must pass, in the order in which it fails fastest.
//!
//! `cargo xtask findings`: writes `docs/findings.md` from the rules of all targets. A test of the command line fails when it is stale.

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
    (
        "npu.py",
        &[
            "info", "run", "refuse", "survive", "clean", "broken", "latency", "names", "imports",
        ],
    ),
    (
        "device.py",
        &[
            "contexts",
            "sharing",
            "rings",
            "preempt",
            "translation",
            "faults",
            "laws",
            "files",
        ],
    ),
    // `broken` holds an unknown opcode to be an error, which `unknown` forbids.
    (
        "neff.py",
        &[
            "info", "run", "pack", "clean", "survive", "listing", "unknown", "order", "rules2",
            "triggers", "models",
        ],
    ),
    (
        "gemini.py",
        &[
            "info", "traffic", "replay", "execute", "convert", "clean", "broken", "survive",
        ],
    ),
    (
        "dfg.py",
        &[
            "parse", "format", "probes", "streams", "adg", "judge", "map",
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
        ],
    ),
];

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let done = match task.as_deref() {
        Some("ci") => ci(),
        Some("findings") => findings(),
        _ => Err("usage: cargo xtask ci|findings".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn ci() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("xtask has no parent directory")?;
    std::env::set_current_dir(root).map_err(|e| format!("{}: {e}", root.display()))?;
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
    run("cargo", &["test", "--workspace"], &[])?;
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

/// Writes the page of all rules.
fn findings() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("xtask has no parent directory")?;
    let arguments = [
        "run",
        "--quiet",
        "--package",
        "chipless-cli",
        "--",
        "explain",
        "--markdown",
    ];
    let output = Command::new("cargo")
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let page = root.join("docs/findings.md");
    std::fs::write(&page, output.stdout).map_err(|error| format!("{}: {error}", page.display()))
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
        run("target/venv/bin/pip", &["install", "--quiet", "numpy"], &[])?;
    }
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
