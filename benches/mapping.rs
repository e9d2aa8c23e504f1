//! Mapping dataflow graphs onto fabrics: milliseconds, latency against its bound, links. Pairs: those given on the command line
//! (`-- KERNEL.dfg FABRIC.json …`), or fixtures.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

use chipless_dsa::Document;
use chipless_dsa::adg::Adg;
use chipless_dsa_mapper::{Options, map};
use chipless_model::Limits;
use std::time::Instant;

fn main() {
    let fixture = |name: &str| format!("{}/../fixtures/dsa/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    if files.is_empty() {
        let pairs = [
            ("dot", "mesh5x5"),
            ("axpy", "ordered4x4"),
            ("deep", "shallow4x4"),
            ("halves", "narrow4x4"),
        ];
        files = pairs
            .iter()
            .flat_map(|(kernel, fabric)| {
                [
                    fixture(&format!("kernels/{kernel}.dfg")),
                    fixture(&format!("adg/{fabric}.json")),
                ]
            })
            .collect();
    }
    println!(
        "{:>9} {:>7} {:>8} {:>6} {:>6} {:>7}  graph on fabric",
        "map ms", "trials", "latency", "bound", "links", "missed"
    );
    for pair in files.chunks_exact(2) {
        let (text, json) = (
            std::fs::read(&pair[0]).expect("a graph"),
            std::fs::read(&pair[1]).expect("a fabric"),
        );
        let limits = Limits::default();
        let document = Document::read(&text, &limits);
        let (adg, _) = Adg::read(&json, &limits).expect("an architecture graph");
        let outcome = map(&document.graph, &adg, &Options::default(), &mut |_| {});
        let once = |_| {
            let started = Instant::now();
            std::hint::black_box(map(&document.graph, &adg, &Options::default(), &mut |_| {}));
            started.elapsed().as_secs_f64() * 1e3
        };
        let best = (0..5).map(once).fold(f64::INFINITY, f64::min);
        let (trials, latency, bound) = (outcome.trials, outcome.latency, outcome.latency_bound);
        println!(
            "{best:>9.2} {trials:>7} {latency:>8} {bound:>6} {:>6} {:>7}  {} on {}",
            outcome.links, outcome.mismatch, pair[0], pair[1]
        );
    }
}
