//! Row chunks: rows cut into pieces of bounded length, stored by fours.

use alloc::vec;
use alloc::vec::Vec;

use super::array::{Array, ArrayData, Meaning, Stored};
use super::call::{DeviceCall, DeviceCode, OwnSize, PartSize, Shares};
use super::coding::{Counted, Decoder, pack_entries};
use super::cost::{CostModel, PartCost, StartUp, WarpSteps};
use super::layout_module::{LayoutModule, field};
use super::mapping::Mapping;
use super::pack::{PackError, PartLaunch, PartSource, StoredPart, UnpackSource, WORKSPACE_LIMIT};
use crate::matrix::Scalar;
use crate::structure::{FOUR, row_chunk_count, row_chunks};
use crate::syntax::grammar::{Alternative, IndexUnit, LayoutSet, Site, Slot};
use crate::syntax::{Access, IndexCoding, Lanes, Mask, Reader, Token, Word};
use crate::task::Task;

/// Most entries of a chunk.
const ENTRIES: [u32; 5] = [64, 32, 128, 256, 512];
/// What `chunk_rows` adds to the number of a share, to tell it from a position.
const CUT: u32 = 1 << 31;
/// Numbers that `cuts` has for each share.
const CUT_FIELDS: usize = 3;

/// Rows in chunks of at most so many entries, each for a group of threads of a warp.
///
/// Work is even whatever the row lengths are, and long rows are shared by many blocks. Rows of
/// several chunks are completed within the same launch, in a fixed order. A chunk is padded to a
/// multiple of four entries, so that a thread reads four of them by one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkLayout {
    /// Most entries of a chunk: 32, 64, 128, 256 or 512.
    pub(crate) entries: u32,
    /// Coding of column indices; relative codings start anew with each chunk.
    pub(crate) index: IndexCoding,
    /// Coding and caching of the arrays.
    pub(crate) access: Access,
    /// Threads of a warp that share a chunk's entries, 1–32.
    pub(crate) lanes: u32,
    /// Fours of entries in flight per thread: 1 or 2.
    pub(crate) unroll: u32,
}

/// Sizes of chunks whose sums of cut rows fit in a workspace.
fn entries<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Vec<Alternative<L>> {
    let task = mask.task();
    let fits = |&&most: &&u32| {
        mask.allows(|stats| workspace(task, stats.chunks(site.rows, most).shares).is_ok())
    };
    let fields = |&most: &u32| {
        let opens = vec![
            Slot::Index(site, IndexUnit::Rows(1)),
            Slot::Values { padded: false },
            Slot::Cache,
            Slot::Vector,
            Slot::Lanes { most: 32.min(most / FOUR), block: false },
            field::<ChunkLayout, L>("unroll", site, unrolls),
        ];
        Alternative::number(most, opens)
    };
    ENTRIES.iter().filter(fits).map(fields).collect()
}

fn unrolls<L: LayoutSet>(_: Site, _: Mask<'_, L>) -> Vec<Alternative<L>> {
    [1, 2].map(|n| Alternative::leaf(Token::Number(n))).into()
}

/// Bytes of the sums that the chunks of cut rows leave.
fn workspace_bytes(task: Task, shares: u64) -> u64 {
    shares * u64::from(task.operation.columns()) * task.precision.accumulator().size() as u64
}

/// The same, where a part may have so many shares.
fn workspace(task: Task, shares: u64) -> Result<u64, PackError> {
    let bytes = workspace_bytes(task, shares);
    // So the numbers of shares are below CUT.
    const _: () = assert!(WORKSPACE_LIMIT < CUT as u64, "a share has a byte at least");
    if bytes > WORKSPACE_LIMIT {
        return Err(PackError::Workspace { bytes, most: WORKSPACE_LIMIT });
    }
    Ok(bytes)
}

/// A chunk of a row, as it is packed.
struct Chunk {
    /// Position of its row in the part.
    position: u32,
    /// The first of its entries, counted within the row.
    first: usize,
    /// Number of its entries.
    entries: usize,
    /// Number of its slots: the entries, and as many empty ones as fill a multiple of four.
    slots: u64,
}

impl ChunkLayout {
    /// Most entries of a chunk.
    #[must_use]
    pub fn entries(&self) -> u32 {
        self.entries
    }

    fn mapping(&self, task: Task, block: u32) -> Mapping {
        Mapping::new(task, Lanes::Threads(self.lanes), self.access, block)
    }

    /// The chunks of a part, in the order of its rows.
    fn chunks<T: Scalar>(&self, source: &PartSource<'_, T>) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        for position in 0..source.row_count() {
            let len = source.row_len(position);
            let mut first = 0;
            for slots in row_chunks(len as u64, self.entries) {
                let entries = (slots as usize).min(len - first);
                chunks.push(Chunk { position: position as u32, first, entries, slots });
                first += entries;
            }
        }
        chunks
    }
}

