//! Dataflow graphs in an editor.

use crate::client::{Client, edited, words};
use serde_json::{Value, json};

const URI: &str = "file:///kernel.dfg";

const TEXT: &str = "\
# Two lanes, summed up row by row.
# The sum leaves at the end of a row.
Array: matrix 1024 dma
Input64: cell[2] stated source=matrix
both = Add_I64(cell_0, cell1)
#pragma $Reg0 sum
sum = Add_I64(both, $Reg0, ctrl=$cellState & 8{0: d, 8: r})
----
Input64: x
y0 = Mul_I64(x, 2)
y1 = Sub_I64(y0, x)
Output64: y[2]
Output64: sum
";

fn open() -> Client {
    let mut client = Client::new();
    client.open(URI, "chipless-dfg", TEXT);
    client
}

fn hover(client: &mut Client, mark: &str, skip: usize) -> String {
    let said = client.about("textDocument/hover", URI, TEXT, mark, skip);
    said["contents"]["value"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_hover_says_what_a_word_means() {
    let mut client = open();
    let operation = hover(&mut client, "Mul_I64", 2);
    for part in [
        "result = Mul_I64(a, b)",
        "a * b",
        "width: 64 bits",
        "latency: ",
    ] {
        assert!(operation.contains(part), "{part}: {operation}");
    }
    let name = hover(&mut client, "both, $", 1);
    for part in [
        "result of Add_I64",
        "Defined in line 5",
        "64 bits",
        "1 reader",
        "cycle",
    ] {
        assert!(name.contains(part), "{part}: {name}");
    }
    let lane = hover(&mut client, "cell_0", 1);
    assert!(
        lane.contains("lane 0 of `cell` (input port, 2 lanes of 64 bits, stated)"),
        "{lane}"
    );
    for (mark, said) in [
        ("Array", "declares an array"),
        ("dma", "direct memory access"),
        ("stated", "state of the stream"),
        ("source", "the array that the stream of an input comes from"),
        ("ctrl", "the table is asked"),
        ("----", "another sub-graph"),
        ("$Reg0,", "register of the processing element"),
        ("#pragma", "writes a result into a register"),
    ] {
        let found = hover(&mut client, mark, 1);
        assert!(found.contains(said), "{mark}: {found}");
    }
    assert_eq!(
        client.about("textDocument/hover", URI, TEXT, "# Two", 0),
        Value::Null
    );
}

#[test]
fn a_name_leads_to_its_definition_and_its_uses() {
    let mut client = open();
    let mut find = |method: &str, mark: &str, skip| {
        let found = client.about(&format!("textDocument/{method}"), URI, TEXT, mark, skip);
        words(TEXT, &found)
    };
    assert_eq!(find("definition", "cell_0", 2), ["3:cell"]);
    assert_eq!(find("definition", "$cellState", 3), ["3:cell"]);
    assert_eq!(find("definition", "matrix\nboth", 1), ["2:matrix"]);
    assert_eq!(
        find("references", "matrix 1024", 1),
        ["2:matrix", "3:matrix"]
    );
    assert_eq!(
        find("references", "cell[2]", 0),
        ["3:cell", "4:cell_0", "4:cell1", "6:$cellState"]
    );
    assert_eq!(find("references", "y0 =", 0), ["9:y0", "10:y0"]);
    // The pragma announces the result: it stands first, its definition second.
    assert_eq!(find("definition", "sum\nsum", 1), ["5:sum", "6:sum"]);
    assert_eq!(find("references", "sum =", 1), ["5:sum", "6:sum", "12:sum"]);
}

#[test]
fn a_renamed_graph_is_the_same_graph() {
    let mut client = open();
    let mut rename = |mark: &str, name: &str| {
        let at = crate::client::position(TEXT, TEXT.find(mark).expect("the mark"));
        let params = json!({ "textDocument": { "uri": URI }, "position": at, "newName": name });
        client.ask("textDocument/rename", params)
    };
    let lanes = edited(TEXT, &rename("cell[2]", "in_"), URI);
    assert!(lanes.contains("Input64: in_[2] stated"), "{lanes}");
    assert!(lanes.contains("both = Add_I64(in__0, in_1)"), "{lanes}");
    assert!(lanes.contains("ctrl=$in_State & 8"), "{lanes}");
    // A lane of an output has its name from the port.
    let output = edited(TEXT, &rename("y0 =", "z"), URI);
    assert!(
        output.contains("z0 = Mul_I64(x, 2)\nz1 = Sub_I64(z0, x)\nOutput64: z[2]"),
        "{output}"
    );
    let plain = edited(TEXT, &rename("sum =", "total"), URI);
    assert!(
        plain.contains("#pragma $Reg0 total\ntotal = ") && plain.contains("Output64: total"),
        "{plain}"
    );
    for (mark, name, said) in [
        ("both =", "sum", "would not mean the same"),
        ("both =", "Input64", "would not mean the same"),
        ("both =", "9", "expected a name"),
        ("x\ny0", "y0", "would not mean the same"),
    ] {
        let refused = rename(mark, name);
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(said), "{mark} to {name}: {refused}");
    }
}

#[test]
fn the_part_of_a_name_that_can_be_renamed_is_shown() {
    let mut client = open();
    let lane = client.about("textDocument/prepareRename", URI, TEXT, "cell_0", 2);
    assert_eq!(lane["placeholder"], "cell");
    assert_eq!(
        lane["range"]["start"],
        json!({ "line": 4, "character": 15 })
    );
    assert_eq!(lane["range"]["end"], json!({ "line": 4, "character": 19 }));
    let none = client.about("textDocument/prepareRename", URI, TEXT, "Add_I64", 2);
    assert_eq!(none, Value::Null);
}

#[test]
fn suggestions_fit_their_place() {
    let mut client = Client::new();
    let mut labels = |line: &str| {
        let text = format!("Array: arr 64 dma\nInput64: a\nlater = Add_I64(a, 1)\n{line}");
        client.open("file:///c.dfg", "chipless-dfg", &text);
        let found = client.about(
            "textDocument/completion",
            "file:///c.dfg",
            &text,
            line,
            line.len(),
        );
        let items = found["items"].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .map(|item| item["label"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let has =
        |all: &[String], wanted: &[&str]| wanted.iter().all(|w| all.iter().any(|label| label == w));
    assert!(
        has(&labels("x = Mul_"), &["Mul_I64", "Mul_F32x2", "Mul_U8"])
            || has(&labels("x = Mul_"), &["Mul_I64"])
    );
    assert!(has(&labels("x = Add_I64("), &["later", "a", "ctrl="]));
    assert_eq!(
        labels("x = Add_I64(lat"),
        ["later", "ctrl=", "self", "pred=", "inv_pred="]
    );
    assert_eq!(labels("Input64: b source="), ["arr"]);
    assert!(has(&labels("#pragma "), &["group ", "reuse=", "$Reg0 "]));
    assert_eq!(
        labels("#pragma group "),
        ["frequency", "unroll", "temporal"]
    );
    assert!(has(&labels("O"), &["Output64: ", "Array: ", "#pragma "]));
    assert_eq!(
        labels("x = Add_I64(a, ctrl=a & 1{0: "),
        ["b1", "b2", "d", "r", "a"]
    );
}

#[test]
fn outline_folds_colours_and_hints() {
    let mut client = open();
    let symbols = client.whole("textDocument/documentSymbol", URI);
    let names: Vec<(String, Vec<String>)> = symbols
        .as_array()
        .expect("symbols")
        .iter()
        .map(|group| {
            let children = group["children"].as_array().cloned().unwrap_or_default();
            let name = |symbol: &Value| symbol["name"].as_str().unwrap_or_default().to_owned();
            (name(group), children.iter().map(name).collect())
        })
        .collect();
    let own = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names,
        [
            (
                "sub-graph 0".to_owned(),
                own(&["matrix", "cell", "both", "sum"])
            ),
            (
                "sub-graph 1".to_owned(),
                own(&["x", "y0", "y1", "y", "sum"])
            ),
        ]
    );
    let folds = client.whole("textDocument/foldingRange", URI);
    let folds: Vec<_> = folds
        .as_array()
        .expect("folds")
        .iter()
        .map(|f| (f["startLine"].as_u64(), f["endLine"].as_u64()))
        .collect();
    assert_eq!(
        folds,
        [(Some(0), Some(1)), (Some(0), Some(6)), (Some(7), Some(12))]
    );
    let tokens = client.whole("textDocument/semanticTokens/full", URI);
    let data: Vec<u64> = tokens["data"]
        .as_array()
        .expect("tokens")
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    assert_eq!(data.len() % 5, 0);
    // Two remarks, then `Array` (0), `matrix` (2) and its type (1).
    assert_eq!(
        &data[10..25],
        [1, 0, 5, 0, 0, 0, 7, 6, 2, 0, 0, 12, 3, 1, 0]
    );
    let range =
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 } });
    let hints = client.ask(
        "textDocument/inlayHint",
        json!({ "textDocument": { "uri": URI }, "range": range }),
    );
    let hints: Vec<&str> = hints
        .as_array()
        .expect("hints")
        .iter()
        .filter_map(|h| h["label"].as_str())
        .collect();
    assert_eq!(
        hints,
        [
            ": 64 bits, cycle 1",
            ": 64 bits, cycle 2",
            ": 64 bits, cycle 1",
            ": 64 bits, cycle 2"
        ]
    );
}

