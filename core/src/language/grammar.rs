//! The grammar: at each open [`Slot`], which tokens may come and which slots they open.
//!
//! A program is a leftmost derivation, so a decoder's whole state is the stack of open slots. The
//! slots carry what a choice depends on (the rows at hand, their order, the threads of a block), so
//! that independent choices stay independent: the number of completions of a stack is the product
//! over its slots, which makes counting and even sampling exact.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::{
    BlockSize, Cache, IndexCoding, Order, Program, ProgramError, RowSetId, SplitRule, Token,
    ValueCoding, Word,
};
use crate::layout::{bcsr, csr, dia, merge, sell};
use crate::structure::MatrixStats;
use crate::task::{Operation, Task};

/// Splits may nest this deep: at most four parts share a launch.
pub const MAX_SPLIT_DEPTH: u8 = 2;
/// Windows of `sort`.
const WINDOWS: [u32; 5] = [32, 256, 2048, 16384, 131_072];
/// Thresholds of `split-length`.
const THRESHOLDS: [u32; 12] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 2048, 8192];

/// Which tokens are offered: all that the language knows, or those valid for one matrix.
#[derive(Clone, Copy, Debug)]
pub struct Mask<'f> {
    task: Task,
    stats: Option<&'f MatrixStats<'f>>,
}

impl<'f> Mask<'f> {
    /// The whole language, also what no matrix or this one cannot use.
    #[must_use]
    pub fn free(task: Task) -> Self {
        Self { task, stats: None }
    }

    /// Only programs that are valid for the matrix of `stats`. Where its values may change, those are
    /// the same for every matrix of its pattern.
    #[must_use]
    pub fn legal(stats: &'f MatrixStats<'f>, task: Task) -> Self {
        Self { task, stats: Some(stats) }
    }

    /// The task that programs are for.
    #[must_use]
    pub fn task(&self) -> Task {
        self.task
    }

    /// True when decoding freely or when the matrix allows it.
    pub(crate) fn allows(&self, test: impl FnOnce(&MatrixStats<'f>) -> bool) -> bool {
        self.stats.is_none_or(test)
    }
}

/// Where a layout stands: what its fields may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// Threads of a block.
    pub block: u32,
    /// The rows.
    pub rows: RowSetId,
    /// Their order.
    pub order: Order,
}

/// Rows of entries that share the base column of relative indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexUnit {
    /// Groups of this many rows.
    Rows(u32),
    /// Groups of this many rows, columns counted in blocks of as many columns.
    BlockRows(u32),
    /// Merge tiles of this many items.
    Tile(u32),
}

/// An open choice of a derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// Threads of a block.
    Block,
    /// What happens to a set of rows.
    Rows {
        /// Threads of a block.
        block: u32,
        /// The rows.
        rows: RowSetId,
        /// Splits around it.
        depth: u8,
    },
    /// Threshold of `split-length`.
    Threshold {
        /// Threads of a block.
        block: u32,
        /// The rows to split.
        rows: RowSetId,
        /// Splits around it.
        depth: u8,
    },
    /// Share of `split-nonzeros`.
    Share {
        /// Threads of a block.
        block: u32,
        /// The rows to split.
        rows: RowSetId,
        /// Splits around it.
        depth: u8,
    },
    /// Window of `sort`.
    Window {
        /// Threads of a block.
        block: u32,
        /// The rows to sort.
        rows: RowSetId,
    },
    /// Layout of a part.
    Layout(Site),
    /// Rows of a SELL slice.
    SliceHeight(Site),
    /// Rows and columns of a BCSR block.
    BlockSide(Site),
    /// Items of a merge tile (see [`crate::layout::MergeLayout`]).
    TileItems(Site),
    /// Coding of column indices.
    Index(Site, IndexUnit),
    /// Coding of values; a padded layout needs a code for its empty slots.
    Values {
        /// True when the layout has empty slots.
        padded: bool,
    },
    /// Caching of the matrix arrays.
    Cache,
    /// Columns per thread.
    Vector,
    /// Threads per row.
    Lanes {
        /// Most threads of a warp.
        most: u32,
        /// Whether a block per row is offered.
        block: bool,
    },
    /// Unrolling of the loop over a row's entries.
    Unroll,
    /// Reduction within a merge tile.
    Reduction,
}

