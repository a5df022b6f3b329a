//! Merge-path tiles: CSR cut into tiles of equally many entries plus row ends.

use alloc::vec;
use alloc::vec::Vec;

use super::coding::{Decoder, float_array, pack_entries};
use super::cost::{PartCost, WarpSteps};
use super::pack::{LayoutArrays, SHARED_LIMIT};
use super::{Array, ArrayData, Mapping, PackError, PackedPart, PartSource};
use crate::codegen::DeviceCall;
use crate::language::grammar::{Alternative, IndexUnit, Site};
use crate::language::{Access, Facts, IndexCoding, Lanes, Mask, Order, Program, Slot, Token, Word};
use crate::matrix::Scalar;
use crate::task::{Operation, Task};

/// Items per thread of a tile (SpMV: a tile per block).
const THREAD_ITEMS: [u32; 4] = [8, 4, 16, 2];
/// Items of a tile (SpMM: a tile per group of threads side by side over columns).
const GROUP_ITEMS: [u32; 5] = [64, 32, 128, 256, 16];
/// Most bytes of workspace of a part.
const WORKSPACE_LIMIT: u64 = 1 << 30;
/// Shared memory left to the reductions beside a tile's products.
const REDUCTION_BYTES: usize = 1024;

/// Tiles of the merge path over row ends and entries (Merrill and Garland, PPoPP 2016).
///
/// Work is even whatever the row lengths are. Rows cut by tile borders are completed within the
/// same launch, in a fixed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MergeLayout {
    /// SpMV: items per thread, a tile per block. SpMM: items per tile, a tile per group of threads.
    pub(crate) items: u32,
    /// Coding of column indices; relative codings start anew with each tile.
    pub(crate) index: IndexCoding,
    /// Coding and caching of the arrays.
    pub(crate) access: Access,
    /// How a tile's products become row sums.
    pub(crate) reduction: Reduction,
}

/// How a merge tile adds up its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reduction {
    /// This many threads walk each row: 1–32 for SpMV, 1 for SpMM.
    Rows(u32),
    /// Threads walk equally many items, joined by a segmented scan; SpMV only.
    Scan,
}

/// `merge I …`, for any rows in matrix order: sorting would not even them out further.
pub(crate) fn open(site: Site, _: Mask<'_>) -> Option<Alternative> {
    (site.order == Order::Keep).then(|| Alternative::word(Word::Merge, vec![Slot::TileItems(site)]))
}

/// Tile sizes whose products fit in shared memory.
pub(crate) fn items(site: Site, mask: Mask<'_>) -> Vec<Alternative> {
    let task = mask.task();
    let fields = |&items: &u32| {
        let index = Slot::Index(site, IndexUnit::Tile(tile_items(task, items, site.block)));
        let values = Slot::Values { padded: false };
        let opens = vec![index, values, Slot::Cache, Slot::Vector, Slot::Reduction];
        Alternative::number(items, opens)
    };
    let fits = |&&items: &&u32| {
        mask.allows(|facts| {
            let set = facts.rows(site.rows);
            let merged = (set.rows.len() + set.nnz) as u64;
            let tiles = merged.div_ceil(u64::from(tile_items(task, items, site.block)));
            shared_bytes(task, items, site.block) + REDUCTION_BYTES <= SHARED_LIMIT
                && carry_bytes(task, tiles) <= WORKSPACE_LIMIT
        })
    };
    let sizes: &[u32] = match task.operation {
        Operation::SpMV => &THREAD_ITEMS,
        Operation::SpMM { .. } => &GROUP_ITEMS,
    };
    sizes.iter().filter(fits).map(fields).collect()
}

/// Merge items of a tile.
fn tile_items(task: Task, items: u32, block: u32) -> u32 {
    match task.operation {
        Operation::SpMV => items * block,
        Operation::SpMM { .. } => items,
    }
}

fn shared_bytes(task: Task, items: u32, block: u32) -> usize {
    match task.operation {
        Operation::SpMV => (items * block) as usize * task.dtype.size(),
        Operation::SpMM { .. } => 0,
    }
}

/// Bytes of the sums that tiles leave for the rows they share.
fn carry_bytes(task: Task, tiles: u64) -> u64 {
    tiles * 2 * u64::from(task.operation.columns()) * task.dtype.size() as u64
}

/// Entries up to the end of each row.
pub(crate) fn row_ends(lens: impl Iterator<Item = u64>) -> Vec<u64> {
    let add = |sum: &mut u64, len| {
        *sum += len;
        Some(*sum)
    };
    lens.scan(0, add).collect()
}

