//! CSR: offsets, columns and values, row by row.

use alloc::vec;
use alloc::vec::Vec;

use super::array::{Array, ArrayData, Meaning, Stored};
use super::call::{DeviceCall, DeviceCode, PartSize, Shares};
use super::coding::{Counted, Decoder, pack_entries, shared_entries};
use super::cost::{CostModel, PartCost, StartUp, WarpSteps};
use super::layout_module::LayoutModule;
use super::mapping::Mapping;
use super::pack::{PackError, PartLaunch, PartSource, StoredPart, UnpackSource};
use crate::matrix::Scalar;
use crate::syntax::grammar::{IndexUnit, LayoutSet, Site, Slot};
use crate::syntax::{Access, IndexCoding, Lanes, Mask, Reader, Token, Word};
use crate::task::Task;

/// Compressed sparse rows, with 1–32 lanes or a block for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CsrLayout {
    /// Coding of column indices; relative codings start anew with each row.
    pub(crate) index: IndexCoding,
    /// Coding and caching of the arrays.
    pub(crate) access: Access,
    /// Threads that share a row.
    pub(crate) lanes: Lanes,
    /// Entries in flight per thread: 1, 2, 4 or 8.
    pub(crate) unroll: u32,
}

impl CsrLayout {
    /// A layout with 32-bit column indices.
    #[must_use]
    pub fn new(access: Access, lanes: Lanes, unroll: u32) -> Self {
        Self { index: IndexCoding::U32, access, lanes, unroll }
    }

    fn mapping(&self, task: Task, block: u32) -> Mapping {
        Mapping::new(task, self.lanes, self.access, block)
    }

    /// Columns and values, coded entry by entry.
    fn pack_entries<T: Scalar>(&self, source: &PartSource<'_, T>) -> Result<Vec<Array>, PackError> {
        let rows = source.row_count();
        let entries = (0..rows).flat_map(move |position| {
            let (columns, values) = source.row(position);
            let row = columns.iter().zip(values);
            row.map(move |(&column, &value)| (position as u32, Some((column, value))))
        });
        let entries = Counted { entries, count: source.nnz() };
        let (index, values) = ((self.index, rows), (self.access.values, source.table));
        pack_entries(index, values, false, entries.clone(), entries)
    }

    /// Bytes in which the warps of a block leave their sums.
    fn shared_bytes(&self, task: Task, block: u32) -> usize {
        let mapping = self.mapping(task, block);
        let sum = mapping.vector as usize * task.precision.accumulator().size();
        (block / 32 * mapping.stride) as usize * sum
    }
}

/// The statements where the threads of a warp share a row, and where a block has one.
const LANES_CODE: DeviceCode = DeviceCode::Statements(include_str!("../../cuda/csr.cuh"));
const BLOCK_CODE: DeviceCode = DeviceCode::Statements(include_str!("../../cuda/csr_block.cuh"));

