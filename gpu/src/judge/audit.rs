//! What launches must leave alone: everything but the output and the workspace.

use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Outcome, Violation};

use super::oracle::{Oracle, Region};
use super::problem::{Operands, Problem};
use super::{LoadedKernel, Stop};
use crate::run::device::{DeviceError, Stream};

/// What a region that must not change is to a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    Input,
    Array,
    /// A guard zone, or memory that the kernel was not given.
    Elsewhere,
}

impl Watched {
    /// What becomes of a kernel that changed it.
    pub(super) fn changed(self) -> Outcome {
        let (violation, reason) = match self {
            Self::Input => {
                (Violation::InputChanged, "it changed the dense input, which it may only read")
            }
            Self::Array => (
                Violation::InputChanged,
                "it changed an array of the matrix, which it may only read",
            ),
            Self::Elsewhere => {
                (Violation::WroteOutside, "it wrote outside of the buffers that it was given")
            }
        };
        Outcome::WrongResult { violation, reason: reason.to_owned() }
    }
}

/// All that launches of some kernels on `operands` must leave alone. A region may be there twice.
pub(super) fn watched<'k, A: Scalar, D: Scalar>(
    problem: &Problem<A, D>,
    operands: &Operands,
    kernels: impl Iterator<Item = &'k LoadedKernel>,
) -> Vec<(Watched, Region)> {
    let mut watched = vec![(Watched::Input, operands.input.whole())];
    for kernel in kernels {
        watched.extend(kernel.array_regions().map(|region| (Watched::Array, region)));
        watched.extend(kernel.workspace_guards().map(|region| (Watched::Elsewhere, region)));
    }
    let csr = &problem.csr;
    let others = problem.operands.iter().filter(|others| !std::ptr::eq(*others, operands));
    let others = others.flat_map(|others| [others.input.whole(), others.output.whole()]);
    let elsewhere = operands.output.guards().into_iter().chain(others).chain([
        problem.initial.whole(),
        csr.offsets.whole(),
        csr.columns.whole(),
        csr.values.whole(),
    ]);
    watched.extend(elsewhere.map(|region| (Watched::Elsewhere, region)));
    watched
}

/// Digests from before many launches.
pub(crate) struct Audit {
    watched: Vec<(Watched, Region)>,
    before: Vec<u64>,
}

impl Audit {
    /// Notes what there is before launches of some kernels on `operands`.
    pub(crate) fn begin<'k, A: Scalar, D: Scalar>(
        problem: &Problem<A, D>,
        stream: &Stream,
        oracle: &Oracle,
        operands: &Operands,
        kernels: impl Iterator<Item = &'k LoadedKernel>,
    ) -> Result<Self, DeviceError> {
        let watched = watched(problem, operands, kernels);
        let before = oracle.digest(stream, &regions(&watched))?;
        Ok(Self { watched, before })
    }

    /// Sees that it is still there.
    pub(crate) fn end(self, stream: &Stream, oracle: &Oracle) -> Result<(), Stop> {
        let after = oracle.digest(stream, &regions(&self.watched))?;
        let mut pairs = self.before.iter().zip(&after).zip(&self.watched);
        match pairs.find(|((before, after), _)| before != after) {
            Some((_, (watched, _))) => Err(Stop::Outcome(watched.changed())),
            None => Ok(()),
        }
    }
}

fn regions(watched: &[(Watched, Region)]) -> Vec<Region> {
    watched.iter().map(|&(_, region)| region).collect()
}
