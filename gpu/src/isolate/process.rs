//! Processes that serve requests, for work that must not take its caller down: hostile sources can
//! hang or crash a compiler, and a faulting kernel leaves a CUDA context unusable.
//!
//! ```text
//! Server (parent) ── frame: request, blobs ──► Client (child)
//!                 ◄── frame: answer, blobs ───
//! ```
//!
//! The two talk over a socket that the child has as its standard input. Its standard output is
//! thrown away, so that nothing printed there, as by a kernel's `printf`, can get between frames.
//! The end of its standard error is kept for messages.

mod client;
mod frame;
mod server;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::compile::pool;
pub(crate) use client::Client;
pub(crate) use server::{Limits, Server, ServerError};

/// How to start a serving process: a program and its leading arguments. The role follows as the
/// last arguments, and the program hands it to [`serve`].
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

/// Serves in `role` until the process that started this one has no more requests. What it starts
/// with is
/// [`ServerCommand`]'s last arguments.
///
/// # Errors
/// When there is no such role, when standard input is not the socket of a serving process, or when
/// the connection breaks.
pub fn serve(role: &[String]) -> Result<(), ServeError> {
    let words: Vec<&str> = role.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["device", ordinal] => match ordinal.parse() {
            Ok(ordinal) => Ok(crate::isolate::worker::serve(ordinal)?),
            Err(_) => Err(ServeError::Role { role: role.join(" ") }),
        },
        [pool::ROLE] => Ok(pool::serve()?),
        _ => Err(ServeError::Role { role: role.join(" ") }),
    }
}

/// This process cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There is no such role.
    #[error(
        "there is nothing to serve called `{role}`: serving processes are started by the program itself"
    )]
    Role {
        /// What was asked for.
        role: String,
    },
    /// The connection to the process that started this one cannot be used.
    #[error("cannot talk to the process that started this one: {0}")]
    Connection(#[from] io::Error),
}
