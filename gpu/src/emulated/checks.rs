//! Launches of a kernel in the emulator, each compared with the reference.
//!
//! | check | before | shows |
//! |---|---|---|
//! | fresh | output never written | elements that are not written, or made from old ones |
//! | added | output random, α and β random | β, and reading the output |
//! | thinned | output never written; most of the input is 0 | entries left out of long rows, which the error bound would cover |
//!
//! Each has fresh inputs. The workspace is carried from launch to launch, as a caller does; its counters have to be zero
//! again after each.

use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Outcome, Verification, Violation};
use sparserl_core::reference::{self, Comparison, Reference};
use sparserl_core::task::Operation;
use sparserl_emulator::code::Kernel;
use sparserl_emulator::launch::{Argument, Launch, LaunchError, Options, Report, run};
use sparserl_emulator::memory::{BufferId, Memory};

use super::{EmulationOptions, EmulatorError, Judgement, verdict};
use crate::candidate::executable::{Parameter, Prepared};
use crate::judge::{Thinning, thinning};

/// Most elements of a dense operand: 2 GiB in double precision.
const MOST_ELEMENTS: usize = 1 << 28;

/// What inputs begin with. The same kernel is judged the same in every run.
const FIRST_INPUT: u64 = 0x5EED;

/// What an output holds before a check, and so what the check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    Fresh,
    Added,
    Thinned,
}

impl Check {
    const ALL: [Self; 3] = [Self::Fresh, Self::Added, Self::Thinned];

    fn name(self) -> &'static str {
        match self {
            Self::Fresh => "on fresh inputs",
            Self::Added => "adding to an output",
            Self::Thinned => "on an input that is mostly 0",
        }
    }
}

/// A kernel and what it is tried on.
pub(super) struct Trial<'a, T> {
    kernel: &'a Kernel,
    prepared: &'a Prepared,
    matrix: CsrView<'a, T>,
    /// Columns of the dense operands.
    width: usize,
    thinning: Thinning,
}

/// The dense operands of a check.
struct Operands<T> {
    input: Vec<T>,
    /// What the output holds before; not used when β is 0.
    initial: Vec<T>,
    alpha: T,
    beta: T,
}

/// What a launch left.
struct Launched<T> {
    report: Report,
    output: Vec<T>,
    workspace: Vec<Vec<u8>>,
}

impl<'a, T: Scalar> Trial<'a, T> {
    pub(super) fn new(
        kernel: &'a Kernel,
        prepared: &'a Prepared,
        matrix: CsrView<'a, T>,
        operation: Operation,
    ) -> Result<Self, EmulatorError> {
        let width = operation.columns() as usize;
        for rows in [matrix.rows(), matrix.cols()] {
            if rows.checked_mul(width).is_none_or(|elements| elements > MOST_ELEMENTS) {
                return Err(EmulatorError::TooLarge { rows, columns: width });
            }
        }
        Ok(Self { kernel, prepared, matrix, width, thinning: thinning(matrix) })
    }

