//! Dataflow graphs (DFG text).

mod complete;
mod names;

use crate::analysis::{Analysis, TokenKind};
use crate::language::{Language, Suggestion, word_at};
use chipless::dsa::operations::{self, Generation, Operation};
use chipless::dsa::{self, Document};
use chipless_model::Limits;
use std::ops::Range;

/// The language.
pub(crate) struct Dfg;

impl Language for Dfg {
    fn id(&self) -> &'static str {
        "chipless-dfg"
    }

    fn name(&self) -> &'static str {
        "dataflow graph (DFG)"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["dfg"]
    }

    fn recognize(&self, text: &str) -> bool {
        dsa::recognize(text.as_bytes())
    }

    fn analyse(&self, text: &str) -> Analysis {
        names::analyse(text).0
    }

    fn explain(
        &self,
        text: &str,
        analysis: &Analysis,
        offset: usize,
    ) -> Option<(Range<usize>, String)> {
        let (range, kind) = analysis.token_at(offset)?;
        let word = text.get(range.clone())?;
        let said = match kind {
            TokenKind::Function => operation(word)?,
            TokenKind::Keyword | TokenKind::Property | TokenKind::Macro => keyword(word)?.to_owned(),
            TokenKind::Type => array(word)?.to_owned(),
            TokenKind::EnumMember => action(word)?.to_owned(),
            TokenKind::Variable if register(word) => {
                "A register of the processing element. It keeps its value from one firing to the next; `#pragma $RegK NAME` writes it, the action `r` resets it."
                    .to_owned()
            }
            _ => return None,
        };
        Some((range, said))
    }

    fn complete(&self, text: &str, analysis: &Analysis, offset: usize) -> Vec<Suggestion> {
        complete::complete(text, analysis, offset)
    }

    fn format(&self, text: &str) -> Option<String> {
        Document::read(text.as_bytes(), &Limits::default()).format()
    }
}

/// The names that a text uses and nothing defines above, with every place of each.
pub(crate) fn undefined(text: &str) -> Vec<(String, Range<usize>)> {
    names::analyse(text).1
}

fn register(word: &str) -> bool {
    word.strip_prefix("$Reg")
        .is_some_and(|digit| digit.len() == 1)
}

