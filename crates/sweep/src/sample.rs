//! Which values a run has, by its number: a grid, random points, or a Latin hypercube.

use chipless_model::SplitMix64;

/// A value of a figure or an option.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Flag(bool),
    Whole(i64),
    Number(f64),
    Text(String),
}

impl Value {
    /// As `--set` and the options take it.
    pub(crate) fn text(&self) -> String {
        match self {
            Value::Flag(flag) => flag.to_string(),
            Value::Whole(number) => number.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Text(text) => text.clone(),
        }
    }
}

/// What varies: the values of one figure or option.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    List(Vec<Value>),
    Range(Range),
}

/// Numbers between two ends, both included.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// How many a grid has.
    pub(crate) steps: u64,
    pub(crate) is_log: bool,
    /// Whether they are rounded.
    pub(crate) is_whole: bool,
}

impl Range {
    /// The number at this place, from 0 to 1.
    fn at(&self, place: f64) -> Value {
        let number = if place <= 0.0 {
            self.from
        } else if place >= 1.0 {
            self.to
        } else if self.is_log {
            (self.from.ln() + (self.to.ln() - self.from.ln()) * place).exp()
        } else {
            self.from + (self.to - self.from) * place
        };
        if self.is_whole {
            Value::Whole(number.round() as i64)
        } else {
            Value::Number(number)
        }
    }
}

impl Values {
    /// How many a grid has.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Values::List(values) => values.len() as u64,
            Values::Range(range) => range.steps,
        }
    }

    /// One of a grid.
    fn step(&self, index: u64) -> Value {
        match self {
            Values::List(values) => values[index as usize].clone(),
            Values::Range(range) if range.steps < 2 => range.at(0.0),
            Values::Range(range) => range.at(index as f64 / (range.steps - 1) as f64),
        }
    }

    /// The value at this place, from 0 to 1 (without): every value of a list has the same share.
    fn at(&self, place: f64) -> Value {
        match self {
            Values::List(values) => {
                let index = (place * values.len() as f64) as usize;
                values[index.min(values.len() - 1)].clone()
            }
            Values::Range(range) => range.at(place),
        }
    }
}

/// How runs are spread over the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sample {
    /// Every combination, the last dimension fastest.
    Grid,
    /// Independent points.
    Random { count: u64, seed: u64 },
    /// Points of which each has a stratum of every dimension for itself.
    LatinHypercube { count: u64, seed: u64 },
}

impl Sample {
    /// Points for each program; `None` beyond 2^64.
    pub(crate) fn count(self, dimensions: &[Values]) -> Option<u64> {
        match self {
            Sample::Grid => dimensions
                .iter()
                .try_fold(1u64, |n, d| n.checked_mul(d.count())),
            Sample::Random { count, .. } | Sample::LatinHypercube { count, .. } => Some(count),
        }
    }

    /// The point of a number.
    pub(crate) fn point(self, dimensions: &[Values], index: u64) -> Vec<Value> {
        match self {
            Sample::Grid => {
                let mut rest = index;
                let mut point: Vec<Value> = dimensions
                    .iter()
                    .rev()
                    .map(|values| {
                        let value = values.step(rest % values.count());
                        rest /= values.count();
                        value
                    })
                    .collect();
                point.reverse();
                point
            }
            Sample::Random { seed, .. } => dimensions
                .iter()
                .enumerate()
                .map(|(d, values)| values.at(unit(seed, d, index)))
                .collect(),
            Sample::LatinHypercube { count, seed } => dimensions
                .iter()
                .enumerate()
                .map(|(d, values)| {
                    let stratum = permuted(count, seed ^ mixed(d as u64), index);
                    values.at((stratum as f64 + unit(seed, d, index)) / count as f64)
                })
                .collect(),
        }
    }
}

fn mixed(number: u64) -> u64 {
    SplitMix64(number).number()
}

/// A number from 0 to 1 (without), of a seed, a dimension and a point.
fn unit(seed: u64, dimension: usize, index: u64) -> f64 {
    let mut random = SplitMix64(mixed(seed) ^ mixed(!(dimension as u64)));
    random.skip(index);
    (random.number() >> 11) as f64 / (1u64 << 53) as f64
}

/// Where a permutation of the numbers below `count` takes `index`: a Feistel network over a square that holds them, walked until it is among
/// them (Black and Rogaway, *Ciphers with arbitrary finite domains*, 2002). No table, so that any machine finds any point alone.
fn permuted(count: u64, seed: u64, index: u64) -> u64 {
    let mut side = (count as f64).sqrt() as u64;
    while side.saturating_mul(side) < count {
        side += 1;
    }
    let mut at = index;
    loop {
        let (mut left, mut right) = (at / side, at % side);
        for round in 0..4u64 {
            let next = (left + mixed(seed ^ mixed(right.wrapping_add(round << 56))) % side) % side;
            (left, right) = (right, next);
        }
        at = left * side + right;
        if at < count {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: f64, to: f64, steps: u64, is_log: bool) -> Values {
        Values::Range(Range {
            from,
            to,
            steps,
            is_log,
            is_whole: false,
        })
    }

    #[test]
    fn a_grid_has_every_combination_the_last_dimension_fastest() {
        let list = Values::List(vec![Value::Whole(1), Value::Whole(2)]);
        let dimensions = [list, range(1.0, 100.0, 3, true)];
        assert_eq!(Sample::Grid.count(&dimensions), Some(6));
        let all: Vec<_> = (0..6).map(|i| Sample::Grid.point(&dimensions, i)).collect();
        let Value::Number(middle) = all[1][1] else {
            panic!("{all:?}")
        };
        assert!((middle - 10.0).abs() < 1e-9);
        assert_eq!(all[2], [Value::Whole(1), Value::Number(100.0)]);
        assert_eq!(all[3], [Value::Whole(2), Value::Number(1.0)]);
    }

    #[test]
    fn a_permutation_takes_every_number_once() {
        for count in [1, 2, 3, 20, 97, 1000] {
            let mut seen: Vec<u64> = (0..count).map(|i| permuted(count, 7, i)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..count), "{count}");
        }
    }

    #[test]
    fn a_latin_hypercube_has_one_point_in_each_stratum() {
        let dimensions = [range(0.0, 50.0, 1, false), range(0.0, 50.0, 1, false)];
        let sample = Sample::LatinHypercube { count: 50, seed: 3 };
        for dimension in 0..2 {
            let mut strata: Vec<u64> = (0..50)
                .map(|i| match sample.point(&dimensions, i)[dimension] {
                    Value::Number(number) => number as u64,
                    _ => panic!("a number"),
                })
                .collect();
            strata.sort_unstable();
            assert!(strata.into_iter().eq(0..50));
        }
        assert_ne!(sample.point(&dimensions, 0), sample.point(&dimensions, 1));
    }
}
