//! Machine files that were written for an earlier version: what they lack is what the machine file that comes with Chipless says.

use super::{Figure, comments, figures, keys, value};
use crate::target::Target;
use crate::targets::TARGETS;
use chipless_device::figures::{SPECS, is_figure};
use chipless_model::suggest;
use std::collections::{BTreeMap, BTreeSet};

/// How machine files of a target may differ from the one that comes with Chipless.
#[derive(Clone, Copy, Debug)]
pub struct Leniency {
    /// Tables of which a file has as many entries as it likes.
    pub open: &'static [&'static str],
    /// Figures that had another name: the name, and the one before.
    pub renamed: &'static [(&'static str, &'static str)],
}

impl Leniency {
    /// Whether a figure is an entry of a table that has as many as it likes.
    fn is_open(&self, key: &str) -> bool {
        let mut open = self.open.iter();
        open.any(|table| key.strip_prefix(table).is_some_and(|k| k.starts_with('.')))
    }
}

/// A machine file with all figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Its text; the figures that it lacked stand in their sections, with their units and sources.
    pub text: String,
    /// Keys of these figures.
    pub defaulted: BTreeSet<String>,
}

/// A machine file with the figures that it lacks, from the machine file `own` of a target. It stays as it is where it lacks none, where the target's
/// files have all of them, and where it is no TOML: whoever reads it says so.
pub fn completed(text: &str, own: &str) -> Completed {
    let mut found = Completed {
        text: text.to_owned(),
        defaulted: BTreeSet::new(),
    };
    let (Some(leniency), Ok(machine)) = (leniency(own), toml::from_str::<toml::Table>(text)) else {
        return found;
    };
    let is_there = |key: &str| {
        let before = leniency.renamed.iter().find(|(now, _)| *now == key);
        value(&machine, key).is_some()
            || before.is_some_and(|(_, before)| value(&machine, before).is_some())
    };
    // Most files lack nothing, and every run of a sweep reads one: units and sources are looked for only where they are needed.
    let known: toml::Table = toml::from_str(own).unwrap_or_default();
    let all = known.iter().flat_map(|(name, value)| keys(name, value));
    found.defaulted = all
        .filter(|key| key.contains('.') && !leniency.is_open(key) && !is_there(key))
        .collect();
    if found.defaulted.is_empty() {
        return found;
    }
    let said = comments(own);
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for Figure { key, value, .. } in figures(own) {
        let Some((section, name)) = key.rsplit_once('.') else {
            continue;
        };
        if !found.defaulted.contains(&key) {
            continue;
        }
        let remark = said.get(&key).or_else(|| said.get(section));
        let remark = remark.map_or_else(String::new, |(_, (unit, source))| {
            format!("# {unit}: {source}\n")
        });
        let lines = lines.entry(section.to_owned()).or_default();
        lines.push_str(&format!("{remark}{name} = {value}\n"));
    }
    let mut whole = String::new();
    for line in text.lines() {
        whole.push_str(line);
        whole.push('\n');
        let code = line.split('#').next().unwrap_or_default().trim();
        let section = code.strip_prefix('[').and_then(|c| c.strip_suffix(']'));
        if let Some(lines) = section.and_then(|section| lines.remove(section)) {
            whole.push_str(&lines);
        }
    }
    for (section, lines) in lines {
        whole.push_str(&format!("\n[{section}]\n{lines}"));
    }
    // A table that the file has in another form has no room for more figures.
    if toml::from_str::<toml::Table>(&whole).is_ok() {
        found.text = whole;
    } else {
        found.defaulted.clear();
    }
    found
}

/// What is wrong with a machine file that has a figure which the machine files `own` and those of devices do not have; `None` where it has none.
pub fn unknown(text: &str, own: &str) -> Option<String> {
    let leniency = leniency(own)?;
    let known = figures(own);
    let is_known = |key: &str| {
        let is_former = leniency.renamed.iter().any(|(_, before)| *before == key);
        is_former || leniency.is_open(key) || is_figure(key) || known.iter().any(|f| f.key == key)
    };
    let wrong = figures(text).into_iter().find(|f| !is_known(&f.key))?;
    let devices = SPECS.iter().map(|spec| spec.key);
    let hint = suggest::hint(&wrong.key, known.iter().map(|f| &*f.key).chain(devices));
    Some(format!(
        "expected a figure of the machine, found \"{}\"{hint}",
        wrong.key
    ))
}

/// How machine files may differ from the machine file `own` of a target.
fn leniency(own: &str) -> Option<Leniency> {
    let has_own = |target: &&&dyn Target| target.machines().iter().any(|(_, known)| *known == own);
    TARGETS.iter().find(has_own)?.leniency()
}

