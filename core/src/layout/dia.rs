//! DIA: whole diagonals, without column indices.

use alloc::vec;
use alloc::vec::Vec;

use super::array::{Array, ArrayData, Meaning, Stored};
use super::call::{DeviceCall, DeviceCode, OwnSize, PartSize, Shares};
use super::coding::{Decoder, pack_filled};
use super::cost::{CostModel, PartCost, StartUp, WarpSteps};
use super::layout_module::{LayoutModule, field};
use super::mapping::Mapping;
use super::pack::{PackError, PartLaunch, PartSource, StoredPart, UnpackSource};
use crate::matrix::Scalar;
use crate::structure::{MAX_DIAGONALS, MAX_PADDING, Order, diagonals};
use crate::syntax::grammar::{Alternative, LayoutSet, Site, Slot};
use crate::syntax::{Access, IndexCoding, Lanes, Mask, Reader, Token, Word};
use crate::task::{Operation, Task};

/// Threads of a warp.
const WARP: usize = 32;
/// What follows the meaning of a thread's several values.
const SIDE_BY_SIDE: &str = ", or NaN; those of rows that are 32 apart are side by side";

/// Diagonals; slots without an entry hold NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiaLayout {
    /// Coding and caching of the values.
    pub(crate) access: Access,
    /// Rows of a thread, a warp's width apart: 1, 2 or 4; 1 for SpMM.
    pub(crate) rows: u32,
    /// Diagonals in flight per thread.
    pub(crate) unroll: u32,
}

/// Rows of a thread. For SpMM a thread has columns of one row.
fn rows_of_thread<L: LayoutSet>(_: Site, mask: Mask<'_, L>) -> Vec<Alternative<L>> {
    let most = if mask.task().operation == Operation::SpMV { 4 } else { 1 };
    let counts = [1, 2, 4].into_iter().filter(|&rows| rows <= most);
    counts.map(|rows| Alternative::number(rows, Vec::new())).collect()
}

impl DiaLayout {
    fn mapping(&self, task: Task, block: u32) -> Mapping {
        Mapping::new(task, Lanes::Threads(1), self.access, block)
    }

    /// Positions of a warp: those that are stored together of each diagonal.
    fn slice(&self) -> usize {
        WARP * self.rows as usize
    }

    /// The slot of a diagonal that is for a position: a thread's lie side by side.
    fn slot(&self, position: usize) -> usize {
        let (rows, within) = (self.rows as usize, position % self.slice());
        position - within + within % WARP * rows + within / WARP
    }
}

/// The statements of SpMV and of SpMM.
const ROWS_CODE: DeviceCode = DeviceCode::Statements(include_str!("../../cuda/dia_rows.cuh"));
const COLUMNS_CODE: DeviceCode = DeviceCode::Statements(include_str!("../../cuda/dia_columns.cuh"));

/// Its diagonals.
const DIAGONAL_COUNT: OwnSize =
    OwnSize::elements_of("diagonals", "diagonal_count", "diagonals of {}");

