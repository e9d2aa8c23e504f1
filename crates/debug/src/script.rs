//! Commands from a text, a line each.

use crate::command::Console;
use serde_json::{Map, Value as Json};
use std::io::{self, BufRead, Write};

/// Executes the commands of a script, and writes what they answer: as text, or an object of JSON a line. Empty lines and those that
/// start with `#` are passed over. Returns whether all of them could be done.
///
/// # Errors
/// The script cannot be read, or nobody takes the answers.
pub fn run(
    console: &mut Console<'_, '_>,
    script: impl BufRead,
    out: &mut impl Write,
    json: bool,
) -> io::Result<bool> {
    let mut good = true;
    for line in script.lines() {
        let line = line?;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let answer = console.execute(line);
        good &= answer.is_ok();
        if json {
            let mut object = Map::new();
            let name = Console::name(line).unwrap_or(line);
            object.insert("command".to_owned(), name.into());
            object.insert("line".to_owned(), line.into());
            object.insert("ok".to_owned(), answer.is_ok().into());
            match &answer {
                Ok(answer) => object.extend(answer.fields.clone()),
                Err(error) => {
                    object.insert("error".to_owned(), error.clone().into());
                }
            }
            writeln!(out, "{}", Json::Object(object))?;
        } else {
            writeln!(out, "> {line}")?;
            match &answer {
                Ok(answer) => out.write_all(answer.text.as_bytes())?,
                Err(error) => writeln!(out, "error: {error}")?,
            }
        }
        out.flush()?;
        if answer.is_ok_and(|answer| answer.quits) {
            break;
        }
    }
    Ok(good)
}
