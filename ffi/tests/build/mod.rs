//! Builds programs in C, C++ and Fortran against the library, as its users do.
//!
//! | variable | what |
//! |---|---|
//! | `SPARSERL_ROOT` | root of the repository, where it is not where this was built |
//! | `SPARSERL_LIBRARY` | folder with the libraries, where it is not beside this program |
//! | `SPARSERL_CUDA` | CUDA's folder, where it is not `/usr/local/cuda` or `.cudart` |
//! | `SPARSERL_CUSPARSE` | cuSPARSE's folder, with `include` and `lib`, where it is not CUDA's |
//! | `CC`, `CXX`, `FC` | the only compilers to be used |

#![allow(dead_code, reason = "each suite uses a part")]

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use tempfile::TempDir;

/// Warnings that the header and the examples must not cause.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

/// What the static library takes from the system: as `rustc --print native-static-libs` says.
const SYSTEM: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Cpp,
    Fortran,
}

pub(crate) struct Compiler {
    program: String,
    language: Language,
}

impl Compiler {
    /// Those that the machine has.
    pub(crate) fn all(language: Language) -> Vec<Self> {
        let (variable, usual) = match language {
            Language::C => ("CC", &["gcc", "clang"][..]),
            Language::Cpp => ("CXX", &["g++", "clang++"][..]),
            Language::Fortran => ("FC", &["gfortran"][..]),
        };
        let programs = match env::var(variable) {
            Ok(program) => vec![program],
            Err(_) => usual.iter().map(|&program| program.to_owned()).collect(),
        };
        let is_there = |program: &String| Command::new(program).arg("--version").output().is_ok();
        let programs = programs.into_iter().filter(is_there);
        programs.map(|program| Self { program, language }).collect()
    }

    /// The one that has a fuzzer, where it is installed: distributions pack its library apart.
    pub(crate) fn with_fuzzer() -> Option<Self> {
        let target = "int LLVMFuzzerTestOneInput(void) { return 0; }";
        let has_fuzzer = |compiler: &Self| compiler.links(&["-fsanitize=fuzzer"], target);
        Self::all(Language::C).into_iter().find(has_fuzzer)
    }

    /// What it is called by.
    pub(crate) fn name(&self) -> &str {
        &self.program
    }

    /// Whether it makes a program of some C with flags whose libraries may not be installed.
    pub(crate) fn links(&self, flags: &[impl AsRef<OsStr>], text: &str) -> bool {
        let folder = TempDir::new().unwrap();
        let source = folder.path().join("program.c");
        fs::write(&source, text).unwrap();
        let mut command = Command::new(&self.program);
        command.args(flags).arg(source).arg("-o").arg(folder.path().join("program"));
        command.output().is_ok_and(|output| output.status.success())
    }

    /// The one that knows MPI, where it and PETSc are installed, and PETSc's flags.
    pub(crate) fn with_petsc() -> Option<(Self, Vec<String>)> {
        let compiler = Self { program: "mpicc".to_owned(), language: Language::C };
        Command::new(&compiler.program).arg("--version").output().ok()?;
        let asked =
            Command::new("pkg-config").args(["--cflags", "--libs", "PETSc"]).output().ok()?;
        let flags = String::from_utf8_lossy(&asked.stdout).into_owned();
        // Not its warnings.
        let flags = flags.split_whitespace().map(|flag| match flag.strip_prefix("-I") {
            Some(folder) => format!("-isystem{folder}"),
            None => flag.to_owned(),
        });
        asked.status.success().then(|| (compiler, flags.collect()))
    }

    pub(crate) fn first(language: Language) -> Self {
        Self::all(language).into_iter().next().unwrap()
    }
}

/// CUDA's runtime, to compile and link with.
pub(crate) struct Cuda {
    include: PathBuf,
    libraries: PathBuf,
}

impl Cuda {
    /// Where the machine has it; `tests/install-cudart.sh` puts it into `.cudart`.
    pub(crate) fn find() -> Option<Self> {
        let set = env::var_os("SPARSERL_CUDA").map(PathBuf::from);
        let places = set.into_iter().chain(["/usr/local/cuda".into(), root().join(".cudart")]);
        let mut found = places.flat_map(|place| {
            ["lib64", "lib"].map(|libraries| Self {
                include: place.join("include"),
                libraries: place.join(libraries),
            })
        });
        found.find(|cuda| {
            cuda.include.join("cuda_runtime_api.h").is_file()
                && cuda.libraries.join("libcudart_static.a").is_file()
        })
    }

