//! ELLPACK: all rows have as many slots, and so need no offsets.

use alloc::vec;
use alloc::vec::Vec;

use super::array::{Array, ArrayData, Meaning, Stored};
use super::call::{DeviceCall, DeviceCode, OwnSize, PartSize, Shares};
use super::coding::{Counted, Decoder, pack_entries};
use super::cost::{CostModel, PartCost, StartUp, WarpSteps};
use super::layout_module::{LayoutModule, field};
use super::mapping::Mapping;
use super::pack::{
    MOST_SLOTS, PackError, PartLaunch, PartSource, StoredPart, UnpackSource, check_slots,
};
use crate::matrix::Scalar;
use crate::structure::{FOUR, MAX_PADDING, Order};
use crate::syntax::grammar::{Alternative, IndexUnit, LayoutSet, Site, Slot};
use crate::syntax::{Access, IndexCoding, Lanes, Mask, Reader, Token, Word};
use crate::task::Task;

/// Threads that share a row, at most.
const MOST_LANES: u32 = 16;

/// ELLPACK (Kincaid, Oppe and Young, ITPACKV 2D User's Guide, CNA-232, 1989), stored by rows.
///
/// Every row has the slots of the longest, rounded up to a multiple of four, so that a thread reads
/// four entries by one load, and that no load waits for one that says where a row begins. For rows
/// of about one length, and for the short ones of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EllLayout {
    /// Coding of column indices; relative codings start anew with each row.
    pub(crate) index: IndexCoding,
    /// Coding and caching of the arrays.
    pub(crate) access: Access,
    /// Threads of a warp that share a row's entries, 1–16.
    pub(crate) lanes: u32,
    /// Fours of entries in flight per thread: 1, 2 or 4.
    pub(crate) unroll: u32,
}

/// Slots of each row, where the longest has so many entries.
fn slots_per_row(longest: usize) -> u64 {
    (longest as u64).next_multiple_of(FOUR.into())
}

fn unrolls<L: LayoutSet>(_: Site, _: Mask<'_, L>) -> Vec<Alternative<L>> {
    [1, 2, 4].map(|n| Alternative::leaf(Token::Number(n))).into()
}

impl EllLayout {
    fn mapping(&self, task: Task, block: u32) -> Mapping {
        Mapping::new(task, Lanes::Threads(self.lanes), self.access, block)
    }
}

/// Slots of each of its rows, counted by fours.
const FOURS_PER_ROW: OwnSize = OwnSize {
    name: "fours_per_row",
    meaning: "slots / 4 of each row of {}",
    array: Some("columns"),
    counts_items: false,
    of: |part| part.elements / FOUR as usize / part.rows.max(1),
};

