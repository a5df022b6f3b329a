//! Is a kernel right?
//!
//! The device runs every [`Check`] that all judges run. The order of addresses alternates between
//! two pairs of operands. Before and after each launch everything that it must not change is
//! digested: arrays, input, the other operands, the guard zones of all buffers, and the variables
//! that its machine code declares. What nobody has written to since the check before keeps its
//! digest from there.
//!
//! The digests from before a launch are on the host when it begins: a kernel could write to those
//! on the device, too. All that comes after it is asked for at once and waited for once. Not all
//! checks are: the launch of one may fault or hang, and what was found before has to be known then.

use std::collections::{BTreeMap, BTreeSet};

use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Outcome, Violation};

use super::audit::{Watched, watched};
use super::checks::{Before, Check, Input, Placement};
use super::oracle::{Noted, Notes, Oracle, Region, Verdict, When};
use super::problem::{Operands, Problem};
use super::{LoadedKernel, Stop};
use crate::run::device::{Device, DeviceBuffer, DeviceError, Event, Stream, poison};

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
    let events = [Event::new(device)?, Event::new(device)?];
    let digests = Digests::new(problem, kernel);
    let notes = oracle.notes(digests.places.len())?;
    let mut verifier = Verifier { problem, stream, oracle, kernel, events, digests, notes };
    let verified = verifier.all(rounds, random);
    oracle.keep(verifier.notes);
    verified
}

struct Verifier<'a, A, D> {
    problem: &'a Problem<A, D>,
    stream: &'a Stream,
    oracle: &'a Oracle,
    kernel: &'a LoadedKernel,
    /// The begin and the end of a launch.
    events: [Event; 2],
    digests: Digests,
    notes: Notes,
}

impl<A: Scalar, D: Scalar> Verifier<'_, A, D> {
    fn all(&mut self, rounds: u32, random: &mut fastrand::Rng) -> Result<Verified, Stop> {
        let mut verified = Verified::default();
        let [first, second] = &self.problem.operands;
        for round in 0..rounds {
            // Another launch finds its operands elsewhere.
            let (here, there) = if round % 2 == 0 { (first, second) } else { (second, first) };
            for check in Check::of_all() {
                let operands = match check.operands {
                    Placement::Here => here,
                    Placement::There | Placement::Displaced => there,
                };
                let (verdict, seconds) = self.check(check, operands, random)?;
                verified.add(verdict);
                let shortest = verified.shortest.unwrap_or(f64::INFINITY);
                verified.shortest = Some(shortest.min(seconds));
            }
        }
        Ok(verified)
    }

    /// Puts into the operands what a check is to find there.
    fn fill(
        &mut self,
        check: Check,
        operands: &Operands,
        random: &mut fastrand::Rng,
    ) -> Result<(), DeviceError> {
        let Self { problem, stream, oracle, digests, .. } = self;
        if check.input != Input::Kept {
            digests.forget(&operands.input);
        }
        match check.input {
            // Numbers of other kinds are for emulators.
            Input::Fresh | Input::Zero | Input::Subnormal | Input::NotANumber | Input::Infinite => {
                oracle.fill::<D>(stream, &operands.input, random.u64(..))?;
            }
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
        Ok(())
    }

    /// How a result compares with the reference, and the seconds that the launch took.
    fn check(
        &mut self,
        check: Check,
        operands: &Operands,
        random: &mut fastrand::Rng,
    ) -> Result<(Verdict, f64), Stop> {
        let (takes_alpha, takes_beta) = (self.kernel.takes_alpha(), self.kernel.takes_beta());
        let (alpha, beta) = check.factors(takes_alpha, takes_beta, random);
        let (alpha, beta) = (D::Accumulator::from_f64(alpha), D::Accumulator::from_f64(beta));
        self.fill(check, operands, random)?;
        let Self { problem, stream, oracle, kernel, events: [start, end], digests, notes } = self;
        let (problem, stream, oracle, kernel) = (*problem, *stream, *oracle, *kernel);
        let watched = watched(problem, operands, std::iter::once(kernel));
        let unchanging = digests.placed(watched.iter().map(|&(_, region)| region));
        let variables = digests.placed(kernel.variables().iter().copied());
        let unknown = digests.unknown(&unchanging);
        oracle.enqueue_digests(
            stream,
            &[&unknown[..], &variables].concat(),
            notes,
            When::Before,
        )?;
        let before = notes.read()?;
        digests.remember(&unknown, &before);
        let bound = kernel.bind::<D>(operands, alpha, beta)?;
        stream.record(start)?;
        let is_behind_late = check.behind_late && kernel.begins_early();
        if is_behind_late {
            oracle.write_late(stream, &operands.input, &operands.output)?;
        }
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
        if let Some(changed) = digests.first_changed(&watched, &noted) {
            return Err(Stop::Outcome(changed.changed()));
        }
        let verdict = bounded::<D>(noted.verdict())?;
        if verdict.violations > 0 {
            let when = match is_behind_late {
                true => format!("{}, behind a kernel that ends late", check.name),
                false => check.name.to_owned(),
            };
            return Err(wrong(problem, operands, &when, alpha, beta, verdict)?);
        }
        let is_changed =
            |place| before.digest(When::Before, place) != noted.digest(When::After, place);
        if variables.iter().any(|&(_, place)| is_changed(place)) {
            return Err(Stop::Outcome(keeps_state()));
        }
        Ok((verdict, seconds))
    }
}

