//! Epilogues: those that are ready, and those that callers write.

use sparserl_core::codegen::{Epilogue, UserField};
use sparserl_core::task::Operation;

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
        "dot",
        "const Dense vector[rows][N]; Scalar partials[rows][N]",
        "const Scalar v = product + old;\n  \
         user.partials[at] = v * Scalar(user.vector[at]);\n  return v;",
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
            let user = UserField::parse_all(user).map_err(Failure::argument)?;
            return Ok(Some(Epilogue::of_body(body, user, operation)));
        }
        (None, Some(text)) => (text.clone(), options.epilogue_user.clone().unwrap_or_default()),
    };
    let user = UserField::parse_all(&user).map_err(Failure::argument)?;
    Ok(Some(Epilogue { text, user }))
}
