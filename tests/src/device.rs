//! Kernels on a CUDA device, compared with the reference product.

mod check;
mod operands;
mod report;

pub use check::check;
pub use report::{Failure, REPORT_VARIABLE, Report};

use anyhow::{Context, Result};
use sparserl_core::codegen::CudaSource;
use sparserl_gpu::Architecture;
use sparserl_gpu::cache::CubinCache;
use sparserl_gpu::device::{CaseError, Device};
use sparserl_gpu::nvrtc::{CompileOptions, Compilers, Cubin};

/// A device, and what compiles for it.
#[derive(Debug)]
pub struct Gpu {
    device: Device,
    architecture: Architecture,
    driver_major: u32,
    compilers: Compilers,
    /// Without one, everything is compiled each time.
    cache: Option<CubinCache>,
}

impl Gpu {
    /// Opens the first device.
    ///
    /// # Errors
    /// Without a device or a compiler for it.
    pub fn open() -> Result<Self> {
        let device = Device::open(0)?;
        let (driver_major, _) = device.driver_version()?;
        Ok(Self {
            architecture: device.architecture()?,
            driver_major,
            compilers: Compilers::discover()?,
            cache: CubinCache::open().ok(),
            device,
        })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The device's name and architecture, and the compiler's version.
    ///
    /// # Errors
    /// When the driver fails or no compiler fits.
    pub fn description(&self) -> Result<String> {
        let nvrtc = self.compilers.for_device(self.architecture, self.driver_major)?;
        let name = self.device.name()?;
        Ok(format!("{name}, {}, NVRTC {}", self.architecture, nvrtc.version()))
    }

    /// Compiles a kernel for the device.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn compile(&self, source: &CudaSource) -> Result<Cubin> {
        let nvrtc = self.compilers.for_device(self.architecture, self.driver_major)?;
        let options = CompileOptions::default();
        let (text, kernel) = (&source.text, source.kernel);
        let cubin = match &self.cache {
            Some(cache) => {
                cache.compile(nvrtc, text, kernel, self.architecture, &options).map(|f| f.cubin)
            }
            None => nvrtc.compile(text, kernel, self.architecture, &options),
        };
        cubin.context("the kernel does not compile")
    }
}

/// Whether an error of [`check`] means that this process can no longer use the device.
#[must_use]
pub fn lost_the_device(error: &anyhow::Error) -> bool {
    error.downcast_ref::<CaseError>().is_some_and(CaseError::lost_the_device)
}
