//! What is said to be zero is zero, and weights that are multiplied by it do not count: against runs with other data.

use super::build::{INPUT, Memory, NO_MAP, ONE, OUTPUT, TABLE, Task, WEIGHTS};
use crate::dpu::Workload;
use chipless_model::Series;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes of the table and of the weights, which everybody knows.
fn is_known(offset: u64) -> bool {
    (u64::from(TABLE)..u64::from(TABLE) + 0x1_0000).contains(&offset)
}

/// The written bytes that are zero if these input channels are.
fn zeros(workload: &Workload, memory: &Memory, channels: &[bool]) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let known = |offset: u64, size: u64| {
        is_known(offset).then(|| memory.get(offset as u32, size as usize).to_vec())
    };
    workload.zeros(
        &known,
        &|bytes, visit| others(channels, bytes, visit),
        &mut |_, start, size| {
            found.extend(start..start + size);
        },
    );
    found
}

/// The bytes of these that are not known to be zero.
fn others(channels: &[bool], bytes: Range<u64>, visit: &mut dyn FnMut(Series)) {
    let is_zero = |at: &u64| {
        let within = at.checked_sub(u64::from(INPUT));
        within.is_some_and(|at| at < 64 && channels[at as usize / 2 % 16])
    };
    for at in bytes.filter(|at| !is_zero(at)) {
        visit(Series::from(at..at + 1));
    }
}

proptest! {
    #[test]
    fn zeros_are_zero(
        channels in prop::collection::vec(any::<bool>(), 16),
        weights in prop::collection::vec(prop::sample::select(vec![0.0f32, 0.0, 1.0, -2.0]), 256),
        biases in prop::collection::vec(prop::sample::select(vec![0.0f32, 0.0, 3.0]), 16),
        values in prop::collection::vec(1.0f32..4.0, 32),
        stale in (0usize..256, 1.0f32..4.0),
    ) {
        let task = Task::new().extents([2, 1, 16], [2, 1, 16]);
        let workload = task.decode().expect("decodes");
        let mut memory = Memory::zeroed();
        for (k, bias) in (0..).zip(&biases) {
            memory.put_entry(k, [WEIGHTS + 32 * k, NO_MAP, ONE, bias.to_bits()]);
        }
        memory.put_halves(WEIGHTS, &weights);
        let input = values.iter().zip(channels.iter().cycle());
        let input: Vec<f32> = input.map(|(value, zero)| if *zero { 0.0 } else { *value }).collect();
        memory.put_halves(INPUT, &input);

        let found = zeros(&workload, &memory, &channels);
        task.run(&mut memory).expect("runs");
        let output = memory.get(OUTPUT, 64).to_vec();
        for at in &found {
            prop_assert_eq!(output[(*at - u64::from(OUTPUT)) as usize], 0);
        }
        // All that follows without a look at the values is found.
        for k in 0..16 {
            let silent = weights[16 * k..16 * k + 16].iter().zip(&channels).all(|(w, zero)| *w == 0.0 || *zero);
            let start = u64::from(OUTPUT) + 2 * k as u64;
            prop_assert_eq!(found.contains(&start), silent && biases[k] == 0.0);
        }

        // A weight in doubt makes outputs doubtful but where it meets nothing but zeros; another value shows no more.
        let (place, other) = stale;
        let at = u64::from(WEIGHTS) + 2 * place as u64;
        let mut dependent = BTreeSet::new();
        let known = |offset: u64, size: u64| {
            let is_stale = offset < at + 2 && at < offset + size;
            (is_known(offset) && !is_stale).then(|| memory.get(offset as u32, size as usize).to_vec())
        };
        workload.dependence(
            &known,
            &|bytes, visit| {
                if bytes.start < at + 2 && at < bytes.end {
                    visit(Series::from(bytes.start.max(at)..bytes.end.min(at + 2)));
                }
            },
            &|_, _| {},
            Some(&|bytes, visit| others(&channels, bytes, visit)),
            &mut |_, start, size| dependent.extend(start..start + size),
            &mut |_, _| {},
        );
        prop_assert_eq!(dependent.is_empty(), channels[place % 16]);
        memory.put_halves(at as u32, &[other]);
        task.run(&mut memory).expect("runs");
        for (now, (before, at)) in memory.get(OUTPUT, 64).iter().zip(output.iter().zip(u64::from(OUTPUT)..)) {
            prop_assert!(now == before || dependent.contains(&at));
        }
    }
}
