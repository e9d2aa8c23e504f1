//! Dataflow graphs for spatial accelerators, and the accelerators' architecture graphs.

mod streams;

use crate::capability::{Capabilities, Capability, Converts, Draws};
use crate::failure::Failure;
use crate::options::{OptionKind, OptionSpec, Options};
use crate::target::{Document, Lowered, Package, Picture, Source, Target};
use chipless_dsa::adg::{self, Adg};
use chipless_dsa_mapper::pictures;
use chipless_model::{Finding, Info, Node, Program, Rule};
use chipless_sim::Timeline;
use std::sync::OnceLock;
use streams::Streams;

/// The target.
pub(super) struct Dsa;

static OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "map",
        kind: OptionKind::File,
        value: "FILE.json",
        help: "Mapping of the graph onto a fabric, by which it is timed. `chipless map -o` writes it",
        commands: &[
            "run", "debug", "check", "list", "report", "view", "diff", "iospec",
        ],
        is_repeated: false,
    },
    OptionSpec {
        name: "adg",
        kind: OptionKind::File,
        value: "FILE.json",
        help: "Fabric of the mapping, if its file does not hold it",
        commands: &[
            "run", "debug", "check", "list", "report", "view", "diff", "iospec",
        ],
        is_repeated: false,
    },
    OptionSpec {
        name: "cycles",
        kind: OptionKind::Flag,
        value: "",
        help: "Also execute the mapping cycle by cycle on its fabric. Reports how long rows take",
        commands: &["run"],
        is_repeated: false,
    },
];

impl Target for Dsa {
    fn name(&self) -> &'static str {
        "dsa"
    }

    fn files(&self) -> &'static [&'static str] {
        &[
            "a dataflow graph (DFG text)",
            "an architecture graph (ADG, JSON or sbmodel)",
        ]
    }

    fn recognize(&self, bytes: &[u8]) -> bool {
        adg::recognize(bytes) || chipless_dsa::recognize(bytes)
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["dfg"]
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn rules(&self) -> Vec<&'static Rule> {
        let mapper = chipless_dsa_mapper::rules::ALL;
        chipless_dsa::rules()
            .chain(mapper.iter().copied())
            .collect()
    }

    fn machines(&self) -> &'static [(&'static str, &'static str)] {
        chipless_dsa::MACHINES
    }

    fn capabilities(&self) -> &'static [Capability] {
        &[Capability::Converts, Capability::Draws]
    }

    fn open<'f>(&self, source: Source<'f>) -> Result<Box<dyn Package + 'f>, Failure> {
        Ok(Box::new(File(source)))
    }
}

/// A graph of either kind.
struct File<'f>(Source<'f>);

impl Package for File<'_> {
    fn read(&self) -> Result<Box<dyn Document + '_>, Failure> {
        let Source { bytes, options, .. } = self.0;
        if adg::recognize(bytes) {
            let (adg, findings) = Adg::read(bytes, &options.limits)
                .map_err(|finding| Failure::reading(vec![*finding]))?;
            return Ok(Box::new(Fabric { adg, findings }));
        }
        let document = chipless_dsa::Document::read(bytes, &options.limits);
        let findings = chipless_dsa::lint(&document, &options.limits);
        Ok(Box::new(Graph {
            document,
            findings,
            streams: OnceLock::new(),
            options,
        }))
    }
}

/// An architecture graph with everything that was found in it.
struct Fabric {
    adg: Adg,
    findings: Vec<Finding>,
}

impl Document for Fabric {
    fn info(&self) -> Info {
        self.adg.info()
    }

    fn raw(&self) -> Node {
        self.adg.raw()
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            converts: Some(self),
            draws: Some(self),
            ..Capabilities::default()
        }
    }

    fn is_program(&self) -> bool {
        false
    }

    fn lower(&self) -> Result<Lowered<'_>, Failure> {
        Err(Failure::unsupported(
            "expected a program, found a fabric, which holds none (chipless map takes it)",
        ))
    }
}

impl Converts for Fabric {
    /// Today's JSON of the generator.
    fn convert(&self) -> Result<String, Failure> {
        Ok(format!("{:#}\n", self.adg.to_json()))
    }
}

impl Draws for Fabric {
    fn pictures(&self) -> Result<Vec<Picture>, Failure> {
        let (elements, links) = (self.adg.elements.len(), self.adg.links.len());
        Ok(vec![Picture {
            name: "fabric".to_owned(),
            title: format!("{elements} elements, {links} links"),
            svg: pictures::svg(&self.adg, None),
            text: pictures::text(&self.adg, None),
        }])
    }
}

/// A DFG with everything that was found in it, and the streams for its ports once somebody wants its program.
struct Graph<'f> {
    document: chipless_dsa::Document<'f>,
    findings: Vec<Finding>,
    streams: OnceLock<Streams>,
    options: &'f Options,
}

impl Document for Graph<'_> {
    fn info(&self) -> Info {
        chipless_dsa::info(&self.document)
    }

    fn raw(&self) -> Node {
        chipless_dsa::raw(&self.document)
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn own_machine(&self) -> Option<(&'static str, Option<String>)> {
        let (_, own) = chipless_dsa::MACHINES[0];
        Some((own, None))
    }

    fn is_complete(&self) -> bool {
        self.document.is_complete()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            draws: Some(self),
            ..Capabilities::default()
        }
    }

    /// It is as long as its streams.
    fn depends_on_data(&self) -> bool {
        true
    }

    fn has_varying_outputs(&self) -> bool {
        self.document.graph.counts_by_values()
    }

    fn facts(&self, _program: &Program<'_>, _timeline: &Timeline) -> Result<Vec<Node>, Failure> {
        streams::cycles(&self.document.graph, self.options)
    }

    fn lower(&self) -> Result<Lowered<'_>, Failure> {
        let streams = if let Some(streams) = self.streams.get() {
            streams
        } else {
            let made = Streams::make(&self.document, self.options)?;
            self.streams.get_or_init(|| made)
        };
        streams::lower(&self.document, streams, self.options)
    }
}

impl Draws for Graph<'_> {
    /// The graph, and the fabric with the graph on it where a mapping was given.
    fn pictures(&self) -> Result<Vec<Picture>, Failure> {
        let graph = &self.document.graph;
        let nodes = graph.nodes.len();
        let mut drawn = Vec::new();
        if nodes <= pictures::DRAWN {
            drawn.push(Picture {
                name: "graph".to_owned(),
                title: format!("{nodes} nodes, {} edges", graph.edges.len()),
                svg: pictures::graph_svg(graph),
                text: pictures::graph_text(graph),
            });
        }
        drawn.extend(streams::fabric(graph, self.options)?);
        Ok(drawn)
    }
}
