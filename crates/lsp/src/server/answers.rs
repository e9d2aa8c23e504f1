//! Answers to requests.

use super::document::{Document, bytes};
use super::{Refused, findings};
use crate::analysis::{Occurrence, SymbolKind, TokenKind};
use crate::language::SuggestionKind;
use crate::mend::{self, Mend};
use crate::text::{Edit, Encoding, difference, edited};
use chipless::Options;
use lsp_server::{ErrorCode, Request};
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionParams, CompletionItem, CompletionItemKind,
    CompletionList, CompletionParams, CompletionTextEdit, Diagnostic, DocumentHighlight,
    DocumentHighlightKind, DocumentSymbol, FoldingRange, GotoDefinitionParams, Hover,
    HoverContents, HoverParams, InlayHint, InlayHintLabel, InlayHintParams, Location,
    MarkupContent, MarkupKind, NumberOrString, ReferenceParams, RenameParams, SemanticToken,
    SemanticTokens, TextDocumentPositionParams, TextEdit, WorkspaceEdit,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Arc;

type Answer = Result<Value, Refused>;

/// Suggestions in one answer.
const SUGGESTIONS: usize = 1000;

/// Who answers a request, from the document that it is about.
pub(super) struct Answerer<'a> {
    pub(super) options: &'a Options,
    pub(super) encoding: Encoding,
    pub(super) document: Option<&'a Arc<Document>>,
}

fn read<P: DeserializeOwned>(params: Value) -> Result<P, Refused> {
    serde_json::from_value(params).map_err(|error| Refused {
        code: ErrorCode::InvalidParams,
        message: format!("the parameters cannot be read: {error}"),
    })
}

fn give(value: impl serde::Serialize) -> Answer {
    serde_json::to_value(value).map_err(|error| Refused::failed(error.to_string()))
}

