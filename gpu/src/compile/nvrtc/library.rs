//! The C interface: functions looked up by name in a library given by its path, and programs that
//! free themselves.
//!
//! Declared here, not taken from a binding crate: those load one library per process from a fixed
//! list of names, and give statuses as a Rust `enum`, which a newer library's unknown status would
//! make undefined behaviour.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use super::{CompileError, NvrtcError, Version};
use crate::shared_library;

/// `Dl_info` of `dlfcn.h`.
#[cfg(unix)]
#[repr(C)]
struct Info {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

#[cfg(unix)]
unsafe extern "C" {
    fn dladdr(address: *const c_void, info: *mut Info) -> c_int;
}

/// `nvrtcResult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Status(c_int);

impl Status {
    pub(super) const SUCCESS: Self = Self(0);
    pub(super) const COMPILATION: Self = Self(6);
    pub(super) const INTERNAL_ERROR: Self = Self(11);

    fn ok(self) -> Result<(), Self> {
        if self == Self::SUCCESS { Ok(()) } else { Err(self) }
    }
}

/// `nvrtcProgram`.
type RawProgram = *mut c_void;
type GetSize = unsafe extern "C" fn(RawProgram, *mut usize) -> Status;
type GetBytes = unsafe extern "C" fn(RawProgram, *mut c_char) -> Status;

/// Declares the functions that are used and looks them up under their own names.
macro_rules! functions {
    ($($field:ident = $symbol:literal: $type:ty,)*) => {
        struct Functions { $($field: $type,)* }

        impl Functions {
            fn load(library: &libloading::Library, path: &Path) -> Result<Self, NvrtcError> {
                Ok(Self { $(
                    // SAFETY: the type is the one in nvrtc.h, unchanged since the function exists.
                    // The pointer is kept beside the library, in `Library`, and so does not outlive
                    // it.
                    $field: unsafe { library.get::<$type>($symbol) }.map(|f| *f).map_err(|_| {
                        NvrtcError::NotNvrtc { path: path.to_path_buf(), symbol: $symbol.into() }
                    })?,
                )* })
            }
        }
    };
}

functions! {
    version = "nvrtcVersion": unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
    architecture_count = "nvrtcGetNumSupportedArchs": unsafe extern "C" fn(*mut c_int) -> Status,
    architectures = "nvrtcGetSupportedArchs": unsafe extern "C" fn(*mut c_int) -> Status,
    error_string = "nvrtcGetErrorString": unsafe extern "C" fn(Status) -> *const c_char,
    create = "nvrtcCreateProgram": unsafe extern "C" fn(
        *mut RawProgram, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char,
    ) -> Status,
    destroy = "nvrtcDestroyProgram": unsafe extern "C" fn(*mut RawProgram) -> Status,
    compile = "nvrtcCompileProgram": unsafe extern "C" fn(RawProgram, c_int, *const *const c_char) -> Status,
    log_size = "nvrtcGetProgramLogSize": GetSize,
    log = "nvrtcGetProgramLog": GetBytes,
    ptx_size = "nvrtcGetPTXSize": GetSize,
    ptx = "nvrtcGetPTX": GetBytes,
    cubin_size = "nvrtcGetCUBINSize": GetSize,
    cubin = "nvrtcGetCUBIN": GetBytes,
}

/// A loaded library and its functions.
pub(super) struct Library {
    functions: Functions,
    /// The device functions that NVRTC loads by name when it first compiles. Kept so that it finds
    /// them.
    _builtins: Option<libloading::Library>,
    /// Dropped last: the functions above live in it.
    _library: libloading::Library,
}

impl Library {
    pub(super) fn open(path: &Path) -> Result<Self, NvrtcError> {
        let library = load(path)?;
        let functions = Functions::load(&library, path)?;
        let mut opened = Self { functions, _builtins: None, _library: library };
        if let Ok(version) = opened.version() {
            opened._builtins = builtins(path, version)?;
        }
        Ok(opened)
    }

    /// The file that it was loaded from, which the loader knows.
    #[cfg(unix)]
    pub(super) fn file(&self) -> Option<PathBuf> {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;

        let null = std::ptr::null_mut();
        let mut info = Info { file: null, base: null.cast(), symbol: null, address: null.cast() };
        // SAFETY: any address may be asked for, and the structure is the one of dlfcn.h.
        let found = unsafe { dladdr(self.functions.version as *const c_void, &raw mut info) };
        if found == 0 || info.file.is_null() {
            return None;
        }
        // SAFETY: the loader's own text, which lives as long as the library is open.
        let file = unsafe { CStr::from_ptr(info.file) };
        Some(PathBuf::from(OsStr::from_bytes(file.to_bytes())))
    }

    /// The file that it was loaded from, which this loader does not tell.
    #[cfg(not(unix))]
    pub(super) fn file(&self) -> Option<PathBuf> {
        None
    }

