//! IOSpecs, workloads, plans, machine files, assembler and JSON in an editor.

use crate::client::{Client, edited, position, words};
use serde_json::{Value, json};

const IOSPEC: &str = "\
inputs:
  x: # the samples
    type: input
    varname: x
    length: 6
    precision: 16
    padded_length: null
outputs:
  y:
    type: output
    varname: y
    length: 8
    precision: 16
    padded_length: null
simple_sequences:
  main:
    type: simple_sequence
    inputs: [x]
    outputs:
      - y
";

fn codes(found: &[Value]) -> Vec<&str> {
    found.iter().filter_map(|f| f["code"].as_str()).collect()
}

fn hover(client: &mut Client, uri: &str, text: &str, mark: &str) -> String {
    let said = client.about("textDocument/hover", uri, text, mark, 1);
    said["contents"]["value"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn contracts_have_names_keys_and_a_form() {
    let uri = "file:///iospec.yaml";
    let mut client = Client::new();
    assert_eq!(client.open(uri, "yaml", IOSPEC), Vec::<Value>::new());
    assert!(hover(&mut client, uri, IOSPEC, "padded_length").contains("multiple of 8"));
    assert!(hover(&mut client, uri, IOSPEC, "x]").contains("input of 6 elements of 16 bits"));
    let uses = client.about("textDocument/references", uri, IOSPEC, "x:", 0);
    assert_eq!(words(IOSPEC, &uses), ["1:x", "3:x", "17:x"]);
    let params = json!({ "textDocument": { "uri": uri }, "position": position(IOSPEC, IOSPEC.find("x]").expect("x")), "newName": "samples" });
    let renamed = edited(IOSPEC, &client.ask("textDocument/rename", params), uri);
    assert_eq!(
        renamed.matches("samples").count(),
        4,
        "a remark, the key, its varname, its use: {renamed}"
    );
    let compact = IOSPEC.replace("inputs: [x]", "inputs:   [ x ]");
    client.open(uri, "yaml", &compact);
    let edits = client.whole("textDocument/formatting", uri);
    let formatted = edited(&compact, &json!({ "changes": { uri: edits } }), uri);
    assert!(
        formatted.contains("# the samples") && !formatted.contains("[ x ]"),
        "{formatted}"
    );
    let text = format!("{IOSPEC}  other:\n    ");
    client.open(uri, "yaml", &text);
    let end = json!({ "textDocument": { "uri": uri }, "position": position(&text, text.len()) });
    let found = client.ask("textDocument/completion", end);
    let labels: Vec<&str> = found["items"]
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|i| i["label"].as_str())
        .collect();
    assert_eq!(labels, ["type: ", "inputs: ", "outputs: ", "comments: "]);
}

#[test]
fn workloads_are_checked_and_explained() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/device");
    let text = std::fs::read_to_string(format!("{folder}/two_networks.yaml")).expect("the fixture");
    let uri = format!("file://{folder}/two_networks.yaml");
    let mut client = Client::new();
    assert_eq!(client.open(&uri, "yaml", &text), Vec::<Value>::new());
    assert!(hover(&mut client, &uri, &text, "jitter").contains("Default: 0"));
    let context = client.about("textDocument/definition", &uri, &text, "context: batch", 10);
    assert_eq!(words(&text, &context), ["6:batch"]);
    for (wrong, with, code) in [
        ("deadline", "deadlin", "workload-field"),
        ("context: camera", "context: camrea", "workload-context"),
        (
            "ddr.bandwidth=0.25x",
            "ddr.bandwith=0.25x",
            "workload-figure",
        ),
        (
            "net_cnn_dpu/program.blob",
            "net_cnn/program.blob",
            "workload-program",
        ),
        ("machine: npu4", "machine: npu9", "workload-machine"),
    ] {
        let broken = text.replace(wrong, with);
        assert_eq!(codes(&client.open(&uri, "yaml", &broken)), [code], "{with}");
    }
}

#[test]
fn plans_are_checked_and_explained() {
    let uri = "file:///plan.yaml";
    let text = "version: 1\nprograms: [a.blob]\nmachine:\n  dma.latency: [510, 1625]\ncolumns: [latency_ns]\n";
    let mut client = Client::new();
    assert_eq!(client.open(uri, "yaml", text), Vec::<Value>::new());
    assert!(hover(&mut client, uri, text, "columns").contains("Default: `latency_ns`"));
    assert!(hover(&mut client, uri, text, "dma.latency").contains("unit: "));
    let broken = text.replace("columns", "colums");
    let found = client.open(uri, "yaml", &broken);
    assert_eq!(codes(&found), ["plan-invalid"]);
    assert_eq!(found[0]["range"]["start"]["line"], 4);
}

#[test]
fn machine_files_are_checked_and_explained() {
    let uri = "file:///my.toml";
    let machine = chipless::target("dsa").expect("a target").machines()[0].1;
    let mut client = Client::new();
    assert_eq!(client.open(uri, "toml", machine), Vec::<Value>::new());
    let said = hover(&mut client, uri, machine, "clock =");
    assert!(
        said.contains("unit: MHz") && said.contains("source: "),
        "{said}"
    );
    let found = client.open(uri, "toml", &machine.replacen("clock =", "clokc =", 1));
    assert_eq!(codes(&found), ["machine-key"]);
    assert!(
        found[0]["message"]
            .as_str()
            .expect("a message")
            .contains("did you mean \"clock\"?")
    );
    let found = client.open(
        uri,
        "toml",
        &machine.replacen("clock = 100.0", "clock = \"fast\"", 1),
    );
    assert_eq!(codes(&found), ["machine-value"]);
    let found = client.open(
        uri,
        "toml",
        &machine.replacen("clock = 100.0", "clock = = 1", 1),
    );
    assert_eq!(codes(&found), ["machine-syntax"]);
    let text = "name = \"dsa\"\n[dma]\n";
    client.open(uri, "toml", text);
    let end = json!({ "textDocument": { "uri": uri }, "position": position(text, text.len()) });
    let found = client.ask("textDocument/completion", end);
    let labels: Vec<&str> = found["items"]
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|i| i["label"].as_str())
        .collect();
    assert_eq!(labels, ["read = ", "write = "]);
}

