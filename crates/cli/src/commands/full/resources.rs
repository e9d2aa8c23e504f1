//! `chipless info --resources`

use super::map::read_adg;
use crate::failure::{Exit, Failure};
use crate::output::Format;
use crate::terminal;
use chipless::Options;
use chipless::dsa_explore::resources::{ALONE, FIELDS, Usage, silicon};
use chipless_report::info::InfoReport;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The answer to `info --resources --json`.
#[derive(JsonSchema, Serialize)]
pub(super) struct FabricReport<'a> {
    #[serde(flatten)]
    info: InfoReport<'a>,
    /// What the fabric takes: an estimate.
    resources: Resources,
}

/// Figures of an FPGA by name.
type Figures = BTreeMap<&'static str, f64>;

/// What a fabric takes.
#[derive(JsonSchema, Serialize)]
struct Resources {
    /// Cores of the system.
    cores: u32,
    /// Banks of its L2.
    banks: u32,
    /// Bytes that its bus carries a cycle.
    bus: u32,
    /// Lookup tables, flip-flops, DSP slices and block RAM of a Xilinx VU9P, by part.
    parts: BTreeMap<&'static str, Figures>,
    /// Of all parts together.
    total: Figures,
    /// Area as silicon (28 nm).
    area_mm2: f64,
    /// Power as silicon.
    power_mw: f64,
}

fn named(usage: &Usage) -> Figures {
    FIELDS.into_iter().zip(usage.0).collect()
}

/// What fabrics take.
pub(crate) fn resources(
    files: &[PathBuf],
    options: &Options,
    format: Format,
) -> Result<Exit, Failure> {
    for path in files {
        let adg = read_adg(path, &options.limits)?;
        let system = adg.system.unwrap_or(ALONE);
        let parts = chipless::dsa_explore::parts(&adg, system);
        let (area, power) = silicon(&adg);
        let (area, power) = (
            area * f64::from(system.cores),
            power * f64::from(system.cores),
        );
        let total = parts.total();
        match format {
            Format::Json => {
                let size = std::fs::metadata(path).map_or(0, |file| file.len());
                let (info, name) = (adg.info(), path.display().to_string());
                terminal::print_json(&FabricReport {
                    info: InfoReport::new(&name, size, &info, None),
                    resources: Resources {
                        cores: system.cores,
                        banks: system.banks,
                        bus: system.bus_width,
                        parts: parts
                            .0
                            .iter()
                            .map(|(part, of)| (*part, named(of)))
                            .collect(),
                        total: named(&total),
                        area_mm2: area,
                        power_mw: power,
                    },
                })?;
            }
            Format::Human => {
                let mut text = format!(
                    "{}: {} cores, {} banks, a bus of {} bytes\n{:14}",
                    path.display(),
                    system.cores,
                    system.banks,
                    system.bus_width,
                    "part"
                );
                for field in FIELDS {
                    text.push_str(&format!(" {field:>11}"));
                }
                for (name, usage) in parts.0.iter().chain([&("total", total)]) {
                    text.push_str(&format!("\n{name:14}"));
                    for figure in usage.0 {
                        text.push_str(&format!(" {figure:>11.0}"));
                    }
                }
                text.push_str(&format!(
                    "\nas silicon (28 nm): {area:.3} mm², {power:.1} mW\n\
                     Estimates; docs/dsa-exploration.md says how far they are off.\n"
                ));
                terminal::print(&text)?;
            }
        }
    }
    Ok(Exit::Done)
}
