//! Epilogues: those that are ready, and those that callers write.

use std::ffi::c_void;

use sparserl_core::codegen::{Epilogue, UserField, UserKind};
use sparserl_core::task::{Operation, Task};
use sparserl_gpu::run::device::Device;

use crate::matrix::check_memory;
use crate::op::Op;
use crate::operands::check_alignment;
use crate::options::{
    EPILOGUE, EpilogueKeys, EpilogueOptions, Key, PlanOptions, TRANSPOSED_EPILOGUE,
};
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

/// Says that there is no epilogue: Aᵀ has that of A unless something is said of it.
const NONE: &str = "none";

/// The epilogues that a plan is to have: of products with A, and with Aᵀ.
pub(crate) struct Epilogues {
    forward: Option<Epilogue>,
    backward: Option<Epilogue>,
}

impl Epilogues {
    /// Those that options ask for. Products with Aᵀ have that of A, unless any option is for them
    /// alone.
    pub(crate) fn of(options: &PlanOptions, operation: Operation) -> Result<Self, Failure> {
        let forward = asked(&options.epilogue, &EPILOGUE, operation)?;
        let own = &options.transposed_epilogue;
        let backward = match own.first_set(&TRANSPOSED_EPILOGUE) {
            Some(_) => asked(own, &TRANSPOSED_EPILOGUE, operation)?,
            None => forward.clone(),
        };
        Ok(Self { forward, backward })
    }

    /// That of products with op(A), if any.
    pub(crate) fn side(&self, op: Op) -> Option<&Epilogue> {
        match op {
            Op::None => self.forward.as_ref(),
            Op::Transpose => self.backward.as_ref(),
        }
    }

    /// Those that differ, with the side whose kernels are the first to have them.
    pub(crate) fn distinct(&self) -> impl Iterator<Item = (Op, Option<&Epilogue>)> {
        let backward = (self.backward != self.forward).then_some(Op::Transpose);
        [Op::None].into_iter().chain(backward).map(|op| (op, self.side(op)))
    }
}

/// The epilogue that some options ask for, if any.
fn asked(
    options: &EpilogueOptions,
    keys: &EpilogueKeys,
    operation: Operation,
) -> Result<Option<Epilogue>, Failure> {
    let [name_key, source_key, user_key] = [keys.name, keys.source, keys.user].map(Key::name);
    match (&options.name, &options.source, &options.user) {
        (Some(_), Some(_), _) => {
            Err(Failure::argument(format_args!("{name_key} and {source_key} exclude each other")))
        }
        (None, None, Some(_)) => {
            Err(Failure::argument(format_args!("{user_key} is of no use without {source_key}")))
        }
        (None, None, None) => Ok(None),
        (Some(name), None, user) => {
            let named = named(name, name_key, operation)?;
            match user {
                Some(_) => Err(Failure::argument(format_args!(
                    "the values that {name_key} {name} takes are known: leave out {user_key}"
                ))),
                None => Ok(named),
            }
        }
        (None, Some(text), user) => {
            let user = UserField::parse_all(user.as_deref().unwrap_or_default());
            let refused = |error| Failure::argument(format_args!("{user_key}: {error}"));
            Ok(Some(Epilogue { text: text.clone(), user: user.map_err(refused)? }))
        }
    }
}

/// The epilogue of a name that an option has: one that is ready, or none.
fn named(name: &str, key: &str, operation: Operation) -> Result<Option<Epilogue>, Failure> {
    let found = READY.into_iter().find(|&(ready, ..)| ready == name);
    match found {
        Some((COLUMN_BIAS, ..)) if operation == Operation::SpMV => Err(Failure::argument(
            format_args!("{key} {name} is for matrices: set SPARSERL_OPTION_COLUMNS"),
        )),
        Some((_, user, body)) => ready(user, body, operation).map(Some),
        None if name == NONE => Ok(None),
        None => {
            let names = READY.map(|(name, ..)| name).join(", ");
            Err(Failure::argument(format_args!("{key} is {name}: expected one of {names}, {NONE}")))
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ready_one(name: &str) -> EpilogueOptions {
        EpilogueOptions { name: Some(name.to_owned()), ..EpilogueOptions::default() }
    }

    /// The names of the epilogues of A and of its transpose, and how many kinds of kernels that is.
    fn of(
        epilogue: &EpilogueOptions,
        transposed: &EpilogueOptions,
    ) -> ([Option<&'static str>; 2], usize) {
        let (epilogue, transposed_epilogue) = (epilogue.clone(), transposed.clone());
        let options = PlanOptions { epilogue, transposed_epilogue, ..PlanOptions::default() };
        let epilogues = Epilogues::of(&options, Operation::SpMV).unwrap();
        let name = |op| Some(ready_name(epilogues.side(op)?, Operation::SpMV).unwrap());
        ([Op::None, Op::Transpose].map(name), epilogues.distinct().count())
    }

    #[test]
    fn the_transpose_has_the_epilogue_of_the_matrix_unless_it_is_told_another() {
        let unset = EpilogueOptions::default();
        let [relu, bias, none] = ["relu", "bias", "none"].map(ready_one);
        assert_eq!(of(&unset, &unset), ([None, None], 1));
        assert_eq!(of(&relu, &unset), ([Some("relu"); 2], 1));
        assert_eq!(of(&relu, &relu), ([Some("relu"); 2], 1));
        assert_eq!(of(&relu, &bias), ([Some("relu"), Some("bias")], 2));
        assert_eq!(of(&relu, &none), ([Some("relu"), None], 2));
        assert_eq!(of(&unset, &relu), ([None, Some("relu")], 2));
        assert_eq!(of(&none, &relu), ([None, Some("relu")], 2));
        assert_eq!(of(&none, &unset), ([None, None], 1));
        assert_eq!(of(&unset, &none), ([None, None], 1));
    }
}
