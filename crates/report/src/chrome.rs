//! A run in the Chrome trace format: JSON that Perfetto, `chrome://tracing` and many scripts read.
//!
//! Times are microseconds, exact to a picosecond. Perfetto's own format (`perfetto`) is smaller and has counters.

use crate::attribution::Attribution;
use crate::lanes::lanes;
use chipless_model::{Program, Time};
use chipless_sim::Timeline;
use serde_json::{Value, json};

const PROCESS: u32 = 1;

/// The trace of a run. `process` names it in the viewer.
pub fn trace(
    process: &str,
    program: &Program<'_>,
    timeline: &Timeline,
    attribution: &Attribution,
) -> Vec<u8> {
    let slack = attribution.slack(program, timeline);
    let mut out = Events {
        bytes: b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[".to_vec(),
        first: true,
    };
    out.push(
        &json!({"ph": "M", "pid": PROCESS, "name": "process_name", "args": {"name": process}}),
    );
    for (thread, lane) in (1u32..).zip(lanes(program, attribution)) {
        let meta = |name: &str, args: Value| json!({"ph": "M", "pid": PROCESS, "tid": thread, "name": name, "args": args});
        out.push(&meta("thread_name", json!({"name": lane.name(program)})));
        out.push(&meta("thread_sort_index", json!({"sort_index": thread})));
        for place in lane
            .tasks
            .iter()
            .filter_map(|task| attribution.place(*task))
        {
            let row = &attribution.rows[place];
            for wait in &row.waits {
                let on = wait
                    .on
                    .map_or(wait.reason.name(), |sync| &program.syncs[sync].name);
                out.push(&slice(
                    thread,
                    "wait",
                    on,
                    wait.start,
                    wait.end,
                    &json!({"by": wait.by.map(|by| program.task_name(by))}),
                ));
            }
            let name = program.kernel(row.task).operation();
            let args = json!({
                "task": program.task_name(row.task),
                "layer": attribution.layer(program, row.task),
                "critical": row.critical,
                "slack_ns": slack[place].ns(),
            });
            out.push(&slice(thread, "task", &name, row.start, row.end, &args));
        }
    }
    out.bytes.extend_from_slice(b"\n]}\n");
    out.bytes
}

struct Events {
    bytes: Vec<u8>,
    first: bool,
}

impl Events {
    fn push(&mut self, event: &Value) {
        let separator: &[u8] = if std::mem::take(&mut self.first) {
            b"\n"
        } else {
            b",\n"
        };
        self.bytes.extend_from_slice(separator);
        self.bytes.extend_from_slice(event.to_string().as_bytes());
    }
}

fn slice(thread: u32, category: &str, name: &str, start: Time, end: Time, args: &Value) -> Value {
    json!({
        "ph": "X", "pid": PROCESS, "tid": thread, "cat": category, "name": name,
        "ts": start.ns() / 1e3, "dur": (end - start).ns() / 1e3, "args": args,
    })
}
