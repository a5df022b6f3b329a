//! What is compiled ahead is all that plans begin with: none waits for a compiler, whatever its
//! matrix, neither where there is no GPU nor on one, for which a machine without any has compiled.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

mod build;
mod calls;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;
use std::{env, fs, ptr, thread};

use build::{Build, Compiler, Language};
use calls::{Setting, number, ok, text, with_options};
use log::{LevelFilter, Log, Metadata, Record};
use sparserl::api::*;
use sparserl_core::matrix::{Csr, Offsets, Scalar, generate};
use sparserl_core::task::Dtype;
use sparserl_core::with_scalar;
use tempfile::TempDir;

/// Names the cache folder in the process that has a driver.
const FOLDER: &str = "SPARSERL_TEST_COMPILED_AHEAD";

/// What the library's log has of compilers: sources that are compiled, processes that are started
/// to compile, and epilogues that are tried.
static NOTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes it.
struct Noting;

impl Log for Noting {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = record.args().to_string();
        let is_process = line.starts_with("process ") && line.ends_with(" compiles");
        if is_process || line.starts_with("compiling ") || line.starts_with("trying ") {
            NOTED.lock().unwrap().push(line);
        }
    }

    fn flush(&self) {}
}

fn noted() -> Vec<String> {
    std::mem::take(&mut *NOTED.lock().unwrap())
}

/// What plans are made for: their type, and their options.
fn cases() -> Vec<(Dtype, Vec<Setting>)> {
    let columns = |columns: u64| (SPARSERL_OPTION_COLUMNS, columns.to_ne_bytes().to_vec());
    let dense = |form| number(SPARSERL_OPTION_DENSE, form);
    let transposed = number(SPARSERL_OPTION_TRANSPOSE_TOO, 1);
    let variable = number(SPARSERL_OPTION_VALUES_VARIABLE, 1);
    let of_sides = vec![
        transposed.clone(),
        text(SPARSERL_OPTION_EPILOGUE, "relu"),
        text(SPARSERL_OPTION_TRANSPOSED_EPILOGUE, "clamp"),
    ];
    vec![
        (Dtype::F64, vec![transposed.clone()]),
        (Dtype::F16, vec![transposed, variable]),
        (Dtype::F32, vec![text(SPARSERL_OPTION_EPILOGUE, "relu")]),
        (Dtype::BF16, of_sides),
        (Dtype::F32, vec![columns(3), dense(SPARSERL_DENSE_STRIDED)]),
        (Dtype::BF16, vec![columns(2), dense(SPARSERL_DENSE_COLUMN_MAJOR)]),
    ]
}

fn value_type(dtype: Dtype) -> i32 {
    match dtype {
        Dtype::F32 => SPARSERL_F32,
        Dtype::F64 => SPARSERL_F64,
        Dtype::F16 => SPARSERL_F16,
        Dtype::BF16 => SPARSERL_BF16,
    }
}

/// Of all kinds: those that the cost model has other programs for.
fn matrices() -> Vec<Csr<f64>> {
    let without_entries = |rows, cols| {
        let offsets = Offsets::U64(vec![0; rows + 1]);
        Csr::new(rows, cols, offsets, Vec::new(), Vec::new()).unwrap()
    };
    let mut matrices = vec![
        without_entries(0, 3),
        without_entries(7, 5),
        generate::hyper_sparse(30_000, 2_000, 500, 1),
        generate::one_dense_row(20_000, 20_000, 1),
        generate::uniform(40, 20_000, 3_000, 1),
        generate::uniform(3, 200_000, 100_000, 1),
        generate::uniform(1, 1, 1, 1),
        generate::uniform(50, 100_000, 20, 1),
        generate::uniform(50_000, 10, 2, 1),
        generate::rmat(13, 8, 1),
        generate::fem_blocks(200, 6, 1),
        generate::stencil27(12, 12, 12),
    ];
    // Rows of all lengths, of few and of many of them.
    for half_width in [0, 1, 3, 8, 20, 60] {
        matrices.extend([100, 10_000].map(|rows| generate::banded(rows, half_width, 1)));
    }
    matrices
}

/// A context with a cache folder; on the first device only where it is to have one.
fn open(folder: &Path, has_device: bool) -> *mut sparserl_context {
    let settings = [
        text(SPARSERL_OPTION_POLICY, "cost"),
        text(SPARSERL_OPTION_SERVER, env!("CARGO_BIN_EXE_sparserl-server")),
        text(SPARSERL_OPTION_CACHE_FOLDER, folder.to_str().unwrap()),
        number(SPARSERL_OPTION_DEVICE, if has_device { 0 } else { -1 }),
    ];
    let mut context = ptr::null_mut();
    with_options(&settings, |options| {
        // SAFETY: there is a place for a handle.
        ok(unsafe { sparserl_context_create(options, &raw mut context) });
    });
    context
}