    /// Checks the kernel until something is wrong.
    pub(super) fn judge(&self, options: &EmulationOptions) -> Result<Judgement, EmulatorError> {
        let mut random = fastrand::Rng::with_seed(FIRST_INPUT);
        let mut workspace = self.fresh_workspace();
        let mut verified = Verification { checks: 0, worst_ratio: 0.0 };
        let mut counters = None;
        let judgement = |outcome, findings, counters| Judgement {
            outcome,
            findings,
            counters,
            ptx_instructions: Some(self.kernel.code.len()),
        };
        for seed in 0..u64::from(options.seeds.max(1)) {
            let checks = Check::ALL.into_iter().cycle();
            for check in checks.take(options.checks.max(1) as usize) {
                let operands = self.operands(check, &mut random);
                let how = Options { seed, budget: options.budget };
                let launched = match self.launch(&operands, workspace, &how) {
                    Ok(launched) => launched,
                    Err(refusal) => {
                        let outcome = Outcome::LaunchFailed { reason: refusal.to_string() };
                        return Ok(judgement(outcome, Vec::new(), counters));
                    }
                };
                let counters = *counters.get_or_insert(launched.report.counters);
                if let Some(outcome) = verdict::of_findings(&launched.report.findings) {
                    return Ok(judgement(outcome, launched.report.findings, Some(counters)));
                }
                let reference = self.reference(&operands)?;
                let comparison = reference::compare(&reference, &launched.output);
                if comparison.unbounded > 0 {
                    let elements = comparison.unbounded;
                    return Err(EmulatorError::Range { elements, dtype: T::DTYPE });
                }
                let wrong = if comparison.passed() {
                    self.left_counting(&launched.workspace)
                } else {
                    Some(self.inexact(check, &operands, &reference, &launched.output, comparison))
                };
                if let Some(outcome) = wrong {
                    return Ok(judgement(outcome, Vec::new(), Some(counters)));
                }
                workspace = launched.workspace;
                verified.checks += 1;
                verified.worst_ratio = verified.worst_ratio.max(comparison.worst_ratio);
            }
        }
        Ok(judgement(Outcome::Verified(verified), Vec::new(), counters))
    }

    /// The memory of each parameter that is workspace, zero.
    fn fresh_workspace(&self) -> Vec<Vec<u8>> {
        let bytes = |parameter: &Parameter| match *parameter {
            Parameter::Workspace { bytes, .. } => usize::try_from(bytes).ok(),
            _ => None,
        };
        self.prepared.launch.parameters.iter().filter_map(bytes).map(|n| vec![0; n]).collect()
    }

    fn operands(&self, check: Check, random: &mut fastrand::Rng) -> Operands<T> {
        let takes = |parameter| self.prepared.launch.parameters.contains(&parameter);
        let alpha = match check {
            Check::Added | Check::Thinned if takes(Parameter::Alpha) => factor(random),
            _ => 1.0,
        };
        let beta = match check {
            Check::Added if takes(Parameter::Beta) => factor(random),
            _ => 0.0,
        };
        let mut input: Vec<T> = numbers(self.matrix.cols() * self.width, random);
        if check == Check::Thinned {
            let Thinning { kept, share } = self.thinning;
            for (row, elements) in (0..).zip(input.chunks_mut(self.width)) {
                if !kept.contains(&row) && random.f64() >= share {
                    elements.fill(T::from_f64(0.0));
                }
            }
        }
        let written = if beta == 0.0 { 0 } else { self.matrix.rows() * self.width };
        let initial = numbers(written, random);
        Operands { input, initial, alpha: T::from_f64(alpha), beta: T::from_f64(beta) }
    }

