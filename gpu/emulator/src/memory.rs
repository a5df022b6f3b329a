//! Device memory: named buffers, each with its rights.

/// The buffers that kernels work on.
#[derive(Debug, Default)]
pub struct Memory {
    buffers: Vec<(String, Vec<u8>)>,
}

/// A buffer of a [`Memory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub(crate) usize);

impl Memory {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer that kernels may only read.
    pub fn read_only(&mut self, name: &str, bytes: &[u8]) -> BufferId {
        self.writable(name, bytes)
    }

    /// A buffer that kernels may read and write.
    pub fn writable(&mut self, name: &str, bytes: &[u8]) -> BufferId {
        self.buffers.push((name.to_owned(), bytes.to_vec()));
        BufferId(self.buffers.len() - 1)
    }

    /// A buffer that kernels have to write before they read it.
    pub fn uninitialised(&mut self, name: &str, bytes: usize) -> BufferId {
        self.writable(name, &vec![0; bytes])
    }

    /// What a buffer holds. What was never written is 0xFF, which makes floats NaN.
    #[must_use]
    pub fn bytes(&self, buffer: BufferId) -> Vec<u8> {
        self.buffers.get(buffer.0).map(|(_, bytes)| bytes.clone()).unwrap_or_default()
    }
}
