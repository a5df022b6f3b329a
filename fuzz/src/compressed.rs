//! Compressed files. The first byte says whether the rest is taken as a `.gz` file, or is
//! compressed first (in two members from 0x80 on) and has to read as if it were not.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use sparserl_core::matrix::file::{Limits, MatrixFileError, load_within};
use sparserl_core::matrix::{Csr, Duplicates, market};
use tempfile::TempDir;

use crate::market::{is_valid, same};

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let name = if first & 1 == 0 { "m.mtx" } else { "m.smtx" };
    let path = FOLDER.path().join(format!("{name}.gz"));
    let load = |compressed: &[u8]| {
        fs::write(&path, compressed).unwrap();
        let limits = Limits { always: 1 << 16, ratio: 20, most: 1 << 20 };
        load_within::<f64>(&path, Duplicates::Sum, limits)
    };
    if first & 2 == 0 {
        match load(rest) {
            Ok(matrix) => is_valid(&matrix),
            Err(error) => is_one_line(&error),
        }
    } else if !asks_for_much(rest) && rest.len() < 1 << 16 {
        let half = if first < 0x80 { 0 } else { rest.len() / 2 };
        let members = [&rest[..half], &rest[half..]].map(compress).concat();
        same_as_plain(load(&members), &FOLDER.path().join(name), rest);
    }
}

fn asks_for_much(text: &[u8]) -> bool {
    market::header(text).is_ok_and(|header| header.rows.max(header.cols) > 1 << 16)
}

fn same_as_plain(loaded: Result<Csr<f64>, MatrixFileError>, path: &Path, text: &[u8]) {
    fs::write(path, text).unwrap();
    match (loaded, load_within::<f64>(path, Duplicates::Sum, Limits::default())) {
        (Ok(loaded), Ok(plain)) => assert!(same(&loaded, &plain)),
        (Err(loaded), Err(plain)) => {
            is_one_line(&loaded);
            assert_eq!(
                (loaded.line, loaded.kind.to_string()),
                (plain.line, plain.kind.to_string())
            );
        }
        (loaded, plain) => panic!("{loaded:?} when compressed, {plain:?} when not"),
    }
}

fn is_one_line(error: &MatrixFileError) {
    let text = error.to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
}

fn compress(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}
