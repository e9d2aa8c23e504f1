//! NEFF assembler: the text that test programs are written in.

use crate::analysis::{Analysis, Symbol, SymbolKind, TokenKind};
use crate::language::{Language, Suggestion, SuggestionKind, checked, word_at};
use chipless::neuron::stream::{AluOperation, OPCODES, Opcode};
use chipless::texts as rules;
use chipless::{Checked, Failure, Options, Parts};
use chipless_model::Place;
use chipless_neuron_assembler::{Lines, assemble_with_lines};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// The language.
pub(super) struct Assembler;

/// What is wrong with the program that a text describes. Places of the packed file become lines of the text, where one says what stands there.
fn of_program(result: Result<Checked, Failure>, lines: &Lines) -> Checked {
    let mut checked = match result {
        Ok(checked) => checked,
        Err(failure) => return Checked::unreadable(failure.message),
    };
    for finding in &mut checked.findings {
        let related = finding.related.iter_mut().map(|(place, _)| place);
        for place in std::iter::once(&mut finding.place).chain(related) {
            place.position = lines.of(place);
            if place.position.is_some() {
                place.part = Cow::Borrowed("");
            }
            place.offset = None;
            place.size = 0;
        }
    }
    checked.parts = Parts::default();
    checked
}

/// Statements and what they say.
const STATEMENTS: &[(&str, &str)] = &[
    (
        "neff",
        "`neff NAME HARDWARE`: the program's name, and `inf1`, `trn1`, `trn2` or `trn3`.",
    ),
    (
        "input",
        "`input NAME TYPE [d0, d1]`: a tensor that comes in.",
    ),
    (
        "output",
        "`output NAME TYPE [d0, d1]`: a tensor that goes out.",
    ),
    ("subgraph", "`subgraph NAME`: what follows belongs to it."),
    (
        "queue",
        "`queue NAME TYPE owner=ENGINE queues=N semaphores=A,B`: a set of DMA queues.",
    ),
    (
        "var",
        "`var NAME TYPE …`: a variable, numbered in the order of declaration. Options: `id=`, `size=` (bytes), `align=`, `at=`, `to=`, `fabric=`.",
    ),
    (
        "engine",
        "`engine NAME`: the instructions that follow are those of `pe`, `act`, `dve`, `pool` or `sp`.",
    ),
    (
        "dma",
        "`dma id=N queue=NAME semaphore=N`: a list of transfers, which the lines below it describe.",
    ),
    (
        "copy",
        "`copy OUT [step:size, …] <- IN [step:size, …]`: a transfer.",
    ),
    (
        "functions",
        "`functions NAME`: a set of functions of the scalar engine, given by the lines below it.",
    ),
    (
        "segment",
        "`segment C0 C1 C2 C3 X`: a cubic piece of a function.",
    ),
    ("control", "A control entry of a function."),
    ("function", "A function of the set."),
    (
        "member",
        "`member PATH text|hex`: a file of the container; its content follows in lines that begin with `|`.",
    ),
    (
        "stream",
        "`stream PATH`: an instruction stream as a file of the container.",
    ),
];

