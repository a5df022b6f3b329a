//! The choices that layouts share: codings of indices and values, caching, threads of a row.

use alloc::vec::Vec;

use super::reader::Reader;
use super::token::{Token, Word};
use crate::task::Dtype;

/// How the arrays of a part are coded and read; common to the layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// Coding of the values.
    pub values: ValueCoding,
    /// Caching of the matrix arrays.
    pub cache: Cache,
    /// Columns of the dense operands whose blocks come before those of the next ones; `None` leaves
    /// that to the number of columns.
    pub panel: Option<Panel>,
    /// Columns of the dense operands that a thread handles with one load (1, 2 or 4); 1 for SpMV.
    pub vector: u32,
}

/// A width of column panels of SpMM: while one is multiplied, as much of the rows of B is all that
/// the caches have to hold, and the matrix is read once for each panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Panel(u32);

impl Panel {
    /// Widths in the order that the grammar offers them.
    pub const ALL: [Self; 2] = [Self(64), Self(32)];

    /// The width, in columns.
    #[must_use]
    pub fn columns(self) -> u32 {
        self.0
    }

    /// The panel that a number stands for, which is wider than every vector.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|panel| panel.0 == number)
    }
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

impl Access {
    /// Values as they are, in arrays that are kept in the caches; so many columns of the dense
    /// operands by one load.
    #[must_use]
    pub fn plain(vector: u32) -> Self {
        Self { values: ValueCoding::Plain, cache: Cache::Cached, panel: None, vector }
    }

    /// As far as it decides what is stored: how it is read is left at the first choice.
    pub(crate) fn storage(self) -> Self {
        Self { cache: Cache::Cached, panel: None, vector: 1, ..self }
    }

    pub(crate) fn write(self, out: &mut Vec<Token>) {
        out.push(self.values.token());
        out.push(self.cache.token());
        out.extend(self.panel.map(|panel| Token::Number(panel.columns())));
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
        let number = reader.number()?;
        let panel = Panel::of(number);
        let vector = if panel.is_some() { reader.number()? } else { number };
        Some(Self { values, cache, panel, vector })
    }
}

impl ValueCoding {
    /// Bytes of one entry's value.
    #[must_use]
    pub fn size(self, dtype: Dtype) -> usize {
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
