//! A library with the C interface of `opponents/opponent.h`.

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::time::Instant;

use libloading::Library;
use sparserl_core::matrix::Scalar;
use sparserl_core::task::Operation;

use super::cusparse::Product;
use crate::run::device::{Device, DeviceBuffer, DeviceError, Stream};
use crate::shared_library;

/// `SPARSERL_OPPONENT_INTERFACE`.
const INTERFACE: i32 = 1;
/// `SPARSERL_OPPONENT_READY`.
const READY: i32 = 0;
/// `SPARSERL_OPPONENT_NOT_APPLICABLE`.
const NOT_APPLICABLE: i32 = 1;

/// `sparserl_opponent_product`.
#[repr(C)]
struct ForeignProduct {
    rows: i32,
    cols: i32,
    nonzeros: i32,
    columns: i32,
    element_bits: i32,
    row_offsets: *const i32,
    column_indices: *const i32,
    values: *const c_void,
    input: *const c_void,
    output: *mut c_void,
    host_row_offsets: *const i32,
}

type Text = unsafe extern "C" fn() -> *const c_char;
type Prepare =
    unsafe extern "C" fn(*const ForeignProduct, *mut c_void, *mut *mut c_void, *mut u64) -> i32;
type Enqueue = unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32;
type Release = unsafe extern "C" fn(*mut c_void);

/// A loaded library.
#[derive(Debug)]
pub(super) struct Foreign {
    name: String,
    version: String,
    prepare: Prepare,
    enqueue: Enqueue,
    release: Release,
}

/// A library cannot be loaded, or refuses a product.
#[derive(Debug, thiserror::Error)]
pub(super) enum ForeignError {
    /// It does not load.
    #[error("cannot load the opponent: {reason}")]
    Load {
        /// The loader's reason.
        reason: String,
    },
    /// It is no library of this interface.
    #[error("the opponent has no {symbol}: see gpu/opponents/opponent.h")]
    Symbol {
        /// The first function that it lacks.
        symbol: &'static str,
    },
    /// It was compiled with another version of the header.
    #[error(
        "the opponent has interface {found}, expected {INTERFACE}: compile it with this opponent.h"
    )]
    Interface {
        /// The version that it gives.
        found: i32,
    },
    /// A call gave an error.
    #[error("{call} of the opponent gives error {status}")]
    Call {
        /// The function.
        call: &'static str,
        /// What it gave.
        status: i32,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A product made ready by a library; released when dropped.
#[derive(Debug)]
pub(super) struct Plan<'c> {
    pub(super) analysis_seconds: f64,
    pub(super) buffer_bytes: u64,
    foreign: &'c Foreign,
    device: Device,
    stream: &'c Stream,
    raw: *mut c_void,
}

