//! Handles: numbers in the shape of pointers, which nothing dereferences.
//!
//! A destroyed handle, one of another kind or any other pointer is not in the table, and so is an
//! error. What a handle stands for lives until the last call that uses it has returned.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::status::{Failure, Status};

/// What a handle stands for, which is in its lowest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Context,
    Options,
    Matrix,
    Plan,
}

impl Kind {
    /// By their numbers.
    const ALL: [Self; 4] = [Self::Context, Self::Options, Self::Matrix, Self::Plan];

    fn of(handle: usize) -> Self {
        Self::ALL[handle % Self::ALL.len()]
    }

    fn name(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Options => "options",
            Self::Matrix => "matrix",
            Self::Plan => "plan",
        }
    }
}

/// The number of the next handle of any kind: none is ever given out again.
static NEXT: AtomicUsize = AtomicUsize::new(1);

/// The live handles of a kind.
pub(crate) struct Handles<T> {
    kind: Kind,
    live: RwLock<BTreeMap<usize, Arc<T>>>,
}

impl<T> Handles<T> {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self { kind, live: RwLock::new(BTreeMap::new()) }
    }

    pub(crate) fn insert<H>(&self, what: Arc<T>) -> *mut H {
        let handle = NEXT.fetch_add(1, Ordering::Relaxed) * Kind::ALL.len() + self.kind as usize;
        self.live.write().unwrap_or_else(PoisonError::into_inner).insert(handle, what);
        std::ptr::without_provenance_mut(handle)
    }

    pub(crate) fn get<H>(&self, handle: *const H) -> Result<Arc<T>, Failure> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.get(&handle.addr()).cloned().ok_or_else(|| self.refused(handle.addr()))
    }

    /// Takes a handle out of use.
    pub(crate) fn remove<H>(&self, handle: *mut H) -> Result<Arc<T>, Failure> {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        live.remove(&handle.addr()).ok_or_else(|| self.refused(handle.addr()))
    }

    /// Everything that is live.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        live.values().cloned().collect()
    }

    fn refused(&self, handle: usize) -> Failure {
        let wanted = self.kind.name();
        if handle == 0 {
            return Failure::null(wanted);
        }
        let text = match Kind::of(handle) {
            _ if handle >= NEXT.load(Ordering::Relaxed) * Kind::ALL.len() => {
                format!("{wanted}: this pointer is no handle of SparseRL")
            }
            kind if kind != self.kind => format!("{wanted}: this is a handle of a {}", kind.name()),
            _ => format!("{wanted}: this handle was destroyed"),
        };
        Failure::new(Status::InvalidHandle, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_no_live_handle_is_refused() {
        let (plans, contexts) = (Handles::<u8>::new(Kind::Plan), Handles::<u8>::new(Kind::Context));
        let plan: *mut u64 = plans.insert(Arc::new(7));
        let context: *mut u64 = contexts.insert(Arc::new(8));
        assert_eq!(*plans.get(plan).unwrap(), 7);
        let text = |handle: *const u64| plans.get(handle).unwrap_err().text;
        assert_eq!(text(context), "plan: this is a handle of a context");
        assert_eq!(text(std::ptr::null()), "plan is NULL");
        assert_eq!(text(&raw const *Box::new(0)), "plan: this pointer is no handle of SparseRL");
        // A call that still uses it is not disturbed.
        let used = plans.get(plan).unwrap();
        plans.remove(plan).unwrap();
        assert_eq!((*used, text(plan).as_str()), (7, "plan: this handle was destroyed"));
        assert_eq!(plans.remove(plan).unwrap_err().status, Status::InvalidHandle);
    }
}
