//! Mapping, judging, and the files that mappings are written to, on fabrics and kernels of our own.

use chipless_dsa::Document;
use chipless_dsa::adg::{Adg, ElementId};
use chipless_dsa::graph::{EdgeId, Graph, NodeId, NodeKind};
use chipless_dsa_mapper::judge::judge;
use chipless_dsa_mapper::performance::{Model, estimate};
use chipless_dsa_mapper::pictures::{self, Mapped};
use chipless_dsa_mapper::{self as mapping, Location, Mapping, Objective, Options, Outcome, bits};
use chipless_model::Limits;
use chipless_rounds::rounds;
use std::sync::OnceLock;
use std::time::Duration;

fn fixture(path: &str) -> Vec<u8> {
    let path = format!("{}/../../fixtures/dsa/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn fabric(name: &str) -> Adg {
    let (adg, findings) =
        Adg::read(&fixture(&format!("adg/{name}.json")), &Limits::default()).unwrap();
    assert!(
        findings.iter().all(|finding| !finding.is_error()),
        "{findings:?}"
    );
    adg
}

fn kernel(name: &str) -> Graph {
    parse(&fixture(&format!("kernels/{name}.dfg")))
}

fn parse(text: &[u8]) -> Graph {
    let document = Document::read(text, &Limits::default());
    assert!(document.is_complete(), "{:?}", document.findings);
    document.graph
}

fn options(seed: u64) -> Options {
    Options {
        seed,
        time_limit: Duration::from_mins(2),
        ..Options::default()
    }
}

fn map(graph: &Graph, adg: &Adg) -> Outcome {
    mapping::map(graph, adg, &options(1), &mut |_| {})
}

/// Every pair that has a mapping.
const MAPPED: &[(&str, &str)] = &[
    ("add", "mesh2x2"),
    ("add", "mesh3x3"),
    ("add", "arrays"),
    ("add", "shallow4x4"),
    ("axpy", "mesh5x5"),
    ("axpy", "ordered4x4"),
    ("dot", "mesh5x5"),
    ("dot", "ordered4x4"),
    ("deep", "mesh5x5"),
    ("deep", "shallow4x4"),
    ("halves", "narrow4x4"),
    ("turns", "shared3x3"),
    ("divide", "two-outputs3x3"),
    ("units", "mesh3x3"),
];

/// What the mapper makes of each. Several tests begin with it, and it takes seconds.
fn outcomes() -> &'static [Outcome] {
    static OUTCOMES: OnceLock<Vec<Outcome>> = OnceLock::new();
    OUTCOMES.get_or_init(|| {
        let pairs = MAPPED.iter();
        pairs
            .map(|(name, on)| map(&kernel(name), &fabric(on)))
            .collect()
    })
}

