//! NVIDIA's run-time compiler: from CUDA source to a cubin, without a GPU.
//!
//! NVRTC is a shared library that is looked for at run time. Several versions can be open at once,
//! which matters because none compiles for every architecture: 12.9 is the last that knows `sm_70`.
//! [`Compilers`] finds what is installed and picks one; [`Nvrtc`] is one of them.
//!
//! Compiling takes tens of milliseconds and **does not scale with threads**: NVRTC holds one lock
//! for the whole process. Whoever needs throughput starts processes:
//! [`CompilePool`](crate::compile::pool::CompilePool).

mod compilers;
mod cubin;
mod include;
mod library;
mod looked;
mod places;
mod resources;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use compilers::{Compilers, NoCompiler, Rejected, UnsupportedByAll};
pub(crate) use cubin::CubinParts;
pub use cubin::{CompileOptions, Cubin};
pub(crate) use include::has_include;
use library::{Library, Program, Status};
pub(crate) use looked::Looked;
pub(crate) use places::SEARCH_VARIABLES;
pub use places::{SEARCH_VARIABLE, data_folder};
pub use resources::Resources;

use sparserl_core::target::Architecture;

/// An NVRTC release, as its library states it. Patch levels are told apart by [`Nvrtc::build`].
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Version {
    /// 12 for NVRTC 12.9.
    pub major: u32,
    /// 9 for NVRTC 12.9.
    pub minor: u32,
}

/// The first version that knows `--no-cache`.
const NO_CACHE_SINCE: Version = Version { major: 12, minor: 9 };

/// The first version that knows `--minimal`.
const MINIMAL_SINCE: Version = Version { major: 12, minor: 4 };

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// An open NVRTC library. Closed when dropped.
#[derive(Debug)]
pub struct Nvrtc {
    library: Library,
    path: PathBuf,
    version: Version,
    architectures: Vec<Architecture>,
    build: OnceLock<String>,
}

