//! Matrices as callers describe them, copied and checked.

use std::ffi::c_void;
use std::sync::OnceLock;

use half::{bf16, f16};
use sparserl_core::matrix::{Csr, CsrError, CsrView, Offsets, OffsetsView, Scalar};
use sparserl_core::task::Dtype;
use sparserl_gpu::run::operator::{self, MemoryAt};

use crate::context::Context;
use crate::status::{Failure, Status};
use crate::types::{self, sparserl_csr};

/// What a handle of a matrix stands for.
pub(crate) struct Matrix {
    pub(crate) entries: Entries,
    /// Of its rows, columns and pattern, in hexadecimal.
    pub(crate) pattern: String,
    transposed: OnceLock<(Entries, Vec<u64>)>,
}

/// A matrix in its element type.
#[derive(Clone, Debug)]
pub(crate) enum Entries {
    F32(Csr<f32>),
    F64(Csr<f64>),
    F16(Csr<f16>),
    BF16(Csr<bf16>),
}

/// Calls generic code with the view of a matrix.
macro_rules! with_view {
    ($entries:expr, $view:ident => $act:expr) => {
        match $entries {
            $crate::matrix::Entries::F32(csr) => {
                let $view = csr.view();
                $act
            }
            $crate::matrix::Entries::F64(csr) => {
                let $view = csr.view();
                $act
            }
            $crate::matrix::Entries::F16(csr) => {
                let $view = csr.view();
                $act
            }
            $crate::matrix::Entries::BF16(csr) => {
                let $view = csr.view();
                $act
            }
        }
    };
}
pub(crate) use with_view;

impl Entries {
    pub(crate) fn dtype(&self) -> Dtype {
        match self {
            Self::F32(_) => Dtype::F32,
            Self::F64(_) => Dtype::F64,
            Self::F16(_) => Dtype::F16,
            Self::BF16(_) => Dtype::BF16,
        }
    }

    pub(crate) fn rows(&self) -> usize {
        with_view!(self, view => view.rows())
    }

    pub(crate) fn cols(&self) -> usize {
        with_view!(self, view => view.cols())
    }

    pub(crate) fn nnz(&self) -> usize {
        with_view!(self, view => view.nnz())
    }
}

macro_rules! entries {
    ($($scalar:ty => $variant:ident,)*) => {
        $(impl From<Csr<$scalar>> for Entries {
            fn from(csr: Csr<$scalar>) -> Self {
                Self::$variant(csr)
            }
        })*
    };
}

entries! {
    f32 => F32,
    f64 => F64,
    f16 => F16,
    bf16 => BF16,
}

impl Matrix {
    /// Copies what a description says.
    ///
    /// # Safety
    /// Its pointers are to arrays of the sizes that it gives, on the host, or on the context's
    /// device where nothing writes them.
    pub(crate) unsafe fn copy(context: &Context, given: &sparserl_csr) -> Result<Self, Failure> {
        let wanted = Description::read(given)?;
        let Description { rows, nnz, base, .. } = wanted;
        // SAFETY: by the contract, as are the arrays that follow.
        let offsets = unsafe {
            wanted.integers(context, "row_offsets", given.row_offsets, rows + 1, wanted.offsets)
        }?;
        let offset = |offset: i64| u64::try_from(offset.wrapping_sub(base)).unwrap_or(u64::MAX);
        let offsets = Offsets::U64(offsets.into_iter().map(offset).collect());
        // SAFETY: as above.
        let columns = unsafe {
            wanted.integers(context, "column_indices", given.column_indices, nnz, wanted.indices)
        }?;
        let columns = indices(&columns, &wanted, offsets.view())?;
        // SAFETY: as above.
        let entries = unsafe {
            match wanted.values {
                Dtype::F32 => wanted.entries::<f32>(context, given.values, offsets, columns),
                Dtype::F64 => wanted.entries::<f64>(context, given.values, offsets, columns),
                Dtype::F16 => wanted.entries::<f16>(context, given.values, offsets, columns),
                Dtype::BF16 => wanted.entries::<bf16>(context, given.values, offsets, columns),
            }
        }?;
        let pattern = with_view!(&entries, view => pattern(view));
        Ok(Self { entries, pattern, transposed: OnceLock::new() })
    }

    /// Aᵀ, and which entry of A each of its entries is.
    pub(crate) fn transposed(&self) -> &(Entries, Vec<u64>) {
        self.transposed.get_or_init(|| {
            with_view!(&self.entries, view => {
                let (csr, origins) = transpose(view);
                (Entries::from(csr), origins)
            })
        })
    }
}

/// A description whose numbers make sense.
struct Description {
    rows: usize,
    cols: usize,
    nnz: usize,
    base: i64,
    offsets: Integer,
    indices: Integer,
    values: Dtype,
    on_device: bool,
}

/// Types of offsets and indices.
#[derive(Clone, Copy)]
enum Integer {
    I32,
    I64,
}

