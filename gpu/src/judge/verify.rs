//! Is a kernel right?
//!
//! The device runs every [`Check`]. The order of addresses alternates between two pairs of
//! operands. Before and after each launch everything that it must not change is digested: arrays,
//! input, the other operands, the guard zones of all buffers, and the variables that its machine
//! code declares. What nobody has written to since the check before keeps its digest from there.

use std::collections::BTreeMap;

use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Outcome, Violation};

use super::checks::{Before, Check, Input, Place};
use super::oracle::{Oracle, Region, Verdict};
use super::problem::{Operands, Problem};
use super::{LoadedKernel, Stop};
use crate::run::device::{Device, DeviceBuffer, DeviceError, Event, Stream};

/// What the checks of a right kernel found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verified {
    /// Results that were compared.
    pub(crate) checks: u32,
    /// The largest |error| / bound.
    pub(crate) worst_ratio: f64,
    /// The shortest launch, in seconds, if any was timed. What two events cost is in it.
    pub(crate) shortest: Option<f64>,
}

impl Verified {
    pub(crate) fn add(&mut self, verdict: Verdict) {
        self.checks += 1;
        self.worst_ratio = self.worst_ratio.max(verdict.worst_ratio);
    }
}

/// Checks a kernel `rounds` times over, each time in all ways.
pub(crate) fn verify<A: Scalar, D: Scalar>(
    problem: &Problem<A, D>,
    (device, stream): (&Device, &Stream),
    oracle: &Oracle,
    kernel: &LoadedKernel,
    rounds: u32,
    random: &mut fastrand::Rng,
) -> Result<Verified, Stop> {
    let mut verified = Verified::default();
    let events = [Event::new(device)?, Event::new(device)?];
    let digests = Digests::default();
    let mut checker = Checker { problem, stream, oracle, kernel, events, digests };
    let [first, second] = &problem.operands;
    for round in 0..rounds {
        // Another launch finds its operands elsewhere.
        let (here, there) = if round % 2 == 0 { (first, second) } else { (second, first) };
        for check in Check::ALL {
            let operands = match check.operands {
                Place::Here => here,
                Place::There => there,
            };
            let (verdict, seconds) = checker.check(check, operands, random)?;
            verified.add(verdict);
            let shortest = verified.shortest.unwrap_or(f64::INFINITY);
            verified.shortest = Some(shortest.min(seconds));
        }
    }
    Ok(verified)
}

struct Checker<'a, A, D> {
    problem: &'a Problem<A, D>,
    stream: &'a Stream,
    oracle: &'a Oracle,
    kernel: &'a LoadedKernel,
    /// The begin and the end of a launch.
    events: [Event; 2],
    digests: Digests,
}

impl<A: Scalar, D: Scalar> Checker<'_, A, D> {
    /// How a result compares with the reference, and the seconds that the launch took.
    fn check(
        &mut self,
        check: Check,
        operands: &Operands,
        random: &mut fastrand::Rng,
    ) -> Result<(Verdict, f64), Stop> {
        let Self { problem, stream, oracle, kernel, events: [start, end], digests } = self;
        let (problem, kernel) = (*problem, *kernel);
        let (takes_alpha, takes_beta) = (kernel.takes_alpha(), kernel.takes_beta());
        let (alpha, beta) = check.factors(takes_alpha, takes_beta, random);
        let (alpha, beta) = (D::Accumulator::from_f64(alpha), D::Accumulator::from_f64(beta));
        if check.input != Input::Kept {
            digests.forget(&operands.input);
        }
        match check.input {
            Input::Fresh => oracle.fill::<D>(stream, &operands.input, random.u64(..))?,
            Input::Thinned => {
                oracle.fill::<D>(stream, &operands.input, random.u64(..))?;
                let (width, seed) = (problem.width(), random.u64(..));
                oracle.thin::<D>(stream, &operands.input, width, seed, problem.thinning)?;
            }
            Input::Kept => {}
        }
        match check.before {
            Before::Unwritten => stream.poison(&operands.output)?,
            Before::Random => {
                digests.forget(&problem.initial);
                oracle.fill::<D>(stream, &problem.initial, random.u64(..))?;
                stream.copy(&problem.initial, &operands.output)?;
            }
            Before::OldResult => {}
            Before::Patched => oracle.corrupt::<D>(stream, &operands.output, random.u64(..))?,
        }
        let kernels = std::iter::once(kernel);
        let audit = Audit::begin(problem, stream, oracle, operands, kernels, digests)?;
        let state = oracle.digest(stream, kernel.variables())?;
        let bound = kernel.bind::<D>(operands, alpha, beta)?;
        stream.record(start)?;
        bound.enqueue(stream).map_err(Stop::of_launch)?;
        stream.record(end)?;
        // Everything on the device, so that no launch leaves work behind.
        oracle.wait().map_err(Stop::after_launch)?;
        let seconds = end.seconds_since(start)?;
        audit.end(stream, oracle)?;
        let product = problem.product(operands, alpha, beta);
        let verdict = oracle.judge(stream, product, &operands.output)?;
        if verdict.violations > 0 {
            return Err(wrong(problem, operands, check.name, alpha, beta, verdict)?);
        }
        if oracle.digest(stream, kernel.variables())? != state {
            return Err(Stop::Outcome(keeps_state()));
        }
        Ok((verdict, seconds))
    }
}

