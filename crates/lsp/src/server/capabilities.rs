//! What the server can do, as it tells the client.

use crate::analysis::TokenKind;
use crate::text::Encoding;
use lsp_types::InitializeParams;
use serde_json::{Value, json};

/// How the client wants positions counted: the first way it offers that is known here.
pub(super) fn encoding(params: &InitializeParams) -> Encoding {
    let general = params.capabilities.general.as_ref();
    let offered = general.and_then(|general| general.position_encodings.as_deref());
    let known = |name: &str| match name {
        "utf-8" => Some(Encoding::Utf8),
        "utf-16" => Some(Encoding::Utf16),
        "utf-32" => Some(Encoding::Utf32),
        _ => None,
    };
    let mut offered = offered.unwrap_or_default().iter();
    offered
        .find_map(|kind| known(kind.as_str()))
        .unwrap_or_default()
}

/// What the server can do.
pub(super) fn capabilities(encoding: Encoding) -> Value {
    let encoding = match encoding {
        Encoding::Utf8 => "utf-8",
        Encoding::Utf16 => "utf-16",
        Encoding::Utf32 => "utf-32",
    };
    let tokens: Vec<&str> = TokenKind::ALL.iter().map(|(_, name)| *name).collect();
    json!({
        "positionEncoding": encoding,
        "textDocumentSync": { "openClose": true, "change": 2 },
        "hoverProvider": true,
        "completionProvider": { "triggerCharacters": ["=", "(", "{", ":", " ", "$", "#", "."] },
        "definitionProvider": true,
        "referencesProvider": true,
        "documentHighlightProvider": true,
        "renameProvider": { "prepareProvider": true },
        "documentSymbolProvider": true,
        "foldingRangeProvider": true,
        "documentFormattingProvider": true,
        "codeActionProvider": { "codeActionKinds": ["quickfix", "source.fixAll"] },
        "semanticTokensProvider": {
            "legend": { "tokenTypes": tokens, "tokenModifiers": [] },
            "full": true,
        },
        "inlayHintProvider": true,
    })
}
