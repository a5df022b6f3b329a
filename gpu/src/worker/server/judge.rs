//! Checks kernels, and times those that are right in turn with the baselines.

use std::io;

use sparserl_core::matrix::Scalar;
use sparserl_core::outcome::{Baseline, Evaluation, Measurement, Outcome, Timing};

use super::super::protocol::{Answer, KernelHeader, Protocol, Request, Running};
use super::announcer::{Announcer, Lost};
use crate::compare::cusparse::Product;
use crate::compare::{Contest, Entry, Excluded, Opponent};
use crate::compile::nvrtc::{Cubin, CubinParts};
use crate::isolate::Connection;
use crate::judge::{
    Audit, Contender, Holdings, LoadedKernel, Operands, Oracle, Problem, Rounds, Stop, Stopwatch,
    Verified, bounded, keeps_state, leaves_disorder, too_fast, verify, wrong,
};
use crate::run::device::{Device, DeviceError, Stream};

/// Everything that judging kernels takes, whatever the element types.
#[derive(Clone, Copy)]
pub(super) struct Tools<'a> {
    pub(super) device: &'a Device,
    pub(super) stream: &'a Stream,
    pub(super) oracle: &'a Oracle,
    pub(super) holdings: &'a Holdings,
    pub(super) stopwatch: &'a Stopwatch,
    /// Absent where no baselines are measured.
    pub(super) contest: Option<&'a Contest>,
    pub(super) excluded: &'a [Excluded],
    pub(super) protocol: &'a Protocol,
}

/// Judges kernels for one matrix and task.
pub(super) struct Judge<'a, A, D> {
    pub(super) tools: Tools<'a>,
    pub(super) problem: &'a Problem<A, D>,
    pub(super) random: fastrand::Rng,
}

/// A kernel that passed its checks.
struct Right {
    kernel: LoadedKernel,
    verified: Verified,
    /// Of the variables that its machine code declares, before it ran.
    state: Vec<u64>,
}