impl Language for Assembler {
    fn id(&self) -> &'static str {
        "chipless-asm"
    }

    fn name(&self) -> &'static str {
        "NEFF assembler"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["asm"]
    }

    fn recognize(&self, text: &str) -> bool {
        let first = text
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.starts_with(';'));
        first.is_some_and(|line| line.starts_with("neff ") || line.starts_with("member "))
    }

    fn check(&self, name: &str, text: &str, options: &Options) -> Option<Checked> {
        if !text.lines().any(|line| !line.trim().is_empty()) {
            return None;
        }
        let (draft, lines) = match assemble_with_lines(text) {
            Ok(program) => program,
            Err(error) => {
                let start: usize = text
                    .split_inclusive('\n')
                    .take(error.line - 1)
                    .map(str::len)
                    .sum();
                let at = text.floor_char_boundary(start + error.column - 1);
                let finding = rules::ASSEMBLER.at(Place::bytes(at as u64, 0), error.message);
                return Some(checked(vec![finding]));
            }
        };
        let file = match draft.write(&options.limits) {
            Ok(file) => file,
            Err(finding) => return Some(checked(vec![*finding])),
        };
        Some(of_program(chipless::check(name, &file, options), &lines))
    }

    fn analyse(&self, text: &str) -> Analysis {
        let mut reader = Reader {
            analysis: Analysis::default(),
            names: HashMap::new(),
            semaphores: HashMap::new(),
            section: None,
            engine: None,
        };
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            reader.line(line.trim_end(), start);
            start += line.len();
        }
        reader.close(text, text.len());
        reader.analysis.sort();
        reader.analysis
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
            TokenKind::Keyword => STATEMENTS
                .iter()
                .find(|(known, _)| *known == word)?
                .1
                .to_owned(),
            TokenKind::Function => opcode(Opcode::named(word)?),
            TokenKind::EnumMember => format!(
                "An operation of the arithmetic unit; evidence: {:?}.",
                AluOperation::named(word)?.evidence
            ),
            _ => return None,
        };
        Some((range, said))
    }

    fn complete(&self, text: &str, analysis: &Analysis, offset: usize) -> Vec<Suggestion> {
        let (word, _) = word_at(text, offset, "_");
        let line = text
            .get(..word.start)
            .unwrap_or_default()
            .rsplit('\n')
            .next()
            .unwrap_or_default();
        let names = |kind: SymbolKind| -> Vec<Suggestion> {
            let found = analysis
                .symbols
                .iter()
                .filter(|s| s.kind == kind && s.renamable);
            found
                .map(|s| {
                    Suggestion::new(s.name.clone(), SuggestionKind::Variable, s.detail.clone())
                })
                .collect()
        };
        if line.ends_with("queue=") {
            return names(SymbolKind::Port);
        }
        if line.ends_with("owner=") || line.trim() == "engine" {
            return ["pe", "act", "dve", "pool", "sp"]
                .into_iter()
                .map(|engine| Suggestion::new(engine, SuggestionKind::Value, "engine"))
                .collect();
        }
        if line.trim().is_empty() {
            let statements = STATEMENTS.iter().map(|(word, said)| {
                Suggestion::new(
                    *word,
                    SuggestionKind::Keyword,
                    said.split("`: ").last().unwrap_or_default(),
                )
            });
            let opcodes = OPCODES.iter().map(|opcode| {
                Suggestion::new(
                    opcode.name,
                    SuggestionKind::Function,
                    opcode.engines.names(),
                )
            });
            return statements.chain(opcodes).collect();
        }
        names(SymbolKind::Variable)
    }

    fn refuse_name(&self, symbol: &str, name: &str) -> Option<String> {
        if symbol.bytes().all(|byte| byte.is_ascii_digit()) {
            let good = name.parse::<u8>().is_ok();
            return (!good).then(|| {
                format!("expected the number of a semaphore, 0 to 255, found \"{name}\"")
            });
        }
        let marks = chipless::neuron::stream::MARKS;
        let good = !name.is_empty()
            && !name.contains(|c: char| c.is_whitespace() || c == ';' || marks.contains(c));
        (!good).then(|| {
            format!("expected a name without blanks and without {marks}, found \"{name}\"")
        })
    }
}

/// An instruction: what its operands are, who executes it, what Chipless does with it.
fn opcode(opcode: &Opcode) -> String {
    let mut said = format!(
        "**`{}`**: opcode {:#04x}\n\n- engines: {}\n- generations: {} to {}\n- Chipless: {}\n",
        opcode.name,
        opcode.byte,
        opcode.engines.names(),
        opcode.generations.0.name(),
        opcode.generations.1.name(),
        opcode.support.name()
    );
    if !opcode.remark.is_empty() {
        said.push_str(&format!("\n{}\n", opcode.remark));
    }
    said
}

