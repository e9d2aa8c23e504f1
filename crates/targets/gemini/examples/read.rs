//! Reads schedules and prints what they have, with the time that it took.
#![allow(clippy::print_stdout, reason = "an example")]

use chipless_gemini::{Network, Schedule, unzip};
use chipless_model::Limits;

fn main() {
    use chipless_gemini::schedule::*;
    println!(
        "tensor {} source {} workload {} tile {} pe {} wl {} ofmap {} ifmap {}",
        size_of::<Tensor>(),
        size_of::<Source>(),
        size_of::<Workload>(),
        size_of::<Tile>(),
        size_of::<PeTile>(),
        size_of::<WeightTensor>(),
        size_of::<Ofmap>(),
        size_of::<Ifmap>()
    );
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).unwrap();
        let bytes = unzip(&bytes, &Limits::default()).unwrap();
        if Network::recognize(&bytes) {
            println!("{path}: {:?}", Network::read(&bytes, &Limits::default()).map(|n| n.layers.len()).map_err(|e| e.to_string()));
            continue;
        }
        let text = std::str::from_utf8(&bytes).unwrap();
        let frontend = path.replace("schedule.json", "frontend.json").replace("schedule_relative_ofmap.json", "frontend.json");
        let frontend =
            if path.contains("broken/") { std::env::var("FRONTEND").unwrap_or(path.replace(".json", "_frontend.json")) } else { frontend };
        let network =
            if frontend == path { None } else { std::fs::read(frontend).ok().map(|b| Network::read(&b, &Limits::default()).unwrap()) };
        let start = std::time::Instant::now();
        match Schedule::read(text) {
            Err(error) => println!("{path}: {error}"),
            Ok(s) => {
                println!(
                    "{path}: {} {}x{} cores {} workloads {} in {} out {} unknown {:?} {:?} {:.3} GB/s",
                    s.dialect.name(),
                    s.mesh[0],
                    s.mesh[1],
                    s.cores.len(),
                    s.workloads().count(),
                    s.dram_in.len(),
                    s.dram_out.len(),
                    s.unknown.iter().take(3).collect::<Vec<_>>(),
                    start.elapsed(),
                    bytes.len() as f64 / start.elapsed().as_secs_f64() / 1e9
                );
                let start = std::time::Instant::now();
                let found =
                    chipless_gemini::lint(&s, text, chipless_gemini::Given { network: network.as_ref(), batch: None }, &Limits::default());
                println!("  {} findings, network {}, {:?}", found.len(), network.is_some(), start.elapsed());
                let mut codes = std::collections::BTreeMap::new();
                for f in found {
                    let n: &mut usize = codes.entry(f.rule.code).or_default();
                    *n += 1;
                    if *n <= 2 {
                        println!("    {} {f}", f.rule.severity.name());
                    }
                }
                println!("    {codes:?}");
                let same = s.dialect == chipless_gemini::Dialect::Spec;
                let converted = s.clone().convert(network.as_ref());
                let text = converted.write();
                match Schedule::read(&text) {
                    Err(e) => println!("  converted: {e}"),
                    Ok(again) => {
                        println!("  again {} same {}", again.dialect.name(), !same || again.write() == text);
                        let found = chipless_gemini::lint(
                            &again,
                            &text,
                            chipless_gemini::Given { network: network.as_ref(), batch: None },
                            &Limits::default(),
                        );
                        let mut codes = std::collections::BTreeMap::new();
                        for f in found {
                            let n: &mut usize = codes.entry(f.rule.code).or_default();
                            *n += 1;
                            if *n <= 1 {
                                println!("    C {} {f}", f.rule.severity.name());
                            }
                        }
                        println!("    C {codes:?}");
                    }
                }
            }
        }
    }
}
