//! Launches of a kernel in the emulator, each compared with the reference.
//!
//! The checks are those of [`Check`], from the first on, and then those that only emulators run:
//! `schedule` says which, `series` runs them and says what becomes of the kernel by each.
//! The workspace is carried from launch to launch, as a caller does; its counters have to be zero
//! again after each.

mod excerpt;
mod given;
mod repaired;
mod retraced;
mod schedule;
mod series;
mod strange;

use std::fmt::Display;
use std::marker::PhantomData;
use std::time::Instant;

use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Outcome, Violation};
use sparserl_core::reference::{self, Comparison, Reference};
use sparserl_core::task::Task;
use sparserl_emulator::code::Kernel;
use sparserl_emulator::launch::{Launch, LaunchError, Options, Report};
use sparserl_emulator::machine::run;
use sparserl_emulator::memory::{MOST_BYTES, Memory, Variables};

use super::mutants::Foreign;
use super::named_columns::{NamedColumns, words};
use super::{EmulationOptions, EmulatorError, Judgement, verdict};
use crate::candidate::executable::{Parameter, Prepared};
use crate::judge::{Before, Check, DISPLACEMENT, Input, Placement, Thinning, thinning};
use crate::run::device::Geometry;
use given::Given;
pub(super) use given::{fresh_workspace, give, launch_of};
use series::Series;

/// Most elements of a dense operand that are held: 2 GiB in double precision.
pub(super) const MOST_ELEMENTS: usize = 1 << 28;
/// Elements of an input that is held as a whole in any case.
const FEW_ELEMENTS: usize = 1 << 24;
/// Of an input with more, where the matrix names no more than one of so many rows, only these are.
const NAMED: usize = 8;

/// Error bounds that a result may be off to be compared with them.
const FAR_OFF: f64 = 1e9;

/// Warps that a launch may have: one takes microseconds, whatever it does.
pub(super) const MOST_WARPS: u64 = 1 << 22;
/// Of which there may be more than two launches.
const MANY_WARPS: u64 = 1 << 18;
/// Of which there may be twice as many.
const FEW_WARPS: u64 = 1 << 13;

/// A kernel and what it is tried on: a matrix of type `A`, dense operands of type `D`.
pub(super) struct Trial<'a, A, D> {
    kernel: &'a Kernel,
    prepared: &'a Prepared,
    /// Its columns are the rows of the input that are held.
    matrix: CsrView<'a, A>,
    /// Which these are, where not all are.
    named: Option<&'a NamedColumns<A>>,
    /// Columns of the dense operands.
    width: usize,
    thinning: Thinning,
    /// The kernel as it was written, where that was not here.
    foreign: Option<Foreign<'a>>,
    dense: PhantomData<D>,
}

/// The dense operands of a check.
struct Operands<D: Scalar> {
    input: Vec<D>,
    /// What the output holds before; absent where it was never written.
    initial: Option<Vec<D>>,
    alpha: D::Accumulator,
    beta: D::Accumulator,
    /// What rows of the input are that are not held, where these are no finite numbers.
    others: Option<D>,
    /// Bytes that they lie behind the begin of an allocation.
    displacement: u64,
}

impl<D: Scalar> Operands<D> {
    /// Whether rows of the input that are not held are no finite numbers.
    fn is_strange(&self) -> bool {
        self.others.is_some()
    }
}

/// What a launch left.
struct Launched<D, R = Report> {
    report: R,
    output: Vec<D>,
    kept: Kept,
}

/// What outlives a launch.
#[derive(Default)]
struct Kept {
    /// Of each parameter that is workspace.
    workspace: Vec<Vec<u8>>,
    variables: Variables,
}

impl Kept {
    /// What a kernel finds that was never launched.
    fn fresh(prepared: &Prepared) -> Self {
        Self { workspace: fresh_workspace(prepared), ..Self::default() }
    }

    /// The same once more.
    fn copied(&self) -> Self {
        Self { workspace: self.workspace.clone(), variables: self.variables.copied() }
    }
}

impl<'a, A: Scalar, D: Scalar> Trial<'a, A, D> {
    pub(super) fn new(
        kernel: &'a Kernel,
        prepared: &'a Prepared,
        matrix: CsrView<'a, A>,
        named: Option<&'a NamedColumns<A>>,
        task: Task,
        foreign: Option<Foreign<'a>>,
    ) -> Result<Self, EmulatorError> {
        let width = task.operation.columns() as usize;
        let held = named.map_or(matrix, NamedColumns::matrix);
        check_size(matrix.rows().max(held.cols()), width, MOST_ELEMENTS)?;
        check_size(matrix.cols(), width, MOST_BYTES / size_of::<D>())?;
        let matrix = held;
        let thinning = thinning::<A, D>(matrix);
        Ok(Self { kernel, prepared, matrix, named, width, thinning, foreign, dense: PhantomData })
    }

    /// Whether the kernel was not written here.
    fn is_foreign(&self) -> bool {
        self.foreign.is_some()
    }

