//! From entries in any order to CSR: a two-level counting sort.
//!
//! Level one splits each part of the entries (a chunk of a file, a slice of a [`Coo`](super::Coo))
//! into buckets of neighbouring rows. Level two takes one bucket from all the parts and counts and
//! scatters it row by row into its own slice of the result. Each level works on pieces that fit in
//! the cache, and no two pieces write to the same place, so both run on threads without locks.
//! Both levels keep the order of the input, so equal positions are summed in that order, however
//! the input was cut and however many threads there are.

use alloc::{vec, vec::Vec};

use super::{Csr, Offsets, Scalar, tasks};

/// Entries for which a bucket's part of the result still fits in a core's cache.
const ENTRIES_PER_BUCKET: usize = 1 << 15;
/// Rows for which a bucket's counters still fit, however few entries there are.
const ROWS_PER_BUCKET: usize = 1 << 18;
/// More buckets than this make the slices of one part too short.
const MOST_BUCKETS: usize = 1 << 11;
/// Rows up to this long are sorted in place.
const SHORT_ROW: usize = 12;

/// What to do with two entries at the same position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Duplicates {
    /// Add their values, as assembling a finite-element matrix does.
    #[default]
    Sum,
    /// Report the position as an error.
    Refuse,
}

/// One entry of a matrix, indices from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry<T> {
    pub(crate) row: u32,
    pub(crate) col: u32,
    pub(crate) value: T,
}

/// Why entries with valid indices and values do not form a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Conflict {
    /// Two entries at this position, and duplicates are refused.
    Duplicate { row: u32, col: u32 },
    /// The entries at this position add up to ±∞.
    SumOverflow { row: u32, col: u32 },
}

/// How the rows are cut into buckets: bucket = row >> shift.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowBuckets {
    shift: u32,
    count: usize,
}

impl RowBuckets {
    pub(crate) fn new(rows: usize, entries: usize) -> Self {
        let wanted = (entries / ENTRIES_PER_BUCKET).max(rows / ROWS_PER_BUCKET);
        Self::with_count(rows, wanted.clamp(1, MOST_BUCKETS))
    }

    fn with_count(rows: usize, most: usize) -> Self {
        let last_row = rows.saturating_sub(1);
        let mut shift = 0;
        while last_row >> shift >= most {
            shift += 1;
        }
        Self { shift, count: (last_row >> shift) + 1 }
    }

    fn of(self, row: u32) -> usize {
        row as usize >> self.shift
    }
}

/// Some of the entries of a matrix, grouped by bucket, in their original order within each.
#[derive(Debug)]
pub(crate) struct Part<T> {
    entries: Vec<Entry<T>>,
    /// Where each bucket starts; count + 1 values.
    starts: Vec<usize>,
}