#[test]
fn machines_and_programs_of_ours_are_clean() {
    let mut client = Client::new();
    for (name, text) in chipless::TARGETS
        .iter()
        .flat_map(|target| target.machines().iter())
    {
        let uri = format!("file:///{name}.toml");
        assert_eq!(
            client.open(&uri, "toml", text),
            Vec::<Value>::new(),
            "{name}"
        );
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/neuron");
    for program in std::fs::read_dir(folder).expect("fixtures") {
        let path = program.expect("an entry").path().join("program.asm");
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let uri = format!("file://{}", path.display());
        // The program is checked, not its syntax alone: one of them has a function that its instructions do not declare.
        let expected: &[&str] = if path.ends_with("instances_and_functions/program.asm") {
            &["neff-descriptor-function"]
        } else {
            &[]
        };
        let found = client.open(&uri, "chipless-asm", &text);
        assert_eq!(codes(&found), expected, "{uri}");
    }
}

#[test]
fn assembler_has_variables_queues_and_semaphores() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/broken/ring.asm"
    );
    let text = std::fs::read_to_string(path).expect("the fixture");
    let uri = format!("file://{path}");
    let mut client = Client::new();
    let found = client.open(&uri, "chipless-asm", &text);
    assert_eq!(codes(&found), ["deadlock"]);
    // At the lines of the text, although it is the packed program that is checked.
    let line = |range: &Value| -> Option<&str> {
        text.lines()
            .nth(usize::try_from(range["start"]["line"].as_u64()?).ok()?)
    };
    let related = found[0]["relatedInformation"].as_array().expect("places");
    let places = related.iter().map(|r| &r["location"]["range"]);
    let places: Vec<&str> = std::iter::once(&found[0]["range"])
        .chain(places)
        .filter_map(|range| line(range)?.split(' ').next())
        .collect();
    assert_eq!(places, ["COPY", "COPY", "TENSOR_TENSOR", "EVENT_SEMAPHORE"]);
    let uses = client.about("textDocument/references", &uri, &text, "bias float32", 0);
    assert_eq!(
        words(&text, &uses),
        ["4:bias", "13:bias", "15:bias", "21:bias"]
    );
    let waits = client.about("textDocument/references", &uri, &text, "$S[4]>=1 ", 3);
    assert_eq!(words(&text, &waits), ["40:4", "44:4"]);
    let rename = |mark: &str, skip: usize, name: &str| {
        let at = position(&text, text.find(mark).expect("the mark") + skip);
        json!({ "textDocument": { "uri": uri }, "position": at, "newName": name })
    };
    let renamed = edited(
        &text,
        &client.ask("textDocument/rename", rename("$S[4]>=1 ", 3, "40")),
        &uri,
    );
    assert!(
        renamed.contains("$S[40]++@complete") && renamed.contains("$S[40]>=1 $S[10]"),
        "{renamed}"
    );
    let taken = client.ask("textDocument/rename", rename("$S[4]>=1 ", 3, "6"));
    assert!(
        taken["error"]["message"]
            .as_str()
            .expect("a message")
            .contains("would not mean the same")
    );
    let renamed = edited(
        &text,
        &client.ask("textDocument/rename", rename("bias float32", 0, "offset")),
        &uri,
    );
    assert_eq!(renamed.matches("offset").count(), 4);
    let said = hover(&mut client, &uri, &text, "MATMUL");
    assert!(
        said.contains("engines: pe") && said.contains("Chipless: "),
        "{said}"
    );
    assert!(hover(&mut client, &uri, &text, "subgraph").contains("belongs to it"));
    let symbols = client.whole("textDocument/documentSymbol", &uri);
    let names: Vec<&str> = symbols
        .as_array()
        .expect("symbols")
        .iter()
        .filter_map(|s| s["name"].as_str())
        .collect();
    assert!(names.contains(&"sg00"), "{names:?}");
    let found = client.open(
        &uri,
        "chipless-asm",
        &text.replace("engine act", "engine cat"),
    );
    assert_eq!(codes(&found), ["asm-syntax"]);
    assert_eq!(found[0]["range"]["start"]["line"], 38);
}

#[test]
fn json_has_an_outline_broken_or_not() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/schedule/small.network.json"
    );
    let text = std::fs::read_to_string(path).expect("the fixture");
    let uri = format!("file://{path}");
    let mut client = Client::new();
    client.open(&uri, "json", &text);
    let whole = client.whole("textDocument/documentSymbol", &uri);
    assert!(whole.as_array().is_some_and(|symbols| !symbols.is_empty()));
    let half: String = text.chars().take(text.len() / 2).collect();
    client.open(&uri, "json", &half);
    assert_eq!(
        client.whole("textDocument/documentSymbol", &uri)[0]["name"],
        whole[0]["name"]
    );
    assert!(client.whole("textDocument/foldingRange", &uri).is_array());
}
