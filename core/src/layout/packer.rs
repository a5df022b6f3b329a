//! Packing one matrix as many programs say.
//!
//! Programs that are tried for a matrix differ in what threads do more often than in what is
//! stored. A [`Packer`] keeps the parts that it stored last by all that decides their arrays: the
//! splits that lead to their rows, the order of these, and the layout's
//! [`storage`](LayoutModule::storage). Arrays are shared, so that a part that is there already
//! takes neither time nor memory.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::array::{Array, ArrayData};
use super::layout_module::LayoutModule;
use super::pack::{MOST_SHARED, PackError, PartLaunch, PartSource, StoredPart};
use super::packed::{LinearGeometry, Packed, PackedPart};
use super::registry::{Layout, Node, Part, Program, each_layout};
use crate::matrix::{CsrView, Scalar, tasks};
use crate::memo::{Once, Shared};
use crate::structure::{Order, Rows, SplitRule, Table};
use crate::syntax::ValueCoding;
use crate::task::{Task, Values};

/// Bytes of parts that are kept, at most, or twice those of the matrix where these are more: who
/// makes several kernels of it has room for them.
const KEPT_BYTES: usize = 512 << 20;

#[cfg(all(test, feature = "std"))]
std::thread_local! {
    static PACKINGS: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

/// How often this thread has packed a matrix as a program says.
#[cfg(all(test, feature = "std"))]
pub(crate) fn packings() -> usize {
    PACKINGS.get()
}

/// Packs a matrix as a program says. Arrays that are the matrix's own are shared with it. With the
/// `std` feature, parts are packed in parallel, and so are the columns and the values of a part.
///
/// # Errors
/// When the program does not fit the matrix. A program decoded under
/// [`crate::language::Mask::legal`] with the statistics of this matrix fits, unless the matrix
/// needs more blocks than CUDA launches (10⁸ rows and more).
pub fn pack<T: Scalar>(matrix: CsrView<'_, T>, program: &Program) -> Result<Packed, PackError> {
    let packer = Packer { most_kept: 0, ..Packer::new(matrix, &|| Duration::ZERO) };
    Ok(packer.pack(program)?.packed)
}

/// Packs one matrix as programs say. Programs that store a part alike share its arrays.
///
/// With `std`, threads may share it; two that need a part at once may both store it.
pub struct Packer<'a, T> {
    matrix: CsrView<'a, T>,
    clock: &'a (dyn Fn() -> Duration + Sync),
    table: Once<Option<Table>>,
    kept: Shared<Kept>,
    most_kept: usize,
}

/// What became of a matrix.
#[derive(Debug)]
pub struct Packing {
    /// The matrix, as the program says.
    pub packed: Packed,
    /// How long that takes: parts that were stored before count as if they were stored now.
    pub time: Duration,
}

/// All that decides the arrays of a part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PartKey {
    /// The splits that lead to its rows, each with whether they are on the high side.
    splits: Vec<(SplitRule, bool)>,
    order: Order,
    storage: Layout,
    task: Task,
    /// Threads of a block; 0 for layouts that do not store by them.
    block: u32,
}

/// A part, and how long it took to find its rows and store them.
type Timed = (Arc<StoredPart>, Duration);

impl<'a, T: Scalar> Packer<'a, T> {
    /// A packer that has stored nothing yet; `clock` tells the time since some moment.
    pub fn new(matrix: CsrView<'a, T>, clock: &'a (dyn Fn() -> Duration + Sync)) -> Self {
        let own = matrix.nnz().saturating_mul(size_of::<u32>() + size_of::<T>());
        Self {
            matrix,
            clock,
            table: Once::new(),
            kept: Shared::new(Kept::default()),
            most_kept: own.saturating_mul(2).max(KEPT_BYTES),
        }
    }

