//! Readers and lowerings: whatever the file, a document or findings; whatever the document, a program that can be verified
//! or findings; whatever was verified comes to its end.

use crate::tally::past_the_reader;
use chipless_model::{Finding, Limits, Program};
use chipless_sim::TimingOnly;
use std::collections::HashSet;
use std::sync::LazyLock;

/// The machine of schedules: to parse it takes longer than to read most inputs.
pub(crate) static GEMINI: LazyLock<chipless::gemini::Machine> =
    LazyLock::new(|| chipless::gemini::Machine::named("spec").expect("it comes along"));

/// Small enough that no input takes long.
pub(crate) fn limits() -> Limits {
    Limits {
        memory_bytes: 64 << 20,
        tasks: 4096,
        inflated_bytes: 16 << 20,
        json_bytes: 4 << 20,
        transfers: 4096,
        ..Limits::default()
    }
}

/// Findings must be printable.
pub(crate) fn tell(findings: &[Finding]) {
    assert!(
        findings
            .iter()
            .all(|finding| !finding.to_string().is_empty()),
        "a finding says nothing"
    );
}

/// Verifies a program; a verified one must end in time.
pub(crate) fn prove(program: &Program<'_>) {
    match chipless_verify::verify(program) {
        Ok(verified) => {
            let is_certain = verified
                .warnings()
                .iter()
                .all(|f| f.rule.code != "semaphore-order-unproven");
            let end =
                chipless_sim::run(&chipless_sim::Verified::assume(program), &mut TimingOnly).end;
            assert!(end.is_ok() || !is_certain, "verified, and {end:?}");
            tell(verified.warnings());
        }
        Err(findings) => tell(&findings),
    }
}

/// Reads a file as an NPU blob.
pub fn npu_read(bytes: &[u8]) {
    match chipless::npu::Document::read(bytes) {
        Ok(document) => {
            past_the_reader();
            tell(document.findings());
            _ = (document.info(), document.raw());
        }
        Err(findings) => tell(&findings),
    }
}

/// Reads a file as an NPU blob, and makes its program.
pub fn npu_lower(bytes: &[u8]) {
    let Ok(document) = chipless::npu::Document::read(bytes) else {
        return;
    };
    past_the_reader();
    let image = match chipless::npu::Image::load(&document, &limits()) {
        Ok(image) => image,
        Err(findings) => return tell(&findings),
    };
    let options = chipless::npu::Options {
        limits: limits(),
        ..chipless::npu::Options::default()
    };
    match chipless::npu::lower(&document, &image, &options) {
        Ok(program) => prove(&program),
        Err(findings) => tell(&findings),
    }
}

/// Reads a file as a NEFF.
pub fn neuron_read(bytes: &[u8]) {
    let limits = limits();
    let Ok(container) = chipless::neuron::Container::open(bytes, &limits) else {
        return;
    };
    _ = chipless::neuron::raw(&container);
    match chipless::neuron::Neff::read(&container, &limits) {
        Ok(neff) => {
            past_the_reader();
            tell(&chipless::neuron::lint(&neff, &limits));
            _ = chipless::neuron::info(&neff);
        }
        Err(finding) => tell(&[*finding]),
    }
}

/// Reads a file as a NEFF, and makes its program.
pub fn neuron_lower(bytes: &[u8]) {
    let limits = limits();
    let Ok(container) = chipless::neuron::Container::open(bytes, &limits) else {
        return;
    };
    let Ok(neff) = chipless::neuron::Neff::read(&container, &limits) else {
        return;
    };
    past_the_reader();
    let Some(machine) = neff
        .architecture
        .machine()
        .or_else(|| chipless::neuron::machine::Machine::named("trn2"))
    else {
        return;
    };
    match chipless::neuron::lower(&neff, &machine, &limits) {
        Ok(lowered) => prove(&lowered.program),
        Err(finding) => tell(&[*finding]),
    }
}

/// Reads a file as a schedule, a front-end file or assembly, and writes it back.
pub fn gemini_read(bytes: &[u8]) {
    let limits = limits();
    if let Ok(network) = chipless::gemini::Network::read(bytes, &limits) {
        _ = network.scheduled().count();
    }
    if let Ok(assembly) = chipless::gemini::Assembly::read(bytes, &limits) {
        tell(&assembly.findings());
        _ = (assembly.info(), assembly.raw());
    }
    match chipless::gemini::Document::read(bytes, "net_b1_c1_bw16.json", &limits) {
        Ok(document) => {
            past_the_reader();
            tell(&document.findings(None, None, &limits));
            _ = (document.info(), document.raw());
            let written = document.schedule.clone().convert(None).write();
            if let Ok(again) = chipless::gemini::Schedule::read(&written) {
                assert_eq!(again.write(), written, "written again it is not the same");
            }
        }
        Err(finding) => tell(&[*finding]),
    }
}

