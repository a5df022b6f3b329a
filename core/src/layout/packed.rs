//! Packed matrices, and back.

use alloc::string::String;
use alloc::vec::Vec;

use thiserror::Error;

use super::array::{Array, ArrayData, ArrayRole};
use super::layout_module::LayoutModule;
use super::pack::{SHARED_LIMIT, UnpackSource};
use super::registry::{Layout, Program, each_layout};
use crate::matrix::{Csr, CsrError, Offsets, Scalar};
use crate::structure::{Rows, row_ends};

/// A packed part of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct PackedPart {
    /// The layout that the part is packed in.
    pub layout: Layout,
    /// Rows of the matrix that the part holds, by their position in it.
    pub rows: Rows,
    /// Entries of these rows.
    pub nnz: usize,
    /// First block of its share of the grid.
    pub first_block: u32,
    /// Blocks of its share of the grid; 0 when it has no rows.
    pub blocks: u32,
    /// Its arrays, in the order of the kernel's arguments.
    pub arrays: Vec<Array>,
}

impl PackedPart {
    /// An array by its name within the part.
    #[must_use]
    pub fn array(&self, name: &str) -> Option<&ArrayData> {
        self.arrays.iter().find(|array| array.name == name).map(|array| &array.data)
    }
}

/// Name, among a kernel's arguments, of what a part calls `name`: the same where a program has a
/// single part.
pub(crate) fn part_name(parts: usize, index: usize, name: &str) -> String {
    if parts == 1 { name.into() } else { alloc::format!("part{index}_{name}") }
}

/// Geometry of a launch in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearGeometry {
    /// Blocks; at least 1, also for a matrix without rows.
    pub grid: u32,
    /// Threads of a block.
    pub block: u32,
    /// Bytes of the shared buffer.
    pub(crate) shared: usize,
}

impl LinearGeometry {
    /// Bytes of shared memory that the kernel declares itself.
    #[must_use]
    pub fn static_shared(&self) -> usize {
        if is_declared(self.shared) { self.shared } else { 0 }
    }

    /// Bytes of shared memory that the launch gives: more than a kernel can declare, or none.
    #[must_use]
    pub fn dynamic_shared(&self) -> u32 {
        if is_declared(self.shared) { 0 } else { self.shared as u32 }
    }
}

/// Whether a kernel declares so much shared memory itself: a launch gives what is more than it has
/// without opting in.
pub(crate) fn is_declared(shared: usize) -> bool {
    shared <= SHARED_LIMIT
}

/// A matrix in the layouts of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    /// The program.
    pub program: Program,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// The parts, in the order of the program's text.
    pub parts: Vec<PackedPart>,
    /// Geometry of its launch.
    pub geometry: LinearGeometry,
}

impl Packed {
    /// Bytes of the arrays with a role.
    #[must_use]
    pub fn bytes(&self, role: ArrayRole) -> u64 {
        let arrays = self.parts.iter().flat_map(|part| &part.arrays);
        arrays.filter(|a| a.role == role).map(|a| a.data.bytes().len() as u64).sum()
    }

    /// All arrays in the order of the kernel's arguments, under their argument names.
    pub fn arguments(&self) -> impl Iterator<Item = (String, &Array)> {
        let parts = self.parts.len();
        self.parts.iter().enumerate().flat_map(move |(index, part)| {
            part.arrays.iter().map(move |array| (part_name(parts, index, array.name), array))
        })
    }
}

/// Arrays that no packing writes.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum UnpackError {
    /// An array is missing, too short or of another type.
    #[error("part {part} ({layout}): an array is missing, too short or of the wrong type")]
    Array {
        /// Index of the part.
        part: usize,
        /// The layout's word.
        layout: &'static str,
    },
    /// The entries do not form a matrix.
    #[error("the entries do not form a matrix: {0}")]
    Matrix(#[from] CsrError),
}

/// The matrix that was packed: `unpack(&pack(a, program)?)` is `a`, bit for bit.
///
/// # Errors
/// When the arrays are not what [`pack`](super::pack) writes.
pub fn unpack<T: Scalar>(packed: &Packed) -> Result<Csr<T>, UnpackError> {
    let mut by_row: Vec<Vec<(u32, T)>> = alloc::vec![Vec::new(); packed.rows];
    for (index, part) in packed.parts.iter().enumerate() {
        let mut emit = |position: usize, column: u32, value: T| {
            if let Some(row) = by_row.get_mut(part.rows.at(position)) {
                row.push((column, value));
            }
        };
        let source = UnpackSource {
            rows: &part.rows,
            arrays: &part.arrays,
            task: packed.program.task,
            block: packed.program.block.threads(),
        };
        let complete = each_layout!(&part.layout, layout => layout.unpack(&source, &mut emit));
        complete.ok_or(UnpackError::Array { part: index, layout: part.layout.word().text() })?;
    }
    let mut offsets = alloc::vec![0];
    offsets.extend(row_ends(by_row.iter().map(|row| row.len() as u64)));
    let offsets = Offsets::U64(offsets);
    let entries = || by_row.iter().flatten();
    let columns = entries().map(|&(column, _)| column).collect();
    let values = entries().map(|&(_, value)| value).collect();
    Ok(Csr::new(packed.rows, packed.cols, offsets, columns, values)?)
}