impl LayoutModule for DiaLayout {
    const WORD: Word = Word::Dia;
    const FIELDS: &'static [&'static str] = &["values", "cache", "vector", "rows", "unroll"];
    /// `dia VALUES CACHE VECTOR R UNROLL`, for rows in matrix order with few, well-filled
    /// diagonals.
    fn open<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Option<Vec<Slot<L>>> {
        let fits = site.order == Order::Keep
            && mask.allows(|stats| {
                let set = stats.rows(site.rows);
                stats.diagonals(site.rows).is_some_and(|diagonals| {
                    let slots = diagonals as u64 * set.rows.len() as u64;
                    MAX_PADDING.bears(slots, set.nnz)
                })
            });
        let values = Slot::Values { padded: true };
        let rows = field::<Self, L>("rows", site, rows_of_thread);
        fits.then(|| vec![values, Slot::Cache, Slot::Vector, rows, Slot::Unroll])
    }

    fn write(&self, out: &mut Vec<Token>) {
        self.access.write(out);
        out.extend([Token::Number(self.rows), Token::Number(self.unroll)]);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let access = Access::read(reader)?;
        Some(Self { access, rows: reader.number()?, unroll: reader.number()? })
    }

    fn access(&self) -> Access {
        self.access
    }

    fn storage(&self) -> Self {
        Self { access: self.access.storage(), unroll: 1, ..*self }
    }

    fn store<T: Scalar>(&self, source: &PartSource<'_, T>) -> Result<Vec<Array>, PackError> {
        let rows = source.row_count();
        let by_position = (0..rows).map(|p| (source.rows.at(p), source.row(p).0));
        let diagonals = diagonals(by_position)
            .map_err(|found| PackError::Diagonals { found, most: MAX_DIAGONALS })?;
        MAX_PADDING.check("dia", (diagonals.len() * rows) as u64, source.nnz())?;
        let offset = |&diagonal: &i64| {
            i32::try_from(diagonal).map_err(|_| PackError::DiagonalTooFar { diagonal })
        };
        let offsets = diagonals.iter().map(offset).collect::<Result<_, _>>()?;
        let diagonals: Vec<i64> = diagonals.into_iter().collect();
        let stride = rows.next_multiple_of(self.slice());
        // NaN where there is no entry, as none is NaN.
        let mut values = vec![T::NAN; diagonals.len() * stride];
        for position in 0..rows {
            let (row, slot) = (source.rows.at(position) as i64, self.slot(position));
            let mut diagonal = 0;
            let (columns, row_values) = source.row(position);
            for (&column, &value) in columns.iter().zip(row_values) {
                // Entries and diagonals both ascend.
                while diagonals[diagonal] < i64::from(column) - row {
                    diagonal += 1;
                }
                values[diagonal * stride + slot] = value;
            }
        }
        let mut arrays = vec![Array::matrix("diagonals", ArrayData::I32(offsets))];
        arrays.extend(pack_filled(self.access.values, source.table, true, values)?);
        Ok(arrays)
    }

    fn launch(&self, part: &StoredPart, task: Task, block: u32) -> Result<PartLaunch, PackError> {
        let threads = part.rows.len().div_ceil(self.rows as usize) as u64;
        Ok(PartLaunch::new(self.mapping(task, block).blocks(threads, block)))
    }

    fn unpack<T: Scalar>(
        &self,
        part: &UnpackSource<'_>,
        emit: &mut impl FnMut(usize, u32, T),
    ) -> Option<()> {
        let decoder = Decoder::new(self.access.values, part.arrays);
        let ArrayData::I32(diagonals) = part.array("diagonals")? else { return None };
        let rows = part.rows.len();
        let stride = rows.next_multiple_of(self.slice());
        for position in 0..rows {
            for (d, &diagonal) in diagonals.iter().enumerate() {
                let value: T = decoder.value(d * stride + self.slot(position))?;
                if !value.to_f64().is_nan() {
                    let column = part.rows.at(position) as i64 + i64::from(diagonal);
                    emit(position, u32::try_from(column).ok()?, value);
                }
            }
        }
        Some(())
    }

    /// What the elements of one of its arrays are; `None` for a name that it does not have.
    fn meaning(&self, array: &str) -> Option<Meaning> {
        let (values, empty) = match self.rows {
            1 => ("diagonals x rows rounded up to 32", ", or NaN"),
            2 => ("diagonals x rows rounded up to 64", SIDE_BY_SIDE),
            _ => ("diagonals x rows rounded up to 128", SIDE_BY_SIDE),
        };
        let (unit, units) = ("row", "rows");
        let stored = Stored { unit, units, indexed: "entry", indices: "entries", values, empty };
        match array {
            "diagonals" => Some(Meaning::new("column minus row of each diagonal", "diagonals")),
            _ => stored.meaning(array, IndexCoding::U32, self.access),
        }
    }

    fn call(&self, task: Task, block: u32) -> DeviceCall {
        let mapping = self.mapping(task, block);
        let call = match task.operation {
            Operation::SpMV => DeviceCall::new(ROWS_CODE, mapping, Shares::RowsOfThread(self.rows))
                .values_at_once(self.rows)
                .constant("ROWS", self.rows)
                .constant("UNROLL", self.unroll)
                .block()
                .size(PartSize::Rows)
                .size(PartSize::Columns),
            Operation::SpMM { .. } => DeviceCall::new(COLUMNS_CODE, mapping, Shares::Row(1))
                .factor("STRIDE", mapping.stride)
                .constant("UNROLL", self.unroll)
                .block()
                .size(PartSize::Rows),
        };
        call.array("diagonals").size(PartSize::Own(&DIAGONAL_COUNT)).dense()
    }

    fn cost(&self, site: Site, model: &CostModel<'_>) -> PartCost {
        let (stats, task) = (model.stats(), model.task());
        let mapping = self.mapping(task, site.block);
        let set = stats.rows(site.rows);
        let diagonals = stats.diagonals(site.rows).unwrap_or(MAX_DIAGONALS) as u64;
        let rows = set.rows.len() as u64;
        let value = self.access.values.size(task.precision.matrix());
        // In a step each thread takes all of its rows' values of a diagonal.
        let warps = rows.div_ceil(u64::from(32 / mapping.stride * self.rows));
        let steps = WarpSteps { warps, total: warps * diagonals, longest: diagonals };
        let slots = diagonals * rows.next_multiple_of(self.slice() as u64);
        let slots_of_step = f64::from(32 / mapping.stride * self.rows);
        PartCost::new(&mapping, steps, StartUp::Diagonals)
            .matrix(slots * value as u64, slots_of_step * value as f64 / 32.0)
            .contiguous_input(&mapping, task, self.rows)
            .unroll(self.unroll)
    }
}
