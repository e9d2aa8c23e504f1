//! Mechanical mends: for a finding that can be mended in one way only, the edits that do it.
//!
//! Every mend is proven before it is offered: the text is checked with the edits made, and the finding must be gone and none be new. Of a valid
//! dataflow graph the graph must be the same but for what nothing uses. A mend that fails this is none. `check --fix` goes one step further: where
//! an error kept a contract from being read, what shows once it is gone may be new.

mod dfg;
mod iospec;

use crate::check::check_as;
use crate::language::Language;
use crate::languages::language;
use crate::text::{Edit, edited};
use chipless::{Checked, Failure, Options};
use chipless_model::Finding;
use chipless_report::findings;
use std::collections::BTreeMap;
use std::ops::Range;

/// Rounds of fixing: a mend may uncover a finding that has one, too.
const ROUNDS: usize = 64;

/// Mends that are tried one after the other where they do not go together.
const ONE_BY_ONE: usize = 500;

/// What mends a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mend {
    /// What it does, in the imperative.
    pub title: String,
    /// How.
    pub edits: Vec<Edit>,
}

impl Mend {
    fn new(title: impl Into<String>, edits: Vec<Edit>) -> Option<Mend> {
        (!edits.is_empty()).then(|| Mend {
            title: title.into(),
            edits,
        })
    }

    /// One edit.
    fn one(title: impl Into<String>, edit: Edit) -> Option<Mend> {
        Mend::new(title, vec![edit])
    }
}

/// A text that was fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The text.
    pub text: String,
    /// Code and title of each mend that was made, in their order.
    pub mends: Vec<(&'static str, String)>,
}

/// Fixes everything in a file that has one mechanical mend; `None` where there is nothing to fix, and for files that are no text. Findings of
/// codes that are `allowed` stay.
///
/// # Errors
/// Options that do not fit.
pub fn fix(
    name: &str,
    bytes: &[u8],
    options: &Options,
    allowed: &dyn Fn(&str) -> bool,
) -> Result<Option<Fixed>, Failure> {
    let Some(text) = std::str::from_utf8(bytes)
        .ok()
        .filter(|_| !bytes.contains(&0))
    else {
        return Ok(None);
    };
    let language = language("", name, text);
    check_as(language, name, text, options)?;
    Ok(fix_as(language, name, text, options, allowed))
}

/// The proven mends of a file, each with the number of its finding.
///
/// # Errors
/// Options that do not fit.
pub fn mends(name: &str, text: &str, options: &Options) -> Result<Vec<(usize, Mend)>, Failure> {
    let language = language("", name, text);
    let checked = check_as(language, name, text, options)?;
    let all = 0..checked.findings.len();
    let mend = |index| {
        Some((
            index,
            proven(language, name, text, &checked, index, options)?,
        ))
    };
    Ok(all.filter_map(mend).collect())
}

/// Where the findings of a text are.
fn ranges(name: &str, text: &str, checked: &Checked) -> Vec<Option<Range<usize>>> {
    let shown = findings::Checked {
        path: name,
        target: checked.target,
        bytes: text.as_bytes(),
        parts: &checked.parts,
        findings: &checked.findings,
    };
    shown.ranges().into_iter().map(|(range, _)| range).collect()
}

/// What might mend a finding.
fn candidate(text: &str, finding: &Finding, range: Option<Range<usize>>) -> Option<Mend> {
    let code = finding.rule.code;
    let range = range.unwrap_or(0..0);
    let own = match code.split('-').next() {
        Some("dfg") => dfg::mend(code, text, finding, &range),
        Some("iospec") => iospec::mend(code, text, finding, &range),
        _ => None,
    };
    own.or_else(|| spelling(text, finding, &range))
}

