//! Sparse matrices as SciPy's `save_npz` writes them: a ZIP archive of NumPy arrays.
//!
//! ```text
//! format.npy   csr, csc, coo, bsr or dia
//! shape.npy    rows, columns
//! data.npy     values: of entries, of blocks, or of diagonals
//! indptr.npy   indices.npy      csr, csc, bsr
//! row.npy      col.npy          coo
//! offsets.npy                   dia
//! ```

use std::format;
use std::io::{self, Cursor, Read};
use std::str;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use half::f16;
use thiserror::Error;
use zip::ZipArchive;

use super::assemble::{Conflict, Entry, Part, RowBuckets, assemble};
use super::{Absurd, Csr, Duplicates, Scalar, plausible};

/// Begins every array.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Why bytes are not such a matrix.
#[derive(Debug, Error)]
pub enum NpzError {
    /// It is no ZIP archive, or a damaged one.
    #[error("is no .npz archive: {0}")]
    Archive(#[from] zip::result::ZipError),
    /// An array is not there: it is another kind of .npz file.
    #[error("holds no {name}.npy; expected what scipy.sparse.save_npz writes")]
    Missing {
        /// The array.
        name: &'static str,
    },
    /// An array cannot be read.
    #[error("{name}.npy: {reason}")]
    Array {
        /// The array.
        name: &'static str,
        /// Why.
        reason: String,
    },
    /// The arrays decompress to more than is allowed.
    #[error("decompresses to more than {limit} bytes; if it is genuine, raise the limit")]
    TooLong {
        /// The limit that was exceeded.
        limit: u64,
    },
    /// Not one of SciPy's formats that are read.
    #[error("has the format `{found}`; expected csr, csc, coo, bsr or dia")]
    Format {
        /// The format.
        found: String,
    },
    /// So many empty rows or columns that the sizes are surely wrong.
    #[error("{0}")]
    Absurd(#[from] Absurd),
    /// The arrays do not describe a matrix.
    #[error("is no matrix: {0}")]
    Inconsistent(String),
}

/// Reads an archive whose arrays decompress to at most `limit` bytes. Also gives the number of
/// entries that were added to an earlier one at the same position.
///
/// # Errors
/// The first error found.
pub fn parse<T: Scalar>(
    bytes: &[u8],
    duplicates: Duplicates,
    limit: u64,
) -> Result<(Csr<T>, usize), NpzError> {
    let mut archive = Arrays { archive: ZipArchive::new(Cursor::new(bytes))?, left: limit, limit };
    let format = archive.array("format")?.text();
    let shape = archive.array("shape")?.integers()?;
    let &[rows, cols] = shape.as_slice() else {
        return Err(inconsistent(format!("its shape has {} dimensions", shape.len())));
    };
    let size = |what: &str, size: i64| {
        u32::try_from(size).map_err(|_| {
            inconsistent(format!("it has {size} {what}, which must be from 0 to 2^32 - 1"))
        })
    };
    let (rows, cols) = (size("rows", rows)?, size("columns", cols)?);
    let mut entries: Entries<T> = match format.as_str() {
        "csr" | "csc" => compressed(&mut archive, (rows, cols), format == "csc")?,
        "bsr" => blocks(&mut archive, (rows, cols))?,
        "coo" => coordinates(&mut archive, (rows, cols))?,
        "dia" => diagonals(&mut archive, (rows, cols))?,
        _ => return Err(NpzError::Format { found: format.escape_debug().to_string() }),
    };
    if let Some(entry) = entries.iter().find(|entry| !entry.value.to_f64().is_finite()) {
        let Entry { row, col, .. } = entry;
        return Err(inconsistent(format!("entry ({row}, {col}), from 0, is not finite")));
    }
    entries.shrink_to_fit();
    let listed = entries.len();
    plausible::check(rows.into(), cols.into(), listed as u64)?;
    let buckets = RowBuckets::new(rows as usize, listed);
    let parts = vec![Part::new(entries, buckets)];
    let matrix = assemble(rows as usize, cols as usize, buckets, &parts, duplicates);
    let matrix = matrix.map_err(|conflict| match conflict {
        Conflict::Duplicate { row, col } => {
            inconsistent(format!("entry ({row}, {col}), from 0, occurs more than once"))
        }
        Conflict::SumOverflow { row, col } => {
            inconsistent(format!("the entries at ({row}, {col}), from 0, add up to too much"))
        }
    })?;
    let summed = listed - matrix.nnz();
    Ok((matrix, summed))
}

fn inconsistent(reason: String) -> NpzError {
    NpzError::Inconsistent(reason)
}

type Entries<T> = Vec<Entry<T>>;

/// An entry at a position that must be in the matrix.
fn entry<T: Scalar>(
    (rows, cols): (u32, u32),
    row: i64,
    col: i64,
    value: f64,
) -> Result<Entry<T>, NpzError> {
    let inside = |at: i64, size: u32| u32::try_from(at).ok().filter(|&at| at < size);
    match (inside(row, rows), inside(col, cols)) {
        (Some(row), Some(col)) => Ok(Entry { row, col, value: T::from_f64(value) }),
        _ => Err(inconsistent(format!("entry ({row}, {col}), from 0, lies outside"))),
    }
}

fn compressed<T: Scalar>(
    arrays: &mut Arrays<'_>,
    shape: (u32, u32),
    by_column: bool,
) -> Result<Entries<T>, NpzError> {
    let starts = arrays.array("indptr")?.integers()?;
    let indices = arrays.array("indices")?.integers()?;
    let values = arrays.array("data")?.reals()?;
    let major = if by_column { shape.1 } else { shape.0 };
    let runs = runs(&starts, major as usize, indices.len(), values.len())?;
    let mut entries = Vec::with_capacity(indices.len());
    for (major, run) in runs.into_iter().enumerate() {
        for (&minor, &value) in indices[run.clone()].iter().zip(&values[run]) {
            let (row, col) = if by_column { (minor, major as i64) } else { (major as i64, minor) };
            entries.push(entry(shape, row, col, value)?);
        }
    }
    Ok(entries)
}

fn blocks<T: Scalar>(arrays: &mut Arrays<'_>, shape: (u32, u32)) -> Result<Entries<T>, NpzError> {
    let starts = arrays.array("indptr")?.integers()?;
    let indices = arrays.array("indices")?.integers()?;
    let data = arrays.array("data")?;
    let &[count, height, width] = data.shape.as_slice() else {
        return Err(inconsistent("its data are no list of blocks".into()));
    };
    if height == 0 || width == 0 || !(shape.0 as usize).is_multiple_of(height) {
        return Err(inconsistent(format!("its blocks of {height} × {width} do not tile it")));
    }
    let values = data.reals()?;
    let runs = runs(&starts, shape.0 as usize / height, indices.len(), count)?;
    let mut entries = Vec::with_capacity(values.len());
    for (block_row, run) in runs.into_iter().enumerate() {
        for block in run {
            let first = indices[block].checked_mul(width as i64).unwrap_or(i64::MAX);
            for at in 0..height * width {
                let row = (block_row * height + at / width) as i64;
                let col = first.saturating_add((at % width) as i64);
                entries.push(entry(shape, row, col, values[block * height * width + at])?);
            }
        }
    }
    Ok(entries)
}

fn coordinates<T: Scalar>(
    arrays: &mut Arrays<'_>,
    shape: (u32, u32),
) -> Result<Entries<T>, NpzError> {
    let (rows, cols) = (arrays.array("row")?.integers()?, arrays.array("col")?.integers()?);
    let values = arrays.array("data")?.reals()?;
    if rows.len() != cols.len() || rows.len() != values.len() {
        return Err(inconsistent("its row, col and data have different lengths".into()));
    }
    let entries = rows.iter().zip(&cols).zip(&values);
    entries.map(|((&row, &col), &value)| entry(shape, row, col, value)).collect()
}

/// Zeros of diagonals are not stored.
fn diagonals<T: Scalar>(
    arrays: &mut Arrays<'_>,
    shape: (u32, u32),
) -> Result<Entries<T>, NpzError> {
    let offsets = arrays.array("offsets")?.integers()?;
    let data = arrays.array("data")?;
    let &[count, length] = data.shape.as_slice() else {
        return Err(inconsistent("its data are no list of diagonals".into()));
    };
    if count != offsets.len() {
        return Err(inconsistent(format!(
            "it has {count} diagonals and {} offsets",
            offsets.len()
        )));
    }
    let values = data.reals()?;
    let mut entries = Vec::new();
    for (diagonal, offset) in offsets.into_iter().enumerate() {
        // The value in column j of the data is that of column j of the matrix.
        for col in 0..length.min(shape.1 as usize) {
            let value = values[diagonal * length + col];
            let row = (col as i64).saturating_sub(offset);
            if value != 0.0 && (0..i64::from(shape.0)).contains(&row) {
                entries.push(entry(shape, row, col as i64, value)?);
            }
        }
    }
    Ok(entries)
}

/// Where the entries of each row or column are, of `entries` with as many `values`.
fn runs(
    starts: &[i64],
    count: usize,
    entries: usize,
    values: usize,
) -> Result<Vec<core::ops::Range<usize>>, NpzError> {
    if entries != values {
        return Err(inconsistent(format!("it has {entries} indices and {values} values")));
    }
    if starts.len() != count + 1 || starts.first() != Some(&0) {
        return Err(inconsistent(format!("its indptr does not start {count} rows or columns")));
    }
    let run = |pair: &[i64]| {
        let (from, to) = (usize::try_from(pair[0]).ok()?, usize::try_from(pair[1]).ok()?);
        (from <= to && to <= entries).then_some(from..to)
    };
    let runs: Option<Vec<_>> = starts.windows(2).map(run).collect();
    runs.ok_or_else(|| inconsistent("its indptr decreases or exceeds the entries".into()))
}

/// The arrays of an archive, as far as the limit lets them be read.
struct Arrays<'b> {
    archive: ZipArchive<Cursor<&'b [u8]>>,
    left: u64,
    limit: u64,
}

/// An array as its file has it.
struct Array {
    name: &'static str,
    /// NumPy's type, such as `<f8`.
    kind: String,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Arrays<'_> {
    fn array(&mut self, name: &'static str) -> Result<Array, NpzError> {
        let mut file = match self.archive.by_name(&format!("{name}.npy")) {
            Err(zip::result::ZipError::FileNotFound) => return Err(NpzError::Missing { name }),
            file => file?,
        };
        let failed = |reason: String| NpzError::Array { name, reason };
        let mut bytes = Vec::new();
        let read = (&mut file).take(self.left.saturating_add(1)).read_to_end(&mut bytes);
        let read = read.map_err(|error: io::Error| failed(error.to_string()))? as u64;
        let limit = self.limit;
        self.left = self.left.checked_sub(read).ok_or(NpzError::TooLong { limit })?;
        Array::parse(name, bytes).map_err(|reason| failed(reason.into()))
    }
}

impl Array {
    fn parse(name: &'static str, mut bytes: Vec<u8>) -> Result<Self, &'static str> {
        let rest = bytes.strip_prefix(MAGIC).ok_or("is no NumPy array")?;
        let (length, start) = match *rest {
            [1, _, a, b, ..] => (usize::from(u16::from_le_bytes([a, b])), MAGIC.len() + 4),
            [2 | 3, _, a, b, c, d, ..] => {
                (u32::from_le_bytes([a, b, c, d]) as usize, MAGIC.len() + 6)
            }
            _ => return Err("is of an unknown version of NumPy's format"),
        };
        let header = bytes.get(start..start.saturating_add(length)).ok_or("ends in its header")?;
        let header = str::from_utf8(header).map_err(|_| "has a header that is no text")?;
        let value = |key: &str| {
            let (_, rest) = header.split_once(&format!("'{key}':"))?;
            Some(rest.trim_start())
        };
        let kind = value("descr").and_then(|rest| rest.strip_prefix('\''));
        let kind = kind.and_then(|rest| rest.split_once('\'')).ok_or("has a structured type")?;
        let kind = kind.0.to_string();
        if value("fortran_order").is_none_or(|rest| !rest.starts_with("False")) && {
            // Of one dimension both orders are the same.
            value("shape")
                .is_none_or(|rest| rest.split(')').next().unwrap_or("").matches(',').count() > 1)
        } {
            return Err("is in Fortran order");
        }
        let shape = value("shape").and_then(|rest| rest.strip_prefix('('));
        let (shape, _) = shape.and_then(|rest| rest.split_once(')')).ok_or("has no shape")?;
        let shape = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
        let shape: Option<Vec<usize>> = shape.map(|size| size.parse().ok()).collect();
        let shape = shape.ok_or("has no shape")?;
        bytes.drain(..start + length);
        Ok(Self { name, kind, shape, bytes })
    }

    /// Elements, which must be as many as the shape says.
    fn elements(&self, bytes: usize) -> Result<usize, NpzError> {
        let count = self.shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size));
        count.filter(|&count| count.checked_mul(bytes) == Some(self.bytes.len())).ok_or_else(|| {
            let reason = format!("has {} bytes, which its shape is not of", self.bytes.len());
            NpzError::Array { name: self.name, reason }
        })
    }

