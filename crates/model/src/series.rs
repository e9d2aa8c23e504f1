//! Runs of one size, each as far from the one before: what pads the pixels of a tensor, for example.

use crate::access::{Loop, Pattern};
use std::ops::Range;

/// Runs of bytes that are alike, in order, none of which touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// First byte of the first run.
    pub start: u64,
    /// Bytes of each run.
    pub size: u64,
    /// Bytes from the start of a run to that of the next one; 0 where there is one run.
    pub stride: u64,
    /// How many runs there are.
    pub count: u64,
}

impl Series {
    /// The runs.
    pub fn runs(self) -> impl Iterator<Item = Range<u64>> {
        (0..self.count).map(move |index| {
            let start = self.start + index * self.stride;
            start..start + self.size
        })
    }

    /// The first runs, so many of them, and the others.
    #[must_use]
    pub fn split_at(self, count: u64) -> (Series, Series) {
        let first = Series { count, ..self };
        let others = Series {
            start: self.start + count * self.stride,
            count: self.count - count,
            ..self
        };
        (first, others)
    }

    /// One past its last byte.
    pub fn end(self) -> u64 {
        self.start + self.count.saturating_sub(1) * self.stride + self.size
    }
}

impl From<Range<u64>> for Series {
    fn from(run: Range<u64>) -> Series {
        Series {
            start: run.start,
            size: run.end - run.start,
            stride: 0,
            count: 1,
        }
    }
}

impl From<Series> for Pattern {
    fn from(series: Series) -> Pattern {
        let Series {
            start,
            size,
            stride,
            count,
        } = series;
        if count == 1 {
            return Pattern::contiguous(start, size);
        }
        let stride = stride as i64;
        Pattern::new(start, size, [Loop { count, stride }])
    }
}

/// Makes series of runs that come in order. Runs that touch become one.
#[derive(Debug, Default)]
pub struct SeriesBuilder {
    /// What more may be added to.
    last: Option<Series>,
}

impl SeriesBuilder {
    /// Adds a run; tells the series that it does not continue.
    pub fn add(&mut self, run: Range<u64>, mut visit: impl FnMut(Series)) {
        let new = Series::from(run);
        let Some(last) = &mut self.last else {
            self.last = Some(new);
            return;
        };
        if new.start == last.end() {
            let (before, one) = last.split_at(last.count - 1);
            if before.count > 0 {
                visit(before);
            }
            *last = Series::from(one.start..one.end() + new.size);
        } else if new.size == last.size && last.count == 1 {
            (last.stride, last.count) = (new.start - last.start, 2);
        } else if new.size == last.size && new.start == last.start + last.count * last.stride {
            last.count += 1;
        } else {
            visit(*last);
            *last = new;
        }
    }

    /// Adds several runs at once.
    pub fn add_all(&mut self, new: Series, mut visit: impl FnMut(Series)) {
        let (first, others) = new.split_at(1);
        self.add(first.start..first.end(), &mut visit);
        if others.count == 0 {
            return;
        }
        match &mut self.last {
            Some(last) if (last.start, last.size, last.count) == (new.start, new.size, 1) => {
                *last = new;
            }
            Some(last) if (last.size, last.stride) == (new.size, new.stride) => {
                last.count += others.count;
            }
            last => {
                last.replace(others).into_iter().for_each(visit);
            }
        }
    }

    /// Adds so many runs again that came last, the first of them `period` bytes behind the first of those. Whether it did: they must be all that
    /// the last period holds, as far from each other as from what follows.
    pub fn repeat(&mut self, count: u64, period: u64) -> bool {
        let last = self.last.as_mut();
        let last = last.filter(|last| last.count >= count && last.stride * count == period);
        last.is_some_and(|last| {
            last.count += count;
            count > 0
        })
    }

    /// What has not been told yet.
    pub fn take(&mut self) -> Option<Series> {
        self.last.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn series_hold_the_same_bytes(steps in prop::collection::vec((0u64..4, 1u64..4, 1u64..5), 0..30)) {
            let (mut builder, mut told, mut want, mut at) = (SeriesBuilder::default(), Vec::new(), Vec::new(), 0);
            for (gap, size, count) in steps {
                let new = Series { start: at + gap, size, stride: size + gap + 1, count };
                at = new.end();
                want.extend(new.runs().flatten());
                if count == 1 {
                    builder.add(new.start..at, |series| told.push(series));
                } else {
                    builder.add_all(new, |series| told.push(series));
                }
            }
            told.extend(builder.take());
            let got: Vec<u64> = told.iter().flat_map(|series| series.runs()).flatten().collect();
            prop_assert_eq!(&got, &want);
            let of_patterns: Vec<u64> = told.iter().flat_map(|series| {
                let pattern = Pattern::from(*series);
                pattern.runs().flat_map(|at| at..at + pattern.run).collect::<Vec<_>>()
            }).collect();
            prop_assert_eq!(of_patterns, want);
        }

        #[test]
        fn runs_at_one_distance_are_one_series(start in 0u64..99, size in 1u64..9, gap in 1u64..9, count in 2u64..20) {
            let series = Series { start, size, stride: size + gap, count };
            let mut builder = SeriesBuilder::default();
            series.runs().for_each(|run| builder.add(run, |_| unreachable!("none is told before the end")));
            prop_assert_eq!(builder.take(), Some(series));
        }
    }
}
