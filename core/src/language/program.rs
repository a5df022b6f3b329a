use alloc::boxed::Box;
use alloc::vec::Vec;

use thiserror::Error;

use super::grammar::{Derivation, Mask};
use super::{Token, Word};
use crate::layout::{BcsrLayout, CsrLayout, DiaLayout, MergeLayout, SellLayout};
use crate::structure::{Order, SplitRule};
use crate::task::Task;

/// A kernel's program: the task, the threads of a block, and what happens to each row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Program {
    /// What is computed.
    pub task: Task,
    /// Threads of a block.
    pub block: BlockSize,
    /// What happens to the rows.
    pub body: Node,
}

/// Threads of a block: 64, 128, 256 or 512.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockSize(u32);

impl BlockSize {
    /// Sizes in the order that the grammar offers them. 1024 is left out: it would hold a thread
    /// to 64 registers and make wide f64 parts spill.
    pub const ALL: [Self; 4] = [Self(256), Self(128), Self(64), Self(512)];

    /// The number of threads.
    #[must_use]
    pub fn threads(self) -> u32 {
        self.0
    }
}

/// What happens to a set of rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// Two disjoint sets of rows, each with a program of its own.
    Split {
        /// Which rows go where.
        rule: SplitRule,
        /// Program of the rows that meet the rule.
        low: Box<Node>,
        /// Program of the others.
        high: Box<Node>,
    },
    /// Rows that share one layout and mapping.
    Part(Part),
}

/// Rows in an order, with the layout that stores them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// Order in which rows are stored and walked.
    pub order: Order,
    /// How they are stored and mapped to threads.
    pub layout: Layout,
}

/// Storage and mapping of a part; one module of [`crate::layout`] each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// Compressed sparse rows.
    Csr(CsrLayout),
    /// Padded slices of rows.
    Sell(SellLayout),
    /// Diagonals.
    Dia(DiaLayout),
    /// Dense square blocks.
    Bcsr(BcsrLayout),
    /// Tiles of equally many entries and row ends.
    Merge(MergeLayout),
}

/// Evaluates an expression for whichever layout it is.
macro_rules! each_layout {
    ($layout:expr, $l:ident => $body:expr) => {
        match $layout {
            $crate::language::Layout::Csr($l) => $body,
            $crate::language::Layout::Sell($l) => $body,
            $crate::language::Layout::Dia($l) => $body,
            $crate::language::Layout::Bcsr($l) => $body,
            $crate::language::Layout::Merge($l) => $body,
        }
    };
}
pub(crate) use each_layout;

/// How the arrays of a part are coded and read; common to the layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// Coding of the values.
    pub values: ValueCoding,
    /// Caching of the matrix arrays.
    pub cache: Cache,
    /// Columns of the dense operands that a thread handles with one load (1, 2 or 4); 1 for SpMV.
    pub vector: u32,
}

/// Coding of column indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IndexCoding {
    /// 32 bits.
    U32,
    /// 16 bits; for matrices of at most 65536 columns.
    U16,
    /// 16-bit distance from the first column of the layout's unit (row, slice, block row, tile).
    D16,
    /// 8-bit distance from the first column of the layout's unit.
    D8,
}

/// Coding of values; all are lossless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueCoding {
    /// As they are.
    Plain,
    /// All entries have one value.
    Constant,
    /// 8-bit codes into a table.
    Dictionary,
}

/// Caching of the matrix arrays, which one product reads once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cache {
    /// `ld.global.nc`.
    Cached,
    /// `ld.global.cs`: evict first, which leaves the caches to the dense operands.
    Streamed,
}

/// Threads that share the entries of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lanes {
    /// 1–32 neighbouring lanes of a warp, a power of two.
    Threads(u32),
    /// A whole block.
    Block,
}

/// Tokens do not form a program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// A token that cannot stand where it stands.
    #[error("token {position} is `{found}`, expected {expected}")]
    Unexpected {
        /// Index of the token.
        position: usize,
        /// The token.
        found: alloc::string::String,
        /// What could stand there.
        expected: alloc::string::String,
    },
    /// The tokens end inside a program.
    #[error("the program ends after {position} tokens, expected {expected}")]
    Incomplete {
        /// Number of tokens.
        position: usize,
        /// What could come next.
        expected: alloc::string::String,
    },
    /// Tokens after the end of the program.
    #[error("token {position} is `{found}`, but the program is already complete")]
    Trailing {
        /// Index of the token.
        position: usize,
        /// The token.
        found: alloc::string::String,
    },
}

