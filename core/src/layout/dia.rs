//! DIA: whole diagonals, without column indices.

use alloc::vec;
use alloc::vec::Vec;

use super::call::{DeviceCall, PartSize, Shares};
use super::coding::{Decoder, pack_values};
use super::cost::{CostModel, PartCost, StartUp, WarpSteps};
use super::pack::LayoutArrays;
use super::registry::{LayoutModule, Mask, Program, Slot};
use super::{Array, ArrayData, Mapping, Meaning, PackError, PackedPart, PartSource, Stored};
use crate::matrix::Scalar;
use crate::structure::{MAX_DIAGONALS, MAX_PADDING, Order, diagonals};
use crate::syntax::grammar::Site;
use crate::syntax::{Access, IndexCoding, Lanes, Reader, Token, Word};
use crate::task::Task;

/// Diagonals; slots without an entry hold NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiaLayout {
    /// Coding and caching of the values.
    pub(crate) access: Access,
    /// Diagonals in flight per thread.
    pub(crate) unroll: u32,
}

impl DiaLayout {
    fn mapping(&self, task: Task, block: u32) -> Mapping {
        Mapping::new(task, Lanes::Threads(1), self.access.vector, block)
    }
}

impl LayoutModule for DiaLayout {
    const WORD: Word = Word::Dia;
    const FIELDS: &'static [&'static str] = &["values", "cache", "vector", "unroll"];
    const DEVICE_CODE: &'static [&'static str] = &[include_str!("../../cuda/dia.cuh")];

    /// `dia VALUES CACHE VECTOR UNROLL`, for rows in matrix order with few, well-filled diagonals.
    fn open(site: Site, mask: Mask<'_>) -> Option<Vec<Slot>> {
        let fits = site.order == Order::Keep
            && mask.allows(|stats| {
                let set = stats.rows(site.rows);
                stats.diagonals(site.rows).is_some_and(|diagonals| {
                    let slots = diagonals as u64 * set.rows.len() as u64;
                    MAX_PADDING.bears(slots, set.nnz)
                })
            });
        let values = Slot::Values { padded: true };
        fits.then(|| vec![values, Slot::Cache, Slot::Vector, Slot::Unroll])
    }

    fn write(&self, out: &mut Vec<Token>) {
        self.access.write(out);
        out.push(Token::Number(self.unroll));
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self { access: Access::read(reader)?, unroll: reader.number()? })
    }

    fn access(&self) -> Access {
        self.access
    }

    fn pack<T: Scalar>(&self, source: &PartSource<'_, T>) -> Result<LayoutArrays, PackError> {
        let rows = source.row_count();
        let by_position = (0..rows).map(|p| (source.rows.at(p), source.row(p).0));
        let diagonals = diagonals(by_position)
            .map_err(|found| PackError::Diagonals { found, most: MAX_DIAGONALS })?;
        MAX_PADDING.check("dia", (diagonals.len() * rows) as u64, source.nnz())?;
        let offset = |&diagonal: &i64| {
            i32::try_from(diagonal).map_err(|_| PackError::DiagonalTooFar { diagonal })
        };
        let offsets = diagonals.iter().map(offset).collect::<Result<_, _>>()?;
        let entries = diagonals.iter().flat_map(|&diagonal| {
            (0..rows).map(move |position| {
                let column = u32::try_from(source.rows.at(position) as i64 + diagonal).ok();
                let (columns, values) = source.row(position);
                let entry = column.and_then(|column| {
                    let k = columns.binary_search(&column).ok()?;
                    Some((column, values[k]))
                });
                (0, entry)
            })
        });
        let mut arrays = vec![Array::matrix("diagonals", ArrayData::I32(offsets))];
        arrays.extend(pack_values(self.access.values, source.table, true, entries)?);
        let block = source.program.block.threads();
        let blocks = self.mapping(source.program.task, block).blocks(rows as u64, block);
        Ok(LayoutArrays { arrays, blocks, shared: 0 })
    }

    fn unpack<T: Scalar>(
        &self,
        part: &PackedPart,
        _: &Program,
        emit: &mut impl FnMut(usize, u32, T),
    ) -> Option<()> {
        let decoder = Decoder::new(self.access.values, &part.arrays);
        let ArrayData::I32(diagonals) = part.array("diagonals")? else { return None };
        let rows = part.rows.len();
        for position in 0..rows {
            for (d, &diagonal) in diagonals.iter().enumerate() {
                let value: T = decoder.value(d * rows + position)?;
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
        const STORED: Stored = Stored {
            unit: "row",
            units: "rows",
            indexed: "entry",
            indices: "entries",
            values: "diagonals x rows",
            empty: ", or NaN",
        };
        match array {
            "diagonals" => Some(Meaning::new("column minus row of each diagonal", "diagonals")),
            _ => STORED.meaning(array, IndexCoding::U32, self.access),
        }
    }

    fn call(&self, task: Task, block: u32) -> DeviceCall {
        let mapping = self.mapping(task, block);
        DeviceCall::new("dia", mapping, Shares::Row(1))
            .constant("column_lanes", mapping.stride)
            .constant("unroll", self.unroll)
            .block()
            .size(PartSize::Rows)
            .array("diagonals")
            .size(PartSize::Diagonals)
            .dense()
    }

    fn cost(&self, site: Site, model: &CostModel<'_>) -> PartCost {
        let (stats, task) = (model.stats(), model.task());
        let mapping = self.mapping(task, site.block);
        let set = stats.rows(site.rows);
        let diagonals = stats.diagonals(site.rows).unwrap_or(MAX_DIAGONALS) as u64;
        let rows = set.rows.len() as u64;
        let warps = rows.div_ceil(u64::from(32 / mapping.stride));
        let value = self.access.values.size(task.precision.matrix());
        let steps = WarpSteps { warps, total: warps * diagonals, longest: diagonals };
        PartCost::new(&mapping, steps, StartUp::Diagonals)
            .matrix(
                diagonals * rows * value as u64,
                (32 / mapping.stride) as f64 * value as f64 / 32.0,
            )
            .contiguous_input(&mapping, task)
            .unroll(self.unroll)
    }
}
