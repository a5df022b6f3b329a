//! The matrix in the format that an algorithm takes, on the device.

use bytemuck::cast_slice;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::task::Dtype;

use super::algorithm::Format;
use super::bsr::Bsr;
use super::description::{Arrays, Description};
use super::library::Functions;
use super::sell::{SLICE, Sell};
use super::{Algorithm, CusparseError};
use crate::run::device::{Device, DeviceBuffer};
use crate::run::device_csr::DeviceCsr;

/// A on the device.
#[derive(Debug)]
pub(super) enum Stored<'c> {
    Csr(&'c DeviceCsr),
    Sell {
        /// `rows × cols`.
        size: (usize, usize),
        /// Entries, and slots with padding.
        counts: (usize, usize),
        buffers: Buffers,
    },
    Bsr {
        /// `rows × cols`, in blocks.
        size: (usize, usize),
        blocks: usize,
        side: usize,
        buffers: Buffers,
    },
}

/// The arrays of a format other than CSR.
#[derive(Debug)]
pub(super) struct Buffers {
    offsets: DeviceBuffer,
    columns: DeviceBuffer,
    values: DeviceBuffer,
    dtype: Dtype,
}

impl<'c> Stored<'c> {
    /// Converts on the host, where the format is another than CSR.
    pub(super) fn new<T: Scalar>(
        device: &Device,
        algorithm: Algorithm,
        host: CsrView<'_, T>,
        csr: &'c DeviceCsr,
    ) -> Result<Self, CusparseError> {
        let not_applicable = |reason| CusparseError::NotApplicable { algorithm, reason };
        let size = (host.rows(), host.cols());
        match algorithm.format() {
            Format::Csr => Ok(Self::Csr(csr)),
            Format::Sell => {
                let sell = Sell::from_csr(host).map_err(not_applicable)?;
                Ok(Self::Sell {
                    size,
                    counts: (host.nnz(), sell.values.len()),
                    buffers: Buffers::upload(device, &sell.offsets, &sell.columns, &sell.values)?,
                })
            }
            Format::Bsr => {
                let bsr = Bsr::from_csr(host).map_err(not_applicable)?;
                Ok(Self::Bsr {
                    size: (size.0 / bsr.side, size.1 / bsr.side),
                    blocks: bsr.columns.len(),
                    side: bsr.side,
                    buffers: Buffers::upload(device, &bsr.offsets, &bsr.columns, &bsr.values)?,
                })
            }
        }
    }

    pub(super) fn describe(&self, functions: &Functions) -> Result<Description, CusparseError> {
        match self {
            Self::Csr(csr) => Description::csr(functions, csr),
            Self::Sell { size, counts, buffers } => {
                Description::sell(functions, *size, *counts, SLICE, buffers.arrays())
            }
            Self::Bsr { size, blocks, side, buffers } => {
                Description::bsr(functions, *size, *blocks, *side, buffers.arrays())
            }
        }
    }
}

impl Buffers {
    fn upload<T: Scalar>(
        device: &Device,
        offsets: &[u32],
        columns: &[u32],
        values: &[T],
    ) -> Result<Self, CusparseError> {
        Ok(Self {
            offsets: DeviceBuffer::from_bytes(device, cast_slice(offsets))?,
            columns: DeviceBuffer::from_bytes(device, cast_slice(columns))?,
            values: DeviceBuffer::from_bytes(device, cast_slice(values))?,
            dtype: T::DTYPE,
        })
    }

    fn arrays(&self) -> Arrays<'_> {
        let Self { offsets, columns, values, dtype } = self;
        Arrays { offsets, columns, values, dtype: *dtype }
    }
}