impl Nvrtc {
    /// Opens the library at `path`, or under that name in the loader's search path when it has no
    /// folder.
    ///
    /// The file's initialisers run with this process's rights: it must be one that the user trusts.
    ///
    /// # Errors
    /// When there is no such file, when it is not a shared library for this machine, when it is not
    /// NVRTC, or when NVRTC itself fails.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, NvrtcError> {
        let path = path.as_ref().to_path_buf();
        let library = Library::open(&path)?;
        let version =
            library.version().map_err(|status| library.failure("nvrtcVersion", status))?;
        let numbers = library
            .architectures()
            .map_err(|status| library.failure("nvrtcGetSupportedArchs", status))?;
        let architectures =
            Architecture::ALL.into_iter().filter(|a| numbers.contains(&a.number())).collect();
        Ok(Self { library, path, version, architectures, build: OnceLock::new() })
    }

    /// Where it was found, as given to [`open`](Self::open).
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that the loader took; none where it does not tell.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        self.library.file()
    }

    /// The version that the library says of itself.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The architectures that it compiles for, of [`Architecture::ALL`], oldest first.
    #[must_use]
    pub fn architectures(&self) -> &[Architecture] {
        &self.architectures
    }

    /// The exact build, patch level included: two libraries of the same build make the same cubins.
    ///
    /// Only NVRTC's output tells it, so the first call compiles an empty kernel (about 20 ms).
    ///
    /// # Errors
    /// When even an empty kernel does not compile.
    pub fn build(&self) -> Result<&str, CompileError> {
        if let Some(build) = self.build.get() {
            return Ok(build);
        }
        let Some(&newest) = self.architectures.last() else {
            return Err(NvrtcError::NoArchitecture { path: self.path.clone() }.into());
        };
        let ptx = self.compile_ptx(
            "extern \"C\" __global__ void empty() {}",
            "empty",
            newest,
            &CompileOptions::default(),
        )?;
        let comments = ptx.lines().filter_map(|line| line.strip_prefix("// "));
        let build = comments.filter(|c| c.contains("Build ID") || c.contains("release"));
        let build = build.collect::<Vec<_>>().join("; ");
        // Cubins are kept under it: without one, those of all compilers would be the same.
        let build = if build.is_empty() { format!("NVRTC {}", self.version) } else { build };
        Ok(self.build.get_or_init(|| build))
    }

    /// Compiles the `extern "C"` kernel called `kernel` in `source` to machine code for
    /// `architecture`.
    ///
    /// The standard is C++17; fast-math is never used. `source` stands alone: a directive that
    /// includes a file is refused.
    ///
    /// # Errors
    /// [`CompileError`] says whether the source is at fault or the installation. Warnings are no
    /// error; they are in [`Cubin::log`].
    pub fn compile(
        &self,
        source: &str,
        kernel: &str,
        architecture: Architecture,
        options: &CompileOptions,
    ) -> Result<Cubin, CompileError> {
        let arguments = options.cubin_arguments(architecture);
        let (program, log) = self.run(source, kernel, architecture, &arguments)?;
        let Some(resources) = Resources::parse(&log, kernel) else {
            return Err(CompileError::KernelMissing { kernel: kernel.to_owned(), log });
        };
        let bytes =
            program.cubin().map_err(|status| self.library.failure("nvrtcGetCUBIN", status))?;
        Ok(Cubin::new(CubinParts {
            bytes,
            kernel: kernel.to_owned(),
            architecture,
            version: self.version,
            arguments,
            resources,
            log: without_times(&log),
        }))
    }

    /// Compiles `source` to PTX for `architecture`, under the same terms as
    /// [`compile`](Self::compile).
    ///
    /// # Errors
    /// As [`compile`](Self::compile), except that a missing kernel goes unnoticed.
    pub fn compile_ptx(
        &self,
        source: &str,
        kernel: &str,
        architecture: Architecture,
        options: &CompileOptions,
    ) -> Result<String, CompileError> {
        let arguments = options.ptx_arguments(architecture);
        let (program, _) = self.run(source, kernel, architecture, &arguments)?;
        let bytes = program.ptx().map_err(|status| self.library.failure("nvrtcGetPTX", status))?;
        Ok(text(bytes))
    }

    /// Compiles and returns the program, from which the code can be had, with its log.
    fn run(
        &self,
        source: &str,
        kernel: &str,
        architecture: Architecture,
        arguments: &[String],
    ) -> Result<(Program<'_>, String), CompileError> {
        if !self.architectures.contains(&architecture) {
            return Err(CompileError::UnsupportedArchitecture {
                architecture,
                version: self.version,
            });
        }
        if has_include(source) {
            return Err(CompileError::Include);
        }
        // The program's name ends up in messages and, with line information, in the cubin.
        let program = Program::new(&self.library, source, &format!("{kernel}.cu"))?
            .map_err(|status| self.library.failure("nvrtcCreateProgram", status))?;
        let mut arguments = arguments.to_vec();
        if self.version < MINIMAL_SINCE {
            arguments.retain(|argument| argument != cubin::MINIMAL);
        }
        if self.version >= NO_CACHE_SINCE {
            // Where a driver is present NVRTC keeps what it compiled, and says nothing of registers
            // and spills when it finds a source again.
            arguments.push("--no-cache".to_owned());
        }
        let status = program.compile(&arguments)?;
        let log =
            program.log().map_err(|status| self.library.failure("nvrtcGetProgramLog", status))?;
        let log = text(log);
        match status {
            Status::SUCCESS => Ok((program, log)),
            // An internal error of the compiler comes from the source that set it off, too.
            Status::COMPILATION | Status::INTERNAL_ERROR => {
                Err(CompileError::Failed { architecture, log })
            }
            // NVRTC explains the others in the log, if at all.
            other => Err(NvrtcError::Call {
                call: "nvrtcCompileProgram".into(),
                message: match log.trim() {
                    "" => self.library.describe(other),
                    log => one_line(log),
                },
            }
            .into()),
        }
    }
}

