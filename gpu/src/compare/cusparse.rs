//! NVIDIA's cuSPARSE: the baselines that generated kernels are compared with.
//!
//! ```text
//! Cusparse::open ─► prepare (convert, take a buffer, analyse) ─► Prepared::enqueue, repeatedly
//! ```
//!
//! The library is loaded when it is first opened; without it, [`Cusparse::open`] gives an error of
//! one line. A baseline that fails is a finding of a comparison, not its end: every error concerns
//! one algorithm on one matrix. The library itself writes a line to the standard error stream for
//! some of them, which it has no switch for.

mod algorithm;
mod bsr;
mod call;
mod description;
mod library;
mod offer;
mod prepared;
mod sell;
mod spmv_op;
mod stored;
#[cfg(test)]
mod tests;
mod types;

use std::ffi::c_int;
use std::path::Path;

pub(crate) use algorithm::Algorithm;
pub(crate) use prepared::{Prepared, Product};

use std::sync::Arc;

use sparserl_core::task::Operation;

use super::NO_CUSPARSE;
use crate::run::device::{Device, DeviceError, Stream};
use library::Functions;
use offer::SpMvOpFunctions;
use types::{Handle, LibraryVersion};

/// cuSPARSE on one device and stream.
#[derive(Debug)]
pub(crate) struct Cusparse {
    functions: &'static Functions,
    handle: Handle,
    device: Device,
    /// What its handle works on.
    stream: Arc<Stream>,
}

impl Cusparse {
    /// Loads the library, from a file or folder or else from where the loader or CUDA's installer
    /// has it, and makes it work on `stream`, which is one of `device`.
    ///
    /// # Errors
    /// Without the library, with one older than CUDA 12.4's, or when it fails.
    pub(crate) fn open(
        device: &Device,
        stream: Arc<Stream>,
        path: Option<&Path>,
    ) -> Result<Self, CusparseError> {
        let functions = Functions::get(path)?;
        device.bind()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the pointer is to a live handle. The library uses the primary context, which is
        // the device's.
        let status = unsafe { (functions.create)(&raw mut handle) };
        functions.check("cusparseCreate", status)?;
        let opened = Self { functions, handle, device: device.clone(), stream };
        // SAFETY: the handle was just made; `opened` keeps the stream.
        let status = unsafe { (functions.set_stream)(handle, opened.stream.handle().cast()) };
        functions.check("cusparseSetStream", status)?;
        Ok(opened)
    }

    /// The library's version, `12.6.3` say.
    ///
    /// # Errors
    /// When the library fails.
    pub(crate) fn version(&self) -> Result<String, CusparseError> {
        self.functions.version().map(dotted)
    }

    /// The algorithms that this version has for an operation, the default first.
    pub(crate) fn algorithms(&self, operation: Operation) -> impl Iterator<Item = Algorithm> {
        let planned = self.functions.spmv_op.functions();
        // Of a version whose interface is not known, both are there, to be reported as not
        // compared.
        let has = move |algorithm: &Algorithm| match algorithm {
            Algorithm::SpMvOpAlg1 => !matches!(planned, Ok(None)),
            Algorithm::SpMvOpAlg2 => planned
                .as_ref()
                .map_or(true, |found| found.is_some_and(SpMvOpFunctions::has_algorithms)),
            _ => true,
        };
        Algorithm::all(operation).iter().copied().filter(has)
    }
}

fn dotted([major, minor, patch]: LibraryVersion) -> String {
    format!("{major}.{minor}.{patch}")
}

impl Drop for Cusparse {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: made in `open`, destroyed only here. A failure leaves nothing that could be
            // done.
            let _ = unsafe { (self.functions.destroy)(self.handle) };
        }
    }
}

/// A baseline could not be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CusparseError {
    /// The library is not there, or does not load.
    #[error(
        "{NO_CUSPARSE}: {reason}; install CUDA's toolkit and put its lib64 into LD_LIBRARY_PATH, or say where one is"
    )]
    NotFound {
        /// The loader's.
        reason: String,
    },
    /// The library lacks a function that is needed.
    #[error("cuSPARSE is too old: it has no {symbol}; install that of CUDA 12.4 or later")]
    TooOld {
        /// The first function that it lacks.
        symbol: &'static str,
    },
    /// The algorithm is not meant for this operation or matrix. It is left out of comparisons.
    #[error("{algorithm} does not apply: {reason}")]
    NotApplicable {
        /// The algorithm.
        algorithm: Algorithm,
        /// Why not.
        reason: String,
    },
    /// An operand does not fit the others.
    #[error("{operand} has {found}, not {expected}")]
    Operand {
        /// Which.
        operand: &'static str,
        /// What it should have.
        expected: String,
        /// What it has.
        found: String,
    },
    /// An experimental interface, in a version later than those whose signatures are known.
    #[error(
        "not compared: the interface of cuSPARSE {} may differ from that of {}, the last known",
        dotted(*found), dotted(*last)
    )]
    UnknownInterface {
        /// The library's version.
        found: LibraryVersion,
        /// The last version that is called.
        last: LibraryVersion,
    },
    /// A call failed.
    #[error("{call} failed: {message} (status {status})")]
    Call {
        /// The function.
        call: &'static str,
        /// The number in `cusparse.h`.
        status: c_int,
        /// The library's reason.
        message: String,
    },
    /// The device failed, or lacks memory.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl CusparseError {
    /// Whether the algorithm is to be left out rather than reported as failed.
    #[must_use]
    pub(crate) fn is_not_applicable(&self) -> bool {
        matches!(self, Self::NotApplicable { .. })
    }
}
