//! Graphs and fabrics through the public door: texts, canonical form, findings, hostile files, what graphs compute.

mod adg;
mod canonical;
mod evaluate;
mod findings;
mod graphs;
mod hostile;
mod machine;
mod programs;
mod rules;

use chipless_dsa::Document;
use chipless_model::Limits;
use std::path::{Path, PathBuf};

/// Reads a text without anything unusual about it.
fn read(text: &str) -> Document<'_> {
    Document::read(text.as_bytes(), &Limits::default())
}

/// Codes of everything that is found in a text, in the order of the file.
fn codes(text: &str) -> Vec<&'static str> {
    chipless_dsa::lint(&read(text), &Limits::default())
        .iter()
        .map(|finding| finding.rule.code)
        .collect()
}

/// Files of a folder of fixtures, each with its bytes.
fn fixtures(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../fixtures/dsa")
        .join(folder);
    let files = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "dfg"));
    let mut files: Vec<(PathBuf, Vec<u8>)> = files
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} holds no fixtures", folder.display());
    files
}