impl Integer {
    fn read(what: &str, number: i32) -> Result<Self, Failure> {
        match number {
            types::SPARSERL_I32 => Ok(Self::I32),
            types::SPARSERL_I64 => Ok(Self::I64),
            _ => Err(Failure::argument(format_args!(
                "{what} is {number}: expected SPARSERL_I32 or SPARSERL_I64"
            ))),
        }
    }
}

impl Description {
    fn read(given: &sparserl_csr) -> Result<Self, Failure> {
        let size = |what: &str, number: i64| {
            let refused = || format!("{what} is {number}: expected 0 to 4294967294");
            // One less than 2³²: row offsets are one more than rows.
            let fits = u32::try_from(number).ok().filter(|&number| number < u32::MAX);
            fits.map(|number| number as usize).ok_or_else(|| Failure::argument(refused()))
        };
        let nnz = usize::try_from(given.nnz).map_err(|_| {
            Failure::argument(format_args!("nnz is {}: expected 0 or more", given.nnz))
        })?;
        let base = match given.index_base {
            base @ (0 | 1) => i64::from(base),
            base => {
                return Err(Failure::argument(format_args!(
                    "index_base is {base}: expected 0 or 1"
                )));
            }
        };
        let values = match given.value_type {
            types::SPARSERL_F32 => Dtype::F32,
            types::SPARSERL_F64 => Dtype::F64,
            types::SPARSERL_F16 => Dtype::F16,
            types::SPARSERL_BF16 => Dtype::BF16,
            other => {
                return Err(Failure::argument(format_args!(
                    "value_type is {other}: expected SPARSERL_F32, SPARSERL_F64, SPARSERL_F16 or \
                     SPARSERL_BF16"
                )));
            }
        };
        let on_device = match given.location {
            types::SPARSERL_HOST => false,
            types::SPARSERL_DEVICE => true,
            other => {
                return Err(Failure::argument(format_args!(
                    "location is {other}: expected SPARSERL_HOST or SPARSERL_DEVICE"
                )));
            }
        };
        if given.reserved != [0; 3] {
            return Err(Failure::argument("reserved is not 0: start from a zeroed sparserl_csr"));
        }
        Ok(Self {
            rows: size("rows", given.rows)?,
            cols: size("cols", given.cols)?,
            nnz,
            base,
            offsets: Integer::read("offset_type", given.offset_type)?,
            indices: Integer::read("index_type", given.index_type)?,
            values,
            on_device,
        })
    }

    /// The matrix with these values.
    ///
    /// # Safety
    /// As [`array`](Self::array).
    unsafe fn entries<T: Scalar>(
        &self,
        context: &Context,
        values: *const c_void,
        offsets: Offsets,
        columns: Vec<u32>,
    ) -> Result<Entries, Failure>
    where
        Entries: From<Csr<T>>,
    {
        // SAFETY: by the contract.
        let values: Vec<T> = unsafe { self.array(context, "values", values, self.nnz) }?;
        let invalid = |error: CsrError| Failure::new(Status::InvalidMatrix, error);
        Ok(Csr::new(self.rows, self.cols, offsets, columns, values).map_err(invalid)?.into())
    }

    /// An array of offsets or indices, on the host.
    ///
    /// # Safety
    /// As [`array`](Self::array).
    unsafe fn integers(
        &self,
        context: &Context,
        what: &str,
        pointer: *const c_void,
        count: usize,
        kind: Integer,
    ) -> Result<Vec<i64>, Failure> {
        match kind {
            Integer::I32 => {
                // SAFETY: by the contract.
                let narrow: Vec<i32> = unsafe { self.array(context, what, pointer, count) }?;
                Ok(narrow.into_iter().map(i64::from).collect())
            }
            // SAFETY: by the contract.
            Integer::I64 => unsafe { self.array(context, what, pointer, count) },
        }
    }

    /// An array, on the host.
    ///
    /// # Safety
    /// The pointer is to so many elements of this type, where the description says.
    unsafe fn array<E: bytemuck::Pod>(
        &self,
        context: &Context,
        what: &str,
        pointer: *const c_void,
        count: usize,
    ) -> Result<Vec<E>, Failure> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if pointer.is_null() {
            return Err(Failure::null(what));
        }
        let length =
            count.checked_mul(size_of::<E>()).filter(|&length| length <= isize::MAX as usize);
        let Some(length) = length else {
            return Err(Failure::argument(format_args!("{what} has {count} elements: too many")));
        };
        // Asked for before it is taken: a wrong number must not end the program.
        let mut array: Vec<E> = Vec::new();
        array.try_reserve_exact(count).map_err(|_| {
            let text = format!("{what} has {length} bytes, which the host has no room for");
            Failure::new(Status::OutOfMemory, text)
        })?;
        if self.on_device {
            let gpu = context.gpu()?;
            let _entered = gpu.device.enter_unless_current()?;
            check_memory(&gpu.device, what, pointer, length)?;
            array.resize(count, E::zeroed());
            let bytes = bytemuck::cast_slice_mut(&mut array);
            // SAFETY: by the contract, and the driver knows of that much memory there.
            unsafe { operator::read(&gpu.device, pointer.addr() as u64, bytes) }?;
        } else {
            array.resize(count, E::zeroed());
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut array);
            // SAFETY: by the contract; the array is as long and the caller's another one, of any
            // alignment.
            unsafe {
                bytes.as_mut_ptr().copy_from_nonoverlapping(pointer.cast::<u8>(), length);
            }
        }
        Ok(array)
    }
}