/// What becomes of a kernel that changes variables of its own.
pub(crate) fn keeps_state() -> Outcome {
    let reason = "it changes variables that outlive a launch".to_owned();
    Outcome::WrongResult { violation: Violation::KeepsState, reason }
}

/// What a wrong result looks like.
pub(crate) fn wrong<A: Scalar, D: Scalar>(
    problem: &Problem<A, D>,
    operands: &Operands,
    when: &str,
    alpha: D::Accumulator,
    beta: D::Accumulator,
    verdict: Verdict,
) -> Result<Stop, DeviceError> {
    let width = u64::from(problem.width());
    let (row, column) = (verdict.first_violation / width, verdict.first_violation % width);
    let at = usize::try_from(verdict.first_violation).unwrap_or(usize::MAX);
    let output: Vec<D> = bytemuck::pod_collect_to_vec(&operands.output.download()?);
    let got = output.get(at).map_or(f64::NAN, |got| got.to_f64());
    let unwritten = if got.is_nan() { " (not written)" } else { "" };
    let elements = output.len();
    let reason = format!(
        "{} of {elements} elements are wrong {when}, with alpha = {alpha} and beta = {beta}; the first is row \
         {row}, column {column}: {got:e}{unwritten}; the worst is {:.3e} times its error bound off",
        verdict.violations, verdict.worst_ratio
    );
    Ok(Stop::Outcome(Outcome::WrongResult { violation: Violation::Inexact, reason }))
}

/// Digests of memory that nobody has written to since they were made.
///
/// One that was not forgotten although its memory was written to makes a right kernel look wrong;
/// it hides no wrong one.
#[derive(Default)]
pub(crate) struct Digests(BTreeMap<Region, u64>);

impl Digests {
    /// Forgets the digest of a buffer that is about to be written to.
    fn forget(&mut self, buffer: &DeviceBuffer) {
        self.0.remove(&buffer.whole());
    }

    /// The digests of some regions, made where they are not known.
    fn of(
        &mut self,
        stream: &Stream,
        oracle: &Oracle,
        regions: &[Region],
    ) -> Result<Vec<u64>, DeviceError> {
        let unknown = regions.iter().filter(|region| !self.0.contains_key(region));
        let unknown: Vec<Region> = unknown.copied().collect();
        let made = oracle.digest(stream, &unknown)?;
        self.0.extend(unknown.into_iter().zip(made));
        Ok(regions.iter().filter_map(|region| self.0.get(region).copied()).collect())
    }
}

/// Digests of all that launches must leave alone.
pub(crate) struct Audit {
    watched: Vec<(Watched, Region)>,
    before: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Watched {
    Input,
    Array,
    /// A guard zone, or memory that the kernel was not given.
    Elsewhere,
}

impl Audit {
    /// Notes what there is before launches of some kernels on `operands`.
    pub(crate) fn begin<'k, A: Scalar, D: Scalar>(
        problem: &Problem<A, D>,
        stream: &Stream,
        oracle: &Oracle,
        operands: &Operands,
        kernels: impl Iterator<Item = &'k LoadedKernel>,
        digests: &mut Digests,
    ) -> Result<Self, DeviceError> {
        digests.forget(&operands.output);
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
        let regions: Vec<_> = watched.iter().map(|&(_, region)| region).collect();
        Ok(Self { before: digests.of(stream, oracle, &regions)?, watched })
    }

    /// Sees that it is still there.
    pub(crate) fn end(self, stream: &Stream, oracle: &Oracle) -> Result<(), Stop> {
        let regions: Vec<_> = self.watched.iter().map(|&(_, region)| region).collect();
        let after = oracle.digest(stream, &regions)?;
        let pairs = self.before.iter().zip(&after).zip(&self.watched);
        let Some((_, &(watched, _))) =
            pairs.into_iter().find(|((before, after), _)| before != after)
        else {
            return Ok(());
        };
        let (violation, reason) = match watched {
            Watched::Input => {
                (Violation::InputChanged, "it changed the dense input, which it may only read")
            }
            Watched::Array => (
                Violation::InputChanged,
                "it changed an array of the matrix, which it may only read",
            ),
            Watched::Elsewhere => {
                (Violation::WroteOutside, "it wrote outside of the buffers that it was given")
            }
        };
        Err(Stop::Outcome(Outcome::WrongResult { violation, reason: reason.to_owned() }))
    }
}
