use alloc::{format, string::String, vec, vec::Vec};

use proptest::prelude::*;

use super::parse::parse_in_chunks;
use super::*;
use crate::arbitrary;
use crate::matrix::{Csr, Duplicates, Scalar};

fn read(text: &str) -> Csr<f64> {
    parse(text.as_bytes(), Duplicates::Refuse).unwrap()
}

fn written<T: Scalar>(matrix: &Csr<T>) -> String {
    let mut text = String::new();
    write(matrix.view(), &mut text).unwrap();
    text
}

/// Bit by bit, because −0 = +0.
fn same<T: Scalar>(a: &Csr<T>, b: &Csr<T>) -> bool {
    let bits = |m: &Csr<T>| m.view().values().iter().map(|v| v.bits()).collect::<Vec<_>>();
    a == b && bits(a) == bits(b)
}

fn rows(matrix: &Csr<f64>) -> Vec<(Vec<u32>, Vec<f64>)> {
    let view = matrix.view();
    (0..matrix.rows()).map(|r| (view.row(r).0.to_vec(), view.row(r).1.to_vec())).collect()
}

#[test]
fn a_file_with_every_liberty_is_read() {
    let text = "%%matrixmarket MATRIX Coordinate REAL General\r\n% comment\r\n\r\n  3\t4 5 \r\n\
                3 1 1.0D+03\r\n% another\r\n\r\n 1  4 +2 \r\n1 2 -0.5e-3\r\n001 1 0\r\n3 4 1d2";
    let matrix = read(text);
    assert_eq!((matrix.rows(), matrix.cols()), (3, 4));
    assert_eq!(
        rows(&matrix),
        [
            (vec![0, 1, 3], vec![0.0, -0.5e-3, 2.0]),
            (vec![], vec![]),
            (vec![0, 3], vec![1000.0, 100.0])
        ]
    );
}

#[test]
fn a_symmetry_adds_mirror_images_of_either_triangle() {
    let text = "%%MatrixMarket matrix coordinate integer symmetric\n3 3 3\n1 1 5\n2 1 7\n2 3 -9\n";
    assert_eq!(
        rows(&read(text)),
        [(vec![0, 1], vec![5.0, 7.0]), (vec![0, 2], vec![7.0, -9.0]), (vec![1], vec![-9.0])]
    );
    let text = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n2 1 7\n2 2 0\n";
    assert_eq!(rows(&read(text)), [(vec![1], vec![-7.0]), (vec![0, 1], vec![7.0, 0.0])]);
    let text = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n1 2\n";
    assert_eq!(rows(&read(text)), [(vec![1], vec![1.0]), (vec![0], vec![1.0])]);
}

#[test]
fn both_triangles_of_a_symmetric_file_are_duplicates() {
    let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n2 1 7\n1 2 7\n";
    let refused = parse::<f64>(text.as_bytes(), Duplicates::Refuse).unwrap_err();
    assert_eq!(refused.line, 4);
    let summed = parse::<f64>(text.as_bytes(), Duplicates::Sum).unwrap();
    assert_eq!(rows(&summed), [(vec![1], vec![14.0]), (vec![0], vec![14.0])]);
}

#[test]
fn arrays_are_read_by_column_without_their_zeros() {
    let text = "%%MatrixMarket matrix array real general\n2 3\n1\n0\n2\n3\n-0.0\n4\n";
    assert_eq!(rows(&read(text)), [(vec![0, 1], vec![1.0, 2.0]), (vec![1, 2], vec![3.0, 4.0])]);
    let text = "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n";
    assert_eq!(rows(&read(text)), [(vec![0, 1], vec![1.0, 2.0]), (vec![0, 1], vec![2.0, 3.0])]);
    let text = "%%MatrixMarket matrix array integer skew-symmetric\n2 2\n2\n";
    assert_eq!(rows(&read(text)), [(vec![1], vec![-2.0]), (vec![0], vec![2.0])]);
    assert_eq!(read("%%MatrixMarket matrix array real general\n0 7\n").cols(), 7);
}

#[test]
fn the_header_alone_can_be_read() {
    let text = b"%%MatrixMarket matrix coordinate pattern symmetric\n9 9 1\n5 5\n";
    let expected = Header {
        format: Format::Coordinate,
        field: Field::Pattern,
        symmetry: Symmetry::Symmetric,
        rows: 9,
        cols: 9,
        entries: 1,
    };
    assert_eq!(header(text), Ok(expected));
}

#[test]
fn writing_refuses_what_the_form_cannot_hold() {
    let matrix = read("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1.5\n2 1 1\n");
    let refused = |field, symmetry| {
        let mut text = String::new();
        let error = write_as(matrix.view(), field, symmetry, &mut text).unwrap_err();
        assert_eq!(text, "");
        error
    };
    assert!(matches!(
        refused(Field::Real, Symmetry::Symmetric),
        WriteError::Asymmetric { row: 0, col: 1, .. }
    ));
    assert!(matches!(refused(Field::Real, Symmetry::SkewSymmetric), WriteError::Asymmetric { .. }));
    assert!(matches!(refused(Field::Integer, Symmetry::General), WriteError::Value { .. }));
    assert!(matches!(
        refused(Field::Pattern, Symmetry::General),
        WriteError::Value { row: 0, col: 1, value: 1.5, .. }
    ));
}

