//! What speeds are relative to.

use sparserl_core::language::{LANGUAGE_VERSION, Program, TextError};
use sparserl_core::task::Task;

/// The program that others are compared with, legal for every matrix: plain CSR, four threads a
/// row.
///
/// # Errors
/// When the language does not have it.
pub fn reference(task: Task) -> Result<Program, TextError> {
    Program::parse(&format!(
        "sparserl {LANGUAGE_VERSION}\n{task}\nblock 256\n\
         keep csr index=u32 values=plain cache=cached vector=1 lanes=4 unroll=1\n"
    ))
}
