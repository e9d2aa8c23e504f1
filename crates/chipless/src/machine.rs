//! Machines as text: figures by their names, with unit and source.
//!
//! A machine file is TOML. The comment behind a figure, or else the lines above it, say its unit and its source: `# MHz: the vendor's guide`.
//! Where there is none, those of the section count. Figures of a device have a grade behind their unit: `# us [assumed]: …`.

use crate::failure::Failure;
use crate::suggest;
use chipless_device::figures::Grade;
use std::collections::BTreeMap;

/// A figure of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its place in the machine file, as `--set` takes it: `dma.start_ns`.
    pub key: String,
    /// Its value, as TOML has it.
    pub value: String,
    /// Its unit; `1` for ratios.
    pub unit: String,
    /// Where it comes from.
    pub source: String,
    /// How much that is worth, of figures of a device.
    pub grade: Option<Grade>,
}

/// The figures of a machine file, in its order; empty for a text that is none.
pub fn figures(text: &str) -> Vec<Figure> {
    let machine: toml::Table = toml::from_str(text).unwrap_or_default();
    let mut comments = comments(text);
    let mut figures: Vec<(usize, Figure)> = Vec::new();
    for key in machine.iter().flat_map(|(name, value)| keys(name, value)) {
        let Some(value) =
            value(&machine, &key).filter(|value| !value.is_str() || key.contains('.'))
        else {
            continue;
        };
        let (line, (unit, source)) = comments
            .remove(&key)
            .or_else(|| comments.get(key.rsplit_once('.')?.0).cloned())
            .unwrap_or_default();
        let unit = unit_of(&unit, &key);
        let (unit, grade) = graded(&unit);
        figures.push((
            line,
            Figure {
                unit: unit.to_owned(),
                grade,
                value: value.to_string(),
                key,
                source,
            },
        ));
    }
    figures.sort_by_key(|(line, _)| *line);
    figures.into_iter().map(|(_, figure)| figure).collect()
}

/// A unit and the grade behind it.
fn graded(unit: &str) -> (&str, Option<Grade>) {
    let behind = unit
        .strip_suffix(']')
        .and_then(|unit| unit.rsplit_once(" ["));
    match behind.map(|(unit, name)| (unit, Grade::from_name(name))) {
        Some((unit, grade @ Some(_))) => (unit, grade),
        _ => (unit, None),
    }
}

/// Of `fixed in µs, per_byte in µs/byte`, the unit of the last name of a key.
fn unit_of(units: &str, key: &str) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    let of_name = |part: &str| {
        let (known, unit) = part.trim().split_once(" in ")?;
        (known == name).then(|| unit.to_owned())
    };
    units
        .split(',')
        .find_map(of_name)
        .unwrap_or_else(|| units.to_owned())
}

/// For each key of a machine file its line, unit and source.
fn comments(text: &str) -> BTreeMap<String, (usize, (String, String))> {
    let mut found = BTreeMap::new();
    let (mut section, mut of_section) = (String::new(), String::new());
    let mut above: Vec<&str> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let (code, behind) = match line.find('#') {
            Some(at) => (line[..at].trim(), line[at + 1..].trim()),
            None => (line, ""),
        };
        if code.is_empty() {
            if behind.is_empty() {
                above.clear();
            } else {
                above.push(behind);
            }
            continue;
        }
        let said = if behind.is_empty() {
            above.join(" ")
        } else {
            behind.to_owned()
        };
        above.clear();
        if let Some(name) = code.strip_prefix('[').and_then(|c| c.strip_suffix(']')) {
            name.clone_into(&mut section);
            of_section = said;
        } else if let Some((name, _)) = code.split_once('=') {
            let key = match &*section {
                "" => name.trim().to_owned(),
                section => format!("{section}.{}", name.trim()),
            };
            let said = if said.is_empty() { &of_section } else { &said };
            let of_section = of_section.split_once(": ").unwrap_or_default().0;
            let (unit, source) = said.split_once(": ").unwrap_or((of_section, said));
            found.insert(key, (number, (unit.to_owned(), source.to_owned())));
        }
    }
    found
}

/// The figure of a key.
fn value<'m>(machine: &'m toml::Table, key: &str) -> Option<&'m toml::Value> {
    let mut names = key.split('.');
    let first = machine.get(names.next()?)?;
    names.try_fold(first, |value, name| value.as_table()?.get(name))
}

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
        // A text needs no quotes.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::TARGETS;

    #[test]
    fn every_figure_says_its_unit_and_its_source() {
        for target in TARGETS {
            for (name, text) in target.machines() {
                let figures = figures(text);
                assert!(figures.len() >= 3, "{name}");
                for figure in figures {
                    let Figure { unit, source, .. } = &figure;
                    let is_unit = !unit.is_empty() && unit.len() < 16 && !unit.contains(' ');
                    assert!(is_unit && !source.is_empty(), "{name}: {figure:?}");
                }
            }
        }
    }

    #[test]
    fn figures_are_found_where_they_stand() {
        let text = "# A machine.\n\n[dma] # bytes: sheet 1\n# ns: sheet 2,\n# page 3\nstart = 5\nrow = 64\n\n[f]\n# a in s, b in m: sheet 4\nx = { a = 1.5, b = 2 }\n";
        let all = figures(text);
        let told: Vec<String> = all
            .iter()
            .map(|f| format!("{} {} {} {}", f.key, f.value, f.unit, f.source))
            .collect();
        assert_eq!(
            told,
            [
                "dma.start 5 ns sheet 2, page 3",
                "dma.row 64 bytes sheet 1",
                "f.x.a 1.5 s sheet 4",
                "f.x.b 2 m sheet 4"
            ]
        );
    }

    #[test]
    fn a_figure_is_set_by_its_key() {
        let text = "name = \"a\"\n[dma]\nstart = 5\n";
        let set = |figure: &str| with_figures(text, &[figure.to_owned()]);
        assert!(set("dma.start=7").is_ok_and(|text| text.contains("start = 7")));
        assert!(set("name=b").is_ok_and(|text| text.contains("name = \"b\"")));
        let said = set("dma.strat=7").unwrap_err().to_string();
        assert!(
            said.ends_with("found \"dma.strat\"; did you mean \"dma.start\"?"),
            "{said}"
        );
        assert!(set("dma=7").is_err() && set("dma.start=fast").is_err());
    }
}
