use alloc::string::String;
use alloc::vec::Vec;

use thiserror::Error;

use super::{Array, ArrayData, ArrayRole, Table};
use super::{Layout, LayoutModule, Node, Part, Program, each_layout};
use crate::matrix::{Csr, CsrError, CsrView, Offsets, Scalar, tasks};
use crate::structure::Rows;
use crate::structure::{PaddingLimit, row_ends};
use crate::syntax::{IndexCoding, ValueCoding};
use crate::task::{Dtype, Values};

/// A program that does not fit the matrix; only programs decoded freely meet this.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PackError {
    /// The program's element type is not the matrix's.
    #[error("the program is for {program} and the matrix holds {matrix}")]
    Dtype {
        /// Of the program.
        program: Dtype,
        /// Of the matrix.
        matrix: Dtype,
    },
    /// An index or distance is wider than its coding.
    #[error("column or distance {n} does not fit the index coding {coding:?}")]
    IndexTooWide {
        /// The coding.
        coding: IndexCoding,
        /// The number.
        n: u32,
    },
    /// `constant` for values that differ.
    #[error("`constant` needs a matrix of one value in a layout without padding")]
    NotConstant,
    /// `dictionary` for too many values.
    #[error("`dictionary` needs at most 256 distinct values, padding counted as one")]
    TooManyValues,
    /// Values that may change, in a coding that only fits those of now.
    #[error(
        "the values may change, and {coding:?} stores only those that the matrix has: use `plain`"
    )]
    DependsOnValues {
        /// The coding.
        coding: ValueCoding,
    },
    /// The layout would hold mostly padding.
    #[error("{layout} would store {slots} slots for {nnz} entries")]
    Padding {
        /// The layout's word.
        layout: &'static str,
        /// Slots, empty ones included.
        slots: u64,
        /// Entries.
        nnz: usize,
    },
    /// More diagonals than a `dia` part may have.
    #[error("{found} diagonals, and `dia` takes at most {most}")]
    Diagonals {
        /// Diagonals with an entry.
        found: usize,
        /// Most allowed.
        most: usize,
    },
    /// The grid exceeds what CUDA launches.
    #[error("{blocks} blocks are more than the 2^31 - 1 of a CUDA grid")]
    Grid {
        /// Blocks needed.
        blocks: u64,
    },
    /// More shared memory than a kernel gets without opting in.
    #[error("{bytes} bytes of shared memory, and a block has at most 49152")]
    SharedMemory {
        /// Bytes needed.
        bytes: usize,
    },
    /// More scratch memory than a part may ask for.
    #[error("{bytes} bytes of workspace, and a part takes at most 1 GiB; use larger tiles")]
    Workspace {
        /// Bytes needed.
        bytes: u64,
    },
    /// A diagonal further away than the 32-bit distances of `dia` reach.
    #[error("`dia` takes diagonals within 2^31 of the main one, found {diagonal}")]
    DiagonalTooFar {
        /// Column minus row.
        diagonal: i64,
    },
}

impl PaddingLimit {
    /// As [`PaddingLimit::bears`] for packing, with twice the room: the mask goes by a sample of
    /// the blocks, and packing by all of them.
    pub(crate) fn check(
        self,
        layout: &'static str,
        slots: u64,
        nnz: usize,
    ) -> Result<(), PackError> {
        if self.doubled().bears(slots, nnz) {
            Ok(())
        } else {
            Err(PackError::Padding { layout, slots, nnz })
        }
    }
}

/// A part's entries in the order of its rows: what a layout packs.
pub(crate) struct PartSource<'a, T> {
    pub(crate) matrix: CsrView<'a, T>,
    /// Rows by position.
    pub(crate) rows: &'a Rows,
    pub(crate) table: Option<&'a Table>,
    pub(crate) program: &'a Program,
}

impl<'a, T: Scalar> PartSource<'a, T> {
    /// Number of rows.
    pub(crate) fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Columns and values of the row at a position.
    pub(crate) fn row(&self, position: usize) -> (&'a [u32], &'a [T]) {
        self.matrix.row(self.rows.at(position))
    }

    /// Entries of the row at a position.
    pub(crate) fn row_len(&self, position: usize) -> usize {
        self.matrix.row_len(self.rows.at(position))
    }

    /// Row lengths by position.
    pub(crate) fn row_lens(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.row_count()).map(|position| self.row_len(position) as u64)
    }

    /// Entries of the part.
    pub(crate) fn nnz(&self) -> usize {
        self.rows.nnz(self.matrix.offsets())
    }

    /// Whether its rows are all of the matrix, in order: then its entries lie as they do in the
    /// matrix's arrays.
    pub(crate) fn is_whole(&self) -> bool {
        *self.rows == all_rows(self.matrix)
    }
}

/// What a layout makes of a part.
pub(crate) struct LayoutArrays {
    pub(crate) arrays: Vec<Array>,
    /// Blocks of the part's share of the grid.
    pub(crate) blocks: u64,
    /// Bytes of the shared buffer that the part uses.
    pub(crate) shared: usize,
}

/// A packed part of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct PackedPart {
    /// Its layout.
    pub layout: Layout,
    /// Its rows, by position.
    pub rows: Rows,
    /// Its entries.
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

/// Geometry of a launch in one dimension, without dynamic shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearGeometry {
    /// Blocks; at least 1, also for a matrix without rows.
    pub grid: u32,
    /// Threads of a block.
    pub block: u32,
    /// Bytes of the shared buffer that the kernel declares.
    pub shared: usize,
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

