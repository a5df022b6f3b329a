//! What calls return, and the text that says why.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::float_environment::FloatEnvironment;
use crate::types;

/// A status of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Status {
    Success = types::SPARSERL_SUCCESS,
    NullPointer = types::SPARSERL_NULL_POINTER,
    InvalidHandle = types::SPARSERL_INVALID_HANDLE,
    InvalidArgument = types::SPARSERL_INVALID_ARGUMENT,
    InvalidMatrix = types::SPARSERL_INVALID_MATRIX,
    Unsupported = types::SPARSERL_UNSUPPORTED,
    NoDevice = types::SPARSERL_NO_DEVICE,
    WrongDevice = types::SPARSERL_WRONG_DEVICE,
    OutOfMemory = types::SPARSERL_OUT_OF_MEMORY,
    MemoryLimit = types::SPARSERL_MEMORY_LIMIT,
    Capturing = types::SPARSERL_CAPTURING,
    NoCompiler = types::SPARSERL_NO_COMPILER,
    Epilogue = types::SPARSERL_EPILOGUE,
    File = types::SPARSERL_FILE,
    Mismatch = types::SPARSERL_MISMATCH,
    NotKnown = types::SPARSERL_NOT_KNOWN,
    BufferTooSmall = types::SPARSERL_BUFFER_TOO_SMALL,
    DeviceFailed = types::SPARSERL_DEVICE_FAILED,
    Internal = types::SPARSERL_INTERNAL,
}

impl Status {
    pub(crate) const ALL: [(Self, &'static CStr); 19] = [
        (Self::Success, c"success"),
        (Self::NullPointer, c"null pointer"),
        (Self::InvalidHandle, c"invalid handle"),
        (Self::InvalidArgument, c"invalid argument"),
        (Self::InvalidMatrix, c"invalid matrix"),
        (Self::Unsupported, c"unsupported"),
        (Self::NoDevice, c"no device"),
        (Self::WrongDevice, c"wrong device"),
        (Self::OutOfMemory, c"out of memory"),
        (Self::MemoryLimit, c"memory limit"),
        (Self::Capturing, c"stream is capturing"),
        (Self::NoCompiler, c"no compiler"),
        (Self::Epilogue, c"wrong epilogue"),
        (Self::File, c"file"),
        (Self::Mismatch, c"mismatch"),
        (Self::NotKnown, c"not known"),
        (Self::BufferTooSmall, c"buffer too small"),
        (Self::DeviceFailed, c"device failed"),
        (Self::Internal, c"internal error"),
    ];
}

/// A call that did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    /// What, where and how to fix it, in one line.
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl fmt::Display) -> Self {
        Self { status, text: text.to_string() }
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::new(Status::NullPointer, format_args!("{what} is NULL"))
    }

    pub(crate) fn argument(text: impl fmt::Display) -> Self {
        Self::new(Status::InvalidArgument, text)
    }

    pub(crate) fn internal(text: impl fmt::Display) -> Self {
        Self::new(Status::Internal, text)
    }
}

/// From `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` to `CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD` of
/// `cuda.h`.
const CAPTURE_ERRORS: RangeInclusive<u32> = 900..=908;

impl From<sparserl_gpu::run::device::DeviceError> for Failure {
    fn from(error: sparserl_gpu::run::device::DeviceError) -> Self {
        use sparserl_gpu::run::device::DeviceError;
        let status = match &error {
            _ if error.is_absence() => Status::NoDevice,
            DeviceError::OutOfMemory { .. } => Status::OutOfMemory,
            DeviceError::Driver { failure, .. } if CAPTURE_ERRORS.contains(&failure.code()) => {
                Status::Capturing
            }
            DeviceError::UnknownArchitecture { .. } | DeviceError::DriverTooOld { .. } => {
                Status::Unsupported
            }
            _ => Status::DeviceFailed,
        };
        Self::new(status, error)
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Does what a function of the API does. Whatever goes wrong, its text is kept for this thread, and
/// no panic gets to the caller.
pub(crate) fn call(act: impl FnOnce() -> Result<(), Failure>) -> i32 {
    let _usual = FloatEnvironment::usual();
    let failure = match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(())) => return Status::Success as i32,
        Ok(Err(failure)) => failure,
        Err(panic) => panicked(panic),
    };
    keep(&failure.text);
    failure.status as i32
}

/// What a panic means to the caller, of this thread or of one that helped it.
#[allow(clippy::needless_pass_by_value, reason = "what catches panics gives boxes away")]
pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or(panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("it panicked");
    Failure::internal(format_args!("a defect of SparseRL, please report it: {text}"))
}

fn keep(text: &str) {
    // One line, and C ends at the first NUL.
    let line = text.lines().map(str::trim).collect::<Vec<_>>().join(" ").replace('\0', " ");
    let line = CString::new(line).unwrap_or_default();
    // Fails only while the thread ends.
    let _ = LAST.try_with(|last| *last.borrow_mut() = line);
}

/// The text of the last call of this thread that failed; empty before one did.
pub(crate) fn last() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_abi() {
        for ((status, _), number) in Status::ALL.into_iter().zip(0..) {
            assert_eq!(status as i32, number);
        }
    }

    #[test]
    fn panics_become_a_status_and_texts_one_line() {
        assert_eq!(call(|| Ok(())), 0);
        // SAFETY: the text lives until the next call of this thread fails.
        let text = || unsafe { CStr::from_ptr(last()) }.to_str().unwrap().to_owned();
        assert_eq!(call(|| panic!("lost")), Status::Internal as i32);
        assert!(text().ends_with("lost"), "{}", text());
        let helper = std::thread::spawn(|| panic!("lost in {}", "a helper"));
        let failure = helper.join().map_err(panicked).unwrap_err();
        assert_eq!(failure.status, Status::Internal);
        assert!(failure.text.ends_with("lost in a helper"), "{}", failure.text);
        let status = call(|| Err(Failure::argument("two\nlines and a \0")));
        assert_eq!(status, Status::InvalidArgument as i32);
        assert_eq!(text(), "two lines and a  ");
        // A success leaves the text as it is.
        assert_eq!(call(|| Ok(())), 0);
        assert_eq!(text(), "two lines and a  ");
        std::thread::spawn(|| {
            // SAFETY: as above.
            assert!(unsafe { CStr::from_ptr(last()) }.is_empty());
        })
        .join()
        .unwrap();
    }
}
