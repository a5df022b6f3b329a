//! Propagation blocking: products by panels of columns, then sums by bins of rows.

use alloc::vec;
use alloc::vec::Vec;

use super::array::{Array, ArrayData, Meaning, Stored};
use super::call::{DeviceCall, DeviceCode, OwnSize, PartSize, Shares};
use super::coding::{Decoder, pack_filled};
use super::cost::{CostModel, PartCost, StartUp, WarpSteps};
use super::layout_module::{LayoutModule, field};
use super::mapping::Mapping;
use super::pack::{MOST_SHARED, PackError, PartLaunch, PartSource, StoredPart, UnpackSource};
use crate::matrix::Scalar;
use crate::structure::{FOUR, MAX_PADDING, Order};
use crate::syntax::grammar::{Alternative, LayoutSet, Site, Slot};
use crate::syntax::{Access, IndexCoding, Lanes, Mask, Reader, Token, Word};
use crate::target::Target;
use crate::task::{Operation, Task};

/// Shared memory of a block, in units of [`SHARED_UNIT`].
const SHARED: [u32; 3] = [7, 3, 1];
/// Bytes of a unit of shared memory.
const SHARED_UNIT: usize = 32 << 10;
/// Bytes of a multiprocessor's shared memory that a block cannot have as such a buffer: what the
/// system keeps, and what the kernel declares.
const SHARED_BESIDES: usize = 2 << 10;
/// Threads of a multiprocessor, at most.
const MOST_THREADS: u32 = 2048;
/// With so many of them there are always enough loads under way: with half as many it takes up to
/// 1.4 times as long (H200, 2026-11-27).
const ENOUGH_THREADS: f64 = 512.0;
/// Bytes that the products of a tile are padded to: a sector of memory.
const SECTOR: usize = 32;
/// Places of entries that a thread loads at once.
const PLACES_AT_ONCE: usize = 8;
/// Segments that the slots are cut into, about, where each is then large enough.
const SEGMENTS: u64 = 1024;
/// Numbers that `segments` has for each segment.
const SEGMENT_FIELDS: usize = 3;
/// Numbers that `bins` has for each bin.
const BIN_FIELDS: usize = 3;
/// Slots of a part, at most: device code numbers them by 32 bits, and steps past the last.
const MOST_SLOTS: u64 = u32::MAX as u64 - (1 << 16);
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

/// How large panels and bins are.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// Bytes of a sum.
    sum: usize,
    /// Columns of a panel.
    panel: usize,
    /// Slots that a tile is padded to a multiple of.
    group: usize,
    /// Bytes that the products of a bin, and the places of its entries, may take.
    room: usize,
}

impl Sizes {
    fn new(task: Task, shared: u32) -> Self {
        let (sum, room) = (task.precision.accumulator().size(), shared as usize * SHARED_UNIT);
        Self { sum, panel: room / sum, group: SECTOR / sum, room }
    }

    fn panels(self, columns: usize) -> usize {
        columns.div_ceil(self.panel)
    }

    /// Bytes of a bin with so many slots and entries.
    fn bin_bytes(self, slots: usize, entries: usize) -> usize {
        slots * self.sum + entries.next_multiple_of(PLACES_AT_ONCE) * size_of::<u16>()
    }

    /// Bytes of a bin whose only row has so many entries, at most.
    fn row_bytes(self, entries: usize) -> usize {
        self.bin_bytes(entries * self.group, entries)
    }

