//! Every bound that keeps a hostile file from taking the machine, in one place.

/// Upper bounds on what a file may make Chipless do. Each violation is reported with the name of its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all buffers of a program together. Address space only: untouched pages are never committed.
    pub memory_bytes: u64,
    /// Tasks of one program.
    pub tasks: u64,
}

impl Limits {
    /// Names and meanings, as `--limit NAME=VALUE` takes them.
    pub const NAMES: &[(&str, &str)] = &[("memory_bytes", "bytes of all buffers of a program together"), ("tasks", "tasks of one program")];

    /// Sets a limit by name; `false` where no limit has it.
    pub fn set(&mut self, name: &str, value: u64) -> bool {
        match name {
            "memory_bytes" => self.memory_bytes = value,
            "tasks" => self.tasks = value,
            _ => return false,
        }
        true
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory_bytes: 64 << 30, tasks: 16_000_000 }
    }
}
