use super::*;
use proptest::prelude::*;

/// Every byte touched, by the definition of a pattern.
fn places(pattern: &Pattern) -> Vec<usize> {
    let mut starts = vec![pattern.offset as i64];
    for l in &pattern.loops {
        starts = (0..l.count as i64)
            .flat_map(|i| {
                starts
                    .iter()
                    .map(move |s| s + i * l.stride)
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    starts
        .into_iter()
        .flat_map(|start| (0..pattern.run).map(move |b| (start as u64 + b) as usize))
        .collect()
}

fn naive(source: &[u8], from: &Pattern, destination: &mut [u8], to: &Pattern) {
    for (read, write) in places(from).into_iter().zip(places(to)) {
        destination[write] = source[read];
    }
}

fn bytes(size: usize) -> Vec<u8> {
    (0..size as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// A pattern over the given counts, the innermost (the run) first. Loops with a stride of `None` lie side by side around
/// what is inside them.
fn pattern(counts: &[u64], strides: &[Option<i64>], offset: u64) -> Pattern {
    let mut loops = Vec::new();
    let mut span = counts[0] as i64;
    for (count, stride) in counts[1..].iter().zip(strides) {
        let stride = stride.unwrap_or(span);
        loops.push(Loop {
            count: *count,
            stride,
        });
        span = span.max(stride.abs() * *count as i64);
    }
    // Room for the loops that walk backwards.
    let low: i64 = loops
        .iter()
        .filter(|l| l.count > 0)
        .map(|l| (l.stride * (l.count as i64 - 1)).min(0))
        .sum();
    Pattern {
        offset: offset + low.unsigned_abs(),
        run: counts[0],
        loops: loops.into(),
    }
}

fn strides() -> impl Strategy<Value = Vec<Option<i64>>> {
    prop::collection::vec(
        prop_oneof![3 => Just(None), 3 => (-70_i64..70).prop_map(Some), 1 => Just(Some(0))],
        8,
    )
}

/// Two patterns of the same number of bytes, nested differently.
fn pair() -> impl Strategy<Value = (Pattern, Pattern)> {
    let counts = prop::collection::vec(
        prop_oneof![1 => 0_u64..2, 8 => 1_u64..6, 2 => 6_u64..40],
        1..5,
    );
    let index = any::<prop::sample::Index>;
    (
        counts,
        index(),
        index(),
        strides(),
        strides(),
        any::<[bool; 2]>(),
        0_u64..9,
        0_u64..9,
    )
        .prop_filter("small enough for the naive walk", |(counts, ..)| {
            counts.iter().product::<u64>() < 20_000
        })
        .prop_map(|(counts, split, merge, a, b, [reorder, narrow], x, y)| {
            let mut left = counts.clone();
            let mut right = counts;
            // Two levels of one side in one; its levels in another order; a level of the other side cut in two.
            if right.len() > 1 {
                let at = merge.index(right.len() - 1);
                let outer = right.remove(at + 1);
                right[at] *= outer;
            }
            if reorder {
                right.reverse();
            }
            if narrow {
                let at = split.index(left.len());
                if let Some(factor) = (2..6).find(|f| left[at] % f == 0) {
                    left[at] /= factor;
                    left.insert(at, factor);
                }
                left.insert(0, 1);
            }
            (pattern(&left, &a, x), pattern(&right, &b, y))
        })
}

fn end(pattern: &Pattern) -> usize {
    pattern.extent().end as usize
}

proptest! {
    #![proptest_config(chipless_rounds::cases(4000))]

    #[test]
    fn copies_as_the_naive_walk((from, to) in pair(), slack in 0_usize..3) {
        let source = bytes(end(&from) + slack);
        let mut want = vec![0xEE; end(&to) + slack];
        let mut got = want.clone();
        naive(&source, &from, &mut want, &to);
        copy(&source, &from, &mut got, &to).unwrap();
        prop_assert_eq!(&got, &want);

        let mut packed = vec![1, 2, 3];
        gather(&source, &from, &mut packed).unwrap();
        prop_assert_eq!(&packed[3..], places(&from).iter().map(|p| source[*p]).collect::<Vec<_>>());
        got.fill(0xEE);
        scatter(&packed[3..], &mut got, &to).unwrap();
        prop_assert_eq!(&got, &want);
    }

    #[test]
    fn copies_within_one_buffer_as_if_all_were_read_first((from, to) in pair(), shift in 0_u64..200) {
        for (from, to) in [(from.shifted(shift as i64).unwrap(), to.clone()), (from, to.shifted(shift as i64).unwrap())] {
            let mut got = bytes(end(&from).max(end(&to)));
            let source = got.clone();
            let mut want = got.clone();
            naive(&source, &from, &mut want, &to);
            copy_within(&mut got, &from, &to).unwrap();
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn fills_as_the_naive_walk((_, to) in pair(), size in 1_usize..9) {
        let element = bytes(size);
        let mut got = vec![0xEE; end(&to)];
        let mut want = got.clone();
        let places = places(&to);
        for (i, place) in places.iter().enumerate() {
            want[*place] = element[i % size];
        }
        let result = fill(&element, &mut got, &to);
        if places.len().is_multiple_of(size) {
            result.unwrap();
            prop_assert_eq!(got, want);
        } else {
            prop_assert!(result.is_err());
        }
    }

    /// Transposes of units of all sizes, at strides that leave gaps.
    #[test]
    fn transposes(unit in prop::sample::select(vec![1_u64, 2, 3, 4, 8, 16, 32, 64]), rows in 1_u64..70, columns in 1_u64..70,
                  gaps in any::<[bool; 2]>(), outer in 1_u64..3) {
        let source_row = (columns * unit + 5 * u64::from(gaps[0])) as i64;
        let destination_row = (rows * unit + 3 * u64::from(gaps[1])) as i64;
        let from = Pattern::new(0, unit, [
            Loop { count: rows, stride: source_row },
            Loop { count: columns, stride: unit as i64 },
            Loop { count: outer, stride: source_row * rows as i64 },
        ]);
        let to = Pattern::new(1, rows * unit, [
            Loop { count: columns, stride: destination_row },
            Loop { count: outer, stride: destination_row * columns as i64 },
        ]);
        let source = bytes(end(&from));
        let mut want = vec![0xEE; end(&to)];
        let mut got = want.clone();
        naive(&source, &from, &mut want, &to);
        copy(&source, &from, &mut got, &to).unwrap();
        prop_assert_eq!(&got, &want);
        // And back, where the source is contiguous and the destination scattered.
        let mut back = vec![0xEE; source.len()];
        let mut want = back.clone();
        naive(&got, &to, &mut want, &from);
        copy(&got, &to, &mut back, &from).unwrap();
        prop_assert_eq!(back, want);
    }

    #[test]
    fn gathers_runs_of_any_length(run in 1_u64..300, count in 1_u64..20, gap in 0_i64..100, outer in 1_u64..12, backwards in any::<bool>()) {
        let stride = run as i64 + gap;
        let (stride, offset) = if backwards { (-stride, (stride * (count as i64 - 1)) as u64) } else { (stride, 0) };
        let from = Pattern::new(offset, run, [Loop { count, stride }, Loop { count: outer, stride: 7 }]);
        let source = bytes(end(&from));
        let mut packed = Vec::new();
        gather(&source, &from, &mut packed).unwrap();
        prop_assert_eq!(packed, places(&from).iter().map(|p| source[*p]).collect::<Vec<_>>());
    }
}

#[test]
fn any_number_of_loops_is_walked() {
    let loops = |stride: i64| {
        (0..9)
            .map(|i| Loop {
                count: 2,
                stride: stride << (2 * i),
            })
            .collect::<Vec<_>>()
    };
    let nine = Pattern {
        offset: 0,
        run: 1,
        loops: loops(1).into(),
    };
    let wider = Pattern {
        offset: 1,
        run: 1,
        loops: loops(2).into(),
    };
    let mut ten = nine.clone();
    ten.loops.push(Loop {
        count: 3,
        stride: 1,
    });
    // Runs of 3 and of 2 do not divide each other.
    let threes = Pattern {
        offset: 0,
        run: 3,
        loops: [Loop {
            count: 512,
            stride: 4,
        }]
        .into_iter()
        .collect(),
    };
    let source = bytes(end(&wider).max(end(&ten)));
    for (from, to) in [
        (&nine, &wider),
        (&wider, &nine),
        (&ten, &threes),
        (&threes, &ten),
    ] {
        let mut want = vec![0; source.len()];
        let mut got = want.clone();
        naive(&source, from, &mut want, to);
        copy(&source, from, &mut got, to).unwrap();
        assert_eq!(got, want);
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let (source, mut destination) = (bytes(100), vec![0; 100]);
    let ten = Pattern::contiguous(0, 10);
    let error = copy(
        &source,
        &Pattern::contiguous(95, 10),
        &mut destination,
        &ten,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "source: the pattern touches bytes 95 to 105 of a buffer of 100 bytes"
    );
    let back = Pattern::new(
        5,
        1,
        [Loop {
            count: 10,
            stride: -1,
        }],
    );
    let error = copy(&source, &ten, &mut destination, &back).unwrap_err();
    assert_eq!(
        error.to_string(),
        "destination: the pattern touches bytes -4 to 6 of a buffer of 100 bytes"
    );
    let error = copy(&source, &ten, &mut destination, &Pattern::contiguous(0, 11)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the source enumerates 10 bytes, the destination 11"
    );
    let endless = Pattern {
        offset: 0,
        run: 1,
        loops: [Loop {
            count: u64::MAX,
            stride: 0,
        }; 2]
            .into_iter()
            .collect(),
    };
    assert!(copy(&source, &endless, &mut destination, &endless).is_err());
    assert!(fill(&[], &mut destination, &ten).is_err());
    assert_eq!(destination, vec![0; 100]);
    assert!(fill(&[], &mut destination, &Pattern::contiguous(0, 0)).is_ok());
    // An empty pattern touches nothing, wherever it is.
    assert!(
        copy(
            &[],
            &Pattern::contiguous(7, 0),
            &mut [],
            &Pattern::new(
                u64::MAX,
                5,
                [Loop {
                    count: 0,
                    stride: 9
                }]
            )
        )
        .is_ok()
    );
}

#[test]
fn repeats_without_effect_take_no_time_and_no_memory() {
    let forever = Pattern::new(
        3,
        1,
        [Loop {
            count: 1 << 60,
            stride: 0,
        }],
    );
    let source = bytes(10);
    let mut got = source.clone();
    copy(&source, &forever, &mut got, &forever.shifted(1).unwrap()).unwrap();
    assert_eq!(got[4], source[3]);
    copy_within(&mut got, &forever, &forever.shifted(2).unwrap()).unwrap();
    assert_eq!(got[5], source[3]);
    assert_eq!(
        gather(&source, &forever, &mut Vec::new()),
        Err(Error::Memory { bytes: 1 << 60 })
    );
}