    fn text(&self) -> String {
        self.bytes.iter().filter(|&&byte| byte != 0).map(|&byte| char::from(byte)).collect()
    }

    fn integers(&self) -> Result<Vec<i64>, NpzError> {
        macro_rules! read {
            ($type:ty) => {
                self.numbers(|chunk| <$type>::from_le_bytes(chunk)).map(|numbers| {
                    numbers.into_iter().map(|n| i64::try_from(n).unwrap_or(i64::MAX)).collect()
                })
            };
        }
        match self.kind.as_str() {
            "<i4" => read!(i32),
            "<i8" => read!(i64),
            "<u4" => read!(u32),
            "<u8" => read!(u64),
            "<i2" => read!(i16),
            "<u2" => read!(u16),
            "|i1" => read!(i8),
            "|u1" => read!(u8),
            _ => Err(self.unknown("little-endian integers")),
        }
    }

    fn reals(&self) -> Result<Vec<f64>, NpzError> {
        macro_rules! read {
            ($type:ty) => {
                self.numbers(|chunk| <$type>::from_le_bytes(chunk) as f64)
            };
        }
        match self.kind.as_str() {
            "<f8" => read!(f64),
            "<f4" => read!(f32),
            "<f2" => self.numbers(|chunk| f16::from_le_bytes(chunk).to_f64()),
            "<i8" => read!(i64),
            "<i4" => read!(i32),
            "<i2" => read!(i16),
            "|i1" => read!(i8),
            "<u8" => read!(u64),
            "<u4" => read!(u32),
            "<u2" => read!(u16),
            "|u1" | "|b1" => read!(u8),
            _ => Err(self.unknown("little-endian real numbers")),
        }
    }

