//! Who accessed a place, when and how, in one word.

/// Who accessed a place, when and how; or nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp(pub(crate) u64);

const EPOCH_BITS: u32 = 23;
/// Stands for an epoch where an access is under way: nothing that is done comes after it.
const UNDER_WAY: u32 = (1 << EPOCH_BITS) - 1;
/// Of the last epoch that is told apart; later ones are taken for it.
const LAST_EPOCH: u32 = UNDER_WAY - 1;
/// Strong accesses of that time lie half an epoch before.
const PAST_TELLING: u32 = LAST_EPOCH - 1;
const THREAD_BITS: u32 = 10;
const BLOCK_BITS: u32 = 24;
/// Blocks that a grid may have.
pub(crate) const MOST_BLOCKS: u64 = 1 << BLOCK_BITS;
const BYTES_SHIFT: u32 = EPOCH_BITS + THREAD_BITS + BLOCK_BITS;
/// Atomic to the block only.
const OF_BLOCK: u64 = 1 << 61;
const STRONG: u64 = 1 << 62;
const SOMEBODY: u64 = 1 << 63;

impl Stamp {
    /// An access by a thread of a block.
    #[inline]
    pub(crate) fn new(block: u32, thread: u32, epoch: u32, strong: bool) -> Self {
        let strong = if strong { STRONG } else { 0 };
        let (block, thread) = (u64::from(block), u64::from(thread));
        let epoch = u64::from(epoch.min(LAST_EPOCH));
        Self(SOMEBODY | strong | block << (EPOCH_BITS + THREAD_BITS) | thread << EPOCH_BITS | epoch)
    }

    /// With the epoch of weak accesses at the same time, which no fence before them releases. Those
    /// of strong ones lie half an epoch before.
    pub(crate) fn in_full_epoch(self) -> Self {
        let is_early = self.is_strong() && self.epoch() < LAST_EPOCH;
        Self(self.0 + u64::from(is_early))
    }

    /// Of what a thread has issued and nobody has waited for: not even what that thread does next
    /// comes after it.
    pub(crate) fn under_way(self) -> Self {
        Self(self.0 | u64::from(UNDER_WAY))
    }

    /// Whether nobody has waited for it.
    #[inline]
    pub(crate) fn is_under_way(self) -> bool {
        self.epoch() == UNDER_WAY
    }

    /// Whether its epoch is one of the last, which are no longer told apart.
    #[inline]
    pub(crate) fn is_past_telling(self) -> bool {
        matches!(self.epoch(), PAST_TELLING..=LAST_EPOCH)
    }

    /// Of these bytes of a word (a bit for each).
    #[inline]
    pub(crate) fn of_bytes(self, bytes: u32) -> Self {
        Self(self.0 | u64::from(bytes & 0xF) << BYTES_SHIFT)
    }

    /// Of a strong access: strong to threads of its block only.
    #[inline]
    pub(crate) fn of_block(self) -> Self {
        Self(self.0 | OF_BLOCK)
    }

    /// Whether both are strong to each other.
    #[inline]
    pub(crate) fn is_atomic_to(self, other: Self) -> bool {
        self.is_strong()
            && other.is_strong()
            && ((self.0 | other.0) & OF_BLOCK == 0 || self.block() == other.block())
    }

    #[inline]
    pub(crate) fn is_somebody(self) -> bool {
        self.0 & SOMEBODY != 0
    }

    #[inline]
    pub(crate) fn is_strong(self) -> bool {
        self.0 & STRONG != 0
    }

    #[inline]
    pub(crate) fn bytes(self) -> u32 {
        (self.0 >> BYTES_SHIFT) as u32 & 0xF
    }

    #[inline]
    pub(crate) fn block(self) -> u32 {
        (self.0 >> (EPOCH_BITS + THREAD_BITS)) as u32 & ((1 << BLOCK_BITS) - 1)
    }

    #[inline]
    pub(crate) fn thread(self) -> u32 {
        (self.0 >> EPOCH_BITS) as u32 & ((1 << THREAD_BITS) - 1)
    }

    #[inline]
    pub(crate) fn epoch(self) -> u32 {
        self.0 as u32 & UNDER_WAY
    }

    #[inline]
    pub(crate) fn same_thread(self, other: Self) -> bool {
        const WHO: u64 = ((1 << (THREAD_BITS + BLOCK_BITS)) - 1) << EPOCH_BITS;
        (self.0 ^ other.0) & WHO == 0
    }

    #[inline]
    pub(crate) fn same_warp(self, other: Self) -> bool {
        const WHO: u64 = ((1 << (THREAD_BITS + BLOCK_BITS - 5)) - 1) << (EPOCH_BITS + 5);
        (self.0 ^ other.0) & WHO == 0
    }
}
