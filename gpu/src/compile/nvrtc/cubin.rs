//! Machine code and the options that it was compiled under.

use std::fmt;

use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use serde::{Deserialize, Serialize};
use sparserl_core::plan::MachineCode;

use super::{Resources, Version};
use sparserl_core::target::Architecture;

/// The option behind [`CompileOptions::minimal`].
pub(super) const MINIMAL: &str = "--minimal";

/// What a caller may choose. All of it is part of a cubin's cache key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileOptions {
    /// Most registers a thread may use; the rest spills. `None` leaves it to the compiler and to
    /// launch bounds.
    pub max_registers: Option<u32>,
    /// Keeps source lines in the cubin, for a profiler. They do not change the instructions.
    pub line_information: bool,
    /// Macros to define, as (name, value).
    pub defines: Vec<(String, String)>,
    /// Leaves out NVRTC's declarations of textures, surfaces, atomics on objects and the device
    /// runtime: 3 to 5 ms less for each source, which must not use them. The machine code is the
    /// same. NVRTC before 12.4 has no such option and compiles as without.
    pub minimal: bool,
    /// Takes functions and variables that say nothing of where they run for the device's, as those
    /// of sources that `nvcc` compiles for both may be used by both. NVRTC refuses them else.
    pub device_by_default: bool,
}

impl CompileOptions {
    /// For generated kernels. All who compile them take these, so that they find each other's work
    /// in the cache.
    #[must_use]
    pub fn generated() -> Self {
        Self { minimal: true, ..Self::default() }
    }

    /// For kernels from anywhere.
    #[must_use]
    pub fn foreign() -> Self {
        Self { device_by_default: true, ..Self::default() }
    }

    /// The command line for machine code. Fast-math is left out on purpose: it lowers the precision
    /// that results are verified against.
    #[must_use]
    pub(crate) fn cubin_arguments(&self, architecture: Architecture) -> Vec<String> {
        let mut arguments = vec![
            format!("--gpu-architecture={architecture}"),
            // Reports registers, spills and shared memory in the log.
            "--ptxas-options=-v".to_owned(),
        ];
        if let Some(registers) = self.max_registers {
            arguments.push(format!("--maxrregcount={registers}"));
        }
        self.push_common(&mut arguments);
        arguments
    }

    /// The command line for PTX.
    #[must_use]
    pub(crate) fn ptx_arguments(&self, architecture: Architecture) -> Vec<String> {
        let mut arguments = vec![format!("--gpu-architecture=compute_{}", architecture.number())];
        self.push_common(&mut arguments);
        arguments
    }

    fn push_common(&self, arguments: &mut Vec<String>) {
        arguments.push("--std=c++17".to_owned());
        if self.line_information {
            arguments.push("--generate-line-info".to_owned());
        }
        if self.minimal {
            arguments.push(MINIMAL.to_owned());
        }
        if self.device_by_default {
            arguments.push("--device-as-default-execution-space".to_owned());
        }
        for (name, value) in &self.defines {
            arguments.push(format!("--define-macro={name}={value}"));
        }
    }
}

/// One kernel's machine code, with what the compiler said about it.
///
/// Made by [`Nvrtc::compile`](super::Nvrtc::compile), here or in a process of the
/// [pool](crate::compile::pool), and by the
/// [cache](crate::compile::cache) only, never from arbitrary bytes: the driver is given no length
/// and trusts what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cubin {
    parts: CubinParts,
}

impl fmt::Debug for CubinParts {
    /// Everything but the bytes, which are thousands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CubinParts")
            .field("kernel", &self.kernel)
            .field("architecture", &self.architecture)
            .field("version", &self.version)
            .field("bytes", &self.bytes.len())
            .field("resources", &self.resources)
            .finish_non_exhaustive()
    }
}

/// A cubin as it is stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CubinParts {
    #[serde(skip)]
    pub(crate) bytes: Vec<u8>,
    pub(crate) kernel: String,
    pub(crate) architecture: Architecture,
    pub(crate) version: Version,
    pub(crate) arguments: Vec<String>,
    pub(crate) resources: Resources,
    pub(crate) log: String,
}

