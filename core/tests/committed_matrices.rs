//! The files of `tests/matrices` are what the generators give. With `SPARSERL_BLESS` set they are
//! written again.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::io::Write as _;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use sparserl_core::matrix::market::{Field, Symmetry, write_as};
use sparserl_core::matrix::{Coo, Csr, Duplicates, file, generate};

fn check(name: &str, matrix: &Csr<f64>, text: impl Fn(&Csr<f64>) -> Vec<u8>) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/matrices");
    let path = PathBuf::from(folder).join(name);
    if std::env::var_os("SPARSERL_BLESS").is_some() {
        std::fs::write(&path, text(matrix)).unwrap();
    }
    let committed = file::load::<f64>(&path, Duplicates::Refuse).unwrap();
    assert!(&committed == matrix, "{name} differs from what its generator gives");
}

fn market(matrix: &Csr<f64>, field: Field, symmetry: Symmetry) -> Vec<u8> {
    let mut text = String::new();
    write_as(matrix.view(), field, symmetry, &mut text).unwrap();
    text.into_bytes()
}

fn smtx(matrix: &Csr<f64>) -> Vec<u8> {
    let list = |numbers: &mut dyn Iterator<Item = usize>| {
        numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
    };
    let offsets = list(&mut (0..=matrix.rows()).map(|row| matrix.view().offsets().at(row)));
    let columns = list(&mut matrix.view().columns().iter().map(|&col| col as usize));
    let (rows, cols, nnz) = (matrix.rows(), matrix.cols(), matrix.nnz());
    format!("{rows}, {cols}, {nnz}\n{offsets}\n{columns}\n").into_bytes()
}

#[test]
fn poisson2d() {
    check("poisson2d.mtx", &generate::stencil5(64, 64), |matrix| {
        market(matrix, Field::Real, Symmetry::Symmetric)
    });
}

#[test]
fn beam() {
    check("beam.mtx", &generate::fem_blocks(144, 3, 1), |matrix| {
        market(matrix, Field::Real, Symmetry::Symmetric)
    });
}

#[test]
fn rmat10() {
    check("rmat10.mtx.gz", &generate::rmat(10, 16, 1), |matrix| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&market(matrix, Field::Pattern, Symmetry::General)).unwrap();
        encoder.finish().unwrap()
    });
}

#[test]
fn pruned() {
    let layer = generate::block_pruned(256, 512, 1, 8, 1).view().to_coo();
    // The file has no values: it stands for ones.
    let (rows, columns) = (layer.row_indices().to_vec(), layer.col_indices().to_vec());
    let pattern = Coo::new(256, 512, rows, columns, vec![1.0; layer.nnz()]).unwrap();
    check("pruned.smtx", &pattern.to_csr(Duplicates::Refuse).unwrap(), smtx);
}
