use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;

use super::grammar::{IndexUnit, Site};
use super::{
    IndexCoding, Node, Order, Part, Program, RowSet, RowSetId, Rows, SplitRule, ValueCoding,
    each_layout,
};
use crate::layout::{
    Cost, PackError, PartCost, PartTime, Table, WarpSteps, block_columns, diagonals, row_ends,
    tile_rows,
};
use crate::matrix::{CsrView, OffsetsView, Scalar};
use crate::task::Task;

/// Most diagonals of a `dia` part.
pub const MAX_DIAGONALS: usize = 64;
/// Padding that a layout may hold.
pub const MAX_PADDING: PaddingLimit = PaddingLimit { factor: 4, free: 4096 };
/// Rows of blocks, and entries, whose fill is counted exactly; larger sets are sampled.
const BLOCK_ROW_SAMPLES: usize = 2048;
const BLOCK_ENTRY_SAMPLES: usize = 1 << 17;

/// How many slots a padded layout may store for its entries: `factor · nnz + free`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaddingLimit {
    /// Slots per entry.
    pub factor: u64,
    /// Slots that are always allowed, for tiny matrices.
    pub free: u64,
}

impl PaddingLimit {
    /// True when so many slots may be stored.
    #[must_use]
    pub fn bears(self, slots: u64, nnz: usize) -> bool {
        slots <= self.factor * nnz as u64 + self.free
    }

    /// As [`PaddingLimit::bears`] for packing, with twice the room: the mask goes by a sample of
    /// the blocks, and packing by all of them.
    pub(crate) fn check(
        self,
        layout: &'static str,
        slots: u64,
        nnz: usize,
    ) -> Result<(), PackError> {
        let room = Self { factor: 2 * self.factor, free: 2 * self.free };
        if room.bears(slots, nnz) { Ok(()) } else { Err(PackError::Padding { layout, slots, nnz }) }
    }
}

/// What the grammar, the cost model and the policies ask about one matrix, computed when first
/// asked and remembered.
pub struct Facts<'a> {
    task: Task,
    cols: usize,
    offsets: OffsetsView<'a>,
    columns: &'a [u32],
    /// First and last column of each row; (1, 0) when it is empty.
    ends: Vec<(u32, u32)>,
    table: Option<Table>,
    sets: RefCell<Vec<Rc<RowSet>>>,
    memory: RefCell<BTreeMap<Question, Answer>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    Split(RowSetId, SplitRule),
    Ordered(RowSetId, Order),
    Span(RowSetId, Order, IndexUnit),
    SliceSlots(RowSetId, Order, u32),
    Diagonals(RowSetId),
    Blocks(RowSetId, u32),
    RowSteps(RowSetId, Order, u32, u32),
}

#[derive(Clone)]
enum Answer {
    Split(RowSetId, RowSetId),
    Ordered(Rc<Rows>),
    Number(u64),
    Diagonals(Option<usize>),
    Steps(WarpSteps),
}

impl fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.offsets.len() - 1;
        write!(f, "Facts({}, {rows} × {}, {} entries)", self.task, self.cols, self.columns.len())
    }
}

/// Blocks and entries counted so far.
#[derive(Default)]
struct Tally {
    blocks: u64,
    entries: u64,
}

fn ends(columns: &[u32]) -> (u32, u32) {
    match (columns.first(), columns.last()) {
        (Some(&first), Some(&last)) => (first, last),
        _ => (1, 0),
    }
}

impl<'a> Facts<'a> {
    /// The facts of a matrix for a task, whose element type should be the matrix's.
    #[must_use]
    pub fn new<T: Scalar>(matrix: CsrView<'a, T>, task: Task) -> Self {
        let offsets = matrix.offsets();
        let all = RowSet::new(Rows::Range { first: 0, count: matrix.rows() as u32 }, offsets);
        Self {
            task,
            cols: matrix.cols(),
            offsets,
            columns: matrix.columns(),
            ends: (0..matrix.rows()).map(|row| ends(matrix.row(row).0)).collect(),
            table: Table::of(matrix.values()),
            sets: RefCell::new(alloc::vec![Rc::new(all)]),
            memory: RefCell::default(),
        }
    }

