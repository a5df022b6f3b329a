use core::fmt;
use core::str::FromStr;

/// Declares the words once: their variants, spelling and order in the vocabulary.
macro_rules! words {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// A keyword of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Word { $($(#[$doc])* $variant,)* }

        impl Word {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Spelling in program text.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

words! {
    /// Splits rows by their number of entries.
    SplitLength = "split-length",
    /// Splits rows where a share of the entries is reached.
    SplitNonzeros = "split-nonzeros",
    /// Keeps the rows in matrix order.
    Keep = "keep",
    /// Sorts rows by falling length within windows.
    Sort = "sort",
    /// Compressed sparse rows.
    Csr = "csr",
    /// SELL-C-σ: slices of rows, padded and stored by columns.
    Sell = "sell",
    /// Diagonals.
    Dia = "dia",
    /// Block CSR.
    Bcsr = "bcsr",
    /// Tiles of equally many entries plus row ends (merge path).
    Merge = "merge",
    /// Rows in chunks of at most so many entries.
    Chunk = "chunk",
    /// Rows of equally many slots (ELLPACK), stored by rows.
    Ell = "ell",
    /// 32-bit column indices.
    U32 = "u32",
    /// 16-bit column indices.
    U16 = "u16",
    /// 16-bit distances from the unit's first column.
    D16 = "d16",
    /// 8-bit distances from the unit's first column.
    D8 = "d8",
    /// Values as they are.
    Plain = "plain",
    /// One value for all entries, stored once.
    Constant = "constant",
    /// 8-bit codes into a table of values.
    Dictionary = "dictionary",
    /// Matrix arrays through the read-only cache.
    Cached = "cached",
    /// Matrix arrays with evict-first loads.
    Streamed = "streamed",
    /// A block per row.
    Block = "block",
    /// Segmented scan over a tile.
    Scan = "scan",
    /// Products by panels of columns, then sums by bins of rows.
    Binned = "binned",
    /// Rows in groups, the entries of a column in a group side by side (column-vector sparse
    /// encoding).
    Cvse = "cvse",
}

/// Every number that a program can hold.
const NUMBERS: &[u32] =
    &[1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 256, 512, 2048, 8192, 16384, 131_072];

/// One token of a program: a [`Word`] or one of the language's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Token {
    /// A keyword.
    Word(Word),
    /// A number of the vocabulary.
    Number(u32),
}

impl Token {
    /// Size of the vocabulary: token ids are below it.
    pub const VOCABULARY: usize = Word::ALL.len() + NUMBERS.len();

    /// All tokens, by id.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        let words = Word::ALL.iter().map(|&w| Self::Word(w));
        words.chain(NUMBERS.iter().map(|&n| Self::Number(n)))
    }

    /// Position in the vocabulary, below [`Token::VOCABULARY`]; `None` for a number outside it.
    #[must_use]
    pub fn id(self) -> Option<usize> {
        match self {
            Self::Word(word) => Some(word as usize),
            Self::Number(n) => {
                NUMBERS.binary_search(&n).ok().map(|position| Word::ALL.len() + position)
            }
        }
    }

    /// The token with an id.
    #[must_use]
    pub fn from_id(id: usize) -> Option<Self> {
        match Word::ALL.get(id) {
            Some(&word) => Some(Self::Word(word)),
            None => NUMBERS.get(id - Word::ALL.len()).map(|&n| Self::Number(n)),
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => f.write_str(word.text()),
            Self::Number(n) => write!(f, "{n}"),
        }
    }
}

/// The text is no token of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a word or number of the language")]
pub struct NotAToken;

impl FromStr for Token {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        if let Some(&word) = Word::ALL.iter().find(|w| w.text() == text) {
            return Ok(Self::Word(word));
        }
        let token = Self::Number(text.parse().map_err(|_| NotAToken)?);
        // `007` reads as a number but would not print back as it was written.
        let canonical = !text.starts_with(['0', '+']);
        if canonical && token.id().is_some() { Ok(token) } else { Err(NotAToken) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn ids_and_text_round_trip() {
        for (id, token) in Token::all().enumerate() {
            assert_eq!(token.id(), Some(id));
            assert_eq!(Token::from_id(id), Some(token));
            assert_eq!(token.to_string().parse(), Ok(token));
        }
        assert_eq!(Token::from_id(Token::VOCABULARY), None);
        assert_eq!("9".parse::<Token>(), Err(NotAToken));
        assert_eq!("08".parse::<Token>(), Err(NotAToken));
    }
}
