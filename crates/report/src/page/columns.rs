//! The tasks of a run as packed columns: lane by lane in order of start, numbers as varints, deflated, in base64.

use crate::attribution::{Attribution, Reason, Row};
use crate::lanes::{Lane, lanes};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chipless_model::{Program, TaskId, Time};
use chipless_sim::Timeline;
use flate2::{Compression, write::DeflateEncoder};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::Write;

pub(super) struct Columns<'p> {
    pub(super) lanes: Vec<Lane>,
    pub(super) operations: Vec<String>,
    pub(super) layers: Vec<&'p str>,
    pub(super) packed: BTreeMap<&'static str, String>,
    /// Of each task its place in the columns, from 1.
    pub(super) places: FxHashMap<TaskId, u64>,
}

const NAMES: [&str; 12] = [
    "gap",
    "duration",
    "index",
    "operation",
    "layer",
    "wait",
    "on",
    "by",
    "slack",
    "read",
    "written",
    "moved",
];

impl<'p> Columns<'p> {
    pub(super) fn of(
        program: &'p Program<'_>,
        timeline: &Timeline,
        attribution: &Attribution,
    ) -> Columns<'p> {
        let slack = attribution.slack(program, timeline);
        let lanes = lanes(program, attribution);
        let tasks = || lanes.iter().flat_map(|lane| &lane.tasks);
        let places: FxHashMap<TaskId, u64> = tasks().zip(1..).map(|(task, n)| (*task, n)).collect();
        let (mut operations, mut layers) = (Vec::new(), Vec::new());
        let (mut operation_of, mut layer_of) = (FxHashMap::default(), FxHashMap::default());
        let mut columns: [Vec<u8>; NAMES.len()] = Default::default();
        let mut free = Time::ZERO;
        for at in tasks().filter_map(|task| attribution.place(*task)) {
            let row = &attribution.rows[at];
            let (read, written) = program.kernel(row.task).traffic();
            if row.before.is_none() {
                free = Time::ZERO;
            }
            let operation = *operation_of
                .entry(program.kernel(row.task).operation())
                .or_insert_with_key(|name| {
                    operations.push(name.clone().into_owned());
                    operations.len() as u64 - 1
                });
            let layer = attribution.layer(program, row.task).map_or(0, |name| {
                *layer_of.entry(name).or_insert_with(|| {
                    layers.push(name);
                    layers.len() as u64
                })
            });
            let wait = row.waits.last();
            let by = wait.and_then(|wait| wait.by).and_then(|by| places.get(&by));
            let values = [
                row.start.saturating_sub(free).0,
                (row.end - row.start).0,
                u64::from(program.tasks[row.task].index),
                operation,
                layer,
                u64::from(reason(row)) << 1 | u64::from(row.critical),
                wait.and_then(|wait| wait.on)
                    .map_or(0, |sync| u64::from(sync.raw()) + 1),
                by.copied().unwrap_or(0),
                slack[at].0,
                read,
                written,
                program
                    .demands(row.task)
                    .iter()
                    .map(|demand| demand.bytes)
                    .max()
                    .unwrap_or(0),
            ];
            for (column, value) in columns.iter_mut().zip(values) {
                varint(column, value);
            }
            free = row.end;
        }
        let packed = NAMES
            .into_iter()
            .zip(columns.iter().map(|column| pack(column)))
            .collect();
        Columns {
            lanes,
            operations,
            layers,
            packed,
            places,
        }
    }

    /// Of each task in these columns the place in others of the task that it was matched with, from 1; 0 without one.
    pub(super) fn matched(&self, others: &Columns<'_>, pairs: &[(TaskId, TaskId)]) -> String {
        let pairs: FxHashMap<TaskId, TaskId> = pairs.iter().copied().collect();
        let mut column = Vec::new();
        for task in self.lanes.iter().flat_map(|lane| &lane.tasks) {
            let other = pairs.get(task).and_then(|other| others.places.get(other));
            varint(&mut column, other.copied().unwrap_or(0));
        }
        pack(&column)
    }
}

/// Place in `REASONS` of page/src/report.ts.
fn reason(row: &Row) -> u8 {
    match row.waits.last().map(|wait| wait.reason) {
        None => 0,
        Some(Reason::Sync) => 1,
        Some(Reason::Release) => 2,
        Some(Reason::Server) => 3,
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes as text that a browser can inflate by itself.
pub(super) fn pack(bytes: &[u8]) -> String {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    BASE64_STANDARD.encode(packed.expect("writing to memory does not fail"))
}
