//! What the library is told of an operand.

use std::ffi::c_int;

use sparserl_core::task::{Dtype, Operation};

use super::CusparseError;
use super::library::Functions;
use super::types::{
    Address, BFLOAT, DOUBLE, Descriptor, Destroy, FLOAT, FROM_ZERO, HALF, INDEX_32, INDEX_64,
    ROW_MAJOR,
};
use crate::run::device::DeviceBuffer;
use crate::run::device_csr::DeviceCsr;

/// A description of an operand, destroyed when dropped. It holds addresses, not the memory.
#[derive(Debug)]
pub(super) struct Description {
    raw: Descriptor,
    destroy: Destroy,
}

/// The arrays of a format with a parameter: the height of slices or the side of blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrays<'a> {
    /// 32-bit.
    pub(super) offsets: &'a DeviceBuffer,
    /// 32-bit.
    pub(super) columns: &'a DeviceBuffer,
    pub(super) values: &'a DeviceBuffer,
    pub(super) dtype: Dtype,
}

impl Description {
    /// 64-bit offsets with 32-bit columns are refused by versions up to 12.6, and so are matrices
    /// that need them.
    pub(super) fn csr(functions: &Functions, a: &DeviceCsr) -> Result<Self, CusparseError> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a live descriptor; the library only notes the addresses.
        let status = unsafe {
            (functions.create_csr)(
                &raw mut raw,
                a.rows as i64,
                a.cols as i64,
                a.nnz as i64,
                address(&a.offsets),
                address(&a.columns),
                address(&a.values),
                if a.offsets_wide { INDEX_64 } else { INDEX_32 },
                INDEX_32,
                FROM_ZERO,
                data_type(a.dtype),
            )
        };
        functions.check("cusparseCreateCsr", status)?;
        Ok(Self { raw, destroy: functions.destroy_sparse })
    }

    /// `size` is `rows × cols`, `counts` the number of entries and that of slots.
    pub(super) fn sell(
        functions: &Functions,
        size: (usize, usize),
        counts: (usize, usize),
        slice: usize,
        arrays: Arrays<'_>,
    ) -> Result<Self, CusparseError> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: as in `csr`.
        let status = unsafe {
            (functions.create_sell)(
                &raw mut raw,
                size.0 as i64,
                size.1 as i64,
                counts.0 as i64,
                counts.1 as i64,
                slice as i64,
                address(arrays.offsets),
                address(arrays.columns),
                address(arrays.values),
                INDEX_32,
                INDEX_32,
                FROM_ZERO,
                data_type(arrays.dtype),
            )
        };
        functions.check("cusparseCreateSlicedEll", status)?;
        Ok(Self { raw, destroy: functions.destroy_sparse })
    }

    /// `size` is `rows × cols` in blocks, each stored row by row.
    pub(super) fn bsr(
        functions: &Functions,
        size: (usize, usize),
        blocks: usize,
        side: usize,
        arrays: Arrays<'_>,
    ) -> Result<Self, CusparseError> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: as in `csr`.
        let status = unsafe {
            (functions.create_bsr)(
                &raw mut raw,
                size.0 as i64,
                size.1 as i64,
                blocks as i64,
                side as i64,
                side as i64,
                address(arrays.offsets),
                address(arrays.columns),
                address(arrays.values),
                INDEX_32,
                INDEX_32,
                FROM_ZERO,
                data_type(arrays.dtype),
                ROW_MAJOR,
            )
        };
        functions.check("cusparseCreateBsr", status)?;
        Ok(Self { raw, destroy: functions.destroy_sparse })
    }

    /// A vector for SpMV, a row-major matrix for SpMM.
    pub(super) fn dense(
        functions: &Functions,
        operation: Operation,
        buffer: &DeviceBuffer,
        rows: usize,
        dtype: Dtype,
    ) -> Result<Self, CusparseError> {
        let mut raw = std::ptr::null_mut();
        let (rows, columns) = (rows as i64, i64::from(operation.columns()));
        let (address, dtype) = (address(buffer), data_type(dtype));
        match operation {
            Operation::SpMV => {
                // SAFETY: as in `csr`.
                let status =
                    unsafe { (functions.create_vector)(&raw mut raw, rows, address, dtype) };
                functions.check("cusparseCreateDnVec", status)?;
                Ok(Self { raw, destroy: functions.destroy_vector })
            }
            Operation::SpMM { .. } => {
                let create = functions.create_dense;
                // SAFETY: as in `csr`.
                let status = unsafe {
                    create(&raw mut raw, rows, columns, columns, address, dtype, ROW_MAJOR)
                };
                functions.check("cusparseCreateDnMat", status)?;
                Ok(Self { raw, destroy: functions.destroy_dense })
            }
        }
    }

    pub(super) fn raw(&self) -> Descriptor {
        self.raw
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        // SAFETY: made by a constructor, destroyed only here. A failure leaves nothing that could
        // be done.
        let _ = unsafe { (self.destroy)(self.raw) };
    }
}

/// An address of the device as the library takes it.
pub(super) fn address(buffer: &DeviceBuffer) -> Address {
    buffer.address() as Address
}

/// The value of `cudaDataType`.
pub(super) fn data_type(dtype: Dtype) -> c_int {
    match dtype {
        Dtype::F32 => FLOAT,
        Dtype::F64 => DOUBLE,
        Dtype::F16 => HALF,
        Dtype::BF16 => BFLOAT,
    }
}
