//! Firmware without the chip: what is generated means the same whatever the names are.

use chipless_spu::iospec::{Document, RuleSet, host};
use chipless_spu::yaml::{self, Node};
use proptest::prelude::*;
use std::path::Path;

fn generated(names: &[String]) -> Vec<(&'static str, String)> {
    let quoted = |name: &String| yaml::write(&Node::from(&**name)).trim_end().to_owned();
    let vector = |name: &String, side: &str| {
        format!(
            "  {}: {{type: {side}, varname: {}, length: 3, precision: 16, padded_length: null}}\n",
            quoted(name),
            quoted(name)
        )
    };
    let (outputs, inputs) = names.split_at(1);
    let list = |names: &[String]| names.iter().map(quoted).collect::<Vec<_>>().join(", ");
    let text = format!(
        "inputs:\n{}outputs:\n{}simple_sequences:\n  s: {{type: simple_sequence, inputs: [{}], outputs: [{}]}}\n",
        inputs
            .iter()
            .map(|n| vector(n, "input"))
            .collect::<String>(),
        outputs
            .iter()
            .map(|n| vector(n, "output"))
            .collect::<String>(),
        list(inputs),
        list(outputs)
    );
    let document = Document::read(&text, RuleSet::Spec).unwrap_or_else(|f| panic!("{f:?}: {text}"));
    host(&document, Path::new("iospec.yaml"), None).unwrap_or_else(|v| panic!("{v}"))
}

/// Source without comments and without the insides of strings: what the names of a contract must not change.
fn bare(source: &str) -> String {
    let (mut out, mut rest) = (String::new(), source);
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("/*") {
            let end = rest.find("*/").expect("a comment that ends");
            assert!(
                !rest[2..end].contains("/*"),
                "a comment in a comment: {}",
                &rest[..end]
            );
            rest = &rest[end + 2..];
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            out.push_str("\"\"");
            rest = &rest[1 + end.expect("a string that ends") + 1..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

proptest! {
    #![proptest_config(chipless_rounds::cases(200))]

    #[test]
    fn names_never_become_c(names in prop::collection::btree_set(".{1,12}|int|for|x[.%-]1|a\\*/b|/\\*|\\?\\?/|[\"\\\\]{1,3}", 2..6)) {
        let names: Vec<String> = names.into_iter().filter(|n| n != "s").collect();
        prop_assume!(names.len() >= 2);
        let plain: Vec<String> = (0..names.len()).map(|n| format!("v{n}")).collect();
        for ((file, source), (_, expected)) in generated(&names).iter().zip(generated(&plain)) {
            prop_assert!(source.is_ascii(), "{file}");
            prop_assert_eq!(bare(source), bare(&expected), "{}", file);
        }
    }
}

#[test]
fn the_library_says_whose_it_is_and_names_the_public_status() {
    for (file, source) in generated(&["y".to_owned(), "x".to_owned()]) {
        if matches!(file, "spu.h" | "spu_mock.c") {
            assert!(source.contains("not the vendor"), "{file}");
        }
        if file == "spu.h" {
            assert!(source.contains("kSpuSequenceError"));
        }
    }
}
