//! By hand: a line, its verdict, and what may come next.

use super::script::{Reader, Step};
use super::{Driver, names, told};
use crate::failure::{Exit, Failure};
use crate::terminal;
use std::io::BufRead;
use std::path::PathBuf;

const HELP: &str = "\
  write B=1,2,3 C=c.npy    vectors together; names alone write their order
  read                     what is ready
  reset                    back to the start
  next                     what may come
  quit
  {\"write\": {...}}         any step as a script has it
";

/// Reads lines until the end.
pub(super) fn talk(driver: &mut Driver<'_, '_>, lines: impl BufRead) -> Result<Exit, Failure> {
    let reader =
        Reader { name: "line".to_owned(), directory: PathBuf::new(), document: driver.document, quantize: driver.arguments.quantize };
    next(driver)?;
    terminal::print("> ")?;
    for line in lines.lines() {
        let line = line.map_err(|error| Failure::unusable("standard input", error))?;
        match line.trim() {
            "" => {}
            "quit" | "exit" => break,
            "help" | "?" => terminal::print(HELP)?,
            "next" => next(driver)?,
            words => match step(&reader, words) {
                Ok(step) => {
                    let report = driver.step(&step);
                    terminal::print(&format!("{}\n", told(&step, &report)))?;
                    next(driver)?;
                }
                Err(Failure::Said(_, text)) => terminal::print(&text)?,
                Err(failure) => return Err(failure),
            },
        }
        terminal::print("> ")?;
    }
    Ok(if driver.wrong > 0 { Exit::Wrong } else { Exit::Done })
}

fn step(reader: &Reader<'_>, line: &str) -> Result<Step, Failure> {
    let Some(rest) = line.strip_prefix("write ").filter(|rest| !rest.trim_start().starts_with('{')) else {
        let known = matches!(line, "read" | "reset") || line.starts_with('{') || line.contains(':');
        if !known {
            let hint = crate::suggest::hint(line, ["write", "read", "reset", "next", "help", "quit"]);
            return Err(Failure::unusable("line", format_args!("expected write, read, reset, next, help or quit, found \"{line}\"{hint}")));
        }
        return reader.line(line, 1);
    };
    let vectors: Vec<(String, Option<String>)> = rest
        .split_whitespace()
        .map(|word| match word.split_once('=') {
            Some((name, values)) => (name.to_owned(), Some(values.to_owned())),
            None => (word.to_owned(), None),
        })
        .collect();
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let written = if vectors.iter().all(|(_, values)| values.is_none()) {
        let names: Vec<String> = vectors.iter().map(|(name, _)| quoted(name)).collect();
        format!("{{\"write\": [{}]}}", names.join(", "))
    } else {
        let numeric = |v: &str| v.chars().all(|c| c.is_ascii_digit() || "+-.,eE".contains(c));
        let one = |(name, values): &(String, Option<String>)| {
            let values = values.clone().unwrap_or_default();
            let values = if numeric(&values) { format!("[{values}]") } else { quoted(&values) };
            format!("{}: {values}", quoted(name))
        };
        format!("{{\"write\": {{{}}}}}", vectors.iter().map(one).collect::<Vec<_>>().join(", "))
    };
    reader.line(&written, 1)
}

/// Says what may come.
fn next(driver: &Driver<'_, '_>) -> Result<(), Failure> {
    let (inputs, outputs) = driver.session.next();
    let mut said = Vec::new();
    if !inputs.is_empty() {
        said.push(format!("write {}", names(&inputs)));
    }
    if !outputs.is_empty() {
        said.push(format!("read {}", names(&outputs)));
    }
    let said = if said.is_empty() { "reset".to_owned() } else { said.join("; ") };
    terminal::print(&format!("next: {said}\n"))
}
