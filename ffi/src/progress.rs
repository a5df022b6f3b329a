//! How far planning has come, for those who wait for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Shared by a plan and the thread that searches for it, which ends it when it has let go of the
/// plan.
pub(crate) struct Progress {
    created: Instant,
    state: Mutex<State>,
    settled: Condvar,
}

struct State {
    is_searching: bool,
    /// What planning took, in seconds, as far as it has come.
    seconds: f64,
}

impl Progress {
    /// Of planning that began at a moment, and that has ended unless a search begins.
    pub(crate) fn new(created: Instant) -> Self {
        let state = State { is_searching: false, seconds: created.elapsed().as_secs_f64() };
        Self { created, state: Mutex::new(state), settled: Condvar::new() }
    }

    pub(crate) fn begin(&self) {
        self.lock().is_searching = true;
    }

    pub(crate) fn end(&self) {
        *self.lock() = State { is_searching: false, seconds: self.age() };
        self.settled.notify_all();
    }

    /// Waits until nothing is searched for any more.
    pub(crate) fn wait(&self) {
        let mut state = self.lock();
        while state.is_searching {
            state = self.settled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Seconds that planning took, searches in the background included; none while it goes on.
    pub(crate) fn planning_seconds(&self) -> Option<f64> {
        let state = self.lock();
        (!state.is_searching).then_some(state.seconds)
    }

    /// Seconds since planning began.
    pub(crate) fn age(&self) -> f64 {
        self.created.elapsed().as_secs_f64()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
