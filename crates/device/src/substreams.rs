//! The context map: transactions carry a substream id of 5 bits, which a row of the map turns into the 20 bits of a process.

use schemars::JsonSchema;
use serde::Serialize;

/// What happened to the rows of the map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct MapCounts {
    /// Rows that were loaded: a process got its place on the device and had none.
    pub loads: u64,
    /// Of these, rows that another process had before.
    pub evictions: u64,
}

/// The rows, the one whose process was placed longest ago first.
#[derive(Debug, Default)]
pub(crate) struct ContextMap {
    rows: Vec<u32>,
    pub(crate) counts: MapCounts,
}

impl ContextMap {
    /// A process gets a place. Whether its row must be loaded; it takes that of the process that was placed longest ago, and is not running.
    pub(crate) fn place(
        &mut self,
        process: u32,
        rows: u64,
        is_running: impl Fn(u32) -> bool,
    ) -> bool {
        let known = self.rows.iter().position(|row| *row == process);
        if let Some(at) = known {
            self.rows.remove(at);
        } else {
            self.counts.loads += 1;
            if self.rows.len() as u64 >= rows {
                let free = self.rows.iter().position(|row| !is_running(*row));
                self.rows.remove(free.unwrap_or(0));
                self.counts.evictions += 1;
            }
        }
        self.rows.push(process);
        known.is_none()
    }
}
