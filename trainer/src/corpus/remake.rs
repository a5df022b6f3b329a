//! Makes a matrix again that was measured before, in the type that it was measured in: recordings
//! have recipes and no matrices.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sparserl_core::matrix::{Csr, Scalar};
use sparserl_core::task::Dtype;

use super::{BuildError, RealMatrices, Recipe};

/// What is found is handed over to be written after so long: a lost process loses no more.
const HAND_OVER_AFTER: Duration = Duration::from_secs(60);

/// A matrix that was measured cannot be made again.
#[derive(Debug, thiserror::Error)]
pub enum RemakeError {
    /// Its recipe makes nothing.
    #[error("the matrix of {family} cannot be made again: {source}")]
    Build {
        /// Its family.
        family: String,
        /// The reason.
        source: BuildError,
    },
    /// It has values beyond the type in which it was measured.
    #[error("the matrix of {family} was measured in {dtype}, which does not hold it")]
    Values {
        /// Its family.
        family: String,
        /// The type.
        dtype: Dtype,
    },
}

impl Recipe {
    /// The matrix that was measured once.
    ///
    /// # Errors
    /// When the recipe makes nothing.
    pub fn remake(&self, real: &RealMatrices) -> Result<Csr<f64>, RemakeError> {
        let family = || self.family().to_owned();
        self.build(real).map_err(|source| RemakeError::Build { family: family(), source })
    }

    /// Its matrix as it was measured in another type.
    ///
    /// # Errors
    /// When that does not hold its values.
    pub fn in_type<T: Scalar>(&self, matrix: &Csr<f64>) -> Result<Csr<T>, RemakeError> {
        let family = || self.family().to_owned();
        matrix.cast().map_err(|_| RemakeError::Values { family: family(), dtype: T::DTYPE })
    }
}

/// Makes the matrices of some recipes again, in their order, as many at a time as there are cores:
/// each is looked at, with its place among the recipes, and dropped. No other one is begun once
/// `go_on` has said no, or one could not be made or looked at.
///
/// # Errors
/// When a matrix cannot be made again, or looking at it fails: one such error, when all that was
/// begun has ended.
pub fn remake_each<E: From<RemakeError> + Send>(
    recipes: &[&Recipe],
    real: &RealMatrices,
    go_on: impl Fn() -> bool + Sync,
    look: impl Fn(usize, &Csr<f64>) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let one_after_the_other = || -> Result<(), E> {
        while go_on() {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(recipe) = recipes.get(place) else { break };
            look(place, &recipe.remake(real)?)?;
        }
        Ok(())
    };
    let work =
        || one_after_the_other().inspect_err(|_| next.store(recipes.len(), Ordering::Relaxed));
    // Threads of their own, not rayon's: a thread of its pool that waits within one matrix would
    // begin another, and hold both.
    let threads = thread::available_parallelism().map_or(1, usize::from).min(recipes.len());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect::<Vec<_>>().into_iter().collect()
    })
}

/// What threads find by looking at matrices, all of them together.
pub(crate) struct Findings<T>(Mutex<(T, Instant)>);

impl<T> Findings<T> {
    /// What is known before anything is looked at.
    pub(crate) fn new(known: T) -> Self {
        Self(Mutex::new((known, Instant::now())))
    }

    /// Adds what one thread has found; `save` is given all of it when a minute has gone since.
    ///
    /// # Errors
    /// When `save` fails.
    pub(crate) fn add<E>(
        &self,
        add: impl FnOnce(&mut T),
        save: impl FnOnce(&T) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut locked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (findings, saved) = &mut *locked;
        add(findings);
        if saved.elapsed() > HAND_OVER_AFTER {
            save(findings)?;
            *saved = Instant::now();
        }
        Ok(())
    }

    /// All of it.
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_looked_at_once_and_nothing_is_begun_after_a_failure_or_a_no() {
        let real = RealMatrices::none();
        let recipe: Recipe = crate::stages::tests::measured()[0].recipe.clone();
        let recipes: Vec<&Recipe> = std::iter::repeat_n(&recipe, 200).collect();
        let looked = |go_on: &(dyn Fn(usize) -> bool + Sync), fails: usize| {
            let places = Mutex::new(Vec::new());
            let so_far = || places.lock().unwrap().len();
            let look = |place: usize, matrix: &Csr<f64>| {
                places.lock().unwrap().push((place, matrix.nnz()));
                let failed = RemakeError::Values { family: "any".to_owned(), dtype: Dtype::F16 };
                if place == fails { Err(failed) } else { Ok(()) }
            };
            let ended = remake_each(&recipes, &real, || go_on(so_far()), look);
            let mut places = places.into_inner().unwrap();
            places.sort_unstable();
            (ended, places)
        };
        let (ended, all) = looked(&|_| true, usize::MAX);
        ended.unwrap();
        assert!(all.iter().enumerate().all(|(i, (place, nnz))| i == *place && *nnz == all[0].1));
        assert_eq!(all.len(), recipes.len());
        let (ended, some) = looked(&|_| true, 3);
        assert!(matches!(ended, Err(RemakeError::Values { .. })));
        // What was under way when it failed has ended, too.
        assert!(some.len() < 100, "{}", some.len());
        let (ended, some) = looked(&|so_far| so_far < 5, usize::MAX);
        ended.unwrap();
        assert!((5..100).contains(&some.len()), "{}", some.len());
    }
}
