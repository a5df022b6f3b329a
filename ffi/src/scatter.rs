//! The kernels that put values in their places.

use std::sync::OnceLock;

use sparserl_core::task::Dtype;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::nvrtc::CompileOptions;
use sparserl_gpu::run::device::Device;
use sparserl_gpu::run::operator::SmallKernel;

use crate::status::{Failure, Status};

/// Threads of a block.
pub(crate) const BLOCK: u64 = 256;

/// The kernels that put values in their places, compiled when they are first needed: for elements
/// of 2, 4 and 8 bytes.
#[derive(Default)]
pub(crate) struct Scatter {
    kernels: [OnceLock<SmallKernel>; 3],
}

impl Scatter {
    /// The one for elements of a type.
    pub(crate) fn kernel(
        &self,
        compiler: &CubinCompiler,
        device: &Device,
        dtype: Dtype,
    ) -> Result<&SmallKernel, Failure> {
        let [two, four, eight] = &self.kernels;
        let known = match dtype {
            Dtype::F16 | Dtype::BF16 => two,
            Dtype::F32 => four,
            Dtype::F64 => eight,
        };
        if let Some(kernel) = known.get() {
            return Ok(kernel);
        }
        let (text, name) = source(dtype);
        let compiled = compiler.compile_with(&text, name, &CompileOptions::generated());
        let compiled = compiled.map_err(|error| Failure::new(Status::NoCompiler, error))?;
        let cubin = compiled.map_err(Failure::internal)?;
        let kernel = SmallKernel::load(device, &cubin)?;
        Ok(known.get_or_init(|| kernel))
    }

    /// Makes the kernel ready, so that nothing is compiled when values come.
    pub(crate) fn prepare(
        &self,
        compiler: &CubinCompiler,
        device: &Device,
        dtype: Dtype,
    ) -> Result<(), Failure> {
        self.kernel(compiler, device, dtype).map(drop)
    }
}

/// The source of the kernel for elements of a type, and the kernel's name.
pub(crate) fn source(dtype: Dtype) -> (String, &'static str) {
    let word = match dtype {
        Dtype::F16 | Dtype::BF16 => "unsigned short",
        Dtype::F32 => "unsigned",
        Dtype::F64 => "unsigned long long",
    };
    let name = "sparserl_scatter_values";
    let text = format!(
        "extern \"C\" __global__ void {name}({word}* slots, const unsigned long long* entries,\n    \
         const {word}* values, unsigned long long count) {{\n  \
         const unsigned long long slot = blockIdx.x * {BLOCK}ull + threadIdx.x;\n  \
         if (slot < count && entries[slot] != ~0ull) slots[slot] = values[entries[slot]];\n}}\n"
    );
    (text, name)
}