    /// What it packs.
    #[must_use]
    pub fn matrix(&self) -> CsrView<'a, T> {
        self.matrix
    }

    /// Packs the matrix: the same as [`pack`] gives.
    ///
    /// # Errors
    /// As [`pack`].
    pub fn pack(&self, program: &Program) -> Result<Packing, PackError> {
        #[cfg(all(test, feature = "std"))]
        PACKINGS.set(PACKINGS.get() + 1);
        let start = (self.clock)();
        let task = program.task;
        if task.precision.matrix() != T::DTYPE {
            let program = task.precision.matrix();
            return Err(PackError::Dtype { program, matrix: T::DTYPE });
        }
        let parts = program.parts();
        let mut codings = parts.iter().map(|part| part.layout.access().values);
        let coded = codings.find(|&coding| coding != ValueCoding::Plain);
        if let (Values::Variable, Some(coding)) = (task.values, coded) {
            return Err(PackError::DependsOnValues { coding });
        }
        let is_coded = coded.is_some();

        let mut keys = Vec::new();
        part_keys(&program.body, (task, program.block.threads()), &mut Vec::new(), &mut keys);
        let known = keys.iter().map(|key| self.kept.with(|kept| kept.get(key)));
        let known: Vec<Option<Timed>> = known.collect();
        // Parts are stored at once.
        let spared = known.iter().flatten().map(|&(_, time)| time).max().unwrap_or_default();
        let stored = if known.iter().all(Option::is_some) {
            known.into_iter().flatten().map(|(part, _)| part).collect()
        } else {
            self.store_missing(&program.body, keys, known, is_coded)?
        };
        let packed = assemble(program, &parts, stored, (self.matrix.rows(), self.matrix.cols()))?;
        Ok(Packing { packed, time: (self.clock)().saturating_sub(start) + spared })
    }

    /// Stores what is not known of some parts, and keeps it.
    fn store_missing(
        &self,
        body: &Node,
        keys: Vec<PartKey>,
        known: Vec<Option<Timed>>,
        is_coded: bool,
    ) -> Result<Vec<Arc<StoredPart>>, PackError> {
        let Self { matrix, clock, .. } = *self;
        let start = clock();
        let mut rows = Vec::new();
        assign(body, &Rows::all(matrix.rows()), matrix, &mut rows);
        let rows_time = clock().saturating_sub(start);
        let table = || self.table.get_or_init(|| Table::of(matrix.values())).as_ref();
        let table = if is_coded { table() } else { None };

        let store = |((key, known), rows): ((PartKey, Option<Timed>), Rows)| {
            if let Some((part, _)) = known {
                return Ok((part, None));
            }
            let start = clock();
            let (task, block) = (key.task, key.block);
            let source = PartSource { matrix, rows: &rows, table, task, block };
            let own = each_layout!(&key.storage, layout => layout.store(&source))?;
            let listed = match &rows {
                Rows::List(list) => {
                    Some(Array::decoding("rows", ArrayData::U32(list.clone().into())))
                }
                Rows::Range { .. } => None,
            };
            let arrays = listed.into_iter().chain(own).collect();
            let part = Arc::new(StoredPart { nnz: rows.nnz(matrix.offsets()), rows, arrays });
            let time = rows_time + clock().saturating_sub(start);
            Ok((part, Some((key, time))))
        };
        // Where several parts do not fit, what is said is of the first, however many threads there
        // are.
        let parts = keys.into_iter().zip(known).zip(rows).collect();
        let stored: Result<Vec<_>, PackError> = tasks::map(parts, store).into_iter().collect();
        let keep = |(part, new): (Arc<StoredPart>, Option<(PartKey, Duration)>)| {
            if let Some((key, time)) = new {
                let timed = (Arc::clone(&part), time);
                self.kept.with(|kept| kept.keep(key, timed, self.most_kept));
            }
            part
        };
        Ok(stored?.into_iter().map(keep).collect())
    }
}

/// The keys of a program's parts, in the order of its text.
fn part_keys(
    node: &Node,
    (task, block): (Task, u32),
    splits: &mut Vec<(SplitRule, bool)>,
    keys: &mut Vec<PartKey>,
) {
    match node {
        Node::Split { rule, low, high } => {
            for (side, is_high) in [(low, false), (high, true)] {
                splits.push((*rule, is_high));
                part_keys(side, (task, block), splits, keys);
                splits.pop();
            }
        }
        Node::Part(Part { order, layout }) => {
            let block = if layout.stores_by_block() { block } else { 0 };
            let (splits, storage) = (splits.clone(), layout.storage());
            keys.push(PartKey { splits, order: *order, storage, task, block });
        }
    }
}

/// Gives each part its rows, in the order of the program's text.
fn assign<T: Scalar>(node: &Node, rows: &Rows, matrix: CsrView<'_, T>, assigned: &mut Vec<Rows>) {
    match node {
        Node::Split { rule, low, high } => {
            let (low_rows, high_rows) = rows.split(*rule, matrix.offsets());
            assign(low, &low_rows, matrix, assigned);
            assign(high, &high_rows, matrix, assigned);
        }
        Node::Part(part) => assigned.push(rows.ordered(part.order, matrix.offsets())),
    }
}

