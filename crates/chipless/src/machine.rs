//! Machines as text: figures by their names, with unit and source.
//!
//! A machine file is TOML. The comment behind a figure, or else the lines above it, say its unit and its source: `# MHz: the vendor's guide`.
//! Where there is none, those of the section count. The unit tells which way a figure is good: more of a rate, less of a time. Where it does
//! not, or tells it wrong, the way stands behind the unit: `# 1 (lower): …`, `(higher)`, or `(neither)`.
//! A source that begins with `guess: ` is that of a cost that nobody knows; runs whose times rest on it say so.
//! Figures of NPUs have a grade behind that: `# us [assumed]: …`. Runs do not use those of the device, so that no way of them is better.

mod completed;
mod guesses;

pub use completed::{Completed, Leniency, completed, nearest, unknown};
pub(crate) use guesses::{Guess, guesses, has_guesses};

use crate::failure::Failure;
use crate::targets::TARGETS;
use chipless_device::figures::{Grade, is_figure};
use chipless_device::quantity;
use chipless_model::suggest;
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
    /// Which way it makes a machine faster, if either.
    pub better: Option<Better>,
    /// Where it comes from.
    pub source: String,
    /// How much that is worth, where the file says so.
    pub grade: Option<Grade>,
}

/// Which way of a figure is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Rates, clocks.
    Higher,
    /// Times, energies.
    Lower,
}

