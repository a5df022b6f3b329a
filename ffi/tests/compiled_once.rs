//! What a search has judged is what a plan uses: no source is compiled twice, and none in vain.

#![allow(clippy::unwrap_used, reason = "test code")]

mod calls;

use std::collections::BTreeMap;
use std::path::Path;
use std::ptr;
use std::sync::Mutex;

use calls::{Setting, matrix, number, ok, text, with_options};
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
    // Each side with its own only: both have one, or one of them has none.
    let of_sides = |of_a, of_transpose| {
        [
            number(SPARSERL_OPTION_TRANSPOSE_TOO, 1),
            text(SPARSERL_OPTION_EPILOGUE, of_a),
            text(SPARSERL_OPTION_TRANSPOSED_EPILOGUE, of_transpose),
        ]
    };
    for (of_a, of_transpose, kernels) in
        [("relu", "clamp", 4), ("relu", "none", 6), ("none", "relu", 6)]
    {
        let settings = of_sides(of_a, of_transpose);
        assert_eq!(compiled(context, matrix, &settings, 1), kernels, "{of_a}, {of_transpose}");
    }
    // Each for leading dimensions, too: for rows aligned to vectors, and to elements.
    let columns = (SPARSERL_OPTION_COLUMNS, 8_u64.to_ne_bytes().to_vec());
    let strided = [columns, number(SPARSERL_OPTION_DENSE, SPARSERL_DENSE_STRIDED)];
    assert_eq!(compiled(context, matrix, &strided, 1), 8);

    // SAFETY: they are handles.
    ok(unsafe { sparserl_matrix_destroy(matrix) });
    // SAFETY: it is a handle.
    ok(unsafe { sparserl_context_destroy(context) });
}