/// Most bytes of workspace of a part.
pub(crate) const WORKSPACE_LIMIT: u64 = 1 << 30;
/// Bytes of shared memory that a kernel has without opting in to more.
pub(crate) const SHARED_LIMIT: usize = 48 * 1024;

#[cfg(all(test, feature = "std"))]
std::thread_local! {
    static PACKINGS: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

/// How often this thread has called [`pack`].
#[cfg(all(test, feature = "std"))]
pub(crate) fn packings() -> usize {
    PACKINGS.get()
}

/// Packs a matrix as a program says. Arrays that are the matrix's own are shared with it. With the `std` feature, parts are packed in parallel, and so
/// are the columns and the values of a part.
///
/// # Errors
/// When the program does not fit the matrix. A program decoded under
/// [`crate::language::Mask::legal`] with the statistics of this matrix fits, unless the matrix
/// needs more blocks than CUDA launches (10⁸ rows and more).
pub fn pack<T: Scalar>(matrix: CsrView<'_, T>, program: &Program) -> Result<Packed, PackError> {
    #[cfg(all(test, feature = "std"))]
    PACKINGS.set(PACKINGS.get() + 1);
    if program.task.precision.matrix() != T::DTYPE {
        return Err(PackError::Dtype {
            program: program.task.precision.matrix(),
            matrix: T::DTYPE,
        });
    }
    let codings = program.parts().into_iter().map(|part| part.layout.access().values);
    let coded = codings.into_iter().find(|&coding| coding != ValueCoding::Plain);
    if let (Values::Variable, Some(coding)) = (program.task.values, coded) {
        return Err(PackError::DependsOnValues { coding });
    }
    let table = coded.and_then(|_| Table::of(matrix.values()));
    let mut assigned = Vec::new();
    assign(&program.body, &all_rows(matrix), matrix, &mut assigned);

    let pack_part = |(part, rows): (&Part, Rows)| -> Result<(LayoutArrays, Part, Rows), PackError> {
        let source = PartSource { matrix, rows: &rows, table: table.as_ref(), program };
        let arrays = each_layout!(&part.layout, layout => layout.pack(&source))?;
        Ok((arrays, part.clone(), rows))
    };
    // Where several parts do not fit, what is said is of the first, however many threads there are.
    let packed: Result<Vec<_>, _> = tasks::map(assigned, pack_part).into_iter().collect();
    let packed = packed?;

    let mut parts = Vec::new();
    let (mut grid, mut shared) = (0u64, 0);
    // The high sides of splits come first: the longest rows are not to be the last to start.
    for (layout, part, rows) in packed.into_iter().rev() {
        let blocks = layout.blocks;
        let first_block = grid;
        grid += blocks;
        // CUDA's limit, below which all block numbers fit in 32 bits.
        if i32::try_from(grid).is_err() {
            return Err(PackError::Grid { blocks: grid });
        }
        // The kernel holds parts without rows as well: it is the same for all matrices.
        shared = shared.max(layout.shared);
        let nnz = rows.nnz(matrix.offsets());
        let mut arrays = Vec::new();
        if let Rows::List(list) = &rows {
            let data = ArrayData::U32(list.clone().into());
            arrays.push(Array::decoding("rows", data));
        }
        arrays.extend(layout.arrays);
        parts.push(PackedPart {
            layout: part.layout,
            rows,
            nnz,
            first_block: first_block as u32,
            blocks: blocks as u32,
            arrays,
        });
    }
    parts.reverse();
    if shared > SHARED_LIMIT {
        return Err(PackError::SharedMemory { bytes: shared });
    }
    // A CUDA grid has at least one block; without rows it finds nothing to do.
    let geometry =
        LinearGeometry { grid: grid.max(1) as u32, block: program.block.threads(), shared };
    Ok(Packed {
        program: program.clone(),
        rows: matrix.rows(),
        cols: matrix.cols(),
        parts,
        geometry,
    })
}

fn all_rows<T: Scalar>(matrix: CsrView<'_, T>) -> Rows {
    Rows::Range { first: 0, count: matrix.rows() as u32 }
}

/// Gives each part its rows, in the order of the program's text.
fn assign<'p, T: Scalar>(
    node: &'p Node,
    rows: &Rows,
    matrix: CsrView<'_, T>,
    assigned: &mut Vec<(&'p Part, Rows)>,
) {
    match node {
        Node::Split { rule, low, high } => {
            let (low_rows, high_rows) = rows.split(*rule, matrix.offsets());
            assign(low, &low_rows, matrix, assigned);
            assign(high, &high_rows, matrix, assigned);
        }
        Node::Part(part) => assigned.push((part, rows.ordered(part.order, matrix.offsets()))),
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
/// When the arrays are not what [`pack`] writes.
pub fn unpack<T: Scalar>(packed: &Packed) -> Result<Csr<T>, UnpackError> {
    let mut by_row: Vec<Vec<(u32, T)>> = alloc::vec![Vec::new(); packed.rows];
    for (index, part) in packed.parts.iter().enumerate() {
        let mut emit = |position: usize, column: u32, value: T| {
            if let Some(row) = by_row.get_mut(part.rows.at(position)) {
                row.push((column, value));
            }
        };
        let program = &packed.program;
        let complete =
            each_layout!(&part.layout, layout => layout.unpack(part, program, &mut emit));
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
