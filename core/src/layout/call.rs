//! The call of a layout's device code, as data.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::mapping::Mapping;

/// The call of device code: which one, how threads are mapped, and what it is given.
#[derive(Clone, Debug)]
pub(crate) struct DeviceCall {
    pub(crate) code: DeviceCode,
    pub(crate) mapping: Mapping,
    pub(crate) shares: Shares,
    /// Numbers by their names in the source.
    pub(crate) constants: Vec<(&'static str, u32)>,
    /// Likewise, where the code has no need of one that is 1.
    pub(crate) factors: Vec<(&'static str, u32)>,
    pub(crate) operands: Vec<Operand>,
    /// Values that it takes from the part at once, by vector loads where they divide into vectors;
    /// `None` where it takes them one by one.
    pub(crate) values_at_once: Option<u32>,
    /// Column indices that it takes at once, likewise.
    pub(crate) columns_at_once: Option<u32>,
    /// Bytes of the shared buffer that it uses.
    pub(crate) shared_bytes: usize,
}

/// The device code of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceCode {
    /// A function of the library, which is given the part.
    Function(&'static str),
    /// A file of statements, which are written for the program.
    Statements(&'static str),
}

/// Which threads share what, over the rows and entries of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shares {
    /// So many threads of a warp have a row.
    Row(u32),
    /// So many threads of a warp have a chunk of a row.
    Chunk(u32),
    /// A thread has so many rows, which are 32 apart.
    RowsOfThread(u32),
    /// So many threads of a warp have a row of blocks.
    RowOfBlocks(u32),
    /// So many threads of a warp have a group of neighbouring rows.
    GroupOfRows {
        /// Threads.
        lanes: u32,
        /// Rows.
        rows: u32,
    },
    /// So have four, as the tensor cores share out a tile: of 32 threads, every fourth has other
    /// columns.
    TileOfBlocks,
    /// A block has a row.
    BlockRow,
    /// A block has a segment of a column panel, or a bin of rows, of each of which so many threads
    /// of a warp have the sum.
    Bins(u32),
    /// A block has a tile; how its threads share it, in words.
    BlockTile(&'static str),
}

impl Shares {
    /// Threads in a row that have the same columns.
    pub(crate) fn threads_of_columns(self) -> u32 {
        match self {
            Self::TileOfBlocks => 4,
            Self::Row(_)
            | Self::Chunk(_)
            | Self::RowsOfThread(_)
            | Self::RowOfBlocks(_)
            | Self::GroupOfRows { .. }
            | Self::BlockRow
            | Self::Bins(_)
            | Self::BlockTile(_) => 1,
        }
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(1) => f.write_str("a thread for each row"),
            Self::Row(lanes) => write!(f, "{lanes} threads of a warp for each row"),
            Self::Chunk(1) => f.write_str("a thread for each chunk of a row"),
            Self::Chunk(lanes) => write!(f, "{lanes} threads of a warp for each chunk of a row"),
            Self::RowsOfThread(1) => f.write_str("a thread for each row"),
            Self::RowsOfThread(rows) => write!(f, "a thread for each {rows} rows, 32 apart"),
            Self::RowOfBlocks(1) => f.write_str("a thread for each row of blocks"),
            Self::RowOfBlocks(lanes) => {
                write!(f, "{lanes} threads of a warp for each row of blocks")
            }
            Self::GroupOfRows { lanes: 1, rows } => {
                write!(f, "a thread for each {rows} neighbouring rows")
            }
            Self::GroupOfRows { lanes, rows } => {
                write!(f, "{lanes} threads of a warp for each {rows} neighbouring rows")
            }
            Self::TileOfBlocks => {
                f.write_str("4 threads of a warp for each row of blocks, as tensor cores have it")
            }
            Self::BlockRow => f.write_str("a block for each row"),
            Self::Bins(lanes) => {
                f.write_str(
                    "a block for each segment of a column panel, then for each bin of rows",
                )?;
                match lanes {
                    1 => f.write_str(", in it a thread for each row"),
                    _ => write!(f, ", in it {lanes} threads of a warp for each row"),
                }
            }
            Self::BlockTile(how) => write!(f, "a block for each tile, {how}"),
        }
    }
}

/// What device code is given, in order; a function of the library after its part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand {
    Block,
    ColumnTile,
    Member(Member),
    Struct(DeviceStruct),
    Input,
    Output,
    Scratch,
}

/// What a part has by name, of which structs of the library are made, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// One of its sizes, which the launch gives.
    Size(PartSize),
    /// One of its arrays.
    Array(&'static str),
}

/// A struct of the library that is made of what a part has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceStruct {
    /// Name in device code.
    pub(crate) name: &'static str,
    /// The size whose type is the argument of the template, where it is one.
    pub(crate) counts: Option<PartSize>,
    /// Its members, in order.
    pub(crate) members: &'static [Member],
}

impl DeviceCall {
    /// A call by all threads of the part's blocks.
    pub(crate) fn new(code: DeviceCode, mapping: Mapping, shares: Shares) -> Self {
        Self {
            code,
            mapping,
            shares,
            constants: Vec::new(),
            factors: Vec::new(),
            operands: Vec::new(),
            values_at_once: None,
            columns_at_once: None,
            shared_bytes: 0,
        }
    }

