/// Threads of a block: 64, 128, 256 or 512.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockSize(u32);

impl BlockSize {
    /// Sizes in the order that the grammar offers them. 1024 is left out: it would hold a thread
    /// to 64 registers and make wide f64 parts spill.
    pub const ALL: [Self; 4] = [Self(256), Self(128), Self(64), Self(512)];

    /// The size of so many threads; `None` where blocks of programs have no such size.
    #[must_use]
    pub fn of(threads: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|size| size.0 == threads)
    }

    /// The number of threads.
    #[must_use]
    pub fn threads(self) -> u32 {
        self.0
    }
}
