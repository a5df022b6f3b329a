use alloc::boxed::Box;
use alloc::vec::Vec;

use super::block_size::BlockSize;
use super::grammar::LayoutSet;
use super::reader::Reader;
use super::token::{Token, Word};
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

impl<L: LayoutSet> Program<L> {
    /// The tokens of the program: [`Program::from_tokens`] reads them back.
    #[must_use]
    pub fn tokens(&self) -> Vec<Token> {
        let mut out = Vec::new();
        out.push(Token::Number(self.block.threads()));
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
        let mut reader = Reader::new(tokens);
        let block = BlockSize::of(reader.number()?)?;
        Some(Self { task, block, body: Node::read(&mut reader)? })
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
        match Self::read(&mut Reader::new(tokens))? {
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
