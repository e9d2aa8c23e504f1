//! Tiles.

use super::{Findings, Lint, cover};
use crate::rules::memory as rules;
use crate::schedule::{Bounds, PeTile, Tile, Workload};

/// Names of `cut_mode`.
const CUT_MODES: [&str; 5] = ["KC", "KH", "KK", "KW", "KN"];

pub(super) fn check(lint: Lint<'_>, workload: &Workload, findings: &mut Findings) {
    if !lint.spec {
        return;
    }
    if workload.tiles.is_empty() {
        findings.report(&rules::TILE_COVER, workload.at, || {
            "expected tile_info with at least one tile, found none".to_owned()
        });
        return;
    }
    let boxes: Vec<Bounds> = workload.tiles.iter().map(|tile| tile.ofmap).collect();
    for tile in workload
        .tiles
        .iter()
        .filter(|tile| !workload.bounds.contains(&tile.ofmap))
    {
        let message = || {
            format!(
                "expected a tile inside its workload, {}, found {}",
                workload.bounds, tile.ofmap
            )
        };
        findings.report(&rules::TILE_COVER, tile.at, message);
    }
    let volume = boxes
        .iter()
        .map(Bounds::elements)
        .fold(0, u64::saturating_add);
    if volume != workload.bounds.elements() || workload.tiles.len() > 1 {
        if let Some((a, b)) = cover::overlap(&boxes)
            && let (Some(a), Some(b)) = (workload.tiles.get(a), workload.tiles.get(b))
        {
            let message = || format!("expected tiles apart, found {} and {}", a.ofmap, b.ofmap);
            findings.report_with(
                &rules::TILE_COVER,
                b.at,
                message,
                Some((a.at, "the other tile")),
            );
        } else if volume < workload.bounds.elements() {
            let hole = cover::hole(&workload.bounds, &boxes);
            let missing = hole.map_or_else(|| "a part of it".to_owned(), |hole| hole.to_string());
            let message = || {
                format!(
                    "expected the tiles to fill {}, found none for {missing}",
                    workload.bounds
                )
            };
            findings.report(&rules::TILE_COVER, workload.at, message);
        }
    }
    for tile in &workload.tiles {
        input(workload, tile, findings);
        if let Some(pe) = &tile.pe {
            fields(lint, workload, tile, pe, findings);
        }
        if tile.time.is_some_and(|time| time < 0.0) {
            findings.report(&rules::TILE_FIELDS, tile.at, || {
                format!(
                    "expected a time of at least 0, found {}",
                    tile.time.unwrap_or(0.0)
                )
            });
        }
    }
}

/// What the tile reads is no more than what the workload reads; the front-end file says which part it must be.
fn input(workload: &Workload, tile: &Tile, findings: &mut Findings) {
    if tile.ifmap2.is_none() && workload.ifmaps.len() == 2 {
        findings.report(&rules::TILE_INPUT, tile.at, || {
            "expected ifmap_lower2 and ifmap_upper2 of a workload with two ifmaps, found none"
                .to_owned()
        });
    }
    if tile.ifmap.is_none() && !workload.ifmaps.is_empty() {
        findings.report(&rules::TILE_INPUT, tile.at, || {
            "expected ifmap_lower and ifmap_upper, found none".to_owned()
        });
    }
    let inputs = [
        (tile.ifmap.as_ref(), workload.ifmaps.first()),
        (tile.ifmap2.as_deref(), workload.ifmaps.get(1)),
    ];
    for (read, given) in inputs {
        let (Some(read), Some(given)) = (read, given) else {
            continue;
        };
        let (reads, has) = (read.shape(), given.bounds.shape());
        if workload.ifmaps.len() < 3 && (0..4).any(|d| reads[d] > has[d]) {
            let message =
                || format!("expected a tile that reads at most {has:?} of its ifmap, found {read}");
            findings.report_with(
                &rules::TILE_INPUT,
                tile.at,
                message,
                Some((given.at, "the ifmap")),
            );
        }
    }
}

fn fields(lint: Lint<'_>, workload: &Workload, tile: &Tile, pe: &PeTile, findings: &mut Findings) {
    let mut wrong = |message: String| findings.report(&rules::TILE_FIELDS, tile.at, || message);
    let text = |name| lint.schedule.name(name);
    if let Some(order) = pe.loop_order.map(text) {
        let mut letters: Vec<u8> = order.bytes().collect();
        letters.sort_unstable();
        if letters != b"HKNW" {
            wrong(format!(
                "expected loop_order as a permutation of KNHW, found \"{order}\""
            ));
        }
    }
    if let Some(mode) = pe
        .cut_mode
        .map(text)
        .filter(|mode| !CUT_MODES.contains(mode))
    {
        wrong(format!(
            "expected cut_mode {}, found \"{mode}\"",
            CUT_MODES.join(", ")
        ));
    }
    if let Some(layer) = pe.layer.filter(|layer| *layer != workload.layer) {
        wrong(format!(
            "expected the layer of the workload, {}, found {}",
            text(workload.layer),
            lint.layer(Some(layer))
        ));
    }
    if pe.input_channel_cuts == Some(0) || pe.mtc0_mtk0.is_some_and(|counts| counts.contains(&0)) {
        wrong("expected ci_cut_num and mtc0_mtk0 of at least 1, found 0".to_owned());
    }
    // They may be larger than a tile: they fit the largest one of the layer.
    let minis = [
        ("out_mini_tile", pe.output_mini_tile),
        ("act_mini_tile", pe.activation_mini_tile),
    ];
    for (key, mini) in minis {
        if mini.is_some_and(|mini| mini.contains(&0)) {
            wrong(format!(
                "expected {key} of at least [1, 1, 1, 1], found {:?}",
                mini.unwrap_or_default()
            ));
        }
    }
}
