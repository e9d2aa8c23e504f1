//! `check`, `explain` and the verdict of `run`: formats, policies, pages.

use crate::support::{root, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const FIXTURE: &str = "fixtures/npu/chain_tiles4/program.blob";
/// Reads padding that nothing has written: a warning and nothing else.
const WARNED: &str = "fixtures/neuron/instances_and_functions/program.neff";

/// The fixture with a wrong producer count, and with its last bytes cut off.
fn broken(directory: &Path) -> [String; 2] {
    let bytes = std::fs::read(root().join(FIXTURE)).unwrap();
    let (_, out, _) = run(&["info", "--raw", FIXTURE]);
    assert!(!out.is_empty());
    let mut wrong = bytes.clone();
    let at = producer_count(&bytes);
    wrong[at] += 1;
    let paths = [directory.join("count é.blob"), directory.join("cut.blob")];
    std::fs::write(&paths[0], wrong).unwrap();
    std::fs::write(&paths[1], &bytes[..bytes.len() - 9]).unwrap();
    paths.map(|path| path.display().to_string())
}

/// Where the producer count of barrier 1 stands: the place of a finding about it, found by trying.
fn producer_count(bytes: &[u8]) -> usize {
    // The records of 24 bytes: next, producers, consumers, physical barrier.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("try.blob");
    let is_record = |at: usize| {
        bytes[at..at + 4] == [0xff; 4]
            && bytes[at + 5] == 0
            && (1..64).contains(&bytes[at + 4])
            && bytes[at + 7] == 0
    };
    for at in (0..bytes.len() - 24).step_by(8).filter(|at| is_record(*at)) {
        let mut changed = bytes.to_vec();
        changed[at + 4] += 1;
        std::fs::write(&path, &changed).unwrap();
        let (_, out, _) = run(&["check", "--format", "json", &path.display().to_string()]);
        if out.contains("barrier-producer-count") {
            return at + 4;
        }
    }
    panic!("no barrier found");
}

#[test]
fn findings_in_json_have_lines_for_editors() {
    let directory = tempfile::tempdir().unwrap();
    let good =
        std::fs::read_to_string(root().join("fixtures/gemini/four_cores/schedule.json")).unwrap();
    let schedule: Value = serde_json::from_str(&good).unwrap();
    let pretty = serde_json::to_string_pretty(&schedule).unwrap();
    let path = directory.path().join("schedule.json");
    // The same on a line of its own, and far out on the only line.
    for text in [
        pretty.replacen("\"size\": ", "\"size\": 1", 1),
        good.replacen("\"size\":", "\"size\":1", 1),
    ] {
        std::fs::write(&path, &text).unwrap();
        let path = path.display().to_string();
        let (code, out, _) = run(&["check", "--format", "json", &path]);
        let report: Value = serde_json::from_str(&out).unwrap();
        let findings = report["files"][0]["findings"].as_array().unwrap();
        assert!(code == 1 && !findings.is_empty());
        for location in findings.iter().map(|finding| &finding["location"]) {
            let offset = location["offset"].as_u64().expect("an offset") as usize;
            let line = text[..offset].matches('\n').count() as u64 + 1;
            assert_eq!(location["line"].as_u64(), Some(line), "{location}");
            assert!(
                location["column"].is_u64() && location["item"].as_str().unwrap().starts_with('/'),
                "{location}"
            );
        }
        let (_, out, _) = run(&["check", "--format", "sarif", &path]);
        let log: Value = serde_json::from_str(&out).unwrap();
        let results = log["runs"][0]["results"].as_array().unwrap();
        for result in results {
            let region = &result["locations"][0]["physicalLocation"]["region"];
            assert!(
                region["startLine"].is_u64() && region["startColumn"].is_u64(),
                "{result}"
            );
        }
        let (_, out, _) = run(&["check", &path]);
        assert!(
            out.contains("schedule.json:") && !out.contains("| 000"),
            "no hex dump of a text: {out}"
        );
    }
}

fn text(value: &Value) -> &str {
    value
        .as_str()
        .unwrap_or_else(|| panic!("expected a text, found {value}"))
}

/// What SARIF 2.1.0 demands of a location.
fn check_location(location: &Value, artifacts: &[Value]) {
    let physical = &location["physicalLocation"];
    let artifact = &physical["artifactLocation"];
    let index = artifact["index"].as_u64().unwrap() as usize;
    assert_eq!(artifact["uri"], artifacts[index]["location"]["uri"]);
    let uri = text(&artifact["uri"]);
    assert!(
        uri.bytes().all(|b| b.is_ascii_graphic())
            && !uri.contains(['<', '>', '"', '\\', '^', '`', '{', '|', '}']),
        "{uri}"
    );
    if let Some(region) = physical.get("region") {
        let length = artifacts[index]["length"].as_u64().unwrap();
        let at = |name: &str| region[name].as_u64();
        match (at("byteOffset"), at("startLine")) {
            (Some(offset), None) => {
                assert!(offset <= length && at("byteLength").is_some(), "{region}");
            }
            (None, Some(line)) => assert!(
                line >= 1 && at("startColumn") >= Some(1) && at("endLine") >= Some(line),
                "{region}"
            ),
            _ => panic!("neither bytes nor lines: {region}"),
        }
    }
    for logical in location
        .get("logicalLocations")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        assert!(
            !text(&logical["name"]).is_empty() && !text(&logical["fullyQualifiedName"]).is_empty()
        );
    }
}

