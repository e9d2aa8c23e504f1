//! The machine that those of a space are variants of.

use super::space::{Space, unknown};
use crate::reading::Dimension;
use crate::sample::{Value, Values};
use crate::source::AnyFiles;
use chipless::{Failure, Files};
use chipless_schedule::machine::Machine;
use chipless_schedule::mesh;
use serde_json::Value as Json;

/// A machine file.
pub(super) struct Base {
    /// As messages call it.
    name: String,
    json: Json,
}

impl Base {
    /// Reads the base of a space, and refuses figures that it cannot have.
    pub(super) fn open(space: &Space, files: &AnyFiles) -> Result<Base, Failure> {
        let name = space.base.to_string_lossy().into_owned();
        let wrong = |why: &dyn std::fmt::Display| Failure::unreadable(&name, why);
        let ready_made = space
            .base
            .file_name()
            .and_then(|name| mesh::file(name.to_str()?));
        let text = if let Some(text) = ready_made.filter(|_| !files.exists(&name)) {
            text
        } else {
            let bytes = files.open(&name).map_err(|why| {
                let text = format!("{}: {why}", space.base.display());
                Failure::unreadable(space.at(space.base_line), text)
            })?;
            let text = std::str::from_utf8(&bytes)
                .map_err(|_| wrong(&"expected text in UTF-8, found other bytes"))?;
            text.to_owned()
        };
        Machine::read(&text).map_err(|error| wrong(&error))?;
        let json = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        let base = Base { name, json };
        for figure in &space.figures {
            base.has(space, figure)?;
        }
        Ok(base)
    }

    /// Its text.
    pub(super) fn text(&self) -> String {
        self.json.to_string()
    }

    /// Refuses a figure that machines do not have, and values of another type than its own.
    fn has(&self, space: &Space, figure: &Dimension) -> Result<(), Failure> {
        let own = at(&self.json, &figure.name);
        // Which keys may be left out, the reader of machines knows.
        let mut with = self.json.clone();
        let is_set = set(&mut with, &figure.name, Json::from(0));
        let read = Machine::read(&with.to_string());
        let is_read = is_set && !read.is_ok_and(|(_, unknown)| unknown.contains(&figure.name));
        if !is_read || own.is_some_and(Json::is_object) {
            return Err(unknown(space, figure));
        }
        let wrong = |expected: &str, found: &str| {
            let text = format!("expected {expected} for {}, found {found}", figure.name);
            Err(Failure::unreadable(space.at(figure.line), text))
        };
        let list = match &figure.values {
            Values::List(list) => list.as_slice(),
            Values::Range(_) => &[Value::Whole(0)],
        };
        for value in list {
            let is_number = matches!(value, Value::Whole(_) | Value::Number(_));
            match own {
                Some(Json::String(_)) if matches!(value, Value::Text(_)) => {}
                Some(Json::Array(_)) if matches!(value, Value::Text(text) if pair(text).is_some()) =>
                    {}
                Some(Json::Array(_)) => {
                    return wrong("two whole numbers, such as 4x4,", &value.text());
                }
                Some(Json::String(_)) => return wrong("text", &value.text()),
                _ if is_number => {}
                _ => return wrong("a number", &format!("\"{}\"", value.text())),
            }
        }
        Ok(())
    }

    /// The values of everything that varies: ranges of figures that take whole numbers only are rounded.
    pub(super) fn resolve(&self, figures: &[Dimension]) -> Vec<Values> {
        let reads = |name: &str, value: f64| {
            let mut json = self.json.clone();
            set(&mut json, name, Json::from(value));
            if value.fract() == 0.0 {
                set(&mut json, name, Json::from(value as i64));
            }
            Machine::read(&json.to_string()).is_ok()
        };
        let each = figures.iter().map(|figure| {
            let mut values = figure.values.clone();
            if let Values::Range(range) = &mut values {
                let low = range.from.min(range.to).floor();
                range.is_whole |= !reads(&figure.name, low + 0.5) && reads(&figure.name, low + 1.0);
            }
            values
        });
        each.collect()
    }

    /// The machine of a point.
    pub(super) fn machine(
        &self,
        figures: &[Dimension],
        values: &[Value],
    ) -> Result<Machine, Failure> {
        let mut json = self.json.clone();
        for (figure, value) in figures.iter().zip(values) {
            let value = match value {
                Value::Whole(number) => Json::from(*number),
                Value::Number(number) => Json::from(*number),
                Value::Flag(flag) => Json::from(*flag),
                Value::Text(text) => match pair(text) {
                    Some(pair) if at(&json, &figure.name).is_some_and(Json::is_array) => {
                        Json::from(pair.to_vec())
                    }
                    _ => Json::from(text.as_str()),
                },
            };
            set(&mut json, &figure.name, value);
        }
        let read = Machine::read(&json.to_string());
        read.map(|(machine, _)| machine)
            .map_err(|error| Failure::unreadable(&self.name, error))
    }
}

/// Two numbers, as in `4x4`.
fn pair(text: &str) -> Option<[i64; 2]> {
    let (a, b) = text.split_once('x')?;
    Some([a.trim().parse().ok()?, b.trim().parse().ok()?])
}

fn at<'j>(json: &'j Json, path: &str) -> Option<&'j Json> {
    path.split('.').try_fold(json, |json, key| json.get(key))
}

/// Sets what a path with dots names; whether it leads through objects that are there.
fn set(json: &mut Json, path: &str, value: Json) -> bool {
    let mut at = json;
    let mut keys = path.split('.').peekable();
    while let (Some(key), Some(object)) = (keys.next(), at.as_object_mut()) {
        if keys.peek().is_none() {
            object.insert(key.to_owned(), value);
            return true;
        }
        let Some(next) = object.get_mut(key) else {
            return false;
        };
        at = next;
    }
    false
}
