//! What a search has judged is what a plan uses: no source is compiled twice, and none in vain.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::path::Path;
use std::ptr;
use std::sync::Mutex;

use log::{LevelFilter, Log, Metadata, Record};
use sparserl::api::*;

/// What compilers were given, by the names that the library's log has for it, and how often.
static COMPILED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Counts what is compiled.
struct Counting;

impl Log for Counting {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        // The name of a kernel has the hash of its source.
        if let Some(kernel) = record.args().to_string().strip_prefix("compiling ") {
            *COMPILED.lock().unwrap().entry(kernel.to_owned()).or_default() += 1;
        }
    }

    fn flush(&self) {}
}

#[track_caller]
fn ok(status: sparserl_status) {
    // SAFETY: the text is a C string, and no other call of this thread fails meanwhile.
    let error = unsafe { CStr::from_ptr(sparserl_last_error()) };
    assert_eq!(status, SPARSERL_SUCCESS, "{error:?}");
}

/// An option and the bytes of its value.
type Setting = (i32, Vec<u8>);

fn with_options<R>(settings: &[Setting], use_them: impl FnOnce(*mut sparserl_options) -> R) -> R {
    let mut options = ptr::null_mut();
    // SAFETY: it is a place for a handle.
    ok(unsafe { sparserl_options_create(&raw mut options) });
    for (option, value) in settings {
        // SAFETY: so many bytes are there.
        ok(unsafe { sparserl_options_set(options, *option, value.as_ptr().cast(), value.len()) });
    }
    let used = use_them(options);
    // SAFETY: it is a handle.
    ok(unsafe { sparserl_options_destroy(options) });
    used
}

/// A tridiagonal matrix.
fn matrix(context: *mut sparserl_context) -> *mut sparserl_matrix {
    const ROWS: i32 = 500;
    let (mut offsets, mut columns) = (vec![0], Vec::new());
    for row in 0..ROWS {
        columns.extend((row - 1).max(0)..(row + 2).min(ROWS));
        offsets.push(columns.len() as i32);
    }
    let values = vec![1.0_f64; columns.len()];
    let csr = sparserl_csr {
        rows: ROWS.into(),
        cols: ROWS.into(),
        nnz: columns.len() as i64,
        row_offsets: offsets.as_ptr().cast(),
        column_indices: columns.as_ptr().cast(),
        values: values.as_ptr().cast(),
        offset_type: SPARSERL_I32,
        index_type: SPARSERL_I32,
        value_type: SPARSERL_F64,
        index_base: 0,
        location: SPARSERL_HOST,
        reserved: [0; 3],
    };
    let mut matrix = ptr::null_mut();
    // SAFETY: the arrays are what the structure says, and there is a place for a handle.
    ok(unsafe { sparserl_matrix_create(context, &raw const csr, &raw mut matrix) });
    matrix
}

/// How many sources are compiled for a plan, each once for each side of the plan.
fn compiled(
    context: *mut sparserl_context,
    matrix: *mut sparserl_matrix,
    settings: &[Setting],
    sides: usize,
) -> usize {
    COMPILED.lock().unwrap().clear();
    let mut plan = ptr::null_mut();
    with_options(settings, |options| {
        // SAFETY: the others are handles, and there is a place for this one.
        ok(unsafe { sparserl_plan_create(context, matrix, options, &raw mut plan) });
    });
    // SAFETY: it is a handle.
    ok(unsafe { sparserl_plan_destroy(plan) });
    let compiled = COMPILED.lock().unwrap();
    assert!(compiled.values().all(|&times| times == sides), "{compiled:?}");
    compiled.len()
}

/// Without a GPU, so that candidates are judged by emulation.
#[test]
fn what_is_judged_is_what_is_used() {
    log::set_logger(&Counting).unwrap();
    log::set_max_level(LevelFilter::Debug);
    let text = |option, text: &str| (option, text.as_bytes().to_owned());
    let number = |option, number: i32| (option, number.to_ne_bytes().to_vec());
    // Nothing can be kept below a file: whatever is compiled twice is seen twice.
    let no_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml/cache");
    let settings = [
        number(SPARSERL_OPTION_DEVICE, -1),
        text(SPARSERL_OPTION_POLICY, "cost"),
        text(SPARSERL_OPTION_SERVER, env!("CARGO_BIN_EXE_sparserl-server")),
        text(SPARSERL_OPTION_CACHE_FOLDER, no_folder.to_str().unwrap()),
    ];
    let mut context = ptr::null_mut();
    with_options(&settings, |options| {
        // SAFETY: there is a place for a handle.
        ok(unsafe { sparserl_context_create(options, &raw mut context) });
    });
    let matrix = matrix(context);

    // Plain CSR and what is better, each for y in its own place and for y elsewhere.
    assert_eq!(compiled(context, matrix, &[], 1), 4);
    // The transpose is the same matrix here, and has the same kernels.
    let with_transpose = [number(SPARSERL_OPTION_TRANSPOSE_TOO, 1)];
    assert_eq!(compiled(context, matrix, &with_transpose, 2), 4);
    // Each with its epilogue only.
    assert_eq!(compiled(context, matrix, &[text(SPARSERL_OPTION_EPILOGUE, "relu")], 1), 2);
    // Each for leading dimensions, too: for rows aligned to vectors, and to elements.
    let columns = (SPARSERL_OPTION_COLUMNS, 8_u64.to_ne_bytes().to_vec());
    let strided = [columns, number(SPARSERL_OPTION_DENSE, SPARSERL_DENSE_STRIDED)];
    assert_eq!(compiled(context, matrix, &strided, 1), 8);

    // SAFETY: they are handles.
    ok(unsafe { sparserl_matrix_destroy(matrix) });
    // SAFETY: it is a handle.
    ok(unsafe { sparserl_context_destroy(context) });
}