fn close(context: *mut sparserl_context) {
    // SAFETY: it is a handle.
    ok(unsafe { sparserl_context_destroy(context) });
}

/// How many kernels were compiled ahead.
fn compile(context: *mut sparserl_context, (dtype, settings): &(Dtype, Vec<Setting>)) -> usize {
    let mut kernels = -1;
    with_options(settings, |options| {
        let dtype = value_type(*dtype);
        // SAFETY: the others are handles, and there is a place for a number.
        ok(unsafe { sparserl_compile_ahead(context, dtype, options, &raw mut kernels) });
    });
    kernels.try_into().unwrap()
}

/// A matrix with 32- or 64-bit offsets.
fn copied<T: Scalar>(
    context: *mut sparserl_context,
    matrix: &Csr<f64>,
    is_wide: bool,
) -> *mut sparserl_matrix {
    let matrix = matrix.cast::<T>().unwrap();
    let view = matrix.view();
    let wide: Vec<i64> = (0..=view.rows()).map(|row| view.offsets().at(row) as i64).collect();
    let narrow: Vec<i32> = wide.iter().map(|&offset| offset as i32).collect();
    let csr = sparserl_csr {
        rows: view.rows() as i64,
        cols: view.cols() as i64,
        nnz: view.nnz() as i64,
        row_offsets: if is_wide { wide.as_ptr().cast() } else { narrow.as_ptr().cast() },
        column_indices: view.columns().as_ptr().cast(),
        values: view.values().as_ptr().cast(),
        offset_type: if is_wide { SPARSERL_I64 } else { SPARSERL_I32 },
        index_type: SPARSERL_I32,
        value_type: value_type(T::DTYPE),
        index_base: 0,
        location: SPARSERL_HOST,
        reserved: [0; 3],
    };
    let mut made = ptr::null_mut();
    // SAFETY: the arrays are what the structure says, and there is a place for a handle.
    ok(unsafe { sparserl_matrix_create(context, &raw const csr, &raw mut made) });
    made
}

/// The programs of plans for all matrices, which had no compiler to wait for.
fn plans(folder: &Path, has_device: bool) -> BTreeSet<String> {
    let mut programs = BTreeSet::new();
    let context = open(folder, has_device);
    // The first with another driver asks which compiler there is for it.
    noted();
    for (dtype, mut settings) in cases() {
        settings.push((SPARSERL_OPTION_EXPECTED_CALLS, 0_u64.to_ne_bytes().to_vec()));
        for (index, matrix) in matrices().iter().enumerate() {
            let matrix = with_scalar!(dtype, T => copied::<T>(context, matrix, index % 2 == 0));
            let mut plan = ptr::null_mut();
            with_options(&settings, |options| {
                // SAFETY: the others are handles, and there is a place for this one.
                ok(unsafe { sparserl_plan_create(context, matrix, options, &raw mut plan) });
            });
            programs.insert(program(plan));
            // SAFETY: it is a handle.
            ok(unsafe { sparserl_plan_destroy(plan) });
            // SAFETY: it is a handle.
            ok(unsafe { sparserl_matrix_destroy(matrix) });
        }
    }
    close(context);
    assert_eq!(noted(), [""; 0]);
    programs
}

fn program(plan: *mut sparserl_plan) -> String {
    let (mut buffer, mut length) = (vec![0_u8; 1_000], 0);
    let (place, size) = (buffer.as_mut_ptr().cast(), buffer.len());
    let (op, key) = (SPARSERL_OP_NONE, SPARSERL_TEXT_PROGRAM);
    // SAFETY: it is a handle, and there is so much room.
    ok(unsafe { sparserl_plan_text(plan, op, key, place, size, &raw mut length) });
    buffer.truncate(length);
    String::from_utf8(buffer).unwrap()
}

/// Kernels in a cache folder.
fn kept(folder: &Path) -> usize {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().map_while(Result::ok);
    let folders = entries(folder).map(|entry| entry.path());
    let files = folders.flat_map(|folder| entries(&folder)).map(|entry| entry.path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "cubin")).count()
}

