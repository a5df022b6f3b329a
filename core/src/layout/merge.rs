//! Merge-path tiles: CSR cut into tiles of equally many entries plus row ends.

use alloc::vec;
use alloc::vec::Vec;

use super::array::{Array, ArrayData, Meaning, Stored};
use super::call::{DeviceCall, DeviceCode, DeviceStruct, Member, OwnSize, PartSize, Shares};
use super::coding::{Counted, Decoder, pack_entries, shared_entries};
use super::cost::{CostModel, PartCost, StartUp, WarpSteps};
use super::layout_module::{LayoutModule, field};
use super::mapping::Mapping;
use super::pack::{
    PackError, PartLaunch, PartSource, SHARED_LIMIT, StoredPart, UnpackSource, WORKSPACE_LIMIT,
};
use crate::matrix::Scalar;
use crate::structure::{Order, row_ends, tile_rows};
use crate::syntax::grammar::{Alternative, IndexUnit, LayoutSet, Site, Slot};
use crate::syntax::{Access, IndexCoding, Lanes, Mask, Reader, Token, Word};
use crate::task::{Operation, Task};

/// Items per thread (SpMV).
const THREAD_ITEMS: [u32; 4] = [8, 4, 16, 2];
/// Items per group of threads side by side over columns (SpMM).
const GROUP_ITEMS: [u32; 5] = [64, 32, 128, 256, 16];

/// Tiles of the merge path over row ends and entries (Merrill and Garland, PPoPP 2016).
///
/// Each block has a tile. Work is even whatever the row lengths are. Rows cut by tile borders are
/// completed within the same launch, in a fixed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MergeLayout {
    /// Items per thread (SpMV) or per group of threads side by side over columns (SpMM).
    pub(crate) items: u32,
    /// Coding of column indices; relative codings start anew with each tile (SpMV) or group (SpMM).
    pub(crate) index: IndexCoding,
    /// Coding and caching of the arrays.
    pub(crate) access: Access,
    /// How a tile's products become row sums.
    pub(crate) reduction: Reduction,
}

/// How a merge tile adds up its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reduction {
    /// This many threads walk each row, 1–32; SpMV only.
    Rows(u32),
    /// Threads or groups walk equally many items, joined by a segmented scan.
    Scan,
}

/// Items of the largest tile, which device code adds to numbers of items.
const LARGEST_TILE: u64 = 1 << 17;

/// Its entries and rows together.
const ITEM_COUNT: OwnSize = OwnSize {
    name: "item_count",
    meaning: "rows and entries of {} together",
    array: None,
    counts_items: true,
    of: |part| part.rows + part.nnz,
};
/// Its merge tiles.
const TILE_COUNT: OwnSize = OwnSize {
    name: "tile_count",
    meaning: "tiles of {}",
    array: Some("carry"),
    counts_items: false,
    // Two sums for each column of the dense operands.
    of: |part| part.elements / (2 * part.columns),
};

/// Where tiles begin, for threads that walk rows.
const TILES: DeviceStruct = DeviceStruct {
    name: "MergeTiles",
    counts: Some(PartSize::Entries),
    members: &[
        Member::Size(PartSize::Rows),
        Member::Size(PartSize::Entries),
        Member::Array("tile_rows"),
        Member::Array("row_offsets"),
    ],
};
/// The bits of row ends, for threads and groups that walk items.
const ITEMS: DeviceStruct = DeviceStruct {
    name: "MergeItems",
    counts: Some(PartSize::Own(&ITEM_COUNT)),
    members: &[
        Member::Size(PartSize::Own(&ITEM_COUNT)),
        Member::Array("row_ends"),
        Member::Array("warp_rows"),
        Member::Array("borders"),
    ],
};
/// The partial sums of rows that several tiles share.
const CARRY: DeviceStruct = DeviceStruct {
    name: "Carry",
    counts: None,
    members: &[
        Member::Size(PartSize::Own(&TILE_COUNT)),
        Member::Array("carry"),
        Member::Array("tickets"),
    ],
};