#[test]
fn sarif_is_what_the_standard_says() {
    let directory = tempfile::tempdir().unwrap();
    let [count, cut] = broken(directory.path());
    let (code, out, err) = run(&[
        "check",
        "--format",
        "sarif",
        FIXTURE,
        WARNED,
        &count,
        &cut,
        "no such file",
    ]);
    assert_eq!((code, err.as_str()), (2, ""));
    let log: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(log["version"], "2.1.0");
    assert!(text(&log["$schema"]).contains("sarif") && text(&log["$schema"]).contains("2.1.0"));
    let [run] = &log["runs"].as_array().unwrap()[..] else {
        panic!("expected one run")
    };
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "chipless");
    let rules = driver["rules"].as_array().unwrap();
    let ids: BTreeSet<&str> = rules.iter().map(|rule| text(&rule["id"])).collect();
    assert_eq!(ids.len(), rules.len(), "each rule once");
    for rule in rules {
        for part in ["shortDescription", "fullDescription", "help"] {
            assert!(!text(&rule[part]["text"]).is_empty(), "{part} of {rule}");
        }
        assert!(
            ["error", "warning", "note"].contains(&text(&rule["defaultConfiguration"]["level"]))
        );
    }
    let artifacts = run["artifacts"].as_array().unwrap();
    let uris: Vec<&str> = artifacts
        .iter()
        .map(|a| text(&a["location"]["uri"]))
        .collect();
    // The five files, and the member of the NEFF that a warning is about.
    assert_eq!(uris.len(), 6, "{uris:?}");
    let whole = |uri: &&&str| uri.starts_with("file:///") && uri.ends_with("count%20%C3%A9.blob");
    assert_eq!(uris.iter().filter(whole).count(), 1, "{uris:?}");
    let results = run["results"].as_array().unwrap();
    for result in results {
        let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(result["ruleId"], rule["id"]);
        assert!(!text(&result["message"]["text"]).is_empty());
        check_location(&result["locations"][0], artifacts);
        let related: Vec<&Value> = result
            .get("relatedLocations")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .collect();
        for (index, location) in related.iter().enumerate() {
            assert_eq!(location["id"], index + 1);
            assert!(!text(&location["message"]["text"]).is_empty());
            check_location(location, artifacts);
        }
    }
    let found = |code: &str| {
        results
            .iter()
            .find(|r| r["ruleId"] == code)
            .unwrap_or_else(|| panic!("{code}: {results:#?}"))
    };
    assert_eq!(found("barrier-producer-count")["level"], "error");
    assert!(
        found("barrier-producer-count")["locations"][0]["physicalLocation"]["region"]["byteOffset"]
            .is_u64()
    );
    assert_eq!(found("neff-descriptor-function")["level"], "warning");
    assert!(
        found("file-unreadable")["locations"][0]["physicalLocation"]["region"]["byteOffset"] == 0
    );
}