struct Reader {
    analysis: Analysis,
    names: HashMap<String, usize>,
    semaphores: HashMap<String, usize>,
    section: Option<usize>,
    engine: Option<usize>,
}

impl Reader {
    fn define(
        &mut self,
        name: &str,
        kind: SymbolKind,
        detail: String,
        word: Range<usize>,
        whole: Range<usize>,
    ) -> usize {
        self.analysis.add(Symbol {
            name: name.to_owned(),
            kind,
            detail,
            about: String::new(),
            word,
            range: whole,
            part_of: None,
            below: if kind == SymbolKind::Section {
                None
            } else {
                self.engine.or(self.section)
            },
            listed: kind != SymbolKind::Event,
            renamable: kind != SymbolKind::Section,
        })
    }

    /// Sub-graph and engine end where the next begin.
    fn close(&mut self, text: &str, before: usize) {
        for symbol in [self.section, self.engine].into_iter().flatten() {
            let own = &mut self.analysis.symbols[symbol];
            let body = text.get(own.range.start..before).unwrap_or_default();
            own.range.end = own.range.end.max(own.range.start + body.trim_end().len());
            let range = own.range.clone();
            self.analysis.folds.push(range);
        }
    }

    /// A place where a variable, a tensor or a queue is named.
    fn uses(&mut self, name: &str, word: Range<usize>) {
        if let Some(symbol) = self.names.get(name) {
            self.analysis.token(word.clone(), TokenKind::Variable);
            self.analysis.occurs(*symbol, word, false);
        }
    }

