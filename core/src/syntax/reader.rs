use super::token::{Token, Word};

/// Takes tokens off the front of an accepted program. `None` would mean that the tree and the
/// grammar disagree, which a property test rules out.
#[derive(Debug)]
pub struct Reader<'a> {
    tokens: &'a [Token],
}

impl<'a> Reader<'a> {
    pub(super) fn new(tokens: &'a [Token]) -> Self {
        Self { tokens }
    }

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