    /// The task that programs are for.
    #[must_use]
    pub fn task(&self) -> Task {
        self.task
    }

    /// A set of rows.
    #[must_use]
    pub fn rows(&self, id: RowSetId) -> Rc<RowSet> {
        self.sets.borrow()[id.0 as usize].clone()
    }

    /// True when a split leaves rows on both sides; cheaper than [`Facts::split`].
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
        let answer = self.remember(Question::Split(id, rule), || {
            let (low, high) = self.rows(id).rows.split(rule, self.offsets);
            let mut sets = self.sets.borrow_mut();
            let first = sets.len() as u32;
            sets.push(Rc::new(RowSet::new(low, self.offsets)));
            sets.push(Rc::new(RowSet::new(high, self.offsets)));
            Answer::Split(RowSetId(first), RowSetId(first + 1))
        });
        match answer {
            Answer::Split(low, high) => Some((low, high)),
            _ => None,
        }
    }

    fn remember(&self, question: Question, compute: impl FnOnce() -> Answer) -> Answer {
        if let Some(answer) = self.memory.borrow().get(&question) {
            return answer.clone();
        }
        let answer = compute();
        self.memory.borrow_mut().insert(question, answer.clone());
        answer
    }

    fn number(&self, question: Question, compute: impl FnOnce() -> u64) -> u64 {
        match self.remember(question, || Answer::Number(compute())) {
            Answer::Number(n) => n,
            _ => 0,
        }
    }

    fn ordered(&self, site: Site) -> Rc<Rows> {
        let compute = || {
            Answer::Ordered(Rc::new(self.rows(site.rows).rows.ordered(site.order, self.offsets)))
        };
        match self.remember(Question::Ordered(site.rows, site.order), compute) {
            Answer::Ordered(rows) => rows,
            _ => Rc::new(Rows::Range { first: 0, count: 0 }),
        }
    }

    fn row_len(&self, row: usize) -> usize {
        self.offsets.at(row + 1) - self.offsets.at(row)
    }

    fn row(&self, row: usize) -> &'a [u32] {
        &self.columns[self.offsets.at(row)..self.offsets.at(row + 1)]
    }

    /// True when the part needs a list of its rows.
    pub(crate) fn is_listed(&self, site: Site) -> bool {
        matches!(*self.ordered(site), Rows::List(_))
    }

    pub(crate) fn index_fits(&self, site: Site, unit: IndexUnit, coding: IndexCoding) -> bool {
        let side = if let IndexUnit::BlockRows(side) = unit { side as usize } else { 1 };
        let short = self.cols.div_ceil(side) <= 1 << 16;
        match coding {
            IndexCoding::U32 => true,
            IndexCoding::U16 => short,
            // Where u16 fits as it is, a base would only cost.
            IndexCoding::D16 => !short && self.span(site, unit) <= coding.max(),
            IndexCoding::D8 => self.span(site, unit) <= coding.max(),
        }
    }

    /// Largest distance between columns of a unit; an upper bound for tiles.
    fn span(&self, site: Site, unit: IndexUnit) -> u64 {
        self.number(Question::Span(site.rows, site.order, unit), || {
            let rows = self.ordered(site);
            match unit {
                IndexUnit::Rows(height) => self.chunk_span(&rows, height as usize, 1),
                IndexUnit::BlockRows(side) => self.chunk_span(&rows, side as usize, side),
                IndexUnit::Tile(items) => self.tile_span(&rows, items),
            }
        })
    }

    fn chunk_span(&self, rows: &Rows, height: usize, side: u32) -> u64 {
        let spans = (0..rows.len()).step_by(height).map(|first| {
            let chunk = first..rows.len().min(first + height);
            self.span_of(chunk.map(|position| rows.at(position)), side)
        });
        spans.max().unwrap_or(0)
    }

    fn span_of(&self, rows: impl Iterator<Item = usize>, side: u32) -> u64 {
        let ends = rows.map(|row| self.ends[row]).filter(|(first, last)| first <= last);
        let bounds = ends.fold(None, |bounds: Option<(u32, u32)>, (first, last)| {
            let (low, high) = bounds.unwrap_or((first, last));
            Some((low.min(first), high.max(last)))
        });
        bounds.map_or(0, |(low, high)| u64::from(high / side - low / side))
    }

    fn tile_span(&self, rows: &Rows, items: u32) -> u64 {
        let ends = row_ends(rows.iter().map(|row| self.row_len(row) as u64));
        let starts = tile_rows(&ends, items);
        let spans = starts.windows(2).map(|tile| {
            // The last row of a tile may go on in the next one.
            let touched = tile[0] as usize..rows.len().min(tile[1] as usize + 1);
            self.span_of(touched.map(|position| rows.at(position)), 1)
        });
        spans.max().unwrap_or(0)
    }

    pub(crate) fn values_fit(&self, coding: ValueCoding, padded: bool) -> bool {
        match (coding, &self.table) {
            (ValueCoding::Plain, _) => true,
            (ValueCoding::Constant, table) => table.as_ref().is_some_and(|t| t.len() == 1),
            (ValueCoding::Dictionary, Some(table)) => {
                // One value without padding is `constant`.
                table.len() > usize::from(!padded) && (!padded || table.has_code_for_padding())
            }
            (ValueCoding::Dictionary, None) => false,
        }
    }

    /// Slots of SELL slices of a height.
    pub(crate) fn slice_slots(&self, site: Site, height: u32) -> u64 {
        self.number(Question::SliceSlots(site.rows, site.order, height), || {
            let rows = self.ordered(site);
            let height = height as usize;
            let widths = (0..rows.len()).step_by(height).map(|first| {
                let slice = first..rows.len().min(first + height);
                slice.map(|position| self.row_len(rows.at(position))).max().unwrap_or(0)
            });
            widths.map(|width| (width * height) as u64).sum()
        })
    }

    /// Diagonals with an entry; `None` when there are more than [`MAX_DIAGONALS`], or the matrix is
    /// too large for 32-bit distances.
    #[must_use]
    pub fn diagonals(&self, id: RowSetId) -> Option<usize> {
        let compute = || {
            if i32::try_from(self.cols.max(self.offsets.len())).is_err() {
                return Answer::Diagonals(None);
            }
            let set = self.rows(id);
            let found = diagonals(set.rows.iter().map(|row| (row, self.row(row))));
            Answer::Diagonals(found.ok().map(|found| found.len()))
        };
        match self.remember(Question::Diagonals(id), compute) {
            Answer::Diagonals(count) => count,
            _ => None,
        }
    }

    /// Blocks of `side × side` with an entry, estimated from evenly spaced rows of blocks when
    /// there are many.
    #[must_use]
    pub fn blocks(&self, id: RowSetId, side: u32) -> u64 {
        self.number(Question::Blocks(id, side), || {
            let set = self.rows(id);
            // Most matrices have no blocks at all, which a glance tells.
            let glance = self.sampled_blocks(&set, side, 32);
            let hopeless = glance * u64::from(side * side)
                > 2 * (MAX_PADDING.factor * set.nnz as u64 + MAX_PADDING.free);
            if hopeless { glance } else { self.sampled_blocks(&set, side, 1) }
        })
    }

    /// Heavy rows of blocks are counted one by one, the others by a sample of them: a few rows can
    /// hold most of the entries, and no sample would find them.
    fn sampled_blocks(&self, set: &RowSet, side: u32, coarseness: usize) -> u64 {
        let rows = &set.rows;
        let block_rows = rows.len().div_ceil(side as usize);
        let by_rows = block_rows * coarseness / BLOCK_ROW_SAMPLES;
        let by_entries = set.nnz * coarseness / BLOCK_ENTRY_SAMPLES;
        let step = by_rows.max(by_entries).max(1);
        let heavy = if step == 1 { 0 } else { set.nnz * coarseness / BLOCK_ROW_SAMPLES };
        let (mut exact, mut light, mut sampled) = (0u64, Tally::default(), Tally::default());
        let mut here = Vec::new();
        for block_row in 0..block_rows {
            let first = block_row * side as usize;
            let block = first..rows.len().min(first + side as usize);
            let entries: usize = block.clone().map(|p| self.row_len(rows.at(p))).sum();
            // Anywhere within the step, lest rows that repeat with it pass for all rows.
            let scattered = (block_row as u64 / step as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let chosen = block_row % step == (scattered >> 32) as usize % step;
            light.entries += if entries > heavy { 0 } else { entries as u64 };
            if entries <= heavy && !chosen {
                continue;
            }
            block_columns(block.map(|p| self.row(rows.at(p))), side, &mut here);
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

    /// Steps of warps in which `lanes × stride` threads share each row.
    pub(crate) fn row_steps(&self, site: Site, lanes: u32, stride: u32) -> WarpSteps {
        let compute = || {
            let rows = self.ordered(site);
            let at_once = (32 / (lanes * stride)).max(1) as usize;
            let (mut warps, mut total, mut longest) = (0, 0, 0);
            for first in (0..rows.len()).step_by(at_once) {
                let warp = first..rows.len().min(first + at_once);
                let lens = warp.map(|position| self.row_len(rows.at(position)) as u64);
                let steps = lens.max().unwrap_or(0).div_ceil(u64::from(lanes));
                // Offsets, the reduction and the store cost about two steps more.
                warps += 1;
                total += steps + 2;
                longest = longest.max(steps);
            }
            Answer::Steps(WarpSteps { warps, total, longest })
        };
        match self.remember(Question::RowSteps(site.rows, site.order, lanes, stride), compute) {
            Answer::Steps(steps) => steps,
            _ => WarpSteps { warps: 0, total: 0, longest: 0 },
        }
    }

    /// Predicted cost of a part at its site.
    #[must_use]
    pub fn part_cost(&self, site: Site, part: &Part) -> PartCost {
        let cost = each_layout!(&part.layout, layout => layout.cost(site, self));
        if self.is_listed(site) {
            cost.listed(self.rows(site.rows).rows.len() as u64)
        } else {
            cost
        }
    }

    /// Predicted cost of a program; parts without rows cost nothing.
    #[must_use]
    pub fn cost(&self, program: &Program) -> Cost {
        let columns = u64::from(self.task.operation.columns());
        let rows = self.offsets.len() as u64 - 1;
        let element = self.task.precision.dense().size() as u64;
        let mut cost = Cost {
            matrix_bytes: 0,
            dense_bytes: (rows + self.cols as u64) * columns * element,
            flops: 2 * self.columns.len() as u64 * columns,
            seconds: 0.0,
        };
        let block = program.block.threads();
        cost.seconds = self.node_time(&program.body, RowSetId::ALL, block, &mut cost).seconds();
        cost
    }

    fn node_time(&self, node: &Node, rows: RowSetId, block: u32, cost: &mut Cost) -> PartTime {
        match node {
            Node::Split { rule, low, high } => match self.split(rows, *rule) {
                Some((low_rows, high_rows)) => {
                    let low = self.node_time(low, low_rows, block, cost);
                    low.beside(self.node_time(high, high_rows, block, cost))
                }
                // All rows are on one side, and the other has no blocks.
                None => {
                    let (first, _) = self.rows(rows).rows.split(*rule, self.offsets);
                    let side = if first.is_empty() { high } else { low };
                    self.node_time(side, rows, block, cost)
                }
            },
            Node::Part(part) => {
                let site = Site { block, rows, order: part.order };
                let part = self.part_cost(site, part);
                cost.matrix_bytes += part.matrix_bytes;
                part.time()
            }
        }
    }

    /// Bytes of the matrix as plain CSR with 32-bit columns: what generic kernels read.
    #[must_use]
    pub fn csr_bytes(&self) -> u64 {
        let nnz = self.columns.len() as u64;
        let offset = if nnz < u64::from(u32::MAX) { 4 } else { 8 };
        nnz * (4 + self.task.precision.matrix().size() as u64) + self.offsets.len() as u64 * offset
    }
}