/// The verdict, if every element has a bound: one that may be too large for its type says nothing.
/// Where operands from -1 to 1 give such results, that shows before the first launch; others may
/// still be drawn.
///
/// # Errors
/// Where one has none.
pub(crate) fn bounded<D: Scalar>(verdict: Verdict) -> Result<Verdict, Stop> {
    if verdict.unbounded == 0 {
        return Ok(verdict);
    }
    let reason = format!(
        "{} results may be too large for {}, so that nothing can be verified: scale the matrix down",
        verdict.unbounded,
        D::DTYPE
    );
    Err(Stop::Broken(DeviceError::WrongArguments { reason }))
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
    let got = output.get(at).copied().unwrap_or(D::NAN);
    // What a kernel computes is another NaN.
    let is_poison = bytemuck::bytes_of(&got) == poison(size_of::<D>());
    let unwritten = if is_poison { " (not written)" } else { "" };
    let got = got.to_f64();
    let elements = output.len();
    let reason = format!(
        "{} of {elements} elements are wrong {when}, with alpha = {alpha} and beta = {beta}; the first is row \
         {row}, column {column}: {got:e}{unwritten}; the worst is {:.3e} times its error bound off",
        verdict.violations, verdict.worst_ratio
    );
    Ok(Stop::Outcome(Outcome::WrongResult { violation: Violation::Inexact, reason }))
}

/// Where the digests of memory are noted, and those that were made of memory that nobody has
/// written to since, by what was read before the last launches.
///
/// One that was not forgotten although its memory was written to makes a right kernel look wrong;
/// it hides no wrong one.
struct Digests {
    places: BTreeMap<Region, usize>,
    known: BTreeMap<Region, u64>,
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
        Self { places: distinct.into_iter().zip(0..).collect(), known: BTreeMap::new() }
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

    /// Those whose digest is not known.
    fn unknown(&self, placed: &[(Region, usize)]) -> Vec<(Region, usize)> {
        placed.iter().filter(|(region, _)| !self.known.contains_key(region)).copied().collect()
    }

    /// Takes digests that were made before a launch and read before it.
    fn remember(&mut self, placed: &[(Region, usize)], noted: &Noted) {
        let read = |&(region, place): &(Region, usize)| (region, noted.digest(When::Before, place));
        self.known.extend(placed.iter().map(read));
    }

    /// What a launch has changed first, if anything, by what was remembered. The device compares,
    /// too, with its own digests from before: where only these differ, the launch has written to
    /// them, which are outside of what it was given. A region without a digest counts as changed.
    fn first_changed(&self, watched: &[(Watched, Region)], noted: &Noted) -> Option<Watched> {
        let is_same = |region: &Region| {
            let after = self.places.get(region).map(|&place| noted.digest(When::After, place));
            after.is_some() && after == self.known.get(region).copied()
        };
        let first = watched.iter().find(|(_, region)| !is_same(region));
        first.map(|&(watched, _)| watched).or(noted.is_changed().then_some(Watched::Elsewhere))
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
        let nothing = Noted::of_digests(0, [&[0; 3], &[0; 3]]);
        assert_eq!(digests.unknown(&placed[..2]), placed[..2]);
        digests.remember(&placed[..2], &nothing);
        assert_eq!(digests.unknown(&placed), placed[2..]);
        digests.known.remove(&(256, 8));
        assert_eq!(digests.unknown(&placed), [placed[0], placed[2]]);
    }

    #[test]
    fn a_change_shows_whatever_a_launch_writes_to_the_digests_on_the_device() {
        let (array, guard) = ((256, 8), (512, 8));
        let mut digests = Digests::of([array, guard].into_iter());
        let watched = [(Watched::Array, array), (Watched::Elsewhere, guard)];
        let before = Noted::of_digests(0, [&[7, 8], &[0, 0]]);
        digests.remember(&digests.placed([array, guard].into_iter()), &before);
        let first_changed = |noted| digests.first_changed(&watched, &noted);
        assert_eq!(first_changed(Noted::of_digests(0, [&[7, 8], &[7, 8]])), None);
        // An array was changed; then its digest from before was, too, so that the device sees
        // nothing.
        let changed = Some(Watched::Array);
        assert_eq!(first_changed(Noted::of_digests(1, [&[7, 8], &[6, 8]])), changed);
        assert_eq!(first_changed(Noted::of_digests(0, [&[6, 8], &[6, 8]])), changed);
        // Only a digest from before was.
        let outside = Some(Watched::Elsewhere);
        assert_eq!(first_changed(Noted::of_digests(1, [&[6, 8], &[7, 8]])), outside);
        assert_eq!(first_changed(Noted::of_digests(0, [&[7, 8], &[7, 9]])), outside);
        // A region of which nothing is known is not passed over.
        let other = [(Watched::Input, (1024, 4))];
        let same = Noted::of_digests(0, [&[7, 8], &[7, 8]]);
        assert_eq!(digests.first_changed(&other, &same), Some(Watched::Input));
    }
}