    /// A named constant.
    pub(crate) fn constant(mut self, name: &'static str, value: u32) -> Self {
        self.constants.push((name, value));
        self
    }

    /// A named constant that is left out where it is 1.
    pub(crate) fn factor(mut self, name: &'static str, value: u32) -> Self {
        self.factors.push((name, value));
        self
    }

    /// Takes so many neighbouring values at once; the first of them is always a multiple of so
    /// many.
    pub(crate) fn values_at_once(mut self, count: u32) -> Self {
        self.values_at_once = Some(count);
        self
    }

    /// Takes as many neighbouring column indices at once, likewise.
    pub(crate) fn columns_at_once(mut self, count: u32) -> Self {
        self.columns_at_once = Some(count);
        self
    }

    fn push(mut self, operand: Operand) -> Self {
        self.operands.push(operand);
        self
    }

    /// Index of the thread block within the part.
    pub(crate) fn block(self) -> Self {
        self.push(Operand::Block)
    }

    /// Index of the column tile.
    pub(crate) fn column_tile(self) -> Self {
        self.push(Operand::ColumnTile)
    }

    /// A size of the part, which the launch gives.
    pub(crate) fn size(self, size: PartSize) -> Self {
        self.push(Operand::Member(Member::Size(size)))
    }

    /// One of the part's arrays.
    pub(crate) fn array(self, name: &'static str) -> Self {
        self.push(Operand::Member(Member::Array(name)))
    }

    /// A struct of the library; only functions of the library take one.
    pub(crate) fn made(self, made: DeviceStruct) -> Self {
        self.push(Operand::Struct(made))
    }

    /// The dense operands.
    pub(crate) fn dense(self) -> Self {
        self.push(Operand::Input).push(Operand::Output)
    }

    /// The kernel's shared buffer, of at least this many bytes.
    pub(crate) fn shared(mut self, bytes: usize) -> Self {
        self.shared_bytes = bytes;
        self.push(Operand::Scratch)
    }
}

/// A size of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartSize {
    /// Its rows.
    Rows,
    /// Columns of the matrix, which are the rows of the input.
    Columns,
    /// The first of its rows, which are neighbours in the matrix.
    FirstRow,
    /// The first of its blocks in the grid.
    FirstBlock,
    /// Its entries.
    Entries,
    /// Its blocks of each column panel.
    PanelBlocks,
    /// One that parts of its layout alone have.
    Own(&'static OwnSize),
}

/// A size that only parts of one layout have, which brings all that is to be known of it.
#[derive(Clone, Copy, Debug)]
pub struct OwnSize {
    /// Name in device code.
    pub(crate) name: &'static str,
    /// What it is, in words; `{}` stands for the part.
    pub(crate) meaning: &'static str,
    /// The array of the part whose elements tell it, where one does.
    pub(crate) array: Option<&'static str>,
    /// Whether it is as many as the [items](super::LayoutModule::most_items) that device code
    /// counts, and so has their type.
    pub(crate) counts_items: bool,
    /// The number for a packed part.
    pub(crate) of: fn(SizeInputs) -> usize,
}

/// What the number depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeInputs {
    /// Rows of the part.
    pub(crate) rows: usize,
    /// Entries of these rows.
    pub(crate) nnz: usize,
    /// Elements of the array that tells it; 0 without one.
    pub(crate) elements: usize,
    /// Columns of the dense operands.
    pub(crate) columns: usize,
}

impl OwnSize {
    /// As many as an array of the part has elements.
    pub(crate) const fn elements_of(
        array: &'static str,
        name: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self { name, meaning, array: Some(array), counts_items: false, of: |part| part.elements }
    }
}

impl PartialEq for OwnSize {
    /// Within a layout, sizes differ in their names.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for OwnSize {}

impl PartSize {
    /// Name in device code.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rows => "row_count",
            Self::Columns => "column_count",
            Self::FirstRow => "first_row",
            Self::FirstBlock => "first_block",
            Self::Entries => "entry_count",
            Self::PanelBlocks => "panel_blocks",
            Self::Own(own) => own.name,
        }
    }

    /// What it is in words, where the part is called so.
    pub(crate) fn meaning(self, part: &str) -> String {
        match self {
            Self::Rows => format!("rows of {part}"),
            Self::Columns => "columns of A".into(),
            Self::FirstRow => format!("first row of {part}"),
            Self::FirstBlock => format!("first block of {part}"),
            Self::Entries => format!("entries of {part}"),
            Self::PanelBlocks => format!("blocks of each column panel of {part}"),
            Self::Own(own) => own.meaning.replace("{}", part),
        }
    }

    /// The array of the part whose elements tell it, where one does.
    pub(crate) fn array(self) -> Option<&'static str> {
        match self {
            Self::Own(own) => own.array,
            Self::Rows
            | Self::Columns
            | Self::FirstRow
            | Self::FirstBlock
            | Self::Entries
            | Self::PanelBlocks => None,
        }
    }
}