impl<T: Scalar> Part<T> {
    pub(crate) fn new(entries: Vec<Entry<T>>, buckets: RowBuckets) -> Self {
        let mut starts = vec![0; buckets.count + 1];
        for entry in &entries {
            starts[buckets.of(entry.row) + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        // Files sorted by row need no move.
        if entries.is_sorted_by_key(|entry| buckets.of(entry.row)) {
            return Self { entries, starts };
        }
        let zero = Entry { row: 0, col: 0, value: T::from_f64(0.0) };
        let mut grouped = vec![zero; entries.len()];
        let mut next = starts.clone();
        for entry in &entries {
            let slot = &mut next[buckets.of(entry.row)];
            grouped[*slot] = *entry;
            *slot += 1;
        }
        Self { entries: grouped, starts }
    }

    fn bucket(&self, bucket: usize) -> &[Entry<T>] {
        &self.entries[self.starts[bucket]..self.starts[bucket + 1]]
    }

    fn bucket_len(&self, bucket: usize) -> usize {
        self.starts[bucket + 1] - self.starts[bucket]
    }
}

/// An integer type for row offsets.
trait Offset: Copy + Default + Send + Sync {
    fn from_usize(value: usize) -> Self;
    fn minus(self, value: usize) -> Self;
}

impl Offset for u32 {
    fn from_usize(value: usize) -> Self {
        value as Self
    }
    fn minus(self, value: usize) -> Self {
        self - value as Self
    }
}

impl Offset for u64 {
    fn from_usize(value: usize) -> Self {
        value as Self
    }
    fn minus(self, value: usize) -> Self {
        self - value as Self
    }
}

/// Builds the matrix. Every index in `parts` is in range and every value finite.
///
/// O(entries + rows), and sorting for the rows whose columns come out of order.
pub(crate) fn assemble<T: Scalar>(
    rows: usize,
    cols: usize,
    buckets: RowBuckets,
    parts: &[Part<T>],
    duplicates: Duplicates,
) -> Result<Csr<T>, Conflict> {
    let entries: usize = parts.iter().map(|part| part.entries.len()).sum();
    if u32::try_from(entries).is_ok() {
        let (offsets, columns, values) = arrays::<T, u32>(rows, buckets, parts, duplicates)?;
        Ok(Csr::from_valid(rows, cols, Offsets::U32(offsets), columns, values))
    } else {
        let (offsets, columns, values) = arrays::<T, u64>(rows, buckets, parts, duplicates)?;
        Ok(Csr::from_valid(rows, cols, Offsets::U64(offsets).narrowed(), columns, values))
    }
}

type Arrays<T, O> = (Vec<O>, Vec<u32>, Vec<T>);

fn arrays<T: Scalar, O: Offset>(
    rows: usize,
    buckets: RowBuckets,
    parts: &[Part<T>],
    duplicates: Duplicates,
) -> Result<Arrays<T, O>, Conflict> {
    let entries: usize = parts.iter().map(|part| part.entries.len()).sum();
    let mut offsets = vec![O::default(); rows + 1];
    let mut columns = vec![0; entries];
    let mut values = vec![T::from_f64(0.0); entries];

    let mut jobs = Vec::with_capacity(buckets.count);
    let mut base = 0;
    let (mut ends_left, mut columns_left, mut values_left) =
        (&mut offsets[1..], &mut columns[..], &mut values[..]);
    for bucket in 0..buckets.count {
        let len: usize = parts.iter().map(|part| part.bucket_len(bucket)).sum();
        let (ends, rest) = ends_left.split_at_mut((1 << buckets.shift).min(ends_left.len()));
        ends_left = rest;
        let (bucket_columns, rest) = columns_left.split_at_mut(len);
        columns_left = rest;
        let (bucket_values, rest) = values_left.split_at_mut(len);
        values_left = rest;
        jobs.push(Job {
            bucket,
            first_row: (bucket << buckets.shift) as u32,
            base,
            ends,
            columns: bucket_columns,
            values: bucket_values,
        });
        base += len;
    }
    let kept = tasks::map(jobs, |job| job.fill(parts, duplicates));
    let kept = kept.into_iter().collect::<Result<Vec<usize>, Conflict>>()?;
    if kept.iter().sum::<usize>() < entries {
        close_gaps(buckets, parts, &kept, &mut offsets, &mut columns, &mut values);
    }
    Ok((offsets, columns, values))
}

/// Moves the buckets together after duplicates were merged within them.
fn close_gaps<T: Scalar, O: Offset>(
    buckets: RowBuckets,
    parts: &[Part<T>],
    kept: &[usize],
    offsets: &mut [O],
    columns: &mut Vec<u32>,
    values: &mut Vec<T>,
) {
    let (mut read, mut write) = (0, 0);
    for (bucket, &len) in kept.iter().enumerate() {
        columns.copy_within(read..read + len, write);
        values.copy_within(read..read + len, write);
        let first = (bucket << buckets.shift) + 1;
        let last = (first + (1 << buckets.shift)).min(offsets.len());
        for end in &mut offsets[first..last] {
            *end = end.minus(read - write);
        }
        read += parts.iter().map(|part| part.bucket_len(bucket)).sum::<usize>();
        write += len;
    }
    columns.truncate(write);
    values.truncate(write);
}

/// One bucket of rows and the slices of the result that it fills.
struct Job<'a, T, O> {
    bucket: usize,
    first_row: u32,
    /// Entries in the buckets before.
    base: usize,
    /// The offset at which each row of the bucket ends.
    ends: &'a mut [O],
    columns: &'a mut [u32],
    values: &'a mut [T],
}

impl<T: Scalar, O: Offset> Job<'_, T, O> {
    /// Fills the slices from the front and returns how many entries there are after merging.
    fn fill(self, parts: &[Part<T>], duplicates: Duplicates) -> Result<usize, Conflict> {
        // next[r] counts row r, then is where its next entry goes, and at last where it ends.
        let mut next = vec![0_usize; self.ends.len()];
        for part in parts {
            for entry in part.bucket(self.bucket) {
                next[(entry.row - self.first_row) as usize] += 1;
            }
        }
        let mut sum = 0;
        for slot in &mut next {
            sum += core::mem::replace(slot, sum);
        }
        for part in parts {
            for entry in part.bucket(self.bucket) {
                let slot = &mut next[(entry.row - self.first_row) as usize];
                self.columns[*slot] = entry.col;
                self.values[*slot] = entry.value;
                *slot += 1;
            }
        }
        let mut scratch = Vec::new();
        let (mut start, mut write) = (0, 0);
        for (local, &end) in next.iter().enumerate() {
            if end - start <= SHORT_ROW {
                insertion_sort(&mut self.columns[start..end], &mut self.values[start..end]);
            }
            if self.columns[start..end].is_sorted_by(|a, b| a < b) {
                if write < start {
                    self.columns.copy_within(start..end, write);
                    self.values.copy_within(start..end, write);
                }
                write += end - start;
            } else {
                let row = self.first_row + local as u32;
                scratch.clear();
                let pairs = self.columns[start..end].iter().zip(&self.values[start..end]);
                scratch.extend(pairs.map(|(&col, &value)| (col, value)));
                scratch.sort_by_key(|&(col, _)| col);
                write += merge(
                    row,
                    &scratch,
                    &mut self.columns[write..],
                    &mut self.values[write..],
                    duplicates,
                )?;
            }
            self.ends[local] = O::from_usize(self.base + write);
            start = end;
        }
        Ok(write)
    }
}

