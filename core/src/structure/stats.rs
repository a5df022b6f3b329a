use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::answers::{Answers, Splits};
use super::chunks::{Chunks, FOUR};
use super::count::{BlockColumns, BlockShape, diagonals, row_ends, tile_rows};
use super::embedding::{EmbeddingConfig, SampledPositions, StructureEmbedding};
use super::features::Features;
use super::grid::DensityGrids;
use super::groups::{ChunkRuns, RowGroups};
use super::limits::MAX_PADDING;
use super::pattern::Pattern;
use super::rows::{Order, RowSet, RowSetId, Rows, SplitRule};
use super::scan::Scan;
use super::values::Table;
use crate::matrix::{CsrView, Scalar, tasks};
use crate::random::SplitMix64;

/// Rows of blocks, and entries, whose fill is counted exactly; larger sets are sampled.
const BLOCK_ROW_SAMPLES: usize = 2048;
const BLOCK_ENTRY_SAMPLES: usize = 1 << 17;

/// Largest distance that a relative index stores.
const MOST_CODED: u64 = u16::MAX as u64;

/// Rows of the slices that thicker ones are made of.
const THIN_SLICE: u32 = 4;
/// Slices whose rows a thread looks at at a time; fewer are not worth waking another.
const SLICES_A_PIECE: usize = 1 << 14;

/// The statistics of one matrix: what a policy sees of it, what the mask asks, and what the cost
/// model prices.
///
/// Each is computed when it is first asked for, once, and then shared by all that ask: tasks,
/// targets and, with the `std` feature, threads. Neither a task nor a GPU is a property of a
/// matrix; whoever needs them holds them beside this.
pub struct MatrixStats<'a> {
    pattern: Pattern<'a>,
    find_values: Box<dyn Fn() -> Option<Table> + Send + Sync + 'a>,
    answers: Arc<Answers>,
}

impl fmt::Debug for MatrixStats<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MatrixStats({} × {}, {} entries)", self.rows_count(), self.cols(), self.nnz())
    }
}

impl<'a> MatrixStats<'a> {
    /// The statistics of a matrix.
    #[must_use]
    pub fn new<T: Scalar>(matrix: CsrView<'a, T>) -> Self {
        Self::with(matrix, Arc::new(Answers::none(Pattern::new(matrix))))
    }

    /// The statistics of a matrix of which some are there already, computed when it lay elsewhere
    /// or was borrowed for another time. The answers have to be of the same entries: those of a
    /// matrix of another size are left alone.
    #[must_use]
    pub fn again<T: Scalar>(matrix: CsrView<'a, T>, answers: Arc<Answers>) -> Self {
        match answers.are_of(Pattern::new(matrix)) {
            true => Self::with(matrix, answers),
            false => Self::new(matrix),
        }
    }

    fn with<T: Scalar>(matrix: CsrView<'a, T>, answers: Arc<Answers>) -> Self {
        let values = matrix.values();
        let find_values = Box::new(move || Table::of(values));
        Self { pattern: Pattern::new(matrix), find_values, answers }
    }

    /// All that was computed so far, and will be: shared, not copied.
    #[must_use]
    pub fn answers(&self) -> Arc<Answers> {
        Arc::clone(&self.answers)
    }

    /// Rows of the matrix.
    #[must_use]
    pub fn rows_count(&self) -> usize {
        self.pattern.rows
    }

