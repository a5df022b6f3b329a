//! Numbers that are random, and the same everywhere.

use sparserl_core::random::SplitMix64;

/// Number `index` of the random numbers of that name.
pub(super) fn draw(stream: &str, index: usize) -> u64 {
    let seed = hash(stream.as_bytes(), EMPTY_HASH).wrapping_add(index as u64);
    SplitMix64::new(seed).bits()
}

/// A multiple of 1/128 from -1 on, less than 1: sums of products are exact in single precision.
pub(super) fn fraction(stream: &str, index: usize) -> f64 {
    (draw(stream, index) >> 56) as f64 / 128.0 - 1.0
}

/// The hash of nothing.
pub(super) const EMPTY_HASH: u64 = 0xCBF2_9CE4_8422_2325;

/// FNV-1a, going on from another hash.
pub(super) fn hash(bytes: &[u8], state: u64) -> u64 {
    bytes
        .iter()
        .fold(state, |state, &byte| (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}
