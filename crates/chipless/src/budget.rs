//! What a run may take at most: latencies, peaks of memories, bytes moved.

use crate::failure::Failure;
use chipless_device::quantity;
use chipless_model::Program;
use chipless_model::suggest;
use chipless_report::attribution::lives;
use chipless_report::summary::{Budgeted, moved_bytes};
use chipless_sim::Timeline;

/// A bound on one quantity of a run: `latency=2ms`, `peak.cmx=95%`, `moved=10MB`.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    text: String,
    quantity: Quantity,
    limit: Limit,
}

#[derive(Clone, Debug, PartialEq)]
enum Quantity {
    /// From the start of the run to its end, in ns.
    Latency,
    /// Bytes that all transfers move.
    Moved,
    /// Live bytes of a memory, or of the fullest of several whose names differ in numbers alone.
    Peak(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// Nanoseconds or bytes.
    Absolute(f64),
    /// Of the memory's size, from 0 to 1.
    Share(f64),
}

impl Budget {
    /// Whether it limits the latency.
    pub fn is_of_latency(&self) -> bool {
        self.quantity == Quantity::Latency
    }

    /// Reads budgets, which commas separate.
    ///
    /// # Errors
    /// What was expected of the first that makes no sense.
    pub fn parse(text: &str) -> Result<Vec<Budget>, String> {
        text.split(',').map(|one| Budget::one(one.trim())).collect()
    }

    fn one(text: &str) -> Result<Budget, String> {
        let wrong = |what: &str| format!("expected {what}, found \"{text}\"");
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| wrong("QUANTITY=LIMIT, such as latency=2ms"))?;
        let quantity = match key {
            "latency" => Quantity::Latency,
            "moved" => Quantity::Moved,
            _ => match key.strip_prefix("peak.") {
                Some(memory) if !memory.is_empty() => Quantity::Peak(memory.to_owned()),
                _ => return Err(wrong("latency, moved or peak.MEMORY before the =")),
            },
        };
        let limit = match (&quantity, value.strip_suffix('%')) {
            (Quantity::Peak(_), Some(percent)) => {
                let percent: Option<f64> = percent.trim().parse().ok();
                percent
                    .filter(|p| p.is_finite() && *p >= 0.0)
                    .map(|p| Limit::Share(p / 100.0))
            }
            (Quantity::Latency, _) => {
                quantity::time(value, None).map(|ps| Limit::Absolute(ps as f64 / 1e3))
            }
            _ => quantity::size(value).map(|bytes| Limit::Absolute(bytes as f64)),
        };
        let limit = limit.ok_or_else(|| {
            wrong(match quantity {
                Quantity::Latency => "a time with its unit, such as 2ms or 350us",
                Quantity::Moved => "a size, such as 10MB or 64KiB",
                Quantity::Peak(_) => "a size or a part of the memory, such as 1MiB or 95%",
            })
        })?;
        Ok(Budget {
            text: text.to_owned(),
            quantity,
            limit,
        })
    }

    /// What a run takes, beside what it may.
    ///
    /// # Errors
    /// A memory that the program does not have.
    pub fn measure(&self, program: &Program<'_>, timeline: &Timeline) -> Result<Budgeted, Failure> {
        let whole = |unit, found| (None, unit, found, 0.0);
        let (memory, unit, found, size) = match &self.quantity {
            Quantity::Latency => whole("ns", timeline.end.ns()),
            Quantity::Moved => whole("bytes", moved_bytes(program, timeline) as f64),
            Quantity::Peak(memory) => peak(memory, program, timeline)?,
        };
        let limit = match self.limit {
            Limit::Absolute(limit) => limit,
            Limit::Share(share) => share * size,
        };
        Ok(Budgeted {
            budget: self.text.clone(),
            memory,
            unit,
            found,
            limit,
            within: found <= limit,
        })
    }
}

/// Name, peak of live bytes, and size of the memory of this name, or of the fullest one of a family of memories: `cmx` of `cmx0`, `cmx1`.
fn peak(
    name: &str,
    program: &Program<'_>,
    timeline: &Timeline,
) -> Result<(Option<String>, &'static str, f64, f64), Failure> {
    let family = |known: &str| known.trim_end_matches(|c: char| c.is_ascii_digit()) == name;
    let live = lives(program, timeline).peaks();
    let peaks = program
        .memories
        .iter_enumerated()
        .filter(|(_, memory)| memory.name == name || family(&memory.name))
        .map(|(id, memory)| (&memory.name, live[id] as f64, memory.size as f64));
    let fullest =
        peaks.max_by(|(_, a, s), (_, b, t)| (a / s.max(1.0)).total_cmp(&(b / t.max(1.0))));
    fullest
        .map(|(name, peak, size)| (Some((*name).clone()), "bytes", peak, size))
        .ok_or_else(|| {
            let names: Vec<&str> = program.memories.iter().map(|m| &*m.name).collect();
            let hint = suggest::hint(name, names.iter().copied());
            let text = format!(
                "peak.{name}: expected a memory of the program ({}), found none of that name{hint}",
                names.join(", ")
            );
            Failure::misuse("--budget", text)
        })
}

#[cfg(test)]
mod tests {
    use super::Budget;

    #[test]
    fn budgets_are_read_with_their_units() {
        let read = Budget::parse("latency=2ms,peak.cmx=95%,moved=10MB").expect("budgets");
        assert_eq!(read.len(), 3);
        for (text, what) in [
            ("latency", "QUANTITY=LIMIT"),
            ("latency=2", "a time with its unit"),
            ("latency=5%", "a time with its unit"),
            ("time=2ms", "latency, moved or peak.MEMORY"),
            ("peak.=1", "latency, moved or peak.MEMORY"),
            ("moved=-1", "a size"),
            ("peak.cmx=-1%", "a size or a part"),
            ("peak.cmx=NaN%", "a size or a part"),
            ("peak.cmx=inf%", "a size or a part"),
        ] {
            let error = Budget::parse(text).expect_err(text);
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
