//! Propagation blocking: products by panels of columns, then sums by bins of rows.

mod cut;

use alloc::vec;
use alloc::vec::Vec;

use cut::{Cut, PLACES_AT_ONCE, SHARED_UNIT, Sizes};

use super::array::{Array, ArrayData, Meaning, Stored};
use super::call::{DeviceCall, DeviceCode, OwnSize, PartSize, Shares};
use super::coding::{Decoder, pack_filled};
use super::cost::{CostModel, PartCost, StartUp, WarpSteps};
use super::layout_module::{LayoutModule, field};
use super::mapping::Mapping;
use super::pack::{
    MOST_SHARED, MOST_SLOTS, PackError, PartLaunch, PartSource, StoredPart, UnpackSource,
};
use crate::matrix::Scalar;
use crate::structure::{FOUR, MAX_PADDING, Order};
use crate::syntax::grammar::{Alternative, LayoutSet, Site, Slot};
use crate::syntax::{Access, IndexCoding, Lanes, Mask, Reader, Token, Word};
use crate::task::{Operation, Task};

/// Shared memory of a block, in units of [`SHARED_UNIT`].
const SHARED: [u32; 3] = [7, 3, 1];
/// Bytes of a multiprocessor's shared memory that the system keeps for a block.
const SYSTEM_SHARED: usize = 1 << 10;
/// With so many threads on a multiprocessor there are always enough loads under way: with half as
/// many it takes up to 1.4 times as long (H200, 2026-11-27).
const ENOUGH_THREADS: f64 = 512.0;
/// Numbers that `segments` has for each segment.
const SEGMENT_FIELDS: usize = 3;
/// Numbers that `bins` has for each bin.
const BIN_FIELDS: usize = 3;
/// Bytes of the products, at most: a billion slots in single precision, half as many in double.
const MOST_PRODUCTS: u64 = 4 << 30;
/// Counters: turns that blocks have drawn, segments that are done, bins that are done.
const COUNTERS: usize = 3;

/// Propagation blocking (Beamer, Asanović and Patterson, IPDPS 2017), for an x that the caches do
/// not hold: every access to it, and to the sums, is to shared memory.
///
/// Columns are cut into panels, of which a block holds x, and rows into bins, of which a block
/// holds all products. The entries of a panel and a bin are a tile. A launch first multiplies,
/// panel after panel, and leaves the products of each bin side by side; then it adds those of each
/// row, in an order that does not depend on timing. So matrix, products and y are read and written
/// from one end to the other, and so is x, once for each segment of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BinnedLayout {
    /// Shared memory of a block, in units of 32 KiB: 1, 3 or 7.
    pub(crate) shared: u32,
    /// Coding and caching of the arrays.
    pub(crate) access: Access,
    /// Threads of a warp that share a row's products, 1–32.
    pub(crate) lanes: u32,
    /// Fours of entries in flight per thread: 1, 2 or 4.
    pub(crate) unroll: u32,
}

/// Units of shared memory in which every row has room.
fn shared<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Vec<Alternative<L>> {
    let task = mask.task();
    let fits = |&&shared: &&u32| {
        mask.allows(|stats| {
            let (set, sizes) = (stats.rows(site.rows), Sizes::new(task, shared));
            let slots = sizes.most_slots(stats.cols(), set.nnz, set.longest);
            sizes.row_bytes(set.longest) <= sizes.room
                && MAX_PADDING.bears(slots, set.nnz)
                && slots <= MOST_SLOTS
                && slots * sizes.sum as u64 <= MOST_PRODUCTS
        })
    };
    let fields = |&units: &u32| {
        let opens = vec![
            Slot::Values { padded: false },
            Slot::Cache,
            Slot::Vector,
            Slot::Lanes { most: 32, block: false },
            field::<BinnedLayout, L>("unroll", site, unrolls),
        ];
        Alternative::number(units, opens)
    };
    SHARED.iter().filter(fits).map(fields).collect()
}

fn unrolls<L: LayoutSet>(_: Site, _: Mask<'_, L>) -> Vec<Alternative<L>> {
    [1, 2, 4].map(|n| Alternative::leaf(Token::Number(n))).into()
}

