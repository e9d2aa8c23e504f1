//! The format's rules, checked on a document. What needs execution or an order of events is the verifier's.

pub(crate) mod completion;
mod container;
mod definition;
mod dma;
mod graph;
mod keys;
mod stream;
mod triggers;

use crate::graph::Architecture;
use crate::json::Source;
use crate::read::Neff;
use crate::rules::container as rules;
use crate::stream::PARTITION_STRIDE;
use chipless_model::{Finding, Findings, Limits, Place, clip};

/// Semaphores of a core, and events of a core (driver, address maps of the second and third generation).
const SEMAPHORES: u64 = 256;

/// Bytes of instructions from which on a second thread pays.
const LARGE: usize = 1 << 18;

/// What the program's hardware holds.
#[derive(Clone, Copy)]
struct Hardware {
    architecture: Architecture,
    /// Usable bytes of a state buffer partition; the distance between partitions where no figure is public.
    partition_bytes: u32,
    /// Bytes of device memory; what can be addressed at all where no figure is public.
    device_bytes: u64,
    /// Of that, what one core can allocate.
    core_bytes: u64,
    /// What a descriptor costs a DMA engine besides its bytes, in seconds, and the engine's bytes a second; `None` where no figure is public.
    dma_engine: Option<(f64, f64)>,
}

impl Hardware {
    fn of(architecture: Architecture) -> Hardware {
        let machine = architecture.machine();
        let dma_engine =
            (machine.as_ref()).map(|m| (m.dma.descriptor_ns * 1e-9, m.dma.engine_bytes_per_second));
        let memory = machine.map(|m| m.memory);
        Hardware {
            architecture,
            partition_bytes: memory
                .as_ref()
                .map_or(PARTITION_STRIDE, |m| m.sbuf_partition_bytes),
            device_bytes: memory.as_ref().map_or(1 << 57, |m| m.hbm_bytes),
            core_bytes: memory.map_or(1 << 57, |m| m.hbm_bytes_per_core),
            dma_engine,
        }
    }
}

/// Checks a document against every rule about files, tables, descriptors and single instructions; findings in the order of the file's
/// structure, at most `limits.findings` of them and a note about the rest.
pub fn lint(neff: &Neff<'_>, limits: &Limits) -> Vec<Finding> {
    let hardware = Hardware::of(neff.architecture);
    let tables = || {
        let mut findings = Findings::new(limits.findings);
        container::check(neff, &mut findings);
        graph::check(neff, hardware, &mut findings);
        for finding in &neff.dangling {
            findings.push(finding.clone());
        }
        for subgraph in &neff.subgraphs {
            for fault in &subgraph.definition.faults {
                findings.push(fault.clone());
            }
            for fault in subgraph.engines.iter().flat_map(|room| &room.file.faults) {
                findings.push(fault.clone());
            }
            definition::check(hardware, subgraph, &mut findings);
            dma::check(neff, hardware, subgraph, &mut findings);
        }
        completion::check(&neff.subgraphs, &mut findings);
        triggers::check(neff, limits, &mut findings);
        for room in neff.subgraphs.iter().flat_map(|s| &s.engines) {
            for finding in crate::sets::check(room, limits) {
                findings.push(finding);
            }
        }
        findings
    };
    let streams = || stream::check(neff, hardware.partition_bytes, limits);
    let instructions = neff
        .subgraphs
        .iter()
        .flat_map(|s| &s.engines)
        .filter_map(|room| room.instructions);
    let bytes: usize = instructions.map(|member| member.bytes.len()).sum();
    let (mut findings, of_streams) = if bytes < LARGE {
        (tables(), streams())
    } else {
        rayon::join(tables, streams)
    };
    for finding in of_streams {
        findings.push(finding);
    }
    findings.done(&rules::MORE_FINDINGS)
}

/// An object of a JSON member: where its fields are found.
#[derive(Clone, Copy)]
struct Object<'a, 'p> {
    source: &'p Source<'a>,
    text: &'a str,
    pointer: &'p str,
}

impl Object<'_, '_> {
    /// The place of a field, given as a pointer from the object on.
    fn at(self, field: &str) -> Place {
        self.source.place(self.text, self.pointer, field)
    }

    /// What the file says at a field, shortened; nothing where no finding could show it.
    fn says(self, field: &str, findings: &Findings) -> String {
        if findings.full() {
            return String::new();
        }
        let text = field
            .split('/')
            .skip(1)
            .try_fold(self.text, crate::json::child)
            .unwrap_or("nothing");
        clip(text, 60).into_owned()
    }
}