/// Items whose tiles fit in shared memory, and their partial sums in a workspace.
fn items<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Vec<Alternative<L>> {
    let task = mask.task();
    let fields = |&items: &u32| {
        let index = Slot::Index(site, IndexUnit::Tile(unit_items(task, items, site.block)));
        let values = Slot::Values { padded: false };
        let opens = vec![
            index,
            values,
            Slot::Cache,
            Slot::Vector,
            field::<MergeLayout, L>("reduction", site, reductions),
        ];
        Alternative::number(items, opens)
    };
    let fits = |&&items: &&u32| {
        mask.allows(|stats| {
            let set = stats.rows(site.rows);
            let merged = (set.rows.len() + set.nnz) as u64;
            let tiles = merged.div_ceil(u64::from(least_tile(task, items, site.block)));
            shared_bytes(task, items, site.block, 1, 1) <= SHARED_LIMIT
                && carry_bytes(task, tiles) <= WORKSPACE_LIMIT
        })
    };
    let sizes: &[u32] = match task.operation {
        Operation::SpMV => &THREAD_ITEMS,
        Operation::SpMM { .. } => &GROUP_ITEMS,
    };
    sizes.iter().filter(fits).map(fields).collect()
}

/// How tiles may add up their rows: products are staged in shared memory for one column only.
fn reductions<L: LayoutSet>(_: Site, mask: Mask<'_, L>) -> Vec<Alternative<L>> {
    let lanes: &[u32] = match mask.task().operation {
        Operation::SpMV => &[1, 2, 4, 8, 16, 32],
        Operation::SpMM { .. } => &[],
    };
    let lanes = lanes.iter().map(|&n| Token::Number(n));
    core::iter::once(Token::Word(Word::Scan)).chain(lanes).map(Alternative::leaf).collect()
}

/// Items whose columns share a base.
fn unit_items(task: Task, items: u32, block: u32) -> u32 {
    match task.operation {
        Operation::SpMV => items * block,
        Operation::SpMM { .. } => items,
    }
}

/// Items of a tile, when as many threads as possible hold columns.
fn least_tile(task: Task, items: u32, block: u32) -> u32 {
    items * block / task.operation.columns().next_power_of_two().min(32)
}

/// Bytes of a tile's products (SpMV), one slot in 33 empty, and of what its warps leave for each
/// other.
fn shared_bytes(task: Task, items: u32, block: u32, stride: u32, vector: u32) -> usize {
    let value = task.precision.accumulator().size() as u32;
    let products = match task.operation {
        Operation::SpMV => items * block / 32 * 33 * value,
        Operation::SpMM { .. } => 0,
    };
    (products + block / 32 * (stride * vector * value + 4)) as usize
}

/// Bytes of the sums that tiles leave for the rows they share.
fn carry_bytes(task: Task, tiles: u64) -> u64 {
    tiles * 2 * u64::from(task.operation.columns()) * task.precision.accumulator().size() as u64
}

/// Entries before a tile or unit that begins at a row.
fn first_entry(tile: usize, items: u32, row: u32) -> u64 {
    tile as u64 * u64::from(items) - u64::from(row)
}

/// A bit for each merge item, the first one lowest: 1 for a row's end. Whole tiles.
fn row_end_bits(ends: &[u64], tiles: usize, items: u32) -> Vec<u32> {
    let mut words = vec![0u32; tiles * (items / 32) as usize];
    for (row, end) in ends.iter().enumerate() {
        let item = end + row as u64;
        if let Some(word) = words.get_mut((item / 32) as usize) {
            *word |= 1 << (item % 32);
        }
    }
    words
}