/// `Add_I64(a, b)`: the signature of an operation, its figures, what it computes.
fn operation(name: &str) -> Option<String> {
    let operation = operations::lookup(name)?;
    let arity = operation.arity();
    let letters = ["a", "b", "c", "d"];
    let operands: Vec<String> = (0..*arity.end())
        .map(|index| {
            let letter = letters.get(index).copied().unwrap_or("…");
            if index < *arity.start() {
                letter.to_owned()
            } else {
                format!("[{letter}]")
            }
        })
        .collect();
    let results = match operation.results {
        0 | 1 => "result".to_owned(),
        n => (0..n)
            .map(|n| format!("result{n}"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let mut said = format!(
        "```chipless-dfg\n{results} = {name}({})\n```\n",
        operands.join(", ")
    );
    said.push_str(&format!("{}\n\n", meaning(name, &operation)));
    said.push_str(&format!(
        "- width: {} bits\n- latency: {}\n- throughput: one firing every {}\n",
        operation.width,
        cycles(operation.latency),
        cycles(operation.throughput)
    ));
    if let Some(cost) = operation.cost {
        said.push_str(&format!(
            "- cost on a Xilinx VU9P: {} look-up tables, {} flip-flops, {} DSP slices\n",
            cost.tables, cost.flip_flops, cost.slices
        ));
    }
    let table = match operation.generation {
        Generation::Older => "older (2016 to 2021)",
        Generation::Newer => "newer (2022)",
        Generation::Both => "older and newer",
    };
    said.push_str(&format!("- instruction table: {table}\n"));
    Some(said)
}

fn cycles(n: u32) -> String {
    if n == 1 {
        "1 cycle".to_owned()
    } else {
        format!("{n} cycles")
    }
}

/// What an operation computes, in a sentence.
fn meaning(name: &str, operation: &Operation) -> String {
    if !operation.executable {
        return "Placed and timed, but not executed: nothing public says what it computes."
            .to_owned();
    }
    let (stem, element) = name.rsplit_once('_').unwrap_or((name, ""));
    let base = stem.trim_end_matches(|c: char| c.is_ascii_digit() || c == 'x');
    let float = base.starts_with('F') || element.starts_with(['F', 'D', 'H']);
    let base = if base.len() > 1
        && base.starts_with('F')
        && base[1..].starts_with(|c: char| c.is_ascii_uppercase())
    {
        &base[1..]
    } else {
        base
    };
    let said = match base {
        "Add" => "a + b",
        "Sub" => "a - b",
        "Mul" => "a * b",
        "Div" => "a / b",
        "Mod" => "the remainder of a / b",
        "Min" => "the smaller of a and b",
        "Max" => "the larger of a and b",
        "And" | "BAnd" => "a and b, bit by bit",
        "Or" | "BOr" => "a or b, bit by bit",
        "Xor" | "BXor" => "a exclusive-or b, bit by bit",
        "Not" | "BNot" => "every bit of a inverted",
        "Abs" => "the absolute value of a",
        "Copy" | "Pass" => "a, unchanged",
        "Select" => "one of two operands, chosen by the other",
        "Acc" | "Accumulate" => "a added to a register that keeps the sum",
        "EQ" => "1 if a equals b, else 0",
        "NE" => "1 if a differs from b, else 0",
        "LT" => "1 if a < b, else 0",
        "LE" => "1 if a <= b, else 0",
        "GT" => "1 if a > b, else 0",
        "GE" => "1 if a >= b, else 0",
        "Sqrt" => "the square root of a",
        "Concat" | "Cat" => "the bits of a and b side by side",
        "Compare" => "1 if a < b, 2 if they are equal, else 0: see docs/dsa-operations.md",
        _ => "",
    };
    let kind = if float {
        " on floating-point numbers"
    } else {
        ""
    };
    if said.is_empty() || base == "Compare" {
        "Executed by `chipless run`; docs/dsa-operations.md has its definition.".to_owned()
    } else {
        format!("Computes {said}{kind}, element by element.")
    }
}

/// The words of the language and what they mean.
pub(crate) const KEYWORDS: &[(&str, &str)] = &[
    (
        "Array",
        "`Array: NAME BYTES TYPE` declares an array in a memory. TYPE is `dma`, `spm`, `rec`, `gen` or `reg`.",
    ),
    (
        "dma",
        "`dma NAME BYTES`: an array behind the direct memory access engine, as the specification writes it.",
    ),
    (
        "spm",
        "`spm NAME BYTES`: an array in the scratchpad, as the specification writes it.",
    ),
    (
        "Input",
        "`InputW: NAME[LANES] [stated] [source=ARRAY]` declares a port into the graph. W is 8, 16, 32 or 64 bits a lane. Default: 64 bits, one lane.",
    ),
    (
        "Output",
        "`OutputW: NAME[LANES] [destination=ARRAY] [state=PORT]` declares a port out of the graph. Its lanes are the values `NAME0`, `NAME1`, …",
    ),
    (
        "Indirect",
        "`IndirectW: NAME[LANES]` declares a port that goes out of the graph and comes in again.",
    ),
    (
        "#pragma",
        "`#pragma group KEY VALUE` describes a sub-graph, `#pragma KEY=VALUE` the next port, `#pragma $RegK NAME` writes a result into a register.",
    ),
    (
        "group",
        "`#pragma group frequency N`, `#pragma group unroll N`, `#pragma group temporal`: how often the sub-graph runs, how many iterations one firing computes, and whether its instructions share processing elements.",
    ),
    (
        "frequency",
        "How often the sub-graph is executed relative to the others. Unit: times. Default: 1.",
    ),
    (
        "unroll",
        "How many iterations one firing computes. Unit: iterations. Default: 1.",
    ),
    (
        "temporal",
        "The instructions of this sub-graph share processing elements in time.",
    ),
    (
        "cmd",
        "Bound by the commands that load the stream, for the performance model. Default: 1. The real tools read it and do not use it.",
    ),
    (
        "repeat",
        "How often the stream is repeated. Unit: times. Default: 1.",
    ),
    (
        "reuse",
        "Share of the stream that the L2 cache serves again, from 0 to 1. Default: 0.",
    ),
    (
        "conc",
        "Bytes in flight of a recurrence: trip count times bytes of an element. Unit: bytes. Default: 0.",
    ),
    (
        "src",
        "Where the stream of the next port comes from, in words; kept and shown.",
    ),
    (
        "dest",
        "Where the stream of the next port goes, in words; kept and shown.",
    ),
    (
        "op",
        "What is done with the stream of the next port, in words; kept and shown.",
    ),
    (
        "stated",
        "The state of the stream (its place in the loops, 8 bits) comes with the data, as `$NAMEState`.",
    ),
    (
        "source",
        "`source=ARRAY`: the array that the stream of an input comes from. It must be declared above.",
    ),
    (
        "destination",
        "`destination=ARRAY`: the array that the stream of an output goes to. It must be declared above.",
    ),
    (
        "state",
        "`state=PORT`: the stated input port whose state the output passes on.",
    ),
    (
        "ctrl",
        "`ctrl=VALUE & MASK{KEY: ACTIONS, …}`: the table is asked for VALUE & MASK and says what the instruction does. Default mask: 7. Actions: `b1`, `b2`, `d`, `r`, `a`.",
    ),
    ("control", "`control=` is the older form of `ctrl=`."),
    (
        "self",
        "`self & MASK{KEY: ACTIONS, …}`: the table is asked for the instruction's own result.",
    ),
    (
        "pred",
        "`pred=VALUE`: the result counts where VALUE is not zero.",
    ),
    (
        "inv_pred",
        "`inv_pred=VALUE`: the result counts where VALUE is zero.",
    ),
    (
        "TaskDep",
        "A dependence between tasks (task-flow extension). Kept and shown; not executed.",
    ),
    (
        "TaskProp",
        "A property of a task (task-flow extension). Kept and shown; not executed.",
    ),
    (
        "----",
        "Begins another sub-graph. Sub-graphs fire independently and share arrays.",
    ),
];

fn keyword(word: &str) -> Option<&'static str> {
    let word = if word.starts_with("---") || word.starts_with('—') {
        "----"
    } else {
        word
    };
    let stem = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = stem.strip_suffix("Vec").unwrap_or(stem);
    KEYWORDS
        .iter()
        .find(|(known, _)| *known == stem)
        .map(|(_, said)| *said)
}

/// Types of arrays.
pub(crate) const ARRAYS: &[(&str, &str)] = &[
    ("dma", "Memory behind the direct memory access engine."),
    ("spm", "Scratchpad."),
    ("scratchpad", "Scratchpad, as `spm`."),
    (
        "rec",
        "Recurrence: outputs that come back as inputs. It needs a port that writes it and one that reads it.",
    ),
    ("gen", "Generated values."),
    (
        "reg",
        "Registers of the host core. They can only be written.",
    ),
];

fn array(word: &str) -> Option<&'static str> {
    ARRAYS
        .iter()
        .find(|(known, _)| *known == word)
        .map(|(_, said)| *said)
}

/// Actions of control tables.
pub(crate) const ACTIONS: &[(&str, &str)] = &[
    ("b1", "The first operand stays for the next firing."),
    ("b2", "The second operand stays for the next firing."),
    ("d", "The result is discarded: it does not count."),
    ("r", "Registers are reset after use."),
    ("a", "The operation is not executed: it abstains."),
];

fn action(word: &str) -> Option<&'static str> {
    ACTIONS
        .iter()
        .find(|(known, _)| *known == word)
        .map(|(_, said)| *said)
}

/// The start of the word that is being typed.
fn typed(text: &str, offset: usize) -> (Range<usize>, &str) {
    let (range, _) = word_at(text, offset, "_$#");
    let end = offset.min(range.end).max(range.start);
    (
        range.start..end,
        text.get(range.start..end).unwrap_or_default(),
    )
}
