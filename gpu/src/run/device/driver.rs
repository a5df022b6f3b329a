//! The driver library: whether it is there, and its errors.

use std::ffi::{CStr, c_int};
use std::fmt;
use std::sync::OnceLock;

use cudarc::driver::{DriverError, sys};

use super::DeviceError;
use crate::shared_library;

/// What the library is called, in the order in which it is looked for.
const NAMES: [&str; 2] = ["libcuda.so", "libcuda.so.1"];
/// Every driver function that this crate calls. The bindings panic when one is missing, so all are
/// looked up first.
const SYMBOLS: [&str; 56] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuDeviceGet",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuMemsetD8_v2",
    "cuMemsetD32_v2",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuModuleGetGlobal_v2",
    "cuFuncGetParamInfo",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuLaunchKernelEx",
    "cuMemGetInfo_v2",
    "cuMemsetD8Async",
    "cuMemsetD32Async",
    "cuCtxSetLimit",
    "cuMemcpyDtoDAsync_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventElapsedTime_v2",
    "cuGraphInstantiateWithFlags",
    "cuGraphUpload",
    "cuGraphLaunch",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuFuncLoad",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuCtxGetCurrent",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuStreamQuery",
    "cuThreadExchangeStreamCaptureMode",
    "cuPointerGetAttributes",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
];

/// Loads the driver once per process.
pub(super) fn load() -> Result<(), DeviceError> {
    static LOADED: OnceLock<Result<(), DeviceError>> = OnceLock::new();
    LOADED
        .get_or_init(|| {
            if let Some((library, error)) = shared_library::cut_in_search_path(&NAMES) {
                return Err(DeviceError::DriverCut { library, reason: error.to_string() });
            }
            // SAFETY: only opens the driver library, whose initialisers are trusted as the driver
            // itself is.
            if !unsafe { sys::is_culib_present() } {
                return Err(DeviceError::NoDriver);
            }
            // SAFETY: the library is present, so that this neither panics nor does anything but
            // open it.
            let library = unsafe { sys::culib() };
            for symbol in SYMBOLS {
                // SAFETY: the address is only asked for, never used; any type will do.
                if unsafe { library.get::<*const ()>(symbol.as_bytes()) }.is_err() {
                    return Err(DeviceError::DriverTooOld { symbol });
                }
            }
            Ok(())
        })
        .clone()
}

pub(super) fn version() -> Result<(u32, u32), DeviceError> {
    let mut version: c_int = 0;
    // SAFETY: the pointer is to a live integer.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().check("cuDriverGetVersion")?;
    let version = version.unsigned_abs();
    Ok((version / 1000, version % 1000 / 10))
}

/// Whether `cuInit`'s error only says that there is no GPU, or that the library is a linker stub.
pub(super) fn means_no_device(error: DriverError) -> bool {
    matches!(error.0, sys::CUresult::CUDA_ERROR_NO_DEVICE | sys::CUresult::CUDA_ERROR_STUB_LIBRARY)
}

/// Why the driver refused or what went wrong on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFailure {
    code: sys::CUresult,
    name: String,
    description: String,
}

impl DriverFailure {
    /// The number in `cuda.h`, 700 for an illegal address.
    #[must_use]
    pub fn code(&self) -> u32 {
        self.code as u32
    }

    /// The name in `cuda.h`, `CUDA_ERROR_ILLEGAL_ADDRESS` say.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl From<DriverError> for DriverFailure {
    fn from(error: DriverError) -> Self {
        let text = |text: Result<&CStr, _>| text.map(|t| t.to_string_lossy().into_owned()).ok();
        Self {
            code: error.0,
            name: text(error.error_name()).unwrap_or_else(|| format!("{:?}", error.0)),
            description: text(error.error_string()).unwrap_or_default(),
        }
    }
}

impl fmt::Display for DriverFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.description, self.name, self.code())
    }
}

/// Names the call that failed.
pub(in crate::run) trait Check<T> {
    fn check(self, call: &'static str) -> Result<T, DeviceError>;
}

impl<T> Check<T> for Result<T, DriverError> {
    fn check(self, call: &'static str) -> Result<T, DeviceError> {
        self.map_err(|error| DeviceError::Driver { call, failure: error.into() })
    }
}