/// First row of each tile, and the row count at the end. `ends[r]` is the number of entries up to
/// the end of row `r`. Row `r`'s end is item `ends[r] + r` of the merged list.
pub(crate) fn tile_rows(ends: &[u64], items: u32) -> Vec<u32> {
    let total = ends.last().copied().unwrap_or(0) + ends.len() as u64;
    let tiles = total.div_ceil(u64::from(items));
    let mut row = 0;
    let mut starts: Vec<u32> = (0..tiles)
        .map(|tile| {
            let item = tile * u64::from(items);
            while ends.get(row).is_some_and(|&end| end + (row as u64) < item) {
                row += 1;
            }
            row as u32
        })
        .collect();
    starts.push(ends.len() as u32);
    starts
}

impl MergeLayout {
    pub(crate) fn write(&self, out: &mut Vec<Token>) {
        out.extend([Token::Number(self.items), self.index.token()]);
        self.access.write(out);
        out.push(match self.reduction {
            Reduction::Rows(lanes) => Token::Number(lanes),
            Reduction::Scan => Token::Word(Word::Scan),
        });
    }

    pub(crate) fn read(reader: &mut crate::language::Reader<'_>) -> Option<Self> {
        let items = reader.number()?;
        let index = IndexCoding::read(reader)?;
        let access = Access::read(reader)?;
        let reduction = match reader.next()? {
            Token::Number(lanes) => Reduction::Rows(lanes),
            Token::Word(_) => Reduction::Scan,
        };
        Some(Self { items, index, access, reduction })
    }

    fn mapping(&self, task: Task, block: u32) -> Mapping {
        Mapping::new(task, Lanes::Threads(1), self.access.vector, block)
    }

    pub(crate) fn pack<T: Scalar>(
        &self,
        source: &PartSource<'_, T>,
    ) -> Result<LayoutArrays, PackError> {
        let task = source.program.task;
        let block = source.program.block.threads();
        let items = tile_items(task, self.items, block);
        let ends = row_ends(source.row_lens());
        let tile_rows = tile_rows(&ends, items);
        let tiles = tile_rows.len() - 1;
        let nnz = ends.last().copied().unwrap_or(0);

        // Tile of each entry: entry k of tile t is number t · items − tile_rows[t] + k.
        let entries = (0..source.row_count()).flat_map(move |position| {
            let (columns, values) = source.row(position);
            columns.iter().zip(values).map(|(&column, &value)| (column, value))
        });
        let first_entry = |tile: usize| tile as u64 * u64::from(items) - u64::from(tile_rows[tile]);
        let tile_sizes = (0..tiles).map(|tile| {
            let next = if tile + 1 == tiles { nnz } else { first_entry(tile + 1) };
            (tile as u32, (next - first_entry(tile)) as usize)
        });
        let units = tile_sizes.flat_map(|(tile, count)| core::iter::repeat_n(tile, count));
        let entries = units.zip(entries).map(|(tile, entry)| (tile, Some(entry)));

        let (index, values) = ((self.index, tiles), (self.access.values, source.table));
        let coded = pack_entries(index, values, false, entries.clone(), entries)?;
        // Device code adds items and rows to offsets, so those sums must fit as well.
        let limit = nnz + ends.len() as u64 + u64::from(items);
        let mapping = self.mapping(task, block);
        let workspace = carry_bytes(task, tiles as u64);
        if workspace > WORKSPACE_LIMIT {
            return Err(PackError::Workspace { bytes: workspace });
        }
        let carried = workspace as usize / task.dtype.size();
        let tickets = tiles * mapping.column_tiles as usize;
        let offsets = ArrayData::offsets(limit, source.row_lens());
        let mut arrays = vec![
            Array::matrix("tile_rows", ArrayData::U32(tile_rows)),
            Array::matrix("offsets", offsets),
        ];
        arrays.extend(coded);
        let zeros = float_array((0..carried).map(|_| T::from_f64(0.0)));
        arrays.push(Array::workspace("carry", zeros));
        arrays.push(Array::workspace("tickets", ArrayData::U32(vec![0; tickets])));

        let blocks = match task.operation {
            Operation::SpMV => tiles as u64,
            Operation::SpMM { .. } => mapping.blocks(tiles as u64, block),
        };
        let shared = match shared_bytes(task, self.items, block) {
            0 => 0,
            products if products + REDUCTION_BYTES > SHARED_LIMIT => {
                return Err(PackError::SharedMemory { bytes: products + REDUCTION_BYTES });
            }
            products => products,
        };
        Ok(LayoutArrays { arrays, blocks, shared })
    }

