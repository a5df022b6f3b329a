//! Matrices by description: `FAMILY NUMBERS… [values KIND]`, such as `stencil5 12 12` or
//! `uniform 100 60 5 1 values few 7`.
//!
//! | family | numbers |
//! |---|---|
//! | those of [`generate`] under their names | the function's arguments |
//! | `empty` | rows, columns: no entries |
//! | `entry` | rows, columns: one entry, near the end |
//! | `full` | rows, columns: every entry |
//! | `dense_column` | rows, columns: one full column, and every third row's first entry |
//! | `strided` | rows, columns, entries of a row, distance between them: wide, but narrow by row |
//! | `graded` | rows, columns: rows of 1, 2, 4, … entries, again and again |
//! | `gaps` | rows, columns, every how many rows: five entries there, other rows are empty |
//!
//! Kinds of values: `constant`, `few` and how many, `zeros` (both signs), `denormal`, `huge`
//! (± 1e30 in f32, ± 1e300 in f64), `mixed`. Without one, a matrix has its family's values.

use anyhow::{Context, Result, bail, ensure};
use sparserl_core::arbitrary::random_bits;
use sparserl_core::matrix::{Csr, Offsets, Scalar, generate};
use sparserl_core::task::Dtype;

/// Builds the matrix of a description.
///
/// # Errors
/// When the description is not one.
pub fn build<T: Scalar>(description: &str) -> Result<Csr<T>> {
    let (shape, values) = match description.split_once(" values ") {
        Some((shape, values)) => (shape, Some(values)),
        None => (description, None),
    };
    let matrix = family(shape).with_context(|| format!("matrix `{description}`"))?;
    match values {
        None => Ok(matrix.cast()?),
        Some(values) => revalue(&matrix, values).with_context(|| format!("matrix `{description}`")),
    }
}

fn family(shape: &str) -> Result<Csr<f64>> {
    let mut words = shape.split_whitespace();
    let name = words.next().unwrap_or("");
    let numbers = words.map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let n: Vec<usize> = numbers.iter().map(|&n| n as usize).collect();
    Ok(match (name, n.as_slice()) {
        ("stencil5", &[nx, ny]) => generate::stencil5(nx, ny),
        ("stencil27", &[nx, ny, nz]) => generate::stencil27(nx, ny, nz),
        ("banded", &[rows, half, _]) => generate::banded(rows, half, numbers[2]),
        ("uniform", &[rows, cols, each, _]) => generate::uniform(rows, cols, each, numbers[3]),
        ("rmat", &[scale, factor, _]) => generate::rmat(scale as u32, factor, numbers[2]),
        ("fem_blocks", &[nodes, dof, _]) => generate::fem_blocks(nodes, dof, numbers[2]),
        ("hyper_sparse", &[rows, cols, entries, _]) => {
            generate::hyper_sparse(rows, cols, entries, numbers[3])
        }
        ("one_dense_row", &[rows, cols, _]) => generate::one_dense_row(rows, cols, numbers[2]),
        ("block_pruned", &[rows, cols, block, percent, _]) => {
            generate::block_pruned(rows, cols, block, percent, numbers[4])
        }
        ("empty", &[rows, cols]) => by_rows(rows, cols, |_| Vec::new())?,
        ("entry", &[rows, cols]) => {
            let last = (rows * 3 / 4, cols * 3 / 4);
            by_rows(rows, cols, |row| if row == last.0 { vec![last.1] } else { Vec::new() })?
        }
        ("full", &[rows, cols]) => by_rows(rows, cols, |_| (0..cols).collect())?,
        ("dense_column", &[rows, cols]) => by_rows(rows, cols, |row| match row % 3 {
            0 if cols > 1 => vec![0, cols / 2],
            _ => vec![cols / 2],
        })?,
        ("strided", &[rows, cols, each, distance]) => {
            ensure!(each * distance < cols, "rows of {each} entries do not fit");
            let room = cols - each * distance;
            by_rows(rows, cols, |row| {
                (0..each).map(|k| row * room / rows + k * distance).collect()
            })?
        }
        ("graded", &[rows, cols]) => {
            let steps = cols.ilog2() as usize + 1;
            by_rows(rows, cols, |row| {
                let count = 1 << (row % steps);
                (0..count).map(|k| k * (cols / count)).collect()
            })?
        }
        ("gaps", &[rows, cols, every]) => by_rows(rows, cols, |row| {
            let columns = row * 7 % cols.saturating_sub(9).max(1)..;
            let columns = columns.step_by(2).take(5).take_while(|&column| column < cols);
            if row.is_multiple_of(every) { columns.collect() } else { Vec::new() }
        })?,
        _ => bail!("no such family, or not its numbers"),
    })
}