    /// An upper bound of the slots of rows with so many entries in all, of which none has more than
    /// `longest`.
    ///
    /// A tile has less than a group of empty slots, and a bin ends where the next row does not fit.
    /// So for `b` bins and `p` panels: `slots ≤ nnz + b p (group − 1)` and
    /// `(b − 1) (room − row) ≤ bytes`.
    fn most_slots(self, columns: usize, nnz: usize, longest: usize) -> u64 {
        let single = (nnz * self.group) as u64;
        let padding = (self.panels(columns) * (self.group - 1)) as f64;
        let filled = self.room.saturating_sub(self.row_bytes(longest)) as f64;
        let of_bin = padding * self.sum as f64 + (PLACES_AT_ONCE * size_of::<u16>()) as f64;
        let share = 1.0 - of_bin / filled;
        if share <= 0.0 || filled <= 0.0 {
            return single;
        }
        let bytes = (nnz * (self.sum + size_of::<u16>())) as f64;
        let bins = libm::ceil((1.0 + bytes / filled) / share);
        single.min(nnz as u64 + libm::ceil(bins * padding) as u64)
    }

    /// Bins and slots of such rows, as they are expected where columns are spread evenly.
    fn expected(self, columns: usize, nnz: usize) -> (f64, f64) {
        let places = (nnz * size_of::<u16>()) as f64;
        let bins_of =
            |slots: f64| libm::ceil((slots * self.sum as f64 + places) / self.room as f64).max(1.0);
        let slots_in = |bins: f64| {
            let tiles = bins * self.panels(columns).max(1) as f64;
            let filled = tiles * (1.0 - libm::exp(-(nnz as f64) / tiles));
            nnz as f64 + filled * (self.group - 1) as f64 / 2.0
        };
        // Padding takes room, and so more bins: with a few rounds hardly any more.
        let bins = (0..3).fold(bins_of(nnz as f64), |bins, _| bins_of(slots_in(bins)));
        (bins, slots_in(bins))
    }

    /// Segments of so many slots that are spread evenly over the panels.
    fn segments(self, columns: usize, slots: f64) -> f64 {
        let panels = self.panels(columns).max(1) as f64;
        panels * libm::ceil(slots / panels / self.segment(slots as u64) as f64)
    }

    /// Slots of a segment, about.
    fn segment(self, slots: u64) -> u64 {
        slots.div_ceil(SEGMENTS).max(self.panel as u64)
    }
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

/// The entries that a panel and a bin share.
struct Tile {
    panel: u32,
    /// The first of its groups, counted within the panel.
    in_panel: u32,
    /// The first of its groups, counted over all products.
    of_products: u32,
    entries: u32,
}

/// Rows whose products a block holds.
struct Bin {
    /// Position of the first.
    row: usize,
    /// The first of its groups of products.
    group: usize,
    /// The first of its places, in units of [`PLACES_AT_ONCE`].
    place: usize,
    /// The first of its tiles, which are in the order of their panels.
    tile: usize,
}

/// Rows cut into bins, and their entries into tiles.
struct Cut {
    /// The bins, and the end.
    bins: Vec<Bin>,
    tiles: Vec<Tile>,
    /// Groups of each panel.
    groups: Vec<usize>,
}

/// Entries of the bin that is being filled, by panels.
struct Filling {
    sizes: Sizes,
    entries_of: Vec<u32>,
    panels: Vec<u32>,
    slots: usize,
    entries: usize,
}

impl Filling {
    /// Adds a row if there is room for it, or nothing is there yet.
    fn takes(&mut self, columns: &[u32]) -> bool {
        let (was_slots, was_panels) = (self.slots, self.panels.len());
        for &column in columns {
            let panel = column as usize / self.sizes.panel;
            if self.entries_of[panel] == 0 {
                self.panels.push(panel as u32);
            }
            if (self.entries_of[panel] as usize).is_multiple_of(self.sizes.group) {
                self.slots += self.sizes.group;
            }
            self.entries_of[panel] += 1;
        }
        let entries = self.entries + columns.len();
        if self.entries == 0 || self.sizes.bin_bytes(self.slots, entries) <= self.sizes.room {
            self.entries = entries;
            return true;
        }
        for &column in columns {
            self.entries_of[column as usize / self.sizes.panel] -= 1;
        }
        self.slots = was_slots;
        self.panels.truncate(was_panels);
        false
    }