impl Answerer<'_> {
    /// The answer to a request; null where a document is not open.
    pub(super) fn answer(&self, request: Request) -> Answer {
        let (method, params) = (request.method, request.params);
        match method.as_str() {
            "textDocument/hover" => self.hover(&read(params)?),
            "textDocument/completion" => self.completion(&read(params)?),
            "textDocument/definition" => self.definition(&read(params)?),
            "textDocument/references" => self.references(&read(params)?),
            "textDocument/documentHighlight" => self.highlights(&read(params)?),
            "textDocument/prepareRename" => self.prepare_rename(&read(params)?),
            "textDocument/rename" => self.rename(&read(params)?),
            "textDocument/documentSymbol" => self.symbols(),
            "textDocument/foldingRange" => self.folds(),
            "textDocument/formatting" => self.format(),
            "textDocument/codeAction" => self.actions(&read(params)?),
            "textDocument/semanticTokens/full" => self.tokens(),
            "textDocument/inlayHint" => self.hints(&read(params)?),
            _ => Err(Refused {
                code: ErrorCode::MethodNotFound,
                message: format!("the server has no method {method}"),
            }),
        }
    }

    /// The document and the byte that a request is about.
    fn place(&self, params: &TextDocumentPositionParams) -> Option<(&Arc<Document>, usize)> {
        let document = self.document?;
        Some((document, document.offset(params.position, self.encoding)))
    }

    /// The name that a request is about.
    fn occurrence(
        &self,
        params: &TextDocumentPositionParams,
    ) -> Option<(&Arc<Document>, &Occurrence)> {
        let (document, offset) = self.place(params)?;
        Some((document, document.analysis().at(offset)?))
    }

    fn range(&self, document: &Document, range: &Range<usize>) -> lsp_types::Range {
        document.range(range, self.encoding)
    }

    fn edits(&self, document: &Document, edits: &[Edit]) -> Vec<TextEdit> {
        let edit =
            |edit: &Edit| TextEdit::new(self.range(document, &edit.range), edit.text.clone());
        edits.iter().map(edit).collect()
    }

    fn hover(&self, params: &HoverParams) -> Answer {
        let Some((document, offset)) = self.place(&params.text_document_position_params) else {
            return Ok(Value::Null);
        };
        let analysis = document.analysis();
        let named = analysis.at(offset).and_then(|place| {
            let symbol = analysis.symbols.get(place.symbol)?;
            let mut said = format!("**`{}`**: {}", symbol.name, symbol.detail);
            if let Some(owner) = symbol.part_of.and_then(|owner| analysis.symbols.get(owner)) {
                said.push_str(&format!(" of `{}` ({})", owner.name, owner.detail));
            }
            let line = document.text.line_of(symbol.word.start);
            said.push_str(&format!("\n\nDefined in line {}.", line + 1));
            if !symbol.about.is_empty() {
                said.push_str(&format!(" {}", symbol.about));
            }
            Some((place.word.clone(), said))
        });
        let explained = || {
            document
                .language
                .explain(document.text.as_str(), analysis, offset)
        };
        let Some((range, value)) = named.or_else(explained) else {
            return Ok(Value::Null);
        };
        give(Hover {
            contents: HoverContents::Markup(MarkupContent {
                kind: MarkupKind::Markdown,
                value,
            }),
            range: Some(self.range(document, &range)),
        })
    }

    fn completion(&self, params: &CompletionParams) -> Answer {
        let Some((document, offset)) = self.place(&params.text_document_position) else {
            return Ok(Value::Null);
        };
        let text = document.text.as_str();
        let found = document
            .language
            .complete(text, document.analysis(), offset);
        let signs = if document.language.id() == "chipless-dfg" {
            "_$#"
        } else {
            "_.-"
        };
        let (word, _) = crate::language::word_at(text, offset, signs);
        let replaced = self.range(document, &(word.start..offset.max(word.start)));
        let is_incomplete = found.len() >= SUGGESTIONS / 2;
        let items = found
            .into_iter()
            .take(SUGGESTIONS)
            .enumerate()
            .map(|(index, suggestion)| CompletionItem {
                kind: Some(match suggestion.kind {
                    SuggestionKind::Keyword => CompletionItemKind::KEYWORD,
                    SuggestionKind::Variable => CompletionItemKind::VARIABLE,
                    SuggestionKind::Function => CompletionItemKind::FUNCTION,
                    SuggestionKind::Property => CompletionItemKind::PROPERTY,
                    SuggestionKind::Value => CompletionItemKind::ENUM_MEMBER,
                }),
                detail: Some(suggestion.detail).filter(|detail| !detail.is_empty()),
                sort_text: Some(format!("{index:04}")),
                text_edit: Some(CompletionTextEdit::Edit(TextEdit::new(
                    replaced,
                    suggestion.label.clone(),
                ))),
                label: suggestion.label,
                ..CompletionItem::default()
            });
        give(CompletionList {
            is_incomplete,
            items: items.collect(),
        })
    }

    fn location(&self, document: &Document, range: &Range<usize>) -> Location {
        Location::new(document.uri.clone(), self.range(document, range))
    }

    /// Where a name is defined; at a place that announces it, that place first.
    fn definition(&self, params: &GotoDefinitionParams) -> Answer {
        let Some((document, place)) = self.occurrence(&params.text_document_position_params) else {
            return Ok(Value::Null);
        };
        let analysis = document.analysis();
        let Some(definition) = analysis.definition(place.symbol) else {
            return Ok(Value::Null);
        };
        let mut found = vec![self.location(document, &definition)];
        if place.defines && place.word != definition {
            found.insert(0, self.location(document, &place.word));
        }
        give(found)
    }

    fn references(&self, params: &ReferenceParams) -> Answer {
        let Some((document, place)) = self.occurrence(&params.text_document_position) else {
            return Ok(Value::Null);
        };
        let with_definition = params.context.include_declaration;
        let places = document.analysis().references(place.symbol);
        let wanted = places.filter(|place| with_definition || !place.defines);
        give(
            wanted
                .map(|place| self.location(document, &place.word))
                .collect::<Vec<_>>(),
        )
    }

    fn highlights(&self, params: &lsp_types::DocumentHighlightParams) -> Answer {
        let Some((document, place)) = self.occurrence(&params.text_document_position_params) else {
            return Ok(Value::Null);
        };
        let places = document.analysis().references(place.symbol);
        let highlights = places.map(|place| DocumentHighlight {
            range: self.range(document, &place.word),
            kind: Some(if place.defines {
                DocumentHighlightKind::WRITE
            } else {
                DocumentHighlightKind::READ
            }),
        });
        give(highlights.collect::<Vec<_>>())
    }

    fn prepare_rename(&self, params: &TextDocumentPositionParams) -> Answer {
        let Some((document, place)) = self.occurrence(params) else {
            return Ok(Value::Null);
        };
        let text = document.text.as_str();
        let Some((stem, ranges)) = document.analysis().stem(text, place.symbol) else {
            return Ok(Value::Null);
        };
        let here = ranges
            .iter()
            .find(|range| place.word.start <= range.start && range.end <= place.word.end);
        match here {
            Some(range) => {
                give(json!({ "range": self.range(document, range), "placeholder": stem }))
            }
            None => Ok(Value::Null),
        }
    }

    fn rename(&self, params: &RenameParams) -> Answer {
        let Some((document, place)) = self.occurrence(&params.text_document_position) else {
            return Err(Refused::failed(
                "expected a name to rename, found none here",
            ));
        };
        let (text, name) = (document.text.as_str(), params.new_name.trim());
        let analysis = document.analysis();
        let old = analysis
            .symbols
            .get(place.symbol)
            .map_or("", |symbol| &symbol.name);
        if let Some(why) = document.language.refuse_name(old, name) {
            return Err(Refused::failed(why));
        }
        let Some(edits) = analysis.rename(text, place.symbol, name) else {
            return Err(Refused::failed(format!("`{old}` cannot have another name")));
        };
        let Some(new) = edited(text, &edits) else {
            return Err(Refused::failed(format!("`{old}` cannot have another name")));
        };
        let fresh = document.language.analyse(&new);
        // What a name stands for may not change, nor what is wrong.
        let shape = |analysis: &crate::analysis::Analysis| -> Vec<(usize, bool)> {
            analysis
                .occurrences
                .iter()
                .map(|o| (o.symbol, o.defines))
                .collect()
        };
        let checked = |text: &str| {
            let checked =
                crate::check::check_as(document.language, &document.name, text, self.options);
            let mut codes: Vec<&str> = checked
                .unwrap_or_default()
                .findings
                .iter()
                .map(|f| f.rule.code)
                .collect();
            codes.sort_unstable();
            codes
        };
        if shape(&fresh) != shape(analysis) || checked(&new) != checked(text) {
            let text = format!(
                "`{name}` would not mean the same: it is the name of something else, or a word of the language"
            );
            return Err(Refused::failed(text));
        }
        give(self.workspace_edit(document, &edits))
    }

    fn workspace_edit(&self, document: &Document, edits: &[Edit]) -> WorkspaceEdit {
        let changes = std::iter::once((document.uri.clone(), self.edits(document, edits)));
        WorkspaceEdit::new(changes.collect())
    }

    fn symbols(&self) -> Answer {
        let Some(document) = self.document else {
            return Ok(Value::Null);
        };
        let symbols = &document.analysis().symbols;
        let mut made: Vec<Option<DocumentSymbol>> = symbols
            .iter()
            .map(|symbol| symbol.listed.then(|| self.outline(document, symbol)))
            .collect();
        // Symbols stand behind those that they are below, so that the last go first.
        let mut top = Vec::new();
        for index in (0..made.len()).rev() {
            let Some(mut symbol) = made.get_mut(index).and_then(Option::take) else {
                continue;
            };
            if let Some(children) = &mut symbol.children {
                children.reverse();
            }
            let parent = symbols
                .get(index)
                .and_then(|s| s.below)
                .filter(|p| *p < index);
            match parent.and_then(|parent| made.get_mut(parent)?.as_mut()) {
                Some(parent) => parent.children.get_or_insert_default().push(symbol),
                None => top.push(symbol),
            }
        }
        top.reverse();
        give(top)
    }

    #[expect(
        deprecated,
        reason = "the protocol's own type has a field that it advises against"
    )]
    fn outline(&self, document: &Document, symbol: &crate::analysis::Symbol) -> DocumentSymbol {
        let whole =
            symbol.range.start.min(symbol.word.start)..symbol.range.end.max(symbol.word.end);
        DocumentSymbol {
            name: if symbol.name.is_empty() {
                "\"\"".to_owned()
            } else {
                symbol.name.clone()
            },
            detail: Some(symbol.detail.clone()).filter(|detail| !detail.is_empty()),
            kind: match symbol.kind {
                SymbolKind::Array => lsp_types::SymbolKind::ARRAY,
                SymbolKind::Port => lsp_types::SymbolKind::INTERFACE,
                SymbolKind::Variable => lsp_types::SymbolKind::VARIABLE,
                SymbolKind::Function => lsp_types::SymbolKind::FUNCTION,
                SymbolKind::Section => lsp_types::SymbolKind::NAMESPACE,
                SymbolKind::Key => lsp_types::SymbolKind::PROPERTY,
                SymbolKind::Event => lsp_types::SymbolKind::EVENT,
            },
            tags: None,
            deprecated: None,
            range: self.range(document, &whole),
            selection_range: self.range(document, &symbol.word),
            children: None,
        }
    }

    fn folds(&self) -> Answer {
        let Some(document) = self.document else {
            return Ok(Value::Null);
        };
        let folds = document.analysis().folds.iter().filter_map(|range| {
            let start = document.text.line_of(range.start) as u32;
            let end = document
                .text
                .line_of(range.end.saturating_sub(1).max(range.start)) as u32;
            (start < end).then(|| FoldingRange {
                start_line: start,
                end_line: end,
                ..FoldingRange::default()
            })
        });
        give(folds.collect::<Vec<_>>())
    }

    fn format(&self) -> Answer {
        let Some(document) = self.document else {
            return Ok(Value::Null);
        };
        let text = document.text.as_str();
        match document.language.format(text) {
            Some(new) => give(self.edits(document, difference(text, &new).as_slice())),
            None => Ok(Value::Null),
        }
    }

    fn actions(&self, params: &CodeActionParams) -> Answer {
        let Some(document) = self.document else {
            return Ok(Value::Null);
        };
        let asked = bytes(&document.text, params.range, self.encoding);
        let context = &params.context;
        let wanted = |kind: &CodeActionKind| {
            context.only.as_ref().is_none_or(|only| {
                only.iter()
                    .any(|only| kind.as_str().starts_with(only.as_str()))
            })
        };
        let mut actions: Vec<CodeAction> = Vec::new();
        if wanted(&CodeActionKind::QUICKFIX) {
            let checked = document.checked(self.options);
            let ranges = findings::ranges(document, self.options);
            let touched =
                |range: &Range<usize>| range.start <= asked.end && asked.start <= range.end;
            for (index, (range, _)) in ranges
                .iter()
                .enumerate()
                .filter(|(_, (range, _))| touched(range))
            {
                let Some(finding) = checked.findings.get(index) else {
                    continue;
                };
                let mine = |diagnostic: &&Diagnostic| {
                    diagnostic.range == self.range(document, range)
                        && diagnostic.code
                            == Some(NumberOrString::String(finding.rule.code.to_owned()))
                };
                let diagnostics: Vec<Diagnostic> =
                    context.diagnostics.iter().filter(mine).cloned().collect();
                // An editor that names findings wants fixes of these.
                if diagnostics.is_empty() && !context.diagnostics.is_empty() {
                    continue;
                }
                let fits = mend::proven(
                    document.language,
                    &document.name,
                    document.text.as_str(),
                    checked,
                    index,
                    self.options,
                );
                if let Some(Mend { title, edits }) = fits {
                    actions.push(CodeAction {
                        title,
                        kind: Some(CodeActionKind::QUICKFIX),
                        diagnostics: (!diagnostics.is_empty()).then_some(diagnostics),
                        edit: Some(self.workspace_edit(document, &edits)),
                        is_preferred: Some(true),
                        ..CodeAction::default()
                    });
                }
            }
        }
        let asked_for_all = context.only.as_ref().is_some_and(|only| {
            only.iter().any(|only| {
                "source.fixAll".starts_with(only.as_str()) && only.as_str().starts_with("source")
            })
        });
        if asked_for_all {
            let text = document.text.as_str();
            let fixed = mend::fix_as(
                document.language,
                &document.name,
                text,
                self.options,
                &|_| false,
            );
            if let Some(edit) = fixed.and_then(|fixed| difference(text, &fixed.text)) {
                actions.push(CodeAction {
                    title: "Fix everything that has one mechanical fix".to_owned(),
                    kind: Some(CodeActionKind::SOURCE_FIX_ALL),
                    edit: Some(self.workspace_edit(document, &[edit])),
                    ..CodeAction::default()
                });
            }
        }
        give(actions)
    }

    fn tokens(&self) -> Answer {
        let Some(document) = self.document else {
            return Ok(Value::Null);
        };
        let mut data = Vec::new();
        let (mut line, mut column) = (0, 0);
        for (range, kind) in &document.analysis().tokens {
            for part in self.lines_of(document, range) {
                if part.start.line != part.end.line || part.start.character >= part.end.character {
                    continue;
                }
                let delta_line = part.start.line - line;
                let delta_start = part.start.character - if delta_line == 0 { column } else { 0 };
                (line, column) = (part.start.line, part.start.character);
                data.push(SemanticToken {
                    delta_line,
                    delta_start,
                    length: part.end.character - part.start.character,
                    token_type: number(*kind),
                    token_modifiers_bitset: 0,
                });
            }
        }
        give(SemanticTokens {
            result_id: None,
            data,
        })
    }

    /// A range, line by line.
    fn lines_of(&self, document: &Document, range: &Range<usize>) -> Vec<lsp_types::Range> {
        let (first, last) = (
            document.text.line_of(range.start),
            document.text.line_of(range.end),
        );
        let part = |line: usize| {
            let whole = document.text.line(line);
            let part = whole.start.max(range.start)..whole.end.min(range.end);
            (part.start < part.end).then(|| self.range(document, &part))
        };
        (first..=last).filter_map(part).collect()
    }

    fn hints(&self, params: &InlayHintParams) -> Answer {
        let Some(document) = self.document else {
            return Ok(Value::Null);
        };
        let asked = bytes(&document.text, params.range, self.encoding);
        let hints = document.analysis().hints.iter();
        let hints = hints
            .filter(|(at, _)| (asked.start..=asked.end).contains(at))
            .map(|(at, label)| InlayHint {
                position: self.range(document, &(*at..*at)).start,
                label: InlayHintLabel::String(label.clone()),
                kind: Some(lsp_types::InlayHintKind::TYPE),
                text_edits: None,
                tooltip: None,
                padding_left: None,
                padding_right: None,
                data: None,
            });
        give(hints.collect::<Vec<_>>())
    }
}

/// The number of a kind in the legend.
fn number(kind: TokenKind) -> u32 {
    TokenKind::ALL
        .iter()
        .position(|(known, _)| *known == kind)
        .unwrap_or(0) as u32
}