#[cfg(feature = "std")]
#[test]
fn the_number_of_threads_changes_nothing() {
    let matrix = crate::matrix::generate::rmat(9, 20, 3);
    let text = written(&matrix);
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let read = pool.install(|| parse_in_chunks(text.as_bytes(), Duplicates::Refuse, 500));
        assert!(same(&read.unwrap(), &matrix));
        let broken = text.replace(" 1\n", " x\n");
        let error =
            pool.install(|| parse_in_chunks::<f64>(broken.as_bytes(), Duplicates::Sum, 500));
        assert_eq!(error.unwrap_err().line, 3);
    }
}

/// Changes a file in ways that real files are broken: a byte replaced, a cut, a line repeated.
fn damaged(text: &str, at: usize, byte: u8, kind: u8) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    let at = at % bytes.len();
    match kind % 4 {
        0 => bytes[at] = byte,
        1 => bytes.truncate(at),
        2 => bytes.insert(at, byte),
        _ => {
            let line = text.lines().nth(at % text.lines().count()).unwrap_or_default();
            bytes.extend_from_slice(format!("{line}\n").as_bytes());
        }
    }
    bytes
}

proptest! {
    #[test]
    fn what_is_written_reads_back_bit_by_bit(matrix in arbitrary::csr::<f64>(40, 40, 100)) {
        let back = parse(written(&matrix).as_bytes(), Duplicates::Refuse);
        prop_assert!(same(&back.unwrap(), &matrix));
    }

    #[test]
    fn what_is_written_in_single_precision_reads_back(matrix in arbitrary::csr::<f32>(40, 40, 100)) {
        let back = parse(written(&matrix).as_bytes(), Duplicates::Refuse);
        prop_assert!(same(&back.unwrap(), &matrix));
    }

    #[test]
    fn symmetric_forms_read_back(
        nodes in 0..20_usize,
        dof in 1..4_usize,
        skew: bool,
        chunk in 1..200_usize,
    ) {
        let matrix = crate::matrix::generate::fem_blocks(nodes, dof, 1);
        let symmetry = if skew { Symmetry::SkewSymmetric } else { Symmetry::Symmetric };
        let matrix = if skew { skewed(&matrix) } else { matrix };
        let mut text = String::new();
        write_as(matrix.view(), Field::Real, symmetry, &mut text).unwrap();
        let back = parse_in_chunks(text.as_bytes(), Duplicates::Refuse, chunk);
        prop_assert!(same(&back.unwrap(), &matrix));
    }

    #[test]
    fn cutting_into_chunks_changes_nothing(
        matrix in arbitrary::csr::<f64>(20, 20, 60),
        chunk in 1..300_usize,
    ) {
        let text = written(&matrix);
        let cut = parse_in_chunks::<f64>(text.as_bytes(), Duplicates::Sum, chunk);
        prop_assert!(same(&cut.unwrap(), &matrix));
    }

    #[test]
    fn damage_gives_the_same_error_however_the_file_is_cut(
        matrix in arbitrary::csr::<f64>(20, 20, 60),
        damage in proptest::collection::vec(any::<(usize, u8, u8)>(), 1..4),
        chunk in 1..300_usize,
        refuse: bool,
    ) {
        let mut bytes = written(&matrix).into_bytes();
        for (at, byte, kind) in damage {
            if let Ok(text) = core::str::from_utf8(&bytes).map(String::from) && !text.is_empty() {
                bytes = damaged(&text, at, byte, kind);
            }
        }
        let duplicates = if refuse { Duplicates::Refuse } else { Duplicates::Sum };
        let whole = parse_in_chunks::<f64>(&bytes, duplicates, usize::MAX);
        prop_assert_eq!(&parse_in_chunks::<f64>(&bytes, duplicates, chunk), &whole);
        if let Err(error) = whole {
            let lines = bytes.split(|&b| b == b'\n').count();
            prop_assert!((1..=lines).contains(&error.line), "{}", error);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = parse::<f64>(&bytes, Duplicates::Sum);
    }

    #[test]
    fn any_bytes_after_a_banner_are_read_or_refused(
        header in "%%MatrixMarket matrix (coordinate|array) (real|integer|pattern) \
                   (general|symmetric|skew-symmetric)\n[0-9]{1,2} [0-9]{1,2}( [0-9])?\n",
        body in "([0-9]{1,2} [0-9]{1,2}( [0-9.eE+-]{1,5})?\n){0,9}[ -~\n]{0,20}",
        chunk in 1..60_usize,
    ) {
        let bytes = format!("{header}{body}").into_bytes();
        let whole = parse_in_chunks::<f32>(&bytes, Duplicates::Sum, usize::MAX);
        prop_assert_eq!(parse_in_chunks::<f32>(&bytes, Duplicates::Sum, chunk), whole);
    }
}

/// The strictly lower triangle, and its negative above.
fn skewed(matrix: &Csr<f64>) -> Csr<f64> {
    let coo = matrix.view().to_coo();
    let (mut i, mut j, mut v) = (vec![], vec![], vec![]);
    for ((&row, &col), &value) in coo.row_indices().iter().zip(coo.col_indices()).zip(coo.values())
    {
        if row != col {
            i.push(row);
            j.push(col);
            v.push(if row > col { value } else { -value });
        }
    }
    let coo = crate::matrix::Coo::new(matrix.rows(), matrix.cols(), i, j, v).unwrap();
    coo.to_csr(Duplicates::Refuse).unwrap()
}
