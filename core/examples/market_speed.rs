//! Times the reading of a Matrix Market file: `market_speed FILE THREADS [REPEATS]`.
//!
//! Prints one JSON object: seconds from opening the file to a validated CSR matrix in memory, one
//! for each repeat.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use sparserl_core::matrix::{Csr, Duplicates, file};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, threads, rest @ ..] = arguments.as_slice() else {
        return Err("usage: market_speed FILE THREADS [REPEATS]".into());
    };
    let threads: usize = threads.parse()?;
    let repeats: usize = rest.first().map_or(Ok(1), |text| text.parse())?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;

    let mut seconds = Vec::with_capacity(repeats);
    let mut entries = 0;
    for _ in 0..repeats {
        let start = Instant::now();
        let matrix: Csr<f64> = pool.install(|| file::load(Path::new(path), Duplicates::Sum))?;
        seconds.push(start.elapsed().as_secs_f64());
        entries = matrix.nnz();
    }
    println!("{{\"threads\": {threads}, \"nnz\": {entries}, \"seconds\": {seconds:?}}}");
    Ok(())
}
