//! A matrix as CSR on a device: what opponents multiply with, and what the judge sums by.

use bytemuck::cast_slice;
use sparserl_core::matrix::{CsrView, OffsetsView, Scalar};
use sparserl_core::task::Dtype;

use crate::run::device::{Device, DeviceBuffer, DeviceError};

/// A CSR matrix on a device, base 0.
#[derive(Debug)]
pub(crate) struct DeviceCsr {
    /// `rows + 1` row offsets: u64 when `offsets_wide`, u32 below 2³¹ otherwise.
    pub(crate) offsets: DeviceBuffer,
    /// Column of each entry, u32.
    pub(crate) columns: DeviceBuffer,
    /// Value of each entry, of type `dtype`.
    pub(crate) values: DeviceBuffer,
    /// Number of rows.
    pub(crate) rows: usize,
    /// Number of columns.
    pub(crate) cols: usize,
    /// Number of stored entries.
    pub(crate) nnz: usize,
    /// Type of the values.
    pub(crate) dtype: Dtype,
    /// Whether the offsets are 64-bit. They are where a signed 32-bit integer cannot hold them.
    pub(crate) offsets_wide: bool,
    /// Rows that are too long to be summed by few threads; `None` where there are none.
    pub(crate) slices: Option<Slices>,
}

/// Rows with fewer entries are never cut into slices.
const LONG_ROW: usize = 512;
/// About the most slices of a matrix: what is kept for each is bounded whatever the matrix.
const MOST_SLICES: usize = 16_384;
/// The most slices of a row, whose sums are added one after the other.
const MOST_SLICES_OF_ROW: usize = 256;

/// The long rows of a matrix, cut into slices, on a device.
#[derive(Debug)]
pub(crate) struct Slices {
    /// For each slice, the offsets of its first entry and of the one past its last, u64.
    pub(crate) bounds: DeviceBuffer,
    /// Number of slices.
    pub(crate) count: usize,
    /// For each long row, its number, its first slice and the one past its last, u64.
    pub(crate) rows: DeviceBuffer,
    /// Number of long rows.
    pub(crate) row_count: usize,
}

/// Entries of the longest row that is not cut into slices: more in large matrices, so that the
/// number of slices is bounded.
pub(crate) fn longest_short_row(nnz: usize) -> usize {
    LONG_ROW.max(nnz / MOST_SLICES)
}

/// Where the long rows of a matrix are cut: the bounds of slices, and the rows with theirs. It
/// depends on the matrix alone, so that sums are the same in every run.
pub(crate) fn cut<T: Scalar>(matrix: CsrView<'_, T>) -> (Vec<[u64; 2]>, Vec<[u64; 3]>) {
    let offsets = matrix.offsets();
    let (mut bounds, mut rows) = (Vec::new(), Vec::new());
    let short = longest_short_row(matrix.nnz());
    for row in 0..matrix.rows() {
        let (begin, end) = (offsets.at(row), offsets.at(row + 1));
        let length = end - begin;
        if length <= short {
            continue;
        }
        let slice = short.max(length.div_ceil(MOST_SLICES_OF_ROW));
        let first = bounds.len() as u64;
        let starts = (begin..end).step_by(slice);
        bounds.extend(starts.map(|start| [start as u64, (start + slice).min(end) as u64]));
        rows.push([row as u64, first, bounds.len() as u64]);
    }
    (bounds, rows)
}

impl Slices {
    fn upload<T: Scalar>(
        device: &Device,
        matrix: CsrView<'_, T>,
    ) -> Result<Option<Self>, DeviceError> {
        let (bounds, rows) = cut(matrix);
        if rows.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            bounds: DeviceBuffer::from_bytes(device, cast_slice(&bounds))?,
            count: bounds.len(),
            rows: DeviceBuffer::from_bytes(device, cast_slice(&rows))?,
            row_count: rows.len(),
        }))
    }
}

impl DeviceCsr {
    /// Copies a matrix to a device.
    ///
    /// # Errors
    /// When memory does not suffice, or when the driver fails.
    pub(crate) fn upload<T: Scalar>(
        device: &Device,
        matrix: CsrView<'_, T>,
    ) -> Result<Self, DeviceError> {
        let offsets_wide = i32::try_from(matrix.nnz()).is_err();
        Ok(Self {
            offsets: upload_offsets(device, matrix.offsets(), offsets_wide)?,
            columns: DeviceBuffer::from_bytes(device, cast_slice(matrix.columns()))?,
            values: DeviceBuffer::from_bytes(device, cast_slice(matrix.values()))?,
            rows: matrix.rows(),
            cols: matrix.cols(),
            nnz: matrix.nnz(),
            dtype: T::DTYPE,
            offsets_wide,
            slices: Slices::upload(device, matrix)?,
        })
    }
}

fn upload_offsets(
    device: &Device,
    offsets: OffsetsView<'_>,
    wide: bool,
) -> Result<DeviceBuffer, DeviceError> {
    match offsets {
        OffsetsView::U32(offsets) if !wide => DeviceBuffer::from_bytes(device, cast_slice(offsets)),
        OffsetsView::U64(offsets) if wide => DeviceBuffer::from_bytes(device, cast_slice(offsets)),
        offsets if wide => {
            let widened: Vec<u64> = (0..offsets.len()).map(|i| offsets.at(i) as u64).collect();
            DeviceBuffer::from_bytes(device, cast_slice(&widened))
        }
        offsets => {
            // None is above the last, which fits.
            let narrowed: Vec<u32> = (0..offsets.len()).map(|i| offsets.at(i) as u32).collect();
            DeviceBuffer::from_bytes(device, cast_slice(&narrowed))
        }
    }
}
