//! Numbers that look random and are the same on every machine and in every version.

/// `SplitMix64` (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, 2014). The field is its state: a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// What the state grows by with each number, so that any number of them is one step.
    pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The next number.
    #[inline]
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(SplitMix64::STEP);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Passes over so many numbers.
    pub const fn skip(&mut self, numbers: u64) {
        self.0 = self.0.wrapping_add(SplitMix64::STEP.wrapping_mul(numbers));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the reference implementation (`splitmix64.c` by Sebastiano Vigna) for the seed 1234567.
    #[test]
    fn numbers_of_the_reference() {
        let mut random = SplitMix64(1_234_567);
        let first: [u64; 3] = std::array::from_fn(|_| random.number());
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
        let mut skipped = SplitMix64(1_234_567);
        skipped.skip(2);
        assert_eq!(skipped.number(), first[2]);
    }
}
