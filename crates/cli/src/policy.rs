//! Which findings count: `--allow`, `--allow-file` and `--deny`.

use crate::failure::Failure;
use crate::files;
use chipless::Policy;
use clap::Args;
use std::path::PathBuf;

/// Which findings count.
#[derive(Args, Debug)]
#[command(next_help_heading = "Findings")]
pub(crate) struct PolicyOptions {
    /// Ignore findings with this code. Repeatable.
    ///
    /// Patterns are accepted: `neff-*`.
    #[arg(long, value_name = "CODE")]
    allow: Vec<String>,
    /// Read codes to ignore from a file.
    ///
    /// One per line: `CODE [GLOB of paths]  # reason`.
    #[arg(long, value_name = "FILE")]
    allow_file: Vec<PathBuf>,
    /// Treat findings with this code as errors. Repeatable.
    ///
    /// Patterns are accepted.
    #[arg(long, value_name = "CODE")]
    deny: Vec<String>,
}

impl PolicyOptions {
    pub(crate) fn load(&self) -> Result<Policy, Failure> {
        let mut policy = Policy::default();
        for code in &self.deny {
            policy.deny("--deny", code)?;
        }
        for code in &self.allow {
            policy.allow("--allow", code)?;
        }
        for path in &self.allow_file {
            policy.allow_file(&path.display().to_string(), &files::read_text(path)?)?;
        }
        Ok(policy)
    }
}