/// The machine that comes with Chipless and that a machine file is nearest to, as target, name and text: that of its name, or the one that shares
/// most of its keys.
///
/// # Errors
/// A text that is no TOML, or that has no key of a machine.
pub fn nearest(text: &str) -> Result<(&'static str, &'static str, &'static str), String> {
    toml::from_str::<toml::Table>(text).map_err(|error| error.to_string())?;
    let machines = || {
        TARGETS.iter().flat_map(|target| {
            let machines = target.machines().iter();
            machines.map(|(name, text)| (target.name(), *name, *text))
        })
    };
    let own = super::name(text);
    if let Some(known) = machines().find(|(.., text)| !own.is_empty() && super::name(text) == own) {
        return Ok(known);
    }
    let keys: BTreeSet<String> = figures(text).into_iter().map(|f| f.key).collect();
    let shared = |text: &str| {
        figures(text)
            .iter()
            .filter(|f| keys.contains(&f.key))
            .count()
    };
    // Of several the first.
    let mut best = None;
    for machine in machines() {
        let count = shared(machine.2);
        if count > best.map_or(0, |(most, _)| most) {
            best = Some((count, machine));
        }
    }
    let none = || "expected a machine file, found no parameter of a machine".to_owned();
    best.map(|(_, machine)| machine).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npu4() -> &'static str {
        chipless_npu::MACHINES[0].1
    }

    /// The machine file without figures whose lines begin with one of these.
    fn without(names: &[&str]) -> String {
        let lines = npu4().lines();
        let kept = lines.filter(|line| !names.iter().any(|name| line.starts_with(name)));
        kept.map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn a_file_that_lacks_figures_has_those_of_the_machine_that_comes_with_chipless() {
        let old = without(&["constant_bytes_per_second =", "prefetch_pages ="]);
        assert!(chipless_npu::Machine::from_toml(&old).is_err());
        let Completed { text, defaulted } = completed(&old, npu4());
        let keys: Vec<&str> = defaulted.iter().map(String::as_str).collect();
        assert_eq!(
            keys,
            ["dma.constant_bytes_per_second", "mmu.prefetch_pages"]
        );
        let both = chipless_npu::Machine::from_toml(&text);
        assert_eq!(both, chipless_npu::Machine::from_toml(npu4()));
        // With their units, sources and grades.
        let of = |text: &str, key: &str| figures(text).into_iter().find(|f| f.key == key);
        for key in keys {
            assert!(
                of(&text, key).is_some_and(|f| Some(f) == of(npu4(), key)),
                "{key}"
            );
        }
        assert_eq!(figures(&text).len(), figures(npu4()).len());
    }

    #[test]
    fn what_a_file_says_stays() {
        let old = without(&["# ", "cold ="]).replace("l1 = 16384.0", "l1 = 8192.0");
        let text = completed(&old, npu4()).text;
        assert!(text.contains("l1 = 8192.0") && text.contains("cold = false"));
        // A table of costs has the entries that it has: other kernels take the default.
        let costs = without(&["erf ="]);
        assert_eq!(completed(&costs, npu4()).text, costs);
        // The name of before.
        let before = npu4().replace("reference_clock =", "clock =");
        assert_eq!(completed(&before, npu4()).text, before);
        assert!(chipless_npu::Machine::from_toml(&before).is_ok());
    }

    #[test]
    fn whole_sections_are_added_and_unknown_figures_stay_errors() {
        let start = npu4().find("[fifo]").unwrap();
        let end = npu4().find("[watchdog]").unwrap();
        let old = format!("{}{}", &npu4()[..start], &npu4()[end..]);
        let added = completed(&old, npu4());
        assert_eq!(added.defaulted.len(), 11);
        assert!(added.defaulted.iter().all(|key| key.starts_with("fifo.")));
        let wrong = old.replace("latency = 878.378\n", "latancy = 878.378\n");
        let wrong = completed(&wrong, npu4()).text;
        let error = chipless_npu::Machine::from_toml(&wrong).unwrap_err();
        assert!(error.contains("latancy"), "{error}");
        let wrong = old.replace("prefetch_pages =", "prefetch_page =");
        let said = unknown(&wrong, npu4());
        assert_eq!(
            said.as_deref(),
            Some(
                "expected a figure of the machine, found \"mmu.prefetch_page\"; did you mean \"mmu.prefetch_pages\"?"
            )
        );
        assert_eq!(unknown(&old, npu4()), None);
        let more = format!("{old}\n[cache.mask]\ndpu = 3\n");
        assert_eq!(unknown(&more, npu4()), None);
    }

    #[test]
    fn no_toml_and_tables_of_another_form_are_left_to_the_reader() {
        for text in [
            "[dma",
            "dma = 3\n",
            "",
            "name = \"x\"\n[dpu]\nconvolution = 3\n",
        ] {
            let found = completed(text, npu4());
            if found.text == text {
                assert!(found.defaulted.is_empty(), "{text}");
            } else {
                assert!(toml::from_str::<toml::Table>(&found.text).is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn a_file_is_nearest_to_the_machine_of_its_name_or_keys() {
        assert_eq!(nearest(npu4()).map(|m| m.1), Ok("npu4"));
        let renamed = npu4().replace("name = \"NPU4\"", "name = \"mine\"");
        assert_eq!(nearest(&renamed).map(|m| m.1), Ok("npu4"));
        assert!(nearest("[nothing]\nof = 1\n").is_err());
        assert!(nearest("[nothing").is_err());
    }
}
