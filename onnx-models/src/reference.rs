//! What speeds are relative to.

use sparserl_core::language::{LANGUAGE_VERSION, Program, TextError};
use sparserl_core::task::Task;

/// The program that others are compared with, legal for every matrix: plain CSR, four threads a
/// row.
///
/// # Errors
/// When the language does not have it.
pub fn reference(task: Task) -> Result<Program, TextError> {
    plain_csr(task, "lanes=4 unroll=1")
}

/// Programs that every policy knows, for short, middling and long rows, all legal for every matrix:
/// by the fastest of them it is told how fast a program is that a policy does not know.
///
/// # Errors
/// When the language does not have them.
pub fn known_to_all(task: Task) -> Result<Vec<Program>, TextError> {
    let mappings = ["lanes=1 unroll=4", "lanes=4 unroll=4", "lanes=32 unroll=4"];
    mappings.into_iter().map(|mapping| plain_csr(task, mapping)).collect()
}

fn plain_csr(task: Task, mapping: &str) -> Result<Program, TextError> {
    Program::parse(&format!(
        "sparserl {LANGUAGE_VERSION}\n{task}\nblock 256\n\
         keep csr index=u32 values=plain cache=cached vector=1 {mapping}\n"
    ))
}
