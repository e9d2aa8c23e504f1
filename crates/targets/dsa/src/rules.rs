//! What can be wrong with a DFG: one rule for each kind of finding, with its own code.

use chipless_model::Rule;
pub(crate) use chipless_model::{Findings, clip};

/// Rules about the text.
pub(crate) mod syntax {
    chipless_model::rules! {
        LIMIT Limit Error Chipless "dfg-limit" "the file asks for more than a limit allows"
        "A size or a count in the file is beyond the bound that keeps a hostile file from taking the machine."
        "If the file is trusted, raise the limit that the message names."
        "Chipless";
        EMPTY Fault Error Format "dfg-empty" "the file has no statement"
        "There is nothing to read: no port, no operation."
        "Take the file from its origin again."
        "dsa-scheduler, grammar of the parser";
        SYNTAX Fault Error Format "dfg-syntax" "the line is no statement of the language"
        "A statement declares an array or a port, assigns an operation's results, separates sub-graphs, or is a pragma. The rest of the line was skipped."
        "Write the statement as docs/dfg.md describes it."
        "dsa-scheduler, grammar of the parser";
        CHARACTER Fault Error Format "dfg-character" "a character that the language does not use"
        "The language is made of names, numbers and the signs `: = , ; ( ) [ ] { } < > | &`. Comments begin with `#` or stand between `/*` and `*/`."
        "Remove the character."
        "dsa-scheduler, scanner";
        NUMBER Fault Error Format "dfg-number" "a number that cannot be read"
        "Numbers are decimal, hexadecimal (0x) or octal (0) and fit 64 bits; floating-point numbers have a point or an exponent."
        "Write the number in one of these forms."
        "dsa-scheduler, scanner";
        NESTING Unsupported Error Chipless "dfg-nesting" "calls are nested too deeply"
        "An operation may have an operation as its argument, but not without end."
        "Give names to intermediate results."
        "Chipless";
        PORT_WIDTH Fault Error Format "dfg-port-width" "a port of a width that there is not"
        "Ports are 8, 16, 32 or 64 bits wide; wider vectors have more lanes."
        "Use lanes: `Input64: name[2]` for 128 bits."
        "dsa-scheduler, scanner";
        PRAGMA_FORM Fault Warning Format "dfg-pragma-form" "a pragma of a form that is not known"
        "Pragmas describe sub-graphs (`group`), ports (`KEY=VALUE`) and registers (`$RegK`). Others have no meaning here and are kept as they are."
        "Remove the pragma, or make it a comment."
        "dsa-scheduler, grammar of the parser";
        FINAL_NEWLINE Fault Warning Format "dfg-final-newline" "the last line does not end"
        "The real parser ends a statement only at a newline or a semicolon and rejects a file whose last statement has neither. This is what the specification means when it asks for a blank last line."
        "Add a newline at the end of the file; `chipless format` does."
        "dsa-scheduler, grammar; DFG File Format, last paragraph";
        CARRIAGE_RETURN Fault Warning Format "dfg-carriage-return" "the file has the line ends of another system"
        "The real scanner knows no carriage return and rejects the file."
        "Save the file with newlines only; `chipless format` does."
        "dsa-scheduler, scanner";
        SPELLING Fault Warning Format "dfg-spelling" "written as the specification prints it, which the real parser rejects"
        "The specification and the real parser differ: `Array: a 128 dma` for `dma a 128`, `Input64: a` for `Input64 a`, `#pragma cmd=1` for `#pragma cmd 1`, `a0` for lane `a_0` of port `a`, `$aState` for `a_State`. Chipless reads both."
        "Let `chipless format` write the form that every tool reads."
        "DFG File Format; dsa-scheduler, grammar of the parser";
        OLDER_FORM Fault Note Format "dfg-older-form" "a form of the language that newer tools reject"
        "Lists of lanes (`[0, 1, 2]`) end with Softbrain; `control=` and slices as width and index (`v:16:1`) end with stream-dataflow. Chipless reads them as they were meant."
        "Let `chipless format` write the modern form."
        "dsa-scheduler, grammar of the parser; files of stream-dataflow";
        MORE_FINDINGS Limit Note Chipless "dfg-more-findings" "findings were left out"
        "A file has more findings than the limit keeps; the rest was only counted."
        "Mend the first ones, or raise the limit that the message names."
        "Chipless";
    }
}

/// Every rule of this target.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [
        syntax::ALL,
        crate::resolve::rules::ALL,
        crate::lint::rules::ALL,
        crate::adg::rules::ALL,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// The candidate that a mistyped name was probably meant to be.
pub(crate) fn closest<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let typed = name.to_lowercase();
    let near =
        |candidate: &&str| candidate.len().abs_diff(name.len()) <= candidate.len().max(3) / 3;
    candidates
        .into_iter()
        .filter(near)
        .map(|candidate| {
            (
                strsim::osa_distance(&typed, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, candidate)| *distance <= candidate.chars().count().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
