//! A matrix as CSR on a device: what cuSPARSE multiplies with.

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
