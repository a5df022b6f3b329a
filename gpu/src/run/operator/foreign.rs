//! The caller's streams, current context and memory.

use std::ffi::c_void;
use std::marker::PhantomData;

use cudarc::driver::{result, sys};

use crate::run::device::driver::Check as _;
use crate::run::device::{Device, DeviceError};

/// A stream of the caller's, by its CUDA handle; null is the legacy default stream.
#[derive(Clone, Copy, Debug)]
pub struct ForeignStream(*mut c_void);

impl ForeignStream {
    /// The stream with this handle.
    ///
    /// # Safety
    /// It is null, one of the special handles of `cuda.h`, or a live stream.
    #[must_use]
    pub unsafe fn new(handle: *mut c_void) -> Self {
        Self(handle)
    }

    pub(super) fn handle(self) -> sys::CUstream {
        self.0.cast()
    }

    /// Whether it is the default stream of whatever context is current.
    fn is_default(self) -> bool {
        // CU_STREAM_LEGACY is 1, CU_STREAM_PER_THREAD 2.
        (self.0 as usize) <= 2
    }
}

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAt {
    /// Nothing that kernels reach, as far as the driver knows.
    Nothing,
    /// Memory of another device.
    OtherDevice,
    /// Memory that kernels on the device reach.
    Reached {
        /// From the address to the end of its allocation.
        bytes: u64,
    },
}

/// The device's context is the thread's current one, and captures of other threads do not mind
/// what this one does, until it is dropped.
pub struct Entered {
    mode: sys::CUstreamCaptureMode,
    /// Whether the context was not current before.
    pushed: bool,
    /// It is of the thread that made it.
    thread: PhantomData<*const ()>,
}

impl Device {
    /// Makes its context the current one for a while, unless it is already.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn enter(&self) -> Result<Entered, DeviceError> {
        let pushed = current_context()? != self.context().handle();
        if pushed {
            // SAFETY: the context is retained as long as the device lives.
            unsafe { sys::cuCtxPushCurrent_v2(self.context().handle()) }
                .result()
                .check("cuCtxPushCurrent")?;
        }
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let mut entered = Entered { mode, pushed, thread: PhantomData };
        // SAFETY: the pointer is to a live mode, which is exchanged for the thread's.
        unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut entered.mode) }
            .result()
            .check("cuThreadExchangeStreamCaptureMode")?;
        Ok(entered)
    }

    /// [`enter`](Self::enter) where its context is not current; where it is, nothing changes, the
    /// thread's capture mode neither.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn enter_unless_current(&self) -> Result<Option<Entered>, DeviceError> {
        let is_current = current_context()? == self.context().handle();
        if is_current { Ok(None) } else { self.enter().map(Some) }
    }

    /// Whether a stream is one of this device's, or the default stream of a thread that uses no
    /// other device.
    ///
    /// # Errors
    /// When the driver fails, as for what is no stream.
    pub fn owns(&self, stream: ForeignStream) -> Result<bool, DeviceError> {
        if stream.is_default() {
            let context = current_context()?;
            return Ok(context.is_null() || context == self.context().handle());
        }
        let mut context = std::ptr::null_mut();
        // SAFETY: the stream is live by the contract of its constructor.
        unsafe { sys::cuStreamGetCtx(stream.handle(), &raw mut context) }
            .result()
            .check("cuStreamGetCtx")?;
        Ok(context == self.context().handle())
    }

    /// Whether a stream is being captured.
    ///
    /// # Errors
    /// When the driver fails, as it does for the legacy stream while another is captured.
    pub fn is_capturing(&self, stream: ForeignStream) -> Result<bool, DeviceError> {
        let _entered = self.enter_unless_current()?;
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is live by the contract of its constructor.
        unsafe { sys::cuStreamIsCapturing(stream.handle(), &raw mut status) }
            .result()
            .check("cuStreamIsCapturing")?;
        Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// What the driver knows of an address.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn memory_at(&self, address: u64) -> Result<MemoryAt, DeviceError> {
        use sys::CUpointer_attribute_enum as Attribute;
        let (mut kind, mut base, mut size) = (0_u32, 0_u64, 0_u64);
        let (mut ordinal, mut is_managed) = (0_i32, 0_u32);
        let mut attributes = [
            Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
            Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
            Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
        ];
        let mut data = [
            (&raw mut kind).cast(),
            (&raw mut base).cast(),
            (&raw mut size).cast(),
            (&raw mut ordinal).cast(),
            (&raw mut is_managed).cast(),
        ];
        // SAFETY: as many attributes as places, each of the attribute's type; addresses of anything
        // may be asked for.
        let asked = unsafe {
            sys::cuPointerGetAttributes(5, attributes.as_mut_ptr(), data.as_mut_ptr(), address)
        };
        asked.result().check("cuPointerGetAttributes")?;
        let on_device = kind == sys::CUmemorytype_enum::CU_MEMORYTYPE_DEVICE as u32;
        Ok(match kind {
            // The driver knows nothing of it.
            0 => MemoryAt::Nothing,
            _ if on_device && is_managed == 0 && ordinal != self.context().device() => {
                MemoryAt::OtherDevice
            }
            _ => MemoryAt::Reached { bytes: (base + size).saturating_sub(address) },
        })
    }

    /// Bytes of memory that are free, and of all.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn memory(&self) -> Result<(u64, u64), DeviceError> {
        let _entered = self.enter()?;
        let (free, all) = result::mem_get_info().check("cuMemGetInfo")?;
        Ok((free as u64, all as u64))
    }
}

/// The calling thread's current context; null where it has none.
fn current_context() -> Result<sys::CUcontext, DeviceError> {
    let mut current = std::ptr::null_mut();
    // SAFETY: the pointer is to a live handle.
    unsafe { sys::cuCtxGetCurrent(&raw mut current) }.result().check("cuCtxGetCurrent")?;
    Ok(current)
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut context = std::ptr::null_mut();
        // SAFETY: pointers to live places; the mode is the one that `enter` found. Failures leave
        // nothing to be done.
        unsafe {
            let _ = sys::cuThreadExchangeStreamCaptureMode(&raw mut self.mode);
            if self.pushed {
                let _ = sys::cuCtxPopCurrent_v2(&raw mut context);
            }
        }
    }
}

/// Waits until a stream has done all that it was asked to.
///
/// # Errors
/// When something that was asked for earlier has failed, or when it is being captured.
pub fn wait_for(stream: ForeignStream) -> Result<(), DeviceError> {
    // SAFETY: the stream is live by the contract of its constructor.
    unsafe { result::stream::synchronize(stream.handle()) }.check("cuStreamSynchronize")
}
