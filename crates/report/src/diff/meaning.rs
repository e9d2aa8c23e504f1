//! What a task does, without where.

use chipless_model::{Access, Direction, Loop, Program, Role, TaskId};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// A task's operation, parameters and shapes.
#[derive(Clone, Debug)]
pub(super) struct Meaning {
    operation: u64,
    parameters: u64,
    shapes: u64,
}

impl Meaning {
    pub(super) fn of(program: &Program<'_>, task: TaskId) -> Meaning {
        let kernel = program.kernel(task);
        let mut shapes = FxHasher::default();
        kernel.accesses(&mut |access| {
            if access.tensor != Access::DESCRIPTION {
                shape(program, &access).hash(&mut shapes);
            }
        });
        Meaning {
            operation: hash(&kernel.operation()),
            parameters: hash(&without_places(&kernel.details())),
            shapes: shapes.finish(),
        }
    }

    /// Of all of it.
    pub(super) fn hash(&self) -> u64 {
        hash(&(self.operation, self.parameters, self.shapes))
    }

    /// Of the operation alone.
    pub(super) fn operation(&self) -> u64 {
        self.operation
    }

    /// In what two tasks differ, as far as each tells by itself.
    pub(super) fn differences(&self, other: &Meaning) -> Vec<&'static str> {
        let parts = [
            ("operation", self.operation != other.operation),
            ("parameters", self.parameters != other.parameters),
            ("shape", self.shapes != other.shapes),
        ];
        let differing = parts.into_iter().filter(|(_, differs)| *differs);
        differing.map(|(what, _)| what).collect()
    }
}

pub(super) fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// An access without where it is.
fn shape(program: &Program<'_>, access: &Access) -> (Direction, Role, u64, Vec<Loop>) {
    let role = program.buffers[access.buffer].role;
    let loops = access.pattern.loops.to_vec();
    (access.direction, role, access.pattern.run, loops)
}

/// Details without addresses, without the names of values (`%x.3`), and without those of semaphores, which are compared by what they lead
/// to.
fn without_places(details: &str) -> String {
    let words = details
        .split_whitespace()
        .filter(|word| !word.contains("$S["));
    let mut out = String::new();
    for word in words {
        if !out.is_empty() {
            out.push(' ');
        }
        let mut rest = word;
        while let Some(at) = rest.find("0x").or_else(|| rest.find('%')) {
            out.push_str(&rest[..at]);
            let is_address = rest[at..].starts_with("0x");
            rest = if is_address {
                rest[at + 2..].trim_start_matches(|c: char| c.is_ascii_hexdigit())
            } else {
                rest[at + 1..].trim_start_matches(|c: char| c.is_alphanumeric() || "._".contains(c))
            };
            out.push('…');
        }
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::without_places;

    #[test]
    fn places_and_names_do_not_count() {
        let same = [
            ("src=fp16@0x407e[-1,0]", "src=fp16@0x403e[-1,0]"),
            ("x=%x.3[12] → %y.1[36]", "x=%a[12] → %b[36]"),
            ("$S[4]>=1 channels=32", "$S[5]>=1 $S[6]++ channels=32"),
        ];
        for (a, b) in same {
            assert_eq!(without_places(a), without_places(b));
        }
        assert_ne!(without_places("x=%x.3[12]"), without_places("x=%x.3[13]"));
    }
}