    /// Columns of the matrix.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.pattern.cols
    }

    /// Entries of the matrix.
    #[must_use]
    pub fn nnz(&self) -> usize {
        self.pattern.nnz()
    }

    /// Bytes of an offset of plain CSR.
    #[must_use]
    pub fn offset_bytes(&self) -> u64 {
        if (self.nnz() as u64) < u64::from(u32::MAX) { 4 } else { 8 }
    }

    /// The features that a policy sees.
    #[must_use]
    pub fn features(&self) -> Features {
        if let Some(known) = self.answers.features.get() {
            return *known;
        }
        // Threads share this work, which must not be done within what is computed once.
        let slots = self.slice_slots(RowSetId::ALL, Order::Keep, 32);
        *self.answers.features.get_or_init(|| Features::of(&self.pattern, self.scan(), slots))
    }

    /// How dense the matrix is, in grids of several scales.
    #[must_use]
    pub fn density_grids(&self) -> DensityGrids {
        DensityGrids::new(&self.scan().grid)
    }

    /// What a policy sees of the matrix.
    #[must_use]
    pub fn embedding(&self, config: &EmbeddingConfig) -> StructureEmbedding {
        let sampled = self.sampled_positions(config.max_tokens);
        StructureEmbedding::of(config, &sampled, self.features(), self.density_grids())
    }

    /// At most `limit` nonzeros that stand for all of them.
    #[must_use]
    pub fn sampled_positions(&self, limit: usize) -> SampledPositions {
        SampledPositions::of(&self.pattern, limit)
    }

    pub(super) fn scan(&self) -> &Scan {
        self.answers.scan.get_or_init(|| Scan::of(&self.pattern))
    }

    /// Number of distinct values, where they are at most 256.
    #[must_use]
    pub fn distinct_values(&self) -> Option<usize> {
        self.value_table().map(Table::len)
    }

    /// The distinct values, where there are few.
    pub(crate) fn value_table(&self) -> Option<&Table> {
        self.answers.values.get_or_init(|| (self.find_values)()).as_ref()
    }

    /// The name itself, or that of no rows where these statistics have not given it yet: what is
    /// remembered under a name must not be of before.
    fn known(&self, id: RowSetId) -> RowSetId {
        let is_known = self.answers.splits.with(|splits| (id.0 as usize) < splits.sets.len());
        if is_known { id } else { RowSetId::NOTHING }
    }

    /// A set of rows; an empty one under a name that these statistics did not give.
    #[must_use]
    pub fn rows(&self, id: RowSetId) -> Arc<RowSet> {
        let known = self.answers.splits.with(|splits| splits.sets.get(id.0 as usize).cloned());
        known.unwrap_or_else(|| Arc::new(RowSet::EMPTY))
    }

    /// True when a split leaves rows on both sides; cheaper than [`MatrixStats::split`].
    #[must_use]
    pub fn splits(&self, id: RowSetId, rule: SplitRule) -> bool {
        let set = self.rows(id);
        match rule {
            SplitRule::Length { threshold } => {
                set.shortest <= threshold as usize && (threshold as usize) < set.longest
            }
            SplitRule::Nonzeros { eighths } => {
                // The last row is on the high side when enough entries lie before it.
                let Some(last) = set.rows.len().checked_sub(1) else { return false };
                let before = (set.nnz - self.row_len(set.rows.at(last))) as u128;
                set.nnz > 0 && before * 8 >= set.nnz as u128 * u128::from(eighths)
            }
        }
    }

    /// The two sides of a split; `None` when one is empty.
    #[must_use]
    pub fn split(&self, id: RowSetId, rule: SplitRule) -> Option<(RowSetId, RowSetId)> {
        if !self.splits(id, rule) {
            return None;
        }
        if let Some(sides) =
            self.answers.splits.with(|splits| splits.sides.get(&(id, rule)).copied())
        {
            return Some(sides);
        }
        let (low, high) = self.rows(id).rows.split(rule, self.pattern.offsets);
        let [low, high] = [low, high].map(|side| Arc::new(RowSet::new(side, self.pattern.offsets)));
        Some(self.answers.splits.with(|Splits { sets, sides }| {
            // Another thread may have been faster, and a set has one name.
            *sides.entry((id, rule)).or_insert_with(|| {
                let first = sets.len() as u32;
                sets.extend([low, high]);
                (RowSetId(first), RowSetId(first + 1))
            })
        }))
    }

    /// The rows of a set in an order.
    #[must_use]
    pub fn ordered(&self, id: RowSetId, order: Order) -> Arc<Rows> {
        let id = self.known(id);
        self.answers
            .ordered
            .get((id, order), || Arc::new(self.rows(id).rows.ordered(order, self.pattern.offsets)))
    }

    fn row_len(&self, row: usize) -> usize {
        self.pattern.offsets.row_len(row)
    }

    fn row(&self, row: usize) -> &'a [u32] {
        self.pattern.row(row)
    }

    /// Largest distance between columns, counted in `side`s, of `height` rows in turn; where
    /// a distance exceeds what any coding stores, the first such distance.
    #[must_use]
    pub fn span(&self, id: RowSetId, order: Order, height: u32, side: u32) -> u64 {
        let id = self.known(id);
        self.answers.spans.get((id, order, height, side), || {
            let rows = self.ordered(id, order);
            let height = height as usize;
            let spans = (0..rows.len()).step_by(height).map(|first| {
                let chunk = first..rows.len().min(first + height);
                self.span_of(chunk.map(|position| rows.at(position)), side)
            });
            largest_coded(spans)
        })
    }

    /// Largest distance between columns of a merge tile of so many items; an upper bound. Where
    /// a distance exceeds what any coding stores, the first such distance.
    #[must_use]
    pub fn tile_span(&self, id: RowSetId, order: Order, items: u32) -> u64 {
        let id = self.known(id);
        self.answers.tile_spans.get((id, order, items), || {
            // A tile spans at least what each of its rows does, which takes less to find.
            let of_rows = self.span(id, order, 1, 1);
            if of_rows > MOST_CODED {
                return of_rows;
            }
            let rows = self.ordered(id, order);
            let ends = row_ends(rows.iter().map(|row| self.row_len(row) as u64));
            let starts = tile_rows(&ends, items);
            let spans = starts.windows(2).map(|tile| {
                // The last row of a tile may go on in the next one.
                let touched = tile[0] as usize..rows.len().min(tile[1] as usize + 1);
                self.span_of(touched.map(|position| rows.at(position)), 1)
            });
            largest_coded(spans)
        })
    }

    fn span_of(&self, rows: impl Iterator<Item = usize>, side: u32) -> u64 {
        let all = self.answers.ends.get_or_init(|| {
            let ends = |row| match *self.row(row) {
                [first, .., last] | [first @ last] => (first, last),
                [] => (1, 0),
            };
            (0..self.pattern.rows).map(ends).collect()
        });
        let ends = rows.map(|row| all[row]).filter(|(first, last)| first <= last);
        let bounds = ends.fold(None, |bounds: Option<(u32, u32)>, (first, last)| {
            let (low, high) = bounds.unwrap_or((first, last));
            Some((low.min(first), high.max(last)))
        });
        bounds.map_or(0, |(low, high)| u64::from(high / side - low / side))
    }

    /// Slots of slices of `height` rows, each padded to its longest row.
    #[must_use]
    pub fn slice_slots(&self, id: RowSetId, order: Order, height: u32) -> u64 {
        let (id, height) = (self.known(id), height.max(1));
        self.answers.slice_slots.get((id, order, height), || {
            let longest = self.longest_rows(id, order, height);
            longest.iter().map(|&width| width as u64).sum::<u64>() * u64::from(height)
        })
    }

    /// Entries of the longest of each `height` rows in turn.
    fn longest_rows(&self, id: RowSetId, order: Order, height: u32) -> Arc<Vec<usize>> {
        self.answers.longest_rows.get((id, order, height), || {
            // Several heights are asked for: thick slices are made of thin ones.
            if height.is_multiple_of(2 * THIN_SLICE) {
                let halves = self.longest_rows(id, order, height / 2);
                let longest = halves.chunks(2).map(|pair| pair.iter().copied().max().unwrap_or(0));
                return Arc::new(longest.collect());
            }
            let (rows, height) = (self.ordered(id, order), height as usize);
            let longest = |first: usize| {
                let slice = first..rows.len().min(first + height);
                slice.map(|position| self.row_len(rows.at(position))).max().unwrap_or(0)
            };
            let step = SLICES_A_PIECE * height;
            let pieces = tasks::map((0..rows.len()).step_by(step).collect(), |first| {
                let piece = (first..rows.len().min(first + step)).step_by(height);
                piece.map(longest).collect::<Vec<usize>>()
            });
            Arc::new(pieces.concat())
        })
    }

    /// Diagonals with an entry; `None` when there are more than
    /// [`MAX_DIAGONALS`](super::MAX_DIAGONALS), or the matrix is too large for 32-bit distances.
    #[must_use]
    pub fn diagonals(&self, id: RowSetId) -> Option<usize> {
        let id = self.known(id);
        self.answers.diagonals.get(id, || {
            i32::try_from(self.pattern.cols.max(self.pattern.offsets.len())).ok()?;
            let set = self.rows(id);
            let found = diagonals(set.rows.iter().map(|row| (row, self.row(row))));
            found.ok().map(|found| found.len())
        })
    }

    /// Blocks of this shape with an entry, estimated from evenly spaced rows of blocks when there
    /// are many.
    #[must_use]
    pub fn blocks(&self, id: RowSetId, shape: BlockShape) -> u64 {
        let id = self.known(id);
        self.answers.blocks.get((id, shape), || {
            let set = self.rows(id);
            // An entry has a block of its own at worst, which layouts may pad it to.
            if shape.slots() <= MAX_PADDING.factor {
                return self.sampled_blocks(&set, shape, 1);
            }
            // Most matrices have no blocks at all, which a glance tells.
            let glance = self.sampled_blocks(&set, shape, 32);
            let hopeless = !MAX_PADDING.doubled().bears(glance * shape.slots(), set.nnz);
            if hopeless { glance } else { self.sampled_blocks(&set, shape, 1) }
        })
    }

    /// Heavy rows of blocks are counted one by one, the others by a sample of them: a few rows can
    /// hold most of the entries, and no sample would find them.
    fn sampled_blocks(&self, set: &RowSet, shape: BlockShape, coarseness: usize) -> u64 {
        let (rows, height) = (&set.rows, shape.rows as usize);
        let block_rows = rows.len().div_ceil(height);
        let by_rows = block_rows * coarseness / BLOCK_ROW_SAMPLES;
        let by_entries = set.nnz * coarseness / BLOCK_ENTRY_SAMPLES;
        let step = by_rows.max(by_entries).max(1);
        let heavy = if step == 1 { 0 } else { set.nnz * coarseness / BLOCK_ROW_SAMPLES };
        let (mut exact, mut light, mut sampled) = (0u64, Tally::default(), Tally::default());
        let mut columns = BlockColumns::default();
        for block_row in 0..block_rows {
            let first = block_row * height;
            let block = first..rows.len().min(first + height);
            let entries: usize = block.clone().map(|p| self.row_len(rows.at(p))).sum();
            // Anywhere within the step, lest rows that repeat with it pass for all rows.
            let scattered = (block_row as u64 / step as u64).wrapping_mul(SplitMix64::STEP);
            let chosen = block_row % step == (scattered >> 32) as usize % step;
            light.entries += if entries > heavy { 0 } else { entries as u64 };
            if entries <= heavy && !chosen {
                continue;
            }
            let here = columns.of(block.map(|p| self.row(rows.at(p))), shape.columns);
            if entries > heavy {
                exact += here.len() as u64;
            } else {
                sampled.blocks += here.len() as u64;
                sampled.entries += entries as u64;
            }
        }
        // Light entries that no sample met count as a block each, which is the worst they can be.
        let (blocks, entries) = match sampled.entries {
            0 => (1, 1),
            entries => (sampled.blocks, entries),
        };
        exact + (u128::from(blocks) * u128::from(light.entries) / u128::from(entries)) as u64
    }

    /// Steps of groups of `at_once` rows, when each row takes its entries `lanes` at a time.
    #[must_use]
    pub fn row_groups(&self, id: RowSetId, order: Order, at_once: u32, lanes: u32) -> RowGroups {
        let id = self.known(id);
        self.answers.row_groups.get((id, order, at_once, lanes), || {
            if at_once > 0 && at_once.is_multiple_of(THIN_SLICE) {
                let longest = self.longest_rows(id, order, at_once);
                return RowGroups::with_longest(longest.iter().map(|&row| row as u64), lanes);
            }
            RowGroups::of(&self.ordered(id, order), self.pattern.offsets, at_once, lanes)
        })
    }

    /// The chunks of a set's rows, of at most `most` entries each.
    #[must_use]
    pub fn chunks(&self, id: RowSetId, most: u32) -> Chunks {
        let id = self.known(id);
        self.answers.chunks.get((id, most), || {
            Chunks::of(self.rows(id).rows.iter().map(|row| self.row_len(row) as u64), most)
        })
    }

    /// Steps of groups of `at_once` chunks, when each chunk takes its entries by fours, `lanes` of
    /// them at a time; estimated from evenly spaced runs of rows where there are many.
    #[must_use]
    pub fn chunk_groups(
        &self,
        id: RowSetId,
        order: Order,
        most: u32,
        at_once: u32,
        lanes: u32,
    ) -> RowGroups {
        let id = self.known(id);
        self.answers.chunk_groups.get((id, order, most, at_once, lanes), || {
            let (lanes, at_once, four) = (lanes.max(1), at_once.max(1), u64::from(FOUR));
            let runs = self.answers.chunk_runs.get((id, order, most), || {
                Arc::new(ChunkRuns::of(&self.ordered(id, order), self.pattern.offsets, most))
            });
            let (seen, all) = (runs.groups(at_once, lanes).steps, self.chunks(id, most));
            let groups = all.chunks.div_ceil(u64::from(at_once));
            let scaled = u128::from(seen) * u128::from(all.slots) / u128::from(runs.slots().max(1));
            let steps = if runs.are_all() { seen } else { scaled as u64 };
            let longest = (self.rows(id).longest as u64).min(u64::from(most)).div_ceil(four);
            RowGroups { groups, steps, longest: longest.div_ceil(lanes.into()) }
        })
    }
}

