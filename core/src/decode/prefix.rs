use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::language::grammar::{Alternative, Slot, expand};
use crate::language::{Mask, Token};

/// A list that grows at its end; what grows from one list shares it.
struct List<T>(Option<Arc<Link<T>>>);

struct Link<T> {
    last: T,
    before: List<T>,
    len: usize,
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Drop for List<T> {
    /// One link after the other: dropping them from within each other could exhaust the stack.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut link) = next.and_then(Arc::into_inner) {
            next = link.before.0.take();
        }
    }
}

impl<T> List<T> {
    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |link| link.len)
    }

    fn last(&self) -> Option<&T> {
        self.0.as_ref().map(|link| &link.last)
    }

    fn before(&self) -> Self {
        self.0.as_ref().map_or(Self(None), |link| link.before.clone())
    }

    fn push(self, last: T) -> Self {
        let len = self.len() + 1;
        Self(Some(Arc::new(Link { last, before: self, len })))
    }

    /// From the last to the first.
    fn backwards(&self) -> impl Iterator<Item = &T> {
        let mut list = self;
        core::iter::from_fn(move || {
            let link = list.0.as_ref()?;
            list = &link.before;
            Some(&link.last)
        })
    }
}

/// The first tokens of a program. Programs that begin alike share them.
#[derive(Clone)]
pub struct Prefix(List<Token>);

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tokens()).finish()
    }
}

impl Prefix {
    /// Number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True before the first token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The newest token.
    #[must_use]
    pub fn last(&self) -> Option<Token> {
        self.0.last().copied()
    }

    /// The tokens, first one first.
    #[must_use]
    pub fn tokens(&self) -> Vec<Token> {
        self.tokens_from(0)
    }

    /// The tokens from a position on.
    #[must_use]
    pub fn tokens_from(&self, first: usize) -> Vec<Token> {
        let count = self.len().saturating_sub(first);
        let mut tokens: Vec<Token> = self.0.backwards().take(count).copied().collect();
        tokens.reverse();
        tokens
    }
}

/// A program being written: its prefix and the slots still open. A copy shares both.
#[derive(Clone)]
pub(super) struct Path {
    prefix: Prefix,
    /// The next one last.
    open: List<Slot>,
}

impl Path {
    /// An empty program.
    pub(super) fn start() -> Self {
        Self { prefix: Prefix(List(None)), open: List(None).push(Slot::Block) }
    }

    pub(super) fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// The slot that the next token fills; `None` once the program is complete.
    pub(super) fn slot(&self) -> Option<Slot> {
        self.open.last().copied()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.slot().is_none()
    }

    /// What may come next under a mask.
    pub(super) fn legal(&self, mask: Mask<'_>) -> Vec<Alternative> {
        self.slot().map(|slot| expand(slot, mask)).unwrap_or_default()
    }

    /// The program with one more token, which is one of [`Path::legal`].
    pub(super) fn with(&self, alternative: &Alternative) -> Self {
        let opens = alternative.opens.iter().rev();
        Self {
            prefix: Prefix(self.prefix.0.clone().push(alternative.token)),
            open: opens.fold(self.open.before(), |open, &slot| open.push(slot)),
        }
    }

    /// The program with one more token; `None` when the mask does not offer it.
    pub(super) fn with_token(&self, token: Token, mask: Mask<'_>) -> Option<Self> {
        let legal = self.legal(mask);
        legal.iter().find(|alternative| alternative.token == token).map(|a| self.with(a))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_prefixes_are_dropped_without_recursion_and_shared_ones_stay() {
        let mut list = List(None);
        for number in 0..1_000_000 {
            list = list.push(Token::Number(number));
        }
        let (one, other) = (Prefix(list.clone()), Prefix(list.push(Token::Number(8))));
        drop(other);
        assert_eq!(one.len(), 1_000_000);
        assert_eq!(one.tokens_from(999_999), [one.last().unwrap()]);
    }
}
