//! The grammar: at each open [`Slot`], which tokens may come and which slots they open.
//!
//! A program is a leftmost derivation, so a decoder's whole state is the stack of open slots. The
//! slots carry what a choice depends on (the rows at hand, their order, the threads of a block), so
//! that independent choices stay independent: the number of completions of a stack is the product
//! over its slots, which makes counting and even sampling exact.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt::{self, Debug};
use core::hash::{Hash, Hasher};

use super::block_size::BlockSize;
use super::coding::{Cache, IndexCoding, Panel, ValueCoding};
use super::mask::Mask;
use super::reader::Reader;
use super::token::{Token, Word};
use crate::structure::{Order, RowSetId, SplitRule};
use crate::task::{Operation, Task};

/// Splits may nest this deep: at most four parts share a launch.
pub const MAX_SPLIT_DEPTH: u8 = 2;
/// Windows of `sort`.
const WINDOWS: [u32; 5] = [32, 256, 2048, 16384, 131_072];
/// Thresholds of `split-length`.
const THRESHOLDS: [u32; 12] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 2048, 8192];

/// The layouts that programs may use, as far as the grammar and the tree know them.
pub trait LayoutSet: Copy + Debug + Ord + Hash + 'static {
    /// The layouts that may store the rows of a site: of each its word, and the slots of its
    /// fields.
    fn openings(site: Site, mask: Mask<'_, Self>) -> Vec<Alternative<Self>>;

    /// Appends the layout's word and fields.
    fn write(&self, out: &mut Vec<Token>);

    /// Reads what [`LayoutSet::write`] wrote; `None` when the tokens are anything else.
    fn read(reader: &mut Reader<'_>) -> Option<Self>;
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
pub enum Slot<L> {
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
    /// A field that one layout has.
    Field(Field<L>),
    /// Coding of column indices.
    Index(Site, IndexUnit),
    /// Coding of values; a padded layout needs a code for its empty slots.
    Values {
        /// True when the layout has empty slots.
        padded: bool,
    },
    /// Caching of the matrix arrays.
    Cache,
    /// Columns per thread, or a width of column panels before them.
    Vector,
    /// Columns per thread in panels of this width.
    VectorOf(Panel),
    /// Threads per row.
    Lanes {
        /// Most threads of a warp.
        most: u32,
        /// Whether a block per row is offered.
        block: bool,
    },
    /// Unrolling of the loop over a row's entries.
    Unroll,
}

/// A field that only one layout has, and which the layout expands itself.
pub struct Field<L> {
    /// The layout's word.
    pub layout: Word,
    /// Name of the field, different from those of the layout's other fields.
    pub name: &'static str,
    /// The place in the program that the layout stands at.
    pub site: Site,
    /// The tokens that may fill the field.
    pub expand: Expand<L>,
}

/// Gives the tokens that may fill a field of a layout at a site.
pub type Expand<L> = fn(Site, Mask<'_, L>) -> Vec<Alternative<L>>;

impl<L> Field<L> {
    /// What tells fields apart. The function does not: its address need not be unique.
    fn key(&self) -> (Word, &'static str, Site) {
        (self.layout, self.name, self.site)
    }
}

impl<L> Clone for Field<L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Field<L> {}

impl<L> PartialEq for Field<L> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<L> Eq for Field<L> {}

impl<L> PartialOrd for Field<L> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<L> Ord for Field<L> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<L> Hash for Field<L> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl<L> fmt::Debug for Field<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field({} {}, {:?})", self.layout.text(), self.name, self.site)
    }
}

/// A token that may fill a slot, and the slots that it opens, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative<L> {
    /// The token.
    pub token: Token,
    /// Slots to fill next, first one first.
    pub opens: Vec<Slot<L>>,
}

impl<L> Alternative<L> {
    pub(crate) fn word(word: Word, opens: Vec<Slot<L>>) -> Self {
        Self { token: Token::Word(word), opens }
    }

    pub(crate) fn number(n: u32, opens: Vec<Slot<L>>) -> Self {
        Self { token: Token::Number(n), opens }
    }

    pub(crate) fn leaf(token: Token) -> Self {
        Self { token, opens: Vec::new() }
    }
}

/// The tokens that may fill a slot. For a matrix there is always at least one.
#[must_use]
pub fn expand<L: LayoutSet>(slot: Slot<L>, mask: Mask<'_, L>) -> Vec<Alternative<L>> {
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
        Slot::Layout(site) => L::openings(site, mask),
        Slot::Field(field) => (field.expand)(field.site, mask),
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
            let vectors = vector_widths(mask.task()).map(|n| Alternative::leaf(Token::Number(n)));
            let panels = panels(mask.task())
                .map(|panel| Alternative::number(panel.columns(), vec![Slot::VectorOf(panel)]));
            vectors.chain(panels).collect()
        }
        Slot::VectorOf(_) => {
            vector_widths(mask.task()).map(|n| Alternative::leaf(Token::Number(n))).collect()
        }
        Slot::Lanes { most, block } => {
            let threads = [1u32, 2, 4, 8, 16, 32].into_iter().filter(|&n| n <= most);
            let block = block.then_some(Token::Word(Word::Block));
            threads.map(Token::Number).chain(block).map(Alternative::leaf).collect()
        }
        Slot::Unroll => [1, 2, 4, 8].iter().map(|&n| Alternative::leaf(Token::Number(n))).collect(),
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
    [1, 2, 4, 8].into_iter().filter(move |&n| n <= most && columns.is_multiple_of(n))
}

/// Column panels of which a task has several, all of one width.
fn panels(task: Task) -> impl Iterator<Item = Panel> {
    let columns = task.operation.columns();
    Panel::ALL
        .into_iter()
        .filter(move |panel| panel.columns() < columns && columns.is_multiple_of(panel.columns()))
}

fn expand_rows<L: LayoutSet>(
    block: u32,
    rows: RowSetId,
    depth: u8,
    mask: Mask<'_, L>,
) -> Vec<Alternative<L>> {
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
fn sides<L: LayoutSet>(
    rule: SplitRule,
    block: u32,
    rows: RowSetId,
    depth: u8,
    mask: Mask<'_, L>,
) -> Option<Vec<Slot<L>>> {
    let (low, high) = mask.split(rows, rule)?;
    let depth = depth + 1;
    Some(vec![Slot::Rows { block, rows: low, depth }, Slot::Rows { block, rows: high, depth }])
}