/// The inverse of [`row_end_bits`].
fn read_row_ends(words: &ArrayData, rows: usize) -> Option<Vec<u64>> {
    let ArrayData::U32(words) = words else { return None };
    let items = words.iter().enumerate().flat_map(|(index, &word)| {
        let set = (0..32).filter(move |bit| word >> bit & 1 == 1);
        set.map(move |bit| index as u64 * 32 + bit)
    });
    let ends: Vec<u64> =
        items.enumerate().map(|(row, item)| item.checked_sub(row as u64)).collect::<Option<_>>()?;
    (ends.len() == rows).then_some(ends)
}

/// For the beginning of each tile, and the end of the last: the first and the last tile of the row
/// that lies across it, or the tile itself, twice.
fn borders(ends: &[u64], tile_rows: &[u32], items: u32) -> Vec<u32> {
    let items = u64::from(items);
    let border = |(tile, &row): (usize, &u32)| {
        let row = row as usize;
        let begin = row.checked_sub(1).map_or(0, |before| ends[before] + row as u64);
        match ends.get(row) {
            Some(end) if begin < tile as u64 * items => {
                [(begin / items) as u32, ((end + row as u64) / items) as u32]
            }
            _ => [tile as u32; 2],
        }
    };
    tile_rows.iter().enumerate().flat_map(border).collect()
}

impl MergeLayout {
    /// A layout with 32-bit column indices.
    #[must_use]
    pub fn new(items: u32, access: Access, reduction: Reduction) -> Self {
        Self { items, index: IndexCoding::U32, access, reduction }
    }

    /// Items per thread (SpMV) or per group of threads side by side over columns (SpMM).
    #[must_use]
    pub fn items(&self) -> u32 {
        self.items
    }

    fn mapping(&self, task: Task, block: u32) -> Mapping {
        Mapping::new(task, Lanes::Threads(1), self.access, block)
    }

    /// Merge items of a tile.
    fn tile_items(&self, mapping: &Mapping, block: u32) -> u32 {
        self.items * block / mapping.stride
    }
}