/// A matrix of ordinary values from the columns of each row.
fn by_rows(rows: usize, cols: usize, columns_of: impl Fn(usize) -> Vec<usize>) -> Result<Csr<f64>> {
    let (mut offsets, mut columns) = (vec![0], Vec::new());
    for row in 0..rows {
        columns.extend(columns_of(row).into_iter().map(|column| column as u32));
        offsets.push(columns.len() as u64);
    }
    let mut random = random_bits(rows as u64 ^ (cols as u64) << 32);
    let values = columns.iter().map(|_| ordinary(random())).collect();
    Ok(Csr::new(rows, cols, Offsets::U64(offsets), columns, values)?)
}

/// A number in ±[1/8, 8), of as many digits as there are.
fn ordinary(random: u64) -> f64 {
    let sign = if random & 1 == 0 { 1.0 } else { -1.0 };
    let fraction = 1.0 + (random >> 12) as f64 * f64::EPSILON;
    sign * fraction * 2f64.powi((random >> 1 & 0xff) as i32 % 6 - 3)
}

/// The matrix with other values.
fn revalue<T: Scalar>(matrix: &Csr<f64>, kind: &str) -> Result<Csr<T>> {
    let words: Vec<&str> = kind.split_whitespace().collect();
    let smallest = T::DTYPE.smallest();
    // Of which rows can be added up.
    let huge = match T::DTYPE {
        Dtype::F64 => 1e300,
        Dtype::F32 | Dtype::BF16 => 1e30,
        Dtype::F16 => 10.0,
    };
    // As many bits as subnormal numbers have, up to 20.
    let denormal = match T::DTYPE {
        Dtype::F32 | Dtype::F64 => 44,
        Dtype::F16 => 64 - 10,
        Dtype::BF16 => 64 - 7,
    };
    let mut random = random_bits(matrix.nnz() as u64);
    let mut special = |kind: &str| -> Option<f64> {
        let bits = random();
        let sign = if bits & 1 == 0 { 1.0 } else { -1.0 };
        Some(match kind {
            "constant" => -0.7,
            "zeros" if bits.is_multiple_of(3) => sign * 0.0,
            "zeros" => ordinary(bits),
            "denormal" => sign * smallest * (1.0 + (bits >> denormal) as f64),
            "huge" => sign * huge,
            "mixed" => [0.0, huge, smallest, 3.25, ordinary(bits)][(bits >> 1) as usize % 5] * sign,
            _ => return None,
        })
    };
    let value: Box<dyn FnMut() -> f64> = match words.as_slice() {
        ["few", count] => {
            let count: u64 = count.parse()?;
            ensure!(count > 0, "no values");
            let mut random = random_bits(7);
            Box::new(move || f64::from((random() % count) as u32) * 0.3 - 1.0)
        }
        &[kind] => {
            ensure!(special(kind).is_some(), "no values `{kind}`");
            Box::new(move || special(kind).unwrap_or_default())
        }
        _ => bail!("no values `{kind}`"),
    };
    let values = std::iter::repeat_with(value).take(matrix.nnz()).map(T::from_f64).collect();
    let view = matrix.view();
    let offsets = (0..=matrix.rows()).map(|row| view.offsets().at(row) as u64).collect();
    let columns = view.columns().to_vec();
    Ok(Csr::new(matrix.rows(), matrix.cols(), Offsets::U64(offsets), columns, values)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_the_shapes_that_they_promise() {
        let shape = |description| {
            let matrix = build::<f64>(description).unwrap();
            (matrix.rows(), matrix.cols(), matrix.nnz())
        };
        assert_eq!(shape("stencil5 7 5"), (35, 35, 151));
        assert_eq!(shape("empty 3 4"), (3, 4, 0));
        assert_eq!(shape("entry 300 40"), (300, 40, 1));
        assert_eq!(shape("full 5 7"), (5, 7, 35));
        assert_eq!(shape("dense_column 6 4"), (6, 4, 8));
        assert_eq!(shape("strided 30 70000 5 700"), (30, 70000, 150));
        assert_eq!(shape("graded 28 9000"), (28, 9000, 2 * (2 * 8192 - 1)));
        assert_eq!(shape("gaps 10 50 4"), (10, 50, 15));
    }

    #[test]
    fn values_are_of_their_kind() {
        let values = |description| build::<f32>(description).unwrap().view().values().to_vec();
        assert!(values("full 9 9 values constant").iter().all(|&v| v == -0.7));
        assert!(values("full 9 9 values denormal").iter().all(|v| v.is_subnormal()));
        assert!(values("full 9 9 values huge").iter().all(|v| v.abs() == 1e30));
        let mut few = values("full 9 9 values few 3");
        few.sort_by(f32::total_cmp);
        few.dedup();
        assert_eq!(few.len(), 3);
        let zeros = values("full 9 9 values zeros");
        assert!(zeros.iter().any(|v| v.to_bits() == 1 << 31));
    }

    #[test]
    fn nonsense_is_refused() {
        for description in [
            "",
            "cube 3",
            "stencil5 3",
            "stencil5 a 3",
            "full 2 2 values few 0",
            "full 2 2 values odd",
        ] {
            assert!(build::<f64>(description).is_err(), "{description}");
        }
    }
}