impl<A: Scalar, D: Scalar> Judge<'_, A, D> {
    pub(super) fn judge(
        mut self,
        kernels: Vec<(KernelHeader, Vec<u8>)>,
        client: &mut Connection<Request, Answer>,
    ) -> io::Result<Option<Answer>> {
        let mut checked = Vec::new();
        for (header, bytes) in kernels {
            let outcome = match self.check(header, bytes) {
                Ok(right) => Ok(right),
                Err(Stop::Outcome(outcome)) if leaves_disorder(&outcome) => {
                    client.send(&Answer::Judged { ended: Some(outcome) }, &[])?;
                    return Ok(None);
                }
                Err(Stop::Outcome(outcome)) => Err(outcome),
                Err(Stop::Broken(error)) => {
                    return Ok(Some(Answer::failed(&error)));
                }
            };
            checked.push(outcome);
            client.send(&Answer::Judged { ended: None }, &[])?;
        }
        let announcer = Announcer::new(client, self.tools.stream);
        match self.measure(checked, &announcer) {
            Ok(Ok(evaluation)) => {
                let (evaluation, clocks) = (Box::new(evaluation), self.tools.device.clocks());
                Ok(Some(Answer::Evaluated { evaluation, clocks }))
            }
            Ok(Err(lost)) => {
                announcer.lose(lost)?;
                Ok(None)
            }
            Err(error) => Ok(Some(Answer::failed(&error))),
        }
    }

    /// Loads and verifies a kernel.
    fn check(&mut self, header: KernelHeader, bytes: Vec<u8>) -> Result<Right, Stop> {
        let Tools { device, stream, oracle, holdings, protocol, .. } = self.tools;
        let KernelHeader { cubin, launch, arrays } = header;
        let cubin = Cubin::new(CubinParts { bytes, ..cubin });
        let kernel = LoadedKernel::load(device, holdings, &cubin, launch, &arrays)?;
        let state = oracle.digest(stream, kernel.variables())?;
        let rounds = protocol.checks.max(1);
        let verified =
            verify(self.problem, (device, stream), oracle, &kernel, rounds, &mut self.random)?;
        Ok(Right { kernel, verified, state })
    }

    /// Times the right kernels and the baselines in turn.
    fn measure(
        &mut self,
        checked: Vec<Result<Right, Outcome>>,
        announcer: &Announcer<'_>,
    ) -> Result<Result<Evaluation, Lost>, DeviceError> {
        let Tools { stream, oracle, stopwatch, protocol, .. } = self.tools;
        let operands = &self.problem.operands[0];
        oracle.fill::<D>(stream, &operands.input, self.random.u64(..))?;
        let seed = self.random.u64(..);
        let mut verified: Vec<Verified> =
            checked.iter().flatten().map(|right| right.verified).collect();
        let baselines = self.baselines(announcer);
        if stream.synchronize().is_err() {
            return Ok(Err(Lost::to_an_opponent()));
        }
        announcer.announce(Running::Judge);

        let mut contenders: Vec<Box<dyn Contender + '_>> = Vec::new();
        let right = checked
            .iter()
            .enumerate()
            .filter_map(|(place, right)| Some((place, right.as_ref().ok()?)));
        for ((place, right), verified) in right.zip(&mut verified) {
            let [one, zero] = [1.0, 0.0].map(D::Accumulator::from_f64);
            let bound = match right.kernel.bind::<D>(operands, one, zero) {
                Ok(bound) => bound,
                Err(Stop::Broken(error)) => return Err(error),
                // It was bound before, with the same arguments but for their values.
                Err(Stop::Outcome(_)) => return Ok(Err(Lost::while_timing())),
            };
            let enqueue = move |stream: &Stream| bound.enqueue(stream).map_err(Stop::of_launch);
            let begin = move || announcer.announce(Running::Kernel(place));
            contenders.push(self.contender(begin, enqueue, seed, Some(verified)));
        }
        let kernels = contenders.len();
        for entry in &baselines {
            let Ok(ready) = &entry.ready else { continue };
            let enqueue = |_: &Stream| ready.enqueue().map_err(refused);
            let begin = || announcer.announce_opponent(&entry.opponent);
            contenders.push(self.contender(begin, enqueue, seed, None));
        }
        let rounds = Rounds {
            cold: protocol.cold_samples,
            warm: protocol.warm_samples.max(1),
            back_to_back: protocol.back_to_back_samples,
            patience: protocol.patience.as_secs_f64(),
        };
        let loaded = checked.iter().flatten().map(|right| &right.kernel);
        let audit = Audit::begin(self.problem, stream, oracle, operands, loaded)?;
        let mut timings = stopwatch.time(stream, &mut contenders, rounds);
        drop(contenders);
        if stream.synchronize().is_err() {
            return Ok(Err(Lost::while_timing()));
        }
        announcer.announce(Running::Judge);
        match audit.end(stream, oracle) {
            Ok(()) => {}
            Err(Stop::Outcome(outcome)) => return Ok(Err(Lost(outcome))),
            Err(Stop::Broken(error)) => return Err(error),
        }

        let baseline_timings = timings.split_off(kernels);
        let timed = timings.into_iter().zip(verified).collect();
        let outcomes = match self.conclude_all(checked, timed)? {
            Ok(outcomes) => outcomes,
            Err(lost) => return Ok(Err(lost)),
        };
        let baselines = released(baselines, baseline_timings, announcer);
        announcer.announce(Running::Judge);
        let copy_bandwidth = Some(stopwatch.copy_bandwidth());
        Ok(Ok(Evaluation { outcomes, baselines, copy_bandwidth }))
    }

    /// What becomes of all kernels; `timed` are the right ones among them, in their order.
    fn conclude_all(
        &self,
        checked: Vec<Result<Right, Outcome>>,
        timed: Vec<(Result<Timing, Stop>, Verified)>,
    ) -> Result<Result<Vec<Outcome>, Lost>, DeviceError> {
        let mut timed = timed.into_iter();
        let mut outcomes = Vec::new();
        for kernel in checked {
            let outcome = match kernel {
                Err(outcome) => outcome,
                Ok(right) => match timed.next() {
                    Some((Ok(timing), verified)) => self.conclude(&right, timing, verified)?,
                    Some((Err(Stop::Outcome(outcome)), _)) => outcome,
                    Some((Err(Stop::Broken(error)), _)) => return Err(error),
                    None => return Ok(Err(Lost::while_timing())),
                },
            };
            outcomes.push(outcome);
        }
        Ok(Ok(outcomes))
    }

    /// What becomes of a right kernel that was timed.
    fn conclude(
        &self,
        right: &Right,
        timing: Timing,
        verified: Verified,
    ) -> Result<Outcome, DeviceError> {
        let Tools { stream, oracle, stopwatch, .. } = self.tools;
        let bytes = right.kernel.launch.compulsory_bytes + self.problem.input_bytes;
        if let Some(outcome) = too_fast(&timing, bytes, stopwatch.copy_bandwidth()) {
            return Ok(outcome);
        }
        if oracle.digest(stream, right.kernel.variables())? != right.state {
            return Ok(keeps_state());
        }
        let Verified { checks, worst_ratio, .. } = verified;
        Ok(Outcome::Measured(Measurement { checks, worst_ratio, timing }))
    }

    /// Something to be timed, with links of a chain that negate elements by the seed. What it finds
    /// right is noted in `verified`.
    fn contender<'c>(
        &'c self,
        begin: impl Fn() + 'c,
        enqueue: impl Fn(&Stream) -> Result<(), Stop> + 'c,
        seed: u64,
        verified: Option<&'c mut Verified>,
    ) -> Box<dyn Contender + 'c> {
        let oracle = self.tools.oracle;
        Box::new(Timed { oracle, problem: self.problem, begin, enqueue, seed, verified })
    }

    /// The opponents' algorithms that apply, made ready, or why they cannot be. All of them take
    /// one type for all operands: of a matrix in another one they are given a copy, whose making
    /// does not count as theirs.
    fn baselines(&self, announcer: &Announcer<'_>) -> Vec<Entry<'_>> {
        let Tools { device, stream, contest: Some(contest), excluded, .. } = self.tools else {
            return Vec::new();
        };
        let (host, csr) = match self.problem.uniform(device) {
            Ok(uniform) => uniform,
            Err(error) => {
                return contest.refuse(&format!("A cannot be converted to {}: {error}", D::DTYPE));
            }
        };
        let Operands { input, output } = &self.problem.operands[0];
        let product = Product {
            operation: self.problem.operation,
            host,
            csr,
            input,
            output,
            alpha: D::Accumulator::from_f64(1.0),
            beta: D::Accumulator::from_f64(0.0),
        };
        let announce = |opponent: &Opponent| announcer.announce_opponent(opponent);
        let mut entries = contest.prepare(device, stream, &product, excluded, &announce);
        if A::DTYPE != D::DTYPE {
            for entry in &mut entries {
                entry.opponent.library.push_str(&format!(" (A converted to {})", D::DTYPE));
            }
        }
        entries
    }
}

