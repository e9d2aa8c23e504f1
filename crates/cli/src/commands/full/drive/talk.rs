//! By hand: a line, its verdict, and what may come next.

use super::{Driver, names, told};
use crate::failure::{Exit, Failure};
use crate::terminal;
use std::io::BufRead;
use std::path::PathBuf;

pub(super) const HELP: &str =
    "  write B=1,2,3 C=c.npy    vectors together; names alone write their order
  read                     everything that is ready
  reset                    back to the start
  next                     what may come
  quit
  {\"write\": {...}}         any step as a script has it
";

/// Reads lines until the end.
pub(super) fn talk(driver: &mut Driver<'_, '_>, lines: impl BufRead) -> Result<Exit, Failure> {
    let reader = driver.reader("line".to_owned(), PathBuf::new());
    next(driver)?;
    terminal::print("> ")?;
    for line in lines.lines() {
        let line = line.map_err(|error| Failure::misuse("standard input", error))?;
        match line.trim() {
            "" => {}
            "quit" | "exit" => break,
            "help" | "?" => terminal::print(HELP)?,
            "next" => next(driver)?,
            words => match reader.line(words, None) {
                Ok(step) => {
                    let report = driver.step(&step);
                    terminal::print(&format!("{}\n", told(driver.document, &step, &report)))?;
                    next(driver)?;
                }
                Err(Failure::BrokenPipe) => return Err(Failure::BrokenPipe),
                Err(failure) => terminal::print(&failure.text())?,
            },
        }
        terminal::print("> ")?;
    }
    Ok(if driver.wrong > 0 {
        Exit::Wrong
    } else {
        Exit::Done
    })
}

/// Answers each line at once, with an object on a line.
pub(super) fn answer(driver: &mut Driver<'_, '_>, lines: impl BufRead) -> Result<Exit, Failure> {
    let reader = driver.reader("line".to_owned(), PathBuf::new());
    for line in lines.lines() {
        let line = line.map_err(|error| Failure::misuse("standard input", error))?;
        if line.trim().is_empty() {
            continue;
        }
        let report = match reader.line(&line, None) {
            Ok(step) => driver.step(&step),
            Err(failure) => driver.refused(&failure),
        };
        let text = serde_json::to_string(&report)
            .map_err(|error| Failure::misuse("standard output", error))?;
        terminal::print(&format!("{text}\n"))?;
    }
    Ok(if driver.wrong > 0 {
        Exit::Wrong
    } else {
        Exit::Done
    })
}

fn next(driver: &Driver<'_, '_>) -> Result<(), Failure> {
    terminal::print(&may_come(driver))
}

/// What may come, on a line.
pub(super) fn may_come(driver: &Driver<'_, '_>) -> String {
    let (inputs, outputs) = driver.session.next();
    let mut said = Vec::new();
    if !inputs.is_empty() {
        said.push(format!("write {}", names(&inputs, " or ")));
    }
    if !outputs.is_empty() {
        said.push(format!("read (gives {})", names(&outputs, ", ")));
    }
    let said = if said.is_empty() {
        "reset".to_owned()
    } else {
        said.join("; ")
    };
    format!("next: {said}\n")
}
