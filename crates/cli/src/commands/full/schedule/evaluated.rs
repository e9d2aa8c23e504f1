//! `chipless schedule --evaluate`: what a tree that is given costs.

use super::searched::write_set_dialect;
use super::{Arguments, Dialect, answer, refused, report, short, told, tree_text};
use crate::failure::{Exit, Failure};
use crate::{files, terminal};
use chipless_schedule::emit::{self, Written};
use chipless_schedule::front::Front;
use chipless_schedule::machine::Machine;
use chipless_schedule::reading::Network;
use chipless_schedule::report::{Figures, Report};
use chipless_schedule::tree::Tree;
use std::path::Path;

pub(super) fn evaluate(
    arguments: &Arguments,
    read: &Network,
    machine: &Machine,
    path: &Path,
) -> Result<Exit, Failure> {
    let (front, batch) = (&read.front, read.batch);
    let network = &front.network;
    let text = files::read_text(path)?;
    let tree = Tree::read(&text).map_err(|error| Failure::unreadable(path.display(), error))?;
    let (cost, tree) = chipless_schedule::evaluate(network, machine, batch, &tree)
        .map_err(|impossible| refused(path, &impossible))?;
    let mut files = Vec::new();
    if let Some(path) = &arguments.tree {
        files::write(path, &[tree_text(&tree).as_bytes()])?;
        files.push(path);
    }
    let bounds = chipless_schedule::lower_bounds(network, machine, batch);
    let mut report = report(arguments, (read, machine), &cost, &bounds);
    match arguments.dialect {
        Dialect::Spec => {
            let output = arguments.output.as_deref();
            match replayed((front, batch), machine, &tree, &mut report) {
                Ok(text) => output
                    .map(|path| files::write(path, &[text.as_bytes()]))
                    .transpose()?,
                Err(error) if output.is_some() => return Err(short(path, &error)),
                Err(error) => {
                    terminal::complain(&format!(
                        "{}: note: no replay, only SET's model: {error}\n",
                        path.display()
                    ));
                    None
                }
            };
        }
        Dialect::Set => {
            if let Some(path) = &arguments.output {
                write_set_dialect(arguments, path, front, machine, &tree)?;
            }
        }
    }
    files.extend(&arguments.output);
    let done = answer(arguments, &report)?;
    if !arguments.answer.is_json() {
        terminal::print(&told::files(&files))?;
    }
    Ok(done)
}

/// The schedule of the tree; its replay goes into the report.
fn replayed(
    (front, batch): (&Front, i64),
    machine: &Machine,
    tree: &Tree,
    report: &mut Report,
) -> Result<String, emit::Unwritten> {
    let written = Written::of(front, batch, false).map_err(emit::Unwritten::Unsupported)?;
    let best = emit::spec_dialect(&written, (&front.network, machine), tree)?;
    let (energy, delay) = best.replay;
    report.replay = Some(Figures::new(energy, delay as f64));
    report.replay_floor = Some(best.floor.into());
    report.replay_dram = Some(best.dram.into());
    Ok(best.text)
}
