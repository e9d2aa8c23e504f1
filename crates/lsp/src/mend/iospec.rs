//! Mends of contracts.

use super::Mend;
use crate::languages::iospec::KEYS;
use crate::languages::yaml::{extent, range, tree};
use crate::text::Edit;
use chipless::spu::iospec::{RuleSet, convert};
use chipless::suggest;
use chipless_model::Finding;
use chipless_yaml::{Node, Value};
use std::ops::Range;

/// Elements of the compiler's unit of padding.
const PENCIL: i128 = 8;

/// Sections of a contract.
const SECTIONS: [&str; 4] = ["inputs", "outputs", "simple_sequences", "complex_sequences"];

/// An entry of a mapping and the mappings around it, from the root on.
struct Found<'n> {
    key: &'n Node,
    value: &'n Node,
    /// Keys of the entries around it, from the root on.
    path: Vec<&'n Node>,
    /// The mapping that it is in.
    owner: &'n Node,
}

/// The innermost entry whose key or value begins at a byte.
fn entry<'n>(text: &str, node: &'n Node, at: usize, path: &mut Vec<&'n Node>) -> Option<Found<'n>> {
    match &node.value {
        Value::Map(entries) => entries.iter().find_map(|(key, value)| {
            path.push(key);
            let inner = entry(text, value, at, path);
            path.pop();
            let here = range(text, key.span).start == at || range(text, value.span).start == at;
            inner.or_else(|| {
                here.then(|| Found {
                    key,
                    value,
                    path: path.clone(),
                    owner: node,
                })
            })
        }),
        Value::List(items) => items.iter().find_map(|item| entry(text, item, at, path)),
        _ => None,
    }
}

/// The entry of a vector or sequence that bears the key at a byte.
fn object<'n>(root: &'n Node, name: &str, section: &str) -> Option<(&'n Node, &'n Node)> {
    let Value::Map(entries) = &root.get(section)?.value else {
        return None;
    };
    entries
        .iter()
        .find(|(key, _)| key.label() == name)
        .map(|(key, value)| (key, value))
}

fn integer(node: Option<&Node>) -> Option<i128> {
    match node?.value {
        Value::Integer(value) => Some(value),
        _ => None,
    }
}

fn words(padded: i128, precision: i128) -> Option<i128> {
    let bits = padded.checked_mul(precision).filter(|bits| *bits >= 0)?;
    Some(bits / 64 + i128::from(bits % 64 != 0))
}

/// The word of a scalar, replaced: quotes stay.
fn replace(text: &str, node: &Node, with: &str) -> Option<Edit> {
    let range = range(text, node.span);
    let label = node.label();
    let start = range.start + text.get(range.clone())?.find(label.as_str())?;
    Some(Edit::replace(start..start + label.len(), with))
}

/// The fields that the format knows of objects like the one at a path.
fn fields(path: &[&Node]) -> Vec<&'static str> {
    let parts: Vec<String> = path.iter().map(|key| key.label()).collect();
    let fits = |pattern: &&str| {
        let pattern: Vec<&str> = pattern.split('.').collect();
        pattern.len() == parts.len() + 1
            && pattern
                .iter()
                .zip(&parts)
                .all(|(part, name)| *part == "*" || part == name)
    };
    let known = KEYS.iter().map(|(pattern, _)| *pattern).filter(fits);
    known
        .filter_map(|pattern| pattern.rsplit('.').next())
        .collect()
}