/// `chunk_rows` and `cuts` of chunks in the order of their rows.
fn targets(chunks: &[Chunk]) -> (Vec<u32>, Vec<u32>) {
    let (mut rows, mut cuts) = (Vec::with_capacity(chunks.len()), Vec::new());
    let mut shares = 0;
    for of_row in chunks.chunk_by(|a, b| a.position == b.position) {
        if let [whole] = of_row {
            rows.push(whole.position);
            continue;
        }
        let count = of_row.len() as u32;
        for (share, chunk) in (shares..).zip(of_row) {
            rows.push(CUT + share);
            cuts.extend([shares, count, chunk.position]);
        }
        shares += count;
    }
    (rows, cuts)
}

/// `chunk_offsets`, by fours.
fn offsets(chunks: &[Chunk]) -> ArrayData {
    ArrayData::offsets_by_fours(chunks.iter().map(|chunk| chunk.entries as u64))
}

/// Its chunks of rows.
const CHUNK_COUNT: OwnSize =
    OwnSize::elements_of("chunk_rows", "chunk_count", "chunks of rows of {}");

impl LayoutModule for ChunkLayout {
    const WORD: Word = Word::Chunk;
    const FIELDS: &'static [&'static str] =
        &["entries", "index", "values", "cache", "vector", "lanes", "unroll"];
    /// `chunk ENTRIES …`, for so few rows that positions can be told from shares.
    fn open<L: LayoutSet>(site: Site, mask: Mask<'_, L>) -> Option<Vec<Slot<L>>> {
        let fits = mask.allows(|stats| stats.rows(site.rows).rows.len() < CUT as usize);
        (fits && !entries(site, mask).is_empty())
            .then(|| vec![field::<Self, L>("entries", site, entries)])
    }

    fn write(&self, out: &mut Vec<Token>) {
        out.extend([Token::Number(self.entries), self.index.token()]);
        self.access.write(out);
        out.extend([Token::Number(self.lanes), Token::Number(self.unroll)]);
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let entries = reader.number()?;
        let index = IndexCoding::read(reader)?;
        let access = Access::read(reader)?;
        Some(Self { entries, index, access, lanes: reader.number()?, unroll: reader.number()? })
    }

    fn access(&self) -> Access {
        self.access
    }

    fn storage(&self) -> Self {
        Self { access: self.access.storage(), lanes: 1, unroll: 1, ..*self }
    }

    fn store<T: Scalar>(&self, source: &PartSource<'_, T>) -> Result<Vec<Array>, PackError> {
        if source.row_count() >= CUT as usize {
            let (found, most) = (source.row_count() as u64, u64::from(CUT) - 1);
            return Err(PackError::TooMany { layout: "chunk", what: "rows", found, most });
        }
        let chunks = self.chunks(source);
        let (rows, cuts) = targets(&chunks);

        let entries = chunks.iter().enumerate().flat_map(|(unit, chunk)| {
            let (columns, values) = source.row(chunk.position as usize);
            let part = chunk.first..chunk.first + chunk.entries;
            let entries = columns[part.clone()].iter().zip(&values[part]);
            let stored = entries.map(move |(&column, &value)| (unit as u32, Some((column, value))));
            let empty = chunk.slots as usize - chunk.entries;
            stored.chain(core::iter::repeat_n((unit as u32, None), empty))
        });
        let count = chunks.iter().map(|chunk| chunk.slots as usize).sum();
        let entries = Counted { entries, count };
        let mut arrays = vec![
            Array::matrix("chunk_offsets", offsets(&chunks)),
            Array::matrix("chunk_rows", ArrayData::U32(rows.into())),
            Array::matrix("cuts", ArrayData::U32(cuts.into())),
        ];
        let (index, values) = ((self.index, chunks.len()), (self.access.values, source.table));
        arrays.extend(pack_entries(index, values, false, entries.clone(), entries)?);
        Ok(arrays)
    }

    fn launch(&self, part: &StoredPart, task: Task, block: u32) -> Result<PartLaunch, PackError> {
        let mapping = self.mapping(task, block);
        let shares = part.array_len("cuts") / CUT_FIELDS;
        let workspace = workspace(task, shares as u64)?;
        let tickets = shares * mapping.column_tiles as usize;
        let fix_up = Array::fix_up(("shares", task.precision.accumulator()), workspace, tickets);
        let chunks = part.array_len("chunk_rows") as u64;
        Ok(PartLaunch::new(mapping.blocks(chunks, block)).workspace(fix_up))
    }

    fn unpack<T: Scalar>(
        &self,
        part: &UnpackSource<'_>,
        emit: &mut impl FnMut(usize, u32, T),
    ) -> Option<()> {
        let decoder = Decoder::new(self.access.values, part.arrays);
        let offsets = part.array("chunk_offsets")?;
        let (rows, cuts) = (part.array("chunk_rows")?, part.array("cuts")?);
        for chunk in 0..rows.len() {
            let target = rows.unsigned(chunk)?;
            let position = match target.checked_sub(u64::from(CUT)) {
                Some(share) => cuts.unsigned(share as usize * CUT_FIELDS + 2)?,
                None => target,
            };
            for slot in offsets.slots_by_fours(chunk)? {
                emit(position as usize, decoder.column(chunk, slot)?, decoder.value(slot)?);
            }
        }
        Some(())
    }

    /// What the elements of one of its arrays are; `None` for a name that it does not have.
    fn meaning(&self, array: &str) -> Option<Meaning> {
        const STORED: Stored = Stored {
            unit: "chunk",
            units: "chunks",
            indexed: "slot",
            indices: "slots",
            values: "slots",
            empty: "",
        };
        match array {
            "chunk_offsets" => Some(Meaning::new(
                "first slot of each chunk, a multiple of 4, plus its empty slots, which are its \
                 last; and the end",
                "chunks + 1",
            )),
            "chunk_rows" => Some(Meaning::new(
                "position of each chunk's row, or 2^31 and its share where the row has several \
                 chunks",
                "chunks",
            )),
            "cuts" => Some(Meaning::new(
                "of each share: the first share of its row, how many the row has, the row's \
                 position",
                "shares x 3",
            )),
            "shares" => Some(Meaning::new(
                "sums of the chunks of rows that have several",
                "shares x columns",
            )),
            "tickets" => Some(Meaning::new(
                "chunks of a row that have come, by the row's first share",
                "shares x column tiles",
            )),
            _ => STORED.meaning(array, self.index, self.access),
        }
    }

    fn call(&self, task: Task, block: u32) -> DeviceCall {
        let mapping = self.mapping(task, block);
        let code = DeviceCode::Statements(include_str!("../../cuda/chunk.cuh"));
        DeviceCall::new(code, mapping, Shares::Chunk(self.lanes))
            .factor("LANES", self.lanes)
            .factor("STRIDE", mapping.stride)
            .factor("COLUMN_TILES", mapping.column_tiles)
            .constant("UNROLL", self.unroll)
            .values_at_once(FOUR)
            .columns_at_once(FOUR)
            .block()
            .column_tile()
            .size(PartSize::Own(&CHUNK_COUNT))
            .array("chunk_offsets")
            .array("chunk_rows")
            .array("cuts")
            .array("shares")
            .array("tickets")
            .dense()
    }

    fn cost(&self, site: Site, model: &CostModel<'_>) -> PartCost {
        let (stats, task) = (model.stats(), model.task());
        let mapping = self.mapping(task, site.block);
        let chunks = stats.chunks(site.rows, self.entries);
        let at_once = (32 / (mapping.lanes * mapping.stride)).max(1);
        let groups =
            stats.chunk_groups(site.rows, site.order, self.entries, at_once, mapping.lanes);
        let entry = (self.index.size() + self.access.values.size(task.precision.matrix())) as u64;
        let bases = if self.index.is_relative() { 4 } else { 0 };
        let bytes = chunks.slots * entry + chunks.chunks * (8 + bases) + chunks.shares * 16;
        let most_shares = row_chunk_count(stats.rows(site.rows).longest as u64, self.entries);
        // A step is four entries. Offsets, the reduction and the store cost about two more, a cut
        // row's ticket three.
        let shares_each = 3 * chunks.shares / u64::from(at_once);
        let steps = WarpSteps {
            warps: groups.groups,
            total: groups.steps + 2 * groups.groups + shares_each,
            longest: groups.longest + most_shares / (4 * u64::from(self.lanes)),
        };
        let entries_of_step = f64::from(at_once * mapping.lanes * FOUR);
        let cost = PartCost::new(&mapping, steps, StartUp::Chunks)
            .matrix(bytes, entries_of_step * entry as f64 / 32.0 + f64::from(at_once))
            .scattered_inputs(&mapping, task, FOUR);
        // Four entries are in flight in any case; more of them take registers, and so warps.
        let mut cost = cost.unroll(1).workspace(workspace_bytes(task, chunks.shares));
        cost.transactions *= 1.0 + 0.04 * f64::from(self.unroll - 1) * f64::from(mapping.vector);
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(position: u32, entries: usize, slots: u64) -> Chunk {
        Chunk { position, first: 0, entries, slots }
    }

    #[test]
    fn only_cut_rows_have_shares() {
        let chunks = [chunk(0, 3, 4), chunk(1, 20, 20), chunk(1, 13, 16), chunk(2, 0, 0)];
        let (rows, cuts) = targets(&chunks);
        assert_eq!(rows, [0, CUT, CUT + 1, 2]);
        assert_eq!(cuts, [0, 2, 1, 0, 2, 1]);
        assert_eq!(offsets(&chunks), ArrayData::U32(vec![1, 4, 27, 40, 40].into()));
    }
}