impl LayoutModule for CsrLayout {
    const WORD: Word = Word::Csr;
    const FIELDS: &'static [&'static str] =
        &["index", "values", "cache", "vector", "lanes", "unroll"];
    /// `csr INDEX VALUES CACHE VECTOR LANES UNROLL`, for any rows.
    fn open<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Option<Vec<Slot<L>>> {
        let index = Slot::Index(site, IndexUnit::Rows(1));
        let values = Slot::Values { padded: false };
        // A block for each row and column tile has to fit in a grid, beside those of other parts.
        let columns = u64::from(mask.task().operation.columns());
        let block =
            mask.allows(|stats| stats.rows(site.rows).rows.len() as u64 * columns < 1 << 28);
        let lanes = Slot::Lanes { most: 32, block };
        Some(vec![index, values, Slot::Cache, Slot::Vector, lanes, Slot::Unroll])
    }

    fn write(&self, out: &mut Vec<Token>) {
        out.push(self.index.token());
        self.access.write(out);
        out.extend([self.lanes.token(), Token::Number(self.unroll)]);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let index = IndexCoding::read(reader)?;
        let access = Access::read(reader)?;
        Some(Self { index, access, lanes: Lanes::read(reader)?, unroll: reader.number()? })
    }

    fn access(&self) -> Access {
        self.access
    }

    fn storage(&self) -> Self {
        let access = self.access.storage();
        Self { access, lanes: Lanes::Threads(1), unroll: 1, ..*self }
    }

    fn store<T: Scalar>(&self, source: &PartSource<'_, T>) -> Result<Vec<Array>, PackError> {
        let offsets = match source.is_whole() {
            true => ArrayData::of_offsets(source.matrix.kept_offsets()),
            false => ArrayData::offsets(source.nnz() as u64, source.row_lens()),
        };
        let mut arrays = vec![Array::matrix("row_offsets", offsets)];
        arrays.extend(match shared_entries(source, self.index, self.access.values) {
            Some(shared) => shared.into(),
            None => self.pack_entries(source)?,
        });
        Ok(arrays)
    }

    fn launch(&self, part: &StoredPart, task: Task, block: u32) -> Result<PartLaunch, PackError> {
        let mapping = self.mapping(task, block);
        Ok(PartLaunch::new(mapping.blocks(part.rows.len() as u64, block)))
    }

    fn unpack<T: Scalar>(
        &self,
        part: &UnpackSource<'_>,
        emit: &mut impl FnMut(usize, u32, T),
    ) -> Option<()> {
        let decoder = Decoder::new(self.access.values, part.arrays);
        let offsets = part.array("row_offsets")?;
        for position in 0..part.rows.len() {
            let slots = offsets.unsigned(position)?..offsets.unsigned(position + 1)?;
            for slot in slots {
                let slot = slot as usize;
                emit(position, decoder.column(position, slot)?, decoder.value(slot)?);
            }
        }
        Some(())
    }

    /// What the elements of one of its arrays are; `None` for a name that it does not have.
    fn meaning(&self, array: &str) -> Option<Meaning> {
        const STORED: Stored = Stored {
            unit: "row",
            units: "rows",
            indexed: "entry",
            indices: "entries",
            values: "entries",
            empty: "",
        };
        match array {
            "row_offsets" => Some(Meaning::new("first entry of each row, and the end", "rows + 1")),
            _ => STORED.meaning(array, self.index, self.access),
        }
    }

    fn call(&self, task: Task, block: u32) -> DeviceCall {
        let mapping = self.mapping(task, block);
        let call = match self.lanes {
            Lanes::Threads(lanes) => {
                DeviceCall::new(LANES_CODE, mapping, Shares::Row(lanes)).factor("LANES", lanes)
            }
            Lanes::Block => DeviceCall::new(BLOCK_CODE, mapping, Shares::BlockRow),
        };
        let call = call
            .factor("STRIDE", mapping.stride)
            .constant("UNROLL", self.unroll)
            .block()
            .size(PartSize::Rows)
            .array("row_offsets")
            .dense();
        match self.lanes {
            Lanes::Threads(_) => call,
            Lanes::Block => call.shared(self.shared_bytes(task, block)),
        }
    }

    fn cost(&self, site: Site, model: &CostModel<'_>) -> PartCost {
        let (stats, task) = (model.stats(), model.task());
        let mapping = self.mapping(task, site.block);
        let set = stats.rows(site.rows);
        let offsets = (set.rows.len() + 1) * if set.nnz < u32::MAX as usize { 4 } else { 8 };
        let bases = if self.index.is_relative() { 4 * set.rows.len() } else { 0 };
        let entry = self.index.size() + self.access.values.size(task.precision.matrix());
        let (steps, start_up) = match self.lanes {
            Lanes::Threads(_) => {
                (model.row_steps(site, mapping.lanes, mapping.stride), StartUp::Rows)
            }
            Lanes::Block => {
                let warps = u64::from(site.block / 32);
                let longest = set.longest as u64;
                let total: u64 = (set.nnz as u64).div_ceil(u64::from(mapping.lanes));
                // Each block ends with a barrier and a walk over its warps.
                let steps = WarpSteps {
                    warps: set.rows.len() as u64 * warps,
                    total: (total + set.rows.len() as u64 * 5) * warps,
                    longest: longest.div_ceil(u64::from(mapping.lanes)) + 4,
                };
                (steps, StartUp::BlockRows)
            }
        };
        // Each row's lanes read a run of their own; a run touches half a sector more than it fills.
        let rows_at_once = (32 / (mapping.lanes * mapping.stride)).max(1) as f64;
        let run = f64::from(mapping.lanes.min(32)) * entry as f64;
        PartCost::new(&mapping, steps, start_up)
            .matrix((offsets + bases + set.nnz * entry) as u64, rows_at_once * (run / 32.0 + 1.0))
            .scattered_input(&mapping, task)
            .unroll(self.unroll)
    }
}