#[test]
fn what_the_mapper_makes_the_judge_accepts() {
    for ((name, on), outcome) in MAPPED.iter().zip(outcomes()) {
        let (graph, adg) = (kernel(name), fabric(on));
        let mapping = outcome
            .mapping
            .as_ref()
            .unwrap_or_else(|| panic!("{name} on {on}: {:?}", outcome.reason));
        let verdict = judge(&graph, &adg, mapping);
        assert!(verdict.is_legal(), "{name} on {on}: {:?}", verdict.faults);
        assert_eq!(
            (verdict.latency, verdict.mismatch),
            (outcome.latency, 0),
            "{name} on {on}"
        );
        assert!(
            outcome.latency >= outcome.latency_bound,
            "{name} on {on}: {} below {}",
            outcome.latency,
            outcome.latency_bound
        );
        assert_eq!(
            (verdict.overprovision, outcome.initiation_interval),
            (0, 1),
            "{name} on {on}"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_mapping_for_any_number_of_threads() {
    for (name, on) in [("dot", "mesh5x5"), ("axpy", "ordered4x4")] {
        let (graph, adg) = (kernel(name), fabric(on));
        let one = map(&graph, &adg).mapping;
        assert_eq!(one, map(&graph, &adg).mapping);
        for jobs in [2, 3] {
            let several = mapping::map(&graph, &adg, &Options { jobs, ..options(1) }, &mut |_| {});
            assert_eq!(one, several.mapping, "{name} on {on} with {jobs} jobs");
        }
    }
}

#[test]
fn latency_and_links_are_what_one_element_needs() {
    let (graph, adg) = (kernel("add"), fabric("mesh3x3"));
    let outcome = map(&graph, &adg);
    // Port, switch, element: arrival after one cycle; one cycle of addition; element, switch, port.
    assert_eq!((outcome.latency, outcome.latency_bound), (3, 3));
    let few = mapping::map(
        &graph,
        &adg,
        &Options {
            objective: Objective::Links,
            ..options(1)
        },
        &mut |_| {},
    );
    assert_eq!(few.links, 6);
}

#[test]
fn the_impossible_is_refused_with_its_reason() {
    for (name, on, reason) in [
        (
            "divide",
            "mesh3x3",
            "needs 2 output links on one element; no element has them",
        ),
        (
            "wide",
            "mesh5x5",
            "has 8 lanes of 64 bits; the widest input port has links for 4 such lanes",
        ),
        (
            "turns",
            "mesh3x3",
            "needs an element that instructions share in time; no element is shared",
        ),
        (
            "halves",
            "mesh5x5",
            "bits 16 to 31 of a; the fabric routes 64 bits at once",
        ),
        ("deep", "mesh2x2", "5 instructions"),
        (
            "dot",
            "shallow4x4",
            "the stated port p_ needs a stated input port; the fabric has none",
        ),
        (
            "axpy",
            "mesh2x2",
            "the graph has 3 input ports, the fabric 2",
        ),
    ] {
        let outcome = map(&kernel(name), &fabric(on));
        let said = outcome.reason.unwrap_or_default();
        assert!(
            outcome.mapping.is_none() && outcome.proved && said.contains(reason),
            "{name} on {on}: {said}"
        );
    }
    let text = b"Array: a 1000000 spm\n----\nInput64: x source=a\nInput64: y\nz = Add64(x, y)\nOutput64: z\n";
    let said = map(&parse(text), &fabric("mesh3x3"))
        .reason
        .unwrap_or_default();
    assert!(
        said.contains("1000000 bytes of a ScratchpadMemory; the largest has 65536"),
        "{said}"
    );
    let text = b"Input64: x\nInput64: y\nz = FAdd64(x, y)\nOutput64: z\n";
    let said = map(&parse(text), &fabric("mesh3x3"))
        .reason
        .unwrap_or_default();
    assert!(
        said.contains("needs an element that knows FAdd64; no element does"),
        "{said}"
    );
}

/// Mappings of several kernels, each with the judge's consent.
fn good() -> impl Iterator<Item = (String, Graph, Adg, Mapping)> {
    MAPPED
        .iter()
        .zip(outcomes())
        .filter(|((name, _), _)| *name != "turns")
        .map(|((name, on), outcome)| {
            let mapping = outcome.mapping.clone().unwrap();
            (format!("{name} on {on}"), kernel(name), fabric(on), mapping)
        })
}

fn is_spatial(graph: &Graph, edge: EdgeId) -> bool {
    let array = |node: NodeId| matches!(graph.nodes[node].kind, NodeKind::Array(_));
    !array(graph.edges[edge].source) && !array(graph.edges[edge].sink)
}

#[test]
fn every_mutant_of_a_good_mapping_is_rejected() {
    let mut mutants = 0;
    let mut rejected = |what: &str, label: &str, graph: &Graph, adg: &Adg, mapping: &Mapping| {
        mutants += 1;
        assert!(
            !judge(graph, adg, mapping).is_legal(),
            "{label}: {what} was accepted"
        );
    };
    for (label, graph, adg, mapping) in good() {
        for node in graph.nodes.indices() {
            let Some(location) = mapping.nodes[node] else {
                continue;
            };
            // Moved to each other element.
            for element in adg
                .elements
                .indices()
                .filter(|element| *element != location.element)
            {
                let mut moved = mapping.clone();
                moved.nodes[node] = Some(Location {
                    element,
                    ..location
                });
                rejected("a moved vertex", &label, &graph, &adg, &moved);
            }
            let mut nowhere = mapping.clone();
            nowhere.nodes[node] = None;
            rejected("a vertex without a place", &label, &graph, &adg, &nowhere);
            if matches!(graph.nodes[node].kind, NodeKind::Instruction(_)) {
                let mut slot = mapping.clone();
                slot.nodes[node] = Some(Location {
                    slot: location.slot + 1,
                    ..location
                });
                rejected("a wrong slot", &label, &graph, &adg, &slot);
            }
        }
        for edge in graph.edges.indices() {
            let links = &mapping.edges[edge].links;
            for (index, hop) in links.iter().enumerate() {
                let mut dropped = mapping.clone();
                dropped.edges[edge].links.remove(index);
                rejected("a dropped link", &label, &graph, &adg, &dropped);
                let mut doubled = mapping.clone();
                doubled.edges[edge].links.insert(index, *hop);
                rejected("a doubled link", &label, &graph, &adg, &doubled);
                if is_spatial(&graph, edge) {
                    let mut shifted = mapping.clone();
                    shifted.edges[edge].links[index].bit += 8;
                    rejected("a link from a wrong bit on", &label, &graph, &adg, &shifted);
                }
            }
            if is_spatial(&graph, edge) {
                // What waits alone may wait longer as long as the buffers hold it; what others wait for may not.
                let sink = graph.edges[edge].sink;
                let alone = graph
                    .edges
                    .iter()
                    .filter(|other| other.sink == sink)
                    .count()
                    == 1;
                let changes: &[i64] = if alone { &[1000] } else { &[-1, 1, 5, 1000] };
                for change in changes {
                    let delay = i64::from(mapping.edges[edge].delay.unwrap()) + change;
                    if let Ok(delay) = u32::try_from(delay) {
                        let mut late = mapping.clone();
                        late.edges[edge].delay = Some(delay);
                        rejected("a wrong delay", &label, &graph, &adg, &late);
                    }
                }
            }
        }
        let mut claims = mapping.clone();
        claims.claim.as_mut().unwrap().latency -= 1;
        rejected("a wrong claim", &label, &graph, &adg, &claims);
    }
    assert!(mutants > 3000, "{mutants}");
}

#[test]
fn two_values_on_one_link_are_overprovision() {
    let (graph, adg) = (kernel("deep"), fabric("mesh5x5"));
    let mapping = map(&graph, &adg).mapping.unwrap();
    // Two nodes on one element.
    let units: Vec<NodeId> = graph.instructions().map(|(node, ..)| node).collect();
    let mut together = mapping.clone();
    together.nodes[units[0]] = mapping.nodes[units[1]];
    let verdict = judge(&graph, &adg, &together);
    assert_eq!(verdict.overprovision, 1, "{:?}", verdict.faults);
}

#[test]
fn mappings_survive_being_written_and_read() {
    for (label, graph, adg, mut mapping) in good() {
        mapping.name = "k.dfg".to_owned();
        let text = mapping::write(&mapping, &graph, &adg, &[("Performance", 1.0)]).to_string();
        assert!(mapping::looks_like_mapping(text.as_bytes()));
        let again = mapping::read(text.as_bytes(), &graph, &adg, &Limits::default()).unwrap();
        // Edges of arrays have no delay, everything else is there.
        assert_eq!(again, mapping, "{label}");
    }
}

#[test]
fn a_mapping_of_another_graph_is_refused_with_a_pointer() {
    let (graph, adg) = (kernel("add"), fabric("mesh2x2"));
    let mapping = map(&graph, &adg).mapping.unwrap();
    let text = mapping::write(&mapping, &graph, &adg, &[]).to_string();
    let read = |text: &str| {
        mapping::read(text.as_bytes(), &graph, &adg, &Limits::default())
            .unwrap_err()
            .to_string()
    };
    assert!(
        read("{\"Vertices\": [], \"Edges\": [{\"EdgeId\": 99, \"Links\": []}]}")
            .contains("/Edges/0/EdgeId: the graph has 3 edges, found number 99")
    );
    assert!(
        read(&text.replace("ProcessingElement.0", "ProcessingElement.7"))
            .contains("the fabric has no ProcessingElement.7")
    );
    assert!(
        read(&text.replace("\"VertexId\":1", "\"VertexId\":0"))
            .contains("vertex 0 is mapped twice")
    );
    assert!(read("{\"Edges\": 3}").contains("/Edges: expected an array, found 3"));
    assert!(read("{").contains("line 1"));
}

#[test]
fn configuration_words_are_read_back() {
    for (name, on) in [
        ("add", "mesh2x2"),
        ("dot", "mesh5x5"),
        ("deep", "mesh5x5"),
        ("axpy", "ordered4x4"),
        ("recurrence", "mesh5x5"),
    ] {
        let (graph, adg) = (kernel(name), fabric(on));
        let mapping = map(&graph, &adg).mapping.unwrap();
        let figures = |mapping: &Mapping| {
            let verdict = judge(&graph, &adg, mapping);
            assert!(verdict.is_legal(), "{name} on {on}: {:?}", verdict.faults);
            estimate(&graph, &adg, mapping, &verdict, Model::default())
                .operations_per_cycle
                .to_bits()
        };
        for encoding in [bits::Encoding::Hardware, bits::Encoding::Scheduler] {
            let text = bits::write(&mapping, &graph, &adg, name, encoding).unwrap();
            let header = bits::read(&text, &graph, &adg)
                .unwrap_or_else(|error| panic!("{name} on {on}: {error}\n{text}"));
            assert_eq!(header.faults, [""; 0], "{name} on {on}");
            let again = header.mapping;
            for (edge, route) in mapping
                .edges
                .iter_enumerated()
                .filter(|(edge, _)| is_spatial(&graph, *edge))
            {
                assert_eq!(
                    again.edges[edge].links,
                    route.links,
                    "{name} on {on}, edge {}",
                    edge.index()
                );
            }
            assert_eq!(
                figures(&again),
                figures(&mapping),
                "{name} on {on}: words name no memories, and arrays have some all the same"
            );
            assert_eq!(
                text.contains("hold-second-operand"),
                encoding == bits::Encoding::Scheduler
            );
        }
    }
}

#[test]
fn the_words_hold_the_fields_where_the_hardware_reads_them() {
    let (graph, adg) = (kernel("add"), fabric("mesh2x2"));
    let mapping = map(&graph, &adg).mapping.unwrap();
    let word = |encoding, prefix: &str| -> u64 {
        let text = bits::write(&mapping, &graph, &adg, "k", encoding).unwrap();
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(prefix))
            .unwrap()
            .trim()
            .to_owned();
        u64::from_str_radix(line.trim_start_matches("0b").split(',').next().unwrap(), 2).unwrap()
    };
    // Processing element 0: enabled, valid, operands of 3 bits, mode 2, control 3, operation 4 (of 11), output 1 of 1 bit.
    let hardware = word(bits::Encoding::Hardware, "0b00");
    assert_eq!((hardware & 3, hardware >> 54), (3, 0));
    let operation = hardware >> 13 & 15;
    let element = adg
        .elements
        .iter()
        .find_map(|element| element.processing())
        .unwrap();
    assert_eq!(element.operations[operation as usize], "Add64");
    assert_eq!(hardware >> 17 & 1, 1);
    // The scheduler leaves the 1 out.
    assert_eq!(word(bits::Encoding::Scheduler, "0b00") >> 17 & 1, 0);
}

#[test]
fn both_operands_can_be_held() {
    let text = |action: &str| {
        let text = format!(
            "Input64: a\nInput64: b\nInput64: c\nz = Add64(a, b, ctrl=c & 1{{0: {action}, 1: d}})\nOutput64: z\n"
        );
        parse(text.as_bytes())
    };
    let adg = fabric("mesh3x3");
    let words = |action: &str, encoding| {
        let graph = text(action);
        let mapping = map(&graph, &adg).mapping.unwrap();
        bits::write(&mapping, &graph, &adg, "k", encoding).unwrap()
    };
    assert_eq!(
        words("b1", bits::Encoding::Scheduler),
        words("b2", bits::Encoding::Scheduler)
    );
    assert_ne!(
        words("b1", bits::Encoding::Hardware),
        words("b2", bits::Encoding::Hardware)
    );
}

#[test]
fn words_that_no_value_asks_for_are_faults() {
    let text = b"Input64: a\nInput64: b\nInput64: c\nx = Add64(a, b, ctrl=c & 1{1: d})\ny = Add64(x, b)\nOutput64: y\n";
    let (graph, adg) = (parse(text), fabric("mesh3x3"));
    let mapping = map(&graph, &adg).mapping.unwrap();
    let words = bits::write(&mapping, &graph, &adg, "k", bits::Encoding::Hardware).unwrap();
    let faults = |words: &str| bits::read(words, &graph, &adg).unwrap().faults;
    assert_eq!(faults(&words), [""; 0]);
    // One bit of one word after the other: what is still read as the mapping that it was either sends a value astray or misleads an element.
    let (mut strays, mut modes) = (0, 0);
    for (at, _) in words.match_indices("\t0b") {
        for bit in at + 19..at + 67 {
            let mut changed = words.clone().into_bytes();
            changed[bit] ^= 1;
            let changed = String::from_utf8(changed).unwrap();
            let Ok(header) = bits::read(&changed, &graph, &adg) else {
                continue;
            };
            strays += usize::from(header.faults.iter().any(|fault| fault.contains("takes")));
            let misled = |fault: &String| fault.contains("is told mode of control");
            modes += usize::from(header.faults.iter().any(misled));
        }
    }
    assert!(strays >= 4 && modes >= 2, "{strays} and {modes}");
}

#[test]
fn the_estimate_is_what_the_formulas_give() {
    let (graph, adg) = (kernel("axpy"), fabric("mesh5x5"));
    let mapping = map(&graph, &adg).mapping.unwrap();
    let verdict = judge(&graph, &adg, &mapping);
    // Three streams of two words of 64 bits (384 bits a cycle) over a bus of 512: everything fits.
    let peer = estimate(&graph, &adg, &mapping, &verdict, Model::Peer);
    assert_eq!((peer.scratchpad, peer.l2, peer.dram), (1.0, 1.0, 1.0));
    // 4 operations and 1 + 2 + 2 + 2 lanes.
    assert!(
        (peer.operations_per_cycle - 11.0).abs() < 1e-9,
        "{}",
        peer.operations_per_cycle
    );
    let text = b"Array: x 4096 dma\n----\n#pragma group unroll 4\nInput64: a[4] source=x\nInput64: b[4] source=x\nc0 = Add64(a0, b0)\nc1 = Add64(a1, b1)\nc2 = Add64(a2, b2)\nc3 = Add64(a3, b3)\nOutput64: c[4] destination=x\n";
    let graph = parse(text);
    let mapping = map(&graph, &adg).mapping.unwrap();
    let verdict = judge(&graph, &adg, &mapping);
    // 768 bits a cycle over a bus of 512; the engine itself reads 256 of the 512 that the inputs want.
    let peer = estimate(&graph, &adg, &mapping, &verdict, Model::Peer);
    assert!((peer.l2 - 2.0 / 3.0).abs() < 1e-9, "{}", peer.l2);
    let own = estimate(&graph, &adg, &mapping, &verdict, Model::Chipless);
    assert!((own.l2 - 0.5).abs() < 1e-9, "{}", own.l2);
}

#[test]
fn pictures_show_what_is_where() {
    let (graph, adg) = (kernel("dot"), fabric("mesh5x5"));
    let mapping = map(&graph, &adg).mapping.unwrap();
    let mapped = Some(Mapped {
        graph: &graph,
        mapping: &mapping,
    });
    let svg = pictures::svg(&adg, mapped);
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("Mul_I64") && svg.contains("<title>"));
    let coloured = svg.matches("marker-end").count();
    assert!(coloured >= mapping.links_used(&adg), "{coloured}");
    assert!(!pictures::svg(&adg, None).contains("marker-end=\""));
    let text = pictures::text(&adg, mapped);
    assert!(text.contains("Add_I64 sum") && text.contains("→ OutputVectorPort."));
}

#[test]
fn truncated_and_mutated_mappings_never_panic() {
    let (graph, adg) = (kernel("dot"), fabric("mesh5x5"));
    let mapping = map(&graph, &adg).mapping.unwrap();
    let text = mapping::write(&mapping, &graph, &adg, &[])
        .to_string()
        .into_bytes();
    let words = bits::write(&mapping, &graph, &adg, "dot", bits::Encoding::Hardware).unwrap();
    let mut random = 88172645463325252u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for round in 0..rounds(400) {
        let mut mutant = text.clone();
        if round % 4 == 0 {
            mutant.truncate(next(text.len()));
        } else {
            for _ in 0..=next(3) {
                let at = next(mutant.len());
                mutant[at] = b"0123456789,:{}[]\"ax-"[next(20)];
            }
        }
        if let Ok(mapping) = mapping::read(&mutant, &graph, &adg, &Limits::default()) {
            let verdict = judge(&graph, &adg, &mapping);
            let _ = estimate(&graph, &adg, &mapping, &verdict, Model::Chipless);
            let _ = pictures::svg(
                &adg,
                Some(Mapped {
                    graph: &graph,
                    mapping: &mapping,
                }),
            );
        }
        let mut mutant = words.clone().into_bytes();
        let at = next(mutant.len());
        mutant[at] = b"01P_ ,"[next(6)];
        if let Ok(text) = String::from_utf8(mutant) {
            let _ = bits::read(&text, &graph, &adg);
        }
    }
}

#[test]
fn an_element_elsewhere_is_no_element() {
    let (graph, adg) = (kernel("add"), fabric("mesh2x2"));
    let mut mapping = map(&graph, &adg).mapping.unwrap();
    mapping.nodes[NodeId::new(0)] = Some(Location {
        element: ElementId::new(4000),
        slot: 0,
    });
    assert!(!judge(&graph, &adg, &mapping).is_legal());
}

/// Without three of its links the little mesh can bring only one of two operands to its element. Every local condition holds.
#[test]
fn small_graphs_without_a_mapping_are_proved_so() {
    let mut json: serde_json::Value = serde_json::from_slice(&fixture("adg/mesh2x2.json")).unwrap();
    let missing = [
        ("Switch", 1, "Switch", 0),
        ("Switch", 1, "ProcessingElement", 0),
        ("Switch", 3, "ProcessingElement", 0),
    ];
    json["DSAGenEdges"].as_array_mut().unwrap().retain(|edge| {
        let is = |(from, a, to, b): &(&str, u64, &str, u64)| {
            edge["SourceNodeType"] == *from
                && edge["SourceNodeId"] == *a
                && edge["SinkNodeType"] == *to
                && edge["SinkNodeId"] == *b
        };
        !missing.iter().any(is)
    });
    let limits = Limits::default();
    let graph = parse(b"Input: a\nInput: b\nc = Add64(a, b)\nOutput: c\n");
    let (whole, _) = Adg::read(&fixture("adg/mesh2x2.json"), &limits).unwrap();
    assert!(map(&graph, &whole).mapping.is_some());
    let (cut, _) = Adg::read(json.to_string().as_bytes(), &limits).unwrap();
    let outcome = map(&graph, &cut);
    assert!(outcome.mapping.is_none() && outcome.proved, "{outcome:?}");
    let reason = outcome.reason.unwrap();
    assert!(reason.contains("exact search"), "{reason}");
}
