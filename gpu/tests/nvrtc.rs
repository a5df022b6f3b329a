//! NVRTC as installed by `tests/install-nvrtc.sh`: compiling, its errors, and the cache. Needs no
//! GPU.

// Clippy's exception for tests does not reach the helper functions between them.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::time::Instant;

use sparserl_gpu::Architecture;
use sparserl_gpu::compile::cache::{CubinCache, Origin};
use sparserl_gpu::compile::nvrtc::{CompileError, CompileOptions, Compilers, Nvrtc};

const SAXPY: &str = r#"
extern "C" __global__ void saxpy(const float* x, float* y, float a, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"#;

/// Keeps so many sums at once that few registers cannot hold them.
const GREEDY: &str = r#"
extern "C" __global__ void greedy(const double* x, double* y, int n) {
    __shared__ double staged[128];
    double sums[32];
    #pragma unroll
    for (int j = 0; j < 32; j++) sums[j] = x[j];
    for (int i = 0; i < n; i++) {
        #pragma unroll
        for (int j = 0; j < 32; j++) sums[j] = sums[j] * x[i] + sums[(j + 7) % 32];
    }
    double sum = 0;
    #pragma unroll
    for (int j = 0; j < 32; j++) sum += sums[j];
    staged[threadIdx.x] = sum;
    __syncthreads();
    y[threadIdx.x] = staged[127 - threadIdx.x];
}
"#;

fn compilers() -> Compilers {
    Compilers::discover().unwrap_or_else(|error| {
        panic!("these tests need NVRTC: run tests/install-nvrtc.sh first\n{error}")
    })
}

fn none() -> CompileOptions {
    CompileOptions::default()
}

#[test]
fn what_machine_code_calls_of_the_runtime_is_known() {
    let compilers = compilers();
    let calls = |body: &str| {
        let source = format!("extern \"C\" __global__ void k(float* y) {{ {body} }}");
        let architecture = Architecture::Sm90;
        let nvrtc = compilers.for_arch(architecture).unwrap();
        let cubin = nvrtc.compile(&source, "k", architecture, &none()).unwrap();
        cubin.runtime_calls().unwrap()
    };
    let none: [&str; 0] = [];
    assert_eq!(calls("y[threadIdx.x] = 1;"), none);
    assert_eq!(calls("printf(\"%f\", y[0]); free(y);"), none);
    for taken in [
        "*(void**)y = malloc(8);",
        "*(void**)y = new float[8];",
        "*(void**)y = __nv_aligned_device_malloc(8, 16);",
    ] {
        assert!(calls(taken).iter().any(|name| name.contains("malloc")), "{taken}");
    }
}

#[test]
fn every_architecture_compiles() {
    let compilers = compilers();
    for architecture in Architecture::ALL {
        let nvrtc = compilers.for_arch(architecture).unwrap();
        let start = Instant::now();
        let cubin = nvrtc.compile(SAXPY, "saxpy", architecture, &none()).unwrap();
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        println!("{architecture} by NVRTC {}: {milliseconds:.1} ms", nvrtc.version());

        assert!(cubin.bytes().starts_with(b"\x7fELF"), "{architecture}");
        assert!(cubin.resources().registers > 0, "{architecture}: {}", cubin.log());
        assert_eq!(cubin.resources().shared, 0);
        assert_eq!((cubin.architecture(), cubin.nvrtc_version()), (architecture, nvrtc.version()));
    }
}

#[test]
fn the_newest_compiler_that_knows_the_architecture_is_chosen() {
    let compilers = compilers();
    let versions: Vec<_> = compilers.all().iter().map(Nvrtc::version).collect();
    assert!(versions.len() >= 2, "run tests/install-nvrtc.sh: found only {versions:?}");
    assert!(versions.is_sorted_by(|a, b| a > b), "{versions:?}");

    let major = |architecture| compilers.for_arch(architecture).unwrap().version().major;
    assert_eq!(major(Architecture::Sm70), 12, "13 no longer knows Volta");
    assert_eq!(major(Architecture::Sm90), versions[0].major);
    let older = compilers.for_device(Architecture::Sm90, 12).unwrap();
    assert_eq!(older.version().major, 12, "a driver for CUDA 12 loads no cubin of 13");
    assert!(compilers.for_device(Architecture::Sm90, 11).is_err());

    let newest = &compilers.all()[0];
    let error = newest.compile(SAXPY, "saxpy", Architecture::Sm70, &none()).unwrap_err();
    assert!(matches!(error, CompileError::UnsupportedArchitecture { .. }), "{error}");
    assert!(!error.is_sources_fault());
}

#[test]
fn a_compile_error_shows_its_line() {
    for nvrtc in compilers().all() {
        let source = SAXPY.replace("a * x[i]", "b * x[i]");
        let error = nvrtc.compile(&source, "saxpy", Architecture::Sm80, &none()).unwrap_err();
        assert!(matches!(error, CompileError::Failed { .. }));
        let text = error.to_string();
        assert!(text.contains("saxpy.cu(4): error: identifier \"b\" is undefined"), "{text}");
        assert_eq!(text.lines().count(), 1);
        assert!(error.is_sources_fault());
    }
}

#[test]
fn what_the_assembler_refuses_is_an_error_too() {
    let source = r#"extern "C" __global__ void k(float* x) {
        __shared__ float big[100000];
        big[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[0] = big[threadIdx.x ^ 1];
    }"#;
    for nvrtc in compilers().all() {
        let error = nvrtc.compile(source, "k", Architecture::Sm80, &none()).unwrap_err();
        assert!(matches!(error, CompileError::Failed { .. }), "{error}");
        assert!(error.to_string().contains("uses too much shared data"), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
        assert!(!error.to_string().contains('\0'));
    }
}

#[test]
fn a_kernel_that_is_not_there_is_an_error() {
    let compilers = compilers();
    let nvrtc = compilers.for_arch(Architecture::Sm90).unwrap();
    let mangled = SAXPY.replace("extern \"C\"", "");
    for (source, kernel) in [(SAXPY, "daxpy"), (mangled.as_str(), "saxpy")] {
        let error = nvrtc.compile(source, kernel, Architecture::Sm90, &none()).unwrap_err();
        assert!(matches!(error, CompileError::KernelMissing { .. }), "{error}");
    }
    let error = nvrtc.compile("a\0b", "k", Architecture::Sm90, &none()).unwrap_err();
    assert!(matches!(&error, CompileError::Nul { part } if part == "source"), "{error}");
    let includes = format!("#include \"/etc/hostname\"\n{SAXPY}");
    let error = nvrtc.compile(&includes, "saxpy", Architecture::Sm90, &none()).unwrap_err();
    assert!(matches!(error, CompileError::Include) && error.is_sources_fault(), "{error}");
}

#[test]
fn registers_spills_and_shared_memory_are_reported() {
    for nvrtc in compilers().all() {
        let roomy = nvrtc.compile(GREEDY, "greedy", Architecture::Sm80, &none()).unwrap();
        assert_eq!(roomy.resources().shared, 1024);
        assert_eq!(roomy.resources().spill_stores, 0, "{}", roomy.log());
        assert!(roomy.resources().constant.is_some(), "{}", roomy.log());

        let narrow = CompileOptions { max_registers: Some(32), ..none() };
        let spilled = nvrtc.compile(GREEDY, "greedy", Architecture::Sm80, &narrow).unwrap();
        assert!(spilled.resources().registers <= 32, "{}", spilled.log());
        assert!(spilled.resources().registers < roomy.resources().registers);
        assert!(spilled.resources().spill_stores > 0, "{}", spilled.log());
        assert!(spilled.resources().spill_loads > 0, "{}", spilled.log());
        assert!(spilled.resources().stack > 0, "{}", spilled.log());
    }
}

#[test]
fn ptx_is_text_and_macros_are_defined() {
    let compilers = compilers();
    let nvrtc = compilers.for_arch(Architecture::Sm90).unwrap();
    let source = r#"extern "C" __global__ void k(int* x) { *x = VALUE; }"#;
    let options = CompileOptions { defines: vec![("VALUE".into(), "4711".into())], ..none() };
    let ptx = nvrtc.compile_ptx(source, "k", Architecture::Sm90, &options).unwrap();
    assert!(ptx.contains(".target sm_90") && ptx.contains(".entry k("), "{ptx}");
    assert!(ptx.contains("4711") && !ptx.contains('\0'), "{ptx}");
}

#[test]
fn builds_are_told_apart() {
    let compilers = compilers();
    let builds: Vec<_> = compilers.all().iter().map(|nvrtc| nvrtc.build().unwrap()).collect();
    for (nvrtc, build) in compilers.all().iter().zip(&builds) {
        assert!(build.contains(&format!("V{}.", nvrtc.version())), "{build}");
    }
    assert!(builds.windows(2).all(|pair| pair[0] != pair[1]), "{builds:?}");
}

#[test]
fn a_compiler_serves_several_threads() {
    let compilers = compilers();
    let nvrtc = compilers.for_arch(Architecture::Sm90).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| nvrtc.compile(SAXPY, "saxpy", Architecture::Sm90, &none()).unwrap());
        }
    });
}