    /// Ends the bin, whose tiles it appends.
    fn end(&mut self, cut: &mut Cut, row: usize) {
        self.panels.sort_unstable();
        let Bin { group, place, .. } = *cut.bins.last().unwrap_or(&FIRST);
        let mut group = group;
        for panel in self.panels.drain(..) {
            let entries = core::mem::take(&mut self.entries_of[panel as usize]);
            let in_panel = &mut cut.groups[panel as usize];
            let (of_panel, of_products) = (*in_panel as u32, group as u32);
            cut.tiles.push(Tile { panel, in_panel: of_panel, of_products, entries });
            let groups = (entries as usize).div_ceil(self.sizes.group);
            *in_panel += groups;
            group += groups;
        }
        let place = place + self.entries.div_ceil(PLACES_AT_ONCE);
        cut.bins.push(Bin { row, group, place, tile: cut.tiles.len() });
        (self.slots, self.entries) = (0, 0);
    }
}

const FIRST: Bin = Bin { row: 0, group: 0, place: 0, tile: 0 };

impl Cut {
    fn new<T: Scalar>(sizes: Sizes, source: &PartSource<'_, T>) -> Result<Self, PackError> {
        let panels = sizes.panels(source.matrix.cols());
        let mut cut = Self { bins: vec![FIRST], tiles: Vec::new(), groups: vec![0; panels] };
        let entries_of = vec![0; panels];
        let mut filling = Filling { sizes, entries_of, panels: vec![], slots: 0, entries: 0 };
        let rows = source.row_count();
        for position in 0..rows {
            let (columns, _) = source.row(position);
            let bytes = sizes.row_bytes(columns.len());
            if bytes > sizes.room {
                return Err(PackError::SharedMemory { bytes, most: sizes.room });
            }
            if !filling.takes(columns) {
                filling.end(&mut cut, position);
                filling.takes(columns);
            }
        }
        if rows > 0 {
            filling.end(&mut cut, rows);
        }
        let slots = cut.slots(sizes);
        MAX_PADDING.check("binned", slots, source.nnz())?;
        if slots > MOST_SLOTS {
            return Err(PackError::Padding { layout: "binned", slots, nnz: source.nnz() });
        }
        Ok(cut)
    }

    fn slots(&self, sizes: Sizes) -> u64 {
        self.bins.last().map_or(0, |end| (end.group * sizes.group) as u64)
    }

    /// The first group of each panel.
    fn first_groups(&self) -> Vec<usize> {
        let starts = self.groups.iter().scan(0, |next, groups| {
            *next += groups;
            Some(*next - groups)
        });
        starts.collect()
    }

    /// `segments`: of each its panel, its first four and the end, in the order of the panels.
    fn segments(&self, sizes: Sizes) -> Vec<u32> {
        let fours = sizes.group / FOUR as usize;
        let of_segment = sizes.segment(self.slots(sizes)) as usize / sizes.group;
        let mut segments = Vec::new();
        for ((panel, first), &groups) in
            self.first_groups().into_iter().enumerate().zip(&self.groups)
        {
            let count = groups.div_ceil(of_segment.max(1));
            let at = |n: usize| ((first + groups * n / count) * fours) as u32;
            for n in 0..count {
                segments.extend([panel as u32, at(n), at(n + 1)]);
            }
        }
        segments
    }
}

impl BinnedLayout {
    /// Whether a block has so much shared memory on a GPU.
    pub(crate) fn has_room(&self, target: &Target) -> bool {
        self.shared as usize * SHARED_UNIT + SHARED_BESIDES <= target.shared_memory_bytes as usize
    }

    /// Bytes of x that are read: a panel's for each of its segments.
    pub(crate) fn input_bytes(&self, site: Site, model: &CostModel<'_>) -> u64 {
        let (stats, task) = (model.stats(), model.task());
        let sizes = Sizes::new(task, self.shared);
        let (_, slots) = sizes.expected(stats.cols(), stats.rows(site.rows).nnz);
        let columns = sizes.panel.min(stats.cols()) * task.precision.dense().size();
        (sizes.segments(stats.cols(), slots) * columns as f64) as u64
    }

