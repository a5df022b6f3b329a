//! Block CSR: dense square blocks with one column index each.

use alloc::vec;
use alloc::vec::Vec;

use super::array::{Array, ArrayData, Meaning, Stored};
use super::call::{DeviceCall, DeviceCode, PartSize, Shares};
use super::coding::{Counted, Decoder, pack_columns, pack_filled};
use super::cost::{CostModel, PartCost, StartUp, WarpSteps};
use super::layout_module::{LayoutModule, field};
use super::mapping::Mapping;
use super::pack::{PackError, PartLaunch, PartSource, StoredPart, UnpackSource};
use crate::matrix::Scalar;
use crate::structure::{BlockColumns, BlockShape, MAX_PADDING, Order};
use crate::syntax::grammar::{Alternative, IndexUnit, LayoutSet, Site, Slot};
use crate::syntax::{Access, IndexCoding, Lanes, Mask, Reader, Token, Word};
use crate::task::{Operation, Task};

/// Rows and columns of a block: what 2-D and 3-D elements and their pairs give, and powers of two.
const SIDES: [u32; 5] = [3, 2, 4, 6, 8];

/// Block CSR; slots of a block without an entry hold NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BcsrLayout {
    /// Rows and columns of a block: 2, 3, 4, 6 or 8.
    pub(crate) side: u32,
    /// Coding of block columns; relative codings start anew with each row of blocks.
    pub(crate) index: IndexCoding,
    /// Coding and caching of the arrays.
    pub(crate) access: Access,
    /// Threads that share the blocks of a row.
    pub(crate) lanes: Lanes,
}

/// The block sizes whose padding is bearable.
fn sides<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Vec<Alternative<L>> {
    if site.order != Order::Keep {
        return Vec::new();
    }
    let bearable = |&&side: &&u32| {
        mask.allows(|stats| {
            let shape = BlockShape::square(side);
            let slots = stats.blocks(site.rows, shape) * shape.slots();
            MAX_PADDING.bears(slots, stats.rows(site.rows).nnz)
        })
    };
    let fields = |&side: &u32| {
        let index = Slot::Index(site, IndexUnit::BlockRows(side));
        let values = Slot::Values { padded: true };
        let lanes = Slot::Lanes { most: 32, block: false };
        Alternative::number(side, vec![index, values, Slot::Cache, Slot::Vector, lanes])
    };
    SIDES.iter().filter(bearable).map(fields).collect()
}

impl BcsrLayout {
    /// Rows and columns of a block.
    #[must_use]
    pub fn side(&self) -> u32 {
        self.side
    }

    fn mapping(&self, task: Task, block: u32) -> Mapping {
        Mapping::new(task, self.lanes, self.access, block)
    }

    /// Whether a group of threads has a whole row of blocks, for whose rows it reuses what it loads
    /// of the input. In SpMV there is too little to reuse: each row of the matrix has a group of
    /// its own.
    fn has_group_per_block_row(&self, task: Task) -> bool {
        task.operation != Operation::SpMV
    }

    /// Whether tensor cores multiply: matrices in half precision, where the threads of a warp are
    /// shared as these have it, and each has pairs of columns. Of blocks with an odd side, pairs
    /// lie in two blocks; for those of 3, tensor cores were slower on an H200.
    #[must_use]
    pub fn is_on_tensor_cores(&self, task: Task) -> bool {
        let mapping = Mapping::new(task, self.lanes, self.access, 32);
        self.has_group_per_block_row(task)
            && task.precision.rounds_results()
            && self.side.is_multiple_of(2)
            && self.lanes == Lanes::Threads(4)
            && mapping.stride == 8
            && mapping.vector > 1
    }
}

/// The statements where a thread has a row, where it has a row of blocks, and where tensor cores
/// multiply.
const ROWS_CODE: DeviceCode = DeviceCode::Statements(include_str!("../../cuda/bcsr_rows.cuh"));
const COLUMNS_CODE: DeviceCode =
    DeviceCode::Statements(include_str!("../../cuda/bcsr_columns.cuh"));
