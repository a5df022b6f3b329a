//! What a machine and its users do to a run: disks that are full, kills, crowds, libraries that are
//! old or cut, and sources that blow a compiler up. It ends in time and in one line, by no signal,
//! and leaves nothing half written.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Place, Run, matrix, run};

/// That a run could not do what it was asked to, and how it says so.
fn check_told(run: &Run, start: &str, at: &str) {
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""), "{at}: {}", run.stderr);
    assert!(run.stderr.starts_with(start), "{at}: {}", run.stderr);
    assert_eq!(run.stderr.matches('\n').count(), 1, "{at}: {}", run.stderr);
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_nothing_stays() {
    let place = Place::new();
    let arguments =
        format!("gen {} --no-compile --packed --candidates 2 -o deep/er/out", matrix("beam.mtx"));
    // In blocks of 512 bytes; the packed arrays are the longest of the files.
    for blocks in [0, 1, 4, 16, 64] {
        let run = run(&mut place.limited(&format!("-f {blocks}"), &arguments));
        check_told(&run, "error: deep/er/out/", &format!("{blocks} blocks"));
        assert!(run.stderr.contains(": cannot write: "), "{}", run.stderr);
        assert!(run.stderr.contains("File too large"), "{}", run.stderr);
        assert_eq!(place.names(""), [""; 0], "{blocks} blocks");
    }
    let run = run(&mut place.limited("-f 1024", &arguments));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let mut full = place.command(&format!("inspect {} --json", matrix("beam.mtx")));
    let full = self::run(full.stdout(fs::File::create("/dev/full").unwrap()));
    check_told(&full, "error: writing to standard output: No space left", "/dev/full");
}

#[test]
fn many_runs_at_once_share_a_cache_and_make_the_same() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    let start = |number: usize| {
        let check = if number.is_multiple_of(2) { "--check" } else { "--no-check" };
        let arguments = format!("gen {beam} --no-packed {check} -o out{number}");
        let mut command = place.command(&arguments);
        // Where there are GPUs, none is seen.
        command.env("CUDA_VISIBLE_DEVICES", "");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let begun: Vec<_> = (0..10).map(start).collect();
    for child in begun {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{}: {said}", output.status);
    }
    let made = |number: usize| {
        ["kernel.cu", "program.skl", "kernel.cubin"]
            .map(|name| fs::read(place.path(&format!("out{number}/{name}"))).unwrap())
    };
    let first = made(0);
    assert!((1..10).all(|number| made(number) == first));
    let kept: BTreeSet<_> = place.kept().into_iter().collect();
    assert!(kept.iter().all(|name| name.ends_with(".cubin") || name.ends_with(".json")));
    assert_eq!(kept.iter().filter(|name| name.ends_with(".cubin")).count(), 1, "{kept:?}");
}

/// A library called like the driver's, of a source in C.
fn driver(folder: &Path, source: &str) {
    fs::create_dir_all(folder).unwrap();
    let file = folder.join("driver.c");
    fs::write(&file, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(folder.join("libcuda.so.1")).arg(&file);
    assert!(compiler.status().expect("a C compiler, as the linker needs one").success());
}

#[test]
fn a_driver_that_is_old_broken_or_cut_is_one_line() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    let old = "int cuInit(unsigned f) { return 0; }\n\
               int cuDriverGetVersion(int* v) { *v = 11000; return 0; }\n\
               int cuDeviceGetCount(int* c) { *c = 1; return 0; }\n";
    let too_old = |symbol| format!("the CUDA driver is too old: it has no {symbol}; install");
    for (name, source, told) in [
        ("old", old, too_old("cuGetErrorName")),
        ("other", "int nothing;\n", too_old("cuInit")),
        ("cut", old, "the file was cut: it has ".to_owned()),
    ] {
        let folder = place.path(name);
        driver(&folder, source);
        if name == "cut" {
            let library = folder.join("libcuda.so.1");
            let length = fs::metadata(&library).unwrap().len();
            fs::File::options().write(true).open(library).unwrap().set_len(length / 2).unwrap();
        }
        for arguments in [format!("gen {beam} -o out"), format!("tune {beam} --budget 1s -o out")] {
            let run = run(place.command(&arguments).env("LD_LIBRARY_PATH", &folder));
            check_told(&run, "error: ", name);
            assert!(run.stderr.contains(&told), "{name}: {}", run.stderr);
            assert!(!place.path("out").exists());
        }
    }
}

