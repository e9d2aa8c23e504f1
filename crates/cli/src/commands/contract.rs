//! Contracts (IOSpecs) as commands open them, and the options of programs behind them.

use super::{Opened, told};
use crate::failure::Failure;
use crate::files;
use chipless::Options;
use chipless::spu::fqir;
use chipless::spu::iospec::{self, Document, Femto, RuleSet};
use std::collections::HashMap;
use std::path::Path;

/// The shapes of a contract's inputs by their names.
pub(crate) fn shapes(document: &Document) -> HashMap<String, Vec<u64>> {
    let inputs = document.inputs.iter();
    inputs
        .filter_map(|input| Some((input.varname.clone(), input.shape()?)))
        .collect()
}

/// The options for a program: those of contracts are none of other targets.
pub(super) fn for_program(options: &Options, program: &Opened) -> Options {
    if program.target() == Some("spu") {
        return options.clone();
    }
    options.without("rules")
}

/// The IOSpec of a file, if nothing in it is an error under the rules.
pub(crate) fn open(path: &Path, rules: RuleSet) -> Result<Document, Failure> {
    let name = path.display().to_string();
    let bytes = files::open(path).map_err(|error| Failure::unreadable(&name, error))?;
    let refuse = |bytes: &[u8], findings: Vec<chipless_model::Finding>| {
        let failure = chipless::Failure::reading(findings);
        told(&name, Some("spu"), bytes, &[], failure)
    };
    if fqir::recognize(&bytes) {
        return Err(Failure::unreadable(
            &name,
            "expected an IOSpec, found an FQIR plan. `chipless iospec PLAN > iospec.yaml` writes its IOSpec; `drive` and `host` take that, with --program PLAN",
        ));
    }
    let converted;
    let text = if Femto::recognize(&bytes) {
        let femto = Femto::read(&bytes).map_err(|finding| refuse(&bytes, vec![*finding]))?;
        converted = chipless::spu::yaml::write(&femto.iospec());
        &converted
    } else if let Some(program) = program_by_mistake(&name, &bytes) {
        let text = format_args!("expected an IOSpec (YAML) or a .femto container, found {program}");
        return Err(Failure::unreadable(&name, text));
    } else {
        std::str::from_utf8(&bytes).map_err(|e| {
            let text = format_args!(
                "expected an IOSpec (YAML) or a .femto container, found other bytes than UTF-8 at offset {}",
                e.valid_up_to()
            );
            Failure::unreadable(&name, text)
        })?
    };
    let document =
        Document::read(text, rules).map_err(|findings| refuse(text.as_bytes(), findings))?;
    let findings = iospec::lint(&document, rules);
    if findings.iter().any(chipless_model::Finding::is_error) {
        return Err(refuse(text.as_bytes(), findings));
    }
    Ok(document)
}

/// What to say of a program that stands where a contract or a script should.
pub(crate) fn program_by_mistake(name: &str, bytes: &[u8]) -> Option<String> {
    let target = chipless::recognize(name, bytes)?.name();
    // What the target of contracts recognises as text is one.
    if target == "spu" && std::str::from_utf8(bytes).is_ok() {
        return None;
    }
    Some(format!(
        "a program of target {target}. `chipless iospec {name} > iospec.yaml` writes its IOSpec; `drive` and `host` take that, with --program {name}"
    ))
}
