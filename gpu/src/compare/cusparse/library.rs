//! The C interface: functions looked up by name in a library found where CUDA's toolkit has it.
//!
//! Declared here, not taken from a binding crate: those look for the library nowhere but in the
//! loader's search path, panic when a function is missing, and give statuses as a Rust `enum`,
//! which a newer library's unknown status would make undefined behaviour.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::CusparseError;
use super::offer::Offer;
use super::types::{Address, Descriptor, Destroy, Handle, LibraryVersion, SpMm, SpMv, Status};
use crate::shared_library::{self, OpenError};

/// Names of the library; the first, of CUDA 12 and 13 alike, is the one that the loader is asked
/// for.
const NAMES: [&str; 3] = ["libcusparse.so.12", "libcusparse.so.13", "libcusparse.so"];

/// Where NVIDIA's installer puts the toolkit, which is often not in the loader's search path.
const TOOLKIT_FOLDERS: [&str; 2] =
    ["/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"];

/// Declares the functions that are used and looks them up under their own names.
macro_rules! functions {
    ($($field:ident = $symbol:literal: $type:ty,)*) => {
        #[derive(Debug)]
        pub(super) struct Functions {
            $(pub(super) $field: $type,)*
            /// Absent before CUDA 13.1.
            pub(super) spmv_op: Offer,
        }

        impl Functions {
            fn load(library: &libloading::Library) -> Result<Self, CusparseError> {
                let mut functions = Self {
                    $(
                        // SAFETY: the type is the one in cusparse.h, unchanged since CUDA 12.4. The
                        // pointer outlives no library, as the library is never unloaded.
                        $field: *unsafe { library.get::<$type>($symbol) }
                            .map_err(|_| CusparseError::TooOld { symbol: $symbol })?,
                    )*
                    spmv_op: Offer::Absent,
                };
                functions.spmv_op = Offer::of(library, functions.version()?);
                Ok(functions)
            }
        }
    };
}

functions! {
    property = "cusparseGetProperty": unsafe extern "C" fn(c_int, *mut c_int) -> Status,
    error_string = "cusparseGetErrorString": unsafe extern "C" fn(Status) -> *const c_char,
    create = "cusparseCreate": unsafe extern "C" fn(*mut Handle) -> Status,
    destroy = "cusparseDestroy": Destroy,
    set_stream = "cusparseSetStream": unsafe extern "C" fn(Handle, *mut c_void) -> Status,
    create_csr = "cusparseCreateCsr": unsafe extern "C" fn(
        *mut Descriptor, i64, i64, i64, Address, Address, Address, c_int, c_int, c_int, c_int,
    ) -> Status,
    create_sell = "cusparseCreateSlicedEll": unsafe extern "C" fn(
        *mut Descriptor, i64, i64, i64, i64, i64, Address, Address, Address, c_int, c_int, c_int, c_int,
    ) -> Status,
    create_bsr = "cusparseCreateBsr": unsafe extern "C" fn(
        *mut Descriptor, i64, i64, i64, i64, i64, Address, Address, Address, c_int, c_int, c_int, c_int, c_int,
    ) -> Status,
    create_vector = "cusparseCreateDnVec": unsafe extern "C" fn(*mut Descriptor, i64, Address, c_int) -> Status,
    create_dense = "cusparseCreateDnMat": unsafe extern "C" fn(
        *mut Descriptor, i64, i64, i64, Address, c_int, c_int,
    ) -> Status,
    destroy_sparse = "cusparseDestroySpMat": Destroy,
    destroy_vector = "cusparseDestroyDnVec": Destroy,
    destroy_dense = "cusparseDestroyDnMat": Destroy,
    spmv_buffer_size = "cusparseSpMV_bufferSize": SpMv<*mut usize>,
    spmv_preprocess = "cusparseSpMV_preprocess": SpMv<Address>,
    spmv = "cusparseSpMV": SpMv<Address>,
    spmm_buffer_size = "cusparseSpMM_bufferSize": SpMm<*mut usize>,
    spmm_preprocess = "cusparseSpMM_preprocess": SpMm<Address>,
    spmm = "cusparseSpMM": SpMm<Address>,
}

