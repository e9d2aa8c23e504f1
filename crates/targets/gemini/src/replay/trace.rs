//! Traces of assembly: what the comparison needs of them.

use chipless_model::{Finding, Place, Rule, Severity};
use std::collections::HashMap;

/// A trace cannot be read.
pub static TRACE: Rule = Rule {
    code: "gemini-trace",
    severity: Severity::Error,
    summary: "a trace that cannot be read",
    explanation: "A trace has an instruction a line: `[op, {'wkl': n, …}, {'inst_idx': n, 'time': [start, end]}, {…}]`.",
    remedy: "Give the trace of the schedule's assembly.",
    source: "Published traces",
};

/// When a workload ran in a trace, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start of its first compute instruction.
    pub start: u64,
    /// End of its last.
    pub end: u64,
}

/// When things happened in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Largest end of all instructions.
    pub end: u64,
    /// Workloads by id.
    pub spans: HashMap<u32, Span>,
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// A line without an instruction, a workload or times, and a text without lines.
    pub fn read(text: &str) -> Result<Trace, Box<Finding>> {
        let mut trace = Trace::default();
        let mut lines = 0;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = |what: &str| {
                Box::new(TRACE.at(
                    Place::file().at(format!("line {}", number + 1)),
                    format!("expected {what}, found {:?}", line.chars().take(60).collect::<String>()),
                ))
            };
            let operation = line
                .strip_prefix('[')
                .and_then(|rest| rest.split_once(','))
                .map(|(op, _)| op.trim())
                .ok_or_else(|| wrong("an instruction"))?;
            let times = after(line, "'time':")
                .and_then(|rest| rest.trim_start().strip_prefix('['))
                .and_then(|rest| rest.split_once(']'))
                .map(|(times, _)| times);
            let (start, end) = times
                .and_then(|times| times.split_once(','))
                .and_then(|(start, end)| Some((start.trim().parse::<u64>().ok()?, end.trim().parse::<u64>().ok()?)))
                .filter(|(start, end)| start <= end)
                .ok_or_else(|| wrong("'time': [start, end]"))?;
            trace.end = trace.end.max(end);
            lines += 1;
            if !matches!(operation, "pe_conv" | "vp_self" | "vp_pool") {
                continue;
            }
            let digits = after(line, "'wkl':").map(|rest| rest.trim_start().split(|c: char| !c.is_ascii_digit()).next().unwrap_or(""));
            let workload = digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| wrong("'wkl': workload"))?;
            let span = trace.spans.entry(workload).or_insert(Span { start, end });
            *span = Span { start: span.start.min(start), end: span.end.max(end) };
        }
        if lines == 0 {
            return Err(Box::new(TRACE.at(Place::file(), "expected a trace, found no instruction")));
        }
        Ok(trace)
    }
}

fn after<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    line.find(key).map(|at| &line[at + key.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_those_of_compute_instructions() {
        let text = "[vp_cfg_fm, {'slyr': 0, 'wkl': 3, 'tile': 0}, {'inst_idx': 1, 'time': [0, 21]}, {}]\n\
                    [pe_conv, {'slyr': 0, 'wkl': 3, 'tile': 0}, {'inst_idx': 2, 'time': [21, 40]}, {'PS': 0}]\n\n\
                    [pe_conv, {'slyr': 0, 'wkl': 3, 'tile': 1}, {'inst_idx': 3, 'time': [40, 60]}, {'PS': 0}]\n\
                    [ct_ed, {'wkl': 3}, {'inst_idx': 4, 'time': [60, 90]}, {}]\n";
        let trace = Trace::read(text).expect("sound");
        assert_eq!(trace, Trace { end: 90, spans: HashMap::from([(3, Span { start: 21, end: 60 })]) });
        for broken in [
            "",
            "pe_conv\n",
            "[pe_conv, {'wkl': 1}, {'time': [5]}]\n",
            "[pe_conv, {'wkl': x}, {'time': [5, 6]}]\n",
            "[pe_conv, {}, {'time': [7, 6]}]\n",
        ] {
            assert!(Trace::read(broken).is_err(), "{broken:?}");
        }
    }
}
