//! Types and constants of cusparse.h.

use std::ffi::{c_int, c_void};

/// `cusparseStatus_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Status(pub(super) c_int);

impl Status {
    pub(super) const SUCCESS: Self = Self(0);
}

/// `cusparseHandle_t`.
pub(super) type Handle = *mut c_void;
/// `cusparseSpMatDescr_t`, `cusparseDnVecDescr_t` or `cusparseDnMatDescr_t`.
pub(super) type Descriptor = *mut c_void;
/// An address on the device.
pub(super) type Address = *mut c_void;
/// An `α` or `β` in the host's memory.
pub(super) type ScalarPointer = *const c_void;

/// `cusparseOperation_t`: not transposed.
pub(super) const AS_IS: c_int = 0;
/// `cusparseIndexBase_t`: counted from 0.
pub(super) const FROM_ZERO: c_int = 0;
/// `cusparseOrder_t`: row-major.
pub(super) const ROW_MAJOR: c_int = 2;
/// `cusparseIndexType_t`: `int`.
pub(super) const INDEX_32: c_int = 2;
/// `cusparseIndexType_t`: `int64_t`.
pub(super) const INDEX_64: c_int = 3;
/// `cudaDataType`: `float`.
pub(super) const FLOAT: c_int = 0;
/// `cudaDataType`: `double`.
pub(super) const DOUBLE: c_int = 1;
/// `CUDA_R_16F`.
pub(super) const HALF: c_int = 2;
/// `CUDA_R_16BF`.
pub(super) const BFLOAT: c_int = 14;

/// A function of SpMV. The last argument is where the size goes, or the work buffer.
pub(super) type SpMv<Last> = unsafe extern "C" fn(
    Handle,
    c_int,
    ScalarPointer,
    Descriptor,
    Descriptor,
    ScalarPointer,
    Descriptor,
    c_int,
    c_int,
    Last,
) -> Status;
/// A function of SpMM, likewise.
pub(super) type SpMm<Last> = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    ScalarPointer,
    Descriptor,
    Descriptor,
    ScalarPointer,
    Descriptor,
    c_int,
    c_int,
    Last,
) -> Status;
pub(super) type Destroy = unsafe extern "C" fn(*mut c_void) -> Status;

/// Major, minor and patch number of the library.
pub(super) type LibraryVersion = [c_int; 3];
