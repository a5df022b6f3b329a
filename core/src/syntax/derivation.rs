use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use thiserror::Error;

use super::grammar::{Alternative, LayoutSet, Slot, expand};
use super::mask::Mask;
use super::token::Token;
use super::tree::Program;
use crate::task::Task;

/// Tokens do not form a program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// A token that cannot stand where it stands.
    #[error("token {position} is `{found}`, expected {expected}")]
    Unexpected {
        /// Index of the token.
        position: usize,
        /// The token.
        found: String,
        /// What could stand there.
        expected: String,
    },
    /// The tokens end inside a program.
    #[error("the program ends after {position} tokens, expected {expected}")]
    Incomplete {
        /// Number of tokens.
        position: usize,
        /// What could come next.
        expected: String,
    },
    /// Tokens after the end of the program.
    #[error("token {position} is `{found}`, but the program is already complete")]
    Trailing {
        /// Index of the token.
        position: usize,
        /// The token.
        found: String,
    },
}

/// A program being written, leftmost slot first.
#[derive(Clone, Debug)]
pub struct Derivation<'f, L> {
    mask: Mask<'f, L>,
    open: Vec<Slot<L>>,
    tokens: Vec<Token>,
}

impl<'f, L: LayoutSet> Derivation<'f, L> {
    /// An empty program.
    #[must_use]
    pub fn start(mask: Mask<'f, L>) -> Self {
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
    pub fn open(&self) -> &[Slot<L>] {
        &self.open
    }

    /// What may come next; empty when the program is complete.
    #[must_use]
    pub fn legal(&self) -> Vec<Alternative<L>> {
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
    pub(crate) fn take(&mut self, alternative: &Alternative<L>) {
        self.open.pop();
        self.open.extend(alternative.opens.iter().rev());
        self.tokens.push(alternative.token);
    }

    /// The program, once complete.
    ///
    /// # Errors
    /// When slots are still open.
    pub fn finish(self) -> Result<Program<L>, ProgramError> {
        let incomplete = || ProgramError::Incomplete {
            position: self.tokens.len(),
            expected: one_of(&self.legal()),
        };
        if !self.is_complete() {
            return Err(incomplete());
        }
        Program::build(self.mask.task(), &self.tokens).ok_or_else(incomplete)
    }
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
}

fn one_of<L>(alternatives: &[Alternative<L>]) -> String {
    let mut text = String::new();
    for (i, alternative) in alternatives.iter().enumerate() {
        if i > 0 {
            text.push_str(if i + 1 == alternatives.len() { " or " } else { ", " });
        }
        text.push_str(&alternative.token.to_string());
    }
    text
}