/// Refuses a pointer that kernels cannot use, or behind which there is too little memory.
pub(crate) fn check_memory(
    device: &sparserl_gpu::run::device::Device,
    what: &str,
    pointer: *const c_void,
    bytes: usize,
) -> Result<(), Failure> {
    match device.memory_at(pointer.addr() as u64)? {
        MemoryAt::Reached { bytes: found } if found >= bytes as u64 => Ok(()),
        MemoryAt::Reached { bytes: found } => Err(Failure::argument(format_args!(
            "{what}: {bytes} bytes are needed, and {found} are left of its allocation"
        ))),
        MemoryAt::OtherDevice => Err(Failure::new(
            Status::WrongDevice,
            format_args!("{what} is memory of another device than the context's"),
        )),
        MemoryAt::Nothing => {
            Err(Failure::argument(format_args!("{what} is no pointer to device memory")))
        }
    }
}

/// Columns from 0. One that no matrix has is named with its row.
fn indices(
    given: &[i64],
    wanted: &Description,
    offsets: OffsetsView<'_>,
) -> Result<Vec<u32>, Failure> {
    let mut columns = Vec::with_capacity(wanted.nnz);
    for (entry, &column) in given.iter().enumerate() {
        match u32::try_from(column.wrapping_sub(wanted.base)) {
            Ok(column) if (column as usize) < wanted.cols => columns.push(column),
            _ => {
                let rows = 0..wanted.rows;
                let row = rows.rev().find(|&row| offsets.at(row) <= entry).unwrap_or(0);
                let (cols, base) = (wanted.cols, wanted.base);
                return Err(Failure::new(
                    Status::InvalidMatrix,
                    format_args!(
                        "row {}: column {column}, but the matrix has {cols} columns, from {base}",
                        row as i64 + base
                    ),
                ));
            }
        }
    }
    Ok(columns)
}

fn pattern<T: Scalar>(matrix: CsrView<'_, T>) -> String {
    let mut hasher = blake3::Hasher::new();
    for number in [matrix.rows(), matrix.cols(), matrix.nnz()] {
        hasher.update(&(number as u64).to_le_bytes());
    }
    for row in 0..matrix.rows() {
        hasher.update(&(matrix.row_len(row) as u64).to_le_bytes());
    }
    hasher.update(bytemuck::cast_slice(matrix.columns()));
    hasher.finalize().to_hex().to_string()
}

/// The transposed matrix, and which entry of the original each of its entries is.
fn transpose<T: Scalar>(matrix: CsrView<'_, T>) -> (Csr<T>, Vec<u64>) {
    let mut next = vec![0_u64; matrix.cols() + 1];
    for &column in matrix.columns() {
        if let Some(count) = next.get_mut(column as usize + 1) {
            *count += 1;
        }
    }
    let mut sum = 0;
    for count in &mut next {
        sum += *count;
        *count = sum;
    }
    let offsets = next.clone();
    let mut columns = vec![0_u32; matrix.nnz()];
    let mut origins = vec![0_u64; matrix.nnz()];
    let mut entry = 0_u64;
    for row in 0..matrix.rows() {
        for &column in matrix.row(row).0 {
            if let Some(place) = next.get_mut(column as usize) {
                let at = *place as usize;
                if let (Some(column), Some(origin)) = (columns.get_mut(at), origins.get_mut(at)) {
                    (*column, *origin) = (row as u32, entry);
                }
                *place += 1;
            }
            entry += 1;
        }
    }
    let value = |&origin: &u64| matrix.values().get(origin as usize).copied();
    let values = origins.iter().filter_map(value).collect();
    let offsets = Offsets::U64(offsets);
    match Csr::new(matrix.cols(), matrix.rows(), offsets, columns, values) {
        Ok(transposed) => (transposed, origins),
        // The matrix is valid, and so is its transpose.
        Err(error) => unreachable!("{error}"),
    }
}

#[cfg(test)]
mod tests {
    use sparserl_core::matrix::generate;

    use super::*;

    #[test]
    fn a_matrix_transposed_twice_is_itself() {
        let matrix = generate::rmat(7, 5, 3);
        let (once, origins) = transpose(matrix.view());
        let (twice, back) = transpose(once.view());
        assert_eq!(matrix, twice);
        assert!(back.iter().zip(0..).all(|(&at, entry)| origins[at as usize] == entry));
        assert_eq!(pattern(matrix.view()), pattern(twice.view()));
        assert_ne!(pattern(matrix.view()), pattern(once.view()));
    }
}
