//! Machine files (TOML): parameters, each with its unit and its source.

use crate::analysis::{Analysis, Symbol, SymbolKind, TokenKind};
use crate::language::{Language, Suggestion, SuggestionKind, checked, word_at};
use chipless::texts as rules;
use chipless::{Checked, Figure, Options, TARGETS, figures, suggest};
use chipless_model::Place;
use std::ops::Range;

/// The language.
pub(crate) struct MachineFile;

/// Bytes of a machine file, at most, when it is told by its content.
const LONGEST: usize = 1 << 20;

impl Language for MachineFile {
    fn id(&self) -> &'static str {
        "chipless-machine"
    }

    fn name(&self) -> &'static str {
        "machine file"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["toml"]
    }

    fn recognize(&self, text: &str) -> bool {
        if text.len() > LONGEST {
            return false;
        }
        let found = keys_of(text);
        let known = model(text).map_or(0, |model| {
            let known = |key: &str| model.figures.iter().any(|figure| figure.key == key);
            found.iter().filter(|(key, _)| known(key)).count()
        });
        known >= 3
    }

    fn check(&self, _name: &str, text: &str, _options: &Options) -> Option<Checked> {
        if let Err(error) = toml::from_str::<toml::Table>(text) {
            let range = error.span().unwrap_or(0..0);
            let place = Place::bytes(range.start as u64, range.len() as u64);
            return Some(checked(vec![
                rules::MACHINE_SYNTAX.at(place, error.message()),
            ]));
        }
        let model = model(text)?;
        let (name, known) = (model.name, &model.figures);
        // Names and titles are no parameters.
        let others = keys_of(model.text);
        let mut findings = Vec::new();
        for (key, range) in keys_of(text) {
            let place = || Place::bytes(range.start as u64, range.len() as u64);
            let Some(figure) = known.iter().find(|figure| figure.key == key) else {
                // A table of figures, such as those of one kind of task each.
                let inner = format!("{key}.");
                if others.iter().any(|(other, _)| *other == key)
                    || known.iter().any(|figure| figure.key.starts_with(&inner))
                {
                    continue;
                }
                let last = key.rsplit('.').next().unwrap_or(&key);
                let section = key.strip_suffix(last).unwrap_or_default();
                let beside = known
                    .iter()
                    .filter_map(|figure| figure.key.strip_prefix(section));
                let hint = suggest::hint(last, beside.filter(|rest| !rest.contains('.')));
                let text = format!("expected a parameter of {name}, found \"{last}\"{hint}");
                findings.push(rules::MACHINE_KEY.at(place(), text));
                continue;
            };
            let written = value_of(text, range.end);
            let is_text = written.starts_with(['"', '\'']);
            if figure.value.starts_with('"') != is_text && !written.is_empty() {
                let wanted = if is_text {
                    format!("a number in {}", figure.unit)
                } else {
                    "a name in quotes".to_owned()
                };
                let text = format!("expected {wanted} for {key}, found {written}");
                findings.push(rules::MACHINE_VALUE.at(place(), text));
            }
        }
        Some(checked(findings))
    }

    fn analyse(&self, text: &str) -> Analysis {
        let mut analysis = Analysis::default();
        let mut section: Option<usize> = None;
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.trim_end().len();
            let code = line.split('#').next().unwrap_or_default();
            if let Some(at) = line.find('#') {
                analysis.token(start + at..end, TokenKind::Comment);
            }
            let indent = code.len() - code.trim_start().len();
            let word = start + indent..start + code.trim_end().len();
            let entry = |name: &str, kind, word: Range<usize>, below, detail: String| Symbol {
                name: name.to_owned(),
                kind,
                detail,
                about: String::new(),
                word: word.clone(),
                range: word,
                part_of: None,
                below,
                listed: true,
                renamable: false,
            };
            if let Some(name) = code
                .trim()
                .strip_prefix('[')
                .and_then(|code| code.strip_suffix(']'))
            {
                analysis.token(word.clone(), TokenKind::Namespace);
                if let Some(last) = section {
                    close(text, &mut analysis, last, start);
                }
                section =
                    Some(analysis.add(entry(name, SymbolKind::Section, word, None, String::new())));
            } else if let Some((name, value)) = code.split_once('=') {
                let key = word.start..start + name.trim_end().len();
                analysis.token(key.clone(), TokenKind::Property);
                let at = start + name.len() + 1 + (value.len() - value.trim_start().len());
                let kind = if value.trim_start().starts_with(['"', '\'']) {
                    TokenKind::String
                } else {
                    TokenKind::Number
                };
                analysis.token(at..at + value.trim().len(), kind);
                analysis.add(entry(
                    name.trim(),
                    SymbolKind::Key,
                    key,
                    section,
                    value.trim().to_owned(),
                ));
            }
            start += line.len();
        }
        if let Some(last) = section {
            close(text, &mut analysis, last, text.len());
        }
        analysis.sort();
        analysis
    }

    fn explain(&self, text: &str, _: &Analysis, offset: usize) -> Option<(Range<usize>, String)> {
        let known = model(text)?.figures;
        let found = keys_of(text)
            .into_iter()
            .find(|(_, range)| range.contains(&offset) || range.end == offset)?;
        let figure = known.iter().find(|figure| figure.key == found.0)?;
        Some((found.1, described(figure)))
    }

    fn complete(&self, text: &str, _: &Analysis, offset: usize) -> Vec<Suggestion> {
        let Some(Model { figures: known, .. }) = model(text) else {
            return Vec::new();
        };
        let before = text
            .get(..text.floor_char_boundary(offset))
            .unwrap_or_default();
        let section = before
            .lines()
            .rev()
            .find_map(|line| line.trim().strip_prefix('[')?.split(']').next());
        let prefix = section.map_or_else(String::new, |section| format!("{section}."));
        let line = before.rsplit('\n').next().unwrap_or_default();
        if line.contains('=') {
            return Vec::new();
        }
        if line.trim_start().starts_with('[') {
            let mut sections: Vec<&str> = known
                .iter()
                .filter_map(|f| f.key.rsplit_once('.').map(|(s, _)| s))
                .collect();
            sections.dedup();
            return sections
                .into_iter()
                .map(|s| Suggestion::new(s, SuggestionKind::Property, "section"))
                .collect();
        }
        let inside = known.iter().filter_map(|figure| {
            let name = figure
                .key
                .strip_prefix(&prefix)
                .filter(|name| !name.contains('.'))?;
            let detail = format!("{} {}", figure.value, figure.unit);
            Some(Suggestion::new(
                format!("{name} = "),
                SuggestionKind::Property,
                detail,
            ))
        });
        inside.collect()
    }
}

