//! The front end: from PTX text to code.

use crate::code::Kernel;

/// A PTX module.
#[derive(Clone, Debug)]
pub struct Module {}

impl Module {
    /// Reads a module's text.
    ///
    /// # Errors
    /// When it is no PTX. Instructions are looked at when a kernel is asked for.
    pub fn parse(text: &str) -> Result<Self, PtxError> {
        let _ = text;
        Ok(Self {})
    }

    /// Names of the kernels (`.entry`), as they are written.
    #[must_use]
    pub fn kernels(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Makes a kernel ready to run.
    ///
    /// # Errors
    /// When there is none of that name, or when it uses an instruction or a feature that the emulator does not have;
    /// the error names it.
    pub fn kernel(&self, name: &str) -> Result<Kernel, PtxError> {
        Err(PtxError { line: 0, reason: format!("no kernel `{name}`") })
    }
}

/// PTX that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {reason}")]
pub struct PtxError {
    /// Line of the text, from 1; 0 when it is about the whole.
    pub line: u32,
    /// What is wrong, in one line.
    pub reason: String,
}
