use alloc::vec::Vec;

use thiserror::Error;

use super::array::{Array, ArrayData};
use crate::matrix::{CsrView, Scalar};
use crate::structure::{PaddingLimit, Rows, Table};
use crate::syntax::{IndexCoding, ValueCoding};
use crate::task::{Dtype, Task};

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
    /// More of something than the 32-bit numbers of a layout's arrays tell apart.
    #[error("`{layout}` numbers at most {most} {what}, found {found}")]
    TooMany {
        /// The layout's word.
        layout: &'static str,
        /// What is numbered.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        most: u64,
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
    /// More shared memory than there is.
    #[error("{bytes} bytes of shared memory, and such a block has at most {most}")]
    SharedMemory {
        /// Bytes needed.
        bytes: usize,
        /// Bytes that there are.
        most: usize,
    },
    /// More workspace than a part may ask for.
    #[error("{bytes} bytes of workspace, and such a part takes at most {most}")]
    Workspace {
        /// Bytes needed.
        bytes: u64,
        /// Bytes that it may ask for.
        most: u64,
    },
    /// A diagonal further away than the 32-bit distances of `dia` reach.
    #[error("`dia` takes diagonals within 2^31 of the main one, found {diagonal}")]
    DiagonalTooFar {
        /// Column minus row.
        diagonal: i64,
    },
}

/// Slots of a part, at most, where device code numbers them by 32 bits, and steps past the last.
pub(crate) const MOST_SLOTS: u64 = u32::MAX as u64 - (1 << 16);

/// Refuses more slots than [`MOST_SLOTS`].
pub(crate) fn check_slots(layout: &'static str, slots: u64) -> Result<(), PackError> {
    match slots <= MOST_SLOTS {
        true => Ok(()),
        false => Err(PackError::TooMany { layout, what: "slots", found: slots, most: MOST_SLOTS }),
    }
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
    pub(crate) task: Task,
    /// Threads of a block. Only a layout that stores by them may ask for it.
    pub(crate) block: u32,
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
        *self.rows == Rows::all(self.matrix.rows())
    }
}

/// What a part is stored as: what a layout unpacks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnpackSource<'a> {
    /// Rows by position.
    pub(crate) rows: &'a Rows,
    pub(crate) arrays: &'a [Array],
    pub(crate) task: Task,
    /// Threads of a block.
    pub(crate) block: u32,
}

impl<'a> UnpackSource<'a> {
    /// An array by its name within the part.
    pub(crate) fn array(&self, name: &str) -> Option<&'a ArrayData> {
        self.arrays.iter().find(|array| array.name == name).map(|array| &array.data)
    }
}

/// A part as it is stored, whatever threads do with it.
#[derive(Clone, Debug)]
pub(crate) struct StoredPart {
    /// Its rows, by position.
    pub(crate) rows: Rows,
    /// Its entries.
    pub(crate) nnz: usize,
    /// The arrays that hold it, in the order of the kernel's arguments.
    pub(crate) arrays: Vec<Array>,
}

impl StoredPart {
    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let rows = match &self.rows {
            Rows::List(rows) => size_of_val(rows.as_slice()),
            Rows::Range { .. } => 0,
        };
        rows + self.arrays.iter().map(|array| array.data.bytes().len()).sum::<usize>()
    }

    /// Elements of an array, by its name within the part.
    pub(crate) fn array_len(&self, name: &str) -> usize {
        self.arrays.iter().find(|array| array.name == name).map_or(0, |array| array.data.len())
    }
}

/// What a launch takes for a part, besides what holds the matrix.
#[derive(Debug, Default)]
pub(crate) struct PartLaunch {
    /// Memory to compute in, which follows the other arrays among the kernel's arguments.
    pub(crate) workspace: Vec<Array>,
    /// Blocks of the part's share of the grid.
    pub(crate) blocks: u64,
}

impl PartLaunch {
    pub(crate) fn new(blocks: u64) -> Self {
        Self { blocks, ..Self::default() }
    }

    pub(crate) fn workspace(self, arrays: impl Into<Vec<Array>>) -> Self {
        Self { workspace: arrays.into(), ..self }
    }
}

/// Most bytes of workspace of a part, where its layout has no limit of its own.
pub(crate) const WORKSPACE_LIMIT: u64 = 1 << 30;
/// Bytes of shared memory that a kernel has without opting in to more.
pub(crate) const SHARED_LIMIT: usize = 48 * 1024;
/// Bytes of shared memory that a kernel is given, at most: what compute capability 9.0 has for a
/// block (227 KiB), but for what kernels declare besides.
pub(crate) const MOST_SHARED: usize = 224 * 1024;
