//! Processes that serve requests, for work that must not take its caller down: hostile sources can
//! hang or crash a compiler, and a faulting kernel leaves a CUDA context unusable.
//!
//! ```text
//! ServingProcess (parent) ── frame: request, blobs ──► Connection (child)
//!                 ◄── frame: answer, blobs ───
//! ```
//!
//! The two talk over a `channel`. The end of the child's standard error is kept for messages.

mod channel;
mod connection;
mod frame;
mod serving_process;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) use connection::Connection;
pub(crate) use serving_process::{Limits, ServingError, ServingProcess};

/// How to start a serving process: a program and its leading arguments. The role follows as the
/// last arguments, and the program hands it to [`serve`](crate::serve::serve).
#[derive(Clone, Debug)]
pub struct ServerCommand {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: &'static [(&'static str, &'static str)],
}

/// Keeps what was freed for the next allocation (`mallopt(3)`).
const KEEPING_FREED_MEMORY: [(&str, &str); 3] = [
    ("MALLOC_TRIM_THRESHOLD_", "1073741824"),
    // The most that glibc takes.
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    ("MALLOC_TOP_PAD_", "16777216"),
];

impl ServerCommand {
    /// What is started.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Starts `program` with `arguments`.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: &[],
        }
    }

    /// Starts the program that is running now, with `arguments`.
    ///
    /// # Errors
    /// When the system does not tell where the program lies.
    pub fn this_program(
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> io::Result<Self> {
        Ok(Self::new(std::env::current_exe()?, arguments))
    }

    /// The same, whose process gives no freed memory back to the system until it ends, where the C
    /// library is glibc. What allocates and frees megabytes again and again otherwise faults
    /// every page in anew.
    pub(crate) fn keeping_freed_memory(self) -> Self {
        Self { environment: &KEEPING_FREED_MEMORY, ..self }
    }
}