impl BinnedLayout {
    /// Threads that a multiprocessor's shared memory has room for.
    fn resident_threads(&self, model: &CostModel<'_>, block: u32) -> f64 {
        let of_block = self.shared as usize * SHARED_UNIT + SYSTEM_SHARED;
        let blocks = model.target.shared_memory_bytes as usize / of_block;
        f64::from(blocks.max(1) as u32 * block)
    }

    fn mapping(&self, task: Task, block: u32) -> Mapping {
        Mapping::new(task, Lanes::Threads(self.lanes), self.access, block)
    }
}

/// Its segments of panels.
const SEGMENT_COUNT: OwnSize = OwnSize {
    name: "segment_count",
    meaning: "segments of column panels of {}",
    array: Some("segments"),
    counts_items: false,
    of: |part| segments_in(part.elements),
};

/// Its bins of rows.
const BIN_COUNT: OwnSize = OwnSize {
    name: "bin_count",
    meaning: "bins of rows of {}",
    array: Some("bins"),
    counts_items: false,
    of: |part| bins_in(part.elements).unwrap_or(0),
};

/// Segments that `segments` has with so many elements.
fn segments_in(elements: usize) -> usize {
    elements / SEGMENT_FIELDS
}

/// Bins that `bins` has with so many elements; `None` where it lacks even the end.
fn bins_in(elements: usize) -> Option<usize> {
    (elements / BIN_FIELDS).checked_sub(1)
}

