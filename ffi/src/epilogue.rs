//! Epilogues: those that are ready, and those that callers write.

use sparserl_core::codegen::{Epilogue, UserField};

use crate::options::PlanOptions;
use crate::status::Failure;

/// A name, the caller's values, and what is done. What is no number stays none.
const READY: [(&str, &str, &str); 4] = [
    ("relu", "", "const Scalar v = product + old;\n  return v < 0 ? Scalar(0) : v;"),
    ("bias", "const Scalar bias[rows]", "return product + old + user.bias[row];"),
    (
        "clamp",
        "const Scalar lower[rows]; const Scalar upper[rows]",
        "const Scalar v = product + old, lower = user.lower[row], upper = user.upper[row];\n  \
         return v < lower ? lower : v > upper ? upper : v;",
    ),
    (
        "axpy",
        "const Scalar vector[rows]; Scalar factor",
        "return fma(user.factor, user.vector[row], product + old);",
    ),
];

/// The epilogue that a plan is to have, if any.
pub(crate) fn of(options: &PlanOptions) -> Result<Option<Epilogue>, Failure> {
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
            let text = format!(
                "__device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& \
                 user) {{\n  {body}\n}}"
            );
            (text, user.to_owned())
        }
        (None, Some(text)) => (text.clone(), options.epilogue_user.clone().unwrap_or_default()),
    };
    let user = UserField::parse_all(&user).map_err(Failure::argument)?;
    Ok(Some(Epilogue { text, user }))
}
