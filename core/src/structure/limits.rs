//! How far layouts that pad go, and so how far it is worth counting.

/// Most diagonals of a `dia` part.
pub const MAX_DIAGONALS: usize = 64;
/// Padding that a layout may hold.
pub const MAX_PADDING: PaddingLimit = PaddingLimit { factor: 4, free: 4096 };

/// How many slots a padded layout may store for its entries: `factor · nnz + free`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaddingLimit {
    /// Slots per entry.
    pub factor: u64,
    /// Slots that are always allowed, for tiny matrices.
    pub free: u64,
}

impl PaddingLimit {
    /// True when so many slots may be stored.
    #[must_use]
    pub fn bears(self, slots: u64, nnz: usize) -> bool {
        slots <= self.factor * nnz as u64 + self.free
    }

    /// The limit with twice the room.
    pub(crate) fn doubled(self) -> Self {
        Self { factor: 2 * self.factor, free: 2 * self.free }
    }
}
