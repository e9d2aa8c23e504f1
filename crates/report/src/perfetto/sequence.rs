//! A sequence of packets for one track: the track and an incremental clock are its defaults, names are interned once.

use super::field;
use crate::protobuf::Writer;
use chipless_model::Time;
use rustc_hash::FxHashMap;

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const COUNTER: u64 = 4;
/// The packet clears what was interned before; the packet uses interned strings.
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
/// Clocks of the sequence have numbers from 64; 6 is the trace's own.
const SEQUENCE_CLOCK: u64 = 64;
const TRACE_CLOCK: u64 = 6;

/// Interned names of arguments.
pub(super) const TASK: u64 = 1;
pub(super) const READ: u64 = 2;
pub(super) const WRITTEN: u64 = 3;
/// Interned categories.
pub(super) const CATEGORY_TASK: u64 = 1;
pub(super) const CATEGORY_WAIT: u64 = 2;
pub(super) const CATEGORY_LAYER: u64 = 3;

pub(super) struct Sequence<'w> {
    out: &'w mut Writer,
    id: u64,
    /// Nanoseconds at which the clock stands.
    at: u64,
    names: FxHashMap<Box<str>, u64>,
}

impl<'w> Sequence<'w> {
    /// Opens the sequence of a track, whose number it shares.
    pub(super) fn open(out: &'w mut Writer, track: u64) -> Sequence<'w> {
        out.message(field::TRACE_PACKET, |p| {
            p.integer(field::PACKET_SEQUENCE, track);
            p.integer(field::PACKET_FLAGS, STATE_CLEARED | NEEDS_STATE);
            p.integer(field::PACKET_FIRST, 1);
            p.message(field::PACKET_CLOCKS, |clocks| {
                clocks.message(field::CLOCKS_CLOCK, |clock| {
                    clock.integer(field::CLOCK_ID, TRACE_CLOCK);
                    clock.integer(field::CLOCK_TIMESTAMP, 0);
                });
                clocks.message(field::CLOCKS_CLOCK, |clock| {
                    clock.integer(field::CLOCK_ID, SEQUENCE_CLOCK);
                    clock.integer(field::CLOCK_TIMESTAMP, 0);
                    clock.integer(field::CLOCK_INCREMENTAL, 1);
                });
            });
            p.message(field::PACKET_DEFAULTS, |defaults| {
                defaults.message(field::DEFAULTS_EVENT, |event| {
                    event.integer(field::EVENT_DEFAULTS_TRACK, track);
                });
                defaults.integer(field::DEFAULTS_CLOCK, SEQUENCE_CLOCK);
            });
            p.message(field::PACKET_INTERNED, |interned| {
                for (number, text) in [
                    (TASK, "task"),
                    (READ, "bytes read"),
                    (WRITTEN, "bytes written"),
                ] {
                    interned.message(field::INTERNED_ANNOTATION_NAMES, |e| entry(e, number, text));
                }
                for (number, text) in [
                    (CATEGORY_TASK, "task"),
                    (CATEGORY_WAIT, "wait"),
                    (CATEGORY_LAYER, "layer"),
                ] {
                    interned.message(field::INTERNED_CATEGORIES, |e| entry(e, number, text));
                }
            });
        });
        Sequence {
            out,
            id: track,
            at: 0,
            names: FxHashMap::default(),
        }
    }

    /// A slice begins; `more` adds arguments and flows.
    pub(super) fn begin(
        &mut self,
        at: Time,
        name: &str,
        category: u64,
        more: impl FnOnce(&mut Writer),
    ) {
        let next = self.names.len() as u64 + 1;
        let known = self.names.get(name).copied();
        let number = known.unwrap_or_else(|| {
            self.names.insert(name.into(), next);
            next
        });
        self.event(at, |p| {
            p.integer(field::PACKET_FLAGS, NEEDS_STATE);
            if known.is_none() {
                p.message(field::PACKET_INTERNED, |i| {
                    i.message(field::INTERNED_NAMES, |e| entry(e, number, name));
                });
            }
            p.message(field::PACKET_EVENT, |e| {
                e.integer(field::EVENT_TYPE, SLICE_BEGIN);
                e.integer(field::EVENT_NAME_IID, number);
                e.integer(field::EVENT_CATEGORY_IIDS, category);
                more(e);
            });
        });
    }

    /// The slice that began last ends.
    pub(super) fn end(&mut self, at: Time) {
        self.event(at, |p| {
            p.message(field::PACKET_EVENT, |e| {
                e.integer(field::EVENT_TYPE, SLICE_END);
            });
        });
    }

    /// A counter has this value from here on.
    pub(super) fn value(&mut self, at: Time, value: i64) {
        self.event(at, |p| {
            p.message(field::PACKET_EVENT, |e| {
                e.integer(field::EVENT_TYPE, COUNTER);
                e.integer(field::EVENT_COUNTER_VALUE, value.cast_unsigned());
            });
        });
    }

    fn event(&mut self, at: Time, write: impl FnOnce(&mut Writer)) {
        let now = nanoseconds(at).max(self.at);
        let passed = now - self.at;
        self.at = now;
        self.out.message(field::TRACE_PACKET, |p| {
            p.integer(field::PACKET_TIMESTAMP, passed);
            p.integer(field::PACKET_SEQUENCE, self.id);
            write(p);
        });
    }
}

/// An argument of a slice.
pub(super) fn argument(event: &mut Writer, name: u64, value: u64) {
    event.message(field::EVENT_ANNOTATIONS, |a| {
        a.integer(field::ANNOTATION_NAME_IID, name);
        a.integer(field::ANNOTATION_UINT, value);
    });
}

fn entry(out: &mut Writer, number: u64, text: &str) {
    out.integer(field::ENTRY_IID, number);
    out.string(field::ENTRY_TEXT, text);
}

fn nanoseconds(time: Time) -> u64 {
    time.0 / 1000
}