/// Parts that are stored, as one launch computes with them.
fn assemble(
    program: &Program,
    parts: &[&Part],
    stored: Vec<Arc<StoredPart>>,
    (rows, cols): (usize, usize),
) -> Result<Packed, PackError> {
    let threads = program.block.threads();
    let launch = |(part, stored): (&&Part, &Arc<StoredPart>)| {
        each_layout!(&part.layout, layout => {
            layout.launch(stored, program.task, threads)
        })
    };
    let launches = parts.iter().zip(&stored).map(launch);
    let launches = launches.collect::<Result<Vec<PartLaunch>, PackError>>()?;

    let mut packed = Vec::new();
    let (mut grid, mut shared) = (0u64, 0);
    // The high sides of splits come first: the longest rows are not to be the last to start.
    for ((part, stored), launch) in parts.iter().zip(stored).zip(launches).rev() {
        let first_block = grid;
        grid += launch.blocks;
        // CUDA's limit, below which all block numbers fit in 32 bits.
        if i32::try_from(grid).is_err() {
            return Err(PackError::Grid { blocks: grid });
        }
        // The kernel holds parts without rows as well: it is the same for all matrices.
        let call = each_layout!(&part.layout, layout => layout.call(program.task, threads));
        shared = shared.max(call.shared_bytes);
        let StoredPart { rows, nnz, mut arrays } = Arc::unwrap_or_clone(stored);
        arrays.extend(launch.workspace);
        packed.push(PackedPart {
            layout: part.layout,
            rows,
            nnz,
            first_block: first_block as u32,
            blocks: launch.blocks as u32,
            arrays,
        });
    }
    packed.reverse();
    if shared > MOST_SHARED {
        return Err(PackError::SharedMemory { bytes: shared, most: MOST_SHARED });
    }
    // A CUDA grid has at least one block; without rows it finds nothing to do.
    let geometry = LinearGeometry { grid: grid.max(1) as u32, block: threads, shared };
    Ok(Packed { program: program.clone(), rows, cols, parts: packed, geometry })
}

/// The parts that were asked for last.
#[derive(Default)]
struct Kept {
    parts: BTreeMap<PartKey, KeptPart>,
    bytes: usize,
    /// Goes up with every use of a part.
    uses: u64,
}

struct KeptPart {
    part: Timed,
    bytes: usize,
    last_use: u64,
}

impl Kept {
    fn get(&mut self, key: &PartKey) -> Option<Timed> {
        let kept = self.parts.get_mut(key)?;
        self.uses += 1;
        kept.last_use = self.uses;
        Some(kept.part.clone())
    }

    /// Keeps a part, in place of those that were not used for longest.
    fn keep(&mut self, key: PartKey, part: Timed, most: usize) {
        let bytes = part.0.bytes();
        if bytes > most || self.parts.contains_key(&key) {
            return;
        }
        while self.bytes + bytes > most {
            let oldest = self.parts.iter().min_by_key(|(_, kept)| kept.last_use);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            self.bytes -= self.parts.remove(&oldest).map_or(0, |kept| kept.bytes);
        }
        self.uses += 1;
        self.bytes += bytes;
        self.parts.insert(key, KeptPart { part, bytes, last_use: self.uses });
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::syntax::Token;
    use crate::task::{Dtype, Operation};

    fn key(block: u32) -> PartKey {
        let words = ["keep", "csr", "u32", "plain", "cached", "1", "1", "1"];
        let tokens = words.map(|word| word.parse::<Token>().unwrap());
        let Part { order, layout } = Node::read_part(&tokens).unwrap();
        let task = Task::new(Operation::SpMV, Dtype::F32);
        PartKey { splits: vec![], order, storage: layout.storage(), task, block }
    }

    fn part(numbers: usize) -> Timed {
        let array = Array::matrix("numbers", ArrayData::U32(vec![0; numbers].into()));
        let part = StoredPart { rows: Rows::all(0), nnz: 0, arrays: vec![array] };
        (Arc::new(part), Duration::ZERO)
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let mut kept = Kept::default();
        for block in [1, 2, 3] {
            kept.keep(key(block), part(10), 120);
        }
        assert!(kept.get(&key(1)).is_some());
        kept.keep(key(4), part(15), 120);
        let there = [1, 2, 3, 4].map(|block| kept.get(&key(block)).is_some());
        assert_eq!((there, kept.bytes), ([true, false, false, true], 100));
        // One that is too large, and one that is there.
        kept.keep(key(5), part(31), 120);
        kept.keep(key(4), part(1), 120);
        assert_eq!((kept.parts.len(), kept.bytes), (2, 100));
    }
}