impl Foreign {
    /// Loads a library, for as long as this process runs.
    pub(super) fn open(path: &Path) -> Result<Self, ForeignError> {
        // SAFETY: runs the initialisers of a library that the user names to be run.
        let library = unsafe { shared_library::open(path) }
            .map_err(|error| ForeignError::Load { reason: error.to_string() })?;
        // Code that CUDA has been told of is better never unloaded.
        let library: &'static Library = Box::leak(Box::new(library));
        let interface =
            function::<unsafe extern "C" fn() -> i32>(library, "sparserl_opponent_interface")?;
        // SAFETY: the function of this name takes nothing, in every version of the interface.
        let found = unsafe { interface() };
        if found != INTERFACE {
            return Err(ForeignError::Interface { found });
        }
        let text = |symbol| -> Result<String, ForeignError> {
            let text = function::<Text>(library, symbol)?;
            // SAFETY: of the type in the header, whose version was compared.
            let text = unsafe { text() };
            if text.is_null() {
                return Ok(String::new());
            }
            // SAFETY: a string of the library's own, which stays.
            Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().replace(['\n', '\r'], " "))
        };
        Ok(Self {
            name: text("sparserl_opponent_name")?,
            version: text("sparserl_opponent_version")?,
            prepare: function(library, "sparserl_opponent_prepare")?,
            enqueue: function(library, "sparserl_opponent_enqueue")?,
            release: function(library, "sparserl_opponent_release")?,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Name and version.
    pub(super) fn library(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// Makes a product with α = 1 and β = 0 ready; `None` when it is none for the library. The
    /// interface has no half precision: a number of bits would not tell which.
    pub(super) fn prepare<'c, T: Scalar>(
        &'c self,
        device: &Device,
        stream: &'c Stream,
        product: &Product<'c, T>,
    ) -> Result<Option<Plan<'c>>, ForeignError> {
        let is_half = T::DTYPE != T::Accumulator::DTYPE;
        if is_half || (product.alpha.to_f64(), product.beta.to_f64()) != (1.0, 0.0) {
            return Ok(None);
        }
        let (csr, host) = (product.csr, product.host);
        let columns = match product.operation {
            Operation::SpMV => 0,
            Operation::SpMM { columns } => columns.get(),
        };
        let sizes = [csr.rows as u64, csr.cols as u64, csr.nnz as u64, columns.into()];
        let [Ok(rows), Ok(cols), Ok(nonzeros), Ok(columns)] = sizes.map(i32::try_from) else {
            return Ok(None);
        };
        // As the offsets' last, which is the number of entries, fits.
        let host_offsets = host.offsets();
        let host_offsets: Vec<i32> =
            (0..host_offsets.len()).map(|i| host_offsets.at(i) as i32).collect();
        let pointer = |buffer: &DeviceBuffer| buffer.address() as *mut c_void;
        let foreign = ForeignProduct {
            rows,
            cols,
            nonzeros,
            columns,
            element_bits: 8 * size_of::<T>() as i32,
            row_offsets: pointer(&csr.offsets).cast(),
            column_indices: pointer(&csr.columns).cast(),
            values: pointer(&csr.values),
            input: pointer(product.input),
            output: pointer(product.output),
            host_row_offsets: host_offsets.as_ptr(),
        };
        device.bind()?;
        stream.synchronize()?;
        let start = Instant::now();
        let (mut raw, mut buffer_bytes) = (std::ptr::null_mut(), 0);
        // SAFETY: of the type in the header, whose version was compared. The product and the host's
        // offsets live until the call returns; the arrays on the device live as long as 'c, and so
        // longer than the plan.
        let status = unsafe {
            (self.prepare)(
                &raw const foreign,
                stream.handle().cast(),
                &raw mut raw,
                &raw mut buffer_bytes,
            )
        };
        match status {
            READY => {}
            NOT_APPLICABLE => return Ok(None),
            status => return Err(ForeignError::Call { call: "sparserl_opponent_prepare", status }),
        }
        let mut plan = Plan {
            analysis_seconds: 0.0,
            buffer_bytes,
            foreign: self,
            device: device.clone(),
            stream,
            raw,
        };
        stream.synchronize()?;
        plan.analysis_seconds = start.elapsed().as_secs_f64();
        Ok(Some(plan))
    }
}

/// Looks a function up.
fn function<F: Copy>(library: &'static Library, symbol: &'static str) -> Result<F, ForeignError> {
    // SAFETY: the type is the one in the header, as the version of the interface promises. The
    // library is never unloaded.
    let found = unsafe { library.get::<F>(symbol) };
    found.map(|function| *function).map_err(|_| ForeignError::Symbol { symbol })
}

impl Plan<'_> {
    /// Enqueues the product.
    pub(super) fn enqueue(&self) -> Result<(), ForeignError> {
        self.device.bind()?;
        // SAFETY: the plan was made by the same library and is not yet released; the stream is
        // live.
        match unsafe { (self.foreign.enqueue)(self.raw, self.stream.handle().cast()) } {
            0 => Ok(()),
            status => Err(ForeignError::Call { call: "sparserl_opponent_enqueue", status }),
        }
    }
}

impl Drop for Plan<'_> {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: made in `prepare`, released only here.
            unsafe { (self.foreign.release)(self.raw) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../../opponents/opponent.h");

    #[test]
    fn what_is_no_opponent_is_refused_with_a_reason() {
        let error = Foreign::open(Path::new("/nowhere/libnone.so")).unwrap_err().to_string();
        assert!(error.starts_with("cannot load the opponent: "), "{error}");
        assert_eq!(error.lines().count(), 1);
        #[cfg(target_os = "linux")]
        {
            let error = Foreign::open(Path::new("libc.so.6")).unwrap_err().to_string();
            assert!(error.contains("no sparserl_opponent_interface"), "{error}");
        }
    }

    #[test]
    fn the_header_declares_what_is_looked_up() {
        for line in [
            format!("#define SPARSERL_OPPONENT_INTERFACE {INTERFACE}\n"),
            format!("#define SPARSERL_OPPONENT_READY {READY}\n"),
            format!("#define SPARSERL_OPPONENT_NOT_APPLICABLE {NOT_APPLICABLE}\n"),
        ] {
            assert!(HEADER.contains(&line), "{line}");
        }
        for function in ["interface", "name", "version", "prepare", "enqueue", "release"] {
            assert!(HEADER.contains(&format!("sparserl_opponent_{function}(")), "{function}");
        }
        // Five integers, and six pointers at their natural alignment.
        assert_eq!(size_of::<ForeignProduct>(), 24 + 6 * size_of::<usize>());
    }
}
