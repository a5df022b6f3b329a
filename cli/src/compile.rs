//! Machine code, where a compiler is found.

use std::sync::Arc;

use anyhow::Context;
use sparserl_core::codegen::CudaSource;
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::cache::CubinCache;
use sparserl_gpu::compile::nvrtc::{CompileOptions, Compilers, Cubin};

/// A compiler for one architecture.
pub(crate) struct Compiler {
    compilers: Arc<Compilers>,
    architecture: Architecture,
    cache: Option<CubinCache>,
}

impl Compiler {
    /// The newest one found; else why there is none and how to get one, in a line.
    pub(crate) fn find(architecture: Architecture) -> Result<Self, String> {
        let compilers = Arc::new(Compilers::discover().map_err(|error| error.to_string())?);
        compilers.for_arch(architecture).map_err(|error| error.to_string())?;
        // Without a cache folder everything is compiled anew, and all is well otherwise.
        Ok(Self { compilers, architecture, cache: CubinCache::open().ok() })
    }

    /// The compilers that it was found among.
    pub(crate) fn all(&self) -> &Arc<Compilers> {
        &self.compilers
    }

    /// Compiles a kernel.
    pub(crate) fn compile(&self, source: &CudaSource) -> anyhow::Result<Cubin> {
        let nvrtc = self.compilers.for_arch(self.architecture)?;
        let (text, kernel, options) = (&source.text, &source.kernel, CompileOptions::generated());
        let cubin = match &self.cache {
            Some(cache) => cache
                .compile(nvrtc, text, kernel, self.architecture, &options)
                .map(|fetched| fetched.cubin),
            None => nvrtc.compile(text, kernel, self.architecture, &options),
        };
        cubin.with_context(|| format!("the generated {kernel} (--no-compile writes it for a look)"))
    }
}