/// Sorts by column, in place; keeps the order of equal columns.
fn insertion_sort<T: Copy>(columns: &mut [u32], values: &mut [T]) {
    for unsorted in 1..columns.len() {
        let (col, value) = (columns[unsorted], values[unsorted]);
        let mut slot = unsorted;
        while slot > 0 && columns[slot - 1] > col {
            columns[slot] = columns[slot - 1];
            values[slot] = values[slot - 1];
            slot -= 1;
        }
        columns[slot] = col;
        values[slot] = value;
    }
}

/// Writes sorted pairs to the front of the slices, equal columns merged; returns how many.
fn merge<T: Scalar>(
    row: u32,
    pairs: &[(u32, T)],
    columns: &mut [u32],
    values: &mut [T],
    duplicates: Duplicates,
) -> Result<usize, Conflict> {
    let mut kept = 0;
    for run in pairs.chunk_by(|a, b| a.0 == b.0) {
        let (col, mut value) = run[0];
        if run.len() > 1 && duplicates == Duplicates::Refuse {
            return Err(Conflict::Duplicate { row, col });
        }
        for &(_, more) in &run[1..] {
            value = add(value, more);
            if !value.to_f64().is_finite() {
                return Err(Conflict::SumOverflow { row, col });
            }
        }
        columns[kept] = col;
        values[kept] = value;
        kept += 1;
    }
    Ok(kept)
}

/// The sum in `T`'s own precision: rounding the f64 sum of two f32 once more changes nothing.
pub(crate) fn add<T: Scalar>(a: T, b: T) -> T {
    T::from_f64(a.to_f64() + b.to_f64())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Entries = Vec<Entry<f64>>;

    fn entries(rows: u32, cols: u32) -> impl Strategy<Value = Entries> {
        // Two rows are long enough for the other way of sorting.
        let entry = (prop_oneof![0..2_u32, 0..rows], 0..cols, -8_i8..8);
        let entry = entry.prop_map(|(row, col, v)| Entry { row, col, value: f64::from(v) });
        proptest::collection::vec(entry, 0..200)
    }

    fn build(entries: &[Entry<f64>], buckets: usize, cut: usize) -> Csr<f64> {
        let buckets = RowBuckets::with_count(37, buckets);
        let parts: Vec<_> = entries.chunks(cut).map(|c| Part::new(c.to_vec(), buckets)).collect();
        assemble(37, 11, buckets, &parts, Duplicates::Sum).unwrap()
    }

    proptest! {
        #[test]
        fn cutting_changes_nothing(
            entries in entries(37, 11),
            buckets in 1..50_usize,
            cut in 1..60_usize,
        ) {
            let whole = build(&entries, 1, usize::MAX);
            prop_assert_eq!(&build(&entries, buckets, cut), &whole);

            let mut dense = vec![None; 37 * 11];
            for e in &entries {
                *dense[e.row as usize * 11 + e.col as usize].get_or_insert(0.0) += e.value;
            }
            let view = whole.view();
            prop_assert_eq!(view.nnz(), dense.iter().flatten().count());
            for row in 0..37 {
                let (columns, values) = view.row(row);
                for (&col, &value) in columns.iter().zip(values) {
                    prop_assert_eq!(dense[row * 11 + col as usize], Some(value));
                }
            }
        }

        #[test]
        fn wide_offsets_give_the_same_matrix(entries in entries(37, 11), buckets in 1..50_usize) {
            let buckets = RowBuckets::with_count(37, buckets);
            let parts = [Part::new(entries, buckets)];
            let narrow = arrays::<f64, u32>(37, buckets, &parts, Duplicates::Sum).unwrap();
            let wide = arrays::<f64, u64>(37, buckets, &parts, Duplicates::Sum).unwrap();
            prop_assert!(narrow.0.iter().map(|&o| u64::from(o)).eq(wide.0));
            prop_assert_eq!((narrow.1, narrow.2), (wide.1, wide.2));
        }
    }

    #[test]
    fn a_matrix_without_rows_has_one_offset() {
        let buckets = RowBuckets::new(0, 0);
        let matrix = assemble::<f32>(0, 5, buckets, &[], Duplicates::Sum).unwrap();
        assert_eq!(matrix.view().offsets().len(), 1);
    }
}