/// Reads a file as a schedule or assembly, and makes its program.
pub fn gemini_lower(bytes: &[u8]) {
    let limits = limits();
    if let Ok(assembly) = chipless::gemini::Assembly::read(bytes, &limits)
        && let Ok(program) = assembly.lower(&GEMINI, None, &limits)
    {
        prove(&program);
    }
    let Ok(document) = chipless::gemini::Document::read(bytes, "", &limits) else {
        return;
    };
    past_the_reader();
    for schedule in [document.schedule.clone(), document.schedule.convert(None)] {
        match chipless::gemini::lower(
            &schedule,
            &chipless::gemini::Data::default(),
            &GEMINI,
            &limits,
        ) {
            Ok(lowered) => prove(&lowered.program),
            Err(finding) => tell(&[*finding]),
        }
    }
}

/// Reads a file as a dataflow graph, prints it, and reads what was printed: it must be the same graph. Then evaluates a few rows in both
/// ways, which must agree.
pub fn dfg_read(bytes: &[u8]) {
    let limits = Limits {
        text_bytes: 1 << 20,
        declarations: 20_000,
        ..limits()
    };
    let document = chipless::dsa::Document::read(bytes, &limits);
    tell(&chipless::dsa::lint(&document, &limits));
    _ = (
        chipless::dsa::info(&document),
        chipless::dsa::raw(&document),
    );
    if let Some(text) = document.format() {
        let again = chipless::dsa::Document::read(text.as_bytes(), &limits);
        assert_eq!(
            again.format().as_deref(),
            Some(&*text),
            "formatting twice differs"
        );
        if document.is_complete() {
            past_the_reader();
        }
        // Which of two nodes a name means that both have is for nobody to say; the findings name it. `a_0` is another spelling of `a0`.
        let names: HashSet<String> = (document.graph.nodes.iter())
            .map(|node| node.name.replace('_', ""))
            .collect();
        if document.is_complete() && names.len() == document.graph.nodes.len() {
            assert_eq!(
                without_places(&again.graph),
                without_places(&document.graph),
                "formatting changes the graph"
            );
        }
    }
    if document.is_complete()
        && document.graph.nodes.len() < 200
        && document.graph.edges.len() < 2000
    {
        evaluate(&document.graph, &limits);
    }
}

/// Nodes and edges; where they stand in the file, and in which era's words, is not theirs.
fn without_places(graph: &chipless::dsa::graph::Graph) -> String {
    let nodes = graph.nodes.iter().map(|node| {
        (
            &node.name,
            node.group,
            &node.kind,
            &node.operands,
            &node.values,
        )
    });
    format!(
        "{:?} {:?} {:?}",
        graph.groups,
        nodes.collect::<Vec<_>>(),
        graph.edges
    )
}

fn evaluate(graph: &chipless::dsa::graph::Graph, limits: &Limits) {
    use chipless::dsa::evaluate::{Settings, Strategy, Stream, evaluate};
    let row_bytes =
        |port: &chipless::dsa::graph::Port| port.lanes as usize * port.width as usize / 8;
    if graph
        .inputs()
        .map(|(_, _, port)| row_bytes(port))
        .sum::<usize>()
        > 1 << 16
    {
        return;
    }
    let stream = |port| Stream {
        loops: vec![2, 3],
        bytes: (0..6 * row_bytes(port))
            .map(|byte| byte as u8)
            .collect::<Vec<_>>()
            .into(),
    };
    let inputs: Vec<Stream<'_>> = graph.inputs().map(|(_, _, port)| stream(port)).collect();
    let run = |strategy| {
        evaluate(
            graph,
            &inputs,
            Settings {
                strategy,
                ..Settings::default()
            },
            limits,
        )
        .map(|found| found.outputs)
    };
    assert_eq!(
        run(Strategy::Automatic),
        run(Strategy::TokenByToken),
        "the ways of evaluation differ"
    );
}

/// Reads a file as an architecture graph, and writes it: it must be the same fabric when it is read again.
pub fn adg_read(bytes: &[u8]) {
    let limits = limits();
    _ = chipless::dsa::adg::recognize(bytes);
    match chipless::dsa::adg::Adg::read(bytes, &limits) {
        Ok((adg, findings)) => {
            past_the_reader();
            tell(&findings);
            _ = (
                adg.info(),
                adg.raw(),
                chipless::dsa_mapper::pictures::text(&adg, None),
            );
            let again =
                chipless::dsa::adg::Adg::read(adg.to_json().to_string().as_bytes(), &limits);
            assert!(
                again.is_ok_and(|(again, _)| again.counts() == adg.counts()),
                "writing changes the fabric"
            );
        }
        Err(finding) => tell(&[*finding]),
    }
}
