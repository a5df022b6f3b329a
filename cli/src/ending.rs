//! What the exit code says.

use std::process::ExitCode;

use sparserl_core::pipeline::NoneRight;

/// The kernel was found wrong, or none of those that were tried is right and one was found wrong.
const WRONG: u8 = 1;
/// It was not found out whether a kernel is right, or nothing could be made at all: a file cannot
/// be read, there is no GPU or no compiler. 2 is for command lines that are wrong.
pub(crate) const UNJUDGED: u8 = 3;

/// How a run without an error ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All was done that was asked for.
    Complete,
    /// A kernel was written that nobody has compiled or checked.
    Unjudged,
}

/// A kernel is wrong, and how, in one line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongKernel(pub(crate) String);

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Complete => Self::SUCCESS,
            Ending::Unjudged => Self::from(UNJUDGED),
        }
    }
}

/// The exit code for an error.
pub(crate) fn code(error: &anyhow::Error) -> ExitCode {
    let is_wrong = error.chain().any(|cause| {
        let none_right = cause.downcast_ref::<NoneRight>();
        cause.is::<WrongKernel>() || none_right.is_some_and(|none| none.is_wrong)
    });
    ExitCode::from(if is_wrong { WRONG } else { UNJUDGED })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use anyhow::{Context, anyhow};
    use sparserl_core::pipeline::PipelineError;

    use super::*;

    #[test]
    fn a_wrong_kernel_is_told_from_one_that_was_not_judged() {
        let wrong = || anyhow!(WrongKernel("k.cu: wrong".to_owned()));
        assert_eq!(code(&wrong()), ExitCode::from(1));
        assert_eq!(code(&wrong().context("a.mtx")), ExitCode::from(1));
        let unread: anyhow::Result<()> = Err(anyhow!("no such file")).context("k.cu");
        assert_eq!(code(&unread.unwrap_err()), ExitCode::from(3));
    }

    #[test]
    fn candidates_of_which_none_is_right_are_wrong_only_where_one_was_found_wrong() {
        type Error = PipelineError<Infallible, Infallible, NoneRight>;
        for (is_wrong, expected) in [(true, 1), (false, 3)] {
            let none = || NoneRight { tried: 8, first: "it faults".to_owned(), is_wrong };
            let searched = anyhow!(none());
            let measured = anyhow!(Error::NoneRight(none())).context("a.mtx");
            let emulated = anyhow!(Error::Check(none())).context("a.mtx");
            for error in [searched, measured, emulated] {
                assert_eq!(code(&error), ExitCode::from(expected), "{error:#}");
            }
        }
    }
}
