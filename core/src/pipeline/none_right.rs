//! What is said where there are candidates and none can be taken.

use alloc::string::String;

use crate::outcome::Outcome;

/// An error: there are candidates, and none of them was found right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("none of {tried} candidates was found right; the first: {first}")]
pub struct NoneRight {
    /// How many there are.
    pub tried: usize,
    /// What became of the first.
    pub first: String,
    /// Whether any of them is known to be wrong. Otherwise nobody can say: they did not compile or
    /// launch, or whoever judges them gave up.
    pub is_wrong: bool,
}

impl NoneRight {
    /// The error for what became of the candidates, the first of them first; nothing where there
    /// are none.
    #[must_use]
    pub fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Option<Self> {
        let mut outcomes = outcomes.into_iter();
        let first = outcomes.next()?;
        let none = Self { tried: 1, first: first.sentence(), is_wrong: first.is_wrong() };
        Some(outcomes.fold(none, |none, outcome| Self {
            tried: none.tried + 1,
            is_wrong: none.is_wrong || outcome.is_wrong(),
            ..none
        }))
    }
}
