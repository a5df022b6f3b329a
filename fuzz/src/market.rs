//! Matrix Market text: what is read is a valid matrix, the same however it is read, and reads back
//! bit by bit once written.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use sparserl_core::matrix::market::{self, Field, Symmetry};
use sparserl_core::matrix::{Csr, Duplicates, Scalar, file};
use tempfile::TempDir;

/// A file may ask for 2²⁴ rows with a few bytes; the fuzzer is not to spend its time on zeros.
const MOST_ROWS: u32 = 1 << 16;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// Runs the target.
pub fn run(bytes: &[u8]) {
    if market::header(bytes).is_ok_and(|header| header.rows.max(header.cols) > MOST_ROWS) {
        return;
    }
    reads::<f32>(bytes);
    reads::<f64>(bytes);
}

fn reads<T: Scalar>(bytes: &[u8]) {
    let path = FOLDER.path().join("m.mtx");
    fs::write(&path, bytes).unwrap();
    let summed = market::parse::<T>(bytes, Duplicates::Sum);
    let refused = market::parse::<T>(bytes, Duplicates::Refuse);
    same_from_file(&path, &summed, Duplicates::Sum);
    same_from_file(&path, &refused, Duplicates::Refuse);
    if let Ok(matrix) = &refused {
        assert!(summed.as_ref().is_ok_and(|summed| same(summed, matrix)));
    }
    match summed {
        Ok(matrix) => {
            is_valid(&matrix);
            reads_back(&matrix);
        }
        Err(error) => {
            let text = error.to_string();
            assert_eq!(text.lines().count(), 1, "{text}");
            assert!(error.line >= 1, "{text}");
            assert!(refused.is_err(), "{text}");
        }
    }
}

/// Files are read piece by piece.
fn same_from_file<T: Scalar>(
    path: &Path,
    expected: &Result<Csr<T>, market::MarketError>,
    duplicates: Duplicates,
) {
    match (file::load_counted::<T>(path, duplicates), expected) {
        (Ok(loaded), Ok(matrix)) => assert!(same(&loaded.matrix, matrix)),
        (Err(loaded), Err(error)) => {
            assert_eq!(loaded.line, Some(error.line));
            assert_eq!(loaded.kind.to_string(), error.kind.to_string());
        }
        (loaded, expected) => panic!("{loaded:?} from the file, {expected:?} from its bytes"),
    }
}

fn reads_back<T: Scalar>(matrix: &Csr<T>) {
    let mut text = String::new();
    market::write(matrix.view(), &mut text).unwrap();
    assert!(same(&market::parse(text.as_bytes(), Duplicates::Refuse).unwrap(), matrix), "{text}");
    for field in [Field::Real, Field::Integer, Field::Pattern] {
        for symmetry in [Symmetry::General, Symmetry::Symmetric, Symmetry::SkewSymmetric] {
            if (field, symmetry) == (Field::Pattern, Symmetry::SkewSymmetric) {
                continue;
            }
            let mut text = String::new();
            if market::write_as(matrix.view(), field, symmetry, &mut text).is_ok() {
                let read = market::parse(text.as_bytes(), Duplicates::Refuse);
                let read = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert!(same(&read, matrix), "{text}");
            }
        }
    }
}

/// The arrays pass the checks for arrays from outside, and a detour over coordinates changes
/// nothing.
pub(crate) fn is_valid<T: Scalar>(matrix: &Csr<T>) {
    let view = matrix.view();
    sparserl_core::matrix::CsrView::new(
        view.rows(),
        view.cols(),
        view.offsets(),
        view.columns(),
        view.values(),
    )
    .unwrap();
    assert!(same(&view.to_coo().to_csr(Duplicates::Refuse).unwrap(), matrix));
}

/// Equal in every bit, unlike `==` for zeros.
pub(crate) fn same<T: Scalar>(a: &Csr<T>, b: &Csr<T>) -> bool {
    let bits = |m: &Csr<T>| m.view().values().iter().map(|v| v.bits()).collect::<Vec<_>>();
    a == b && bits(a) == bits(b)
}