#[test]
fn formatting_is_the_canonical_form() {
    let mut client = Client::new();
    let text = "Input64 a\nb=Add_I64( a,1 )  # why\n\n\n\nOutput64:  b";
    client.open(URI, "chipless-dfg", text);
    let edits = client.whole("textDocument/formatting", URI);
    let new = edited(text, &json!({ "changes": { URI: edits } }), URI);
    assert_eq!(new, "Input64: a\nb = Add_I64(a, 1)  # why\n\nOutput64: b\n");
    client.open(URI, "chipless-dfg", &new);
    assert_eq!(client.whole("textDocument/formatting", URI), json!([]));
    client.open(URI, "chipless-dfg", "not a = graph (\n");
    assert_eq!(client.whole("textDocument/formatting", URI), Value::Null);
}

#[test]
fn a_quick_fix_is_the_one_of_the_check() {
    let mut client = Client::new();
    let text = "Input64: a\nb = Ad_I64(a, 1)\nc = Ad_I64(b, 2)\nOutput64: c";
    let found = client.open(URI, "chipless-dfg", text);
    let finding = found
        .iter()
        .find(|f| f["code"] == "dfg-unknown-operation")
        .expect("a finding");
    let params = json!({ "textDocument": { "uri": URI }, "range": finding["range"], "context": { "diagnostics": [finding] } });
    let actions = client.ask("textDocument/codeAction", params);
    assert_eq!(actions[0]["title"], "Write `Add_I64`");
    assert_eq!(actions[0]["kind"], "quickfix");
    let new = edited(text, &actions[0]["edit"], URI);
    assert_eq!(
        new,
        "Input64: a\nb = Add_I64(a, 1)\nc = Add_I64(b, 2)\nOutput64: c"
    );
    let range =
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
    let all = json!({ "textDocument": { "uri": URI }, "range": range, "context": { "diagnostics": [], "only": ["source.fixAll"] } });
    let actions = client.ask("textDocument/codeAction", all);
    assert_eq!(edited(text, &actions[0]["edit"], URI), new + "\n");
    // Where the finding is, the page about it is.
    let href = finding["codeDescription"]["href"]
        .as_str()
        .unwrap_or_default();
    assert!(
        href.ends_with("docs/findings.md#dfg-unknown-operation"),
        "{href}"
    );
}

#[test]
fn a_variable_with_several_values_is_one_name() {
    let text = "Input: a\nS = Add64(a, 1)\nS = Add64(S, 2)\nOutput: S\n";
    let mut client = Client::new();
    client.open(URI, "chipless-dfg", text);
    let find = |client: &mut Client, method: &str| {
        let found = client.about(&format!("textDocument/{method}"), URI, text, "S, 2", 0);
        words(text, &found)
    };
    assert_eq!(find(&mut client, "definition"), ["1:S"]);
    assert_eq!(find(&mut client, "references"), ["1:S", "2:S"]);
    let at = crate::client::position(text, text.find("S, 2").expect("a use"));
    let params = json!({ "textDocument": { "uri": URI }, "position": at, "newName": "sum" });
    let renamed = edited(text, &client.ask("textDocument/rename", params), URI);
    assert_eq!(renamed, text.replace('S', "sum"));
}
