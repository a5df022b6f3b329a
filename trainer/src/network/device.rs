//! What networks are computed on. The backend is chosen when the program runs, so work with
//! networks is generic over it.

use std::fmt;
use std::str::FromStr;

use burn::backend::{Autodiff, Flex};
use burn::tensor::backend::AutodiffBackend;

/// The processor, for networks that only decode.
pub type Processor = Flex;

/// What networks are computed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compute {
    /// The processor.
    #[default]
    Cpu,
    /// The first NVIDIA GPU.
    Cuda,
}

/// Networks cannot be computed there.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// This program was built without CUDA.
    #[error("this program was built without CUDA: build it with `--features cuda`, or use the CPU")]
    NotBuilt,
    /// There is no GPU, or what it needs is missing.
    #[error("networks cannot be computed on a GPU: {0}; use the CPU, or repair CUDA")]
    NoCuda(String),
}

/// A text that names neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `cpu` or `cuda`")]
pub struct UnknownCompute;

impl FromStr for Compute {
    type Err = UnknownCompute;

    fn from_str(text: &str) -> Result<Self, UnknownCompute> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda),
            _ => Err(UnknownCompute),
        }
    }
}

impl fmt::Display for Compute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        })
    }
}

/// Work with networks, whatever they are computed on.
pub trait OnDevice {
    /// What comes of it.
    type Output;

    /// Does it.
    fn run<B: AutodiffBackend>(self, device: B::Device) -> Self::Output;
}

/// Work that only needs a device to be there.
struct Nothing;

impl OnDevice for Nothing {
    type Output = ();

    fn run<B: AutodiffBackend>(self, _: B::Device) {}
}

impl Compute {
    /// Finds out whether networks can be computed there, before other work is done for them.
    ///
    /// # Errors
    /// When they cannot.
    pub fn check(self) -> Result<(), DeviceError> {
        on_device(self, Nothing)
    }
}

/// Does some work.
///
/// # Errors
/// When networks cannot be computed there.
pub fn on_device<W: OnDevice>(compute: Compute, work: W) -> Result<W::Output, DeviceError> {
    match compute {
        Compute::Cpu => Ok(work.run::<Autodiff<Flex>>(Default::default())),
        Compute::Cuda => on_cuda(work),
    }
}

#[cfg(not(feature = "cuda"))]
fn on_cuda<W: OnDevice>(_: W) -> Result<W::Output, DeviceError> {
    Err(DeviceError::NotBuilt)
}

#[cfg(feature = "cuda")]
fn on_cuda<W: OnDevice>(work: W) -> Result<W::Output, DeviceError> {
    use burn::backend::Cuda;
    use burn::tensor::Tensor;

    let devices = sparserl_gpu::run::device::count();
    match devices {
        Ok(0) => return Err(DeviceError::NoCuda("there is none".to_owned())),
        Ok(_) => {}
        Err(error) => return Err(DeviceError::NoCuda(error.to_string())),
    }
    // The backend panics where something that it needs is missing; better now than later.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let tried = std::panic::catch_unwind(|| {
        let ones = Tensor::<Cuda, 2>::ones([16, 16], &Default::default());
        ones.clone().matmul(ones).sum().into_data().iter::<f32>().sum::<f32>()
    });
    std::panic::set_hook(hook);
    match tried {
        Ok(4096.0) => Ok(work.run::<Autodiff<Cuda>>(Default::default())),
        Ok(_) => Err(DeviceError::NoCuda("it computes wrong sums".to_owned())),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
            let line = said.and_then(|said| said.lines().next()).unwrap_or("a library is missing");
            Err(DeviceError::NoCuda(line.to_owned()))
        }
    }
}
