//! Latencies of many jobs in little memory: exact to begin with, then by buckets.

/// So many latencies are kept one by one.
const EXACT: usize = 1 << 16;
/// Significant bits of a bucket: latencies in one differ by less than 0.1 %.
const BITS: u32 = 10;

/// Latencies in picoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    count: u64,
    sum: u128,
    max: u64,
    exact: Vec<u64>,
    buckets: Vec<u64>,
}

fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    ((u64::from(shift) << BITS) + (value >> shift)) as usize
}

/// The middle of a bucket.
fn value(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket >> BITS).saturating_sub(1);
    let low = (bucket - (shift << BITS)) << shift;
    low + ((1u64 << shift) >> 1)
}

impl Latencies {
    pub(crate) fn push(&mut self, latency: u64) {
        self.count += 1;
        self.sum += u128::from(latency);
        self.max = self.max.max(latency);
        if self.buckets.is_empty() {
            self.exact.push(latency);
            if self.exact.len() > EXACT {
                for latency in std::mem::take(&mut self.exact) {
                    self.sort_in(latency);
                }
            }
        } else {
            self.sort_in(latency);
        }
    }

    fn sort_in(&mut self, latency: u64) {
        let bucket = bucket(latency);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    pub(crate) const fn sum(&self) -> u128 {
        self.sum
    }

    pub(crate) const fn max(&self) -> u64 {
        self.max
    }

    /// The smallest latency that so large a part of all does not exceed.
    pub(crate) fn quantile(&mut self, part: f64) -> u64 {
        let rank = ((part * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        if self.buckets.is_empty() {
            self.exact.sort_unstable();
            return self.exact.get(rank as usize - 1).copied().unwrap_or(0);
        }
        let mut seen = 0;
        let found = self.buckets.iter().position(|n| {
            seen += n;
            seen >= rank
        });
        found.map_or(self.max, value).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_and_then_close() {
        let mut latencies = Latencies::default();
        (1..=100u64).rev().for_each(|n| latencies.push(n));
        assert_eq!(
            [0.5, 0.9, 0.99].map(|p| latencies.quantile(p)),
            [50, 90, 99]
        );
        let mut many = Latencies::default();
        (1..=1_000_000u64).for_each(|n| many.push(n * 1000));
        for part in [0.5, 0.9, 0.99] {
            let (found, expected) = (many.quantile(part) as f64, part * 1e9);
            assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
        }
        assert_eq!((many.max(), many.mean()), (1_000_000_000, 500_000_500.0));
    }

    #[test]
    fn a_bucket_holds_its_middle() {
        for number in [0, 1, 1023, 1024, 2047, 2048, 4095, 1 << 40, u64::MAX >> 1] {
            assert_eq!(bucket(value(bucket(number))), bucket(number));
        }
    }
}
