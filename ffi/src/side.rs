//! The kernels of a plan for A, or for Aᵀ, of which a better one takes the place of the other.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use sparserl_core::codegen::Epilogue;

use crate::kernel::{Known, PlanKernel};
use crate::matrix::{Entries, Matrix};
use crate::op::Op;

/// The kernels for A, or for Aᵀ.
pub(crate) struct Side {
    /// What all of them make of products before they are stored.
    pub(crate) epilogue: Option<Epilogue>,
    current: RwLock<Arc<PlanKernel>>,
    /// A better one that waits for values.
    pending: Mutex<Option<Arc<PlanKernel>>>,
    /// Those that were used before: graphs may have them.
    retired: Mutex<Vec<Arc<PlanKernel>>>,
}

impl Side {
    pub(crate) fn new(kernel: PlanKernel, epilogue: Option<Epilogue>) -> Self {
        Self {
            epilogue,
            current: RwLock::new(Arc::new(kernel)),
            pending: Mutex::new(None),
            retired: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn current(&self) -> Arc<PlanKernel> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The current kernel, marked as one that a graph may have.
    pub(crate) fn current_for_graph(&self) -> Arc<PlanKernel> {
        // Marked under the lock: whoever puts another in its place then sees the mark.
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = &current.loaded {
            loaded.captured.store(true, Ordering::Relaxed);
        }
        Arc::clone(&current)
    }

    /// Bytes of device memory that its kernels take, those that wait or were used before included.
    pub(crate) fn device_bytes(&self) -> u64 {
        // Held, so that none is missed on its way from one place to another.
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.current();
        let retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let kernels = pending.iter().chain(retired.iter()).chain(std::iter::once(&current));
        kernels.map(|kernel| kernel.device_bytes()).sum()
    }

    /// The kernel that is best, whether it is in use yet or waits for values.
    pub(crate) fn best(&self) -> Arc<PlanKernel> {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.clone().unwrap_or_else(|| self.current())
    }

    /// Puts a better kernel in the place of the current one: at once, or with the next values.
    pub(crate) fn put(&self, kernel: PlanKernel, at_once: bool) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(kernel));
        if at_once {
            self.take_pending();
        }
    }

    /// Begins to use what waits for values, if anything does.
    pub(crate) fn take_pending(&self) {
        // Held until it is in its place, so that it is always seen in one of the two.
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(better) = pending.take() {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            let old = std::mem::replace(&mut *current, better);
            self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(old);
        }
    }

    /// Says so where a better kernel waits for values that will not bring it any more: a graph
    /// updates them, and it knows the kernels that there were.
    pub(crate) fn keep_current(&self) {
        if self.pending.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            self.settle(
                "plain CSR: an update of values was captured, after which no kernel is swapped",
            );
        }
    }

    /// Says why the kernel stays the one it is.
    pub(crate) fn settle(&self, why: &str) {
        self.settle_as(Known { why: why.to_owned(), ..self.current().known.clone() });
    }

    /// Says what was found out about the kernel, which stays the one it is.
    pub(crate) fn settle_as(&self, known: Known) {
        let kernel = self.current();
        *kernel.settled.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
    }

    /// Kernels that graphs may have.
    pub(crate) fn captured(&self) -> Vec<Arc<PlanKernel>> {
        let retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let is_captured = |kernel: &&Arc<PlanKernel>| {
            kernel.loaded.as_ref().is_some_and(|loaded| loaded.captured.load(Ordering::Relaxed))
        };
        retired.iter().filter(is_captured).cloned().collect()
    }
}

/// The entries of A or Aᵀ.
pub(crate) fn entries(matrix: &Matrix, op: Op) -> &Entries {
    match op {
        Op::None => &matrix.entries,
        Op::Transpose => matrix.transposed(),
    }
}

/// Which entry of A each entry is, for Aᵀ.
pub(crate) fn origins(matrix: &Matrix, op: Op) -> Option<&[u64]> {
    match op {
        Op::None => None,
        Op::Transpose => Some(matrix.origins()),
    }
}
