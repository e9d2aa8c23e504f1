//! Machines as text: figures by their names.

use crate::failure::Failure;
use crate::suggest;

/// A machine file with other figures: `KEY=VALUE`, where the key is a path of names and the value is TOML.
pub(crate) fn with_figures(text: &str, figures: &[String]) -> Result<String, Failure> {
    if figures.is_empty() {
        return Ok(text.to_owned());
    }
    let misused = |text: String| Failure::misuse("--set", text);
    let mut machine: toml::Table =
        toml::from_str(text).map_err(|error| misused(error.to_string()))?;
    for figure in figures {
        let (key, value) = figure
            .split_once('=')
            .ok_or_else(|| misused(format!("expected KEY=VALUE, found \"{figure}\"")))?;
        let known: Vec<String> = machine
            .iter()
            .flat_map(|(name, value)| keys(name, value))
            .collect();
        let Some(slot) = slot(&mut machine, key) else {
            let hint = suggest::hint(key, known.iter().map(String::as_str));
            return Err(misused(format!(
                "expected a figure of the machine (`chipless machine` lists them), found \"{key}\"{hint}"
            )));
        };
        let parsed = toml::from_str::<toml::Table>(&format!("value = {value}"))
            .ok()
            .and_then(|mut table| table.remove("value"));
        *slot = match parsed {
            Some(value) => value,
            None if slot.is_str() => toml::Value::String(value.to_owned()),
            None => {
                return Err(misused(format!(
                    "expected a number for {key}, found \"{value}\""
                )));
            }
        };
    }
    Ok(machine.to_string())
}

/// The place of a figure, by the path of its names.
fn slot<'m>(machine: &'m mut toml::Table, key: &str) -> Option<&'m mut toml::Value> {
    let mut names = key.split('.');
    let first = machine.get_mut(names.next()?)?;
    let slot = names.try_fold(first, |slot, name| slot.as_table_mut()?.get_mut(name))?;
    (!slot.is_table()).then_some(slot)
}

/// Paths of the figures under a name.
fn keys(name: &str, value: &toml::Value) -> Vec<String> {
    match value.as_table() {
        Some(table) => table
            .iter()
            .flat_map(|(inner, value)| keys(inner, value))
            .map(|inner| format!("{name}.{inner}"))
            .collect(),
        None => vec![name.to_owned()],
    }
}