#[test]
fn libraries_can_be_closed_and_opened_again() {
    for _ in 0..3 {
        for nvrtc in compilers().all() {
            nvrtc.compile(SAXPY, "saxpy", Architecture::Sm80, &none()).unwrap();
        }
    }
}

#[test]
fn the_cache_gives_the_same_bytes_and_is_faster() {
    let compilers = compilers();
    let folder = tempfile::tempdir().unwrap();
    let cache = CubinCache::at(folder.path());
    for nvrtc in compilers.all() {
        nvrtc.build().unwrap();
        let fetch = || {
            let start = Instant::now();
            let fetched = cache.compile(nvrtc, GREEDY, "greedy", Architecture::Sm90, &none());
            (fetched.unwrap(), start.elapsed())
        };
        let (first, slow) = fetch();
        let (second, fast) = fetch();
        println!("NVRTC {}: compiled {slow:?}, cached {fast:?}", nvrtc.version());
        assert!(matches!(first.origin, Origin::Compiled), "{:?}", first.origin);
        assert!(matches!(second.origin, Origin::Cache), "{:?}", second.origin);
        assert_eq!(first.cubin, second.cubin);
        assert!(fast < slow, "{fast:?} is not below {slow:?}");
    }
}

#[test]
fn the_cache_tells_options_sources_and_architectures_apart() {
    let compilers = compilers();
    let nvrtc = compilers.for_arch(Architecture::Sm80).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cache = CubinCache::at(folder.path());
    let narrow = CompileOptions { max_registers: Some(16), ..none() };
    let changed = SAXPY.replace("+=", "-=");
    for (source, architecture, options) in [
        (SAXPY, Architecture::Sm80, &none()),
        (SAXPY, Architecture::Sm86, &none()),
        (SAXPY, Architecture::Sm80, &narrow),
        (changed.as_str(), Architecture::Sm80, &none()),
    ] {
        let fetched = cache.compile(nvrtc, source, "saxpy", architecture, options).unwrap();
        assert!(matches!(fetched.origin, Origin::Compiled));
        assert_eq!(fetched.cubin.architecture(), architecture);
    }
}

