//! Numbers the matrices of a run: those of a corpus, or all real ones and then what a corpus makes
//! of them. A shard is such a number.

use sparserl_core::random::SplitMix64;

use super::{Corpus, RealMatrices, Recipe, Step, Values};

/// The matrices of one run, by number.
#[derive(Clone, Copy, Debug)]
pub struct Recipes<'a> {
    source: Source,
    count: u64,
    real: &'a RealMatrices,
    /// Applied to the real ones.
    steps: &'a [Step],
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Corpus(Corpus),
    RealFirst(Corpus),
}

impl<'a> Recipes<'a> {
    /// The first so many of a corpus.
    #[must_use]
    pub fn of_corpus(corpus: Corpus, count: u64, real: &'a RealMatrices) -> Self {
        Self { source: Source::Corpus(corpus), count, real, steps: &[] }
    }

    /// The recipes of `count` matrices, or of all real ones where those are more: these first, then
    /// those that a corpus makes of them. All have values drawn at random: half of the public ones
    /// have none of their own.
    #[must_use]
    pub fn of_real_first(real: &'a RealMatrices, corpus: Corpus, count: u64) -> Self {
        let source = Source::RealFirst(Corpus { share_of_real: 1.0, ..corpus });
        Self { source, count: count.max(real.all().len() as u64), real, steps: &[] }
    }

    /// Applies these steps to each of the real matrices that come first.
    #[must_use]
    pub fn changed_by(self, steps: &'a [Step]) -> Self {
        Self { steps, ..self }
    }

    /// Number of matrices.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What all that is random about the matrix of a number follows from.
    #[must_use]
    pub fn seed(&self, number: u64) -> u64 {
        let (Source::Corpus(corpus) | Source::RealFirst(corpus)) = self.source;
        SplitMix64::after(corpus.seed, number).bits()
    }

    /// The real matrices that recipes are made of.
    #[must_use]
    pub fn real(&self) -> &'a RealMatrices {
        self.real
    }

    /// The recipe of a number; `None` past the last.
    #[must_use]
    pub fn recipe(&self, number: u64) -> Option<Recipe> {
        match self.source {
            Source::Corpus(corpus) => {
                (number < self.count).then(|| corpus.recipe(number, self.real))
            }
            Source::RealFirst(corpus) => {
                let made = || {
                    let made = number - self.real.all().len() as u64;
                    (number < self.count).then(|| corpus.recipe(made, self.real))
                };
                let recipe = self.real_one(number).or_else(made)?;
                let values = Values::Random { seed: corpus.seed.wrapping_add(number) };
                Some(Recipe { values, ..recipe })
            }
        }
    }

    fn real_one(&self, number: u64) -> Option<Recipe> {
        let mut recipe = self.real.all().get(usize::try_from(number).ok()?)?.recipe();
        recipe.pattern.steps.extend_from_slice(self.steps);
        Some(recipe)
    }
}
