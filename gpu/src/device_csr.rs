//! A matrix in plain CSR on a device: what results are verified against, and the operand of the baselines.

use sparserl_core::matrix::{CsrView, OffsetsView, Scalar};
use sparserl_core::task::Dtype;

use crate::device::{Device, DeviceBuffer, DeviceError};

/// A matrix in CSR on a device.
#[derive(Debug)]
pub(crate) struct DeviceCsr {
    /// rows + 1 of them, `u64` when `wide_offsets`, else `u32`.
    pub(crate) offsets: DeviceBuffer,
    /// `u32`.
    pub(crate) columns: DeviceBuffer,
    pub(crate) values: DeviceBuffer,
    pub(crate) wide_offsets: bool,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) nnz: usize,
    pub(crate) dtype: Dtype,
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
        let (offsets, wide_offsets) = match matrix.offsets() {
            OffsetsView::U32(offsets) => (bytemuck::cast_slice(offsets), false),
            OffsetsView::U64(offsets) => (bytemuck::cast_slice(offsets), true),
        };
        Ok(Self {
            offsets: DeviceBuffer::from_bytes(device, offsets)?,
            columns: DeviceBuffer::from_bytes(device, bytemuck::cast_slice(matrix.columns()))?,
            values: DeviceBuffer::from_bytes(device, bytemuck::cast_slice(matrix.values()))?,
            wide_offsets,
            rows: matrix.rows(),
            cols: matrix.cols(),
            nnz: matrix.nnz(),
            dtype: T::DTYPE,
        })
    }
}
