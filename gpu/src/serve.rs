//! What a process does that was started to serve: compile, or judge on a device.

use std::io;

use crate::compile::pool;
use crate::worker;

/// Serves in `role` until the process that started this one has no more requests. The role is
/// what the process was given behind the arguments of its
/// [`ServerCommand`](crate::isolate::ServerCommand).
///
/// # Errors
/// When there is no such role, when standard input is not the socket of a serving process, or when
/// the connection breaks.
pub fn serve(role: &[String]) -> Result<(), ServeError> {
    let words: Vec<&str> = role.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["device", ordinal] => match ordinal.parse() {
            Ok(ordinal) => Ok(worker::serve(ordinal)?),
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
