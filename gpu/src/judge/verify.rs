//! Is a kernel right?
//!
//! The device runs every [`Check`]. The order of addresses alternates between two pairs of
//! operands. Before and after each launch everything that it must not change is digested: arrays,
//! input, the other operands, the guard zones of all buffers, and the variables that its machine
//! code declares. What nobody has written to since the check before keeps its digest from there.
//!
//! All of a check is asked for at once, and waited for once. Not all checks are: the launch of one may
//! fault or hang, and what was found before has to be known then.

use std::collections::{BTreeMap, BTreeSet};

use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Outcome, Violation};

use super::audit::{Watched, watched};
use super::checks::{Before, Check, Input, Place};
use super::oracle::{Noted, Notes, Oracle, Region, Verdict, When};
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
    let digests = Digests::new(problem, kernel);
    let notes = oracle.notes(digests.places.len())?;
    let mut checker = Checker { problem, stream, oracle, kernel, events, digests, notes };
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
    oracle.keep(checker.notes);
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
    notes: Notes,
}

impl<A: Scalar, D: Scalar> Checker<'_, A, D> {
    /// How a result compares with the reference, and the seconds that the launch took.
    fn check(
        &mut self,
        check: Check,
        operands: &Operands,
        random: &mut fastrand::Rng,
    ) -> Result<(Verdict, f64), Stop> {
        let Self { problem, stream, oracle, kernel, events: [start, end], digests, notes } = self;
        let (problem, stream, oracle, kernel) = (*problem, *stream, *oracle, *kernel);
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
        digests.forget(&operands.output);
        let watched = watched(problem, operands, std::iter::once(kernel));
        let unchanging = digests.placed(watched.iter().map(|&(_, region)| region));
        let variables = digests.placed(kernel.variables().iter().copied());
        let unknown = digests.note_unknown(&unchanging);
        oracle.enqueue_digests(
            stream,
            &[&unknown[..], &variables].concat(),
            notes,
            When::Before,
        )?;
        let bound = kernel.bind::<D>(operands, alpha, beta)?;
        stream.record(start)?;
        bound.enqueue(stream).map_err(Stop::of_launch)?;
        let product = problem.product(operands, alpha, beta);
        let ask = || -> Result<(), DeviceError> {
            stream.record(end)?;
            notes.clear_verdict(stream)?;
            let all = [&unchanging[..], &variables].concat();
            oracle.enqueue_digests(stream, &all, notes, When::After)?;
            oracle.enqueue_comparison(stream, &unchanging, notes)?;
            oracle.enqueue_judgement(stream, product, &operands.output, notes)
        };
        let asked = ask();
        // Everything on the device, so that no launch leaves work behind. First, because after a
        // fault of the launch what was asked for fails, too.
        oracle.wait().map_err(Stop::after_launch)?;
        asked?;
        let seconds = end.seconds_since(start)?;
        let noted = notes.read()?;
        if noted.is_changed() {
            return Err(Stop::Outcome(digests.first_changed(&watched, &noted).changed()));
        }
        let verdict = noted.verdict();
        if verdict.violations > 0 {
            return Err(wrong(problem, operands, check.name, alpha, beta, verdict)?);
        }
        if variables.iter().any(|&(_, place)| is_changed(&noted, place)) {
            return Err(Stop::Outcome(keeps_state()));
        }
        Ok((verdict, seconds))
    }
}

fn is_changed(noted: &Noted, place: usize) -> bool {
    noted.digest(When::Before, place) != noted.digest(When::After, place)
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

/// Where the digests of memory are noted, and which of those from before nobody has written to the
/// memory of since they were made.
///
/// One that was not forgotten although its memory was written to makes a right kernel look wrong;
/// it hides no wrong one.
struct Digests {
    places: BTreeMap<Region, usize>,
    known: BTreeSet<Region>,
}

impl Digests {
    /// A place for all that checks of a kernel digest.
    fn new<A: Scalar, D: Scalar>(problem: &Problem<A, D>, kernel: &LoadedKernel) -> Self {
        let either = problem.operands.iter();
        let watched =
            either.flat_map(|operands| watched(problem, operands, std::iter::once(kernel)));
        let regions = watched.map(|(_, region)| region).chain(kernel.variables().iter().copied());
        Self::of(regions)
    }

    fn of(regions: impl Iterator<Item = Region>) -> Self {
        let distinct: BTreeSet<Region> = regions.collect();
        Self { places: distinct.into_iter().zip(0..).collect(), known: BTreeSet::new() }
    }

    /// Each of some regions once, with its place.
    fn placed(&self, regions: impl Iterator<Item = Region>) -> Vec<(Region, usize)> {
        let distinct: BTreeSet<Region> = regions.collect();
        let place = |region: Region| Some((region, *self.places.get(&region)?));
        distinct.into_iter().filter_map(place).collect()
    }

    /// Forgets the digest of a buffer that is about to be written to.
    fn forget(&mut self, buffer: &DeviceBuffer) {
        self.known.remove(&buffer.whole());
    }

    /// Those whose digest is not known. They are from now on.
    fn note_unknown(&mut self, placed: &[(Region, usize)]) -> Vec<(Region, usize)> {
        placed.iter().filter(|(region, _)| self.known.insert(*region)).copied().collect()
    }

    /// The first region that a launch has changed. A launch may have written to the notes from before
    /// it, too, which are outside of what it was given.
    fn first_changed(&self, watched: &[(Watched, Region)], noted: &Noted) -> Watched {
        let is_changed =
            |region| self.places.get(region).is_some_and(|&place| is_changed(noted, place));
        let first = watched.iter().find(|(_, region)| is_changed(region));
        first.map_or(Watched::Elsewhere, |&(watched, _)| watched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_region_has_one_place_and_is_digested_before_once_until_it_is_forgotten() {
        let regions: [Region; 4] = [(512, 8), (256, 8), (512, 8), (1024, 4)];
        let mut digests = Digests::of(regions.into_iter());
        let placed = digests.placed(regions.into_iter());
        assert_eq!(placed, [((256, 8), 0), ((512, 8), 1), ((1024, 4), 2)]);
        assert_eq!(digests.note_unknown(&placed[..2]), placed[..2]);
        assert_eq!(digests.note_unknown(&placed), placed[2..]);
        digests.known.remove(&(256, 8));
        assert_eq!(digests.note_unknown(&placed), placed[..1]);
    }
}