#[test]
fn sarif_names_the_members_of_a_packed_file() {
    let (code, out, err) = run(&[
        "check",
        "--format",
        "sarif",
        "fixtures/broken/early_read.neff",
    ]);
    assert_eq!((code, err.as_str()), (1, ""));
    let log: Value = serde_json::from_str(&out).unwrap();
    let run = &log["runs"][0];
    let artifacts = run["artifacts"].as_array().unwrap();
    assert!(artifacts[0].get("parentIndex").is_none());
    assert!(
        artifacts.len() > 1
            && artifacts[1..]
                .iter()
                .all(|artifact| artifact["parentIndex"] == 0)
    );
    let results = run["results"].as_array().unwrap();
    let early = |result: &&Value| result["ruleId"] == "read-before-write";
    let result = results.iter().find(early).unwrap();
    let place = &result["locations"][0];
    assert!(
        place["physicalLocation"]["artifactLocation"]["index"] == 0
            && place["physicalLocation"]["region"]["byteOffset"] == 0
    );
    assert_eq!(
        place["logicalLocations"][0]["fullyQualifiedName"],
        "sg00/DVE.bin/sg00.dve[1]"
    );
    let related = result["relatedLocations"].as_array().unwrap();
    for location in related {
        check_location(location, artifacts);
    }
    let here = related
        .iter()
        .find(|location| location["message"]["text"] == "here")
        .unwrap();
    assert_eq!(
        here["physicalLocation"]["artifactLocation"]["uri"],
        "sg00/DVE.bin"
    );
    assert_eq!(here["physicalLocation"]["region"]["byteOffset"], 64);
}

#[test]
fn findings_are_allowed_and_denied_by_code() {
    let (code, out, _) = run(&["check", WARNED]);
    assert!(
        code == 0
            && out.contains("warning[neff-descriptor-function]")
            && out.ends_with("1 warning\n"),
        "{out}"
    );
    let (code, out, _) = run(&["check", WARNED, "--deny", "neff-descriptor-function"]);
    assert!(
        code == 1 && out.contains("error[neff-descriptor-function]") && out.ends_with("1 error\n"),
        "{out}"
    );
    let (code, out, _) = run(&[
        "check",
        WARNED,
        "--allow",
        "neff-descriptor-function",
        "--allow",
        "deadlock",
    ]);
    assert!(
        code == 0 && out.ends_with("clean\n1 finding left out\n"),
        "{out}"
    );
    let (code, out, _) = run(&["run", WARNED, "--deny", "neff-descriptor-function"]);
    assert_eq!((code, out.as_str()), (1, ""));
    let (code, _, err) = run(&[
        "run",
        WARNED,
        "--allow",
        "neff-descriptor-function",
        "--timing-only",
    ]);
    assert_eq!((code, err.as_str()), (0, ""));
    let (code, _, err) = run(&["check", WARNED, "--deny", "neff-descriptor-functon"]);
    assert!(
        code == 2 && err.contains("did you mean \"neff-descriptor-function\"?"),
        "{err}"
    );
    let (code, _, err) = run(&["run", WARNED, "--allow", "deadlock", "--deny", "deadlock"]);
    assert!(
        code == 2 && err.contains("deadlock is denied as well"),
        "{err}"
    );
}

#[test]
fn errors_that_are_allowed_do_not_stop_a_run() {
    let directory = tempfile::tempdir().unwrap();
    let [count, _] = broken(directory.path());
    let (code, _, err) = run(&["run", &count, "--timing-only"]);
    assert!(code == 1 && !err.is_empty());
    let (code, out, _) = run(&[
        "check",
        &count,
        "--allow",
        "barrier-producer-count",
        "--format",
        "json",
    ]);
    let report: Value = serde_json::from_str(&out).unwrap();
    let codes: Vec<&str> = report["files"][0]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| text(&f["code"]))
        .collect();
    assert!(!codes.contains(&"barrier-producer-count"), "{codes:?}");
    assert_eq!(code, i32::from(!codes.is_empty()));
}