#[test]
fn a_compiler_that_is_cut_is_one_line() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    let found = std::env::var_os("SPARSERL_NVRTC").expect("tests/install-nvrtc.sh sets it up");
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(found).join("13");
    for cut in ["libnvrtc.so", "libnvrtc-builtins.so"] {
        let folder = place.path(cut);
        fs::create_dir(&folder).unwrap();
        for entry in fs::read_dir(&found).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            fs::copy(entry.path(), folder.join(&name)).unwrap();
            if name.starts_with(cut) {
                let file = fs::File::options().write(true).open(folder.join(&name)).unwrap();
                file.set_len(entry.metadata().unwrap().len() / 2).unwrap();
            }
        }
        let mut command = place.command_without_nvrtc(&format!("gen {beam} -o out-{cut}"));
        let run = run(command.env("SPARSERL_NVRTC", &folder).env("CUDA_VISIBLE_DEVICES", ""));
        assert_eq!(run.code, Some(3), "{}", run.stderr);
        assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
        assert!(run.stderr.contains(&format!("{cut}.")), "{}", run.stderr);
        assert!(run.stderr.contains("the file was cut: it has "), "{}", run.stderr);
    }
}

const LAUNCH: &str = "// launch: spmv<<<ceil(num_rows / 128), 128>>>\n";

/// A right kernel behind some text, with something added to what it stores.
fn blown_up(before: &str, added: &str) -> String {
    format!(
        "{LAUNCH}{before}__global__ void spmv(const int* row_ptr, const int* col_idx,
    const float* values, const float* x, float* y, int num_rows, int num_cols) {{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows) return;
    float sum = 0;
    for (int k = row_ptr[row]; k < row_ptr[row + 1]; ++k) sum += values[k] * x[col_idx[k]];
    y[row] = sum {added};
}}
"
    )
}

/// Sources, and the exit codes that they may have: 0 where they are compiled after all, 1 where
/// they are refused, 3 where the compiler was given up.
fn blown_up_sources() -> [(&'static str, String, &'static [i32]); 9] {
    let doubled = |from: &str| -> String {
        let line = |i| format!("#define M{i} M{} M{}\n", i - 1, i - 1);
        format!("#define M0 {from}\n") + &(1..=40).map(line).collect::<String>()
    };
    let many = |line: fn(usize) -> String| (0..900_000).map(line).collect::<String>();
    let table: String = (0..13_500_000).map(|i| ["10,", "23,", "7,9,"][i % 3]).collect();
    let nested = |open: &str, inner: &str, close: &str| {
        open.repeat(100_000) + inner + &close.repeat(100_000)
    };
    [
        ("classes", blown_up(CLASSES, "+ Sum<60, 0>::value"), &[3]),
        ("recursion", blown_up(RECURSION, "+ Next<0>::value"), &[1]),
        ("macros", blown_up(&doubled("0 +"), "+ M40 0"), &[3]),
        ("loops", blown_up(LOOPS, "+ LOOPED"), &[1, 3]),
        ("functions", blown_up(&many(|i| format!("__device__ int f{i}();\n")), ""), &[0, 3]),
        ("kernels", blown_up(&many(|i| format!("__global__ void g{i}() {{}}\n")), ""), &[0, 1, 3]),
        ("table", blown_up(&format!("__device__ int table[] = {{{table}}};\n"), ""), &[0, 3]),
        ("braces", blown_up("", &format!("; {}", nested("{", "", "}"))), &[0, 3]),
        ("parentheses", blown_up("", &format!("+ {}", nested("(", "0", ")"))), &[0, 3]),
    ]
}

const CLASSES: &str = "template <int DEPTH, long long PATH> struct Sum {
    static constexpr int value = Sum<DEPTH - 1, 2 * PATH>::value + Sum<DEPTH - 1, 2 * PATH + 1>::value;
};
template <long long PATH> struct Sum<0, PATH> { static constexpr int value = 1; };\n";
const RECURSION: &str =
    "template <int N> struct Next { static constexpr int value = Next<N + 1>::value; };\n";
const LOOPS: &str = "__device__ constexpr int looped() {
    int s = 0;
    for (long long i = 0; i < (1ll << 60); ++i) s ^= 1;
    return s;
}
constexpr int LOOPED = looped();\n";

#[test]
fn sources_that_blow_a_compiler_up_end_in_time() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    for (name, source, codes) in blown_up_sources() {
        fs::write(place.path(&format!("{name}.cu")), source).unwrap();
        let start = Instant::now();
        let arguments = format!("verify --emulate {name}.cu --matrix {beam} --deadline 3");
        let run = run(&mut place.command(&arguments));
        let seconds = start.elapsed().as_secs_f64();
        println!("{name}: {:?} after {seconds:.1} s: {}", run.code, run.stderr.trim_end());
        let code = run.code.expect("no signal");
        assert!(codes.contains(&code), "{name}: {code}: {}", run.stderr);
        let lines = usize::from(code != 0);
        assert_eq!(run.stderr.matches('\n').count(), lines, "{name}: {}", run.stderr);
        assert!(run.stderr.len() < 1000, "{name}: {} bytes", run.stderr.len());
        assert!(start.elapsed() < Duration::from_secs(60), "{name}: {seconds} s");
        fs::remove_file(place.path(&format!("{name}.cu"))).unwrap();
    }
}