impl From<&Cubin> for MachineCode {
    fn from(cubin: &Cubin) -> Self {
        let used = cubin.resources();
        Self {
            architecture: cubin.architecture(),
            nvrtc: cubin.nvrtc_version().to_string(),
            registers: used.registers,
            spill_store_bytes: used.spill_stores,
            spill_load_bytes: used.spill_loads,
            stack_bytes: used.stack,
            shared_bytes: used.shared,
        }
    }
}

impl Cubin {
    pub(crate) fn new(parts: CubinParts) -> Self {
        Self { parts }
    }

    pub(crate) fn into_parts(self) -> CubinParts {
        self.parts
    }

    /// Names of the variables in global memory that the machine code declares, where a kernel could
    /// keep something from one launch to the next. Generated kernels write to none.
    ///
    /// `None` when the machine code cannot be read.
    pub(crate) fn global_variables(&self) -> Option<Vec<String>> {
        let file = object::File::parse(self.bytes()).ok()?;
        let is_global = |section: &object::Section<'_, '_>| {
            section.name().is_ok_and(|name| name.starts_with(".nv.global"))
        };
        let sections: Vec<_> = file.sections().filter(is_global).map(|s| s.index()).collect();
        let variable = |symbol: object::Symbol<'_, '_>| {
            let section = symbol.section_index()?;
            let is_variable = symbol.kind() == SymbolKind::Data && sections.contains(&section);
            is_variable.then(|| symbol.name().map(str::to_owned).unwrap_or_default())
        };
        Some(file.symbols().filter_map(variable).collect())
    }

    /// Whether all that its headers speak of lies within its bytes: the driver, which is given no
    /// length, reads nothing else then.
    pub(crate) fn is_whole(&self) -> bool {
        object::File::parse(self.bytes()).is_ok_and(|file| {
            file.segments().all(|segment| segment.data().is_ok())
                && file.sections().all(|section| section.data().is_ok())
        })
    }

    /// Functions of the device's runtime that the machine code calls, but for those of `printf` and
    /// `assert`: those that take memory, which outlives a launch, and whatever else there may be.
    ///
    /// `None` when the machine code cannot be read.
    #[must_use]
    pub fn runtime_calls(&self) -> Option<Vec<String>> {
        let file = object::File::parse(self.bytes()).ok()?;
        let called = |symbol: object::Symbol<'_, '_>| {
            let name = symbol.name().ok().filter(|_| symbol.is_undefined())?;
            // What begins with a dot is no function, but a place that the linker knows.
            let is_known = ["", "vprintf", "__assertfail", "free"].contains(&name);
            (!is_known && !name.starts_with('.')).then(|| name.to_owned())
        };
        Some(file.symbols().filter_map(called).collect())
    }

    pub(crate) fn parts(&self) -> &CubinParts {
        &self.parts
    }

    /// The ELF image.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.parts.bytes
    }

    /// The kernel's name in it.
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.parts.kernel
    }

    /// This machine code for another of its kernels; `None` when it has none of that name.
    #[must_use]
    pub fn with_kernel(&self, kernel: &str) -> Option<Self> {
        let resources = Resources::parse(&self.parts.log, kernel)?;
        let parts = CubinParts { kernel: kernel.to_owned(), resources, ..self.parts.clone() };
        Some(Self::new(parts))
    }

    /// What it was compiled for.
    #[must_use]
    pub fn architecture(&self) -> Architecture {
        self.parts.architecture
    }

    /// The compiler's version.
    #[must_use]
    pub fn nvrtc_version(&self) -> Version {
        self.parts.version
    }

    /// The compiler's command line.
    #[must_use]
    pub fn arguments(&self) -> &[String] {
        &self.parts.arguments
    }

    /// What the kernel uses.
    #[must_use]
    pub fn resources(&self) -> Resources {
        self.parts.resources
    }

    /// What the compiler said: warnings and the assembler's report, without the times that it took.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.parts.log
    }
}