/// The name that a finding quotes and the one that it takes to be meant.
fn meant(message: &str) -> Option<(&str, &str)> {
    let (before, behind) = message.split_once("did you mean ")?;
    let quoted = |text: &'_ str| -> Option<(usize, usize)> {
        let start = text.find(['`', '"'])?;
        let mark = text[start..].chars().next()?;
        let size = text[start + 1..].find(mark)?;
        Some((start + 1, start + 1 + size))
    };
    let (start, end) = quoted(behind)?;
    let right = &behind[start..end];
    // What was found stands last before the question, or first in the message.
    let wrong = match before.rsplit_once("found ") {
        Some((_, found)) => quoted(found).map(|(start, end)| &found[start..end]),
        None => quoted(before).map(|(start, end)| &before[start..end]),
    };
    Some((wrong?, right))
}

/// A misspelt word, where the finding says which one is meant.
fn spelling(text: &str, finding: &Finding, range: &Range<usize>) -> Option<Mend> {
    let (wrong, right) = meant(&finding.message)?;
    let here = text.get(range.clone())?;
    let start = range.start + here.find(wrong)?;
    Mend::one(
        format!("Write `{right}`"),
        Edit::replace(start..start + wrong.len(), right),
    )
}

/// How often each code was found.
fn counts(checked: &Checked) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for finding in &checked.findings {
        *counts.entry(finding.rule.code).or_default() += 1;
    }
    counts
}

/// Whether a text is better than the one before: nothing is found more often, something less often, and a valid text means the same.
fn is_better(before: (&str, &Checked), after: (&str, &Checked)) -> bool {
    let (old, new) = (counts(before.1), counts(after.1));
    let none_new = new
        .iter()
        .all(|(code, count)| old.get(code).is_some_and(|known| count <= known));
    let fewer = after.1.findings.len() < before.1.findings.len();
    let valid = !before.1.findings.iter().any(Finding::is_error);
    let is_graph = before.1.target == Some("dsa");
    none_new && fewer && (!valid || !is_graph || dfg::same_meaning(before.0, after.0))
}

/// Whether a reader that stops at the first mistake has come further: another mistake is the first now.
fn is_further(before: &Checked, after: &Checked) -> bool {
    match (
        before.target,
        before.findings.as_slice(),
        after.findings.as_slice(),
    ) {
        (None, [old], [new]) => {
            old.rule.code.starts_with("workload-") && old.message != new.message
        }
        _ => false,
    }
}

/// Whether an error that kept a contract from being read is gone: what else is wrong with it shows only then.
fn uncovers(before: &Checked, after: &Checked) -> bool {
    let errors = |checked: &Checked| checked.findings.iter().filter(|f| f.is_error()).count();
    before.target == Some("spu") && !before.is_readable && errors(after) < errors(before)
}

/// What mends a finding, if that is proven.
pub(crate) fn proven(
    language: &dyn Language,
    name: &str,
    text: &str,
    checked: &Checked,
    index: usize,
    options: &Options,
) -> Option<Mend> {
    let finding = checked.findings.get(index)?;
    let range = ranges(name, text, checked).into_iter().nth(index)?;
    let mend = candidate(text, finding, range)?;
    let new = edited(text, &mend.edits)?;
    let again = check_as(language, name, &new, options).ok()?;
    let code = finding.rule.code;
    let gone = counts(&again).get(code) < counts(checked).get(code);
    let better = gone && is_better((text, checked), (&new, &again));
    (better || is_further(checked, &again)).then_some(mend)
}