impl Program {
    /// Reads a program from its tokens.
    ///
    /// # Errors
    /// The first token that the free grammar (see [`Mask::free`]) does not allow.
    pub fn from_tokens(task: Task, tokens: &[Token]) -> Result<Self, ProgramError> {
        let mut derivation = Derivation::start(Mask::free(task));
        for &token in tokens {
            derivation.push(token)?;
        }
        derivation.finish()
    }

    /// The tokens of the program: [`Program::from_tokens`] reads them back.
    #[must_use]
    pub fn tokens(&self) -> Vec<Token> {
        let mut out = Vec::new();
        out.push(Token::Number(self.block.0));
        self.body.write(&mut out);
        out
    }

    /// The parts, in the order of their text.
    #[must_use]
    pub fn parts(&self) -> Vec<&Part> {
        fn collect<'a>(node: &'a Node, parts: &mut Vec<&'a Part>) {
            match node {
                Node::Split { low, high, .. } => {
                    collect(low, parts);
                    collect(high, parts);
                }
                Node::Part(part) => parts.push(part),
            }
        }
        let mut parts = Vec::new();
        collect(&self.body, &mut parts);
        parts
    }

    /// Builds the tree from tokens that a complete derivation has accepted.
    pub(super) fn build(task: Task, tokens: &[Token]) -> Option<Self> {
        let mut reader = Reader { tokens };
        let block = BlockSize(reader.number()?);
        Some(Self { task, block, body: Node::read(&mut reader)? })
    }
}

/// Takes tokens off the front of an accepted program; `None` would mean that the tree and the
/// grammar disagree, which a property test rules out.
pub(crate) struct Reader<'a> {
    tokens: &'a [Token],
}