impl Functions {
    /// Loads a library once per process, for as long as it runs.
    pub(super) fn get(path: Option<&Path>) -> Result<&'static Self, CusparseError> {
        type Loaded = BTreeMap<Option<PathBuf>, Result<&'static Functions, CusparseError>>;
        static LOADED: Mutex<Loaded> = Mutex::new(BTreeMap::new());
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let load = || {
            let library = find(path)?;
            let functions = Functions::load(&library);
            // Code that CUDA has been told of is better never unloaded.
            std::mem::forget(library);
            Ok(&*Box::leak(Box::new(functions?)))
        };
        loaded.entry(path.map(Path::to_owned)).or_insert_with(load).clone()
    }

    /// The library's version.
    pub(super) fn version(&self) -> Result<LibraryVersion, CusparseError> {
        let mut parts = [0; 3];
        for (property, part) in (0..).zip(&mut parts) {
            // SAFETY: the pointer is to a live integer.
            let status = unsafe { (self.property)(property, part) };
            self.check("cusparseGetProperty", status)?;
        }
        Ok(parts)
    }

    /// Names the call that failed, with the library's own reason.
    pub(super) fn check(&self, call: &'static str, status: Status) -> Result<(), CusparseError> {
        if status == Status::SUCCESS {
            return Ok(());
        }
        // SAFETY: takes any number.
        let text = unsafe { (self.error_string)(status) };
        let message = if text.is_null() {
            "no reason given".to_owned()
        } else {
            // SAFETY: a string of the library's own, which stays.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        Err(CusparseError::Call { call, status: status.0, message })
    }
}

/// The library at a path, or where the loader and NVIDIA's installer have it.
fn find(path: Option<&Path>) -> Result<libloading::Library, CusparseError> {
    let candidates = match path {
        Some(folder) if folder.is_dir() => NAMES.map(|name| folder.join(name)).to_vec(),
        Some(file) => vec![file.to_owned()],
        None => {
            let installed = TOOLKIT_FOLDERS.map(|folder| Path::new(folder).join(NAMES[0]));
            [PathBuf::from(NAMES[0])].into_iter().chain(installed).collect()
        }
    };
    let mut reason = None;
    for (i, candidate) in candidates.iter().enumerate() {
        // The first is the loader's to find, unless a place was named.
        if (i > 0 || path.is_some()) && !candidate.exists() {
            continue;
        }
        load_linker_beside(candidate);
        match load(candidate) {
            Ok(library) => return Ok(library),
            Err(error) => reason = Some(error.to_string()),
        }
    }
    let nothing = || format!("no libcusparse in {}", path.unwrap_or(Path::new("")).display());
    Err(CusparseError::NotFound { reason: reason.unwrap_or_else(nothing) })
}

/// Loads the nvJitLink that lies beside a cuSPARSE, if one does. Newer versions look for it by name
/// alone when a plan is made, and so find the one that came with them whatever the loader's search
/// path holds.
fn load_linker_beside(cusparse: &Path) {
    let Some(folder) = cusparse.parent().filter(|folder| folder.is_dir()) else { return };
    for name in ["libnvJitLink.so.13", "libnvJitLink.so.12"] {
        let path = folder.join(name);
        if path.exists()
            && let Ok(library) = load(&path)
        {
            std::mem::forget(library);
        }
    }
}

fn load(path: &Path) -> Result<libloading::Library, OpenError> {
    // SAFETY: runs the initialisers of NVIDIA's library, trusted as the driver is, from the
    // loader's own path, from where only an administrator can write, or from where the user says.
    unsafe { shared_library::open(path) }
}