    /// Whether it has a library, too.
    pub(crate) fn has(&self, library: &str) -> bool {
        self.libraries.join(format!("lib{library}.so")).is_file()
    }

    /// The compiler of kernels, where it is a whole toolkit.
    pub(crate) fn nvcc(&self) -> Option<PathBuf> {
        Some(self.include.with_file_name("bin").join("nvcc")).filter(|nvcc| nvcc.is_file())
    }

    /// Flags of examples beside cuSPARSE, where a compiler can take them: its header includes more
    /// of CUDA than the runtime has. They go before [`Build::with_cuda`], since this cuSPARSE may
    /// be another one than CUDA's.
    pub(crate) fn cusparse(&self, compiler: &Compiler) -> Option<Vec<String>> {
        let (include, libraries) = match env::var_os("SPARSERL_CUSPARSE").map(PathBuf::from) {
            Some(folder) => (folder.join("include"), folder.join("lib")),
            None => (self.include.clone(), self.libraries.clone()),
        };
        let mut files = fs::read_dir(&libraries).ok()?.map_while(Result::ok);
        // Wheels have the name with a version only.
        let library =
            files.find(|file| file.file_name().to_string_lossy().starts_with("libcusparse.so"))?;
        let flags = vec![
            "-DWITH_CUSPARSE".to_owned(),
            format!("-isystem{}", include.display()),
            library.path().display().to_string(),
            format!("-Wl,-rpath,{}", libraries.display()),
        ];
        let own = format!("-isystem{}", self.include.display());
        let probed = flags.iter().map(String::as_str).chain([own.as_str()]);
        let target = "#include <cusparse.h>\nint main(void) { return 0; }";
        compiler.links(&probed.collect::<Vec<_>>(), target).then_some(flags)
    }
}

/// A program in the making.
pub(crate) struct Build<'a> {
    compiler: &'a Compiler,
    source: PathBuf,
    flags: Vec<String>,
    is_static: bool,
}

impl<'a> Build<'a> {
    /// Of a source in the crate's folder.
    pub(crate) fn new(compiler: &'a Compiler, source_file: &str) -> Self {
        Self { compiler, source: source(source_file), flags: Vec::new(), is_static: false }
    }

    pub(crate) fn flags(mut self, flags: &[impl AsRef<str>]) -> Self {
        self.flags.extend(flags.iter().map(|flag| flag.as_ref().to_owned()));
        self
    }

    /// With CUDA's runtime.
    pub(crate) fn with_cuda(mut self, cuda: &Cuda) -> Self {
        let libraries = cuda.libraries.display();
        self.flags.extend([
            // Not its warnings.
            format!("-isystem{}", cuda.include.display()),
            format!("-L{libraries}"),
            "-lcudart_static".to_owned(),
            "-lpthread".to_owned(),
            "-ldl".to_owned(),
            "-lrt".to_owned(),
            format!("-Wl,-rpath,{libraries}"),
        ]);
        self
    }

    /// With the static library.
    pub(crate) fn statically(self) -> Self {
        Self { is_static: true, ..self }
    }

    /// Builds a driver for CUDA's loaders to find, and gives its path.
    pub(crate) fn into_driver(self, folder: &Path) -> PathBuf {
        let driver = folder.join("libcuda.so.1");
        let include = root().join(".cudart/include");
        assert!(include.is_dir(), "run tests/install-cudart.sh first");
        let mut command = Command::new(&self.compiler.program);
        command.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror"]);
        command.args(["-shared", "-fPIC", "-pthread", "-Wl,-soname,libcuda.so.1"]);
        command
            .args(&self.flags)
            .arg("-isystem")
            .arg(include)
            .arg(&self.source)
            .arg("-o")
            .arg(&driver);
        run(&mut command);
        driver
    }