impl LayoutModule for BinnedLayout {
    const WORD: Word = Word::Binned;
    const STREAMS_INPUT: bool = true;
    const FIELDS: &'static [&'static str] =
        &["shared", "values", "cache", "vector", "lanes", "unroll"];

    /// `binned UNITS …`, for SpMV, with rows in matrix order.
    fn open<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Option<Vec<Slot<L>>> {
        let fits = mask.task().operation == Operation::SpMV
            && site.order == Order::Keep
            && !shared(site, mask).is_empty();
        fits.then(|| vec![field::<Self, L>("shared", site, shared)])
    }

    fn write(&self, out: &mut Vec<Token>) {
        out.push(Token::Number(self.shared));
        self.access.write(out);
        out.extend([Token::Number(self.lanes), Token::Number(self.unroll)]);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let shared = reader.number()?;
        let access = Access::read(reader)?;
        Some(Self { shared, access, lanes: reader.number()?, unroll: reader.number()? })
    }

    fn access(&self) -> Access {
        self.access
    }

    fn storage(&self) -> Self {
        Self { access: self.access.storage(), lanes: 1, unroll: 1, ..*self }
    }

    fn store<T: Scalar>(&self, source: &PartSource<'_, T>) -> Result<Vec<Array>, PackError> {
        let sizes = Sizes::new(source.task, self.shared);
        let cut = Cut::new(sizes, source)?;
        let first_groups = cut.first_groups();
        let slots = cut.slots(sizes) as usize;
        let bin_count = cut.bins.len() - 1;
        let places_count = cut.bins.last().map_or(0, |end| end.place * PLACES_AT_ONCE);

        let mut targets = vec![0; slots / sizes.group];
        let (mut columns, mut values) = (vec![0; slots], vec![T::NAN; slots]);
        let mut row_places = Vec::with_capacity(source.row_count() + bin_count);
        let mut places = vec![0; places_count];
        // Of each panel, the open bin's next slot in the storage and among its products.
        let mut next = vec![(0, 0); cut.groups.len()];
        for bin in cut.bins.windows(2) {
            let [bin, end] = bin else { continue };
            for tile in &cut.tiles[bin.tile..end.tile] {
                let first = first_groups[tile.panel as usize] + tile.in_panel as usize;
                let groups = (tile.entries as usize).div_ceil(sizes.group);
                for group in 0..groups {
                    targets[first + group] = tile.of_products + group as u32;
                }
                let in_bin = tile.of_products as usize - bin.group;
                next[tile.panel as usize] = (first * sizes.group, in_bin * sizes.group);
            }
            let first_place = bin.place * PLACES_AT_ONCE;
            let mut entry = 0;
            for position in bin.row..end.row {
                row_places.push(entry as u16);
                let (row_columns, row_values) = source.row(position);
                for (&column, &value) in row_columns.iter().zip(row_values) {
                    let panel = column as usize / sizes.panel;
                    let (slot, place) = &mut next[panel];
                    columns[*slot] = (column as usize - panel * sizes.panel) as u16;
                    values[*slot] = value;
                    places[first_place + entry] = *place as u16;
                    *slot += 1;
                    *place += 1;
                    entry += 1;
                }
            }
            row_places.push(entry as u16);
        }
        let bins = cut.bins.iter().flat_map(|bin| [bin.row, bin.group, bin.place]);
        let bins: Vec<u32> = bins.map(|n| n as u32).collect();
        let mut arrays = vec![
            Array::matrix("segments", ArrayData::U32(cut.segments(sizes).into())),
            Array::matrix("targets", ArrayData::U32(targets.into())),
            Array::matrix("bins", ArrayData::U32(bins.into())),
            Array::matrix("row_places", ArrayData::U16(row_places.into())),
            Array::matrix("places", ArrayData::U16(places.into())),
            Array::entries("columns", ArrayData::U16(columns.into())),
        ];
        arrays.extend(pack_filled(self.access.values, source.table, false, values)?);
        Ok(arrays)
    }

    fn launch(&self, part: &StoredPart, task: Task, _: u32) -> Result<PartLaunch, PackError> {
        let sizes = Sizes::new(task, self.shared);
        let bytes = (part.array_len("columns") * sizes.sum) as u64;
        if bytes > MOST_PRODUCTS {
            return Err(PackError::Workspace { bytes, most: MOST_PRODUCTS });
        }
        let bins = bins_in(part.array_len("bins")).unwrap_or(0);
        let blocks = segments_in(part.array_len("segments")) + bins;
        let products = ("products", task.precision.accumulator());
        let workspace = Array::fix_up(products, bytes, COUNTERS);
        Ok(PartLaunch::new(blocks as u64).workspace(workspace))
    }

    fn unpack<T: Scalar>(
        &self,
        part: &UnpackSource<'_>,
        emit: &mut impl FnMut(usize, u32, T),
    ) -> Option<()> {
        let sizes = Sizes::new(part.task, self.shared);
        let decoder = Decoder::new(self.access.values, part.arrays);
        let array = |name| part.array(name);
        let number = |name, at| Some(array(name)?.unsigned(at)? as usize);
        let groups = array("targets")?.len();
        // Of each group of products: the panel, and where its slots are stored.
        let mut stored = vec![(0, 0); groups];
        for segment in 0..segments_in(array("segments")?.len()) {
            let field = |field| number("segments", segment * SEGMENT_FIELDS + field);
            let (panel, first, end) = (field(0)?, field(1)?, field(2)?);
            let fours = sizes.group / FOUR as usize;
            for group in first / fours..end / fours {
                *stored.get_mut(number("targets", group)?)? = (panel, group * sizes.group);
            }
        }
        for bin in 0..bins_in(array("bins")?.len())? {
            let field = |field| number("bins", bin * BIN_FIELDS + field);
            let (row, group, place) = (field(0)?, field(1)?, field(2)? * PLACES_AT_ONCE);
            for position in row..field(BIN_FIELDS)? {
                let begin = number("row_places", position + bin)?;
                for entry in begin..number("row_places", position + bin + 1)? {
                    let product = group * sizes.group + number("places", place + entry)?;
                    let (panel, first) = *stored.get(product / sizes.group)?;
                    let slot = first + product % sizes.group;
                    let column = panel * sizes.panel + decoder.column(0, slot)? as usize;
                    emit(position, u32::try_from(column).ok()?, decoder.value(slot)?);
                }
            }
        }
        Some(())
    }

    /// What the elements of one of its arrays are; `None` for a name that it does not have.
    fn meaning(&self, array: &str) -> Option<Meaning> {
        const STORED: Stored = Stored {
            unit: "panel",
            units: "panels",
            indexed: "slot, from the panel's first on",
            indices: "slots",
            values: "slots",
            empty: "",
        };
        match array {
            "segments" => Some(Meaning::new(
                "of each segment: its column panel, its first slot / 4, and the end",
                "segments x 3",
            )),
            "targets" => Some(Meaning::new(
                "where the products of 32 bytes of slots go, in such units",
                "slots x bytes of a sum / 32",
            )),
            "bins" => Some(Meaning::new(
                "of each bin: its first row, its first 32 bytes of products, its first place / 8; \
                 and the end",
                "(bins + 1) x 3",
            )),
            "row_places" => Some(Meaning::new(
                "of each bin: the first place of each row, and the end",
                "rows + bins",
            )),
            "places" => Some(Meaning::new(
                "of each entry: the slot of its product within the bin",
                "entries of each bin, padded to a multiple of 8",
            )),
            "products" => Some(Meaning::new("products, by bins", "slots")),
            "tickets" => {
                Some(Meaning::new("blocks that have begun, segments and bins that are done", "3"))
            }
            _ => STORED.meaning(array, IndexCoding::U16, self.access),
        }
    }

    fn call(&self, task: Task, block: u32) -> DeviceCall {
        let sizes = Sizes::new(task, self.shared);
        let code = DeviceCode::Statements(include_str!("../../cuda/binned.cuh"));
        DeviceCall::new(code, self.mapping(task, block), Shares::Bins(self.lanes))
            .factor("LANES", self.lanes)
            .factor("GROUP", (sizes.group / FOUR as usize) as u32)
            .constant("PANEL", sizes.panel as u32)
            .constant("UNROLL", self.unroll)
            .values_at_once(FOUR)
            .columns_at_once(FOUR)
            .size(PartSize::Columns)
            .size(PartSize::Own(&SEGMENT_COUNT))
            .size(PartSize::Own(&BIN_COUNT))
            .array("segments")
            .array("targets")
            .array("bins")
            .array("row_places")
            .array("places")
            .array("products")
            .array("tickets")
            .dense()
            .shared(sizes.room)
    }

    fn cost(&self, site: Site, model: &CostModel<'_>) -> PartCost {
        let (stats, task) = (model.stats(), model.task());
        let mapping = self.mapping(task, site.block);
        let (set, sizes) = (stats.rows(site.rows), Sizes::new(task, self.shared));
        let (bins, slots) = sizes.expected(stats.cols(), set.nnz);
        let value = self.access.values.size(task.precision.matrix());
        let segments = sizes.segments(stats.cols(), slots);
        // Slots and their targets; places, and where rows have theirs.
        let stored = slots * ((2 + value) as f64 + 4.0 / sizes.group as f64);
        let found = (2 * set.nnz + 2 * set.rows.len()) as f64;
        // A step is four slots of each lane, and of the sums an entry of each lane; their critical
        // path is counted in rows of a group of lanes.
        let rows = set.rows.len() as f64 / bins * f64::from(self.lanes) / f64::from(site.block);
        let of_segment = slots / segments.max(1.0) / f64::from(FOUR * site.block);
        let warps = (segments + bins) * f64::from(site.block / 32);
        let steps = WarpSteps {
            warps: warps as u64,
            total: (slots / f64::from(FOUR * 32)) as u64 + (set.nnz as u64) / 32,
            longest: (of_segment + rows) as u64,
        };
        let cost = PartCost::new(&mapping, steps, StartUp::StagedTiles)
            .matrix((stored + found) as u64, f64::from(FOUR) * (2 + value) as f64);
        // A panel of x for each of its segments.
        let panel = sizes.panel.min(stats.cols()) * task.precision.dense().size();
        let cost = cost.with_input_traffic((segments * panel as f64) as u64).shared(sizes.room);
        let mut cost = cost.unroll(self.unroll).workspace((slots * sizes.sum as f64) as u64);
        // Loads are waited for where a multiprocessor has few threads.
        cost.transactions *= (ENOUGH_THREADS / self.resident_threads(model, site.block)).max(1.0);
        cost
    }
}

const _: () = assert!(SHARED[0] as usize * SHARED_UNIT <= MOST_SHARED, "a block has so much");
