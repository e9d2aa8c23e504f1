//! Jobs as a Perfetto trace: a process for each context, in it a track for each stream's jobs in flight.

use super::phases;
use crate::perfetto::field;
use crate::protobuf::Writer;
use chipless_device::{Record, Report};

const SEQUENCE: u64 = 1;
const BEGIN: u64 = 1;
const END: u64 = 2;

/// The trace of these jobs.
pub fn trace(report: &Report, jobs: &[Record]) -> Vec<u8> {
    let mut out = Writer::default();
    let contexts = report.contexts.iter().enumerate();
    for (number, context) in contexts {
        let uuid = number as u64 + 1;
        out.message(field::TRACE_PACKET, |p| {
            p.integer(field::PACKET_SEQUENCE, SEQUENCE);
            p.message(field::PACKET_TRACK, |t| {
                t.integer(field::TRACK_UUID, uuid);
                t.message(field::TRACK_PROCESS, |d| {
                    d.integer(field::PROCESS_PID, uuid);
                    let name = format!(
                        "{} (process {}, {})",
                        context.name, context.process, context.band
                    );
                    d.string(field::PROCESS_NAME, &name);
                });
            });
        });
    }
    let mut next = report.contexts.len() as u64 + 1;
    // Jobs of a stream that overlap lie on tracks beside each other.
    let mut lanes: Vec<(usize, u64, u64)> = Vec::new();
    let mut sorted: Vec<&Record> = jobs.iter().collect();
    sorted.sort_by_key(|job| (job.arrival_ps, job.done_ps));
    for job in sorted {
        let Some(stream) = report.streams.iter().position(|s| s.name == job.stream) else {
            continue;
        };
        let free =
            |(of, until, _): &&mut (usize, u64, u64)| *of == stream && *until <= job.arrival_ps;
        let track = if let Some((_, until, track)) = lanes.iter_mut().find(free) {
            *until = job.done_ps;
            *track
        } else {
            let parent = report
                .contexts
                .iter()
                .position(|c| c.name == job.context)
                .unwrap_or(0) as u64
                + 1;
            let track = next;
            next += 1;
            out.message(field::TRACE_PACKET, |p| {
                p.integer(field::PACKET_SEQUENCE, SEQUENCE);
                p.message(field::PACKET_TRACK, |t| {
                    t.integer(field::TRACK_UUID, track);
                    t.integer(field::TRACK_PARENT, parent);
                    t.string(field::TRACK_NAME, &job.stream);
                });
            });
            lanes.push((stream, job.done_ps, track));
            track
        };
        slices(&mut out, job, track);
    }
    out.into_bytes()
}

/// A job, and in it what it waited for and when it ran.
fn slices(out: &mut Writer, job: &Record, track: u64) {
    let name = format!("{} {}", job.stream, job.index);
    slice(out, track, &name, job.arrival_ps, job.done_ps, |out| {
        for phase in phases(job) {
            slice(out, track, &phase.name, phase.from, phase.to, |_| {});
        }
    });
}

fn slice(
    out: &mut Writer,
    track: u64,
    name: &str,
    from: u64,
    to: u64,
    inside: impl FnOnce(&mut Writer),
) {
    event(out, track, BEGIN, from, Some(name));
    inside(out);
    event(out, track, END, to, None);
}

fn event(out: &mut Writer, track: u64, kind: u64, at: u64, name: Option<&str>) {
    out.message(field::TRACE_PACKET, |p| {
        p.integer(field::PACKET_TIMESTAMP, at / 1000);
        p.integer(field::PACKET_SEQUENCE, SEQUENCE);
        p.message(field::PACKET_EVENT, |e| {
            e.integer(field::EVENT_TYPE, kind);
            e.integer(field::EVENT_TRACK, track);
            if let Some(name) = name {
                e.string(field::EVENT_NAME, name);
            }
        });
    });
}
