//! Workspaces of the caller's: what lets products of one plan overlap.

use std::ffi::c_void;
use std::sync::{PoisonError, RwLock};

use sparserl_gpu::run::operator::{ForeignStream, WORKSPACE_ALIGNMENT};

use crate::context::Gpu;
use crate::matrix::check_memory;
use crate::status::{Failure, Status};

/// The default stream of all threads, by its handle beside NULL (`CU_STREAM_LEGACY`).
const LEGACY: usize = 1;
/// The default stream of the calling thread (`CU_STREAM_PER_THREAD`).
const PER_THREAD: usize = 2;

/// Memory in the place of the kernels' own workspace, by the streams that products are asked of.
#[derive(Default)]
pub(crate) struct Workspaces(RwLock<Vec<Workspace>>);

#[derive(Clone, Copy)]
struct Workspace {
    stream: usize,
    address: u64,
    bytes: u64,
}

impl Workspaces {
    /// Where the workspace of a product on a stream lies, if it is the caller's.
    ///
    /// # Errors
    /// When the kernel needs more than was given.
    pub(crate) fn of(&self, stream: *mut c_void, needed: u64) -> Result<Option<u64>, Failure> {
        if needed == 0 {
            return Ok(None);
        }
        let workspaces = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match workspaces.iter().find(|workspace| workspace.stream == key(stream)) {
            Some(Workspace { bytes, .. }) if *bytes < needed => {
                Err(Failure::argument(format_args!(
                    "the stream's workspace has {bytes} bytes, and the plan's kernel needs {needed}"
                )))
            }
            found => Ok(found.map(|workspace| workspace.address)),
        }
    }

    /// Lets products on a stream write to memory of the caller's in the place of the plan's own; no
    /// memory lets them use the plan's own again. `is_checked` has the driver asked what lies
    /// there.
    ///
    /// # Safety
    /// The stream is null, one of the special handles of `cuda.h`, or a live one. The memory stays,
    /// and nobody else writes it, as long as it is in use.
    pub(crate) unsafe fn set(
        &self,
        gpu: &Gpu,
        stream: *mut c_void,
        memory: *mut c_void,
        size: usize,
        is_checked: bool,
    ) -> Result<(), Failure> {
        if stream.addr() == PER_THREAD {
            return Err(Failure::new(
                Status::Unsupported,
                "the default stream of a thread is another one in each, and they cannot be told \
                 apart: give a stream that was created",
            ));
        }
        // SAFETY: by the contract.
        gpu.check_stream(unsafe { ForeignStream::new(stream) })?;
        if memory.is_null() {
            if size > 0 {
                return Err(Failure::null("workspace"));
            }
            self.take(key(stream));
            return Ok(());
        }
        let address = memory.addr() as u64;
        if !address.is_multiple_of(WORKSPACE_ALIGNMENT) {
            return Err(Failure::argument(format_args!(
                "workspace is not aligned to {WORKSPACE_ALIGNMENT} bytes"
            )));
        }
        if is_checked {
            let _entered = gpu.device.enter_unless_current()?;
            check_memory(&gpu.device, "workspace", memory, size)?;
        }
        self.put(Workspace { stream: key(stream), address, bytes: size as u64 })
    }

    fn put(&self, given: Workspace) -> Result<(), Failure> {
        let mut workspaces = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut others = workspaces.iter().filter(|other| other.stream != given.stream);
        let overlaps = |other: &Workspace| {
            given.address < other.address.saturating_add(other.bytes)
                && other.address < given.address.saturating_add(given.bytes)
        };
        if others.any(overlaps) {
            return Err(Failure::argument("the workspace overlaps that of another stream"));
        }
        workspaces.retain(|other| other.stream != given.stream);
        workspaces.push(given);
        Ok(())
    }

    fn take(&self, stream: usize) {
        let mut workspaces = self.0.write().unwrap_or_else(PoisonError::into_inner);
        workspaces.retain(|workspace| workspace.stream != stream);
    }
}

/// Whether it is the default stream that waits for others, and they for it.
pub(crate) fn is_legacy(stream: *mut c_void) -> bool {
    key(stream) == 0
}

/// What tells streams apart: the legacy one has two handles.
fn key(stream: *mut c_void) -> usize {
    match stream.addr() {
        LEGACY => 0,
        handle => handle,
    }
}
