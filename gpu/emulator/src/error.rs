//! What is said of PTX that the emulator does not have.

/// PTX that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {reason}")]
pub struct PtxError {
    /// Line of the text, from 1; 0 when it is about the whole.
    pub line: u32,
    /// What is wrong, in one line.
    pub reason: String,
}

impl PtxError {
    pub(crate) fn new(line: u32, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}
