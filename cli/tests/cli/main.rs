//! Runs the program as a user does, and looks at what it prints and writes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test code")]

mod bench;
#[path = "../../../core/tests/broken_files/table.rs"]
mod broken_files;
mod compile;
mod decode;
mod documentation;
mod emulate;
mod errors;
mod eval;
mod generate;
mod host;
#[cfg(target_os = "linux")]
mod hostile;
mod inspect;
#[cfg(unix)]
mod interrupt;
mod policy;
mod schema;
mod support;
mod verify;