    pub(crate) fn unpack<T: Scalar>(
        &self,
        part: &PackedPart,
        program: &Program,
        emit: &mut impl FnMut(usize, u32, T),
    ) -> Option<()> {
        let decoder = Decoder::new(self.access.values, &part.arrays);
        let (offsets, tile_rows) = (part.array("offsets")?, part.array("tile_rows")?);
        let tiles = tile_rows.len().checked_sub(1)?;
        let items = u64::from(tile_items(program.task, self.items, program.block.threads()));
        let first_entry =
            |tile: usize| (tile as u64 * items).checked_sub(tile_rows.unsigned(tile)?);
        let mut tile = 0;
        for position in 0..part.rows.len() {
            for slot in offsets.unsigned(position)?..offsets.unsigned(position + 1)? {
                while tile + 1 < tiles && slot >= first_entry(tile + 1)? {
                    tile += 1;
                }
                let slot = slot as usize;
                emit(position, decoder.column(tile, slot)?, decoder.value(slot)?);
            }
        }
        Some(())
    }

    pub(crate) fn call(&self, part: &PackedPart, task: Task, block: u32) -> DeviceCall {
        let mapping = self.mapping(task, block);
        let tiles = part.array("tile_rows").map_or(0, |array| array.len().saturating_sub(1));
        let call = match (task.operation, self.reduction) {
            (Operation::SpMM { .. }, _) => {
                DeviceCall::new("merge_spmm.cuh", "merge_columns", mapping)
                    .constants(&[block, mapping.stride])
                    .scalar_and_vector()
                    .block()
                    .column_tile()
            }
            (Operation::SpMV, Reduction::Rows(lanes)) => {
                DeviceCall::new("merge_spmv.cuh", "merge_rows", mapping)
                    .constants(&[block, self.items, lanes])
                    .scalar()
                    .block()
            }
            (Operation::SpMV, Reduction::Scan) => {
                DeviceCall::new("merge_spmv.cuh", "merge_scan", mapping)
                    .constants(&[block, self.items])
                    .scalar()
                    .block()
            }
        };
        let call = call
            .count(tiles)
            .merge_tiles(tile_items(task, self.items, block))
            .rows()
            .columns(self.index)
            .values()
            .dense();
        if task.operation == Operation::SpMV { call.scratch() } else { call }
    }

    pub(crate) fn cost(&self, site: Site, facts: &Facts<'_>) -> PartCost {
        let task = facts.task();
        let mapping = self.mapping(task, site.block);
        let set = facts.rows(site.rows);
        let rows = set.rows.len() as u64;
        let items = u64::from(tile_items(task, self.items, site.block));
        let tiles = (rows + set.nnz as u64).div_ceil(items);
        let offset = if set.nnz < u32::MAX as usize { 4 } else { 8 };
        let bases = if self.index.is_relative() { 4 * tiles } else { 0 };
        let entry = (self.index.size() + self.access.values.size(task.dtype)) as u64;
        let carry = carry_bytes(task, tiles);
        let bytes = set.nnz as u64 * entry + (rows + 1) * offset + 4 * tiles + bases;
        // Whoever completes the longest row adds up the parts that its tiles left.
        let parts = set.longest as u64 / items;
        match task.operation {
            Operation::SpMV => {
                let warps = u64::from(site.block / 32);
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
                    Reduction::Scan => 2,
                };
                // The products come in with full lines.
                let per_tile = u64::from(self.items) + reduce + 8;
                let steps = WarpSteps {
                    warps: tiles * warps,
                    total: tiles * warps * per_tile,
                    longest: u64::from(self.items) / 3 + reduce + parts / 8,
                };
                PartCost::new(&mapping, steps)
                    .matrix(bytes, entry as f64)
                    .scattered_input(&mapping, task)
                    .unroll(1)
                    .workspace(carry)
                    .latency(6.0e-6)
            }
            Operation::SpMM { .. } => {
                let groups = u64::from(32 / mapping.stride);
                let steps = WarpSteps {
                    warps: tiles.div_ceil(groups),
                    total: (tiles * items).div_ceil(groups),
                    longest: items + parts / 4,
                };
                PartCost::new(&mapping, steps)
                    .matrix(bytes, groups as f64 * 2.0)
                    .scattered_input(&mapping, task)
                    .unroll(4)
                    .workspace(carry)
                    .latency(8.0e-6)
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
}
