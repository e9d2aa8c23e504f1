//! Whether two strided patterns have a byte in common, exactly.
//!
//! The bytes of pattern `A` are `a + Σ iₖ·sₖ + x` with `0 ≤ iₖ < countₖ` and `0 ≤ x < run`; those of `B` likewise. As sets,
//! strides can be taken positive (walk backwards instead) and zero strides dropped. A common byte is a solution of
//!
//! ```text
//! Σ iₖ·sₖ + Σ j'ₘ·tₘ + (x + y') = D,    j'ₘ = count − 1 − jₘ,  y' = run_B − 1 − y,
//! D = b − a + Σ (countₘ − 1)·tₘ + run_B − 1
//! ```
//!
//! in bounded non-negative integers: a bounded Diophantine equation. It is searched from the largest coefficient down;
//! what the smaller ones can add bounds each unknown to a few values, and their greatest common divisor rules out most of these.
//! The search gives up after a bounded number of steps; callers then act as if there was an overlap and say so.

use crate::access::Strided;
use smallvec::SmallVec;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overlap {
    /// No common byte.
    Disjoint,
    /// A range of bytes that both touch.
    Common(u64, u64),
    /// Not decided within the bounds of the search.
    TooHard,
}

/// Steps of the search.
const STEPS: u32 = 50_000;

/// An unknown: its coefficient, its largest value, and whether it walks `A`.
#[derive(Clone, Copy, Debug)]
struct Unknown {
    stride: i128,
    most: i128,
    first: bool,
}

/// Whether two patterns of the same buffer have a byte in common.
pub(crate) fn overlap(a: Strided<'_>, b: Strided<'_>) -> Overlap {
    let (ea, eb) = (a.extent(), b.extent());
    if ea.0 >= eb.1 || eb.0 >= ea.1 {
        return Overlap::Disjoint;
    }
    if a.swizzle == b.swizzle {
        return match logical(a, b) {
            Overlap::Common(low, high) => {
                let mut pieces = a.swizzle.pieces(low, high - low);
                pieces.next().map_or(Overlap::Disjoint, |(start, size)| {
                    Overlap::Common(start, start + size)
                })
            }
            other => other,
        };
    }
    // Run by run, of one that is turned.
    let (turned, other) = if a.swizzle.is_off() { (b, a) } else { (a, b) };
    let runs = turned.runs();
    if runs.total > u64::from(STEPS) {
        return Overlap::TooHard;
    }
    let mut found = Overlap::Disjoint;
    for (low, high) in runs {
        match overlap(Strided::contiguous(low, high), other) {
            Overlap::Disjoint => {}
            Overlap::TooHard => found = Overlap::TooHard,
            common @ Overlap::Common(..) => return common,
        }
    }
    found
}

/// Whether two patterns have a logical address in common.
fn logical(a: Strided<'_>, b: Strided<'_>) -> Overlap {
    let (ea, eb) = (a.logical_extent(), b.logical_extent());
    if ea.0 >= eb.1 || eb.0 >= ea.1 {
        return Overlap::Disjoint;
    }
    if a.is_contiguous() && b.is_contiguous() {
        return Overlap::Common(ea.0.max(eb.0) as u64, ea.1.min(eb.1) as u64);
    }
    let mut unknowns: SmallVec<[Unknown; 12]> = SmallVec::new();
    for (pattern, first) in [(a, true), (b, false)] {
        unknowns.extend(
            pattern
                .loops
                .iter()
                .filter(|l| l.stride != 0 && l.count > 1)
                .map(|l| Unknown {
                    stride: i128::from(l.stride).abs(),
                    most: i128::from(l.count) - 1,
                    first,
                }),
        );
    }
    unknowns.sort_by_key(|u| std::cmp::Reverse(u.stride));
    // All bytes of B come from its last one backwards, so that every term is added.
    let distance = eb.1 - 1 - ea.0;
    let slack = i128::from(a.run) + i128::from(b.run) - 2;
    let mut search = Search {
        unknowns: &unknowns,
        slack,
        steps: STEPS,
    };
    match search.solve(0, distance, ea.0) {
        Ok(Some((run_a, left))) => {
            let end_b = run_a + left + 1;
            let (low, high) = (
                run_a.max(end_b - i128::from(b.run)),
                end_b.min(run_a + i128::from(a.run)),
            );
            Overlap::Common(low as u64, high as u64)
        }
        Ok(None) => Overlap::Disjoint,
        Err(()) => Overlap::TooHard,
    }
}

struct Search<'u> {
    unknowns: &'u [Unknown],
    /// What `x + y'` can add.
    slack: i128,
    steps: u32,
}

