//! Matrices by their columns.

use std::mem::MaybeUninit;
use std::ops::Range;

use rayon::prelude::*;
use sparserl_core::matrix::{Csr, CsrView, Offsets, Scalar};

/// Entries from which another thread helps to transpose.
const ENTRIES_A_THREAD: usize = 50_000;
/// Threads that transpose, at most: each reads all columns.
const MOST_THREADS: usize = 16;

/// Aᵀ.
pub(crate) fn transpose<T: Scalar>(matrix: CsrView<'_, T>) -> Csr<T> {
    let values = matrix.values();
    let value = |entry: usize| values.get(entry).copied().unwrap_or_else(T::zeroed);
    let ByColumns { offsets, rows, of_entries } = by_columns(matrix, value);
    let offsets = Offsets::U64(offsets);
    match Csr::new(matrix.cols(), matrix.rows(), offsets, rows, of_entries) {
        Ok(transposed) => transposed,
        // The matrix is valid, and so is its transpose.
        Err(error) => unreachable!("{error}"),
    }
}

/// A matrix by its columns.
pub(crate) struct ByColumns<V> {
    pub(crate) offsets: Vec<u64>,
    pub(crate) rows: Vec<u32>,
    /// Something of each entry.
    pub(crate) of_entries: Vec<V>,
}

/// The columns `columns`, the next ones, with their parts of the arrays.
struct Columns<'a, V> {
    columns: Range<usize>,
    rows: &'a mut [MaybeUninit<u32>],
    of_entries: &'a mut [MaybeUninit<V>],
}

/// Sorts entries by their columns. Each thread goes through all of them and keeps those of its
/// columns: writes are what costs.
pub(crate) fn by_columns<T: Scalar, V: Send>(
    matrix: CsrView<'_, T>,
    of_entry: impl Fn(usize) -> V + Sync,
) -> ByColumns<V> {
    let nnz = matrix.nnz();
    let threads = rayon::current_num_threads().min(nnz / ENTRIES_A_THREAD).clamp(1, MOST_THREADS);
    let offsets = offsets(matrix, threads);
    // Not filled with zeros first: large arrays are new memory, which is best touched once.
    let (mut rows, mut of_entries) = (Vec::with_capacity(nnz), Vec::with_capacity(nnz));
    let (mut parts, mut begin) = (Vec::new(), 0);
    let mut rows_left = rows.spare_capacity_mut();
    let mut entries_left = of_entries.spare_capacity_mut();
    for thread in 1..=threads {
        let end = match thread {
            last if last == threads => matrix.cols(),
            _ => {
                let share = (nnz * thread / threads) as u64;
                offsets.partition_point(|&offset| offset < share).clamp(begin, matrix.cols())
            }
        };
        let at = |column: usize| offsets.get(column).map_or(nnz, |&offset| offset as usize);
        let length = at(end) - at(begin);
        let (part_rows, rest) = rows_left.split_at_mut(length);
        rows_left = rest;
        let (part_entries, rest) = entries_left.split_at_mut(length);
        entries_left = rest;
        parts.push(Columns { columns: begin..end, rows: part_rows, of_entries: part_entries });
        begin = end;
    }
    parts.into_par_iter().for_each(|part| part.fill(matrix, &offsets, &of_entry));
    // SAFETY: there is room for as many. Each of the matrix's entries is put at a place of its own,
    // as many in each column as were counted there, and those are `nnz` in all.
    unsafe {
        rows.set_len(nnz);
        of_entries.set_len(nnz);
    }
    ByColumns { offsets, rows, of_entries }
}

/// Where each column begins, and the last one ends. Each thread counts a part of the entries, as
/// long as its counters are fewer than those.
fn offsets<T: Scalar>(matrix: CsrView<'_, T>, threads: usize) -> Vec<u64> {
    let (columns, cols) = (matrix.columns(), matrix.cols());
    let threads = threads.min(columns.len() / (2 * cols.max(1))).max(1);
    let counts = columns.par_chunks(columns.len().div_ceil(threads).max(1)).map(|columns| {
        let mut counts = vec![0_u64; cols + 1];
        for &column in columns {
            if let Some(count) = counts.get_mut(column as usize + 1) {
                *count += 1;
            }
        }
        counts
    });
    let counts = counts.collect::<Vec<_>>().into_iter().reduce(|mut all, part| {
        all.iter_mut().zip(part).for_each(|(count, more)| *count += more);
        all
    });
    let mut offsets = counts.unwrap_or_else(|| vec![0; cols + 1]);
    let mut sum = 0;
    for count in &mut offsets {
        sum += *count;
        *count = sum;
    }
    offsets
}

impl<V> Columns<'_, V> {
    fn fill<T: Scalar>(
        self,
        matrix: CsrView<'_, T>,
        offsets: &[u64],
        of_entry: &impl Fn(usize) -> V,
    ) {
        let Self { columns, rows, of_entries } = self;
        let mut next = offsets.get(columns.clone()).unwrap_or_default().to_vec();
        let first = next.first().copied().unwrap_or(0);
        next.iter_mut().for_each(|place| *place -= first);
        let mut entry = 0;
        for row in 0..matrix.rows() {
            let of_row = matrix.row(row).0;
            // They increase: many rows have none of these columns.
            let has_none = match of_row {
                [begin, .., end] | [begin @ end] => {
                    (*end as usize) < columns.start || *begin as usize >= columns.end
                }
                [] => true,
            };
            if has_none {
                entry += of_row.len();
                continue;
            }
            for &column in of_row {
                let place = (column as usize).wrapping_sub(columns.start);
                if let Some(place) = next.get_mut(place) {
                    let at = *place as usize;
                    if let (Some(to), Some(of)) = (rows.get_mut(at), of_entries.get_mut(at)) {
                        to.write(row as u32);
                        of.write(of_entry(entry));
                    }
                    *place += 1;
                }
                entry += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sparserl_core::matrix::generate;

    use super::*;

    #[test]
    fn a_matrix_transposed_twice_is_itself() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        // The second has entries for three threads.
        for matrix in
            [generate::rmat(7, 5, 3), generate::rmat(15, 6, 3), generate::uniform(3, 0, 0, 1)]
        {
            let origins = |matrix: &Csr<f64>| by_columns(matrix.view(), |entry| entry).of_entries;
            let (once, there) = pool.install(|| (transpose(matrix.view()), origins(&matrix)));
            let (twice, back) = (transpose(once.view()), origins(&once));
            assert_eq!(matrix, twice);
            assert!(back.iter().zip(0..).all(|(&at, entry)| there[at] == entry));
        }
    }
}
