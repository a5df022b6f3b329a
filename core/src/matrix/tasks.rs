//! Running independent pieces of work, on threads where there are any.

use alloc::vec::Vec;

/// Applies `work` to every item and returns the results in the order of the items.
///
/// With `std` the items are shared among the threads of the current rayon pool.
#[cfg(feature = "std")]
pub(crate) fn map<I: Send, R: Send>(items: Vec<I>, work: impl Fn(I) -> R + Send + Sync) -> Vec<R> {
    use rayon::prelude::*;

    // A single item must not pay for waking the pool.
    if items.len() < 2 {
        return items.into_iter().map(work).collect();
    }
    items.into_par_iter().map(work).collect()
}

/// Applies `work` to every item and returns the results in the order of the items.
#[cfg(not(feature = "std"))]
pub(crate) fn map<I, R>(items: Vec<I>, work: impl Fn(I) -> R) -> Vec<R> {
    items.into_iter().map(work).collect()
}

/// What threads may share, where there are any.
#[cfg(feature = "std")]
pub(crate) trait Sharable: Send + Sync {}
#[cfg(feature = "std")]
impl<T: Send + Sync> Sharable for T {}

/// What threads may share, where there are any.
#[cfg(not(feature = "std"))]
pub(crate) trait Sharable {}
#[cfg(not(feature = "std"))]
impl<T> Sharable for T {}