#[test]
fn no_plan_waits_for_a_compiler() {
    log::set_logger(&Noting).unwrap();
    log::set_max_level(LevelFilter::Debug);
    // This process, once more, with a driver.
    if let Some(folder) = env::var_os(FOLDER) {
        plans(Path::new(&folder), true);
        return;
    }
    let folder = TempDir::new().unwrap();
    let cache = folder.path().join("cache");
    let context = open(&cache, false);
    let mut kernels = 0;
    for case in cases() {
        let count = compile(context, &case);
        assert!(count >= 28, "{case:?}: {count}");
        kernels += count;
        assert_eq!(kept(&cache), kernels, "{case:?}");
    }
    assert!(!noted().is_empty());
    close(context);

    let context = open(&cache, false);
    assert_eq!(cases().iter().map(|case| compile(context, case)).sum::<usize>(), kernels);
    close(context);
    assert_eq!(noted(), [""; 0]);

    let programs = plans(&cache, false);
    assert!(programs.len() >= 30, "{programs:?}");
    for layout in [" csr ", " merge "] {
        assert!(programs.iter().any(|program| program.contains(layout)), "{programs:?}");
    }

    Build::new(&Compiler::first(Language::C), "tests/c/driver.c").into_driver(folder.path());
    let mut again = Command::new(env::current_exe().unwrap());
    again.args(["--exact", "no_plan_waits_for_a_compiler", "--nocapture"]);
    build::run(again.env(FOLDER, &cache).env("LD_LIBRARY_PATH", folder.path()));
    assert_eq!(kept(&cache), kernels);

    a_foreign_epilogue_is_tried_by_itself(&cache);
    compiling_ends_with_its_context(&folder.path().join("other"));
    what_cannot_be_kept_is_no_success();
}

/// At places of a result of its size, for which it is compiled: all else was done ahead.
fn a_foreign_epilogue_is_tried_by_itself(cache: &Path) {
    let epilogue = "__device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, \
                    const User& user) { return 2 * product + old; }";
    let settings = vec![text(SPARSERL_OPTION_EPILOGUE_SOURCE, epilogue)];
    let context = open(cache, false);
    compile(context, &(Dtype::F64, settings.clone()));
    close(context);
    noted();
    let context = open(cache, false);
    // The second has the same size.
    for (rows, trials) in [(500, 1), (500, 0), (501, 1)] {
        let matrix = calls::matrix_of(context, rows, 1.0);
        let mut plan = ptr::null_mut();
        let calls = (SPARSERL_OPTION_EXPECTED_CALLS, vec![0; 8]);
        with_options(&[settings.as_slice(), &[calls]].concat(), |options| {
            // SAFETY: the others are handles, and there is a place for this one.
            ok(unsafe { sparserl_plan_create(context, matrix, options, &raw mut plan) });
        });
        // SAFETY: it is a handle.
        ok(unsafe { sparserl_plan_destroy(plan) });
        // SAFETY: it is a handle.
        ok(unsafe { sparserl_matrix_destroy(matrix) });
        let noted: Vec<String> =
            noted().into_iter().filter(|line| !line.starts_with("process ")).collect();
        assert_eq!(noted.len(), trials, "{noted:?}");
        let is_by_itself = |line: &String| line.starts_with("trying the epilogue by itself");
        assert!(noted.iter().all(is_by_itself), "{noted:?}");
    }
    close(context);
}

/// Whoever destroys a context need not wait until all is compiled.
fn compiling_ends_with_its_context(cache: &Path) {
    let context = open(cache, false);
    let number = context as usize;
    let compiling = thread::spawn(move || {
        let (context, mut kernels) = (number as *mut sparserl_context, 7);
        let (f64, none) = (SPARSERL_F64, ptr::null());
        // SAFETY: whatever is no handle is refused, and there is a place for a number.
        (unsafe { sparserl_compile_ahead(context, f64, none, &raw mut kernels) }, kernels)
    });
    while kept(cache) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    close(context);
    assert_eq!(compiling.join().unwrap(), (SPARSERL_INVALID_HANDLE, 7));
    assert!(kept(cache) < 72);
}

/// Without a folder that can be written, nothing would be there for plans.
fn what_cannot_be_kept_is_no_success() {
    let context = open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml/cache"), false);
    let mut kernels = 7;
    let (f64, none) = (SPARSERL_F64, ptr::null());
    // SAFETY: it is a handle, and there is a place for a number.
    let status = unsafe { sparserl_compile_ahead(context, f64, none, &raw mut kernels) };
    assert_eq!((status, kernels), (SPARSERL_FILE, 7));
    close(context);
}
