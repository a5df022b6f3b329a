//! How fast a device runs at the moment, and why it may run slower.

use std::sync::OnceLock;

use cudarc::driver::sys::CUdevice_attribute_enum as Attribute;
use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use serde::{Deserialize, Serialize};

use super::Device;

/// NVIDIA's management library by the name that the driver installs. The one without a version
/// comes with the toolkit.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// A device's clocks at a moment, with what makes it lower them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clocks {
    /// Clock of the multiprocessors, in MHz.
    pub sm_mhz: u32,
    /// Clock of the memory, in MHz.
    pub memory_mhz: u32,
    /// Temperature of the chip, in °C.
    pub temperature_c: u32,
    /// Power drawn by the board, in watts, averaged over up to a second.
    pub power_w: f64,
}

impl Device {
    /// The clocks at this moment; `None` where the driver's management library is absent or does
    /// not tell them. Nothing is ever set.
    #[must_use]
    pub fn clocks(&self) -> Option<Clocks> {
        // By its place on the bus: the library numbers devices otherwise than CUDA does.
        let device = library()?.device_by_pci_bus_id(self.pci_address()?).ok()?;
        Some(Clocks {
            sm_mhz: device.clock_info(Clock::SM).ok()?,
            memory_mhz: device.clock_info(Clock::Memory).ok()?,
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok()?,
            power_w: f64::from(device.power_usage().ok()?) * 1e-3,
        })
    }

    /// `domain:bus:device.function`.
    fn pci_address(&self) -> Option<String> {
        let part = |attribute| self.attribute(attribute).ok();
        Some(pci_address(
            part(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?,
            part(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?,
            part(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?,
        ))
    }
}

/// A GPU's function is its first.
fn pci_address(domain: u32, bus: u32, device: u32) -> String {
    format!("{domain:08x}:{bus:02x}:{device:02x}.0")
}

/// Loads the library once per process.
fn library() -> Option<&'static Nvml> {
    static LOADED: OnceLock<Option<Nvml>> = OnceLock::new();
    LOADED.get_or_init(|| Nvml::builder().lib_path(LIBRARY.as_ref()).init().ok()).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hexadecimal() {
        assert_eq!(pci_address(0, 0x65, 0), "00000000:65:00.0");
        assert_eq!(pci_address(0x1_0000, 10, 31), "00010000:0a:1f.0");
    }
}
