//! A line for each plan when the program ends, where the user asks for it.

use std::env;
use std::ffi::c_int;
use std::io::{Write as _, stderr};
use std::panic::catch_unwind;
use std::sync::{Mutex, Once, PoisonError};

use crate::plan::{PLANS, Plan};

/// Asks for it when it is 1.
const VARIABLE: &str = "SPARSERL_VERBOSE";

/// Lines of plans that were destroyed.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" {
    fn atexit(function: extern "C" fn()) -> c_int;
}

fn is_on() -> bool {
    env::var_os(VARIABLE).is_some_and(|value| value == "1")
}

/// A plan was made.
pub(crate) fn note() {
    static REGISTERED: Once = Once::new();
    if is_on() {
        REGISTERED.call_once(|| {
            // SAFETY: the function takes nothing, returns, and lets no panic out. Where the system
            // has no room for it, nothing is said.
            let _ = unsafe { atexit(say) };
        });
    }
}

/// A plan is destroyed.
pub(crate) fn remember(plan: &Plan) {
    if is_on() {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(plan.summary());
    }
}

extern "C" fn say() {
    let _ = catch_unwind(|| {
        let mut lines = std::mem::take(&mut *LINES.lock().unwrap_or_else(PoisonError::into_inner));
        lines.extend(PLANS.all().iter().map(|plan| plan.summary()));
        for line in lines {
            // Nobody is left to be told that it failed.
            let _ = writeln!(stderr(), "{line}");
        }
    });
}
