//! Epilogues: those that are ready, and those that callers write.

use std::ffi::c_void;

use sparserl_core::codegen::{Epilogue, UserField, UserKind};
use sparserl_core::task::{Operation, Task};
use sparserl_gpu::run::device::Device;

use crate::matrix::check_memory;
use crate::operands::check_alignment;
use crate::options::PlanOptions;
use crate::status::Failure;

/// A name, the caller's values, and what is done to element `at` of the result. What is no number
/// stays none.
const READY: [(&str, &str, &str); 6] = [
    ("relu", "", "const Scalar v = product + old;\n  return v < 0 ? Scalar(0) : v;"),
    ("bias", "const Dense bias[rows]", "return product + old + Scalar(user.bias[row]);"),
    (COLUMN_BIAS, "const Dense bias[N]", "return product + old + Scalar(user.bias[column]);"),
    (
        "clamp",
        "const Dense lower[rows][N]; const Dense upper[rows][N]",
        "const Scalar v = product + old, lower = user.lower[at], upper = user.upper[at];\n  \
         return v < lower ? lower : v > upper ? upper : v;",
    ),
    (
        "axpy",
        "const Dense vector[rows][N]; Scalar factor",
        "return fma(user.factor, Scalar(user.vector[at]), product + old);",
    ),
    (
        "dot_terms",
        "const Dense vector[rows][N]; Scalar terms[rows][N]",
        "const Scalar v = product + old;\n  \
         user.terms[at] = v * Scalar(user.vector[at]);\n  return v;",
    ),
];

/// The one that only matrices have.
const COLUMN_BIAS: &str = "column_bias";

/// The epilogue that a plan is to have, if any.
pub(crate) fn of(options: &PlanOptions, operation: Operation) -> Result<Option<Epilogue>, Failure> {
    let (text, user) = match (&options.epilogue, &options.epilogue_source) {
        (Some(_), Some(_)) => {
            return Err(Failure::argument(
                "SPARSERL_OPTION_EPILOGUE and SPARSERL_OPTION_EPILOGUE_SOURCE exclude each other",
            ));
        }
        (None, None) if options.epilogue_user.is_some() => {
            return Err(Failure::argument(
                "SPARSERL_OPTION_EPILOGUE_USER is of no use without SPARSERL_OPTION_EPILOGUE_SOURCE",
            ));
        }
        (None, None) => return Ok(None),
        (Some(name), None) => {
            let Some((_, user, body)) = READY.into_iter().find(|(ready, ..)| ready == name) else {
                let names = READY.map(|(name, ..)| name).join(", ");
                return Err(Failure::argument(format_args!(
                    "there is no epilogue {name}: expected one of {names}"
                )));
            };
            if options.epilogue_user.is_some() {
                return Err(Failure::argument(format_args!(
                    "the epilogue {name} declares its values itself: leave out \
                     SPARSERL_OPTION_EPILOGUE_USER"
                )));
            }
            if name == COLUMN_BIAS && operation == Operation::SpMV {
                return Err(Failure::argument(format_args!(
                    "the epilogue {name} is for matrices: set SPARSERL_OPTION_COLUMNS"
                )));
            }
            return ready(user, body, operation).map(Some);
        }
        (None, Some(text)) => (text.clone(), options.epilogue_user.clone().unwrap_or_default()),
    };
    let user = UserField::parse_all(&user).map_err(Failure::argument)?;
    Ok(Some(Epilogue { text, user }))
}

/// One that is ready, of its values and what is done.
fn ready(user: &str, body: &str, operation: Operation) -> Result<Epilogue, Failure> {
    let user = UserField::parse_all(user).map_err(Failure::argument)?;
    Ok(Epilogue::of_body(body, user, operation))
}

/// The name of an epilogue that is ready.
pub(crate) fn ready_name(epilogue: &Epilogue, operation: Operation) -> Option<&'static str> {
    let is_it = |user, body| ready(user, body, operation).is_ok_and(|ready| ready == *epilogue);
    READY.into_iter().find(|&(_, user, body)| is_it(user, body)).map(|(name, ..)| name)
}

/// Refuses arrays among the caller's values that kernels cannot use, for a product with op(A) of so
/// many rows and columns.
///
/// # Safety
/// `user` points to the values that the epilogue declares.
pub(crate) unsafe fn check_arrays(
    device: &Device,
    epilogue: &Epilogue,
    task: Task,
    (rows, cols): (usize, usize),
    user: *const c_void,
) -> Result<(), Failure> {
    let dense = task.precision.dense();
    for (UserField { name, kind }, offset) in epilogue.user.iter().zip(epilogue.user_offsets(dense))
    {
        let (UserKind::Input(array) | UserKind::Output(array)) = kind else { continue };
        let elements = array.extent.elements(rows, cols, task.operation.columns() as usize);
        // It may be NULL.
        if elements == 0 {
            continue;
        }
        // SAFETY: by the contract there is a pointer at this offset.
        let pointer = unsafe { user.byte_add(offset).cast::<*const c_void>().read_unaligned() };
        let what = format!("user.{name}");
        if pointer.is_null() {
            return Err(Failure::null(&what));
        }
        let size = array.element.dtype(dense).size();
        check_alignment(&what, pointer, size)?;
        check_memory(device, &what, pointer, elements.saturating_mul(size))?;
    }
    Ok(())
}
