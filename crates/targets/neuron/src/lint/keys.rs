//! Keys that look like optional ones of the format, misspelt: unknown keys are ignored, so that what they say would be lost.

use super::{Findings, Object};
use crate::json::{entries, push_key};
use crate::rules::definition::MISSPELT;

/// Optional keys of a variable.
pub(super) const VARIABLE: &[&str] = &[
    "size",
    "alignment",
    "fabric_path",
    "file_name",
    "backing_variable_off",
    "referenced_var_id",
    "list",
];
/// Keys of a variable that are no option.
pub(super) const VARIABLE_REQUIRED: &[&str] = &["type", "var_id", "ops"];
/// Optional keys of a queue set.
pub(super) const QUEUE: &[&str] = &[
    "num_queues",
    "owner",
    "pinned",
    "queue_instances",
    "semaphore_set",
    "semaphore",
    "fabric_path",
    "dynamic_dma",
];
/// Optional keys of an entry of `dma`.
pub(super) const ENTRY: &[&str] = &[
    "instance_name",
    "function_start",
    "section_start_desc",
    "event",
    "semaphore",
    "remote_semaphores",
];
/// Keys of an entry that are no option.
pub(super) const ENTRY_REQUIRED: &[&str] = &["id", "queue", "desc"];
/// Optional keys of a transfer.
pub(super) const TRANSFER: &[&str] = &[
    "op",
    "from_arr",
    "from_dtype",
    "to_dtype",
    "num_tiling_dimensions",
    "scale",
    "scale_dtype",
    "constant",
    "constant_dtype",
    "transpose_shape",
    "transpose_element_size",
];
/// Keys of a transfer that are no option.
pub(super) const TRANSFER_REQUIRED: &[&str] = &[
    "from",
    "from_off",
    "from_steps",
    "from_sizes",
    "to",
    "to_off",
    "to_steps",
    "to_sizes",
];
/// Optional keys of a source in `from_arr`.
pub(super) const SOURCE: &[&str] = &["from_dtype", "scale"];
/// Keys of a source that are no option.
pub(super) const SOURCE_REQUIRED: &[&str] = &["from", "from_off", "from_steps", "from_sizes"];

/// Reports the keys of an object that nobody reads and that are within two edits of an optional one.
pub(super) fn check(
    object: Object<'_, '_>,
    at: &str,
    text: &str,
    (optional, required): (&[&str], &[&str]),
    findings: &mut Findings,
) {
    for (key, _) in entries(text).unwrap_or_default() {
        let is_known = |known: &[&str]| known.contains(&&*key);
        if is_known(optional) || is_known(required) || key.starts_with('#') {
            continue;
        }
        let near = optional
            .iter()
            .find(|known| edits(&key, known) <= (known.len() / 2).min(2));
        if let Some(known) = near {
            let mut field = at.to_owned();
            push_key(&mut field, &key);
            let message =
                format!("`{key}` is no key of the format and is ignored; is `{known}` meant?");
            findings.report(&MISSPELT, || object.at(&field), message);
        }
    }
}

/// Letters to insert, leave out or exchange, up to 3.
fn edits(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len().abs_diff(other.len()) > 2 {
        return 3;
    }
    let mut before: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let exchanged = before[j] + usize::from(a != b);
            row.push(exchanged.min(before[j + 1] + 1).min(row[j] + 1));
        }
        before = row;
    }
    before[other.len()]
}

#[cfg(test)]
mod tests {
    use super::edits;

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("aligment", "alignment"), 1);
        assert_eq!(edits("fabricpath", "fabric_path"), 1);
        assert_eq!(edits("num_queue", "num_queues"), 1);
        assert_eq!(edits("scal", "scale"), 1);
        assert!(edits("vendor_note", "alignment") > 2);
        assert!(edits("origin_line", "constant") > 2);
    }
}