pub(super) fn mend(
    code: &str,
    text: &str,
    finding: &Finding,
    place: &Range<usize>,
) -> Option<Mend> {
    if code == "iospec-flat" {
        let new = convert(text, RuleSet::default()).ok()?.write();
        return Mend::one(
            "Write today's form of the contract",
            Edit::replace(0..text.len(), new),
        );
    }
    let root = tree(text)?;
    let found = entry(text, &root, place.start, &mut Vec::new());
    match code {
        "iospec-padding" => padding(text, &root, &found?),
        "iospec-words" => {
            let found = found?;
            let (padded, precision) = (
                integer(found.owner.get("padded_length"))?,
                integer(found.owner.get("precision"))?,
            );
            let words = words(padded, precision)?.to_string();
            Mend::one(
                format!("Write {words} words"),
                replace(text, found.value, &words)?,
            )
        }
        "iospec-latched-key" => {
            let found = found?;
            let free = found.owner.get("latch").is_none() && found.key.label() == "latched";
            free.then(|| {
                Mend::one(
                    "Write `latch`, which tools read",
                    replace(text, found.key, "latch")?,
                )
            })?
        }
        "iospec-latched-hint" => latched(text, finding, &found?),
        "iospec-field-unknown" | "iospec-field-misspelt" => {
            let found = found?;
            let free = fields(&found.path)
                .into_iter()
                .filter(|field| found.owner.get(field).is_none());
            let right = suggest::closest(&found.key.label(), free)?;
            Mend::one(format!("Write `{right}`"), replace(text, found.key, right)?)
        }
        "iospec-field-missing" => missing(text, finding, &found?),
        "iospec-field-value" => {
            let found = found.filter(|found| found.key.label() == "type")?;
            let section = found.path.first()?.label();
            let right = section.trim_end_matches('s');
            Mend::one(
                format!("Write `{right}`"),
                Edit::replace(range(text, found.value.span), right),
            )
        }
        "iospec-section" => {
            let found = found.filter(|found| found.path.is_empty())?;
            let free = SECTIONS
                .into_iter()
                .filter(|section| root.get(section).is_none());
            let right = suggest::closest(&found.key.label(), free)?;
            Mend::one(format!("Write `{right}`"), replace(text, found.key, right)?)
        }
        "iospec-undefined-name" => defined_name(text, finding, &root, place),
        "iospec-repeated-input" => Mend::one(
            "Remove the second mention, which does not count",
            remove(text, place),
        ),
        "iospec-address-side" => {
            let found = found?;
            let whole = extent(text, found.key, found.value);
            Mend::one(
                format!("Remove `{}`, which does nothing here", found.key.label()),
                remove(text, &whole),
            )
        }
        "iospec-output-order" => order(text, &root, place),
        _ => None,
    }
}

/// A name that no vector has, as the closest one that is defined.
fn defined_name(text: &str, finding: &Finding, root: &Node, place: &Range<usize>) -> Option<Mend> {
    let wrong = text.get(place.clone())?.trim_matches(['"', '\'']);
    let side = if finding.message.contains("defined output") {
        "outputs"
    } else {
        "inputs"
    };
    let Value::Map(entries) = &root.get(side)?.value else {
        return None;
    };
    let names: Vec<String> = entries.iter().map(|(key, _)| key.label()).collect();
    let right = suggest::closest(wrong, names.iter().map(String::as_str))?;
    let start = place.start + text.get(place.clone())?.find(wrong)?;
    Mend::one(
        format!("Write `{right}`"),
        Edit::replace(start..start + wrong.len(), right),
    )
}

/// The latch of a hint, as the sequences have it.
fn latched(text: &str, finding: &Finding, found: &Found<'_>) -> Option<Mend> {
    let right = finding
        .message
        .strip_prefix("expected latch: ")?
        .split(' ')
        .next()?;
    if !matches!(found.value.value, Value::Bool(_)) {
        return None;
    }
    Mend::one(
        format!("Write {right}, as the sequences have it"),
        Edit::replace(range(text, found.value.span), right),
    )
}

/// The length rounded up, and the words that follow from it.
fn padding(text: &str, root: &Node, found: &Found<'_>) -> Option<Mend> {
    let vector = found
        .path
        .get(1)
        .and_then(|name| object(root, &name.label(), &found.path.first()?.label()));
    let (_, vector) = vector?;
    let (length, precision) = (
        integer(vector.get("length"))?,
        integer(vector.get("precision"))?,
    );
    let padded = integer(Some(found.value))?.max(length).max(1);
    let padded = padded.checked_add(PENCIL - 1)? / PENCIL * PENCIL;
    let mut edits = vec![replace(text, found.value, &padded.to_string())?];
    if let (Some(node), Some(words)) = (vector.get("length_64b_words"), words(padded, precision))
        && integer(Some(node)).is_some_and(|stated| stated != words)
    {
        edits.push(replace(text, node, &words.to_string())?);
    }
    Mend::new(format!("Pad to {padded} elements"), edits)
}