    fn launch(
        &self,
        operands: &Operands<T>,
        workspace: Vec<Vec<u8>>,
        how: &Options,
    ) -> Result<Launched<T>, LaunchError> {
        let Prepared { launch: planned, arrays, names } = self.prepared;
        let mut memory = Memory::new();
        let mut given = workspace.into_iter();
        let (mut outputs, mut working): (Vec<BufferId>, Vec<BufferId>) = (Vec::new(), Vec::new());
        let mut arguments = Vec::new();
        for (&parameter, name) in planned.parameters.iter().zip(names) {
            arguments.push(match parameter {
                Parameter::Input => {
                    let bytes = bytemuck::cast_slice(&operands.input);
                    Argument::Buffer(memory.read_only(name, bytes))
                }
                Parameter::Output => {
                    let buffer = if operands.beta.to_f64() == 0.0 {
                        let bytes = self.matrix.rows() * self.width * size_of::<T>();
                        memory.uninitialised(name, bytes)
                    } else {
                        memory.writable(name, bytemuck::cast_slice(&operands.initial))
                    };
                    outputs.push(buffer);
                    Argument::Buffer(buffer)
                }
                Parameter::Alpha => Argument::Value(bytemuck::bytes_of(&operands.alpha).to_vec()),
                Parameter::Beta => Argument::Value(bytemuck::bytes_of(&operands.beta).to_vec()),
                Parameter::Array(index) => {
                    let bytes = arrays.get(index).map_or(&[][..], |array| array.bytes());
                    Argument::Buffer(memory.read_only(name, bytes))
                }
                Parameter::Workspace { .. } => {
                    let buffer = memory.writable(name, &given.next().unwrap_or_default());
                    working.push(buffer);
                    Argument::Buffer(buffer)
                }
                Parameter::I32(value) => Argument::Value(value.to_le_bytes().to_vec()),
            });
        }
        let launch = Launch {
            grid: planned.geometry.grid,
            block: planned.geometry.block,
            dynamic_shared: planned.geometry.dynamic_shared,
            arguments,
        };
        let mut report = run(self.kernel, &launch, &mut memory, how)?;
        for source in report.findings.iter_mut().filter_map(|finding| finding.source.as_mut()) {
            // The compiler puts the current folder before the name that it was given, but no file is there.
            if let Some((_, name)) = source.file.rsplit_once('/') {
                source.file = name.to_owned();
            }
        }
        // Parsed signatures have one output.
        let output = outputs.first().map(|&output| memory.bytes(output)).unwrap_or_default();
        Ok(Launched {
            report,
            output: bytemuck::pod_collect_to_vec(&output),
            workspace: working.into_iter().map(|buffer| memory.bytes(buffer)).collect(),
        })
    }

    fn reference(&self, operands: &Operands<T>) -> Result<Reference, EmulatorError> {
        let Operands { input, initial, alpha, beta } = operands;
        Ok(reference::multiply(self.matrix, input, self.width, *alpha, *beta, initial)?)
    }

    /// What becomes of a kernel whose counters are not zero again.
    fn left_counting(&self, workspace: &[Vec<u8>]) -> Option<Outcome> {
        let parameters = self.prepared.launch.parameters.iter().zip(&self.prepared.names);
        let working = parameters.filter_map(|(parameter, name)| match parameter {
            Parameter::Workspace { counts, .. } => Some((*counts, name)),
            _ => None,
        });
        let mut left = working.zip(workspace);
        let ((_, name), _) =
            left.find(|((counts, _), bytes)| *counts && bytes.iter().any(|&byte| byte != 0))?;
        let reason = format!("the counters in {name} are not zero after a launch");
        Some(Outcome::WrongResult { violation: Violation::KeepsState, reason })
    }

    /// What a wrong result looks like.
    fn inexact(
        &self,
        check: Check,
        operands: &Operands<T>,
        reference: &Reference,
        output: &[T],
        comparison: Comparison,
    ) -> Outcome {
        let worst = comparison.worst_index.unwrap_or(0);
        let (row, column) = (worst / self.width, worst % self.width);
        let got = output.get(worst).map_or(f64::NAN, |got| got.to_f64());
        let expected = reference.values.get(worst).copied().unwrap_or(f64::NAN);
        let unwritten = if got.is_nan() { " (not written)" } else { "" };
        let reason = format!(
            "{} of {} elements are wrong {}, with alpha = {} and beta = {}; the worst is row {row}, column {column}: \
             {got:e}{unwritten} instead of {expected:e}, {:.3e} times its error bound off",
            comparison.violations,
            comparison.elements,
            check.name(),
            operands.alpha,
            operands.beta,
            comparison.worst_ratio
        );
        Outcome::WrongResult { violation: Violation::Inexact, reason }
    }
}

/// A factor of either sign, from 0.5 to 2 in size.
fn factor(random: &mut fastrand::Rng) -> f64 {
    let magnitude = 0.5 + 1.5 * random.f64();
    if random.bool() { magnitude } else { -magnitude }
}

/// Numbers in [−1, 1).
fn numbers<T: Scalar>(count: usize, random: &mut fastrand::Rng) -> Vec<T> {
    (0..count).map(|_| T::from_f64(2.0 * random.f64() - 1.0)).collect()
}
