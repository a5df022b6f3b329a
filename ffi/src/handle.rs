//! Handles: numbers in the shape of pointers, which nothing dereferences.
//!
//! A destroyed handle, one of another kind or any other pointer is not in the table, and so is an
//! error. What a handle stands for lives until the last call that uses it has returned.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::status::{Failure, Status};

/// What a handle may stand for, in its lowest bits.
const KINDS: [&str; 4] = ["context", "options", "matrix", "plan"];

/// The number of the next handle of any kind: none is ever given out again.
static NEXT: AtomicUsize = AtomicUsize::new(1);

/// The live handles of a kind.
pub(crate) struct Handles<T> {
    kind: usize,
    live: RwLock<BTreeMap<usize, Arc<T>>>,
}

impl<T> Handles<T> {
    /// For the kind at a place of [`KINDS`].
    pub(crate) const fn new(kind: usize) -> Self {
        Self { kind, live: RwLock::new(BTreeMap::new()) }
    }

    pub(crate) fn insert<H>(&self, what: Arc<T>) -> *mut H {
        let handle = NEXT.fetch_add(1, Ordering::Relaxed) * KINDS.len() + self.kind;
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
        let wanted = KINDS.get(self.kind).copied().unwrap_or("handle");
        if handle == 0 {
            return Failure::null(wanted);
        }
        let text = match KINDS.get(handle % KINDS.len()) {
            _ if handle >= NEXT.load(Ordering::Relaxed) * KINDS.len() => {
                format!("{wanted}: this pointer is no handle of SparseRL")
            }
            Some(&kind) if kind != wanted => format!("{wanted}: this is a handle of a {kind}"),
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
        let (plans, contexts) = (Handles::<u8>::new(3), Handles::<u8>::new(0));
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
