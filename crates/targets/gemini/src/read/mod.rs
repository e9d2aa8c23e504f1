//! Reading of schedules: dialect, sections, and the sections' entries in parallel.
//!
//! The outline is read first: the top-level keys, where the lists of workloads and DRAM entries stand, and where they can
//! be cut. Cuts are found by counting braces, which braces in strings could mislead; a section that does not parse as it
//! was cut makes the whole file be read again with exact cuts, and then the first fault in the file is the one that is told.

mod dram;
mod outline;
mod section;
mod values;
mod workload;

use crate::json::{Fault, FaultKind, Result};
use crate::names::{Name, Names};
use crate::place;
use crate::rules::reading as rules;
use crate::schedule::{At, Core, Dialect, DramIn, DramOut, Ofmap, Schedule, Unknown, Workload};
use chipless_model::{Finding, Limits, Place};
use outline::{Cuts, Outline};
use rayon::prelude::*;
use section::{Context, Section};

/// What stops reading: a finding with the place.
pub type Error = Box<Finding>;

/// Checks that bytes are text of a size that can be read.
///
/// # Errors
/// More than 4 GiB or the limit `json_bytes`, or no UTF-8.
pub(crate) fn text<'a>(bytes: &'a [u8], limits: &Limits) -> std::result::Result<&'a str, Error> {
    let most = limits.json_bytes.min(u64::from(u32::MAX));
    if bytes.len() as u64 > most {
        let message = format!(
            "{} bytes of text exceed {most}, the limit json_bytes or 4 GiB",
            bytes.len()
        );
        return Err(Box::new(rules::LIMIT.at(Place::file(), message)));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|e| {
        let place = Place::bytes(e.valid_up_to() as u64, 1);
        Box::new(rules::SYNTAX.at(
            place,
            format!(
                "expected text in UTF-8, found other bytes from byte {} on",
                e.valid_up_to()
            ),
        ))
    })
}

/// The finding for a fault.
pub(crate) fn finding(text: &str, fault: &Fault) -> Error {
    let rule = match fault.kind {
        FaultKind::Syntax => &rules::SYNTAX,
        FaultKind::Value => &rules::VALUE,
        FaultKind::Missing => &rules::MISSING,
        FaultKind::Duplicate => &rules::DUPLICATE,
        FaultKind::Dialect => &rules::DIALECT,
        FaultKind::Limit => &rules::LIMIT,
    };
    Box::new(rule.at(place::place(text, fault.at), fault.message.clone()))
}

impl Schedule {
    /// Reads a schedule of any dialect.
    ///
    /// # Errors
    /// Text that is no JSON or no schedule, values outside their range, missing and doubled keys.
    pub fn read(text: &str) -> std::result::Result<Schedule, Error> {
        read(text, Cuts::Guessed)
            .or_else(|_| read(text, Cuts::Exact))
            .map_err(|fault| finding(text, &fault))
    }
}

/// What a section became.
enum Part {
    Workloads(Vec<Workload>, Vec<(Option<Name>, Ofmap)>),
    Dram(Vec<DramIn>, Vec<DramOut>),
}

fn read(text: &str, cuts: Cuts) -> Result<Schedule> {
    let outline = Outline::read(text, cuts)?;
    let context = Context::new(text, &outline)?;
    let pieces = outline.pieces();
    let parts: Vec<Result<(Part, Names, Vec<Unknown>)>> = pieces
        .par_iter()
        .map(|piece| {
            let mut section = Section::new(text, piece.span.0, context);
            let part = if piece.core.is_some() {
                let workloads = section.workloads(piece.span.1)?;
                Part::Workloads(workloads, std::mem::take(&mut section.pieces))
            } else {
                let (dram_in, dram_out) = section.dram(piece.group)?;
                if section.reader.offset() != piece.span.1 {
                    return section.reader.syntax("the end of the DRAM section");
                }
                Part::Dram(dram_in, dram_out)
            };
            Ok((part, section.names, section.unknown))
        })
        .collect();

    let mut schedule = Schedule {
        dialect: context.dialect,
        mesh: [context.columns, context.rows],
        top_batch_cut: outline.top_batch_cut,
        places: outline.places,
        buffer_size: outline.buffer_size,
        weight_key: None,
        cores: Vec::with_capacity(outline.cores.len()),
        dram_in: Vec::new(),
        dram_out: Vec::new(),
        dram_ports: outline.ports.clone(),
        names: Names::default(),
        unnamed: Vec::new(),
        unknown: outline.unknown.clone(),
    };
    for core in &outline.cores {
        schedule.cores.push(Core {
            id: context.core(core.key, core.at)?,
            workloads: Vec::new(),
            at: At(core.at as u32),
        });
    }
    let mut sent: Vec<Vec<(Option<Name>, Ofmap)>> = vec![Vec::new(); schedule.cores.len()];
    for (piece, part) in pieces.iter().zip(parts) {
        let (mut part, names, unknown) = part?;
        let map = schedule.names.absorb(&names);
        schedule.unknown.extend(unknown);
        if let Some(map) = map {
            section::rename(&mut part, &map);
        }
        match (
            part,
            piece.core.and_then(|index| schedule.cores.get_mut(index)),
        ) {
            (Part::Workloads(workloads, more), Some(core)) => {
                core.workloads.extend(workloads);
                if let Some(pieces) = sent.get_mut(piece.core.unwrap_or(0)) {
                    pieces.extend(more);
                }
            }
            (Part::Dram(dram_in, dram_out), _) => dram::merge(&mut schedule, dram_in, dram_out),
            (Part::Workloads(..), None) => {}
        }
    }
    if schedule.dialect.is_tiling() {
        for (core, pieces) in schedule.cores.iter_mut().zip(sent) {
            workload::attribute(core, pieces);
        }
        workload::resolve(&mut schedule);
    }
    let key = ["wl0_buffer", "wl1_buffer"]
        .into_iter()
        .find(|key| schedule.names.find(key).is_some());
    schedule.weight_key = key.map(|key| schedule.names.intern(key));
    let addressed = schedule
        .workloads()
        .flat_map(|(_, w)| &w.buffer)
        .any(|tensor| tensor.address.is_some());
    schedule.dialect = match (schedule.dialect, addressed) {
        (Dialect::Set, true) => Dialect::SetAddress,
        (Dialect::IrTiling, true) => Dialect::IrTilingAddress,
        (dialect, _) => dialect,
    };
    Ok(schedule)
}
