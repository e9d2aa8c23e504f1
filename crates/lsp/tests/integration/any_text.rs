//! Any text in any language: no panic, ranges within the text, the same answers as for a text opened afresh.

use crate::client::Client;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::{LazyLock, Mutex};

const LANGUAGES: [&str; 7] = [
    "chipless-dfg",
    "chipless-iospec",
    "chipless-workload",
    "chipless-plan",
    "chipless-machine",
    "chipless-asm",
    "json",
];

/// Pieces of which texts are made: words of the languages, signs, characters of every width.
const PIECES: &[&str] = &[
    "Input64: a[4]\n",
    "Input64 b\n",
    "y = Ad_I64(a_0, bb)\n",
    "dma m 8\n",
    "#pragma cmd 1\n",
    "Output64: b",
    "x = Add_I64(a_0, a1)\n",
    "#pragma $Reg0 x\n",
    "#pragma ",
    "----\n",
    "Array: m 64 dma\n",
    "$aState",
    "ctrl=",
    "& 8{0: d}",
    "inputs:\n",
    "  x:\n",
    "    type: input\n",
    "    length: 6\n",
    "simple_sequences:\n",
    "streams:\n",
    "contexts: {a: {process: 1}}\n",
    "  - {name: s, context: a}\n",
    "programs: [x]\n",
    "version: 1\n",
    "[dma]\n",
    "clock = 3 # MHz: x\n",
    "neff p trn2\n",
    "var x input\n",
    "engine sp\n",
    "NOP $S[9]>=4\n",
    "|0011\n",
    "{\"layers\": [1, 2.5e3, null",
    "]}",
    "\"",
    "'",
    "{",
    "}",
    "[",
    "(",
    ")",
    ":",
    ",",
    ";",
    "&",
    "*",
    "<<",
    "- ",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "é",
    "𝄞",
    "\u{feff}",
    "0x",
    "999999999999999999999",
    " ",
];

/// One server for all cases.
static CLIENT: LazyLock<Mutex<Client>> = LazyLock::new(|| Mutex::new(Client::new()));

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..24).prop_map(|pieces| pieces.concat())
}

/// Positions in a JSON answer lie within the text.
fn inside(text: &str, answer: &Value) -> bool {
    let rows: Vec<usize> = text
        .replace("\r\n", "\n")
        .split(['\n', '\r'])
        .map(|line| line.encode_utf16().count())
        .collect();
    let place = |place: &Value| {
        let (line, column) = (place["line"].as_u64(), place["character"].as_u64());
        line.zip(column).is_none_or(|(line, column)| {
            rows.get(line as usize)
                .is_some_and(|length| column as usize <= length + 1)
        })
    };
    match answer {
        Value::Array(all) => all.iter().all(|answer| inside(text, answer)),
        Value::Object(all) => place(answer) && all.iter().all(|(_, answer)| inside(text, answer)),
        _ => true,
    }
}

proptest! {
    #![proptest_config(chipless_rounds::cases(200))]

    #[test]
    fn every_request_is_answered(text in text(), language in prop::sample::select(&LANGUAGES[..]), line in 0u32..12, column in 0u32..40) {
        let mut client = CLIENT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let uri = "untitled:any";
        let found = client.open(uri, language, &text);
        prop_assert!(inside(&text, &Value::from(found)));
        let position = json!({ "line": line, "character": column });
        let range = json!({ "start": { "line": 0, "character": 0 }, "end": position });
        for method in ["hover", "completion", "definition", "references", "documentHighlight", "prepareRename", "rename", "documentSymbol", "foldingRange",
            "formatting", "codeAction", "semanticTokens/full", "inlayHint"] {
            let params = json!({
                "textDocument": { "uri": uri }, "position": position, "range": range, "newName": "other",
                "context": { "includeDeclaration": true, "triggerKind": 1, "diagnostics": [] }, "options": { "tabSize": 2, "insertSpaces": true },
            });
            let answer = client.ask(&format!("textDocument/{method}"), params);
            let code = answer["error"]["code"].as_i64();
            // A rename may be refused; nothing else may fail.
            prop_assert!(code.is_none() || method == "rename" && code == Some(-32803), "{method}: {answer}");
            prop_assert!(inside(&text, &answer), "{method}: {answer} in {text:?}");
        }
    }

    #[test]
    fn changes_are_like_a_text_that_is_opened(texts in prop::collection::vec(text(), 1..4), language in prop::sample::select(&LANGUAGES[..])) {
        let mut client = CLIENT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        client.open("untitled:one", language, "");
        let mut last = Vec::new();
        for (version, text) in (2i64..).zip(&texts) {
            let document = json!({ "uri": "untitled:one", "version": version });
            client.tell("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [{ "text": text }] }));
            last = client.findings("untitled:one", version);
        }
        client.tell("textDocument/didClose", json!({ "textDocument": { "uri": "untitled:one" } }));
        let mut fresh = Client::new();
        let again = fresh.open("untitled:one", language, texts.last().map_or("", String::as_str));
        prop_assert_eq!(last, again);
    }

    #[test]
    fn fixes_end_and_are_made_once(text in text(), name in prop::sample::select(&["a.dfg", "a.yaml", "a.toml", "a.asm", "a.json"][..])) {
        let options = chipless::Options::default();
        let fix = |text: &str| chipless_lsp::fix(name, text.as_bytes(), &options, &|_| false).expect("options that fit");
        if let Some(fixed) = fix(&text) {
            prop_assert!(!fixed.mends.is_empty());
            prop_assert_eq!(fix(&fixed.text), None, "{:?} became {:?}", text, fixed.text);
        }
    }
}