/// A token that may fill a slot, and the slots that it opens, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// The token.
    pub token: Token,
    /// Slots to fill next, first one first.
    pub opens: Vec<Slot>,
}

impl Alternative {
    pub(crate) fn word(word: Word, opens: Vec<Slot>) -> Self {
        Self { token: Token::Word(word), opens }
    }

    pub(crate) fn number(n: u32, opens: Vec<Slot>) -> Self {
        Self { token: Token::Number(n), opens }
    }

    pub(crate) fn leaf(token: Token) -> Self {
        Self { token, opens: Vec::new() }
    }
}

/// The tokens that may fill a slot. For a matrix there is always at least one.
#[must_use]
pub fn expand(slot: Slot, mask: Mask<'_>) -> Vec<Alternative> {
    match slot {
        Slot::Block => BlockSize::ALL
            .iter()
            .map(|size| {
                let block = size.threads();
                let body = Slot::Rows { block, rows: RowSetId::ALL, depth: 0 };
                Alternative::number(block, vec![body])
            })
            .collect(),
        Slot::Rows { block, rows, depth } => expand_rows(block, rows, depth, mask),
        Slot::Threshold { block, rows, depth } => THRESHOLDS
            .iter()
            .filter_map(|&threshold| {
                let rule = SplitRule::Length { threshold };
                Some(Alternative::number(threshold, sides(rule, block, rows, depth, mask)?))
            })
            .collect(),
        Slot::Share { block, rows, depth } => (1..8)
            .filter_map(|eighths| {
                let rule = SplitRule::Nonzeros { eighths };
                Some(Alternative::number(eighths, sides(rule, block, rows, depth, mask)?))
            })
            .collect(),
        Slot::Window { block, rows } => WINDOWS
            .iter()
            .filter(|&&window| {
                // A window of twice the rows sorts no better than one that just holds them.
                mask.allows(|stats| {
                    window == WINDOWS[0] || window as usize / 8 < stats.rows(rows).rows.len()
                })
            })
            .map(|&window| {
                let order = Order::Sort { window };
                Alternative::number(window, vec![Slot::Layout(Site { block, rows, order })])
            })
            .collect(),
        Slot::Layout(site) => [csr::open, sell::open, dia::open, bcsr::open, merge::open]
            .iter()
            .filter_map(|open| open(site, mask))
            .collect(),
        Slot::SliceHeight(site) => sell::heights(site, mask),
        Slot::BlockSide(site) => bcsr::sides(site, mask),
        Slot::TileItems(site) => merge::items(site, mask),
        Slot::Index(site, unit) => IndexCoding::ALL
            .iter()
            .filter(|&&coding| mask.index_fits(site, unit, coding))
            .map(|coding| Alternative::leaf(coding.token()))
            .collect(),
        Slot::Values { padded } => ValueCoding::ALL
            .iter()
            .filter(|&&coding| !(padded && coding == ValueCoding::Constant))
            .filter(|&&coding| mask.values_fit(coding, padded))
            .map(|coding| Alternative::leaf(coding.token()))
            .collect(),
        Slot::Cache => Cache::ALL.iter().map(|c| Alternative::leaf(c.token())).collect(),
        Slot::Vector => {
            vector_widths(mask.task).map(|n| Alternative::leaf(Token::Number(n))).collect()
        }
        Slot::Lanes { most, block } => {
            let threads = [1u32, 2, 4, 8, 16, 32].into_iter().filter(|&n| n <= most);
            let block = block.then_some(Token::Word(Word::Block));
            threads.map(Token::Number).chain(block).map(Alternative::leaf).collect()
        }
        Slot::Unroll => [1, 2, 4, 8].iter().map(|&n| Alternative::leaf(Token::Number(n))).collect(),
        Slot::Reduction => {
            // Products are staged in shared memory for one column only.
            let lanes: &[u32] = match mask.task.operation {
                Operation::SpMV => &[1, 2, 4, 8, 16, 32],
                Operation::SpMM { .. } => &[],
            };
            let lanes = lanes.iter().map(|&n| Token::Number(n));
            core::iter::once(Token::Word(Word::Scan)).chain(lanes).map(Alternative::leaf).collect()
        }
    }
}

