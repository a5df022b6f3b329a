//! SELL-C-σ: slices of C rows, each stored by columns and padded to its longest row.

use alloc::vec;
use alloc::vec::Vec;

use super::array::{Array, ArrayData, Meaning, Stored};
use super::call::{DeviceCall, DeviceCode, PartSize, Shares};
use super::coding::{Counted, Decoder, pack_columns, pack_filled};
use super::cost::{CostModel, PartCost, StartUp};
use super::layout_module::{LayoutModule, field};
use super::mapping::Mapping;
use super::pack::{PackError, PartLaunch, PartSource, StoredPart, UnpackSource};
use crate::matrix::Scalar;
use crate::structure::MAX_PADDING;
use crate::syntax::grammar::{Alternative, IndexUnit, LayoutSet, Site, Slot};
use crate::syntax::{Access, IndexCoding, Lanes, Mask, Reader, Token, Word};
use crate::task::Task;

/// Rows of a slice.
const HEIGHTS: [u32; 4] = [32, 16, 8, 4];

/// SELL-C-σ (Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014); σ is the part's order.
///
/// Padding is never read: each row stops at its own length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SellLayout {
    /// Rows of a slice (C): 4, 8, 16 or 32.
    pub(crate) height: u32,
    /// Coding of column indices; relative codings start anew with each slice.
    pub(crate) index: IndexCoding,
    /// Coding and caching of the arrays.
    pub(crate) access: Access,
    /// Threads that share a row: 1, 2 or 4.
    pub(crate) lanes: Lanes,
    /// Entries in flight per thread.
    pub(crate) unroll: u32,
}

/// The heights whose padding is bearable.
fn heights<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Vec<Alternative<L>> {
    let bearable = |&&height: &&u32| {
        mask.allows(|stats| {
            MAX_PADDING
                .bears(stats.slice_slots(site.rows, site.order, height), stats.rows(site.rows).nnz)
        })
    };
    let fields = |&height: &u32| {
        let index = Slot::Index(site, IndexUnit::Rows(height));
        // Rows stop at their own length, so an empty slot needs no code of its own.
        let values = Slot::Values { padded: false };
        let lanes = Slot::Lanes { most: 4, block: false };
        let opens = vec![index, values, Slot::Cache, Slot::Vector, lanes, Slot::Unroll];
        Alternative::number(height, opens)
    };
    HEIGHTS.iter().filter(bearable).map(fields).collect()
}

impl SellLayout {
    /// Rows of a slice.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.height
    }

    fn mapping(&self, task: Task, block: u32) -> Mapping {
        Mapping::new(task, self.lanes, self.access, block)
    }
}

