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
use std::path::PathBuf;

pub(crate) use connection::Connection;
pub(crate) use serving_process::{Limits, ServingError, ServingProcess};

/// How to start a serving process: a program and its leading arguments. The role follows as the
/// last arguments, and the program hands it to [`serve`](crate::serve::serve).
#[derive(Clone, Debug)]
pub struct ServerCommand {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl ServerCommand {
    /// Starts `program` with `arguments`.
    pub fn new(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
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
}
