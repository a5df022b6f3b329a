//! The processes that the library compiles and measures in: a source can crash its compiler, and a
//! kernel its CUDA context, and neither must happen to the program that uses the library.

use std::env;
use std::io::{Write as _, stderr};
use std::process::ExitCode;

use sparserl_gpu::serve::serve;

fn main() -> ExitCode {
    let role: Vec<String> = env::args().skip(1).collect();
    match serve(&role) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where nobody hears it, there is nothing to be done.
            let _ = writeln!(stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}
