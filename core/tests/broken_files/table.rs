//! The table of broken files, which other crates' tests include as well.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

const REAL: &str = "%%MatrixMarket matrix coordinate real general\n";
const SYMMETRIC: &str = "%%MatrixMarket matrix coordinate real symmetric\n";

/// A file name, its bytes, the line of the error (0: the message has none) and what it says.
pub(crate) type Broken = (&'static str, Vec<u8>, usize, &'static str);

pub(crate) fn real(rest: &str) -> Vec<u8> {
    format!("{REAL}{rest}").into_bytes()
}

fn banner(words: &str) -> Vec<u8> {
    format!("%%MatrixMarket {words}\n2 2 1\n1 1 1\n").into_bytes()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn long_file() -> Vec<u8> {
    let mut text = format!("{REAL}5000 5000 5000\n");
    for i in 1..=5000 {
        writeln!(text, "{i} {i} {}", f64::from(i).sqrt()).unwrap();
    }
    text.into_bytes()
}

fn market_files() -> Vec<Broken> {
    let mut late = long_file();
    let at = late.len() - 10;
    late[at] = b'x';
    vec![
        // The banner.
        ("empty.mtx", vec![], 1, "the file or its first line is empty"),
        ("blank.mtx", b"\n\n".to_vec(), 1, "the file or its first line is empty"),
        (
            "no-banner.mtx",
            b"2 2 1\n1 1 1\n".to_vec(),
            1,
            "found `2`, not a `%%MatrixMarket` banner",
        ),
        ("one-percent.mtx", b"%MatrixMarket matrix\n".to_vec(), 1, "found `%MatrixMarket`"),
        (
            "binary.mtx",
            vec![0x1f, 0x8b, 8, 0, 0xff, 0xfe, 7, 0x1b],
            1,
            "not a `%%MatrixMarket` banner",
        ),
        ("utf16.mtx", vec![0xff, 0xfe, b'%', 0, b'%', 0], 1, "not a `%%MatrixMarket` banner"),
        (
            "mark.mtx",
            [b"\xef\xbb\xbf", &real("2 2 1\n1 1 1\n")[..]].concat(),
            1,
            "begins with a byte order mark; remove it",
        ),
        ("short-banner.mtx", banner("matrix coordinate"), 1, "3 words instead of 5"),
        ("long-banner.mtx", banner("matrix coordinate real general x"), 1, "6 words instead of 5"),
        ("vector.mtx", banner("vector coordinate real general"), 1, "object `vector`"),
        ("format.mtx", banner("matrix sparse real general"), 1, "unknown format `sparse`"),
        ("complex.mtx", banner("matrix coordinate complex general"), 1, "field `complex`"),
        ("field.mtx", banner("matrix coordinate quaternion general"), 1, "field `quaternion`"),
        ("hermitian.mtx", banner("matrix coordinate real hermitian"), 1, "symmetry `hermitian`"),
        ("symmetry.mtx", banner("matrix coordinate real upper"), 1, "symmetry `upper`"),
        ("pattern-array.mtx", banner("matrix array pattern general"), 1, "cannot be `array`"),
        (
            "pattern-skew.mtx",
            banner("matrix coordinate pattern skew-symmetric"),
            1,
            "cannot be `skew",
        ),
        // The size line.
        ("only-banner.mtx", real(""), 1, "ends before the size line"),
        ("only-comments.mtx", real("% a\n% b\n\n"), 4, "ends before the size line"),
        ("short-size.mtx", real("% a\n2 2\n1 1 1\n"), 3, "`2 2` is not a size line"),
        ("long-size.mtx", real("2 2 1 7\n1 1 1\n"), 2, "`2 2 1 7` is not a size line"),
        ("negative-size.mtx", real("-2 2 1\n1 1 1\n"), 2, "`-2 2 1` is not a size line"),
        ("float-size.mtx", real("2.0 2 1\n1 1 1\n"), 2, "is not a size line"),
        ("huge-rows.mtx", real("4294967296 2 1\n1 1 1\n"), 2, "4294967296 × 2 is too large"),
        (
            "overflowing-cols.mtx",
            real("2 99999999999999999999999 1\n1 1 1\n"),
            2,
            "2 × 99999999999999999999999 is too large",
        ),
        (
            "lying-count.mtx",
            real("2 2 4000000000\n1 1 1\n"),
            2,
            "the 6 bytes that follow hold at most 1",
        ),
        ("absurd-rows.mtx", real("4000000000 2 1\n1 1 1\n"), 2, "absurdly large for 1 entries"),
        ("absurd-cols.mtx", real("2 4000000000 1\n1 1 1\n"), 2, "absurdly large for 1 entries"),
        (
            "lying-array.mtx",
            b"%%MatrixMarket matrix array real general\n4000000000 4000000000\n1\n".to_vec(),
            2,
            "16000000000000000000 entries are promised",
        ),
        ("rectangular.mtx", format!("{SYMMETRIC}2 3 1\n1 1 1\n").into_bytes(), 2, "not square"),
        // The entries.
        ("zero-row.mtx", real("2 2 1\n0 1 1\n"), 3, "row 0 is out of range: indices start at 1"),
        ("zero-column.mtx", real("2 2 1\n1 0 1\n"), 3, "column 0 is out of range"),
        ("row-range.mtx", real("2 2 2\n1 1 1\n3 1 1\n"), 4, "row 3 is out of range 1..=2"),
        ("column-range.mtx", real("2 2 1\n1 3 1\n"), 3, "column 3 is out of range 1..=2"),
        ("no-rows.mtx", real("0 2 1\n1 1 1\n"), 3, "row 1 is out of range"),
        (
            "wide-index.mtx",
            real("2 2 1\n1099511627776 1 1\n"),
            3,
            "row 1099511627776 is out of range",
        ),
        (
            "long-index.mtx",
            real("2 2 1\n1 18446744073709551617 1\n"),
            3,
            "column 18446744073709551617 is out of range",
        ),
        ("negative-index.mtx", real("2 2 1\n-1 1 1\n"), 3, "`-1` is not a row index"),
        ("word-index.mtx", real("2 2 1\n1 one 1\n"), 3, "`one` is not a column index"),
        ("float-index.mtx", real("2 2 1\n1.0 1 1\n"), 3, "`1.0` is not a row index"),
        ("nan.mtx", real("2 2 1\n1 1 NaN\n"), 3, "`NaN` is not finite"),
        ("inf.mtx", real("2 2 2\n1 1 1\n1 2 -inf\n"), 4, "`-inf` is not finite"),
        ("overflow.mtx", real("2 2 1\n1 1 1e999\n"), 3, "`1e999` is not finite"),
        ("word-value.mtx", real("2 2 1\n1 1 abc\n"), 3, "`abc` is not a number"),
        ("comma-value.mtx", real("2 2 1\n1 1 1,5\n"), 3, "`1,5` is not a number"),
        ("hex-value.mtx", real("2 2 1\n1 1 0x1p3\n"), 3, "`0x1p3` is not a number"),
        ("escape-value.mtx", real("2 2 1\n1 1 \x1b[31m\n"), 3, "`?[31m` is not a number"),
        ("no-value.mtx", real("2 2 2\n1 1 \n1 2 2\n"), 3, "the line ends before the value"),
        ("only-no-value.mtx", real("2 2 1\n1 1\n"), 3, "the line ends before the value"),
        ("no-column.mtx", real("2 2 1\n1\n 1 1\n"), 3, "the line ends before the column"),
        ("trailing.mtx", real("2 2 1\n1 1 1 0\n"), 3, "`0` follows a complete entry"),
        (
            "pattern-value.mtx",
            b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 3.5\n".to_vec(),
            3,
            "`3.5` follows a complete entry",
        ),
        (
            "integer.mtx",
            b"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1.5\n".to_vec(),
            3,
            "`1.5` is not an integer",
        ),
        (
            "skew-diagonal.mtx",
            b"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n2 1 1\n2 2 1\n".to_vec(),
            4,
            "entry (2, 2) is on the diagonal",
        ),
        (
            "binary-body.mtx",
            [&real("2 2 2\n1 1 1\n")[..], &[0, 1, 2, 0xff, 0x80, 9, 200]].concat(),
            4,
            "is not a row index",
        ),
        ("late.mtx", late, 5002, "is not a number"),
        // The counts.
        ("too-few.mtx", real("2 2 3\n1 1 1000\n2 2 1000\n"), 4, "after 2 of 3 promised entries"),
        ("no-entries.mtx", real("2 2 1\n% nothing here\n\n"), 4, "after 0 of 1 promised entries"),
        ("too-many.mtx", real("2 2 1\n1 1 1\n\n2 2 1\n"), 5, "more than the 1 promised entries"),
        ("cut-mid-line.mtx", real("2 2 2\n1 1 1.5\n2 2"), 4, "the line ends before the value"),
        (
            "short-array.mtx",
            b"%%MatrixMarket matrix array real general\n2 2\n1.0\n2.0\n3.0\n".to_vec(),
            5,
            "after 3 of 4 promised entries",
        ),
        (
            "long-array.mtx",
            b"%%MatrixMarket matrix array real general\n1 1\n1.0\n2.0\n".to_vec(),
            4,
            "more than the 1 promised entries",
        ),
        (
            "array-line.mtx",
            b"%%MatrixMarket matrix array real general\n1 2\n1.0 2.0\n".to_vec(),
            3,
            "`2.0` follows a complete entry",
        ),
        // Duplicates.
        ("duplicate.mtx", real("2 2 3\n1 1 1\n2 2 1\n1 1 5\n"), 5, "entry (1, 1) occurs before"),
        (
            "both-triangles.mtx",
            format!("{SYMMETRIC}3 3 3\n2 1 1\n% x\n1 2 1\n3 3 1\n").into_bytes(),
            5,
            "occurs before",
        ),
    ]
}

fn smtx_files() -> Vec<Broken> {
    let file = |text: &str| text.as_bytes().to_vec();
    vec![
        ("empty.smtx", vec![], 1, "the file or its first line is empty"),
        ("size.smtx", file("2, 3\n0 1 2\n0 1\n"), 1, "`2, 3` is not a size line"),
        ("negative.smtx", file("2, -3, 2\n0 1 2\n0 1\n"), 1, "is not a size line"),
        ("huge.smtx", file("99999999999, 3, 2\n0 1 2\n0 1\n"), 1, "is too large"),
        (
            "lying-rows.smtx",
            file("16000000, 3, 2\n0 1 2\n0 1\n"),
            2,
            "expected 16000001 row offsets, found 3",
        ),
        (
            "absurd-rows.smtx",
            file("4000000000, 3, 2\n0 1 2\n0 1\n"),
            1,
            "absurdly large for 2 entries",
        ),
        (
            "absurd-columns.smtx",
            file("2, 4000000000, 2\n0 1 2\n0 1\n"),
            1,
            "absurdly large for 2 entries",
        ),
        (
            "lying-count.smtx",
            file("2, 3, 4000000000\n0 1 4000000000\n0 1\n"),
            3,
            "expected 4000000000 columns",
        ),
        ("few-offsets.smtx", file("2, 3, 2\n0 2\n0 1\n"), 2, "expected 3 row offsets, found 2"),
        ("word-offset.smtx", file("2, 3, 2\n0 x 2\n0 1\n"), 2, "`x` in the row offsets"),
        ("first-offset.smtx", file("2, 3, 2\n1 1 2\n0 1\n"), 2, "the first row offset is 1"),
        (
            "decreasing.smtx",
            file("3, 3, 2\n0 2 1 2\n0 1\n"),
            2,
            "row 1 starts at offset 2 but ends at 1",
        ),
        (
            "last-offset.smtx",
            file("2, 3, 2\n0 1 1\n0 1\n"),
            2,
            "the last row offset is 1; it must be 2",
        ),
        ("few-columns.smtx", file("2, 3, 2\n0 1 2\n0\n"), 3, "expected 2 columns, found 1"),
        ("no-columns.smtx", file("2, 3, 2\n0 1 2"), 3, "expected 2 columns, found 0"),
        ("many-columns.smtx", file("2, 3, 2\n0 1 2\n0 1 2\n"), 3, "expected 2 columns, found 3"),
        ("column-range.smtx", file("2, 3, 2\n0 1 2\n0 3\n"), 3, "entry 1 has column 3"),
        ("float-column.smtx", file("2, 3, 2\n0 1 2\n0 1.5\n"), 3, "`1.5` in the columns"),
        ("duplicate.smtx", file("2, 3, 2\n0 2 2\n1 1\n"), 3, "row 0 has column 1 more than once"),
        ("trailing.smtx", file("2, 3, 2\n0 1 2\n0 1\n\n7\n"), 5, "`7` follows the columns"),
    ]
}

fn harwell_boeing_files() -> Vec<Broken> {
    let file = |sizes: &str, starts: &str| {
        format!("title\n 9 1 1 1 0\n{sizes}\n(4I4)           (4I4)           (4E8.1)\n{starts}\n")
            .into_bytes()
    };
    vec![
        (
            "absurd-rows.rua",
            file("rua 4000000000 3 4 0", "   1   3   3   5"),
            3,
            "absurdly large for 4 entries",
        ),
        (
            "lying-count.rua",
            file("rua 4000000000 1 99999999 0", "   1   3"),
            5,
            "they must go from 1 to 100000000",
        ),
    ]
}

fn compressed_files() -> Vec<Broken> {
    let whole = gzip(&long_file());
    let mut wrong_sum = whole.clone();
    let sum = whole.len() - 6;
    wrong_sum[sum] ^= 1;
    vec![
        ("empty.mtx.gz", vec![], 1, "cannot decompress"),
        ("plain.mtx.gz", real("2 2 1\n1 1 1\n"), 1, "cannot decompress"),
        ("header-only.mtx.gz", whole[..8].to_vec(), 1, "cannot decompress"),
        ("wrong-sum.mtx.gz", wrong_sum, 5003, "cannot decompress"),
        (
            "trailing.mtx.gz",
            [&whole[..], b"\0\0more"].concat(),
            0,
            "6 bytes after the compressed data",
        ),
        ("inner.mtx.gz", gzip(&real("2 2 1\n1 0 1\n")), 3, "column 0 is out of range"),
        ("inner.smtx.gz", gzip(b"2, 3, 2\n0 1 1\n0 1\n"), 2, "the last row offset"),
        ("unknown.csv", b"1,2\n".to_vec(), 0, "unknown extension"),
        ("unknown", b"1,2\n".to_vec(), 0, "unknown extension"),
        ("unknown.gz", b"1,2\n".to_vec(), 0, "unknown extension"),
        (
            "matlab.MAT",
            b"MATLAB 5.0".to_vec(),
            0,
            "MATLAB's .mat is not read; take the same matrix as Matrix Market",
        ),
    ]
}

/// Every broken file.
pub(crate) fn all() -> Vec<Broken> {
    [market_files(), smtx_files(), harwell_boeing_files(), compressed_files()].concat()
}
