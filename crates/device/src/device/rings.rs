//! The rings of contexts: pushes, and pushes that are refused.
//!
//! The host tries a refused push again and again. An attempt that finds the ring as full as the one before changes nothing but a count, so
//! only those are events that find a free entry, and the last one.

use super::{Device, Due};
use crate::job::{Phase, Status};
use crate::owner::JobId;
use std::collections::{BTreeMap, VecDeque};

/// A context's ring, and what became of its jobs.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    pub(crate) waiting: VecDeque<JobId>,
    pub(crate) held: u64,
    pub(crate) running: Option<JobId>,
    pub(crate) is_dead: bool,
    /// Jobs whose push a full ring refused, by the instants of their attempts within a period of retries, and by their arrivals.
    pub(crate) refused: BTreeMap<(u64, u64), JobId>,
}

impl Device<'_, '_, '_> {
    /// A job is pushed into the ring of its context, or refused.
    pub(crate) fn push(&mut self, id: JobId) {
        let (now, figures) = (self.now, self.figures);
        let context = self.context_of(id);
        let granted = self.setup.contexts[context].granted;
        let granted = granted.map_or(0, |at| at.saturating_add(figures.doorbell_grant));
        if now >= granted && self.rings[context].held < figures.ring_jobs {
            self.rings[context].held += 1;
            self.job(id).push = Some(now);
            self.enter(id, Phase::Ringing, figures.doorbell_latency);
            return;
        }
        let (stream, first) = (self.job(id).stream, self.job(id).first_push);
        self.totals.streams[stream].busy += 1;
        let (retry, limit) = (figures.host_retry, figures.host_retry_limit);
        if now.saturating_add(retry) > first.saturating_add(limit) {
            self.leave(id, Status::Rejected);
            return;
        }
        self.set_phase(id, Phase::Refused);
        let (stamp, arrived) = (self.job(id).stamp, self.job(id).epoch);
        let last = first.saturating_add(limit / retry * retry);
        self.at(last, Due::Attempt(id, stamp));
        if now < granted {
            let attempts = (granted - now).div_ceil(retry);
            let at = now.saturating_add(attempts.saturating_mul(retry));
            if at < last {
                self.at(at, Due::Attempt(id, stamp));
            }
        } else {
            let refused = &mut self.rings[context].refused;
            refused.insert((now % retry, arrived), id);
        }
    }

    /// An entry of a ring is free: of the refused pushes, the one whose next attempt comes first finds it.
    pub(crate) fn wake_refused(&mut self, context: usize) {
        let (now, retry) = (self.now, self.figures.host_retry);
        let refused = &self.rings[context].refused;
        let phase = now % retry;
        // Who has just tried tries again after all others.
        let has_tried = |id: JobId| self.is_current(id, |job| job.since == now);
        let (before, behind) = (refused.range(..(phase, 0)), refused.range((phase, 0)..));
        let this_instant = refused.range((phase, 0)..(phase + 1, 0));
        let next = behind
            .chain(before)
            .find(|(_, id)| !has_tried(**id))
            .or_else(|| this_instant.into_iter().next());
        let Some((key, id)) = next.map(|(key, id)| (*key, *id)) else {
            return;
        };
        let wait = if has_tried(id) {
            retry
        } else {
            (key.0 + retry - phase) % retry
        };
        self.rings[context].refused.remove(&key);
        let stamp = self.job(id).stamp;
        self.at(now.saturating_add(wait), Due::Attempt(id, stamp));
    }

    /// Attempts of a refused push since the last one that was an event.
    pub(crate) fn count_refused(&mut self, id: JobId) {
        let (now, retry, context) = (self.now, self.figures.host_retry, self.context_of(id));
        let job = self.job(id);
        let (stream, tried, arrived) = (job.stream, job.since, job.epoch);
        // The one of this instant counts when it is refused.
        self.totals.streams[stream].busy += (now - tried).saturating_sub(1) / retry;
        self.rings[context]
            .refused
            .remove(&(tried % retry, arrived));
        self.charge(id);
    }
}
