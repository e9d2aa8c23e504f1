//! Explorations through the public door: better than the start, within the budget, the same for any number of threads.

#![allow(clippy::unwrap_used, reason = "tests")]

use chipless_dsa::Document;
use chipless_dsa::adg::Adg;
use chipless_dsa::adg::mesh::{Shape, mesh};
use chipless_dsa_explore::{Budget, Explorer, Freeze, Kernel, Options, Variant, parts, resources};
use chipless_dsa_mapper::judge::judge;
use chipless_model::Limits;

const AXPY: &str = "Array: X 65536 dma\nArray: Y 65536 dma\n----\nInput: k\nInput: x source=X\nInput: y source=Y\n\
    p = Mul_I64(k, x)\nz = Add_I64(p, y)\nOutput: z destination=Y\n";
const SUM: &str = "Array: A 4096 dma\nArray: B 4096 dma\n----\nInput: a source=A\nInput: b source=B\n\
    s = Add_I64(a, b)\nOutput: s destination=A\n";

fn kernel(name: &str, text: &str) -> Kernel {
    let document = Document::read(text.as_bytes(), &Limits::default());
    assert!(document.is_complete(), "{:?}", document.findings);
    Kernel {
        name: name.to_owned(),
        weight: 1.0,
        variants: vec![Variant {
            name: format!("{name}.dfg"),
            graph: document.graph,
        }],
    }
}

fn start() -> Adg {
    let shape = Shape {
        columns: 3,
        rows: 3,
        operations: vec!["Add_I64".to_owned(), "Mul_I64".to_owned()],
        delay_depth: 8,
        inputs: 4,
        outputs: 2,
        stated: [0, 0],
        lanes: 2,
        slots: 1,
    };
    mesh(&shape).unwrap()
}

fn options(jobs: usize) -> Options {
    Options {
        budget: Budget::parse("vu9p").unwrap(),
        freeze: Freeze::default(),
        seed: 3,
        jobs,
        stop: &chipless_dsa_mapper::NEVER,
    }
}

#[test]
fn what_is_found_is_better_legal_and_within_the_budget() {
    let kernels = [kernel("axpy", AXPY), kernel("sum", SUM)];
    let mut explorer = Explorer::new(&kernels, &start(), options(1)).unwrap();
    let mut best = explorer.start().objective;
    for _ in 0..30 {
        for entry in explorer.round() {
            assert!(entry.best >= best);
            best = entry.best;
        }
    }
    assert!(best > 1.2 * explorer.start().objective, "{best}");
    let (adg, mappings) = explorer.result();
    let read = Adg::read(adg.to_json().to_string().as_bytes(), &Limits::default());
    let (adg, findings) = read.unwrap();
    assert!(
        findings.iter().all(|finding| !finding.is_error()),
        "{findings:?}"
    );
    for (kernel, mapping) in kernels.iter().zip(&mappings) {
        let verdict = judge(&kernel.variants[0].graph, &adg, mapping);
        assert_eq!((verdict.faults, verdict.mismatch), (Vec::new(), 0));
    }
    let usage = parts(&adg, adg.system.unwrap()).total();
    // Both sum up the same figures, in another order.
    for (one, other) in usage.0.iter().zip(&explorer.best().usage.0) {
        assert!(
            (one - other).abs() <= 1e-12 * one.abs(),
            "{one} is not {other}"
        );
    }
    let vu9p = Budget::parse("vu9p").unwrap();
    assert!(
        vu9p.fields
            .iter()
            .all(|(field, most)| usage.0[*field] <= *most)
    );
}

#[test]
fn threads_change_nothing_and_a_later_run_goes_on() {
    let kernels = [kernel("axpy", AXPY), kernel("sum", SUM)];
    let run = |jobs: usize| {
        let mut explorer = Explorer::new(&kernels, &start(), options(jobs)).unwrap();
        let log: Vec<_> = (0..12).flat_map(|_| explorer.round()).collect();
        (log, explorer.result().0.to_json(), explorer.best().clone())
    };
    let (one, two) = (run(1), run(2));
    assert_eq!(one.0, two.0);
    assert_eq!(one.1, two.1);
    let mut later = Explorer::new(&kernels, &start(), options(1)).unwrap();
    let mut first = Explorer::new(&kernels, &start(), options(1)).unwrap();
    for _ in 0..12 {
        first.round();
    }
    let (adg, mappings) = first.result();
    let mappings: Vec<_> = mappings.into_iter().map(|mapping| (0, mapping)).collect();
    later.resume(&adg, &mappings, first.moves());
    assert!((later.best().objective - first.best().objective).abs() < 1e-9);
    later.round();
    assert!(later.moves() > first.moves() && later.best().objective >= first.best().objective);
}

#[test]
fn frozen_kinds_stay_as_they_are() {
    let kernels = [kernel("axpy", AXPY)];
    let mut freeze = Freeze::default();
    for kind in [
        "elements", "switches", "links", "ports", "memories", "depths", "widths",
    ] {
        assert!(freeze.add(kind));
    }
    assert!(!freeze.add("colours"));
    // Products bind here: an element that does not multiply is room for another core.
    let options = Options {
        freeze,
        budget: Budget::parse("dsp=200").unwrap(),
        ..options(1)
    };
    let mut explorer = Explorer::new(&kernels, &start(), options).unwrap();
    for _ in 0..6 {
        explorer.round();
    }
    let (adg, _) = explorer.result();
    assert_eq!(
        (adg.counts(), adg.links.len()),
        (start().counts(), start().links.len())
    );
    let known: usize = adg
        .elements
        .iter()
        .filter_map(|e| e.processing())
        .map(|u| u.operations.len())
        .sum();
    assert_eq!(known, 2);
}

#[test]
fn budgets_say_what_they_are() {
    assert_eq!(Budget::parse("vu9p").unwrap().fields.len(), 8);
    let budget = Budget::parse("lut=1000, mm2=1.5").unwrap();
    assert_eq!((budget.fields, budget.area), (vec![(0, 1000.0)], Some(1.5)));
    for wrong in ["", "lut", "lut=-1", "gold=3", "vu9q"] {
        assert!(Budget::parse(wrong).is_err(), "{wrong}");
    }
    let tiny = Options {
        budget: Budget::parse("lut=10").unwrap(),
        ..options(1)
    };
    assert!(Explorer::new(&[kernel("sum", SUM)], &start(), tiny).is_err());
}

#[test]
fn a_fabric_takes_what_its_parts_take() {
    let adg = start();
    let parts = parts(&adg, resources::ALONE);
    let total = parts.total();
    // Nine products of 16 slices each; the bus is 8 banks of 8 bytes.
    assert!((total.get("dsp").unwrap() - 144.0).abs() < 1e-9);
    assert!((parts.0[10].1.get("total_lut").unwrap() - 10024.0 * 64.0 / 512.0).abs() < 1e-6);
    assert!(parts.0[0].1.get("total_lut").unwrap() > 9.0 * 300.0);
}