    /// Builds it, and gives its path.
    pub(crate) fn into_folder(self, folder: &Path) -> PathBuf {
        let program = folder.join(self.source.file_stem().unwrap());
        let mut command = Command::new(&self.compiler.program);
        match self.compiler.language {
            Language::C => command.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L"]),
            Language::Cpp => command.args(["-std=c++20", "-x", "c++"]),
            // Modules are written there.
            Language::Fortran => command.args(["-std=f2008", "-J"]).arg(folder),
        };
        command.args(WARNINGS).arg("-I").arg(source("")).arg(&self.source);
        if self.compiler.language == Language::Cpp {
            command.args(["-x", "none"]);
        }
        let libraries = libraries();
        if self.is_static {
            command.arg(libraries.join("libsparserl.a")).args(SYSTEM);
        } else {
            // The loader looks for the name that has the ABI's version, as an installation does.
            let major = env!("CARGO_PKG_VERSION_MAJOR");
            for name in ["libsparserl.so".to_owned(), format!("libsparserl.so.{major}")] {
                let link = folder.join(name);
                // Several programs may be built into a folder.
                let _ = std::os::unix::fs::symlink(libraries.join("libsparserl.so"), link);
            }
            command.arg("-L").arg(folder).arg("-lsparserl");
            command.arg(format!("-Wl,-rpath,{}", folder.display()));
        }
        command.args(&self.flags).arg("-o").arg(&program);
        run(&mut command);
        program
    }
}

/// What a program wrote.
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program, which has to succeed.
pub(crate) fn run(command: &mut Command) -> Output {
    // A program that was linked statically lies beside no server.
    run_installed(command.env("SPARSERL_SERVER", server()))
}

/// Where programs keep kernels and choices, beside this one: earlier runs have left nothing in it.
static CACHE: LazyLock<PathBuf> = LazyLock::new(|| {
    let cache = env::current_exe().unwrap().with_extension("cache");
    match fs::remove_dir_all(&cache) {
        Err(error) if error.kind() != ErrorKind::NotFound => panic!("{}: {error}", cache.display()),
        _ => cache,
    }
});

/// [`run`] for a program that finds by itself what is installed.
pub(crate) fn run_installed(command: &mut Command) -> Output {
    command.env("SPARSERL_CACHE_DIR", &*CACHE);
    // Cargo sets it relative to the workspace.
    if let Some(folder) = env::var_os("SPARSERL_NVRTC") {
        command.env("SPARSERL_NVRTC", root().join(folder));
    }
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}{stderr}", output.status);
    Output { stdout, stderr }
}

/// Every function of the header, and nothing else, is in a library, with its version: programs
/// remember of which version a function was, and a library without it says so when they start.
pub(crate) fn check_symbol_versions(library: &Path) {
    let output = run(Command::new("nm")
        .args(["-D", "--defined-only", "--with-symbol-versions"])
        .arg(library));
    let symbols = output.stdout.lines().filter_map(|line| line.split(' ').nth(2));
    let mut found: Vec<&str> = symbols.filter(|symbol| !symbol.starts_with("SPARSERL_")).collect();
    found.sort_unstable();
    let header = fs::read_to_string(source("sparserl.h")).unwrap();
    let declared = header.lines().filter(|line| !line.starts_with("//"));
    let declared =
        declared.filter_map(|line| line.split('(').next()?.split([' ', '*']).next_back());
    let mut declared: Vec<&str> = declared
        .filter(|name| name.starts_with("sparserl_") && header.contains(&format!("{name}(")))
        .collect();
    declared.sort_unstable();
    // What a release has stays there: programs were linked with these.
    let listed = fs::read_to_string(source("tests/symbols.txt")).unwrap();
    let mut wanted: Vec<&str> = listed.lines().collect();
    wanted.sort_unstable();
    assert!(found.len() >= 24 && found == wanted, "{found:?} for {wanted:?}");
    let mut names: Vec<&str> =
        wanted.iter().filter_map(|symbol| symbol.split("@@").next()).collect();
    names.sort_unstable();
    assert_eq!(names, declared);
}

fn root() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::path::absolute(env::var_os("SPARSERL_ROOT").map_or(built, Into::into)).unwrap()
}

/// A file of the crate.
pub(crate) fn source(file: &str) -> PathBuf {
    root().join("ffi").join(file)
}

fn libraries() -> PathBuf {
    let beside = env::current_exe().unwrap().parent().unwrap().to_owned();
    std::path::absolute(env::var_os("SPARSERL_LIBRARY").map_or(beside, Into::into)).unwrap()
}

/// The shared library.
pub(crate) fn library() -> PathBuf {
    libraries().join("libsparserl.so")
}

fn server() -> PathBuf {
    let name = "sparserl-server";
    let (beside, above) = (libraries().join(name), libraries().join("..").join(name));
    if beside.is_file() { beside } else { above }
}