const TENSOR_CORES_CODE: DeviceCode =
    DeviceCode::Statements(include_str!("../../cuda/bcsr_tensor_cores.cuh"));

impl LayoutModule for BcsrLayout {
    const WORD: Word = Word::Bcsr;
    const FIELDS: &'static [&'static str] =
        &["side", "index", "values", "cache", "vector", "lanes"];
    /// `bcsr B …`, for rows in matrix order whose entries fill blocks of some size.
    fn open<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Option<Vec<Slot<L>>> {
        let any = !sides(site, mask).is_empty();
        any.then(|| vec![field::<Self, L>("side", site, sides)])
    }

    fn write(&self, out: &mut Vec<Token>) {
        out.extend([Token::Number(self.side), self.index.token()]);
        self.access.write(out);
        out.push(self.lanes.token());
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let side = reader.number()?;
        let index = IndexCoding::read(reader)?;
        let access = Access::read(reader)?;
        Some(Self { side, index, access, lanes: Lanes::read(reader)? })
    }

    fn access(&self) -> Access {
        self.access
    }

    fn storage(&self) -> Self {
        Self { access: self.access.storage(), lanes: Lanes::Threads(1), ..*self }
    }

    fn store<T: Scalar>(&self, source: &PartSource<'_, T>) -> Result<Vec<Array>, PackError> {
        let rows = source.row_count();
        let side = self.side as usize;
        let block_rows = rows.div_ceil(side);
        // Block columns of each row of blocks, ascending, and which of them are its own.
        let (mut block_list, mut shares) = (Vec::new(), Vec::with_capacity(block_rows));
        let mut columns = BlockColumns::default();
        for block_row in 0..block_rows {
            let positions = block_row * side..rows.min((block_row + 1) * side);
            let here = columns.of(positions.map(|p| source.row(p).0), self.side);
            shares.push(block_list.len()..block_list.len() + here.len());
            block_list.extend_from_slice(here);
        }
        let slots = block_list.len() as u64 * u64::from(self.side * self.side);
        MAX_PADDING.check("bcsr", slots, source.nnz())?;

        // NaN where there is no entry, as none is NaN.
        let mut values = vec![T::NAN; slots as usize];
        for position in 0..rows {
            let (block_row, r) = (position / side, position % side);
            let mut block = shares[block_row].start;
            let (row_columns, row_values) = source.row(position);
            for (&column, &value) in row_columns.iter().zip(row_values) {
                // Entries and blocks both ascend.
                while column - block_list[block] * self.side >= self.side {
                    block += 1;
                }
                let first = (block * side + r) * side;
                values[first + (column - block_list[block] * self.side) as usize] = value;
            }
        }
        let counts = shares.iter().map(|share| share.len() as u64);
        let offsets = ArrayData::offsets(block_list.len() as u64, counts);
        let columns = shares.iter().enumerate().flat_map(|(block_row, share)| {
            let columns = block_list[share.clone()].iter();
            columns.map(move |&column| (block_row as u32, Some((column, T::NAN))))
        });
        let mut arrays = vec![Array::matrix("block_row_offsets", offsets)];
        let columns = Counted { entries: columns, count: block_list.len() };
        arrays.extend(pack_columns(self.index, block_rows, columns)?);
        arrays.extend(pack_filled(self.access.values, source.table, true, values)?);
        Ok(arrays)
    }

    fn launch(&self, part: &StoredPart, task: Task, block: u32) -> Result<PartLaunch, PackError> {
        let rows = part.rows.len();
        let groups = if self.has_group_per_block_row(task) {
            rows.div_ceil(self.side as usize)
        } else {
            rows
        };
        Ok(PartLaunch::new(self.mapping(task, block).blocks(groups as u64, block)))
    }

    fn unpack<T: Scalar>(
        &self,
        part: &UnpackSource<'_>,
        emit: &mut impl FnMut(usize, u32, T),
    ) -> Option<()> {
        let decoder = Decoder::new(self.access.values, part.arrays);
        let offsets = part.array("block_row_offsets")?;
        let side = self.side as usize;
        for position in 0..part.rows.len() {
            let block_row = position / side;
            for b in offsets.unsigned(block_row)?..offsets.unsigned(block_row + 1)? {
                let first_column = decoder.column(block_row, b as usize)?.checked_mul(self.side)?;
                let first = (b as usize * side + position % side) * side;
                for j in 0..side {
                    let value: T = decoder.value(first + j)?;
                    if !value.to_f64().is_nan() {
                        emit(position, first_column + j as u32, value);
                    }
                }
            }
        }
        Some(())
    }

    /// What the elements of one of its arrays are; `None` for a name that it does not have.
    fn meaning(&self, array: &str) -> Option<Meaning> {
        const STORED: Stored = Stored {
            unit: "block row",
            units: "block rows",
            indexed: "block, in blocks",
            indices: "blocks",
            values: "blocks x side x side",
            empty: ", or NaN",
        };
        match array {
            "block_row_offsets" => Some(Meaning::new(
                "first block of each row of blocks, and the end",
                "block rows + 1",
            )),
            _ => STORED.meaning(array, self.index, self.access),
        }
    }

    fn call(&self, task: Task, block: u32) -> DeviceCall {
        let mapping = self.mapping(task, block);
        let lanes = mapping.lanes;
        let call = if self.is_on_tensor_cores(task) {
            // So many multiplications wait for memory together as there are registers for.
            DeviceCall::new(TENSOR_CORES_CODE, mapping, Shares::TileOfBlocks)
                .constant("VECTOR", mapping.vector)
                .constant("STEPS", if mapping.vector == 8 { 2 } else { 4 })
        } else if self.has_group_per_block_row(task) {
            DeviceCall::new(COLUMNS_CODE, mapping, Shares::RowOfBlocks(lanes))
        } else {
            DeviceCall::new(ROWS_CODE, mapping, Shares::Row(lanes))
        };
        call.values_at_once(self.side)
            .constant("SIDE", self.side)
            .factor("LANES", lanes)
            .factor("STRIDE", mapping.stride)
            .block()
            .size(PartSize::Rows)
            .size(PartSize::Columns)
            .array("block_row_offsets")
            .dense()
    }

    fn cost(&self, site: Site, model: &CostModel<'_>) -> PartCost {
        let (stats, task) = (model.stats(), model.task());
        let mapping = self.mapping(task, site.block);
        let set = stats.rows(site.rows);
        let side = u64::from(self.side);
        let blocks = stats.blocks(site.rows, BlockShape::square(self.side));
        let block_rows = (set.rows.len() as u64).div_ceil(side);
        let bases = if self.index.is_relative() { 4 * block_rows } else { 0 };
        let value = self.access.values.size(task.precision.matrix()) as u64;
        let bytes =
            blocks * (self.index.size() as u64 + side * side * value) + 4 * block_rows + bases;
        // A row's blocks follow its length; a block takes `side` steps.
        let fill = (blocks * side * side) as f64 / (set.nnz.max(1) as f64);
        let rows = model.row_steps(site, mapping.lanes, mapping.stride);
        let steps = WarpSteps {
            warps: rows.warps,
            total: (rows.total as f64 * fill) as u64,
            // Of a long row each entry has a block of its own, at worst.
            longest: rows.longest,
        };
        // Groups of threads of a warp, each of which takes a value, or a column of a block, in a
        // step.
        let groups = f64::from((32 / (mapping.lanes * mapping.stride)).max(1) * mapping.lanes);
        let (values, indices) = (groups * value as f64 / 32.0, groups / side as f64);
        let cost = if self.has_group_per_block_row(task) {
            let steps = WarpSteps {
                warps: steps.warps.div_ceil(side),
                total: steps.total.div_ceil(side),
                longest: steps.longest,
            };
            PartCost::new(&mapping, steps, StartUp::Blocks)
                .matrix(bytes, side as f64 * values + indices)
                .scattered_input(&mapping, task)
        } else {
            PartCost::new(&mapping, steps, StartUp::Blocks)
                .matrix(bytes, values + indices)
                .input_shared_by_lanes(&mapping, task, self.side)
        };
        cost.unroll(2)
    }
}
