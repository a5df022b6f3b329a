//! What a device is.

use cudarc::driver::{result, sys};
use serde::{Deserialize, Serialize};

use super::driver::Check;
use super::{Device, DeviceError};
use crate::Architecture;

/// What is known of a device before anything is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// The product's name.
    pub name: String,
    /// What kernels are compiled for.
    pub architecture: Architecture,
    /// The CUDA version that the driver supports, as (major, minor).
    pub driver: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Bytes of level-2 cache.
    pub l2_bytes: u64,
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
        Ok(DeviceFacts {
            name: self.name()?,
            architecture: self.architecture()?,
            driver: self.driver_version()?,
            multiprocessors: self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory_bytes: memory as u64,
            l2_bytes: self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
        })
    }
}