    /// Checks the kernel until something is wrong.
    pub(super) fn judge(
        &self,
        (options, until): (&EmulationOptions, Option<Instant>),
    ) -> Result<Judgement, EmulatorError> {
        let options = self.affordable(options);
        let budget = self.budget(&options);
        let mut series = Series::new(self, options.deadline);
        for seed in 0..self.orders(&options) {
            // What only the first launch does wrong is looked for in each order.
            series.load();
            let how = Options { seed, budget, until, until_fault: false };
            for check in self.checks(seed, &options) {
                if let Some(wrong) = series.run(check, &how)? {
                    return Ok(wrong);
                }
            }
        }
        Ok(series.verified())
    }

    fn takes(&self, parameter: Parameter) -> bool {
        self.prepared.launch.parameters.contains(&parameter)
    }

    /// What a launch is given; `input` and `output` are those of the launch before.
    fn operands(
        &self,
        check: Check,
        input: Vec<D>,
        output: Vec<D>,
        random: &mut fastrand::Rng,
    ) -> Operands<D> {
        let (takes_alpha, takes_beta) = (self.takes(Parameter::Alpha), self.takes(Parameter::Beta));
        let (alpha, beta) = check.factors(takes_alpha, takes_beta, random);
        let mut input = match check.input {
            Input::Kept => input,
            Input::Zero => vec![D::from_f64(0.0); self.matrix.cols() * self.width],
            _ => numbers(self.matrix.cols() * self.width, random),
        };
        if check.input == Input::Subnormal {
            let scale = D::DTYPE.smallest() / D::DTYPE.unit_roundoff() / 2.0;
            input.iter_mut().for_each(|x| *x = D::from_f64(scale * x.to_f64()));
        }
        if check.input == Input::Thinned {
            let Thinning { kept, share } = self.thinning;
            for (row, elements) in (0..).zip(input.chunks_mut(self.width)) {
                if !kept.contains(&row) && random.f64() >= share {
                    elements.fill(D::from_f64(0.0));
                }
            }
        }
        let initial = match check.before {
            Before::Unwritten => None,
            // Without β there is no reason to read it, and reads of what was never written are
            // found.
            Before::Random if beta == 0.0 => None,
            Before::Random => Some(numbers(self.matrix.rows() * self.width, random)),
            Before::OldResult => Some(output),
            Before::Patched => Some(patched(output, random)),
        };
        let [alpha, beta] = [alpha, beta].map(D::Accumulator::from_f64);
        let others = check.input.strange().map(D::from_f64);
        let displacement = match check.operands {
            Placement::Displaced => DISPLACEMENT,
            // Each launch has a memory of its own.
            Placement::Here | Placement::There => 0,
        };
        Operands { input, initial, alpha, beta, others, displacement }
    }

    /// Launches it.
    fn launch(
        &self,
        operands: &Operands<D>,
        kept: Kept,
        how: &Options,
    ) -> Result<Launched<D>, LaunchError> {
        let by = |launch: &Launch, memory: &mut Memory| run(self.kernel, launch, memory, how);
        self.launch_by(by, operands, kept)
    }

    /// Launches it by that way to run it.
    fn launch_by<R>(
        &self,
        run: impl FnOnce(&Launch, &mut Memory) -> Result<R, LaunchError>,
        operands: &Operands<D>,
        kept: Kept,
    ) -> Result<Launched<D, R>, LaunchError> {
        let mut memory = Memory::new();
        memory.put_variables(kept.variables);
        let input = |memory: &mut Memory, name: &str| {
            let input = match self.named {
                None => memory.input(name, bytemuck::cast_slice(&operands.input)),
                Some(named) => {
                    let element =
                        named.element(operands.input.clone(), self.width, operands.others);
                    let bytes = named.all() * self.width * size_of::<D>();
                    memory.computed(name, bytes, words(element))
                }
            };
            memory.displace(input, operands.displacement);
            input
        };
        let output = |memory: &mut Memory, name: &str| {
            let output = match &operands.initial {
                None => {
                    let bytes = self.matrix.rows() * self.width * size_of::<D>();
                    memory.uninitialised(name, bytes)
                }
                Some(initial) => memory.writable(name, bytemuck::cast_slice(initial)),
            };
            memory.displace(output, operands.displacement);
            output
        };
        let factors = [operands.alpha, operands.beta];
        let Given { arguments, output, working } =
            give::<D>(self.prepared, &mut memory, input, output, factors, kept.workspace);
        let launch = launch_of(self.prepared, arguments);
        let report = run(&launch, &mut memory)?;
        let output = output.map(|output| memory.bytes(output)).unwrap_or_default();
        Ok(Launched {
            report,
            output: bytemuck::pod_collect_to_vec(&output),
            kept: Kept {
                workspace: working.into_iter().map(|buffer| memory.bytes(buffer)).collect(),
                variables: memory.take_variables(),
            },
        })
    }

    /// Whether the module has variables that kernels may write.
    fn keeps_variables(&self) -> bool {
        self.kernel.variables.iter().any(|variable| !variable.constant)
    }