    /// Threads that a multiprocessor has, by its shared memory.
    fn resident_threads(&self, model: &CostModel<'_>, block: u32) -> f64 {
        let of_block = self.shared as usize * SHARED_UNIT + SHARED_BESIDES / 2;
        let blocks = model.target.shared_memory_bytes as usize / of_block;
        f64::from(MOST_THREADS.min(blocks.max(1) as u32 * block))
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
    of: |part| part.elements / SEGMENT_FIELDS,
};

/// Its bins of rows.
const BIN_COUNT: OwnSize = OwnSize {
    name: "bin_count",
    meaning: "bins of rows of {}",
    array: Some("bins"),
    counts_items: false,
    of: |part| (part.elements / BIN_FIELDS).saturating_sub(1),
};

impl LayoutModule for BinnedLayout {
    const WORD: Word = Word::Binned;
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
        let bins = (part.array_len("bins") / BIN_FIELDS).saturating_sub(1);
        let blocks = part.array_len("segments") / SEGMENT_FIELDS + bins;
        let products = ("products", task.precision.accumulator());
        let workspace = Array::fix_up(products, bytes, COUNTERS);
        Ok(PartLaunch::new(blocks as u64).shared(sizes.room).workspace(workspace))
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
        for segment in 0..array("segments")?.len() / SEGMENT_FIELDS {
            let field = |field| number("segments", segment * SEGMENT_FIELDS + field);
            let (panel, first, end) = (field(0)?, field(1)?, field(2)?);
            let fours = sizes.group / FOUR as usize;
            for group in first / fours..end / fours {
                *stored.get_mut(number("targets", group)?)? = (panel, group * sizes.group);
            }
        }
        for bin in 0..(array("bins")?.len() / BIN_FIELDS).checked_sub(1)? {
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
            .scratch(sizes.room)
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
        // A step is four slots; of the sums, a row.
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
        let mut cost = cost.unroll(self.unroll).workspace((slots * sizes.sum as f64) as u64);
        // Loads are waited for where a multiprocessor has few threads.
        cost.transactions *= (ENOUGH_THREADS / self.resident_threads(model, site.block)).max(1.0);
        cost
    }
}

const _: () = assert!(SHARED[0] as usize * SHARED_UNIT <= MOST_SHARED, "a block has so much");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Dtype;

    const F32: Task = Task::new(Operation::SpMV, Dtype::F32);

    #[test]
    fn a_panel_of_x_and_the_products_of_a_bin_fill_the_shared_memory() {
        let sizes = Sizes::new(F32, 7);
        assert_eq!((sizes.panel, sizes.group, sizes.room), (57_344, 8, 229_376));
        // Column indices within a panel and places within a bin have 16 bits.
        assert!(sizes.panel <= 1 << 16);
        let sizes = Sizes::new(Task::new(Operation::SpMV, Dtype::F64), 7);
        assert_eq!((sizes.panel, sizes.group, sizes.room), (28_672, 4, 229_376));
    }

    #[test]
    fn the_bound_of_slots_holds_for_the_expected_ones_and_is_near() {
        for (columns, nnz, longest) in [(20_000_000, 100_000_000, 5), (100_000_000, 50_000_000, 7)]
        {
            let sizes = Sizes::new(F32, 7);
            let (most, expected) =
                (sizes.most_slots(columns, nnz, longest), sizes.expected(columns, nnz).1);
            assert!(expected <= most as f64 && most as f64 <= 1.5 * expected, "{most} {expected}");
        }
        // Rows that fill a bin: every entry may stand alone.
        assert_eq!(Sizes::new(F32, 1).most_slots(1_000_000, 5_000, 900), 40_000);
    }
}
