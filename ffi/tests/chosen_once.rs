//! What the policy has chosen for a pattern is remembered: plans of later contexts take it, as far
//! as it can still be read.

#![allow(clippy::unwrap_used, reason = "test code")]

mod calls;

use std::fs;
use std::path::Path;
use std::ptr;

use calls::{matrix, number, ok, text, with_options};
use sparserl::api::*;

/// The program of a plan that a new context makes, with what it keeps in a folder.
fn planned(folder: &Path) -> String {
    let settings = [
        number(SPARSERL_OPTION_DEVICE, -1),
        text(SPARSERL_OPTION_SERVER, env!("CARGO_BIN_EXE_sparserl-server")),
        text(SPARSERL_OPTION_CACHE_FOLDER, folder.to_str().unwrap()),
    ];
    let mut context = ptr::null_mut();
    with_options(&settings, |options| {
        // SAFETY: there is a place for a handle.
        ok(unsafe { sparserl_context_create(options, &raw mut context) });
    });
    let matrix = matrix(context);
    let mut plan = ptr::null_mut();
    // SAFETY: the others are handles, and there is a place for this one.
    ok(unsafe { sparserl_plan_create(context, matrix, ptr::null(), &raw mut plan) });
    let mut program = vec![0_u8; 1 << 12];
    let mut length = 0;
    // SAFETY: it is a handle, so many bytes are there, and there is a place for the length.
    ok(unsafe {
        sparserl_plan_text(
            plan,
            SPARSERL_OP_NONE,
            SPARSERL_TEXT_PROGRAM,
            program.as_mut_ptr().cast(),
            program.len(),
            &raw mut length,
        )
    });
    // SAFETY: they are handles.
    ok(unsafe { sparserl_plan_destroy(plan) });
    // SAFETY: it is a handle.
    ok(unsafe { sparserl_matrix_destroy(matrix) });
    // SAFETY: it is a handle.
    ok(unsafe { sparserl_context_destroy(context) });
    program.truncate(length);
    String::from_utf8(program).unwrap().trim_end_matches('\0').to_owned()
}

/// Without a GPU, so that what is chosen first is taken if emulation finds it right.
#[test]
fn later_plans_take_what_was_chosen_before() {
    let folder = tempfile::tempdir().unwrap();
    let first = planned(folder.path());
    let entries: Vec<_> = fs::read_dir(folder.path().join("choices")).unwrap().collect();
    let [Ok(entry)] = entries.as_slice() else { unreachable!("{entries:?}") };
    let kept = fs::read_to_string(entry.path()).unwrap();
    let mut choices: Vec<(String, f64)> = serde_json::from_str(&kept).unwrap();
    assert_eq!(choices[0].0, first);

    // What scores best is taken, whoever has written so.
    let [best, second, ..] = choices.as_mut_slice() else { unreachable!("{kept}") };
    std::mem::swap(&mut best.0, &mut second.0);
    fs::write(entry.path(), serde_json::to_string(&choices).unwrap()).unwrap();
    assert_eq!(planned(folder.path()), choices[0].0);
    // What cannot be read is chosen anew.
    fs::write(entry.path(), &kept[1..]).unwrap();
    assert_eq!(planned(folder.path()), first);
    assert_eq!(fs::read_to_string(entry.path()).unwrap(), kept);
}