/// Columns per thread whose loads are at most 16 bytes wide and stay aligned.
fn vector_widths(task: Task) -> impl Iterator<Item = u32> {
    let columns = task.operation.columns();
    let most = if task.operation == Operation::SpMV {
        1
    } else {
        16 / task.precision.dense().size() as u32
    };
    [1, 2, 4].into_iter().filter(move |&n| n <= most && columns.is_multiple_of(n))
}

fn expand_rows(block: u32, rows: RowSetId, depth: u8, mask: Mask<'_>) -> Vec<Alternative> {
    let layout = Slot::Layout(Site { block, rows, order: Order::Keep });
    let mut alternatives = vec![Alternative::word(Word::Keep, vec![layout])];
    if mask.allows(|stats| stats.rows(rows).shortest < stats.rows(rows).longest) {
        alternatives.push(Alternative::word(Word::Sort, vec![Slot::Window { block, rows }]));
    }
    if depth < MAX_SPLIT_DEPTH {
        let mut lengths = THRESHOLDS.iter().map(|&threshold| SplitRule::Length { threshold });
        if mask.allows(|stats| lengths.any(|rule| stats.splits(rows, rule))) {
            let slot = Slot::Threshold { block, rows, depth };
            alternatives.push(Alternative::word(Word::SplitLength, vec![slot]));
        }
        let mut shares = (1..8).map(|eighths| SplitRule::Nonzeros { eighths });
        if mask.allows(|stats| shares.any(|rule| stats.splits(rows, rule))) {
            let slot = Slot::Share { block, rows, depth };
            alternatives.push(Alternative::word(Word::SplitNonzeros, vec![slot]));
        }
    }
    alternatives
}

/// The programs of both sides of a split; `None` when a side has no rows.
fn sides(
    rule: SplitRule,
    block: u32,
    rows: RowSetId,
    depth: u8,
    mask: Mask<'_>,
) -> Option<Vec<Slot>> {
    let (low, high) = match mask.stats {
        Some(stats) => stats.split(rows, rule)?,
        None => (rows, rows),
    };
    let depth = depth + 1;
    Some(vec![Slot::Rows { block, rows: low, depth }, Slot::Rows { block, rows: high, depth }])
}

/// A program being written, leftmost slot first.
#[derive(Clone, Debug)]
pub struct Derivation<'f> {
    mask: Mask<'f>,
    open: Vec<Slot>,
    tokens: Vec<Token>,
}

impl<'f> Derivation<'f> {
    /// An empty program.
    #[must_use]
    pub fn start(mask: Mask<'f>) -> Self {
        Self { mask, open: vec![Slot::Block], tokens: Vec::new() }
    }

