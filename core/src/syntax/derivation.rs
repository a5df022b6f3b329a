use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::grammar::{Alternative, Slot, expand};
use super::{LayoutSet, Mask, Program, ProgramError, Token};

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
