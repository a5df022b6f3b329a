//! Bulk copies from shared memory under way.

use super::groups::Groups;

/// Bytes of a part of a copy.
pub(super) const PART: u32 = 16;

/// What a part of a copy brings.
pub(super) type Words = [u32; PART as usize / 4];

/// The copies of a warp that were issued and not waited for.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// What they read.
    pub(super) sources: Groups<Source>,
    /// What they write.
    pub(super) writes: Groups<Write>,
}

/// What a part of a copy reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// Who has issued it, and where.
    pub(super) counter: u32,
    pub(super) lane: usize,
    /// In shared memory.
    pub(super) offset: usize,
    pub(super) words: Words,
}

/// What a part of a copy writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) counter: u32,
    pub(super) lane: usize,
    /// In global memory.
    pub(super) address: u64,
    /// Nothing of a reduction, which has changed memory already.
    pub(super) words: Option<Words>,
}
