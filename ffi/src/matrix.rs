//! Matrices as callers describe them, copied and checked.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::slice;
use std::sync::OnceLock;

use half::{bf16, f16};
use rayon::prelude::*;
use sparserl_core::matrix::{Csr, CsrError, Offsets, OffsetsView, Scalar};
use sparserl_core::task::Dtype;
use sparserl_core::with_scalar;
use sparserl_gpu::run::operator::{self, MemoryAt};

use crate::context::Context;
use crate::status::{Failure, Status};
use crate::transpose::{by_columns, transpose};
use crate::types::{self, sparserl_csr};

/// Bytes that a thread copies at a time.
const BYTES_A_PIECE: usize = 1 << 20;
/// Columns that a thread checks at a time.
const COLUMNS_A_PIECE: usize = 1 << 18;

/// What a handle of a matrix stands for.
pub(crate) struct Matrix {
    pub(crate) entries: Entries,
    /// A hash of its pattern, once somebody has asked for it.
    pub(crate) hash: OnceLock<String>,
    transposed: OnceLock<Entries>,
    /// Which entry of A each entry of Aᵀ is.
    origins: OnceLock<Vec<u64>>,
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
        let row_offsets = unsafe {
            wanted.integers(context, "row_offsets", given.row_offsets, rows + 1, wanted.offsets)
        }?;
        // As many entries are read as the offsets and `nnz` say, and no more where these disagree.
        let offsets = match row_offsets {
            Integers::I32(offsets) => {
                check_offsets(&offsets, &wanted)?;
                narrow_from_0(offsets, base)
            }
            Integers::I64(offsets) => {
                check_offsets(&offsets, &wanted)?;
                Offsets::U64(offsets.into_iter().map(|offset| (offset - base) as u64).collect())
            }
        };
        // SAFETY: as above.
        let indices = unsafe {
            wanted.integers(context, "column_indices", given.column_indices, nnz, wanted.indices)
        }?;
        let columns = match indices {
            Integers::I32(indices) => {
                // Negative ones are the largest without their signs, beyond all columns.
                let narrow = base as u32;
                let limit = (wanted.cols as u32).min((1 << 31) - narrow);
                let is_outside = |&column: &i32| (column as u32).wrapping_sub(narrow) >= limit;
                check_columns(&indices, &wanted, offsets.view(), is_outside)?;
                let mut columns: Vec<u32> = bytemuck::cast_vec(indices);
                if narrow != 0 {
                    columns.par_iter_mut().for_each(|column| *column -= narrow);
                }
                columns
            }
            Integers::I64(indices) => {
                let columns = base..base + wanted.cols as i64;
                let is_outside = |column: &i64| !columns.contains(column);
                check_columns(&indices, &wanted, offsets.view(), is_outside)?;
                indices.into_par_iter().map(|column| (column - base) as u32).collect()
            }
        };
        // SAFETY: as above.
        let entries = unsafe {
            with_scalar!(
                wanted.values,
                T => wanted.entries::<T>(context, given.values, offsets, columns)
            )
        }?;
        Ok(Self {
            entries,
            hash: OnceLock::new(),
            transposed: OnceLock::new(),
            origins: OnceLock::new(),
        })
    }

    /// Whether the host has room for Aᵀ: a wide matrix of few entries must not end the program.
    pub(crate) fn has_room_to_transpose(&self) -> Result<(), Failure> {
        if self.transposed.get().is_some() {
            return Ok(());
        }
        let (cols, nnz) = with_view!(&self.entries, view => (view.cols(), view.nnz()));
        // Row offsets, as they are counted and as they are kept; rows, values and where they were.
        let bytes = 2 * size_of::<u64>() * (cols + 1) + 2 * size_of::<[u64; 2]>() * nnz;
        Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| {
            let text = format!(
                "the transposed matrix, of {cols} rows, takes {bytes} bytes, which the host has no room for"
            );
            Failure::new(Status::OutOfMemory, text)
        })
    }

    /// Aᵀ.
    pub(crate) fn transposed(&self) -> &Entries {
        self.transposed.get_or_init(|| with_view!(&self.entries, view => transpose(view).into()))
    }

    /// Which entry of A each entry of Aᵀ is.
    pub(crate) fn origins(&self) -> &[u64] {
        self.origins.get_or_init(
            || with_view!(&self.entries, view => by_columns(view, |entry| entry as u64).of_entries),
        )
    }
}

/// The element type that a number of the header stands for.
pub(crate) fn value_type(number: i32) -> Result<Dtype, Failure> {
    match number {
        types::SPARSERL_F32 => Ok(Dtype::F32),
        types::SPARSERL_F64 => Ok(Dtype::F64),
        types::SPARSERL_F16 => Ok(Dtype::F16),
        types::SPARSERL_BF16 => Ok(Dtype::BF16),
        other => Err(Failure::argument(format_args!(
            "value_type is {other}: expected SPARSERL_F32, SPARSERL_F64, SPARSERL_F16 or \
             SPARSERL_BF16"
        ))),
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
    location: Location,
}

/// Where an application has its arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Host,
    Device,
}

impl Location {
    pub(crate) fn read(number: i32) -> Result<Self, Failure> {
        match number {
            types::SPARSERL_HOST => Ok(Self::Host),
            types::SPARSERL_DEVICE => Ok(Self::Device),
            _ => Err(Failure::argument(format_args!(
                "location is {number}: expected SPARSERL_HOST or SPARSERL_DEVICE"
            ))),
        }
    }
}