impl LayoutModule for SellLayout {
    const WORD: Word = Word::Sell;
    const FIELDS: &'static [&'static str] =
        &["height", "index", "values", "cache", "vector", "lanes", "unroll"];
    /// `sell H …`, where the padding of some height is bearable.
    fn open<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Option<Vec<Slot<L>>> {
        let any = !heights(site, mask).is_empty();
        any.then(|| vec![field::<Self, L>("height", site, heights)])
    }

    fn write(&self, out: &mut Vec<Token>) {
        out.extend([Token::Number(self.height), self.index.token()]);
        self.access.write(out);
        out.extend([self.lanes.token(), Token::Number(self.unroll)]);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let height = reader.number()?;
        let index = IndexCoding::read(reader)?;
        let access = Access::read(reader)?;
        Some(Self { height, index, access, lanes: Lanes::read(reader)?, unroll: reader.number()? })
    }

    fn access(&self) -> Access {
        self.access
    }

    fn storage(&self) -> Self {
        let access = self.access.storage();
        Self { access, lanes: Lanes::Threads(1), unroll: 1, ..*self }
    }

    fn store<T: Scalar>(&self, source: &PartSource<'_, T>) -> Result<Vec<Array>, PackError> {
        let rows = source.row_count();
        let height = self.height as usize;
        let slices = rows.div_ceil(height);
        let widths: Vec<usize> = (0..slices)
            .map(|slice| {
                let positions = slice * height..rows.min((slice + 1) * height);
                positions.map(|position| source.row_len(position)).max().unwrap_or(0)
            })
            .collect();
        let slots: u64 = widths.iter().map(|&width| (width * height) as u64).sum();
        MAX_PADDING.check("sell", slots, source.nnz())?;

        // NaN where there is no entry, as none is NaN.
        let (mut columns, mut values) = (vec![0; slots as usize], vec![T::NAN; slots as usize]);
        let (mut first, mut ranges) = (0, Vec::with_capacity(slices));
        for (slice, &width) in widths.iter().enumerate() {
            for row in 0..height.min(rows - slice * height) {
                let (row_columns, row_values) = source.row(slice * height + row);
                let slots = (first + row..).step_by(height);
                for (slot, (&column, &value)) in slots.zip(row_columns.iter().zip(row_values)) {
                    (columns[slot], values[slot]) = (column, value);
                }
            }
            ranges.push(first..first + width * height);
            first += width * height;
        }
        let starts = widths.iter().map(|&width| (width * height) as u64);
        let lens = (0..rows).map(|position| source.row_len(position));
        let longest = lens.clone().max().unwrap_or(0);
        let mut arrays = vec![
            Array::matrix("slice_offsets", ArrayData::offsets(slots, starts)),
            Array::matrix("row_lengths", ArrayData::smallest(longest, lens)),
        ];
        if self.index == IndexCoding::U32 {
            arrays.push(Array::entries("columns", ArrayData::U32(columns.into())));
        } else {
            let entries = ranges.iter().enumerate().flat_map(|(slice, range)| {
                let slots = columns[range.clone()].iter().zip(&values[range.clone()]);
                slots.map(move |(&column, &value)| {
                    let is_entry = !value.to_f64().is_nan();
                    (slice as u32, is_entry.then_some((column, value)))
                })
            });
            let entries = Counted { entries, count: slots as usize };
            arrays.extend(pack_columns(self.index, slices, entries)?);
        }
        arrays.extend(pack_filled(self.access.values, source.table, false, values)?);
        Ok(arrays)
    }

    fn launch(&self, part: &StoredPart, task: Task, block: u32) -> Result<PartLaunch, PackError> {
        // Whole groups of rows go to each warp, so the last slice may need idle threads.
        let positions = (part.rows.len() as u64).next_multiple_of(self.height.into());
        Ok(PartLaunch::new(self.mapping(task, block).blocks(positions, block)))
    }

    fn unpack<T: Scalar>(
        &self,
        part: &UnpackSource<'_>,
        emit: &mut impl FnMut(usize, u32, T),
    ) -> Option<()> {
        let decoder = Decoder::new(self.access.values, part.arrays);
        let (slices, lengths) = (part.array("slice_offsets")?, part.array("row_lengths")?);
        let height = self.height as usize;
        for position in 0..part.rows.len() {
            let slice = position / height;
            let first = slices.unsigned(slice)? as usize + position % height;
            for k in 0..lengths.unsigned(position)? as usize {
                let slot = first + k * height;
                emit(position, decoder.column(slice, slot)?, decoder.value(slot)?);
            }
        }
        Some(())
    }

    /// What the elements of one of its arrays are; `None` for a name that it does not have.
    fn meaning(&self, array: &str) -> Option<Meaning> {
        const STORED: Stored = Stored {
            unit: "slice",
            units: "slices",
            indexed: "slot",
            indices: "slots",
            values: "slots",
            empty: "",
        };
        match array {
            "slice_offsets" => Some(Meaning::new(
                "first slot of each slice, and the end; a slice is stored by columns",
                "slices + 1",
            )),
            "row_lengths" => Some(Meaning::new("entries of each row", "rows")),
            _ => STORED.meaning(array, self.index, self.access),
        }
    }

    fn call(&self, task: Task, block: u32) -> DeviceCall {
        let mapping = self.mapping(task, block);
        let code = DeviceCode::Statements(include_str!("../../cuda/sell.cuh"));
        // Rows of a slice that neighbouring threads take.
        let group = self.height.min(32 / (mapping.lanes * mapping.stride));
        DeviceCall::new(code, mapping, Shares::Row(mapping.lanes))
            .constant("HEIGHT", self.height)
            .factor("LANES", mapping.lanes)
            .factor("STRIDE", mapping.stride)
            .factor("GROUP", group)
            .constant("UNROLL", self.unroll)
            .block()
            .size(PartSize::Rows)
            .array("row_lengths")
            .array("slice_offsets")
            .dense()
    }

    fn cost(&self, site: Site, model: &CostModel<'_>) -> PartCost {
        let (stats, task) = (model.stats(), model.task());
        let mapping = self.mapping(task, site.block);
        let set = stats.rows(site.rows);
        let slots = stats.slice_slots(site.rows, site.order, self.height);
        let slices = set.rows.len().div_ceil(self.height as usize);
        let bases = if self.index.is_relative() { 4 * slices } else { 0 };
        let length = if set.longest < 256 { 1 } else { 2 };
        let entry = self.index.size() + self.access.values.size(task.precision.matrix());
        // Padding is skipped, but where it shares a sector with entries it is moved.
        let moved = (set.nnz as u64 + slots) / 2 * entry as u64;
        let steps = model.row_steps(site, mapping.lanes, mapping.stride);
        let rows_at_once = 32 / (mapping.lanes * mapping.stride);
        let runs = f64::from((rows_at_once / self.height).max(1) * mapping.lanes);
        let filled = f64::from(rows_at_once * mapping.lanes) * entry as f64 / 32.0;
        PartCost::new(&mapping, steps, StartUp::Slices)
            .matrix(moved + (slices * 4 + bases + set.rows.len() * length) as u64, filled + runs)
            .scattered_input(&mapping, task)
            .unroll(self.unroll)
    }
}