/// Fixes everything in a text that has one mechanical mend.
pub(crate) fn fix_as(
    language: &dyn Language,
    name: &str,
    text: &str,
    options: &Options,
    allowed: &dyn Fn(&str) -> bool,
) -> Option<Fixed> {
    let mut fixed = Fixed {
        text: text.to_owned(),
        mends: Vec::new(),
    };
    let mut checked = check_as(language, name, text, options).ok()?;
    for _ in 0..ROUNDS {
        let found = ranges(name, &fixed.text, &checked);
        let candidates: Vec<(&'static str, Mend)> = checked
            .findings
            .iter()
            .zip(found)
            .filter(|(finding, _)| !allowed(finding.rule.code))
            .filter_map(|(finding, range)| {
                Some((finding.rule.code, candidate(&fixed.text, finding, range)?))
            })
            .collect();
        if candidates.is_empty() {
            break;
        }
        // All that touch different bytes at once; one by one where that is not better.
        let mut together: Vec<(&'static str, Mend)> = Vec::new();
        let mut edits: Vec<Edit> = Vec::new();
        for (code, mend) in &candidates {
            let apart = mend
                .edits
                .iter()
                .all(|edit| edits.iter().all(|other| apart(edit, other)));
            if apart {
                edits.extend(mend.edits.iter().cloned());
                together.push((code, mend.clone()));
            }
        }
        let mut step = attempt(language, name, &fixed.text, &checked, &edits, options);
        if step.is_none() {
            // Some do not go with others: each joins those before it if that makes the text better still.
            together.clear();
            edits.clear();
            for (code, mend) in candidates.into_iter().take(ONE_BY_ONE) {
                let more: Vec<Edit> = edits.iter().chain(&mend.edits).cloned().collect();
                let tried = attempt(language, name, &fixed.text, &checked, &more, options);
                let left = step
                    .as_ref()
                    .map_or(usize::MAX, |(_, known)| known.findings.len());
                if let Some(tried) = tried.filter(|(_, again)| again.findings.len() < left) {
                    step = Some(tried);
                    edits = more;
                    together.push((code, mend));
                }
            }
        }
        let Some((new, again)) = step else { break };
        fixed.text = new;
        checked = again;
        fixed
            .mends
            .extend(together.into_iter().map(|(code, mend)| (code, mend.title)));
    }
    (fixed.text != text).then_some(fixed)
}

/// The text with edits made, and what is wrong with it, if that is better.
fn attempt(
    language: &dyn Language,
    name: &str,
    text: &str,
    checked: &Checked,
    edits: &[Edit],
    options: &Options,
) -> Option<(String, Checked)> {
    let new = edited(text, edits)?;
    let again = check_as(language, name, &new, options).ok()?;
    let better = is_better((text, checked), (&new, &again));
    (better || is_further(checked, &again) || uncovers(checked, &again)).then_some((new, again))
}

/// Whether two edits touch different bytes. Two that put something in front of the same byte do not.
fn apart(one: &Edit, other: &Edit) -> bool {
    one.range.end < other.range.start || other.range.end < one.range.start
}

/// The lines of a range with their ends, where nothing else stands on them; otherwise the range.
fn whole_lines(text: &str, range: &Range<usize>) -> Range<usize> {
    let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[range.end..]
        .find('\n')
        .map_or(text.len(), |at| range.end + at + 1);
    let before = text[start..range.start].trim();
    let behind = text[range.end..end].trim();
    if before.is_empty() && (behind.is_empty() || behind == ";") {
        start..end
    } else {
        range.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_was_meant() {
        for (message, wrong, right) in [
            ("`Q` is not defined above; did you mean `A`?", "Q", "A"),
            (
                "expected a field of a stream, found \"nmae\"; did you mean \"name\"?",
                "nmae",
                "name",
            ),
            (
                "no table has an operation `Ad_I64`; did you mean `Add_I64`?",
                "Ad_I64",
                "Add_I64",
            ),
        ] {
            assert_eq!(meant(message), Some((wrong, right)));
        }
        assert_eq!(meant("`Q` is not defined above"), None);
        assert_eq!(meant("did you mean `x"), None);
    }

    #[test]
    fn lines_go_whole_where_nothing_else_is_on_them() {
        let text = "a = 1\n  b = 2 ;\nc # why\n";
        assert_eq!(whole_lines(text, &(0..5)), 0..6);
        assert_eq!(whole_lines(text, &(8..13)), 6..16);
        assert_eq!(whole_lines(text, &(16..17)), 16..17);
    }
}
