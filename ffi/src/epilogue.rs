//! Epilogues: those that are ready, and those that callers write.

use sparserl_core::codegen::{Epilogue, UserField};

use crate::options::PlanOptions;
use crate::status::Failure;

/// A name, the caller's values, and what is returned. What is no number stays none.
const READY: [(&str, &str, &str); 4] = [
    ("relu", "", "product + old < 0 ? Scalar(0) : product + old"),
    ("bias", "const Scalar bias[rows]", "product + old + user.bias[row]"),
    (
        "clamp",
        "const Scalar lower[rows]; const Scalar upper[rows]",
        "between(product + old, user.lower[row], user.upper[row])",
    ),
    (
        "axpy",
        "const Scalar vector[rows]; Scalar factor",
        "fma(user.factor, user.vector[row], product + old)",
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
            let Some((_, user, result)) = READY.into_iter().find(|(ready, ..)| ready == name)
            else {
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
                "__device__ Scalar between(Scalar a, Scalar lower, Scalar upper) {{\n  return a < \
                 lower ? lower : a > upper ? upper : a;\n}}\n\n__device__ Scalar epilogue(unsigned row, Scalar product, Scalar old, const User& \
                 user) {{\n  return {result};\n}}"
            );
            (text, user.to_owned())
        }
        (None, Some(text)) => (text.clone(), options.epilogue_user.clone().unwrap_or_default()),
    };
    let user = UserField::parse_all(&user).map_err(Failure::argument)?;
    Ok(Some(Epilogue { text, user }))
}
