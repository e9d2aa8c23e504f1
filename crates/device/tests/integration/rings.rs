//! Pushes to full rings, against every attempt of every job carried out.

use super::{US, ideal, job, jobs, with};
use chipless_device::{Figures, Status};
use proptest::prelude::*;

const RETRY: u64 = 70 * US;
const LIMIT: u64 = 1000 * US;
const WORK: u64 = 300 * US;

fn figures(entries: u64) -> Figures {
    Figures {
        ring_jobs: entries,
        host_retry: RETRY,
        host_retry_limit: LIMIT,
        ..ideal()
    }
}

fn text(arrivals: &[u64]) -> String {
    let mut text = "machine: npu4\ncontexts: {c: {process: 1}}\nstreams:\n".to_owned();
    for (n, at) in arrivals.iter().enumerate() {
        text.push_str(&format!(
            "  - {{name: s{n}, context: c, program: {{synthetic: {{tasks: [{{compute: {WORK}ps}}]}}}}, arrivals: {{every: 1s, count: 1, offset: {at}ps}}}}\n"
        ));
    }
    text
}

/// When each job ends, or that it is rejected, and the refused pushes of each.
fn every_attempt(arrivals: &[u64], entries: usize) -> Vec<(Option<u64>, u64)> {
    let mut attempts: Vec<(u64, usize)> = arrivals.iter().copied().zip(0..).collect();
    let (mut ends, mut found) = (Vec::new(), vec![(None, 0); arrivals.len()]);
    while let Some(first) = (0..attempts.len()).min_by_key(|n| attempts[*n]) {
        let (now, job) = attempts.remove(first);
        if ends.iter().filter(|end| **end > now).count() < entries {
            let end = ends.last().map_or(now, |last: &u64| (*last).max(now)) + WORK;
            ends.push(end);
            found[job].0 = Some(end);
        } else {
            found[job].1 += 1;
            if now + RETRY <= arrivals[job] + LIMIT {
                attempts.push((now + RETRY, job));
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn refused_pushes_come_as_if_each_was_tried(
        arrivals in prop::collection::btree_set(0u64..150, 1..14),
        entries in 1usize..4,
    ) {
        let arrivals: Vec<u64> = arrivals.into_iter().map(|at| at * 10 * US).collect();
        let expected = every_attempt(&arrivals, entries);
        let (text, figures) = (text(&arrivals), figures(entries as u64));
        let found = jobs(&text, &figures);
        let refused = with(&text, &figures, None, |s| {
            (0..arrivals.len()).map(|n| s.refused(n)).collect::<Vec<_>>()
        });
        for (n, (end, attempts)) in expected.into_iter().enumerate() {
            let record = job(&found, &format!("s{n}"), 0);
            let done = (record.status == Status::Done).then_some(record.done_ps);
            prop_assert_eq!((n, done, refused[n]), (n, end, attempts));
        }
    }
}