impl LayoutModule for MergeLayout {
    const WORD: Word = Word::Merge;
    const FIELDS: &'static [&'static str] =
        &["items", "index", "values", "cache", "vector", "reduction"];
    const STORES_BY_BLOCK: bool = true;

    /// `merge I …`, for any rows in matrix order: sorting would not even them out further.
    fn open<L: LayoutSet>(site: Site, _: Mask<'_, L>) -> Option<Vec<Slot<L>>> {
        (site.order == Order::Keep).then(|| vec![field::<Self, L>("items", site, items)])
    }

    fn write(&self, out: &mut Vec<Token>) {
        out.extend([Token::Number(self.items), self.index.token()]);
        self.access.write(out);
        out.push(match self.reduction {
            Reduction::Rows(lanes) => Token::Number(lanes),
            Reduction::Scan => Token::Word(Word::Scan),
        });
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let items = reader.number()?;
        let index = IndexCoding::read(reader)?;
        let access = Access::read(reader)?;
        let reduction = match reader.next()? {
            Token::Number(lanes) => Reduction::Rows(lanes),
            Token::Word(_) => Reduction::Scan,
        };
        Some(Self { items, index, access, reduction })
    }

    fn access(&self) -> Access {
        self.access
    }

    fn storage(&self) -> Self {
        let reduction = match self.reduction {
            Reduction::Rows(_) => Reduction::Rows(1),
            Reduction::Scan => Reduction::Scan,
        };
        // How many threads are side by side over columns decides how large tiles are.
        let Access { panel, vector, .. } = self.access;
        let access = Access { panel, vector, ..self.access.storage() };
        Self { access, reduction, ..*self }
    }

    fn store<T: Scalar>(&self, source: &PartSource<'_, T>) -> Result<Vec<Array>, PackError> {
        let (task, block) = (source.task, source.block);
        let items = self.tile_items(&self.mapping(task, block), block);
        let ends = row_ends(source.row_lens());
        let nnz = ends.last().copied().unwrap_or(0);
        let starts = tile_rows(&ends, items);
        let tiles = starts.len() - 1;

        // Unit of each entry: entry k of unit u is number u · items − unit_rows[u] + k.
        let unit_items = unit_items(task, self.items, block);
        let unit_rows = tile_rows(&ends, unit_items);
        let units = unit_rows.len() - 1;
        let entries = (0..source.row_count()).flat_map(move |position| {
            let (columns, values) = source.row(position);
            columns.iter().zip(values).map(|(&column, &value)| (column, value))
        });
        let entries = Counted { entries, count: nnz as usize };
        let first_entry = |unit: usize| first_entry(unit, unit_items, unit_rows[unit]);
        let unit_sizes = (0..units).map(|unit| {
            let next = if unit + 1 == units { nnz } else { first_entry(unit + 1) };
            (unit as u32, (next - first_entry(unit)) as usize)
        });
        let of_entries = unit_sizes.flat_map(|(unit, count)| core::iter::repeat_n(unit, count));
        // What has no need of units does without: to tell entries' units takes longer than the
        // rest.
        let alone = entries.clone().map(|entry| (0, Some(entry)));
        // Groups past the last item load a base as well.
        let all_units = (tiles * (items / unit_items) as usize).max(units);
        let (index, values) = ((self.index, all_units), (self.access.values, source.table));
        let shared_arrays = shared_entries(source, self.index, self.access.values);
        let coded = if let Some(arrays) = shared_arrays {
            arrays.into()
        } else if self.index.is_relative() {
            let entries = of_entries.zip(entries).map(|(unit, entry)| (unit, Some(entry)));
            pack_entries(index, values, false, entries, alone)?
        } else {
            pack_entries(index, values, false, alone.clone(), alone)?
        };

        let mut arrays = match self.reduction {
            Reduction::Rows(_) => {
                // Device code adds items and rows to offsets, so those sums must fit as well.
                let limit = nnz + ends.len() as u64 + u64::from(items);
                vec![
                    Array::matrix("tile_rows", ArrayData::U32(starts.into())),
                    Array::matrix("row_offsets", ArrayData::offsets(limit, source.row_lens())),
                ]
            }
            Reduction::Scan => {
                let mut warp_rows = tile_rows(&ends, items / (block / 32));
                warp_rows.resize(tiles * (block / 32) as usize + 1, ends.len() as u32);
                vec![
                    Array::matrix(
                        "row_ends",
                        ArrayData::U32(row_end_bits(&ends, tiles, items).into()),
                    ),
                    Array::matrix("warp_rows", ArrayData::U32(warp_rows.into())),
                    Array::matrix("borders", ArrayData::U32(borders(&ends, &starts, items).into())),
                ]
            }
        };
        arrays.extend(coded);
        Ok(arrays)
    }

    fn launch(&self, part: &StoredPart, task: Task, block: u32) -> Result<PartLaunch, PackError> {
        let mapping = self.mapping(task, block);
        let merged = (part.rows.len() + part.nnz) as u64;
        let tiles = merged.div_ceil(u64::from(self.tile_items(&mapping, block)));
        let workspace = carry_bytes(task, tiles);
        if workspace > WORKSPACE_LIMIT {
            return Err(PackError::Workspace { bytes: workspace, most: WORKSPACE_LIMIT });
        }
        let shared = shared_bytes(task, self.items, block, mapping.stride, mapping.vector);
        if shared > SHARED_LIMIT {
            return Err(PackError::SharedMemory { bytes: shared, most: SHARED_LIMIT });
        }
        let blocks = tiles * u64::from(mapping.column_tiles);
        let fix_up =
            Array::fix_up(("carry", task.precision.accumulator()), workspace, blocks as usize);
        Ok(PartLaunch::new(blocks).workspace(fix_up))
    }

    fn unpack<T: Scalar>(
        &self,
        part: &UnpackSource<'_>,
        emit: &mut impl FnMut(usize, u32, T),
    ) -> Option<()> {
        let decoder = Decoder::new(self.access.values, part.arrays);
        let ends = match self.reduction {
            Reduction::Rows(_) => {
                let offsets = part.array("row_offsets")?;
                (1..=part.rows.len())
                    .map(|row| offsets.unsigned(row))
                    .collect::<Option<Vec<_>>>()?
            }
            Reduction::Scan => read_row_ends(part.array("row_ends")?, part.rows.len())?,
        };
        let unit_items = unit_items(part.task, self.items, part.block);
        let mut slot = 0;
        for (position, &end) in ends.iter().enumerate() {
            while slot < end {
                // Entry `slot` of row `position` is item `slot + position`.
                let unit = (slot + position as u64) / u64::from(unit_items);
                let at = slot as usize;
                emit(position, decoder.column(unit as usize, at)?, decoder.value(at)?);
                slot += 1;
            }
        }
        Some(())
    }

    /// What the elements of one of its arrays are; `None` for a name that it does not have.
    fn meaning(&self, array: &str) -> Option<Meaning> {
        const STORED: Stored = Stored {
            unit: "tile or group",
            units: "tiles or groups",
            indexed: "entry",
            indices: "entries",
            values: "entries",
            empty: "",
        };
        match array {
            "tile_rows" => Some(Meaning::new("first row of each tile, and the end", "tiles + 1")),
            "row_offsets" => Some(Meaning::new("first entry of each row, and the end", "rows + 1")),
            "row_ends" => Some(Meaning::new(
                "a bit for each item of the merged list, 1 for a row's end",
                "items / 32",
            )),
            "warp_rows" => {
                Some(Meaning::new("rows that end before each warp's first item", "warps + 1"))
            }
            "borders" => Some(Meaning::new(
                "first and last tile of the row across each tile's beginning, or the tile itself",
                "(tiles + 1) x 2",
            )),
            "carry" => Some(Meaning::new(
                "sums that each tile leaves, of a row begun earlier and of one that begins",
                "tiles x 2 x columns",
            )),
            "tickets" => Some(Meaning::new(
                "tiles of a row that have come, by the row's first tile",
                "column tiles x tiles",
            )),
            _ => STORED.meaning(array, self.index, self.access),
        }
    }

    fn call(&self, task: Task, block: u32) -> DeviceCall {
        let mapping = self.mapping(task, block);
        let call = match (task.operation, self.reduction) {
            (Operation::SpMM { .. }, _) => DeviceCall::new(
                DeviceCode::Function("merge_columns"),
                mapping,
                Shares::BlockTile("whose items its groups of threads share evenly"),
            )
            .constant("items_per_group", self.items)
            .constant("column_lanes", mapping.stride)
            .block()
            .column_tile()
            .made(ITEMS),
            (Operation::SpMV, Reduction::Scan) => DeviceCall::new(
                DeviceCode::Function("merge_scan"),
                mapping,
                Shares::BlockTile("whose items its threads share evenly"),
            )
            .constant("items_per_thread", self.items)
            .block()
            .made(ITEMS),
            (Operation::SpMV, Reduction::Rows(lanes)) => DeviceCall::new(
                DeviceCode::Function("merge_rows"),
                mapping,
                Shares::BlockTile("whose rows its threads add up in shared memory"),
            )
            .constant("items_per_thread", self.items)
            .constant("lanes_per_row", lanes)
            .block()
            .made(TILES),
        };
        let shared = shared_bytes(task, self.items, block, mapping.stride, mapping.vector);
        call.made(CARRY).dense().shared(shared)
    }

    fn most_items(&self, rows: u64, nnz: u64) -> u64 {
        rows + nnz + LARGEST_TILE
    }

    fn cost(&self, site: Site, model: &CostModel<'_>) -> PartCost {
        let (stats, task) = (model.stats(), model.task());
        let mapping = self.mapping(task, site.block);
        let set = stats.rows(site.rows);
        let rows = set.rows.len() as u64;
        let items = u64::from(self.tile_items(&mapping, site.block));
        let merged = rows + set.nnz as u64;
        let tiles = merged.div_ceil(items);
        let units = merged.div_ceil(u64::from(unit_items(task, self.items, site.block)));
        let warps = u64::from(site.block / 32);
        let bases = if self.index.is_relative() { 4 * units } else { 0 };
        let entry = (self.index.size() + self.access.values.size(task.precision.matrix())) as u64;
        let carry = carry_bytes(task, tiles);
        let borders = match self.reduction {
            Reduction::Rows(_) => {
                let offset = if set.nnz < u32::MAX as usize { 4 } else { 8 };
                (rows + 1) * offset + 4 * tiles
            }
            Reduction::Scan => merged / 8 + tiles * (8 + 4 * warps),
        };
        let bytes = set.nnz as u64 * entry + borders + bases;
        // Whoever completes the longest row adds up the parts that its tiles left.
        let parts = set.longest as u64 / items;
        match task.operation {
            Operation::SpMV => {
                let rows_per_tile = rows.div_ceil(tiles.max(1));
                // Steps of the longest walk, where one step is a trip to memory and a step in
                // shared memory a twentieth of it.
                let reduce = match self.reduction {
                    Reduction::Rows(lanes) => {
                        let rounds = (rows_per_tile + 1).div_ceil(u64::from(site.block / lanes));
                        let average = (set.nnz as u64).div_ceil(rows.max(1));
                        let clipped = (set.longest as u64).min(items);
                        let walks = rounds * (average * 2).min(clipped) + clipped;
                        2 * rounds + walks / u64::from(lanes) / 20
                    }
                    // Each thread stores the rows that end among its items, one after the other.
                    Reduction::Scan => 4 + rows_per_tile / u64::from(site.block),
                };
                // The products come in with full lines.
                let per_tile = u64::from(self.items) + reduce + 14;
                let steps = WarpSteps {
                    warps: tiles * warps,
                    total: tiles * warps * per_tile,
                    longest: u64::from(self.items) / 6 + reduce + parts / 8,
                };
                PartCost::new(&mapping, steps, StartUp::StagedTiles)
                    .matrix(bytes, entry as f64)
                    .scattered_input(&mapping, task)
                    .unroll(1)
                    .workspace(carry)
            }
            Operation::SpMM { .. } => {
                let steps = WarpSteps {
                    warps: tiles * warps,
                    // A tile ends with barriers, and often with a ticket.
                    total: tiles * warps * (u64::from(self.items) + 8),
                    longest: u64::from(self.items) + parts / 4,
                };
                PartCost::new(&mapping, steps, StartUp::Tiles)
                    .matrix(bytes, f64::from(32 / mapping.stride) * 2.0)
                    .scattered_input(&mapping, task)
                    .unroll(8)
                    .workspace(carry)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cut_the_merged_list_evenly() {
        // Rows of 3, 0, 0 and 4 entries: e e e | r0 r1 r2 | e e e | e r3.
        assert_eq!(tile_rows(&[3, 3, 3, 7], 3), [0, 0, 3, 3, 4]);
        assert_eq!(tile_rows(&[], 8), [0]);
        assert_eq!(tile_rows(&[0, 0], 1), [0, 1, 2]);
    }

    #[test]
    fn bits_and_borders_tell_the_rows() {
        // e e e | r0 r1 r2 | e e e | e r3.
        let (ends, starts) = ([3, 3, 3, 7], [0, 0, 3, 3, 4]);
        assert_eq!(borders(&ends, &starts, 3), [0, 0, 0, 1, 2, 2, 2, 3, 4, 4]);
        let words = row_end_bits(&ends, 1, 32);
        assert_eq!(words, [0b100_0011_1000]);
        assert_eq!(read_row_ends(&ArrayData::U32(words.into()), 4).unwrap(), ends);
    }
}
