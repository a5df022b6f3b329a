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
        let name = self.name()?;
        let target = Target {
            architecture: self.architecture()?,
            multiprocessors: ask(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            l2_bytes: ask(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
            shared_memory_bytes: ask(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            )?,
            registers: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
            bandwidth: bandwidth(&name, 2 * clock * bits / 8),
        };
        Ok(DeviceFacts {
            name,
            driver: self.driver_version()?,
            memory_bytes: memory as u64,
            target,
        })
    }
}

/// The data sheet's bandwidth of a product that is known by name, so that programs are searched for
/// with the same figures on the device and without it; else what the memory's clock comes to, from
/// which data sheets differ by a few percent.
fn bandwidth(product: &str, of_clock: u64) -> u64 {
    let product = product.to_lowercase().replace(' ', "");
    let sheets = Target::PRESETS.into_iter().filter(|(name, _)| product.contains(name));
    let near = |&bandwidth: &u64| bandwidth.abs_diff(of_clock) < of_clock / 20;
    sheets.map(|(_, target)| target.bandwidth).find(near).unwrap_or(of_clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_products_have_the_bandwidth_of_their_data_sheets() {
        assert_eq!(bandwidth("NVIDIA H200", 4_916_736_000_000), Target::H200.bandwidth);
        assert_eq!(bandwidth("NVIDIA GeForce RTX 4090", 1_008_096_000_000), 1_008_000_000_000);
        // The PCIe card has other memory than the one that the preset is of.
        assert_eq!(bandwidth("NVIDIA H100 PCIe", 2_039_000_000_000), 2_039_000_000_000);
        assert_eq!(bandwidth("Quadro", 5), 5);
    }
}