#[test]
fn every_order_gives_the_same_outputs() {
    let directory = tempfile::tempdir().unwrap();
    let output = |order: &str| {
        let path = directory.path().join(order.replace(':', "_"));
        let (code, _, err) = run(&[
            "run",
            FIXTURE,
            "--order",
            order,
            "--output-dir",
            &path.display().to_string(),
        ]);
        assert_eq!((code, err.as_str()), (0, ""), "{order}");
        let mut files: Vec<_> = std::fs::read_dir(path)
            .unwrap()
            .map(|e| e.unwrap().path())
            .collect();
        files.sort();
        files
            .into_iter()
            .map(|file| std::fs::read(file).unwrap())
            .collect::<Vec<_>>()
    };
    let timed = output("timed");
    assert!(!timed.is_empty() && output("random:1") == timed && output("random:2") == timed);
    let (code, out, _) = run(&["run", FIXTURE, "--order", "random:3", "--json"]);
    assert!(code == 0 && out.contains("the times mean nothing"), "{out}");
    for judging in [&["--budget", "latency=1ms"][..], &["--rank"]] {
        let given = ["run", FIXTURE, "--order", "random:3"];
        let (code, _, err) = run(&[&given[..], judging].concat());
        assert!(
            code == 2 && err.contains("expected the timed order"),
            "{err}"
        );
    }
    let (code, _, err) = run(&["run", FIXTURE, "--order", "random"]);
    assert!(code == 2 && err.contains("random:"), "{err}");
}

/// The documentation shows findings as they are printed.
#[test]
fn the_documentation_shows_what_is_printed() {
    let page = std::fs::read_to_string(root().join("docs/verifier.md")).unwrap();
    for name in ["early_read.neff", "ring.neff", "barrier_count.blob"] {
        let (code, out, err) = run(&["check", &format!("fixtures/broken/{name}")]);
        assert_eq!((code, err.as_str()), (1, ""), "{name}");
        assert!(
            page.contains(&out),
            "docs/verifier.md should show of {name}:\n{out}"
        );
    }
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, out, _) = run(&["check", "fixtures/broken/ring.neff"]);
    assert!(readme.contains(&out), "README.md should show:\n{out}");
}

/// `cargo xtask reference` writes the page.
#[test]
fn the_page_of_commands_is_up_to_date() {
    let (code, page, _) = run(&["completions", "--markdown"]);
    let written = std::fs::read_to_string(root().join("docs/commands.md")).unwrap_or_default();
    assert!(
        code == 0 && page == written,
        "docs/commands.md is stale: cargo xtask reference"
    );
    assert!(page.contains("\n## chipless run\n") && page.contains("\n### chipless adg new\n"));
}

/// What is printed has the form of its schema: `python/tests/test_schemas.py`.
#[test]
fn the_page_of_json_is_up_to_date() {
    let (code, page, _) = run(&["schema", "--markdown"]);
    let written =
        std::fs::read_to_string(root().join("docs/json-reference.md")).unwrap_or_default();
    assert!(
        code == 0 && page == written,
        "docs/json-reference.md is stale: cargo xtask reference"
    );
}

#[test]
fn the_page_of_findings_is_up_to_date() {
    let (code, page, _) = run(&["explain", "--markdown"]);
    let written = std::fs::read_to_string(root().join("docs/findings.md")).unwrap_or_default();
    assert!(
        code == 0 && page == written,
        "docs/findings.md is stale: cargo xtask reference"
    );
    let mut codes: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let all = codes.len();
    codes.sort_unstable();
    codes.dedup();
    assert!(all > 100 && codes.len() == all, "every code once");
}
