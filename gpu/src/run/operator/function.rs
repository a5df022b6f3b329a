//! A loaded kernel, launched on the caller's streams.

use std::ffi::{CString, c_void};

use cudarc::driver::{result, sys};

use super::ForeignStream;
use crate::compile::nvrtc::Cubin;
use crate::run::device::driver::Check as _;
use crate::run::device::{
    Device, DeviceError, Geometry, Serialization, ask_for_shared, launch, parameter_sizes,
};

/// A function with the module that it is of. Unloaded when dropped.
#[derive(Debug)]
pub(super) struct Function {
    device: Device,
    module: sys::CUmodule,
    handle: sys::CUfunction,
    serialization: Serialization,
    /// Bytes of each parameter.
    parameters: Vec<usize>,
}

// SAFETY: modules and functions may be used from every thread; the driver locks them.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// Loads the kernel called `name`, now and not at the first launch, which would wait for it and
    /// may be captured.
    pub(super) fn load(
        device: &Device,
        cubin: &Cubin,
        name: &str,
        serialization: Serialization,
        dynamic_shared: u32,
    ) -> Result<Self, DeviceError> {
        let _entered = device.enter()?;
        // SAFETY: a cubin is a whole ELF image, and it outlives the call.
        let module = unsafe { result::module::load_data(cubin.bytes().as_ptr().cast()) }
            .check("cuModuleLoadData")?;
        let handle = std::ptr::null_mut();
        let device = device.clone();
        let mut function = Self { device, module, handle, serialization, parameters: Vec::new() };
        // One that holds a NUL is not found.
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the module was just loaded.
        function.handle =
            unsafe { result::module::get_function(module, name) }.check("cuModuleGetFunction")?;
        // SAFETY: as above.
        unsafe { sys::cuFuncLoad(function.handle) }.result().check("cuFuncLoad")?;
        if dynamic_shared > 0 {
            // SAFETY: as above.
            unsafe { ask_for_shared(function.handle, dynamic_shared) }
                .check("cuFuncSetAttribute")?;
        }
        function.parameters = parameter_sizes(function.handle)?;
        Ok(function)
    }

    pub(super) fn parameters(&self) -> &[usize] {
        &self.parameters
    }

    /// Asks a stream for a launch. Returns at once.
    ///
    /// # Safety
    /// There is the address of an argument for each parameter, and what the kernel does with them
    /// is sound.
    pub(super) unsafe fn launch(
        &self,
        stream: ForeignStream,
        geometry: Geometry,
        addresses: &mut [*mut c_void],
    ) -> Result<(), DeviceError> {
        let _entered = self.device.enter_unless_current()?;
        // SAFETY: the function is loaded; the rest is the contract.
        unsafe { launch(self.handle, geometry, self.serialization, stream.handle(), addresses) }
            .check("cuLaunchKernelEx")
    }

    /// Asks a stream to fill memory of the function's device with zeros. Returns at once.
    ///
    /// # Safety
    /// So many bytes from the address are device memory.
    pub(super) unsafe fn zero(
        &self,
        stream: ForeignStream,
        address: u64,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        if bytes == 0 {
            return Ok(());
        }
        let _entered = self.device.enter_unless_current()?;
        // SAFETY: by the contract.
        unsafe { result::memset_d8_async(address, 0, bytes as usize, stream.handle()) }
            .check("cuMemsetD8Async")
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        if let Ok(_entered) = self.device.enter() {
            // SAFETY: loaded in `load`, unloaded only here.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}
