//! Files that are broken in every way met so far: each gives a typed error whose one-line message
//! names the file, the line and the problem. None panics.

#![allow(clippy::unwrap_used, reason = "test code")]

use proptest::prelude::*;
use sparserl_core::arbitrary;
use sparserl_core::matrix::file::{
    Limits, MatrixFileError, MatrixFileErrorKind, load, load_counted, load_within,
};
use sparserl_core::matrix::{Csr, Duplicates, market, smtx};

#[path = "broken_files/table.rs"]
mod table;

use table::{gzip, long_file, real};

fn load_bytes(name: &str, bytes: &[u8]) -> Result<Csr<f64>, MatrixFileError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let loaded = load(&path, Duplicates::Refuse);
    if let Err(error) = &loaded {
        assert_eq!(error.path, path);
    }
    loaded
}

#[test]
fn every_broken_file_gives_one_line_with_path_line_and_problem() {
    let files = table::all();
    assert!(files.len() >= 35);
    for (name, bytes, line, text) in files {
        let error = load_bytes(name, &bytes).expect_err(name);
        let message = error.to_string();
        assert_eq!(error.line.unwrap_or(0), line, "{message}");
        assert!(message.contains(text), "{name}: expected `{text}` in: {message}");
        assert!(!message.contains(['\n', '\x1b']), "{message}");
        let place = if line == 0 { format!("{name}: ") } else { format!("{name}:{line}: ") };
        assert!(message.contains(&place), "{message}");
    }
}

#[test]
fn truncation_anywhere_is_noticed() {
    let whole = gzip(&long_file());
    for kept in (0..whole.len()).step_by(97) {
        let error = load_bytes("cut.mtx.gz", &whole[..kept]).unwrap_err();
        assert!(matches!(error.kind, MatrixFileErrorKind::Decompress(_)), "{error}");
    }
    let plain = long_file();
    // A cut within the very last number cannot be told from a shorter number.
    let last_entry = plain.len() - "5000 5000 70.71067811865476\n".len();
    for kept in (0..last_entry).step_by(997).chain([last_entry]) {
        let loaded = load_bytes("cut.mtx", &plain[..kept]);
        assert!(loaded.is_err(), "cut after {kept} bytes");
    }
}

#[test]
fn members_and_padding_of_compressed_files_are_read() {
    let text = long_file();
    let (head, tail) = text.split_at(30_000);
    let whole = load_bytes("whole.mtx", &text).unwrap();
    for padding in [&[][..], &[0; 700]] {
        let members = [&gzip(head)[..], &gzip(tail), padding].concat();
        assert_eq!(load_bytes("members.mtx.gz", &members).unwrap(), whole);
    }
}

#[test]
fn summed_duplicates_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    for (symmetry, entries, summed) in [
        ("general", &["1 1 1", "1 2 1", "2 1 1"][..], 0),
        ("general", &["1 1 1", "1 2 1", "1 1 1", "1 1 1"], 2),
        ("symmetric", &["1 1 1", "2 1 1", "3 2 1"], 0),
        ("symmetric", &["1 1 1", "2 1 1", "1 2 1", "3 3 1", "3 3 1"], 2),
        ("skew-symmetric", &["2 1 1", "3 1 1", "2 1 1"], 1),
    ] {
        let count = entries.len();
        let text = format!(
            "%%MatrixMarket matrix coordinate real {symmetry}\n3 3 {count}\n{}\n",
            entries.join("\n")
        );
        for (name, bytes) in
            [("a.mtx", text.as_bytes().to_vec()), ("a.mtx.gz", gzip(text.as_bytes()))]
        {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let loaded = load_counted::<f64>(&path, Duplicates::Sum).unwrap();
            assert_eq!(loaded.summed, summed, "{text}");
        }
    }
}

#[test]
fn corruption_of_compressed_bytes_is_noticed() {
    let whole = gzip(&long_file());
    for at in (10..whole.len()).step_by(211) {
        let mut corrupted = whole.clone();
        corrupted[at] ^= 0x10;
        assert!(load_bytes("corrupted.mtx.gz", &corrupted).is_err(), "byte {at}");
    }
}