#[test]
fn a_damaged_entry_is_compiled_anew() {
    let compilers = compilers();
    let nvrtc = compilers.for_arch(Architecture::Sm90).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cache = CubinCache::at(folder.path());
    let fetch = || cache.compile(nvrtc, SAXPY, "saxpy", Architecture::Sm90, &none()).unwrap();
    let good = fetch().cubin;
    let entry = only_entry(folder.path());
    let bytes = std::fs::read(&entry).unwrap();

    let mut flipped = bytes.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 0x80;
    for poison in [&flipped[..], &bytes[..bytes.len() / 2], b"", b"\x7fELF"] {
        std::fs::write(&entry, poison).unwrap();
        let fetched = fetch();
        assert!(matches!(fetched.origin, Origin::Compiled));
        assert_eq!(fetched.cubin, good);
        assert_eq!(std::fs::read(&entry).unwrap(), bytes, "the entry is whole again");
    }
    assert!(matches!(fetch().origin, Origin::Cache));
}

/// Also sees that no temporary file is left.
fn only_entry(folder: &std::path::Path) -> std::path::PathBuf {
    let mut files = Vec::new();
    for below in std::fs::read_dir(folder).unwrap() {
        files.extend(std::fs::read_dir(below.unwrap().path()).unwrap());
    }
    assert_eq!(files.len(), 1, "{files:?}");
    files.pop().unwrap().unwrap().path()
}

#[test]
fn a_cache_that_cannot_be_written_stops_nothing() {
    let compilers = compilers();
    let nvrtc = compilers.for_arch(Architecture::Sm90).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let cache = CubinCache::at(file.path());
    let fetched = cache.compile(nvrtc, SAXPY, "saxpy", Architecture::Sm90, &none()).unwrap();
    let Origin::NotKept(error) = fetched.origin else { panic!("{:?}", fetched.origin) };
    assert!(error.to_string().contains("cannot keep"), "{error}");
}

#[test]
fn many_may_share_a_cache() {
    let compilers = compilers();
    let nvrtc = compilers.for_arch(Architecture::Sm90).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cache = CubinCache::at(folder.path());
    let cubins: Vec<_> = std::thread::scope(|scope| {
        let fetch =
            || cache.compile(nvrtc, SAXPY, "saxpy", Architecture::Sm90, &none()).unwrap().cubin;
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(fetch)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(cubins.windows(2).all(|pair| pair[0] == pair[1]));
    only_entry(folder.path());
}
