//! Runs compiled kernels on a CUDA device, through the driver.
//!
//! The driver is loaded when a device is first opened; without one, [`Device::open`] gives an error
//! of one line. Memory comes from plain `cuMemAlloc`, with guard zones around every buffer. A call
//! returns when the device has done what was asked, except for those on a [`Stream`].
//!
//! **A kernel is foreign code.** Launching one is a safe function as far as the host's side goes
//! (the argument list is checked against the kernel's), but a wrong kernel can write anywhere that
//! the device can, never return, or fault, and a fault makes every later call in this process fail.
//! Kernels that are not trusted are run in a process of their own.

mod buffer;
mod clocks;
pub(super) mod driver;
mod facts;
mod kernel;
mod stream;

use std::ffi::c_int;
use std::sync::Arc;

use cudarc::driver::{result, sys};

pub(super) use buffer::allocate;
pub use buffer::{Damage, DeviceBuffer, Fill, GUARD_BYTES, Guard, POISON_WORD, Side, poison};
pub use clocks::Clocks;
pub use driver::DriverFailure;
pub use facts::DeviceFacts;
pub(crate) use kernel::Serialization;
pub use kernel::{Argument, BoundKernel, Geometry, Kernel, LaunchError, Module};
pub(super) use kernel::{ask_for_shared, launch, parameter_sizes};
pub use stream::{Event, Graph, Stream};

use driver::Check;
use sparserl_core::target::Architecture;

/// A CUDA device in use by this process. Clones share it.
#[derive(Clone, Debug)]
pub struct Device {
    context: Arc<Context>,
}

impl Device {
    /// Opens the device with this number, as `nvidia-smi` and `CUDA_VISIBLE_DEVICES` leave them,
    /// from 0.
    ///
    /// # Errors
    /// Without a driver, with one older than CUDA 12.8, without such a device, or when the driver
    /// fails.
    /// [`DeviceError::is_absence`] tells the first and third from the others.
    pub fn open(ordinal: u32) -> Result<Self, DeviceError> {
        let count = match count() {
            Err(DeviceError::NoDevice { count, .. }) => {
                return Err(DeviceError::NoDevice { ordinal, count });
            }
            other => other?,
        };
        let Some(number) = c_int::try_from(ordinal).ok().filter(|_| ordinal < count) else {
            return Err(DeviceError::NoDevice { ordinal, count });
        };
        let device = result::device::get(number).check("cuDeviceGet")?;
        // SAFETY: the device comes from `device::get`.
        let handle =
            unsafe { result::primary_ctx::retain(device) }.check("cuDevicePrimaryCtxRetain")?;
        Ok(Self { context: Arc::new(Context { device, handle }) })
    }

    /// The product's name.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn name(&self) -> Result<String, DeviceError> {
        result::device::get_name(self.context.device).check("cuDeviceGetName")
    }

    /// Major and minor compute capability.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn compute_capability(&self) -> Result<(u32, u32), DeviceError> {
        use sys::CUdevice_attribute_enum as Attribute;
        let major = self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        Ok((major, minor))
    }

    /// What to compile for.
    ///
    /// # Errors
    /// When the driver fails, or when kernels for this device cannot be made.
    pub fn architecture(&self) -> Result<Architecture, DeviceError> {
        let (major, minor) = self.compute_capability()?;
        Architecture::for_compute_capability(major, minor)
            .ok_or(DeviceError::UnknownArchitecture { major, minor })
    }

    /// The CUDA version that the driver supports, as (major, minor). It bounds the compilers whose
    /// cubins it loads.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn driver_version(&self) -> Result<(u32, u32), DeviceError> {
        driver::version()
    }

    /// Waits until the device has done everything that it was asked to, on every stream.
    ///
    /// # Errors
    /// When something that was asked for earlier has failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.context.bind()?;
        result::ctx::synchronize().check("cuCtxSynchronize")
    }

    /// Bounds what kernels can take of the device's memory by themselves, with `malloc`.
    ///
    /// # Errors
    /// When the driver fails.
    pub(crate) fn limit_heap(&self, bytes: usize) -> Result<(), DeviceError> {
        self.context.bind()?;
        result::ctx::set_limit(sys::CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE, bytes)
            .check("cuCtxSetLimit")
    }

    /// Makes its context the calling thread's current one, as CUDA's libraries need.
    pub(crate) fn bind(&self) -> Result<(), DeviceError> {
        self.context.bind()
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    fn attribute(&self, attribute: sys::CUdevice_attribute_enum) -> Result<u32, DeviceError> {
        // SAFETY: the device comes from `device::get`.
        let value = unsafe { result::device::get_attribute(self.context.device, attribute) };
        Ok(value.check("cuDeviceGetAttribute")?.unsigned_abs())
    }
}

