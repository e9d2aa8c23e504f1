//! What makes a schedule faster on the machine as it is, in words.

use chipless_gemini::Schedule;

/// Images that mostly share weights well: of more, results leave the cores.
const BATCH: u64 = 4;

/// Sentences with a command for `machine`, where a run is so many times as fast with twice of a parameter, or gains with none. `slow_links` says what the
/// links between cores slow down.
pub(super) fn faster(
    schedule: &Schedule,
    limit: Option<(&str, f64)>,
    machine: &str,
    slow_links: impl FnOnce() -> Option<String>,
) -> String {
    let tensors = schedule.workloads().flat_map(|(_, w)| &w.buffer);
    let is_wide = tensors
        .filter_map(|tensor| tensor.bitwidth)
        .any(|bits| bits > 8);
    let precision = if is_wide {
        "--precision fp16"
    } else {
        "--precision int8 --calibrate DATA"
    };
    let longer = "--objective delay --seconds 60".to_owned();
    let part = limit.and_then(|(figure, _)| figure.split('.').next());
    let (what, options) = match (part, limit) {
        (Some("dram"), Some((_, gain))) => {
            let images = schedule.batch();
            let (batch, options) = if images < BATCH {
                let what = "A batch, if the first axis of the network counts images, loads each weight once for several of them";
                (what.to_owned(), format!("--batch {BATCH}"))
            } else {
                let what = format!(
                    "A batch of {images} shares each weight already. Of a larger one, more results may leave the cores than its weights save; a longer search may keep more of them there"
                );
                (what, format!("--batch {images} --seconds 60"))
            };
            let int8 = if is_wide {
                "If it supports every operator of the network, int8 (--precision int8 --calibrate DATA) has half the bytes, but for parameters, and padding where an input has few channels. "
            } else {
                ""
            };
            let bound = format!(
                "DRAM's bandwidth bounds it ({gain:.2} times as fast with twice of it). "
            );
            (format!("{bound}{int8}{batch}"), options)
        }
        (Some("noc"), _) => {
            let links = slow_links().unwrap_or_default();
            let what = format!(
                "Of the machine's parameters, the links between cores help most. {links}A longer search may find somewhat shorter ways"
            );
            (what, longer)
        }
        (None, _) => (
            "No parameter of the machine alone makes it much faster. A longer search may"
                .to_owned(),
            longer,
        ),
        (Some(_), _) => (
            "Of the machine's parameters, the cores help most. A longer search may share the work better"
                .to_owned(),
            longer,
        ),
    };
    format!(
        "{what}: `chipless schedule NET.onnx --machine {machine} {precision} {options} -o s.json --network-out net.json --weights-out weights`, with the --shape and --constant of this one. \
         The table above times this schedule as it is. One that is made for the other machine may gain more: `chipless tune` schedules a network on several."
    )
}