/// Types of offsets and indices.
#[derive(Clone, Copy)]
enum Integer {
    I32,
    I64,
}

/// Offsets or indices in their type.
enum Integers {
    I32(Vec<i32>),
    I64(Vec<i64>),
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
        let values = value_type(given.value_type)?;
        let location = Location::read(given.location)?;
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
            location,
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
        // Rows and columns are counted as the caller does.
        let base = self.base as u32;
        let invalid = |mut error: CsrError| {
            if let CsrError::ColumnOrder { row, col } | CsrError::NotFinite { row, col, .. } =
                &mut error
            {
                *row += base as usize;
                *col += base;
            }
            Failure::new(Status::InvalidMatrix, error)
        };
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
    ) -> Result<Integers, Failure> {
        // SAFETY: by the contract.
        unsafe {
            match kind {
                Integer::I32 => self.array(context, what, pointer, count).map(Integers::I32),
                Integer::I64 => self.array(context, what, pointer, count).map(Integers::I64),
            }
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
        if self.location == Location::Device {
            let gpu = context.gpu()?;
            let _entered = gpu.device.enter_unless_current()?;
            check_memory(&gpu.device, what, pointer, length)?;
            array.resize(count, E::zeroed());
            let bytes = bytemuck::cast_slice_mut(&mut array);
            // SAFETY: by the contract, and the driver knows of that much memory there.
            unsafe { operator::read(&gpu.device, pointer.addr() as u64, bytes) }?;
        } else {
            let room = array.spare_capacity_mut().as_mut_ptr().cast::<MaybeUninit<u8>>();
            // SAFETY: by the contract the caller's array has so many bytes, which nobody writes;
            // there is room for as many, in another array.
            let (from, to) = unsafe {
                let from = slice::from_raw_parts(pointer.cast::<MaybeUninit<u8>>(), length);
                (from, slice::from_raw_parts_mut(room, length))
            };
            // Several threads touch new memory faster than one.
            let pieces = to.par_chunks_mut(BYTES_A_PIECE).zip(from.par_chunks(BYTES_A_PIECE));
            pieces.for_each(|(to, from)| to.copy_from_slice(from));
            // SAFETY: all of them were copied, and any bytes are elements.
            unsafe { array.set_len(count) };
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

/// Refuses row offsets that do not begin at the base, fall, or end elsewhere than `nnz` says.
fn check_offsets<I: Copy + Into<i64> + PartialOrd>(
    given: &[I],
    wanted: &Description,
) -> Result<(), Failure> {
    let Description { nnz, base, .. } = *wanted;
    let refused = |text: String| Err(Failure::new(Status::InvalidMatrix, text));
    let first = given.first().map_or(base, |&offset| offset.into());
    if first != base {
        return refused(format!("row offsets begin at {first}: expected {base}, the index_base"));
    }
    let last = given.last().map_or(base, |&offset| offset.into());
    if last.checked_sub(base) != i64::try_from(nnz).ok() {
        return refused(format!(
            "row offsets end at {last}: expected {}, since they begin at {base} and nnz is {nnz}",
            nnz as u64 + base as u64
        ));
    }
    if !given.is_sorted() {
        let falls = |pair: &[I]| matches!(pair, [start, end] if end < start);
        let row = given.windows(2).position(falls).unwrap_or(0);
        let at = |place: usize| given.get(place).map_or(0, |&offset| offset.into());
        return refused(format!(
            "row {} starts at offset {} and ends at {}",
            row as i64 + base,
            at(row),
            at(row + 1)
        ));
    }
    Ok(())
}

/// Row offsets from 0, in the memory of what was given.
fn narrow_from_0(given: Vec<i32>, base: i64) -> Offsets {
    let mut offsets: Vec<u32> = bytemuck::cast_vec(given);
    if base != 0 {
        offsets.iter_mut().for_each(|offset| *offset -= base as u32);
    }
    Offsets::U32(offsets)
}

/// Refuses the first column that the matrix does not have, naming its row.
fn check_columns<I: Copy + Into<i64> + Sync>(
    given: &[I],
    wanted: &Description,
    offsets: OffsetsView<'_>,
    is_outside: impl Fn(&I) -> bool + Sync,
) -> Result<(), Failure> {
    let Description { rows, cols, base, .. } = *wanted;
    let outside =
        given.par_chunks(COLUMNS_A_PIECE).enumerate().find_map_first(|(piece, columns)| {
            // Without a branch for each column, several are compared at once.
            if columns.iter().fold(0, |any, column| any | u32::from(is_outside(column))) == 0 {
                return None;
            }
            columns.iter().position(&is_outside).map(|place| piece * COLUMNS_A_PIECE + place)
        });
    if let Some(entry) = outside {
        let row = (0..rows).rev().find(|&row| offsets.at(row) <= entry).unwrap_or(0) as i64 + base;
        let column = given.get(entry).map_or(0, |&column| column.into());
        return Err(Failure::new(
            Status::InvalidMatrix,
            format_args!(
                "row {row}: column {column}, but the matrix has {cols} columns, from {base}"
            ),
        ));
    }
    Ok(())
}
