//! Fuzz targets: what each module does with the bytes that a fuzzer makes up. A target that finds
//! something panics.
//!
//! Every target is also an ordinary program that runs the files it is given, so that whatever was
//! found can be looked at without a fuzzer: `cargo run -p sparserl-fuzz --bin market -- FILE`.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod bytes;
pub mod compressed;
pub mod market;
pub mod packing;
pub mod policy;
pub mod program_text;
pub mod ptx;
pub mod raw_kernel;
pub mod recording;
pub mod smtx;
pub mod tokens_to_kernel;

/// What a fuzzer calls.
pub type Target = fn(&[u8]);

/// All targets, by the names of their programs.
pub const TARGETS: [(&str, Target); 10] = [
    ("compressed", compressed::run),
    ("market", market::run),
    ("packing", packing::run),
    ("policy", policy::run),
    ("program_text", program_text::run),
    ("ptx", ptx::run),
    ("raw_kernel", raw_kernel::run),
    ("recording", recording::run),
    ("smtx", smtx::run),
    ("tokens_to_kernel", tokens_to_kernel::run),
];

/// The program of a target: libFuzzer's under `cargo fuzz`, else one that runs files.
#[macro_export]
macro_rules! target {
    ($run:path) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $run(bytes));

        #[cfg(not(fuzzing))]
        fn main() {
            $crate::run_files($run);
        }
    };
}

/// Runs a target on the files named on the command line.
pub fn run_files(run: Target) {
    for path in std::env::args_os().skip(1) {
        run(&std::fs::read(path).unwrap());
    }
}
