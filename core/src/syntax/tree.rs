use alloc::boxed::Box;
use alloc::vec::Vec;

use thiserror::Error;

use super::{Derivation, LayoutSet, Mask, Token, Word};
use crate::structure::{Order, SplitRule};
use crate::task::Task;

/// A kernel's program: the task, the threads of a block, and what happens to each row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Program<L> {
    /// What is computed.
    pub task: Task,
    /// Threads of a block.
    pub block: BlockSize,
    /// What happens to the rows.
    pub body: Node<L>,
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
pub enum Node<L> {
    /// Two disjoint sets of rows, each with a program of its own.
    Split {
        /// Which rows go where.
        rule: SplitRule,
        /// Program of the rows that meet the rule.
        low: Box<Node<L>>,
        /// Program of the others.
        high: Box<Node<L>>,
    },
    /// Rows that share one layout and mapping.
    Part(Part<L>),
}

/// Rows in an order, with the layout that stores them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part<L> {
    /// Order in which rows are stored and walked.
    pub order: Order,
    /// How they are stored and mapped to threads.
    pub layout: L,
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

impl<L: LayoutSet> Program<L> {
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
    pub fn parts(&self) -> Vec<&Part<L>> {
        fn collect<'a, L>(node: &'a Node<L>, parts: &mut Vec<&'a Part<L>>) {
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

/// Takes tokens off the front of an accepted program. `None` would mean that the tree and the
/// grammar disagree, which a property test rules out.
#[derive(Debug)]
pub struct Reader<'a> {
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

impl<L: LayoutSet> Node<L> {
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
    pub(crate) fn read_part(tokens: &[Token]) -> Option<Part<L>> {
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
                let layout = L::read(reader)?;
                return Some(Self::Part(Part { order: Order::Keep, layout }));
            }
            Word::Sort => {
                let order = Order::Sort { window: reader.number()? };
                return Some(Self::Part(Part { order, layout: L::read(reader)? }));
            }
            _ => return None,
        };
        let low = Box::new(Self::read(reader)?);
        Some(Self::Split { rule, low, high: Box::new(Self::read(reader)?) })
    }
}
