//! The one source of random numbers: the same numbers for the same seed on every machine.

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// What the state advances by: 2⁶⁴ divided by the golden ratio, made odd.
    pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// A generator that depends on `seed` only.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator after it has given `numbers` numbers: it counts, so work can begin anywhere.
    #[must_use]
    pub fn after(seed: u64, numbers: u64) -> Self {
        Self(seed.wrapping_add(Self::STEP.wrapping_mul(numbers)))
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Evenly distributed below `end`, which is not 0, up to a bias of `end` / 2⁶⁴.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }

    /// A multiple of 2⁻⁵³ in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (f64::EPSILON / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_reference_implementation() {
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        let second = random.bits();
        assert_eq!(SplitMix64::after(1_234_567, 1).bits(), second);
    }

    #[test]
    fn uniform_numbers_are_below_one() {
        let mut random = SplitMix64::new(1);
        let sum: f64 =
            (0..1000).map(|_| random.uniform()).inspect(|u| assert!((0.0..1.0).contains(u))).sum();
        assert!((sum / 1000.0 - 0.5).abs() < 0.05);
    }
}
