//! What a machine file says of a device, and what changes make of it.

use super::{AgentFigures, Figures, Grade, MASK, SPECS, Spec, factor};
use std::collections::{BTreeMap, BTreeSet};

/// What a machine file says of the device: values in the units of [`Spec::unit`], and grades.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Keys and values of the figures of this device, in the order of the file.
    pub values: Vec<(String, String)>,
    /// Grades, by key.
    pub grades: BTreeMap<String, Grade>,
    /// Keys and values of other figures: those of programs.
    pub program: Vec<(String, String)>,
    /// Keys of figures that its file lacks; they are those of the machine that comes with Chipless.
    pub defaulted: BTreeSet<String>,
    /// What the agents of the workload want, by their names.
    pub agents: BTreeMap<String, AgentFigures>,
}

/// A figure that a workload replaces: its key, and its value or a factor (`2x`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which figure.
    pub key: String,
    /// What it is.
    pub value: String,
}

impl Change {
    /// The changes that `KEY=VALUE` or `KEY=VALUE,VALUE` asks for, each as it would be written alone.
    pub fn all(text: &str) -> Option<Vec<(String, Change)>> {
        let (key, values) = text.split_once('=')?;
        let change = |value: &str| {
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            (format!("{key}={value}"), Change { key, value })
        };
        Some(values.split(',').map(change).collect())
    }
}

/// Figures, and what a program's machine must know of changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The device's.
    pub figures: Figures,
    /// `KEY=VALUE` of the changed figures of programs.
    pub program: Vec<String>,
    /// Keys of the device's figures that were changed.
    pub changed: Vec<String>,
}

/// Why a change makes no sense: which one, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The index of the change; the number of changes where all together are wrong.
    pub change: usize,
    /// What was expected and what was found.
    pub message: String,
}

impl Machine {
    /// The figures of a machine with changes, later ones over earlier ones; those beside `device.ideal` win over it. `scaled`: every
    /// assumed figure that is not changed is multiplied by it.
    ///
    /// # Errors
    /// The first change that makes no sense.
    pub fn resolve(&self, changes: &[Change], scaled: f64) -> Result<Resolved, Mistake> {
        let mut figures = Figures {
            agents: self.agents.clone(),
            ..Figures::default()
        };
        let wrong = |change: usize, message: String| Mistake { change, message };
        for (key, value) in &self.values {
            self.put(&mut figures, key, value)
                .map_err(|message| wrong(changes.len(), message))?;
        }
        let is_changed = |key: &str| changes.iter().any(|change| change.key == key);
        if scaled.to_bits() != 1f64.to_bits() {
            // How exactly the cache is simulated is nothing that the chip has.
            let assumed = |spec: &&Spec| {
                self.grades.get(spec.key) == Some(&Grade::Assumed) && spec.key != "cache.sample"
            };
            for spec in SPECS.iter().filter(assumed).filter(|s| !is_changed(s.key)) {
                spec.scale(&mut figures, scaled);
            }
        }
        let ideal = changes.iter().rev().find(|c| c.key == "device.ideal");
        if ideal.is_some_and(|change| change.value == "true") {
            figures.make_ideal();
        }
        let mut program: Vec<(String, String)> = Vec::new();
        for (index, Change { key, value }) in changes.iter().enumerate() {
            let scale = factor(value);
            if let Some(spec) = SPECS.iter().find(|spec| spec.key == key) {
                match scale {
                    Some(factor) if spec.scale(&mut figures, factor) => {}
                    _ => spec
                        .put(&mut figures, value)
                        .map_err(|message| wrong(index, message))?,
                }
            } else if key.starts_with(MASK) {
                self.put(&mut figures, key, value)
                    .map_err(|message| wrong(index, message))?;
            } else if let Some(figure) = figures.agent(key) {
                figure.change(value).map_err(|message| {
                    wrong(
                        index,
                        format!("expected {message} for {key}, found \"{value}\""),
                    )
                })?;
            } else {
                let Some((_, own)) = self.program.iter().find(|(known, _)| known == key) else {
                    return Err(wrong(index, self.unknown(key)));
                };
                let before = program
                    .iter()
                    .find(|(known, _)| known == key)
                    .map_or(own, |(_, value)| value);
                let value = match (scale, before.parse::<f64>()) {
                    (Some(factor), Ok(number)) => (number * factor).to_string(),
                    (None, Ok(_)) if value.parse::<f64>().is_err() => {
                        return Err(wrong(
                            index,
                            format!("expected a number for {key}, found \"{value}\""),
                        ));
                    }
                    _ => value.clone(),
                };
                program.retain(|(known, _)| known != key);
                program.push((key.clone(), value));
            }
        }
        figures.check().map_err(|(keys, message)| {
            let of = |change: &Change| keys.contains(&change.key.as_str());
            let last = changes.iter().rposition(of).unwrap_or(changes.len());
            wrong(last, message)
        })?;
        Ok(Resolved {
            figures,
            program: program
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect(),
            changed: changes.iter().map(|change| change.key.clone()).collect(),
        })
    }

    /// `KEY=VALUE` of those of these figures that are numbers of programs, multiplied.
    pub fn scaled(&self, keys: &BTreeSet<String>, factor: f64) -> Vec<String> {
        let scaled = |(key, value): &(String, String)| {
            let number: f64 = value.parse().ok()?;
            keys.contains(key)
                .then(|| format!("{key}={}", number * factor))
        };
        self.program.iter().filter_map(scaled).collect()
    }

    fn put(&self, figures: &mut Figures, key: &str, value: &str) -> Result<(), String> {
        if let Some(agent) = key.strip_prefix(MASK) {
            let mask = value
                .strip_prefix("0x")
                .map_or_else(
                    || value.parse().ok(),
                    |hex| u64::from_str_radix(hex, 16).ok(),
                )
                .ok_or_else(|| format!("expected bits for {key}, found \"{value}\""))?;
            figures.cache_masks.insert(agent.to_owned(), mask);
            return Ok(());
        }
        match SPECS.iter().find(|spec| spec.key == key) {
            Some(spec) => spec.put(figures, value),
            None => Err(self.unknown(key)),
        }
    }

    fn unknown(&self, key: &str) -> String {
        let known = SPECS.iter().map(|spec| spec.key);
        let known = known.chain(self.program.iter().map(|(key, _)| key.as_str()));
        let closest = known
            .map(|known| (strsim::osa_distance(key, known), known))
            .filter(|(distance, _)| *distance <= key.chars().count().max(3) / 3)
            .min();
        let hint = closest
            .map(|(_, known)| format!("; did you mean \"{known}\"?"))
            .unwrap_or_default();
        format!("expected a figure of the machine, found \"{key}\"{hint}")
    }
}
