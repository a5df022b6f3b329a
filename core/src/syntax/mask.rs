use core::marker::PhantomData;

use crate::structure::{MatrixStats, RowSetId, SplitRule};
use crate::task::Task;

/// Which tokens are offered: all that the language knows, or those valid for one matrix.
#[derive(Debug)]
pub struct Mask<'f, L> {
    task: Task,
    stats: Option<&'f MatrixStats<'f>>,
    layouts: PhantomData<fn() -> L>,
}

impl<'f, L> Mask<'f, L> {
    /// The whole language, also what no matrix or this one cannot use.
    #[must_use]
    pub fn free(task: Task) -> Self {
        Self { task, stats: None, layouts: PhantomData }
    }

    /// Only programs that are valid for the matrix of `stats`. Where its values may change, those
    /// are the same for every matrix of its pattern.
    #[must_use]
    pub fn legal(stats: &'f MatrixStats<'f>, task: Task) -> Self {
        Self { task, stats: Some(stats), layouts: PhantomData }
    }

    /// The task that programs are for.
    #[must_use]
    pub fn task(&self) -> Task {
        self.task
    }

    /// True when decoding freely or when the matrix allows it.
    pub(crate) fn allows(&self, test: impl FnOnce(&MatrixStats<'f>) -> bool) -> bool {
        self.stats.is_none_or(test)
    }

    /// The two sides of a split; `None` when one has no rows. Decoding freely, both have all.
    pub(super) fn split(&self, rows: RowSetId, rule: SplitRule) -> Option<(RowSetId, RowSetId)> {
        match self.stats {
            Some(stats) => stats.split(rows, rule),
            None => Some((rows, rows)),
        }
    }
}

impl<L> Clone for Mask<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Mask<'_, L> {}
