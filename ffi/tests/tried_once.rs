//! An epilogue is tried once: plans of later contexts, and so of later processes, take what was
//! found out, as far as it can still be read and is about the same trial.

#![allow(clippy::unwrap_used, reason = "test code")]

mod calls;

use std::fs;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use calls::{Setting, matrix_of, number, ok, text, with_options};
use log::{LevelFilter, Log, Metadata, Record};
use sparserl::api::*;

/// How often something was emulated for an epilogue.
static TRIALS: AtomicUsize = AtomicUsize::new(0);

/// Counts trials.
struct Counting;

impl Log for Counting {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if record.args().to_string().starts_with("trying ") {
            TRIALS.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self) {}
}

/// An epilogue that adds a number.
fn adding(number: &str) -> String {
    format!(
        "__device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& user) \
         {{ return product + old + {number}; }}"
    )
}

/// What a plan is given for an epilogue.
fn of_epilogue(epilogue: &str) -> Vec<Setting> {
    vec![text(SPARSERL_OPTION_EPILOGUE_SOURCE, epilogue)]
}

/// What a plan is given for an epilogue of A and another one of its transpose.
fn of_sides(of_a: &str, of_transpose: &str) -> Vec<Setting> {
    let mut settings = of_epilogue(of_a);
    settings.push(number(SPARSERL_OPTION_TRANSPOSE_TOO, 1));
    settings.push(text(SPARSERL_OPTION_TRANSPOSED_EPILOGUE_SOURCE, of_transpose));
    settings
}

/// How many trials the plans for these epilogues take in a new context, with what it keeps in a
/// folder, and whether all of them were made.
fn trials(folder: &Path, epilogues: &[&str]) -> (usize, bool) {
    trials_for(folder, epilogues, (500, 1.0))
}

/// The same for a matrix of so many rows, whose entries are all this number.
fn trials_for(folder: &Path, epilogues: &[&str], matrix: (i32, f64)) -> (usize, bool) {
    let plans: Vec<_> = epilogues.iter().map(|epilogue| of_epilogue(epilogue)).collect();
    trials_of(folder, &plans, matrix)
}

/// The same for plans with these options.
fn trials_of(folder: &Path, plans: &[Vec<Setting>], (rows, entry): (i32, f64)) -> (usize, bool) {
    TRIALS.store(0, Ordering::Relaxed);
    let settings = [
        number(SPARSERL_OPTION_DEVICE, -1),
        text(SPARSERL_OPTION_POLICY, "cost"),
        text(SPARSERL_OPTION_SERVER, env!("CARGO_BIN_EXE_sparserl-server")),
        text(SPARSERL_OPTION_CACHE_FOLDER, folder.to_str().unwrap()),
    ];
    let mut context = ptr::null_mut();
    with_options(&settings, |options| {
        // SAFETY: there is a place for a handle.
        ok(unsafe { sparserl_context_create(options, &raw mut context) });
    });
    let matrix = matrix_of(context, rows, entry);
    let mut are_made = true;
    for settings in plans {
        let mut plan = ptr::null_mut();
        with_options(settings, |options| {
            // SAFETY: the others are handles, and there is a place for this one.
            let status = unsafe { sparserl_plan_create(context, matrix, options, &raw mut plan) };
            are_made &= status == SPARSERL_SUCCESS;
        });
        if !plan.is_null() {
            // SAFETY: it is a handle.
            ok(unsafe { sparserl_plan_destroy(plan) });
        }
    }
    // SAFETY: they are handles.
    ok(unsafe { sparserl_matrix_destroy(matrix) });
    // SAFETY: it is a handle.
    ok(unsafe { sparserl_context_destroy(context) });
    (TRIALS.load(Ordering::Relaxed), are_made)
}

/// Without a GPU, so that a plan has its better kernel when it is there.
#[test]
fn what_was_found_right_is_not_tried_again() {
    log::set_logger(&Counting).unwrap();
    log::set_max_level(LevelFilter::Debug);
    let folder = tempfile::tempdir().unwrap();
    let [one, other, wrong] = [adding("1"), adding("2"), adding("*(const double*)0")];
    // By itself, within plain CSR, and within what is better.
    assert_eq!(trials(folder.path(), &[&one, &one]), (3, true));
    assert_eq!(trials(folder.path(), &[&one, &one]), (0, true));
    assert_eq!(trials(folder.path(), &[&one, &other]), (3, true));

    // What is wrong is never kept.
    let before = kept(folder.path()).len();
    let (first, is_made) = trials(folder.path(), &[&wrong]);
    assert!(first > 0 && !is_made);
    assert_eq!(trials(folder.path(), &[&wrong]), (first, false));

    // What is damaged is tried again, and kept anew.
    let all = kept(folder.path());
    assert_eq!((before, all.len()), (6, 6));
    let entries = all.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
    fs::write(&all[0], &entries[0][1..]).unwrap();
    fs::copy(&all[2], &all[1]).unwrap();
    assert_eq!(trials(folder.path(), &[&one, &other]), (2, true));
    let again = kept(folder.path()).iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
    assert_eq!(again, entries);

    // Places all over the result depend on its size, and products on the entries.
    assert_eq!(trials_for(folder.path(), &[&one], (501, 1.0)), (3, true));
    assert_eq!(trials_for(folder.path(), &[&one], (500, 2.0)), (2, true));
    assert_eq!(trials_for(folder.path(), &[&one], (500, 2.0)), (0, true));

    // Each side's is tried, and what was found right on one is right on the other: the matrix is
    // its transpose.
    let folder = tempfile::tempdir().unwrap();
    let trials = |of_a: &str, of_transpose: &str| {
        trials_of(folder.path(), &[of_sides(of_a, of_transpose)], (500, 1.0))
    };
    assert_eq!(trials(&one, &other), (6, true));
    assert_eq!(trials(&one, &other), (0, true));
    assert_eq!(trials(&other, &one), (0, true));
    let (first, is_made) = trials(&one, &wrong);
    assert!(first > 0 && !is_made);
}

/// What is kept of trials.
fn kept(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("epilogues")).unwrap();
    let mut all: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}