/// The largest of some distances; where one exceeds what any coding stores, the first such.
fn largest_coded(distances: impl Iterator<Item = u64>) -> u64 {
    let mut largest = 0;
    for distance in distances {
        if distance > MOST_CODED {
            return distance;
        }
        largest = largest.max(distance);
    }
    largest
}

/// Blocks and entries counted so far.
#[derive(Default)]
struct Tally {
    blocks: u64,
    entries: u64,
}

impl Features {
    /// The features of a matrix.
    ///
    /// [`StructureEmbedding::new`] gives them together with the density grids and the embedded
    /// positions.
    #[must_use]
    pub fn new<T: Scalar>(matrix: CsrView<'_, T>) -> Self {
        MatrixStats::new(matrix).features()
    }
}

impl StructureEmbedding {
    /// Embeds a matrix; its values do not matter. The same matrix gives the same embedding, bit for
    /// bit.
    #[must_use]
    pub fn new<T: Scalar>(matrix: CsrView<'_, T>, config: &EmbeddingConfig) -> Self {
        MatrixStats::new(matrix).embedding(config)
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::matrix::generate;

    #[test]
    fn a_name_from_other_statistics_is_no_rows() {
        let matrix = generate::rmat(7, 8, 1);
        let (known, unknown) = [(); 2].map(|()| MatrixStats::new(matrix.view())).into();
        let rule = SplitRule::Length { threshold: 8 };
        let (low, _) = known.split(RowSetId::ALL, rule).unwrap();
        assert!(!known.rows(low).rows.is_empty());
        let order = Order::Sort { window: 32 };
        assert!(unknown.rows(low).rows.is_empty() && unknown.ordered(low, order).is_empty());
        assert_eq!(unknown.split(low, rule), None);
        assert_eq!(unknown.split(low, SplitRule::Nonzeros { eighths: 3 }), None);
        assert_eq!((unknown.span(low, order, 32, 1), unknown.tile_span(low, order, 64)), (0, 0));
        assert_eq!((unknown.slice_slots(low, order, 32), unknown.diagonals(low)), (0, Some(0)));
        assert_eq!(
            (
                unknown.blocks(low, BlockShape::square(4)),
                unknown.row_groups(low, order, 8, 2).groups
            ),
            (0, 0)
        );
        // What was asked too early does not stick.
        assert_eq!(unknown.split(RowSetId::ALL, rule).unwrap().0, low);
        assert_eq!(unknown.ordered(low, order), known.ordered(low, order));
        assert_eq!(unknown.slice_slots(low, order, 32), known.slice_slots(low, order, 32));
        assert_eq!(unknown.diagonals(low), known.diagonals(low));
    }

    #[test]
    fn what_was_computed_is_computed_once_for_all_statistics_of_a_matrix() {
        let matrix = generate::rmat(7, 8, 1);
        let (order, rule) = (Order::Sort { window: 32 }, SplitRule::Length { threshold: 8 });
        let first = MatrixStats::new(matrix.view());
        let (low, _) = first.split(RowSetId::ALL, rule).unwrap();
        let (rows, answers) = (first.ordered(low, order), first.answers());
        drop(first);
        let again = MatrixStats::again(matrix.view(), Arc::clone(&answers));
        assert_eq!(again.split(RowSetId::ALL, rule).unwrap().0, low);
        assert!(Arc::ptr_eq(&again.ordered(low, order), &rows));
        // Another matrix has nothing of them.
        let other = generate::rmat(6, 8, 1);
        let stats = MatrixStats::again(other.view(), answers);
        assert!(stats.ordered(low, order).is_empty());
        assert_eq!(stats.features(), MatrixStats::new(other.view()).features());
    }

    #[test]
    fn threads_share_statistics_and_agree() {
        fn shared<T: Send + Sync>(value: T) -> T {
            value
        }
        let matrix = generate::rmat(9, 8, 1);
        let stats = shared(MatrixStats::new(matrix.view()));
        let ask = || {
            let rule = SplitRule::Length { threshold: 8 };
            let (low, high) = stats.split(RowSetId::ALL, rule).unwrap();
            let order = Order::Sort { window: 32 };
            let slots = [low, high].map(|id| stats.slice_slots(id, order, 32));
            (low, high, slots, stats.blocks(low, BlockShape::square(2)), stats.features())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), ask());
            }
        });
    }
}