/// Number of CUDA devices that this process can see, at least 1. Opens none of them.
///
/// # Errors
/// Without a driver, with one that is too old, without a device, or when the driver fails.
pub fn count() -> Result<u32, DeviceError> {
    driver::load()?;
    let none = DeviceError::NoDevice { ordinal: 0, count: 0 };
    match result::init() {
        Err(error) if driver::means_no_device(error) => return Err(none),
        other => other.check("cuInit")?,
    }
    match result::device::get_count().check("cuDeviceGetCount")?.unsigned_abs() {
        0 => Err(none),
        count => Ok(count),
    }
}

/// The device's primary context: the one that the runtime API and CUDA's libraries use, too.
#[derive(Debug)]
pub(super) struct Context {
    device: sys::CUdevice,
    handle: sys::CUcontext,
}

// SAFETY: a context may be used from every thread; the driver locks it. `bind` makes it current on
// the calling one.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn handle(&self) -> sys::CUcontext {
        self.handle
    }

    pub(super) fn device(&self) -> sys::CUdevice {
        self.device
    }

    /// Makes it the calling thread's current context. Nearly every driver call needs that first.
    fn bind(&self) -> Result<(), DeviceError> {
        // SAFETY: the context is retained until `self` is dropped.
        unsafe { result::ctx::set_current(self.handle) }.check("cuCtxSetCurrent")
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once in `Device::open`, released only here. A failure leaves nothing
        // that could be done.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// A device could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// There is no driver library on this machine.
    #[error("no CUDA driver: libcuda.so.1 is not installed (it comes with the NVIDIA driver)")]
    NoDriver,
    /// The driver lacks a function that is needed.
    #[error("the CUDA driver is too old: it has no {symbol}; install one for CUDA 12.8 or later")]
    DriverTooOld {
        /// The first function that it lacks.
        symbol: &'static str,
    },
    /// The driver library's file was cut: nothing in it can be used.
    #[error("{}: {reason}", library.display())]
    DriverCut {
        /// The file.
        library: std::path::PathBuf,
        /// How, in one line.
        reason: String,
    },
    /// There is no such device.
    #[error("no CUDA device {ordinal}: the driver sees {count}")]
    NoDevice {
        /// The number asked for.
        ordinal: u32,
        /// Devices visible.
        count: u32,
    },
    /// Kernels for this device cannot be made.
    #[error("no kernels can be made for a device of compute capability {major}.{minor}")]
    UnknownArchitecture {
        /// Major compute capability.
        major: u32,
        /// Minor compute capability.
        minor: u32,
    },
    /// The device's memory does not suffice.
    #[error("the device has no {bytes} bytes of memory left")]
    OutOfMemory {
        /// Bytes asked for, guard zones included.
        bytes: usize,
    },
    /// Bytes copied to or from a buffer are not as many as it holds.
    #[error("a buffer of {buffer} bytes cannot take {given}")]
    WrongLength {
        /// The buffer's length in bytes.
        buffer: usize,
        /// The length given, in bytes.
        given: usize,
    },
    /// A kernel of this crate's own does not take the arguments that it is given.
    #[error("{reason}")]
    WrongArguments {
        /// What does not fit.
        reason: String,
    },
    /// The device's clock did not move.
    #[error("the device says that {what} took no time")]
    NoTime {
        /// What was timed.
        what: &'static str,
    },
    /// A call failed. After a kernel's fault, every later call does.
    #[error("{call} failed: {failure}")]
    Driver {
        /// The function.
        call: &'static str,
        /// The driver's reason.
        failure: DriverFailure,
    },
}

impl DeviceError {
    /// Whether there is no GPU to be used, as on most machines that build this, rather than a
    /// broken one.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::NoDriver | Self::NoDevice { .. })
    }
}
