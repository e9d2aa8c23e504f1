//! Reads, lowers, verifies and replays schedules: how long each step takes, and the cycles.
#![allow(clippy::print_stdout, reason = "an example")]

use chipless_gemini::{Data, Dialect, Machine, Schedule, lower};
use chipless_model::Limits;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limits = Limits::default();
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        let bytes = chipless_gemini::unzip(&bytes, &limits)?;
        let start = Instant::now();
        let schedule = Schedule::read(std::str::from_utf8(&bytes)?)?;
        let read = start.elapsed();
        let machine = Machine::named(if schedule.dialect == Dialect::Spec { "spec" } else { "set" }).ok_or("no machine")?;
        let start = Instant::now();
        let lowered = lower(&schedule, &Data::default(), &machine, &limits)?;
        let lowering = start.elapsed();
        let program = &lowered.program;
        let start = Instant::now();
        let verdict = chipless_verify::verify(program);
        let verifying = start.elapsed();
        let start = Instant::now();
        let outcome = chipless_sim::run(program, &mut chipless_sim::TimingOnly);
        let replay = start.elapsed();
        println!(
            "{path}: {} cycles, {} tasks, {:?}; read {read:.1?}, lower {lowering:.1?}, verify {verifying:.1?}, replay {replay:.1?}",
            machine.cycles_of(outcome.timeline.end),
            program.tasks.len(),
            outcome.end.as_ref().map_err(|e| format!("{e:?}").chars().take(200).collect::<String>()),
        );
        let findings = match &verdict {
            Ok(verified) => verified.warnings(),
            Err(findings) => &findings[..],
        };
        for finding in findings.iter().take(6) {
            println!("    {:?} {finding}", finding.rule.severity);
        }
    }
    Ok(())
}