    /// A place where a semaphore is named. The first one counts as its definition.
    fn semaphore(&mut self, number: &str, word: Range<usize>) {
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return;
        }
        self.analysis.token(word.clone(), TokenKind::Number);
        let known = self.semaphores.get(number).copied();
        let symbol = known.unwrap_or_else(|| {
            let symbol = self.define(
                number,
                SymbolKind::Event,
                "semaphore".to_owned(),
                word.clone(),
                word.clone(),
            );
            self.semaphores.insert(number.to_owned(), symbol);
            symbol
        });
        self.analysis.occurs(symbol, word, known.is_none());
    }

    fn line(&mut self, line: &str, start: usize) {
        let (code, remark) = match line.find(';') {
            Some(at) if !line.starts_with('|') => (&line[..at], Some(at)),
            _ => (line, None),
        };
        if let Some(at) = remark {
            self.analysis
                .token(start + at..start + line.len(), TokenKind::Comment);
        }
        if code.starts_with('|') {
            return self
                .analysis
                .token(start..start + code.len(), TokenKind::String);
        }
        let words = words(code);
        let Some((first, range)) = words.first().cloned() else {
            return;
        };
        let at = |range: &Range<usize>| start + range.start..start + range.end;
        let whole = start + range.start..start + code.trim_end().len();
        let statement = STATEMENTS.iter().any(|(known, _)| *known == first);
        let kind = if statement {
            TokenKind::Keyword
        } else {
            TokenKind::Function
        };
        self.analysis.token(at(&range), kind);
        let second = words.get(1).cloned();
        let mut rest = 1;
        if let Some((name, range)) = second {
            let word = at(&range);
            let defined = match first {
                "input" | "output" => Some((SymbolKind::Variable, format!("{first} tensor"))),
                "var" => Some((SymbolKind::Variable, "variable".to_owned())),
                "queue" => Some((SymbolKind::Port, "queue set".to_owned())),
                "subgraph" => {
                    let symbol = self.define(
                        name,
                        SymbolKind::Section,
                        "sub-graph".to_owned(),
                        word.clone(),
                        whole.clone(),
                    );
                    self.begin(symbol, whole.start, false);
                    rest = 2;
                    None
                }
                "engine" => {
                    let section = self.section;
                    let symbol = self.define(
                        name,
                        SymbolKind::Section,
                        "engine".to_owned(),
                        word.clone(),
                        whole.clone(),
                    );
                    self.analysis.symbols[symbol].below = section;
                    self.begin(symbol, whole.start, true);
                    rest = 2;
                    None
                }
                "functions" | "member" | "stream" | "neff" => {
                    rest = 2;
                    None
                }
                _ => None,
            };
            if let Some((kind, detail)) = defined {
                rest = 2;
                self.analysis.token(word.clone(), TokenKind::Variable);
                // A variable that bears the name of a tensor stands for it.
                let known = self.names.get(name).copied().filter(|_| first == "var");
                let symbol = known.unwrap_or_else(|| {
                    let symbol = self.define(name, kind, detail, word.clone(), whole.clone());
                    self.names.insert(name.to_owned(), symbol);
                    symbol
                });
                self.analysis.occurs(symbol, word, true);
            }
        }
        self.operands(code, &words[rest.min(words.len())..], start, first);
    }

    fn begin(&mut self, symbol: usize, start: usize, is_engine: bool) {
        let ends = if is_engine {
            vec![self.engine]
        } else {
            vec![self.section, self.engine]
        };
        for old in ends.into_iter().flatten() {
            let own = &mut self.analysis.symbols[old];
            own.range.end = own.range.end.max(start.saturating_sub(1));
            let range = own.range.clone();
            self.analysis.folds.push(range);
        }
        if is_engine {
            self.engine = Some(symbol);
        } else {
            (self.section, self.engine) = (Some(symbol), None);
        }
    }

    fn operands(
        &mut self,
        code: &str,
        words: &[(&str, Range<usize>)],
        start: usize,
        statement: &str,
    ) {
        let mut key = "";
        for (word, range) in words {
            let place = start + range.start..start + range.end;
            let before = code.get(..range.start).unwrap_or_default().trim_end();
            let behind = code.get(range.end..).unwrap_or_default();
            if behind.starts_with('=') && !behind.starts_with("==") {
                self.analysis.token(place, TokenKind::Property);
                key = word;
                continue;
            }
            let in_brackets = |name: &str| before.ends_with(&format!("{name}["));
            let is_semaphore = in_brackets("$S")
                || matches!(key, "semaphore" | "semaphores" | "remote")
                    && before.ends_with(['=', ',']);
            if is_semaphore {
                self.semaphore(word, place);
            } else if in_brackets("var") || in_brackets("table") || before.ends_with("queue=") {
                self.uses(word, place);
            } else if before.ends_with("op=")
                || before.ends_with("op0=")
                || before.ends_with("op1=")
            {
                self.analysis.token(place, TokenKind::EnumMember);
            } else if word.starts_with(|c: char| c.is_ascii_digit()) {
                self.analysis.token(place, TokenKind::Number);
            } else if self.names.contains_key(*word) && is_transfer(statement, before) {
                self.uses(word, place);
            }
        }
    }
}

/// Whether a bare word at this place of a statement names a variable.
fn is_transfer(statement: &str, before: &str) -> bool {
    let known = STATEMENTS.iter().any(|(known, _)| *known == statement);
    match statement {
        // `var T dge-table w x`, `var P pointer to=x`.
        "var" => before.contains(' ') && !before.ends_with('=') || before.ends_with("to="),
        // `copy out [1:8] <- x [1:8]`, and its like.
        "copy" => true,
        _ => {
            !known
                && statement
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c == '-')
                && !before.ends_with('=')
        }
    }
}

/// Words of a line: what stands between blanks and marks.
fn words(code: &str) -> Vec<(&str, Range<usize>)> {
    let marks = chipless::neuron::stream::MARKS;
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in code.char_indices().chain([(code.len(), ' ')]) {
        if c.is_whitespace() || marks.contains(c) {
            if let Some(start) = start.take() {
                found.push((&code[start..at], start..at));
            }
        } else {
            start.get_or_insert(at);
        }
    }
    found
}
