//! What every client relies on.

use crate::client::Client;
use serde_json::{Value, json};

#[test]
fn a_client_chooses_how_columns_count() {
    for (offered, chosen) in [
        (vec!["utf-8", "utf-16"], "utf-8"),
        (vec!["utf-16", "utf-8"], "utf-16"),
        (vec!["utf-7"], "utf-16"),
        (vec![], "utf-16"),
    ] {
        let client = Client::with(&offered);
        assert_eq!(client.first["capabilities"]["positionEncoding"], chosen);
        assert_eq!(client.close(), Ok(()));
    }
}

#[test]
fn columns_count_as_agreed() {
    // A character of four bytes and two code units stands before the wrong name.
    let text = "/* \u{1D11E} */ x = Add_I64(y, 1)\n";
    for (encoding, column) in [("utf-8", 23), ("utf-16", 21), ("utf-32", 20)] {
        let mut client = Client::with(&[encoding]);
        let found = client.open("file:///a.dfg", "chipless-dfg", text);
        let undefined = found
            .iter()
            .find(|f| f["code"] == "dfg-undefined")
            .expect("a finding");
        assert_eq!(
            undefined["range"]["start"],
            json!({ "line": 0, "character": column }),
            "{encoding}"
        );
    }
}

#[test]
fn requests_that_make_no_sense_are_answered() {
    let mut client = Client::new();
    let unknown = client.ask("chipless/nonsense", json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
    let misshapen = client.ask("textDocument/hover", json!({ "position": 3 }));
    assert_eq!(misshapen["error"]["code"], -32602);
    let place = json!({ "textDocument": { "uri": "file:///none" }, "position": { "line": 0, "character": 0 } });
    assert_eq!(client.ask("textDocument/hover", place), Value::Null);
    assert_eq!(client.close(), Ok(()));
}

#[test]
fn a_cancelled_request_is_answered_as_cancelled() {
    let mut client = Client::new();
    let long: String = (0..4_000)
        .map(|n| format!("v{n} = Add_I64(a, {n})\n"))
        .collect();
    let text = format!("Input64: a\n{long}");
    client.open("file:///long.dfg", "chipless-dfg", &text);
    // While the first is answered, the second is taken back.
    let document = json!({ "textDocument": { "uri": "file:///long.dfg" } });
    let first = client.send("textDocument/documentSymbol", document.clone());
    let second = client.send("textDocument/semanticTokens/full", document);
    client.tell("$/cancelRequest", json!({ "id": second }));
    assert!(client.answer(first).is_array());
    assert_eq!(client.answer(second)["error"]["code"], -32800);
}

#[test]
fn changes_are_made_in_their_order() {
    let uri = "file:///a.dfg";
    let mut client = Client::new();
    let text = "Input64: a\nb = Add_I64(a, 1)\nOutput64: b\n";
    assert_eq!(client.open(uri, "chipless-dfg", text), Vec::<Value>::new());
    let range = |l1, c1, l2, c2| json!({ "start": { "line": l1, "character": c1 }, "end": { "line": l2, "character": c2 } });
    // The name of the input, then of its use, then a line that goes.
    let changes = json!([
        { "range": range(0, 9, 0, 10), "text": "first" },
        { "range": range(1, 12, 1, 13), "text": "frist" },
        { "range": range(2, 0, 3, 0), "text": "Output64: b" },
    ]);
    client.tell(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": changes }),
    );
    let mut codes: Vec<Value> = client
        .findings(uri, 2)
        .iter()
        .map(|f| f["code"].clone())
        .collect();
    codes.sort_by_key(ToString::to_string);
    assert_eq!(
        codes,
        ["dfg-final-newline", "dfg-undefined",].map(Value::from)
    );
    client.tell(
        "textDocument/didClose",
        json!({ "textDocument": { "uri": uri } }),
    );
    let place =
        json!({ "textDocument": { "uri": uri }, "position": { "line": 0, "character": 9 } });
    assert_eq!(client.ask("textDocument/hover", place), Value::Null);
}
