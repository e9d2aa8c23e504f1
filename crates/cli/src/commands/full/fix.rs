//! `chipless check --fix`

use crate::failure::Failure;
use crate::{files, terminal};
use chipless::{Options, Policy};
use std::path::Path;

/// Fixes a file in its place; with `diff` the changes are printed and nothing is written.
pub(crate) fn fix(
    path: &Path,
    options: &Options,
    policy: &Policy,
    diff: bool,
) -> Result<(), Failure> {
    if path == Path::new("-") {
        return Err(Failure::misuse(
            "--fix",
            "expected files, found `-`: standard input cannot be written back",
        ));
    }
    let name = path.display().to_string();
    // What cannot be opened is a finding of the check that follows.
    let Ok(bytes) = files::open(path) else {
        return Ok(());
    };
    let allowed = |code: &str| policy.allows(&name, code);
    let Some(fixed) = chipless_lsp::fix(&name, &bytes, options, &allowed)? else {
        if diff {
            terminal::complain(&format!(
                "{name}: nothing that --fix can change: the help of a finding says what else to do\n"
            ));
        }
        return Ok(());
    };
    if diff {
        let old = String::from_utf8_lossy(&bytes);
        let changes = similar::TextDiff::from_lines(&*old, &fixed.text);
        let shown = name.trim_start_matches('/');
        let (from, to) = (format!("a/{shown}"), format!("b/{shown}"));
        return terminal::print(&changes.unified_diff().header(&from, &to).to_string());
    }
    drop(bytes);
    files::rewrite(path, &[fixed.text.as_bytes()])?;
    let count = fixed.mends.len();
    let fixes = if count == 1 { "fix" } else { "fixes" };
    terminal::complain(&format!("{name}: {count} {fixes} made\n"));
    Ok(())
}
