//! What the accesses of a warp cost: sectors of device memory, conflicts of shared memory's banks.

use super::lanes::lanes_of;
use crate::code::WARP;

/// 32-byte sectors that the lanes of one access touch. No access is larger than a sector or crosses
/// one.
pub(crate) fn sectors(addresses: &[u64; WARP], lanes: u32) -> u64 {
    distinct(lanes_of(lanes).map(|lane| addresses[lane] >> 5))
}

/// Cycles that shared memory needs beyond the least for an access of `bytes` by each lane.
///
/// There are 32 banks of 4 bytes. Lanes are served together as long as they want 128 bytes: 32 of
/// them for accesses of up to 4 bytes, 16 for 8 bytes, 8 for 16 bytes. Within such a set, each bank
/// gives one word a cycle.
pub(crate) fn bank_conflicts(addresses: &[u64; WARP], lanes: u32, bytes: u32) -> u64 {
    let together = WARP / (bytes as usize / 4).clamp(1, 4);
    let words = u64::from(bytes / 4).max(1);
    let set = u32::MAX >> (WARP - together);
    let first_lanes = (0..WARP).step_by(together);
    first_lanes.map(|first| conflicts(addresses, lanes & set << first, words)).sum()
}

fn conflicts(addresses: &[u64; WARP], lanes: u32, words: u64) -> u64 {
    let wanted = || {
        let firsts = lanes_of(lanes).map(|lane| addresses[lane] / 4);
        firsts.flat_map(move |first| first..first + words)
    };
    let (Some(least), Some(most)) = (wanted().min(), wanted().max()) else { return 0 };
    // Within 32 neighbouring words there is one for each bank.
    if most - least < 32 {
        return 0;
    }
    let mut sorted = [u64::MAX; WARP];
    let mut count = 0;
    for (to, word) in sorted.iter_mut().zip(wanted()) {
        *to = word;
        count += 1;
    }
    let sorted = &mut sorted[..count];
    sorted.sort_unstable();
    let mut of_bank = [0_u64; 32];
    let mut last = None;
    for &word in sorted.iter() {
        if last != Some(word) {
            of_bank[word as usize % 32] += 1;
        }
        last = Some(word);
    }
    of_bank.iter().max().copied().unwrap_or(1).saturating_sub(1)
}

fn distinct(keys: impl Iterator<Item = u64>) -> u64 {
    let mut buffer = [0_u64; WARP];
    let mut count = 0;
    let mut ascends = true;
    for (to, key) in buffer.iter_mut().zip(keys) {
        *to = key;
        count += 1;
    }
    let keys = &mut buffer[..count];
    for pair in keys.windows(2) {
        ascends &= pair[0] <= pair[1];
    }
    if !ascends {
        keys.sort_unstable();
    }
    let changes = keys.windows(2).filter(|pair| pair[0] != pair[1]).count();
    (changes + usize::from(count > 0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(stride: u64) -> [u64; WARP] {
        std::array::from_fn(|lane| 4096 + lane as u64 * stride)
    }

    #[test]
    fn sectors_are_counted_once() {
        assert_eq!(sectors(&strided(4), u32::MAX), 4);
        assert_eq!(sectors(&strided(8), u32::MAX), 8);
        assert_eq!(sectors(&strided(128), u32::MAX), 32);
        assert_eq!(sectors(&strided(0), u32::MAX), 1);
        assert_eq!(sectors(&strided(4), 0xFF), 1);
        assert_eq!(sectors(&strided(4), 0), 0);
        let mut scattered = strided(32);
        scattered.reverse();
        scattered[7] = scattered[20];
        assert_eq!(sectors(&scattered, u32::MAX), 31);
    }

    #[test]
    fn lanes_that_want_words_of_one_bank_wait() {
        assert_eq!(bank_conflicts(&strided(4), u32::MAX, 4), 0);
        assert_eq!(bank_conflicts(&strided(0), u32::MAX, 4), 0, "a broadcast");
        assert_eq!(bank_conflicts(&strided(8), u32::MAX, 4), 1);
        assert_eq!(bank_conflicts(&strided(128), u32::MAX, 4), 31);
        assert_eq!(bank_conflicts(&strided(132), u32::MAX, 4), 0, "padded");
        assert_eq!(bank_conflicts(&strided(8), u32::MAX, 8), 0);
        assert_eq!(bank_conflicts(&strided(16), u32::MAX, 8), 2);
        assert_eq!(bank_conflicts(&strided(16), u32::MAX, 16), 0);
        assert_eq!(bank_conflicts(&strided(128), 0b11, 4), 1);
    }
}
