//! Why a program does not run, or not to its end.

use super::Arguments;
use crate::commands::Opened;
use crate::commands::order::Asked;
use crate::failure::{Failure, Told};
use crate::terminal;
use chipless::{Budget, FailureKind, OpenDocument, Policy};
use chipless_model::{Finding, Program};
use chipless_report::deadlock;
use chipless_sim::{Outcome, Stop, Timeline, TimingOnly};

pub(in crate::commands) fn verify(program: &Program<'_>) -> Vec<Finding> {
    match chipless_verify::verify(program) {
        Ok(verified) => verified.warnings().to_vec(),
        Err(findings) => findings,
    }
}

/// Why a program in which errors were found does not run, with the timeline as far as it came where it hangs or breaks a protocol.
/// `None`: none of the findings is an error by this policy.
pub(in crate::commands) fn refusal(
    opened: &Opened,
    document: &OpenDocument<'_>,
    program: &Program<'_>,
    policy: &Policy,
    findings: &[Finding],
    mut errors: Vec<Finding>,
) -> Option<(Failure, Option<Timeline>)> {
    policy.apply(&opened.path, &mut errors);
    errors.splice(0..0, findings.iter().cloned());
    errors.retain(Finding::is_error);
    if errors.is_empty() {
        return None;
    }
    let Outcome { timeline, end } =
        chipless_sim::run(&chipless_sim::Verified::assume(program), &mut TimingOnly);
    if let Err(stop) = end {
        let mut told = stopped(opened, program, &timeline, &stop);
        told.failure.kind = FailureKind::Refused;
        return Some((told.into(), Some(timeline)));
    }
    document.advise(&mut errors);
    let failure = chipless::Failure {
        message: "not run: errors were found (--no-verify runs it all the same)".to_owned(),
        ..chipless::Failure::program(errors)
    };
    Some((failure.into(), None))
}

/// Why a run did not come to its end.
pub(super) fn stopped(
    opened: &Opened,
    program: &Program<'_>,
    timeline: &Timeline,
    stop: &Stop,
) -> Told {
    let failure = chipless::stopped(program, stop).about(&opened.path);
    let (path, paint) = (&opened.path, terminal::err());
    let mut text = deadlock::text(path, program, timeline, stop, paint);
    if failure.kind == FailureKind::Unsupported {
        text.push_str("   = help: --timing-only times the program without its numbers\n");
    }
    let details = match stop {
        Stop::Deadlock(deadlock) => {
            let report = serde_json::to_value(deadlock::report(program, deadlock));
            report
                .into_iter()
                .map(|report| ("deadlock", report))
                .collect()
        }
        Stop::Fault { .. } => Vec::new(),
    };
    Told {
        failure,
        text,
        details,
    }
}

/// Refuses what judges times where the order is not the timed one.
pub(super) fn times_of_another_order(arguments: &Arguments) -> Result<(), Failure> {
    let mut budgets = arguments.budgets.iter().flatten();
    let option = if arguments.order == Asked::Timed {
        return Ok(());
    } else if budgets.any(Budget::is_of_latency) {
        "--budget latency"
    } else if arguments.changes.are_asked_for() {
        "--rank or --what-if"
    } else {
        return Ok(());
    };
    let text = "expected the timed order, found another --order, whose times mean nothing";
    Err(Failure::misuse(option, text))
}