    pub(super) fn version(&self) -> Result<Version, Status> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are to live integers.
        unsafe { (self.functions.version)(&raw mut major, &raw mut minor) }.ok()?;
        Ok(Version { major: major.unsigned_abs(), minor: minor.unsigned_abs() })
    }

    /// The numbers of the supported architectures, 90 for `sm_90`.
    pub(super) fn architectures(&self) -> Result<Vec<u32>, Status> {
        let mut count = 0;
        // SAFETY: the pointer is to a live integer.
        unsafe { (self.functions.architecture_count)(&raw mut count) }.ok()?;
        let mut numbers = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the array has room for as many integers as the library said that it writes.
        unsafe { (self.functions.architectures)(numbers.as_mut_ptr()) }.ok()?;
        Ok(numbers.into_iter().map(c_int::unsigned_abs).collect())
    }

    /// NVRTC's name for a status.
    pub(super) fn describe(&self, status: Status) -> String {
        // SAFETY: takes any number.
        let text = unsafe { (self.functions.error_string)(status) };
        if text.is_null() {
            return format!("status {}", status.0);
        }
        // SAFETY: not null, so a string constant of the library, which is still open.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    pub(super) fn failure(&self, call: &'static str, status: Status) -> NvrtcError {
        NvrtcError::Call { call: call.into(), message: self.describe(status) }
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").finish_non_exhaustive()
    }
}

fn load(path: &Path) -> Result<libloading::Library, NvrtcError> {
    // SAFETY: runs the library's initialisers; that the file is trusted is `Nvrtc::open`'s stated
    // condition.
    unsafe { shared_library::open(path) }.map_err(|error| NvrtcError::Load {
        path: path.to_path_buf(),
        message: super::one_line(&error.to_string()),
    })
}

/// Loads the builtins library that lies beside an NVRTC library.
///
/// NVRTC opens it by its bare name. Not every build has a run path to its own folder (13.0's wheel
/// has none), but the loader reuses a library of that name that is loaded already. None beside it
/// means that the loader must find it; one that cannot be loaded is the one that NVRTC would take.
fn builtins(path: &Path, version: Version) -> Result<Option<libloading::Library>, NvrtcError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let beside = folder.map(|folder| folder.join(format!("libnvrtc-builtins.so.{version}")));
    beside.filter(|file| file.exists()).map(|file| load(&file)).transpose()
}

/// A program in a library, destroyed when dropped.
pub(super) struct Program<'a> {
    raw: RawProgram,
    functions: &'a Functions,
    _library: PhantomData<&'a Library>,
}

impl<'a> Program<'a> {
    pub(super) fn new(
        library: &'a Library,
        source: &str,
        name: &str,
    ) -> Result<Result<Self, Status>, CompileError> {
        let source =
            CString::new(source).map_err(|_| CompileError::Nul { part: "source".into() })?;
        let name =
            CString::new(name).map_err(|_| CompileError::Nul { part: "kernel's name".into() })?;
        let functions = &library.functions;
        let mut raw = std::ptr::null_mut();
        // SAFETY: two strings that live through the call, which copies them, and no headers.
        let status = unsafe {
            (functions.create)(
                &raw mut raw,
                source.as_ptr(),
                name.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        Ok(status.ok().map(|()| Self { raw, functions, _library: PhantomData }))
    }

    pub(super) fn compile(&self, arguments: &[String]) -> Result<Status, CompileError> {
        let arguments: Vec<CString> = arguments
            .iter()
            .map(|argument| CString::new(argument.as_str()))
            .collect::<Result<_, _>>()
            .map_err(|_| CompileError::Nul { part: "list of options".into() })?;
        let pointers: Vec<*const c_char> = arguments.iter().map(|a| a.as_ptr()).collect();
        // The list is a handful long.
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: the program is live; `count` strings that live through the call.
        Ok(unsafe { (self.functions.compile)(self.raw, count, pointers.as_ptr()) })
    }

    pub(super) fn log(&self) -> Result<Vec<u8>, Status> {
        self.bytes(self.functions.log_size, self.functions.log)
    }

    pub(super) fn ptx(&self) -> Result<Vec<u8>, Status> {
        self.bytes(self.functions.ptx_size, self.functions.ptx)
    }

    pub(super) fn cubin(&self) -> Result<Vec<u8>, Status> {
        self.bytes(self.functions.cubin_size, self.functions.cubin)
    }

    fn bytes(&self, size: GetSize, get: GetBytes) -> Result<Vec<u8>, Status> {
        let mut length = 0;
        // SAFETY: the program is live and the pointer is to a live integer.
        unsafe { size(self.raw, &raw mut length) }.ok()?;
        let mut bytes = vec![0u8; length];
        // SAFETY: the program is live and the buffer has the size that the library said.
        unsafe { get(self.raw, bytes.as_mut_ptr().cast()) }.ok()?;
        Ok(bytes)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `create`, destroyed only here. A failure leaves nothing that could be
        // done.
        let _ = unsafe { (self.functions.destroy)(&raw mut self.raw) };
    }
}