/// NVRTC ends its texts in NUL. The assembler's messages, which follow the compiler's, have one of
/// their own.
fn text(mut bytes: Vec<u8>) -> String {
    bytes.retain(|&byte| byte != 0);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The assembler reports how long it took. Left out, so that one source gives one and the same
/// cubin.
fn without_times(log: &str) -> String {
    log.split_inclusive('\n').filter(|line| !line.contains(": Compile time = ")).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// NVRTC could not be used. The installation is at fault, not the source.
#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum NvrtcError {
    /// There is no such file, or it is no shared library that this machine can load.
    #[error("cannot load `{}`: {message}", path.display())]
    Load {
        /// The library asked for.
        path: PathBuf,
        /// The loader's reason.
        message: String,
    },
    /// A shared library, but not NVRTC, or one older than CUDA 11.2.
    #[error("`{}` is not a usable NVRTC: it has no function `{symbol}`", path.display())]
    NotNvrtc {
        /// The library asked for.
        path: PathBuf,
        /// The first function that it lacks.
        symbol: Cow<'static, str>,
    },
    /// It compiles for no architecture that is known here.
    #[error("`{}` compiles for none of the known architectures", path.display())]
    NoArchitecture {
        /// The library asked for.
        path: PathBuf,
    },
    /// A call failed.
    #[error("{call} failed: {message}")]
    Call {
        /// The function.
        call: Cow<'static, str>,
        /// NVRTC's reason.
        message: String,
    },
}

/// A source was not compiled.
#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum CompileError {
    /// The compiler or the assembler refuses the source.
    #[error("does not compile for {architecture}: {}", first_error(log))]
    Failed {
        /// The target.
        architecture: Architecture,
        /// Everything that the compiler said.
        log: String,
    },
    /// The source compiles, but defines no `extern "C" __global__` function of that name.
    #[error("the source defines no kernel called `{kernel}`")]
    KernelMissing {
        /// The name asked for.
        kernel: String,
        /// Everything that the compiler said.
        log: String,
    },
    /// The source, the kernel's name or an option holds a NUL character.
    #[error("the {part} holds a NUL character")]
    Nul {
        /// What holds it.
        part: Cow<'static, str>,
    },
    /// The source includes a file. NVRTC would read any file of this machine and quote it in its
    /// log, and a cached cubin would not notice that the file changed.
    #[error(
        "the source has an #include directive: it must stand alone, but for what is known without a file, as of \
         <cuda_runtime.h>, <stdint.h>, <cuda_fp16.h>, <cuda_bf16.h> and <cooperative_groups.h>"
    )]
    Include,
    /// This NVRTC does not know the architecture.
    #[error("NVRTC {version} does not compile for {architecture}")]
    UnsupportedArchitecture {
        /// The target.
        architecture: Architecture,
        /// The compiler's version.
        version: Version,
    },
    /// NVRTC is broken, incomplete or out of memory.
    #[error(transparent)]
    Nvrtc(#[from] NvrtcError),
}

/// How NVRTC ends the line by which it gives a source up that takes more memory than there is.
const OUT_OF_MEMORY: &str = "catastrophic error: out of memory";

impl CompileError {
    /// Whether the compiler had too little memory, which it says or, where it had none left for
    /// that, says nothing: another might compile the source.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        let Self::Failed { log, .. } = self else { return false };
        log.trim().is_empty() || log.lines().any(|line| line.ends_with(OUT_OF_MEMORY))
    }

    /// Whether the source is at fault, rather than the installation or the caller.
    #[must_use]
    pub fn is_sources_fault(&self) -> bool {
        match self {
            Self::Failed { .. } | Self::KernelMissing { .. } | Self::Nul { .. } | Self::Include => {
                true
            }
            Self::UnsupportedArchitecture { .. } | Self::Nvrtc(_) => false,
        }
    }
}

/// The line of a failed compilation's log that says why.
///
/// Where there is none, what the kernel uses is the best hint: the assembler refuses kernels that
/// use too much.
fn first_error(log: &str) -> String {
    let line = log
        .lines()
        .find(|line| {
            let tells = line.contains("error") || line.contains("fatal");
            tells && !line.contains("errors detected") && !line.contains("aborted due to errors")
        })
        .or_else(|| log.lines().find(|line| line.contains(": Used ")))
        .or_else(|| log.lines().find(|line| !line.trim().is_empty()));
    line.map_or_else(|| "the compiler gives no reason".to_owned(), one_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_line_is_found() {
        let log = "nvrtc: warning: old\nk.cu(2): error: identifier \"y\" is undefined\n   x[0]=y;\n        ^\n\n1 error detected in the compilation of \"k.cu\".\n";
        assert_eq!(first_error(log), "k.cu(2): error: identifier \"y\" is undefined");
        let log = "ptxas fatal   : (C7600) Register allocation failed with register count of '7'\n\
                   ptxas fatal   : Ptx assembly aborted due to errors\n";
        assert!(first_error(log).contains("(C7600) Register allocation failed"));
    }

    #[test]
    fn without_an_error_line_the_resources_are_shown() {
        let log =
            "ptxas info    : 0 bytes gmem\nptxas info    : Used 8 registers, 400000 bytes smem\n";
        assert_eq!(first_error(log), "ptxas info : Used 8 registers, 400000 bytes smem");
        assert_eq!(first_error(" \n"), "the compiler gives no reason");
    }

    #[test]
    fn a_library_that_is_not_nvrtc_is_an_error() {
        let missing = Nvrtc::open("/nonexistent/libnvrtc.so").unwrap_err();
        assert!(matches!(missing, NvrtcError::Load { .. }), "{missing}");
        assert_eq!(missing.to_string().lines().count(), 1);

        let text = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(text.path(), "no library").unwrap();
        assert!(matches!(Nvrtc::open(text.path()), Err(NvrtcError::Load { .. })));

        let other = Nvrtc::open("libc.so.6").unwrap_err();
        assert!(matches!(other, NvrtcError::NotNvrtc { .. }), "{other}");
    }
}
