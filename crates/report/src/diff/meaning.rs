//! What a task does, without where.

use chipless_model::{Direction, Loop, Program, Role, TaskId};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

pub(super) struct Meaning {
    pub(super) operation: String,
    parameters: String,
    shapes: Vec<Shape>,
    /// Of all of it.
    pub(super) hash: u64,
}

#[derive(PartialEq, Eq, Hash)]
struct Shape {
    direction: Direction,
    role: Role,
    run: u64,
    loops: Vec<Loop>,
}

impl Meaning {
    pub(super) fn of(program: &Program<'_>, task: TaskId) -> Meaning {
        let kernel = program.kernel(task);
        let mut shapes = Vec::new();
        kernel.accesses(&mut |access| {
            shapes.push(Shape {
                direction: access.direction,
                role: program.buffers[access.buffer].role,
                run: access.pattern.run,
                loops: access.pattern.loops.to_vec(),
            });
        });
        let operation = kernel.operation().into_owned();
        let parameters = without_places(&kernel.details());
        let mut hasher = FxHasher::default();
        (&operation, &parameters, &shapes).hash(&mut hasher);
        Meaning {
            operation,
            parameters,
            shapes,
            hash: hasher.finish(),
        }
    }

    /// In what two tasks differ, as far as each tells by itself.
    pub(super) fn differences(&self, other: &Meaning) -> Vec<&'static str> {
        let mut what = Vec::new();
        if self.operation != other.operation {
            what.push("operation");
        }
        if self.parameters != other.parameters {
            what.push("parameters");
        }
        if self.shapes != other.shapes {
            what.push("shape");
        }
        what
    }
}

/// Details without addresses and without the names of semaphores, which are compared by what they lead to.
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
        while let Some(at) = rest.find("0x") {
            out.push_str(&rest[..at]);
            out.push_str("0x…");
            rest = rest[at + 2..].trim_start_matches(|c: char| c.is_ascii_hexdigit());
        }
        out.push_str(rest);
    }
    out
}