impl Search<'_> {
    /// Chooses the unknowns from `level` on so that they and the slack add up to `left`. Gives the start of the run of `A`
    /// and what is left for the slack; an error when the search takes too long.
    fn solve(&mut self, level: usize, left: i128, start: i128) -> Result<Option<(i128, i128)>, ()> {
        self.steps = self.steps.checked_sub(1).ok_or(())?;
        let unknowns = self.unknowns;
        let Some((unknown, rest)) = unknowns.get(level..).and_then(|u| u.split_first()) else {
            return Ok((0..=self.slack).contains(&left).then_some((start, left)));
        };
        let divisor = rest.iter().fold(unknown.stride, |d, u| gcd(d, u.stride));
        if left < 0 || left % divisor > self.slack {
            return Ok(None);
        }
        let reach: i128 = rest.iter().map(|u| u.stride * u.most).sum::<i128>() + self.slack;
        let (low, high) = (
            ((left - reach).max(0) + unknown.stride - 1) / unknown.stride,
            (left / unknown.stride).min(unknown.most),
        );
        let mut value = low;
        while value <= high {
            let step = value * unknown.stride;
            if let Some(found) = self.solve(
                level + 1,
                left - step,
                if unknown.first { start + step } else { start },
            )? {
                return Ok(Some(found));
            }
            value += 1;
        }
        Ok(None)
    }
}

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::{Loop, Pattern, Swizzle};
    use proptest::prelude::*;

    /// Patterns in a few rows, the last of which a key may turn.
    fn pattern() -> impl Strategy<Value = (Pattern, Swizzle)> {
        (
            prop_oneof![200u64..400, 3000u64..4000],
            prop_oneof![1u64..6, 1u64..100],
            prop::collection::vec((1u64..5, -30i64..30), 0..4),
            prop_oneof![Just(0u32), 1u32..=5],
        )
            .prop_map(|(offset, run, loops, key)| {
                let loops = loops
                    .into_iter()
                    .map(|(count, stride)| Loop { count, stride });
                let swizzle = Swizzle::from_key(key).expect("key exists");
                (Pattern::new(offset, run, loops), swizzle)
            })
    }

    fn bytes(pattern: &Pattern, swizzle: Swizzle) -> std::collections::BTreeSet<u64> {
        let mut bytes = std::collections::BTreeSet::new();
        swizzle.each_piece(pattern, |start, size| bytes.extend(start..start + size));
        bytes
    }

    /// With loops that walk forwards, the shortest step first.
    fn forwards(pattern: &Pattern) -> Pattern {
        let mut loops: Vec<Loop> = pattern
            .loops
            .iter()
            .filter(|l| l.stride != 0)
            .map(|l| Loop {
                stride: l.stride.abs(),
                ..*l
            })
            .collect();
        loops.sort_by_key(|l| l.stride);
        Pattern {
            offset: pattern.extent().start as u64,
            run: pattern.run,
            loops: loops.into(),
        }
    }

    proptest! {
        #![proptest_config(chipless_rounds::cases(2000))]
        #[test]
        fn agrees_with_the_bytes((a, turned_a) in pattern(), (b, turned_b) in pattern()) {
            let (in_a, in_b) = (bytes(&a, turned_a), bytes(&b, turned_b));
            let (a, b) = (forwards(&a), forwards(&b));
            let (a, b) = (
                Strided { swizzle: turned_a, ..Strided::of(&a) },
                Strided { swizzle: turned_b, ..Strided::of(&b) },
            );
            let in_runs: std::collections::BTreeSet<u64> = a.runs().flat_map(|(low, high)| low..high).collect();
            prop_assert_eq!(&in_runs, &in_a);
            let (low, high) = a.extent();
            prop_assert!(in_a.iter().all(|byte| (low..high).contains(&i128::from(*byte))));
            match overlap(a, b) {
                Overlap::Disjoint => prop_assert!(in_a.is_disjoint(&in_b)),
                Overlap::Common(low, high) => {
                    prop_assert!(low < high);
                    prop_assert!((low..high).all(|byte| in_a.contains(&byte) && in_b.contains(&byte)));
                }
                Overlap::TooHard => prop_assert!(false, "small patterns are never too hard"),
            }
        }
    }

    #[test]
    fn interleaved_rows_of_a_large_buffer_are_disjoint() {
        let rows = |first: u64| {
            Pattern::new(
                first * 4096,
                4096,
                [Loop {
                    count: 1 << 40,
                    stride: 8192,
                }],
            )
        };
        assert_eq!(
            overlap(Strided::of(&rows(0)), Strided::of(&rows(1))),
            Overlap::Disjoint
        );
        assert_eq!(
            overlap(Strided::of(&rows(0)), Strided::of(&rows(2))),
            Overlap::Common(8192, 12288)
        );
    }
}