    /// The tokens so far.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// True when no slot is open.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.open.is_empty()
    }

    /// Slots still open, the next one last.
    #[must_use]
    pub fn open(&self) -> &[Slot] {
        &self.open
    }

    /// What may come next; empty when the program is complete.
    #[must_use]
    pub fn legal(&self) -> Vec<Alternative> {
        self.open.last().map(|&slot| expand(slot, self.mask)).unwrap_or_default()
    }

    /// Appends a token.
    ///
    /// # Errors
    /// When the token is not one of [`Derivation::legal`]; the derivation is unchanged.
    pub fn push(&mut self, token: Token) -> Result<(), ProgramError> {
        let position = self.tokens.len();
        if self.is_complete() {
            return Err(ProgramError::Trailing { position, found: token.to_string() });
        }
        let legal = self.legal();
        match legal.iter().find(|alternative| alternative.token == token) {
            Some(alternative) => {
                self.take(alternative);
                Ok(())
            }
            None => Err(ProgramError::Unexpected {
                position,
                found: token.to_string(),
                expected: one_of(&legal),
            }),
        }
    }

    /// Appends one of the alternatives of [`Derivation::legal`].
    pub(crate) fn take(&mut self, alternative: &Alternative) {
        self.open.pop();
        self.open.extend(alternative.opens.iter().rev());
        self.tokens.push(alternative.token);
    }

    /// The program, once complete.
    ///
    /// # Errors
    /// When slots are still open.
    pub fn finish(self) -> Result<Program, ProgramError> {
        let incomplete = || ProgramError::Incomplete {
            position: self.tokens.len(),
            expected: one_of(&self.legal()),
        };
        if !self.is_complete() {
            return Err(incomplete());
        }
        Program::build(self.mask.task, &self.tokens).ok_or_else(incomplete)
    }
}

fn one_of(alternatives: &[Alternative]) -> String {
    let mut text = String::new();
    for (i, alternative) in alternatives.iter().enumerate() {
        if i > 0 {
            text.push_str(if i + 1 == alternatives.len() { " or " } else { ", " });
        }
        text.push_str(&alternative.token.to_string());
    }
    text
}

/// Counts the programs under a mask, and samples them evenly.
#[derive(Debug)]
pub struct Space<'f> {
    mask: Mask<'f>,
    counts: BTreeMap<Slot, u128>,
}

impl<'f> Space<'f> {
    /// The space of programs under a mask.
    #[must_use]
    pub fn new(mask: Mask<'f>) -> Self {
        Self { mask, counts: BTreeMap::new() }
    }

    /// Number of programs; saturates at 2¹²⁸ − 1.
    pub fn count(&mut self) -> u128 {
        self.completions(Slot::Block)
    }

    fn completions(&mut self, slot: Slot) -> u128 {
        if let Some(&count) = self.counts.get(&slot) {
            return count;
        }
        let alternatives = expand(slot, self.mask);
        let count = alternatives
            .iter()
            .fold(0u128, |sum, alternative| sum.saturating_add(self.weight(alternative)));
        self.counts.insert(slot, count);
        count
    }

    fn weight(&mut self, alternative: &Alternative) -> u128 {
        alternative
            .opens
            .iter()
            .fold(1u128, |product, &slot| product.saturating_mul(self.completions(slot)))
    }

    /// A program drawn evenly from the space, from a source of random 64-bit numbers.
    pub fn sample(&mut self, mut random: impl FnMut() -> u64) -> Program {
        let mut derivation = Derivation::start(self.mask);
        loop {
            let alternatives = derivation.legal();
            let weights: Vec<u128> = alternatives.iter().map(|a| self.weight(a)).collect();
            let total = weights.iter().fold(0u128, |sum, &w| sum.saturating_add(w));
            // 128 random bits against at most 2^128 programs: the bias is below one in 2^64 for
            // every space that fits in 64 bits.
            let wide = (u128::from(random()) << 64) | u128::from(random());
            let mut ticket = wide % total.max(1);
            let chosen = alternatives.iter().zip(&weights).find(|&(_, &weight)| {
                let hit = ticket < weight;
                ticket = ticket.saturating_sub(weight);
                hit
            });
            if let Some((alternative, _)) = chosen {
                derivation.take(alternative);
            }
            if derivation.is_complete() || chosen.is_none() {
                break;
            }
        }
        match derivation.finish() {
            Ok(program) => program,
            Err(error) => unreachable!("every slot has an alternative: {error}"),
        }
    }
}
