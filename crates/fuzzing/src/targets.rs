//! Readers and lowerings: whatever the file, a document or findings; whatever the document, a program that can be verified
//! or findings; whatever was verified comes to its end.

use chipless_model::{Finding, Limits, Program};
use chipless_sim::TimingOnly;

/// Small enough that no input takes long.
pub(crate) fn limits() -> Limits {
    Limits { memory_bytes: 64 << 20, tasks: 4096, inflated_bytes: 16 << 20, json_bytes: 4 << 20, transfers: 4096, ..Limits::default() }
}

/// Findings must be printable.
pub(crate) fn tell(findings: &[Finding]) {
    assert!(findings.iter().all(|finding| !finding.to_string().is_empty()), "a finding says nothing");
}

/// Verifies a program; a verified one must end in time.
pub(crate) fn prove(program: &Program<'_>) {
    match chipless_verify::verify(program) {
        Ok(verified) => {
            let is_certain = verified.warnings().iter().all(|f| f.rule.code != "semaphore-order-unproven");
            let end = chipless_sim::run(program, &mut TimingOnly).end;
            assert!(end.is_ok() || !is_certain, "verified, and {end:?}");
            tell(verified.warnings());
        }
        Err(findings) => tell(&findings),
    }
}

/// Reads a file as an NPU blob.
pub fn npu_read(bytes: &[u8]) {
    match chipless_npu::Document::read(bytes) {
        Ok(document) => {
            tell(document.findings());
            _ = (document.info(), document.raw());
        }
        Err(findings) => tell(&findings),
    }
}

/// Reads a file as an NPU blob, and makes its program.
pub fn npu_lower(bytes: &[u8]) {
    let Ok(document) = chipless_npu::Document::read(bytes) else { return };
    let image = match chipless_npu::Image::load(&document, &limits()) {
        Ok(image) => image,
        Err(findings) => return tell(&findings),
    };
    let options = chipless_npu::Options { limits: limits(), ..chipless_npu::Options::default() };
    match chipless_npu::lower(&document, &image, &options) {
        Ok(program) => prove(&program),
        Err(findings) => tell(&findings),
    }
}

/// Reads a file as a NEFF.
pub fn neuron_read(bytes: &[u8]) {
    let limits = limits();
    let Ok(container) = chipless_neuron::Container::open(bytes, &limits) else { return };
    _ = chipless_neuron::raw(&container);
    match chipless_neuron::Neff::read(&container, &limits) {
        Ok(neff) => {
            tell(&chipless_neuron::lint(&neff, &limits));
            _ = chipless_neuron::info(&neff);
        }
        Err(finding) => tell(&[*finding]),
    }
}

/// Reads a file as a NEFF, and makes its program.
pub fn neuron_lower(bytes: &[u8]) {
    let limits = limits();
    let Ok(container) = chipless_neuron::Container::open(bytes, &limits) else { return };
    let Ok(neff) = chipless_neuron::Neff::read(&container, &limits) else { return };
    let Some(machine) = neff.architecture.machine().or_else(|| chipless_neuron::machine::Machine::named("trn2")) else { return };
    match chipless_neuron::lower(&neff, &machine, &limits) {
        Ok(lowered) => prove(&lowered.program),
        Err(finding) => tell(&[*finding]),
    }
}
