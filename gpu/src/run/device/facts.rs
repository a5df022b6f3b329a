//! What a device is.

use cudarc::driver::{result, sys};
use serde::{Deserialize, Serialize};
use sparserl_core::target::Target;

use super::driver::Check;
use super::{Device, DeviceError};

/// What is known of a device before anything is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// The product's name.
    pub name: String,
    /// The CUDA version that the driver supports, as (major, minor).
    pub driver: (u32, u32),
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// What kernels are generated for.
    pub target: Target,
}

impl Device {
    /// What is known of the device.
    ///
    /// # Errors
    /// When the driver fails, or when kernels for this device cannot be made.
    pub fn facts(&self) -> Result<DeviceFacts, DeviceError> {
        use sys::CUdevice_attribute_enum as Attribute;
        self.context.bind()?;
        let (_, memory) = result::mem_get_info().check("cuMemGetInfo")?;
        let ask = |attribute| self.attribute(attribute);
        // Memory transfers twice in each cycle of its clock, which is given in kHz.
        let clock = u64::from(ask(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?) * 1000;
        let bits = u64::from(ask(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?);
        let target = Target {
            architecture: self.architecture()?,
            multiprocessors: ask(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            l2_bytes: ask(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
            shared_memory_bytes: ask(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            )?,
            registers: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
            bandwidth: 2 * clock * bits / 8,
        };
        Ok(DeviceFacts {
            name: self.name()?,
            driver: self.driver_version()?,
            memory_bytes: memory as u64,
            target,
        })
    }
}
