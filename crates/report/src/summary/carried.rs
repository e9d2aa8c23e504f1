//! What transfers carry, as text.

use super::Run;
use crate::bars::widest;
use crate::style::{Paint, bytes, count, share};
use crate::transfers::{roomy, transfers};
use chipless_model::Time;
use std::fmt::Write;

impl Run<'_, '_> {
    /// What the transfers carry, and how much of the run waits for it.
    pub(super) fn transfers_text(&self, out: &mut String, paint: Paint) {
        let rows = transfers(self.program, &self.attribution);
        if rows.is_empty() {
            return;
        }
        let (title, note) = (
            paint.strong("transfers"),
            paint.dim("by what they carry; times on the critical path, estimated"),
        );
        let _ = writeln!(out, "\n{title}  {note}");
        let names = widest(rows.iter().map(|row| row.carries.name()));
        for row in &rows {
            let time = Time::from_ns(row.critical_ns);
            let again = match row.repeated {
                0 => String::new(),
                some => format!(
                    "; {some} of them bring again what one before brought to the same memory"
                ),
            };
            let _ = writeln!(
                out,
                "  {:names$}  {time:>9}  {:>7}  {:>9} in {}  {}",
                row.carries.name(),
                share(time, self.timeline.end),
                bytes(row.bytes),
                count(row.transfers, "transfer"),
                paint.dim(format!("{}{again}", row.carries.meaning()))
            );
        }
        // To follow what memories hold takes longer than to time the program, so only who asks for reasons waits for it.
        if self.ranking.is_some()
            && let Some((memory, live, size)) = roomy(self.program, self.timeline, &rows)
        {
            let _ = writeln!(
                out,
                "  {}",
                paint.dim(format!(
                    "not for lack of room: at most {} of the {} of {memory} are live at a time. They may pass data between parts of the chip",
                    bytes(live),
                    bytes(size)
                ))
            );
        }
    }
}