    fn numbers<const N: usize, V>(&self, read: impl Fn([u8; N]) -> V) -> Result<Vec<V>, NpzError> {
        self.elements(N)?;
        let (chunks, _) = self.bytes.as_chunks::<N>();
        Ok(chunks.iter().map(|chunk| read(*chunk)).collect())
    }

    fn unknown(&self, expected: &str) -> NpzError {
        let reason = format!("is of `{}`; expected {expected}", self.kind.escape_debug());
        NpzError::Array { name: self.name, reason }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn array(kind: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
        let header =
            format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let length = (header.len() as u16).to_le_bytes();
        [MAGIC, &[1, 0], &length, header.as_bytes(), bytes].concat()
    }

    fn integers(numbers: &[i32]) -> Vec<u8> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        array("<i4", &format!("{},", numbers.len()), &bytes)
    }

    fn reals(shape: &str, numbers: &[f64]) -> Vec<u8> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        array("<f8", shape, &bytes)
    }

    fn archive(format: &str, shape: [i32; 2], arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let own = [("format", array("|S3", "", format.as_bytes())), ("shape", integers(&shape))];
        for (name, bytes) in own.iter().chain(arrays) {
            writer.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn read(bytes: &[u8]) -> Result<Csr<f64>, String> {
        let parsed = parse::<f64>(bytes, Duplicates::Sum, 1 << 20);
        parsed.map(|(matrix, _)| matrix).map_err(|error| error.to_string())
    }

    #[test]
    fn every_format_gives_the_same_matrix() {
        // 1 0 2 0
        // 0 0 0 3
        let data = || reals("3,", &[1.0, 2.0, 3.0]);
        let rows = || integers(&[0, 2, 3]);
        let csr = [("indptr", rows()), ("indices", integers(&[0, 2, 3])), ("data", data())];
        let csr = read(&archive("csr", [2, 4], &csr)).unwrap();
        assert_eq!(csr.view().row(0), (&[0, 2][..], &[1.0, 2.0][..]));
        assert_eq!(csr.view().row(1), (&[3][..], &[3.0][..]));
        let starts = integers(&[0, 1, 1, 2, 3]);
        let csc = [("indptr", starts), ("indices", integers(&[0, 0, 1])), ("data", data())];
        assert_eq!(read(&archive("csc", [2, 4], &csc)), Ok(csr.clone()));
        let coo = [("row", integers(&[0, 0, 1])), ("col", integers(&[0, 2, 3])), ("data", data())];
        assert_eq!(read(&archive("coo", [2, 4], &coo)), Ok(csr.clone()));
        let values = reals("2, 4", &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 3.0]);
        let dia = [("offsets", integers(&[0, 2])), ("data", values)];
        assert_eq!(read(&archive("dia", [2, 4], &dia)), Ok(csr));
        // Blocks keep their zeros.
        let values = reals("2, 1, 2", &[1.0, 0.0, 0.0, 3.0]);
        let bsr = [("indptr", rows()), ("indices", integers(&[0, 1])), ("data", values)];
        let bsr = archive(
            "bsr",
            [2, 4],
            &[("indptr", integers(&[0, 1, 2])), bsr[1].clone(), bsr[2].clone()],
        );
        let bsr = read(&bsr).unwrap();
        assert_eq!(bsr.view().row(1), (&[2, 3][..], &[0.0, 3.0][..]));
    }

    #[test]
    fn half_precision_and_small_indices_are_read() {
        let halves: Vec<u8> =
            [1.5, -0.25].iter().flat_map(|&x| f16::from_f64(x).to_le_bytes()).collect();
        let coo = [
            ("row", array("|u1", "2,", &[0, 1])),
            ("col", array("<u2", "2,", &[2, 0, 0, 0])),
            ("data", array("<f2", "2,", &halves)),
        ];
        let coo = read(&archive("coo", [2, 3], &coo)).unwrap();
        assert_eq!(coo.view().row(0), (&[2][..], &[1.5][..]));
        assert_eq!(coo.view().row(1), (&[0][..], &[-0.25][..]));
    }

    #[test]
    fn claims_of_rows_and_columns_take_no_memory() {
        let none = || integers(&[]);
        for (rows, cols) in [(i32::MAX, 2), (2, i32::MAX)] {
            let coo = [("row", none()), ("col", none()), ("data", reals("0,", &[]))];
            let error = read(&archive("coo", [rows, cols], &coo)).unwrap_err();
            assert!(error.contains("is absurdly large for 0 entries"), "{error}");
        }
        // A single block row of no blocks.
        let starts = ("indptr", integers(&[0, 0]));
        let data = reals(&format!("0, {}, 1", i32::MAX), &[]);
        let bsr = [starts, ("indices", none()), ("data", data)];
        let error = read(&archive("bsr", [i32::MAX, 2], &bsr)).unwrap_err();
        assert!(error.contains("is absurdly large for 0 entries"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let data = || ("data", reals("1,", &[1.0]));
        let starts = |starts: &[i32]| ("indptr", integers(starts));
        for (bytes, says) in [
            (b"PK".to_vec(), "is no .npz archive"),
            (archive("csr", [1, 1], &[data()]), "holds no indptr.npy"),
            (archive("lil", [1, 1], &[]), "has the format `lil`"),
            (
                archive("csr", [1, 1], &[starts(&[0, 1]), ("indices", integers(&[1])), data()]),
                "entry (0, 1), from 0, lies outside",
            ),
            (
                archive("csr", [1, 1], &[starts(&[0, 2]), ("indices", integers(&[0])), data()]),
                "exceeds the entries",
            ),
            (
                archive("csr", [1, 1], &[starts(&[0]), ("indices", integers(&[0])), data()]),
                "does not start 1 rows",
            ),
            (
                archive(
                    "csr",
                    [1, 1],
                    &[
                        starts(&[0, 1]),
                        ("indices", integers(&[0])),
                        ("data", array("<c16", "1,", &[0; 16])),
                    ],
                ),
                "data.npy: is of `<c16`",
            ),
            (
                archive(
                    "csr",
                    [1, 1],
                    &[
                        starts(&[0, 1]),
                        ("indices", integers(&[0])),
                        ("data", reals("1,", &[f64::NAN])),
                    ],
                ),
                "is not finite",
            ),
            (archive("csr", [-1, 1], &[]), "it has -1 rows"),
        ] {
            let error = read(&bytes).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        let large = archive("csr", [1, 1], &[starts(&[0; 1000])]);
        let error = parse::<f64>(&large, Duplicates::Sum, 1000).unwrap_err();
        assert!(matches!(error, NpzError::TooLong { limit: 1000 }), "{error}");
    }
}
