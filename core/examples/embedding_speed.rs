//! Measures the structure embedding on matrices of about five million nonzeros, on one core.
//!
//! ```text
//! cargo run --release -p sparserl-core --example embedding_speed
//! ```
//!
//! Prints one JSON object for each matrix; `seconds` is the median of 21 runs.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use sparserl_core::matrix::{Csr, CsrError, Offsets};
use sparserl_core::structure::{EmbeddingConfig, StructureEmbedding};

fn main() -> Result<(), CsrError> {
    measure("uniform", &uniform(250_000, 20)?);
    measure("stencil", &stencil(1000)?);
    measure("scattered", &scattered(1_600_000)?);
    Ok(())
}

/// Rows of equal length with columns spread over the whole width.
fn uniform(rows: u32, length: u32) -> Result<Csr<f32>, CsrError> {
    let mut state = 1;
    from_rows(rows, rows, |_, columns| {
        let step = rows / length;
        columns.extend((0..length).map(|k| k * step + random(&mut state) % step));
    })
}

/// The five-point stencil on a square grid.
fn stencil(side: u32) -> Result<Csr<f32>, CsrError> {
    from_rows(side * side, side * side, |row, columns| {
        let (y, x) = (row / side, row % side);
        let neighbours = [
            (y > 0).then(|| row - side),
            (x > 0).then(|| row - 1),
            Some(row),
            (x + 1 < side).then_some(row + 1),
            (y + 1 < side).then_some(row + side),
        ];
        columns.extend(neighbours.into_iter().flatten());
    })
}

/// Rows of 0 to 6 nonzeros anywhere: short, uneven and unpredictable.
fn scattered(rows: u32) -> Result<Csr<f32>, CsrError> {
    let mut state = 7;
    from_rows(rows, rows, |_, columns| {
        let length = random(&mut state) % 7;
        columns.extend((0..length).map(|_| random(&mut state) % rows));
        columns.sort_unstable();
        columns.dedup();
    })
}

fn from_rows(
    rows: u32,
    cols: u32,
    mut fill: impl FnMut(u32, &mut Vec<u32>),
) -> Result<Csr<f32>, CsrError> {
    let mut offsets = vec![0];
    let mut all = Vec::new();
    let mut columns = Vec::new();
    for row in 0..rows {
        columns.clear();
        fill(row, &mut columns);
        all.extend_from_slice(&columns);
        offsets.push(all.len() as u32);
    }
    let values = vec![1.0; all.len()];
    Csr::new(rows as usize, cols as usize, Offsets::U32(offsets), all, values)
}

/// A linear congruential generator (Knuth's MMIX constants); the high bits.
fn random(state: &mut u64) -> u32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as u32
}

fn measure(name: &str, matrix: &Csr<f32>) {
    let config = EmbeddingConfig::default();
    let view = matrix.view();
    let mut seconds: Vec<f64> = (0..21)
        .map(|_| {
            let start = Instant::now();
            black_box(StructureEmbedding::new(black_box(view), &config));
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    let nnz = view.nnz();
    println!(
        r#"{{"matrix":"{name}","rows":{},"nnz":{nnz},"seconds":{median:.6},"best":{:.6},"nnz_per_second":{:.0}}}"#,
        view.rows(),
        seconds[0],
        nnz as f64 / median
    );
}