impl Better {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Better::Higher => "higher",
            Better::Lower => "lower",
        }
    }

    /// The change that makes a figure twice as good, as `--set` takes it.
    pub const fn twice(self) -> &'static str {
        match self {
            Better::Higher => "2x",
            Better::Lower => "0.5x",
        }
    }

    /// Cuts the way that is said behind a unit from it; otherwise the unit itself tells.
    fn of(unit: &str) -> (&str, Option<Better>) {
        if let Some((unit, said)) = unit.strip_suffix(')').and_then(|u| u.rsplit_once(" (")) {
            let better = match said {
                "higher" => Some(Better::Higher),
                "lower" => Some(Better::Lower),
                _ => None,
            };
            return (unit, better);
        }
        let better = match unit {
            "MHz" => Some(Better::Higher),
            "cycles" | "s" | "ns" | "µs" | "pJ" => Some(Better::Lower),
            _ if unit.ends_with("/cycle") || unit.ends_with("/s") => Some(Better::Higher),
            _ if unit.starts_with("µs/") || unit.starts_with("cycles/") => Some(Better::Lower),
            _ => None,
        };
        (unit, better)
    }
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
        let (units, grade) = graded(&unit);
        let unit = unit_of(units, &key);
        let (unit, better) = Better::of(&unit);
        figures.push((
            line,
            Figure {
                unit: unit.to_owned(),
                grade,
                better: better.filter(|_| !is_figure(&key)),
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

/// A machine file with other figures: `KEY=VALUE`, where the key is a path of names and the value is TOML, a number with a unit (`510cycles`,
/// `1.2GHz`), or a factor of what stands there (`2x`). `whole`: products are rounded to whole numbers.
pub(crate) fn with_figures(text: &str, figures: &[String], whole: bool) -> Result<String, Failure> {
    if figures.is_empty() {
        return Ok(text.to_owned());
    }
    let misused = |text: String| Failure::misuse("--set", text);
    let mut machine: toml::Table =
        toml::from_str(text).map_err(|error| misused(error.to_string()))?;
    for change in figures {
        let (key, value) = change
            .split_once('=')
            .ok_or_else(|| misused(format!("expected KEY=VALUE, found \"{change}\"")))?;
        let of_mesh = of_mesh(&machine, key, value);
        // What a mesh has by the cycle goes with its clock.
        let was = megahertz(&machine).filter(|_| of_mesh.is_some() && key == "clock_hz");
        let (key, value) = match &of_mesh {
            Some((own, value)) => (*own, value.as_str()),
            None => (key, value),
        };
        let Some(figure) = slot(&mut machine, key) else {
            let is_meant = |of: &&str| key == *of || of.ends_with('.') && key.starts_with(of);
            if is_of_mesh(&machine) && WHEN_SCHEDULED.iter().any(is_meant) {
                return Err(misused(format!(
                    "`{key}` counts when a network is scheduled, and the schedule holds what follows from it: change it in the mesh file and schedule again, or let `chipless tune` try several values"
                )));
            }
            let hint = hint(&self::figures(text), key);
            return Err(misused(format!(
                "expected a parameter of the machine (`chipless machine` lists them), found \"{key}\"{hint}"
            )));
        };
        // A text needs no quotes.
        let parsed = toml::from_str::<toml::Table>(&format!("value = {value}"))
            .ok()
            .and_then(|mut table| table.remove("value"));
        *figure = match product(figure, value, whole).or(parsed) {
            Some(value) => value,
            None if figure.is_str() => toml::Value::String(value.to_owned()),
            None => with_unit(text, key, value, figure.is_integer()).map_err(misused)?,
        };
        let faster = was.zip(megahertz(&machine)).map(|(was, now)| now / was);
        let rate = slot(&mut machine, "dram.bytes_per_second");
        if let Some((factor, rate)) = faster.zip(rate)
            && let Some(scaled) = product(rate, &format!("{factor}x"), false)
        {
            *rate = scaled;
        }
    }
    Ok(machine.to_string())
}

/// The clock of a machine that has one.
fn megahertz(machine: &toml::Table) -> Option<f64> {
    let clock = value(machine, "clock_mhz")?;
    clock.as_float().or(Some(clock.as_integer()? as f64))
}

/// Words that people use, and what names of parameters have in their place.
const WORDS: [(&str, &str); 2] = [("bandwidth", "bytes_per_second"), ("frequency", "clock")];
/// Parameters that are offered for a word.
const OFFERED: usize = 8;

/// What somebody who wrote a key that no parameter has may have meant: the parameters of that section, or with that word in their names, or the one
/// that is spelt alike.
fn hint(known: &[Figure], key: &str) -> String {
    let word = WORDS.iter().find(|(word, _)| *word == key);
    let word = word.map_or(key, |(_, own)| *own);
    // Runs do not use those of the device. Those of meshes have the names of mesh files, too.
    let is_of_mesh = known.iter().any(|figure| figure.key == ONLY_OF_MESHES);
    let of_meshes = OF_MESHES.iter().filter(move |_| is_of_mesh);
    let known = || {
        let own = known.iter().map(|figure| &*figure.key);
        let own = own.filter(|key| !is_figure(key));
        own.chain(of_meshes.clone().map(|(mesh, _)| *mesh))
    };
    let is_meant = |known: &&str| {
        let mut parts = known.split('.');
        parts.any(|part| {
            let before = part.strip_suffix(word);
            before.is_some_and(|before| before.is_empty() || before.ends_with(['_', '-']))
        })
    };
    // An operation without figures of its own is timed by those of all others.
    let default = key.split_once(".operations.").and_then(|(section, rest)| {
        let (_, figure) = rest.split_once('.')?;
        Some(format!("{section}.default.{figure}"))
    });
    if let Some(default) = default.filter(|default| known().any(|key| key == default)) {
        return format!("; an operation that has no figures of its own is timed by \"{default}\"");
    }
    let offered: Vec<&str> = known().filter(is_meant).take(OFFERED).collect();
    match &offered[..] {
        [] => suggest::hint(key, known()),
        [only] => format!("; did you mean \"{only}\"?"),
        several => format!("; did you mean one of {}?", several.join(", ")),
    }
}

/// Keys of the mesh files of `schedule`, and what a run has in their place: as `chipless_schedule::emit::replay_machine` makes a machine of a mesh.
pub const OF_MESHES: [(&str, &str); 15] = [
    ("mesh", "core.count"),
    ("clock_hz", "clock_mhz"),
    ("dram.bytes_per_cycle", "dram.bytes_per_second"),
    ("dram.pj_per_byte", "energy.dram"),
    ("noc.bytes_per_cycle", "noc.link_bytes_per_cycle"),
    ("noc.pj_per_byte_hop", "energy.hop"),
    ("noc.cycles_per_hop", "noc.hop_cycles"),
    ("l2.bytes", "core.buffer_bytes"),
    ("l2.read_pj", "energy.l2_read"),
    ("l2.write_pj", "energy.l2_write"),
    ("weight_buffer.banks", "core.weight_banks"),
    ("weight_buffer.bytes_per_bank", "core.weight_bank_bytes"),
    ("vector.pj_per_op", "energy.vector"),
    ("core.array", "core.macs_per_cycle"),
    ("core.mac_pj", "energy.mac"),
];

/// Keys of mesh files, and sections of them, that a run has no use for: the schedule says how long units take and where they are.
const WHEN_SCHEDULED: [&str; 11] = [
    "mesh",
    "stride",
    "vector.lanes",
    "ofmap_stream_bytes",
    "l2.bytes_per_cycle",
    "core.kind",
    "core.array",
    "core.lanes",
    "core.vector",
    "core.bus.",
    "core.buffers.",
];

/// A parameter that only machines have which stand for a mesh.
const ONLY_OF_MESHES: &str = "core.weight_banks";

/// Whether a machine file is one of those that stand for a mesh.
fn is_of_mesh(machine: &toml::Table) -> bool {
    value(machine, ONLY_OF_MESHES).is_some()
}

/// A key of a mesh file with its value, as the machine file of a run has them: other names, and rates by the second. What a mesh has as
/// several numbers is not changed so.
fn of_mesh(machine: &toml::Table, key: &str, given: &str) -> Option<(&'static str, String)> {
    let (_, own) = OF_MESHES.iter().find(|(mesh, _)| *mesh == key)?;
    if value(machine, key).is_some() || ["mesh", "core.array"].contains(&key) {
        return None;
    }
    let number: Option<f64> = given.parse().ok();
    let megahertz = megahertz(machine)?;
    let scaled = match (key, number) {
        ("dram.bytes_per_cycle", Some(number)) => (number * megahertz * 1e6).to_string(),
        ("clock_hz", Some(number)) => (number / 1e6).to_string(),
        _ => given.to_owned(),
    };
    Some((own, scaled))
}

/// A machine that comes with Chipless: its target, its name, and its file.
pub type BuiltIn = (&'static str, &'static str, &'static str);

/// The machines that come with Chipless; the first of each target is that of a file that names none.
pub fn built_in_machines() -> impl Iterator<Item = BuiltIn> {
    TARGETS.iter().flat_map(|target| {
        let machines = target.machines().iter();
        machines.map(|(name, text)| (target.name(), *name, *text))
    })
}

/// The machine that comes with Chipless under this name, or whose file calls it so.
pub fn built_in(asked: &str) -> Option<BuiltIn> {
    let is = |name: &str| !name.is_empty() && name.eq_ignore_ascii_case(asked);
    built_in_machines()
        .find(|(_, known, _)| is(known))
        .or_else(|| built_in_machines().find(|(.., text)| is(name(text))))
}

/// Names of the machines that come with Chipless.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    built_in_machines().map(|(_, name, _)| name)
}

/// The name that a machine file gives its machine; empty where it gives none.
pub(crate) fn name(text: &str) -> &str {
    let top = text.lines().take_while(|line| !line.starts_with('['));
    let mut named = top.filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    named.next().unwrap_or_default()
}

/// The figures of a section, as changes of the figures that they are named after: `dma.latency=276.0`. `None`: there is no such section.
pub(crate) fn section(text: &str, name: &str) -> Option<Vec<String>> {
    let machine: toml::Table = toml::from_str(text).ok()?;
    let keys = keys(name, machine.get(name)?);
    let change = |key: &String| {
        let figure = key.strip_prefix(name)?.strip_prefix('.')?;
        Some(format!("{figure}={}", value(&machine, key)?))
    };
    Some(keys.iter().filter_map(change).collect())
}

/// Whether a machine file has a section, by its text: each run asks, and to read the file takes longer than some of them.
pub(crate) fn has_section(text: &str, name: &str) -> bool {
    let mut heads = [format!("\n[{name}]"), format!("\n[{name}.")].into_iter();
    heads.any(|head| text.contains(&head))
}

/// A number with a unit, in the unit that the machine file gives for the figure. A whole number stays one where the figure `is_whole`.
fn with_unit(text: &str, key: &str, value: &str, is_whole: bool) -> Result<toml::Value, String> {
    let figure = figures(text).into_iter().find(|figure| figure.key == key);
    let unit = figure.map_or_else(String::new, |figure| figure.unit);
    match quantity::in_unit(value, &unit) {
        Some(number) if is_whole && number.fract() == 0.0 && number.abs() < 9e15 => {
            Ok(toml::Value::Integer(number as i64))
        }
        Some(number) => Ok(toml::Value::Float(number)),
        None => {
            let unit = if unit.is_empty() {
                unit
            } else {
                format!(" in {unit}")
            };
            Err(format!(
                "expected a number for {key}{unit}, or a factor such as 2x, found \"{value}\""
            ))
        }
    }
}

/// Whether any of these changes is by a factor.
pub(crate) fn has_factor(figures: &[String]) -> bool {
    let value = |figure: &String| figure.split_once('=').map(|(_, value)| value.to_owned());
    figures
        .iter()
        .filter_map(value)
        .any(|v| factor(&v).is_some())
}

fn factor(value: &str) -> Option<f64> {
    let factor: f64 = value.strip_suffix('x')?.parse().ok()?;
    (factor.is_finite() && factor >= 0.0).then_some(factor)
}

/// A figure times a factor; `None` where the value is no factor, or the figure no number. A product of a whole number that is whole stays one.
fn product(figure: &toml::Value, value: &str, whole: bool) -> Option<toml::Value> {
    let factor = factor(value)?;
    let (number, is_whole) = match figure {
        toml::Value::Integer(number) => (*number as f64, true),
        toml::Value::Float(number) => (*number, false),
        _ => return None,
    };
    let product = number * factor;
    let stays = is_whole && (whole || product.fract() == 0.0);
    Some(if stays && product.abs() < 9e15 {
        toml::Value::Integer(product.round() as i64)
    } else {
        toml::Value::Float(product)
    })
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
        let better: Vec<_> = all.iter().map(|f| f.better).collect();
        assert_eq!(
            better,
            [Some(Better::Lower), None, Some(Better::Lower), None]
        );
        assert_eq!(Better::of("1 (higher)"), ("1", Some(Better::Higher)));
        assert_eq!(Better::of("MHz (neither)"), ("MHz", None));
    }

    #[test]
    fn a_figure_is_set_by_its_key() {
        let text = "name = \"a\"\n[dma]\nstart = 5\n";
        let set = |figure: &str| with_figures(text, &[figure.to_owned()], false);
        assert!(set("dma.start=7").is_ok_and(|text| text.contains("start = 7")));
        assert!(set("name=b").is_ok_and(|text| text.contains("name = \"b\"")));
        let said = set("dma.strat=7").unwrap_err().to_string();
        assert!(
            said.ends_with("found \"dma.strat\"; did you mean \"dma.start\"?"),
            "{said}"
        );
        assert!(set("dma.start=2x").is_ok_and(|text| text.contains("start = 10")));
        assert!(set("dma.start=0.5x").is_ok_and(|text| text.contains("start = 2.5")));
        let whole = with_figures(text, &["dma.start=0.5x".to_owned()], true);
        assert!(whole.is_ok_and(|text| text.contains("start = 3")));
        assert!(set("name=2x").is_ok_and(|text| text.contains("name = \"2x\"")));
        assert!(set("dma.start=-1x").is_err());
        let text = "[dma] # ns: sheet 1\nstart = 5\n";
        let set = |figure: &str| with_figures(text, &[figure.to_owned()], false);
        assert!(set("dma.start=2us").is_ok_and(|text| text.contains("start = 2000")));
        assert!(set("dma.start=70ns").is_ok_and(|text| text.contains("start = 70")));
        let said = set("dma.start=2cycles").unwrap_err().to_string();
        assert!(said.contains("a number for dma.start in ns"), "{said}");
        assert!(set("dma=7").is_err() && set("dma.start=fast").is_err());
    }
}
