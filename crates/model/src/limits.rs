//! Every bound that keeps a hostile file from taking the machine, in one place.

/// Upper bounds on what a file may make Chipless do. Each violation is reported with the name of its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all buffers of a program together. Address space only: untouched pages are never committed.
    pub memory_bytes: u64,
    /// Tasks of one program.
    pub tasks: u64,
    /// Bytes that a compressed payload may grow to.
    pub inflated_bytes: u64,
    /// Bytes out of each byte of compressed payload; it counts only beyond the first 64 MiB (the first
    /// GiB of a NEFF, which holds its constants), so that files of zeros pass.
    pub inflate_ratio: u64,
    /// Members of an archive.
    pub entries: u64,
    /// Bytes of the path of a member.
    pub path_bytes: u64,
    /// Bytes of one JSON document.
    pub json_bytes: u64,
    /// Bytes of one program that is text.
    pub text_bytes: u64,
    /// Static transfers of one program.
    pub transfers: u64,
    /// What one program declares: variables, queue sets, statements and values of a graph.
    pub declarations: u64,
    /// Findings kept for one file; the rest is counted.
    pub findings: u64,
    /// Bytes that are read from what is no regular file: a pipe may be endless.
    pub pipe_bytes: u64,
}

impl Limits {
    /// Names and meanings, as `--limit NAME=VALUE` takes them.
    pub const NAMES: &[(&str, &str)] = &[
        ("memory_bytes", "bytes of all buffers of a program together"),
        ("tasks", "tasks of one program"),
        (
            "inflated_bytes",
            "bytes that a compressed payload may grow to",
        ),
        (
            "inflate_ratio",
            "bytes out of each byte of compressed payload, beyond the first 64 MiB (1 GiB of a NEFF)",
        ),
        ("entries", "members of an archive"),
        ("path_bytes", "bytes of the path of a member"),
        ("json_bytes", "bytes of one JSON document"),
        ("text_bytes", "bytes of one program that is text"),
        ("transfers", "static transfers of one program"),
        (
            "declarations",
            "what one program declares: variables, queue sets, values of a graph",
        ),
        ("findings", "findings kept for one file"),
        ("pipe_bytes", "bytes read from a pipe"),
    ];

    /// Sets a limit by name; `false` where no limit has it.
    pub fn set(&mut self, name: &str, value: u64) -> bool {
        match name {
            "memory_bytes" => self.memory_bytes = value,
            "tasks" => self.tasks = value,
            "inflated_bytes" => self.inflated_bytes = value,
            "inflate_ratio" => self.inflate_ratio = value,
            "entries" => self.entries = value,
            "path_bytes" => self.path_bytes = value,
            "json_bytes" => self.json_bytes = value,
            "text_bytes" => self.text_bytes = value,
            "transfers" => self.transfers = value,
            "declarations" => self.declarations = value,
            "findings" => self.findings = value,
            "pipe_bytes" => self.pipe_bytes = value,
            _ => return false,
        }
        true
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            memory_bytes: 64 << 30,
            tasks: 16_000_000,
            inflated_bytes: 8 << 30,
            inflate_ratio: 100,
            entries: 100_000,
            path_bytes: 1024,
            json_bytes: 256 << 20,
            text_bytes: 64 << 20,
            transfers: 4_000_000,
            declarations: 1_000_000,
            findings: 256,
            pipe_bytes: 64 << 20,
        }
    }
}