#[test]
fn a_decompression_bomb_is_refused() {
    let bomb = gzip(
        &[&b"%%MatrixMarket matrix coordinate real general\n"[..], &vec![b'\n'; 4 << 20]].concat(),
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.mtx.gz");
    std::fs::write(&path, &bomb).unwrap();
    let limits = Limits { always: 1 << 20, ratio: 100, ..Limits::default() };
    let error = load_within::<f64>(&path, Duplicates::Sum, limits).unwrap_err();
    assert!(matches!(error.kind, MatrixFileErrorKind::TooLong { limit: 1_048_576 }), "{error}");
}

#[test]
fn what_a_long_text_begins_with_is_looked_at_before_the_rest_is_held() {
    let blank = vec![b'\n'; 4 << 20];
    let zeros = vec![0; 4 << 20];
    let long = |beginning: &[u8], rest: &[u8]| [beginning, rest].concat();
    let harwell = b"title\n 9 1 1 1 0\nrua 3 3 4 0\n(4A4)           (4I4)           (4E8.1)\n";
    for (name, text, line, says) in [
        ("zeros.mtx", zeros.clone(), 1, "not a `%%MatrixMarket` banner"),
        ("blank.mtx", blank.clone(), 1, "the file or its first line is empty"),
        ("few.mtx", long(&real("2 2 1\n1 1 1\n"), &blank), 0, "which the 1 entries of its size"),
        (
            "many.mtx",
            long(&real("2 2 90000000000000\n1 1 1\n"), &blank),
            0,
            "holds or decompresses to more than 67108864 bytes",
        ),
        ("zeros.smtx", zeros.clone(), 1, "is not a size line"),
        ("zeros.rua", long(harwell, &zeros), 4, "is no Fortran format"),
    ] {
        let error = load_bytes(&format!("{name}.gz"), &gzip(&text)).expect_err(name);
        assert_eq!(error.line.unwrap_or(0), line, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    // Comments before the sizes are as long as they like, and those among entries as usual.
    let comment = [&b"%"[..], &vec![b'x'; 2 << 20], b"\n"].concat();
    let text = [&real("")[..], &comment, b"2 2 1\n% one entry\n1 1 1.5\n"].concat();
    assert_eq!(load_bytes("comments.mtx.gz", &gzip(&text)).unwrap().nnz(), 1);
}

#[test]
fn a_matrix_that_memory_does_not_hold_is_refused_by_its_header() {
    let count = 20_000;
    let text = format!(
        "%%MatrixMarket matrix coordinate pattern general\n9 9 {count}\n{}",
        "1 1\n".repeat(count)
    );
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [("a.mtx", text.clone().into_bytes()), ("a.mtx.gz", gzip(text.as_bytes()))]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let within = |most| {
            let limits = Limits { always: most, ratio: 0, most };
            load_within::<f64>(&path, Duplicates::Sum, limits)
        };
        let error = within(100_000).unwrap_err();
        assert!(matches!(error.kind, MatrixFileErrorKind::Memory), "{error}");
        assert_eq!(within(300_000).unwrap().nnz(), 1);
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = load::<f64>("no/such/file.mtx".as_ref(), Duplicates::Sum).unwrap_err();
    assert!(error.to_string().starts_with("no/such/file.mtx: cannot read the file"), "{error}");
}

#[test]
fn sums_that_overflow_name_the_entry_that_does_it() {
    let text = real("1 1 3\n1 1 1e308\n1 1 7e307\n1 1 1e308\n");
    let error = market::parse::<f64>(&text, Duplicates::Sum).unwrap_err();
    assert_eq!(error.line, 5);
    let error = market::parse::<f32>(&real("1 1 1\n1 1 1e39\n"), Duplicates::Sum).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 3: value `1e39` is not finite in this precision; replace it by a finite number"
    );
}

proptest! {
    #[test]
    fn mutated_files_are_read_or_refused(
        matrix in arbitrary::csr::<f64>(20, 20, 60),
        changes in proptest::collection::vec(any::<(usize, u8)>(), 1..6),
    ) {
        let mut text = String::new();
        market::write(matrix.view(), &mut text).unwrap();
        let mut bytes = text.into_bytes();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let _ = market::parse::<f64>(&bytes, Duplicates::Sum);
        let _ = market::parse::<f32>(&bytes, Duplicates::Refuse);
    }

    #[test]
    fn any_smtx_is_read_or_refused(bytes: Vec<u8>, text in "[0-9]{1,2}, [0-9], [0-9]\n[0-9 ]{0,9}\n[0-9 ]{0,9}\n") {
        let _ = smtx::parse::<f64>(&bytes);
        let _ = smtx::parse::<f64>(text.as_bytes());
    }
}