impl LayoutModule for EllLayout {
    const WORD: Word = Word::Ell;
    const FIELDS: &'static [&'static str] =
        &["index", "values", "cache", "vector", "lanes", "unroll"];
    /// `ell …`, for rows in matrix order, where padding them to the longest is bearable.
    fn open<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Option<Vec<Slot<L>>> {
        let fits = site.order == Order::Keep
            && mask.allows(|stats| {
                let set = stats.rows(site.rows);
                let slots = set.rows.len() as u64 * slots_per_row(set.longest);
                MAX_PADDING.bears(slots, set.nnz) && slots <= MOST_SLOTS
            });
        fits.then(|| {
            vec![
                Slot::Index(site, IndexUnit::Rows(1)),
                // Rows stop at their own length, so an empty slot needs no code of its own.
                Slot::Values { padded: false },
                Slot::Cache,
                Slot::Vector,
                Slot::Lanes { most: MOST_LANES, block: false },
                field::<Self, L>("unroll", site, unrolls),
            ]
        })
    }

    fn write(&self, out: &mut Vec<Token>) {
        out.push(self.index.token());
        self.access.write(out);
        out.extend([Token::Number(self.lanes), Token::Number(self.unroll)]);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let index = IndexCoding::read(reader)?;
        let access = Access::read(reader)?;
        Some(Self { index, access, lanes: reader.number()?, unroll: reader.number()? })
    }

    fn access(&self) -> Access {
        self.access
    }

    fn storage(&self) -> Self {
        Self { access: self.access.storage(), lanes: 1, unroll: 1, ..*self }
    }

    fn store<T: Scalar>(&self, source: &PartSource<'_, T>) -> Result<Vec<Array>, PackError> {
        let rows = source.row_count();
        let lens = (0..rows).map(|position| source.row_len(position));
        let longest = lens.clone().max().unwrap_or(0);
        let width = slots_per_row(longest);
        let slots = rows as u64 * width;
        MAX_PADDING.check("ell", slots, source.nnz())?;
        check_slots("ell", slots)?;

        let entries = (0..rows).flat_map(move |position| {
            let (columns, values) = source.row(position);
            let entries = columns.iter().zip(values);
            let stored =
                entries.map(move |(&column, &value)| (position as u32, Some((column, value))));
            let empty = width as usize - columns.len();
            stored.chain(core::iter::repeat_n((position as u32, None), empty))
        });
        let entries = Counted { entries, count: slots as usize };
        let mut arrays = vec![Array::matrix("row_lengths", ArrayData::smallest(longest, lens))];
        let (index, values) = ((self.index, rows), (self.access.values, source.table));
        arrays.extend(pack_entries(index, values, false, entries.clone(), entries)?);
        Ok(arrays)
    }

    fn launch(&self, part: &StoredPart, task: Task, block: u32) -> Result<PartLaunch, PackError> {
        Ok(PartLaunch::new(self.mapping(task, block).blocks(part.rows.len() as u64, block)))
    }

    fn unpack<T: Scalar>(
        &self,
        part: &UnpackSource<'_>,
        emit: &mut impl FnMut(usize, u32, T),
    ) -> Option<()> {
        let decoder = Decoder::new(self.access.values, part.arrays);
        let lengths = part.array("row_lengths")?;
        let rows = part.rows.len();
        let width = part.array("columns")?.len() / rows.max(1);
        for position in 0..rows {
            let first = position * width;
            for slot in first..first + lengths.unsigned(position)? as usize {
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
            indexed: "slot",
            indices: "rows x slots of a row",
            values: "rows x slots of a row",
            empty: "",
        };
        match array {
            "row_lengths" => {
                Some(Meaning::new("entries of each row, in the first of its slots", "rows"))
            }
            _ => STORED.meaning(array, self.index, self.access),
        }
    }

    fn call(&self, task: Task, block: u32) -> DeviceCall {
        let mapping = self.mapping(task, block);
        let code = DeviceCode::Statements(include_str!("../../cuda/ell.cuh"));
        DeviceCall::new(code, mapping, Shares::Row(self.lanes))
            .factor("LANES", self.lanes)
            .factor("STRIDE", mapping.stride)
            .constant("UNROLL", self.unroll)
            .values_at_once(FOUR)
            .columns_at_once(FOUR)
            .block()
            .size(PartSize::Rows)
            .size(PartSize::Own(&FOURS_PER_ROW))
            .array("row_lengths")
            .dense()
    }

    fn cost(&self, site: Site, model: &CostModel<'_>) -> PartCost {
        let (stats, task) = (model.stats(), model.task());
        let mapping = self.mapping(task, site.block);
        let set = stats.rows(site.rows);
        let rows = set.rows.len() as u64;
        let width = slots_per_row(set.longest);
        let entry = (self.index.size() + self.access.values.size(task.precision.matrix())) as u64;
        let bases = if self.index.is_relative() { 4 } else { 0 };
        let length = if set.longest < 256 { 1 } else { 2 };
        let bytes = rows * (width * entry + bases + length);
        let at_once = u64::from((32 / (mapping.lanes * mapping.stride)).max(1));
        // A step is four slots of each lane. The reduction and the store cost about two more.
        let longest = (width / u64::from(FOUR)).div_ceil(u64::from(mapping.lanes));
        let warps = rows.div_ceil(at_once);
        let steps = WarpSteps { warps, total: warps * (longest + 2), longest };
        let slots_of_step = (at_once * u64::from(mapping.lanes * FOUR)) as f64;
        PartCost::new(&mapping, steps, StartUp::PaddedRows)
            .matrix(bytes, slots_of_step * entry as f64 / 32.0)
            .scattered_inputs(&mapping, task, FOUR)
            .unroll(self.unroll)
    }
}
