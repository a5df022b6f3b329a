//! What is computed when it is first asked for, and then remembered.
//!
//! With `std`, threads share it: they take turns at the table, never while one of them computes.
//! Without `std` the crate knows no way to wait for another thread but to spin, and spinning on a
//! priority it does not know may never end; there it belongs to one thread at a time.

use alloc::collections::BTreeMap;

/// Computed once. What computes it must not share work among threads: one that waits for the others
/// takes up other work, which may ask for the same.
#[cfg(feature = "std")]
pub(crate) use std::sync::OnceLock as Once;

/// Computed once.
#[cfg(not(feature = "std"))]
pub(crate) use core::cell::OnceCell as Once;

/// A value that is looked at or changed by one thread at a time, briefly.
pub(crate) struct Shared<T>(
    #[cfg(feature = "std")] std::sync::Mutex<T>,
    #[cfg(not(feature = "std"))] core::cell::RefCell<T>,
);

impl<T> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        #[cfg(feature = "std")]
        return Self(std::sync::Mutex::new(value));
        #[cfg(not(feature = "std"))]
        return Self(core::cell::RefCell::new(value));
    }

    /// Gives the value to `with`, which must not ask for it again.
    pub(crate) fn with<R>(&self, with: impl FnOnce(&mut T) -> R) -> R {
        // A panic elsewhere leaves a table that lacks an answer, which is no harm.
        #[cfg(feature = "std")]
        return with(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        #[cfg(not(feature = "std"))]
        return with(&mut self.0.borrow_mut());
    }
}

/// Answers to one kind of question.
pub(crate) struct Memo<K, V>(Shared<BTreeMap<K, V>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(Shared::new(BTreeMap::new()))
    }
}

impl<K: Ord, V: Clone> Memo<K, V> {
    /// The answer, computed unless it is known. Two threads that ask at once may both compute it.
    pub(crate) fn get(&self, question: K, compute: impl FnOnce() -> V) -> V {
        if let Some(known) = self.0.with(|answers| answers.get(&question).cloned()) {
            return known;
        }
        let answer = compute();
        self.0.with(|answers| answers.entry(question).or_insert(answer).clone())
    }
}