/// A section ends before the next one, or with the text.
fn close(text: &str, analysis: &mut Analysis, section: usize, before: usize) {
    let own = &mut analysis.symbols[section];
    let body = text.get(own.range.start..before).unwrap_or_default();
    own.range.end = own.range.start + body.trim_end().len();
    let range = own.range.clone();
    analysis.folds.push(range);
}

/// What stands behind the `=` of a key that ends at a byte, without its remark.
fn value_of(text: &str, end: usize) -> &str {
    let rest = text.get(end..).unwrap_or_default();
    let line = rest.lines().next().unwrap_or_default();
    let value = line.split_once('=').map_or("", |(_, value)| value);
    value.split('#').next().unwrap_or_default().trim()
}

/// The keys of a text with their sections, and where they stand.
fn keys_of(text: &str) -> Vec<(String, Range<usize>)> {
    let mut found = Vec::new();
    let mut section = String::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or_default();
        if let Some(name) = code
            .trim()
            .strip_prefix('[')
            .and_then(|code| code.strip_suffix(']'))
        {
            section = format!("{}.", name.trim());
        } else if let Some((name, _)) = code.split_once('=') {
            let indent = name.len() - name.trim_start().len();
            let name = name.trim();
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            if !name.is_empty() && name.chars().all(plain) {
                let at = start + indent;
                found.push((format!("{section}{name}"), at..at + name.len()));
            }
        }
        start += line.len();
    }
    found
}

/// A machine that comes with Chipless.
struct Model {
    name: &'static str,
    text: &'static str,
    figures: Vec<Figure>,
}

/// The machine that a file is nearest to: that of its name, or the one that shares most of its keys; of several the first.
fn model(text: &str) -> Option<Model> {
    let machines = || TARGETS.iter().flat_map(|target| target.machines().iter());
    let made = |(name, text): &(&'static str, &'static str)| Model {
        name,
        text,
        figures: figures(text),
    };
    let table = toml::from_str::<toml::Table>(text).ok();
    let named = table.as_ref().and_then(|table| table.get("name")?.as_str());
    if let Some(known) = named.and_then(|named| machines().find(|(known, _)| *known == named)) {
        return Some(made(known));
    }
    let keys = keys_of(text);
    let mut best: Option<(usize, Model)> = None;
    for model in machines().map(made) {
        let known = |key: &str| model.figures.iter().any(|figure| figure.key == key);
        let count = keys.iter().filter(|(key, _)| known(key)).count();
        if count > best.as_ref().map_or(0, |(most, _)| *most) {
            best = Some((count, model));
        }
    }
    best.map(|(_, model)| model)
}

fn described(figure: &Figure) -> String {
    let unit = if figure.unit == "1" {
        "ratio"
    } else {
        &figure.unit
    };
    let better = figure.better.map_or_else(String::new, |better| {
        format!("\n- {} is better", better.name())
    });
    let grade = figure
        .grade
        .map_or_else(String::new, |grade| format!("\n- {}", grade.name()));
    format!(
        "**`{}`**: machine parameter\n\n- unit: {unit}\n- default: {}\n- source: {}{better}{grade}",
        figure.key, figure.value, figure.source
    )
}

/// The parameters of the machine of this name; of all machines without one.
fn of_machine(name: &str) -> Vec<Figure> {
    let machines = TARGETS.iter().flat_map(|target| target.machines().iter());
    let wanted = machines.filter(|(known, _)| name.is_empty() || *known == name);
    wanted.flat_map(|(_, text)| figures(text)).collect()
}

/// What a parameter at a place means.
pub(crate) fn figure(text: &str, offset: usize, machine: &str) -> Option<(Range<usize>, String)> {
    let (range, word) = word_at(text, offset, "_.-");
    let known = of_machine(machine);
    let figure = known.iter().find(|figure| figure.key == word)?;
    Some((range, described(figure)))
}

/// The parameters of a machine as keys of a mapping.
pub(crate) fn keys(machine: &str) -> Vec<Suggestion> {
    let mut seen = std::collections::BTreeSet::new();
    let all = of_machine(machine)
        .into_iter()
        .filter(|figure| seen.insert(figure.key.clone()));
    let suggestion = |figure: Figure| {
        let detail = format!("{} {}", figure.value, figure.unit);
        Suggestion::new(
            format!("{}: ", figure.key),
            SuggestionKind::Property,
            detail,
        )
    };
    all.map(suggestion).collect::<Vec<_>>()
}