impl Reader<'_> {
    pub(crate) fn next(&mut self) -> Option<Token> {
        let (&first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    pub(crate) fn number(&mut self) -> Option<u32> {
        match self.next()? {
            Token::Number(n) => Some(n),
            Token::Word(_) => None,
        }
    }

    pub(crate) fn word(&mut self) -> Option<Word> {
        match self.next()? {
            Token::Word(word) => Some(word),
            Token::Number(_) => None,
        }
    }
}

impl Node {
    fn write(&self, out: &mut Vec<Token>) {
        match self {
            Self::Split { rule, low, high } => {
                let (word, n) = match *rule {
                    SplitRule::Length { threshold } => (Word::SplitLength, threshold),
                    SplitRule::Nonzeros { eighths } => (Word::SplitNonzeros, eighths),
                };
                out.extend([Token::Word(word), Token::Number(n)]);
                low.write(out);
                high.write(out);
            }
            Self::Part(part) => {
                match part.order {
                    Order::Keep => out.push(Token::Word(Word::Keep)),
                    Order::Sort { window } => {
                        out.extend([Token::Word(Word::Sort), Token::Number(window)]);
                    }
                }
                part.layout.write(out);
            }
        }
    }

    /// A part from its tokens; `None` when they are anything else.
    pub(crate) fn read_part(tokens: &[Token]) -> Option<Part> {
        match Self::read(&mut Reader { tokens })? {
            Self::Part(part) => Some(part),
            Self::Split { .. } => None,
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let rule = match reader.word()? {
            Word::SplitLength => SplitRule::Length { threshold: reader.number()? },
            Word::SplitNonzeros => SplitRule::Nonzeros { eighths: reader.number()? },
            Word::Keep => {
                let layout = Layout::read(reader)?;
                return Some(Self::Part(Part { order: Order::Keep, layout }));
            }
            Word::Sort => {
                let order = Order::Sort { window: reader.number()? };
                return Some(Self::Part(Part { order, layout: Layout::read(reader)? }));
            }
            _ => return None,
        };
        let low = Box::new(Self::read(reader)?);
        Some(Self::Split { rule, low, high: Box::new(Self::read(reader)?) })
    }
}

impl Layout {
    /// The word that opens the layout in a program.
    #[must_use]
    pub fn word(&self) -> Word {
        match self {
            Self::Csr(_) => Word::Csr,
            Self::Sell(_) => Word::Sell,
            Self::Dia(_) => Word::Dia,
            Self::Bcsr(_) => Word::Bcsr,
            Self::Merge(_) => Word::Merge,
        }
    }

    /// Coding and caching of the layout's arrays.
    #[must_use]
    pub fn access(&self) -> Access {
        each_layout!(self, layout => layout.access)
    }

    /// The layout's tokens.
    #[must_use]
    pub fn tokens(&self) -> Vec<Token> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<Token>) {
        out.push(Token::Word(self.word()));
        each_layout!(self, layout => layout.write(out));
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(match reader.word()? {
            Word::Csr => Self::Csr(CsrLayout::read(reader)?),
            Word::Sell => Self::Sell(SellLayout::read(reader)?),
            Word::Dia => Self::Dia(DiaLayout::read(reader)?),
            Word::Bcsr => Self::Bcsr(BcsrLayout::read(reader)?),
            Word::Merge => Self::Merge(MergeLayout::read(reader)?),
            _ => return None,
        })
    }
}

impl Access {
    pub(crate) fn write(self, out: &mut Vec<Token>) {
        out.push(self.values.token());
        out.push(self.cache.token());
        out.push(Token::Number(self.vector));
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let values = match reader.word()? {
            Word::Plain => ValueCoding::Plain,
            Word::Constant => ValueCoding::Constant,
            Word::Dictionary => ValueCoding::Dictionary,
            _ => return None,
        };
        let cache = match reader.word()? {
            Word::Cached => Cache::Cached,
            Word::Streamed => Cache::Streamed,
            _ => return None,
        };
        Some(Self { values, cache, vector: reader.number()? })
    }
}

impl ValueCoding {
    /// Bytes of one entry's value.
    #[must_use]
    pub fn size(self, dtype: crate::task::Dtype) -> usize {
        match self {
            Self::Plain => dtype.size(),
            Self::Constant => 0,
            Self::Dictionary => 1,
        }
    }

    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Constant, Self::Dictionary];

    pub(crate) fn token(self) -> Token {
        Token::Word(match self {
            Self::Plain => Word::Plain,
            Self::Constant => Word::Constant,
            Self::Dictionary => Word::Dictionary,
        })
    }
}

impl Cache {
    pub(crate) const ALL: [Self; 2] = [Self::Cached, Self::Streamed];

    pub(crate) fn token(self) -> Token {
        Token::Word(match self {
            Self::Cached => Word::Cached,
            Self::Streamed => Word::Streamed,
        })
    }
}

impl IndexCoding {
    pub(crate) const ALL: [Self; 4] = [Self::U32, Self::U16, Self::D16, Self::D8];

    pub(crate) fn token(self) -> Token {
        Token::Word(match self {
            Self::U32 => Word::U32,
            Self::U16 => Word::U16,
            Self::D16 => Word::D16,
            Self::D8 => Word::D8,
        })
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let word = Token::Word(reader.word()?);
        Self::ALL.into_iter().find(|coding| coding.token() == word)
    }

    /// Bytes of one index.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::U32 => 4,
            Self::U16 | Self::D16 => 2,
            Self::D8 => 1,
        }
    }

    /// True when a base is stored for each unit.
    #[must_use]
    pub fn is_relative(self) -> bool {
        matches!(self, Self::D16 | Self::D8)
    }

    /// Largest number that one index holds.
    #[must_use]
    pub fn max(self) -> u64 {
        match self {
            Self::U32 => u64::from(u32::MAX),
            Self::U16 | Self::D16 => u64::from(u16::MAX),
            Self::D8 => u64::from(u8::MAX),
        }
    }
}

impl Lanes {
    pub(crate) fn token(self) -> Token {
        match self {
            Self::Threads(n) => Token::Number(n),
            Self::Block => Token::Word(Word::Block),
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        match reader.next()? {
            Token::Number(n) => Some(Self::Threads(n)),
            Token::Word(Word::Block) => Some(Self::Block),
            Token::Word(_) => None,
        }
    }
}