/// A product on the first operands, with α = 1 and β = 0.
struct Timed<'c, A, D, B, F> {
    oracle: &'c Oracle,
    problem: &'c Problem<A, D>,
    begin: B,
    enqueue: F,
    /// Of the elements that links negate.
    seed: u64,
    verified: Option<&'c mut Verified>,
}

impl<A, D, B, F> Contender for Timed<'_, A, D, B, F>
where
    A: Scalar,
    D: Scalar,
    B: Fn(),
    F: Fn(&Stream) -> Result<(), Stop>,
{
    fn begin(&self) {
        // A sample ends when its work is done, so whoever is announced is at work on the device.
        (self.begin)();
    }

    fn estimate(&self) -> Option<f64> {
        self.verified.as_ref()?.shortest
    }

    fn enqueue(&self, stream: &Stream) -> Result<(), Stop> {
        (self.enqueue)(stream)
    }

    fn link(&self, stream: &Stream, negated: Option<u32>) -> Result<(), Stop> {
        let Operands { input, output } = &self.problem.operands[0];
        let elements = input.len() / size_of::<D>();
        // Any, so that none can be left out of account.
        let drawn = |number| fastrand::Rng::with_seed(self.seed ^ u64::from(number));
        let negated = negated.filter(|_| elements > 0).map(|n| drawn(n).usize(..elements));
        Ok(self.oracle.link::<D>(stream, output, input, negated)?)
    }

    fn spoil(&self, stream: &Stream) -> Result<(), Stop> {
        Ok(stream.poison(&self.problem.operands[0].output)?)
    }

    fn after_last(&mut self, stream: &Stream) -> Result<(), Stop> {
        let (problem, operands) = (self.problem, &self.problem.operands[0]);
        let [alpha, beta] = [1.0, 0.0].map(D::Accumulator::from_f64);
        let product = problem.product(operands, alpha, beta);
        let verdict = self.oracle.judge(stream, product, &operands.output)?;
        let verdict = bounded::<D>(verdict)?;
        if verdict.violations > 0 {
            return Err(wrong(problem, operands, "after timing", alpha, beta, verdict)?);
        }
        if let Some(verified) = &mut self.verified {
            verified.add(verdict);
        }
        Ok(())
    }
}

/// A baseline's own failure, which is never a kernel's.
fn refused(reason: String) -> Stop {
    Stop::Outcome(Outcome::LaunchFailed { reason })
}

/// What becomes of opponents' algorithms, whose plans are released; `timings` are of those that
/// were made ready.
fn released(
    entries: Vec<Entry<'_>>,
    timings: Vec<Result<Timing, Stop>>,
    announcer: &Announcer<'_>,
) -> Vec<Baseline> {
    let mut timings = timings.into_iter();
    let release = |entry: Entry<'_>| {
        let timing = entry.ready.as_ref().ok().and_then(|_| timings.next());
        announcer.announce_opponent(&entry.opponent);
        baseline(entry, timing)
    };
    entries.into_iter().map(release).collect()
}

fn baseline(entry: Entry<'_>, timing: Option<Result<Timing, Stop>>) -> Baseline {
    let Entry { opponent: Opponent { library, algorithm, is_default, .. }, ready } = entry;
    let timing = match timing {
        Some(Ok(timing)) => Ok(timing),
        Some(Err(Stop::Outcome(outcome))) => Err(outcome.to_string()),
        Some(Err(Stop::Broken(error))) => Err(error.to_string()),
        None => Err("it was not timed".to_owned()),
    };
    let (analysis_seconds, buffer_bytes, timing) = match ready {
        Ok(ready) => (ready.analysis_seconds, ready.buffer_bytes, timing),
        Err(reason) => (0.0, 0, Err(reason)),
    };
    Baseline { library, algorithm, is_default, analysis_seconds, buffer_bytes, timing }
}