/// A field that is missing: misspelt, or one whose value follows from the rest.
fn missing(text: &str, finding: &Finding, found: &Found<'_>) -> Option<Mend> {
    let field = finding
        .message
        .strip_prefix("expected the field ")?
        .split(' ')
        .next()?;
    let Value::Map(entries) = &found.value.value else {
        return None;
    };
    let mut path = found.path.clone();
    path.push(found.key);
    let known = fields(&path);
    let strangers = entries
        .iter()
        .filter(|(key, _)| !known.contains(&key.label().as_str()));
    let near = |key: &Node| suggest::closest(&key.label(), [field]).is_some();
    if let Some((key, _)) = strangers.clone().find(|(key, _)| near(key)) {
        return Mend::one(format!("Write `{field}`"), replace(text, key, field)?);
    }
    let value = match field {
        "type" => found.path.first()?.label().trim_end_matches('s').to_owned(),
        "varname" => text.get(range(text, found.key.span))?.to_owned(),
        "padded_length" => "null".to_owned(),
        _ => return None,
    };
    let first = range(text, entries.first()?.0.span).start;
    let line = text.get(..first)?.rfind('\n').map_or(0, |at| at + 1);
    let indent = text.get(line..first)?;
    let gap = if indent.trim().is_empty() {
        format!("\n{indent}")
    } else {
        ", ".to_owned()
    };
    Mend::one(
        format!("Add `{field}: {value}`"),
        Edit::insert(first, format!("{field}: {value}{gap}")),
    )
}

/// Removes an item of a list or an entry of a mapping: its line where it has one, otherwise the comma beside it, too.
fn remove(text: &str, range: &Range<usize>) -> Edit {
    let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[range.end..]
        .find('\n')
        .map_or(text.len(), |at| range.end + at + 1);
    let before = text[start..range.start].trim();
    let behind = text[range.end..end].trim();
    if matches!(before, "" | "-") && (behind.is_empty() || behind.starts_with('#')) {
        return Edit::delete(start..end);
    }
    let rest = &text[range.end..];
    let gap = rest.len() - rest.trim_start().len();
    if rest[gap..].starts_with(',') {
        let more = rest[gap + 1..].len() - rest[gap + 1..].trim_start_matches(' ').len();
        return Edit::delete(range.start..range.end + gap + 1 + more);
    }
    let head = text[..range.start].trim_end();
    let head = head
        .strip_suffix(',')
        .map_or(range.start, |head| head.trim_end().len());
    Edit::delete(head..range.end)
}

/// The outputs of a sequence, in the order of their section.
fn order(text: &str, root: &Node, place: &Range<usize>) -> Option<Mend> {
    let Value::Map(section) = &root.get("outputs")?.value else {
        return None;
    };
    let position = |name: &str| section.iter().position(|(key, _)| key.label() == name);
    for kind in ["simple_sequences", "complex_sequences"] {
        let Some(Value::Map(sequences)) = root.get(kind).map(|node| &node.value) else {
            continue;
        };
        for (_, sequence) in sequences {
            let members: Vec<(String, Range<usize>)> =
                match sequence.get("outputs").map(|node| &node.value) {
                    Some(Value::List(items)) => items
                        .iter()
                        .map(|item| (item.label(), range(text, item.span)))
                        .collect(),
                    Some(Value::Map(entries)) => entries
                        .iter()
                        .map(|(key, value)| (key.label(), extent(text, key, value)))
                        .collect(),
                    _ => continue,
                };
            if members
                .first()
                .is_none_or(|(_, range)| range.start != place.start)
            {
                continue;
            }
            let mut sorted: Vec<&(String, Range<usize>)> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| position(name).unwrap_or(usize::MAX));
            let pairs = members
                .iter()
                .zip(sorted)
                .filter(|((one, _), (other, _))| one != other);
            let edits: Option<Vec<Edit>> = pairs
                .map(|((_, at), (_, from))| {
                    Some(Edit::replace(at.clone(), text.get(from.clone())?))
                })
                .collect();
            return Mend::new("Bring the outputs into the order of their section", edits?);
        }
    }
    None
}
