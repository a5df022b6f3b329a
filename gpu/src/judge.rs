//! Judging kernels on a device: are they right, and how fast are they?
//!
//! ```text
//! Problem (matrix, operands) ─┐
//! Executable ─► LoadedKernel ─┴─► verify ─► timing ─► Timing of each, in turn with the baselines
//!                                   │
//!                                Oracle (independent product on the device, digests of memory)
//! ```
//!
//! This runs in a process of its own, which a kernel may take down: see
//! [`worker`](crate::worker).
//!
//! The [`Oracle`] is what results are compared with. It computes the reference product on the
//! device, so that every check can have inputs of its own at hardly any cost; before it is used for
//! a matrix, it is itself compared with the reference on the host.

mod audit;
mod checks;
mod loaded;
mod oracle;
mod problem;
mod speed;
mod timing;
mod verify;

pub(crate) use audit::Audit;
pub(crate) use checks::{Before, Check, DISPLACEMENT, Factor, Input, Placement};
pub(crate) use loaded::{Holdings, LoadedKernel};
pub(crate) use oracle::{ORACLE_KERNEL, ORACLE_SOURCE, Oracle, Thinning};
pub(crate) use problem::{Operands, Problem, ProblemError, thinning};
pub(crate) use speed::too_fast;
pub(crate) use timing::{Contender, Rounds, Stopwatch};
pub(crate) use verify::{Verified, bounded, keeps_state, verify, wrong};

use sparserl_core::outcome::{Outcome, Violation};

use crate::run::device::{DeviceError, LaunchError};

/// A kernel is not judged any further.
#[derive(Debug)]
pub(crate) enum Stop {
    /// What became of it.
    Outcome(Outcome),
    /// Nothing is known of it: what is broken is not the kernel.
    Broken(DeviceError),
}

/// Whether a kernel that ended so may have left the memory of its process in disorder.
pub(crate) fn leaves_disorder(outcome: &Outcome) -> bool {
    use Violation::{InputChanged, WroteOutside};
    match outcome {
        Outcome::Faulted { .. } => true,
        Outcome::WrongResult { violation, .. } => {
            matches!(violation, InputChanged | WroteOutside)
        }
        _ => false,
    }
}

impl From<DeviceError> for Stop {
    fn from(error: DeviceError) -> Self {
        Self::Broken(error)
    }
}

impl Stop {
    /// What a failed launch of the judged kernel means.
    pub(crate) fn of_launch(error: LaunchError) -> Self {
        match error {
            LaunchError::Device(error) => Self::Broken(error),
            LaunchError::Faulted { .. } => {
                Self::Outcome(Outcome::Faulted { reason: error.to_string() })
            }
            LaunchError::Arguments { .. }
            | LaunchError::ForeignBuffer { .. }
            | LaunchError::Refused { .. } => {
                Self::Outcome(Outcome::LaunchFailed { reason: error.to_string() })
            }
        }
    }

    /// What an error means that the device reports after the judged kernel was launched.
    pub(crate) fn after_launch(error: DeviceError) -> Self {
        match error {
            DeviceError::Driver { failure, .. } => {
                Self::Outcome(Outcome::Faulted { reason: failure.to_string() })
            }
            other => Self::Broken(other),
        }
    }
}