    /// Whether a launch that went wrong is right where nothing was launched before it, and what
    /// launches leave can thus be why.
    fn is_right_first(&self, operands: &Operands<D>, how: &Options) -> Result<bool, EmulatorError> {
        let fresh = Kept::fresh(self.prepared);
        if !self.keeps_variables() && fresh.workspace.is_empty() {
            return Ok(false);
        }
        let Ok(mut launched) = self.launch(operands, fresh, how) else { return Ok(false) };
        if self.is_foreign() {
            verdict::forgive_wraps(&mut launched.report);
        }
        let is_right = || -> Result<_, EmulatorError> {
            Ok(reference::compare(&self.reference(operands)?, &launched.output).passed())
        };
        Ok(verdict::of_findings(&launched.report.findings).is_none() && is_right()?)
    }

    fn reference(&self, operands: &Operands<D>) -> Result<Reference, EmulatorError> {
        let Operands { input, initial, alpha, beta, .. } = operands;
        let initial = initial.as_deref().unwrap_or_default();
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
}

/// Whether that time has come.
pub(super) fn is_past(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}

/// The factors that a kernel takes, after a comma.
pub(super) fn in_words<F: Display>(prepared: &Prepared, [alpha, beta]: [F; 2]) -> String {
    let factors = [(Parameter::Alpha, "alpha", alpha), (Parameter::Beta, "beta", beta)];
    let taken = factors.iter().filter(|(is, ..)| prepared.launch.parameters.contains(is));
    let taken: Vec<_> = taken.map(|(_, name, factor)| format!("{name} = {factor}")).collect();
    match taken.is_empty() {
        true => String::new(),
        false => format!(", with {}", taken.join(" and ")),
    }
}

/// Sees that a dense operand has no more elements than that.
pub(super) fn check_size(rows: usize, columns: usize, most: usize) -> Result<(), EmulatorError> {
    match rows.checked_mul(columns) {
        Some(elements) if elements <= most => Ok(()),
        _ => Err(EmulatorError::TooLarge { rows, columns }),
    }
}

/// The rows of the input that are held, where these are not all.
pub(super) fn named_columns<A: Scalar>(
    matrix: CsrView<'_, A>,
    width: usize,
) -> Result<Option<NamedColumns<A>>, EmulatorError> {
    let elements = matrix.cols().saturating_mul(width);
    if elements <= FEW_ELEMENTS {
        return Ok(None);
    }
    let named = NamedColumns::of_rows(matrix, 0..matrix.rows())?;
    let is_few = named.matrix().cols() <= matrix.cols() / NAMED || elements > MOST_ELEMENTS;
    Ok(is_few.then_some(named))
}

/// What a wrong result looks like, computed with α and β as `how` says; its rows are those of the
/// matrix that `row_of` says.
pub(super) fn inexact<D: Scalar>(
    how: &str,
    factors: &str,
    (width, row_of): (usize, impl Fn(usize) -> usize),
    (reference, output): (&Reference, &[D]),
    comparison: Comparison,
) -> Outcome {
    let worst = comparison.worst_index.unwrap_or(0);
    let (row, column) = (row_of(worst / width), worst % width);
    let got = output.get(worst).map_or(f64::NAN, |got| got.to_f64());
    let expected = reference.values.get(worst).copied().unwrap_or(f64::NAN);
    let unwritten = if got.is_nan() { " (not written)" } else { "" };
    // Where the bound is next to nothing, so is what it says.
    let off = match comparison.worst_ratio {
        ratio if ratio < FAR_OFF => format!(", {ratio:.3e} times its error bound off"),
        _ => String::new(),
    };
    let reason = format!(
        "{} of {} elements are wrong {how}{factors}; the worst is row {row}, column {column}: \
         {got:e}{unwritten} instead of {expected:e}{off}",
        comparison.violations, comparison.elements
    );
    Outcome::WrongResult { violation: Violation::Inexact, reason }
}

/// Warps of a launch.
pub(super) fn warps(geometry: &Geometry) -> u64 {
    let count = |of: [u32; 3]| of.iter().fold(1_u64, |n, &size| n.saturating_mul(size.into()));
    count(geometry.grid).saturating_mul(count(geometry.block).div_ceil(32))
}

/// Whether a kernel is launched on more matrices than the one that it is judged on.
pub(super) fn is_short(prepared: &Prepared) -> bool {
    warps(&prepared.launch.geometry) <= MANY_WARPS
}

/// A result with every sixteenth element or so changed, and the first.
fn patched<D: Scalar>(mut result: Vec<D>, random: &mut fastrand::Rng) -> Vec<D> {
    for (index, element) in result.iter_mut().enumerate() {
        if index == 0 || random.u8(..16) == 0 {
            let old = element.to_f64();
            *element = D::from_f64(1.25 * old + 1f64.copysign(old));
        }
    }
    result
}

/// Numbers in [−1, 1).
fn numbers<D: Scalar>(count: usize, random: &mut fastrand::Rng) -> Vec<D> {
    (0..count).map(|_| D::from_f64(2.0 * random.f64() - 1.0)).collect()
}
