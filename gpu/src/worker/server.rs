//! The process behind a worker.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use half::{bf16, f16};
use sparserl_core::matrix::{Csr, Offsets, Scalar};
use sparserl_core::outcome::{Baseline, Evaluation, Measurement, Outcome, Timing};
use sparserl_core::task::{Dtype, Task};

use super::protocol::{Answer, KernelHeader, MatrixHeader, Protocol, Request, Running};
use crate::compare::cusparse::Product;
use crate::compare::{Contest, Entry, Excluded, Opponent, Opponents};
use crate::compile::nvrtc::{Cubin, CubinParts};
use crate::isolate::Connection;
use crate::judge::{
    Audit, Contender, Holdings, LoadedKernel, Operands, Oracle, Problem, Rounds, Stop, Stopwatch,
    Verified, bounded, keeps_state, leaves_disorder, too_fast, verify, wrong,
};
use crate::run::device::{Device, DeviceError, DeviceFacts, Stream};

/// Bytes that kernels may take with `malloc`, all together.
const HEAP_BYTES: usize = 8 << 20;

/// Judges kernels on a device until the worker has no more.
pub(crate) fn serve(ordinal: u32) -> io::Result<()> {
    let mut client = Connection::<Request, Answer>::inherited()?;
    let mut server = match Server::open(ordinal) {
        Ok(server) => server,
        Err(error) => return client.send(&Answer::Unable { reason: error.to_string() }, &[]),
    };
    client.send(&Answer::Ready(Box::new(server.facts.clone())), &[])?;
    while let Some((request, blobs)) = client.receive()? {
        let answer = match request {
            Request::Judge { gone, new, kernels, protocol, opponents, excluded, seed } => {
                let batch = Batch { gone, new, kernels, blobs };
                let field = (&opponents, excluded.as_slice());
                match server.judge(batch, &protocol, field, seed, &mut client)? {
                    Some(answer) => answer,
                    // The device is lost to this process.
                    None => return Ok(()),
                }
            }
            Request::Oracle { cubin } => done(server.take_oracle(cubin, blobs)),
            Request::Matrix(header) => done(server.take_matrix(&header, blobs)),
            Request::Task(task) => done(server.take_task(task)),
        };
        client.send(&answer, &[])?;
    }
    Ok(())
}

fn done(result: Result<(), String>) -> Answer {
    match result {
        Ok(()) => Answer::Done,
        Err(reason) => Answer::Unable { reason },
    }
}

struct Server {
    device: Device,
    facts: DeviceFacts,
    stream: Arc<Stream>,
    oracle: Option<Oracle>,
    matrix: Option<Matrix>,
    problem: Option<AnyProblem>,
    holdings: Holdings,
    /// There from the first timing on.
    stopwatch: Option<Stopwatch>,
    /// There from the first measurement of baselines on.
    contest: Option<Contest>,
}

/// A matrix before its task is known.
#[derive(Clone)]
enum Matrix {
    F32(Arc<Csr<f32>>),
    F64(Arc<Csr<f64>>),
    F16(Arc<Csr<f16>>),
    BF16(Arc<Csr<bf16>>),
}

/// A problem in one of the precisions that there are.
enum AnyProblem {
    F32(Problem<f32, f32>),
    F64(Problem<f64, f64>),
    F32InF64(Problem<f32, f64>),
    F16(Problem<f16, f16>),
    BF16(Problem<bf16, bf16>),
}

/// Kernels to be judged together.
struct Batch {
    gone: Vec<crate::candidate::executable::ArrayKey>,
    new: Vec<crate::candidate::executable::ArrayKey>,
    kernels: Vec<KernelHeader>,
    blobs: Vec<Vec<u8>>,
}

/// The device can no longer be used by this process, because of one of the kernels that were timed.
struct Lost(Outcome);

impl Lost {
    fn while_timing() -> Self {
        Self(Outcome::Faulted { reason: "the device was lost while it was timed".to_owned() })
    }

    fn to_an_opponent() -> Self {
        let reason = "the device was lost while it was made ready".to_owned();
        Self(Outcome::Faulted { reason })
    }
}

/// Tells the worker whose code runs, by which it knows who took this process down.
struct Announcer<'a> {
    client: RefCell<&'a mut Connection<Request, Answer>>,
    stream: &'a Stream,
}

impl<'a> Announcer<'a> {
    fn new(client: &'a mut Connection<Request, Answer>, stream: &'a Stream) -> Self {
        Self { client: RefCell::new(client), stream }
    }

    /// From now on the code of `next` runs. Where the device is lost already, whoever was announced
    /// then stays it.
    fn announce(&self, next: Running) {
        if self.stream.is_broken() {
            return;
        }
        // That the worker is gone shows with the next answer.
        let _ = self.client.borrow_mut().send(&Answer::Running(next), &[]);
    }

    fn announce_opponent(&self, opponent: &Opponent) {
        self.announce(Running::Opponent(Box::new(opponent.clone())));
    }

    /// Says that the device is lost, through whoever was announced last.
    fn lose(&self, Lost(outcome): Lost) -> io::Result<()> {
        self.client.borrow_mut().send(&Answer::Judged { ended: Some(outcome) }, &[])
    }
}

impl Server {
    fn open(ordinal: u32) -> Result<Self, DeviceError> {
        let device = Device::open(ordinal)?;
        device.limit_heap(HEAP_BYTES)?;
        Ok(Self {
            facts: device.facts()?,
            stream: Arc::new(Stream::new(&device)?),
            device,
            oracle: None,
            matrix: None,
            problem: None,
            holdings: Holdings::default(),
            stopwatch: None,
            contest: None,
        })
    }

    fn take_oracle(&mut self, cubin: CubinParts, blobs: Vec<Vec<u8>>) -> Result<(), String> {
        let bytes = blobs.into_iter().next().ok_or("no machine code was sent")?;
        let cubin = Cubin::new(CubinParts { bytes, ..cubin });
        self.oracle = Some(Oracle::load(&self.device, &cubin).map_err(|e| e.to_string())?);
        Ok(())
    }

    fn take_matrix(&mut self, header: &MatrixHeader, blobs: Vec<Vec<u8>>) -> Result<(), String> {
        // Before memory is taken for the next.
        (self.problem, self.matrix, self.holdings) = (None, None, Holdings::default());
        self.matrix = Some(match header.dtype {
            Dtype::F32 => Matrix::F32(Arc::new(read(header, blobs)?)),
            Dtype::F64 => Matrix::F64(Arc::new(read(header, blobs)?)),
            Dtype::F16 => Matrix::F16(Arc::new(read(header, blobs)?)),
            Dtype::BF16 => Matrix::BF16(Arc::new(read(header, blobs)?)),
        });
        Ok(())
    }

    fn take_task(&mut self, task: Task) -> Result<(), String> {
        self.problem = None;
        let (Some(oracle), Some(matrix)) = (&self.oracle, &self.matrix) else {
            return Err("no matrix was sent".to_owned());
        };
        let (device, stream, seed) = (&self.device, &self.stream, fastrand::u64(..));
        let Task { operation, precision, .. } = task;
        let problem = match (matrix.clone(), precision.matrix(), precision.dense()) {
            (Matrix::F32(host), Dtype::F32, Dtype::F32) => {
                Problem::new(device, stream, oracle, host, operation, seed).map(AnyProblem::F32)
            }
            (Matrix::F64(host), Dtype::F64, Dtype::F64) => {
                Problem::new(device, stream, oracle, host, operation, seed).map(AnyProblem::F64)
            }
            (Matrix::F32(host), Dtype::F32, Dtype::F64) => {
                let problem = Problem::new(device, stream, oracle, host, operation, seed);
                problem.map(AnyProblem::F32InF64)
            }
            (Matrix::F16(host), Dtype::F16, Dtype::F16) => {
                Problem::new(device, stream, oracle, host, operation, seed).map(AnyProblem::F16)
            }
            (Matrix::BF16(host), Dtype::BF16, Dtype::BF16) => {
                Problem::new(device, stream, oracle, host, operation, seed).map(AnyProblem::BF16)
            }
            _ => return Err(format!("the matrix that was sent is none for {task}")),
        };
        self.problem = Some(problem.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Judges kernels, with an answer on the way for each. `None` when the device is lost.
    fn judge(
        &mut self,
        batch: Batch,
        protocol: &Protocol,
        (opponents, excluded): (&Opponents, &[Excluded]),
        seed: u64,
        client: &mut Connection<Request, Answer>,
    ) -> io::Result<Option<Answer>> {
        for key in batch.gone {
            self.holdings.remove(key);
        }
        let mut blobs = batch.blobs.into_iter();
        for (key, bytes) in batch.new.iter().zip(blobs.by_ref()) {
            if let Err(error) = self.holdings.add(&self.device, *key, &bytes) {
                return Ok(Some(Answer::Unable { reason: error.to_string() }));
            }
        }
        if self.stopwatch.is_none() {
            match Stopwatch::new(&self.device, &self.stream, &self.facts) {
                Ok(stopwatch) => self.stopwatch = Some(stopwatch),
                Err(error) => return Ok(Some(Answer::Unable { reason: error.to_string() })),
            }
        }
        if protocol.baselines && self.contest.is_none() {
            let announcer = Announcer::new(client, &self.stream);
            let announce = |opponent: &Opponent| announcer.announce_opponent(opponent);
            let (device, stream) = (&self.device, &self.stream);
            self.contest = Some(Contest::open(device, stream, opponents, excluded, &announce));
            if stream.synchronize().is_err() {
                announcer.lose(Lost::to_an_opponent())?;
                return Ok(None);
            }
            announcer.announce(Running::Judge);
        }
        let (Some(oracle), Some(problem), Some(stopwatch)) =
            (&self.oracle, &self.problem, &self.stopwatch)
        else {
            return Ok(Some(Answer::Unable { reason: "no matrix was sent".to_owned() }));
        };
        client.send(&Answer::Done, &[])?;
        let kernels: Vec<_> = batch.kernels.into_iter().zip(blobs).collect();
        let tools = Tools {
            device: &self.device,
            stream: &self.stream,
            oracle,
            holdings: &self.holdings,
            stopwatch,
            contest: self.contest.as_ref().filter(|_| protocol.baselines),
            excluded,
            protocol,
        };
        let random = fastrand::Rng::with_seed(seed);
        match problem {
            AnyProblem::F32(problem) => Judgement { tools, problem, random }.judge(kernels, client),
            AnyProblem::F64(problem) => Judgement { tools, problem, random }.judge(kernels, client),
            AnyProblem::F32InF64(problem) => {
                Judgement { tools, problem, random }.judge(kernels, client)
            }
            AnyProblem::F16(problem) => Judgement { tools, problem, random }.judge(kernels, client),
            AnyProblem::BF16(problem) => {
                Judgement { tools, problem, random }.judge(kernels, client)
            }
        }
    }
}

fn read<T: Scalar>(header: &MatrixHeader, blobs: Vec<Vec<u8>>) -> Result<Csr<T>, String> {
    let [offsets, columns, values] =
        <[Vec<u8>; 3]>::try_from(blobs).map_err(|_| "a matrix has three arrays")?;
    let offsets = match header.wide_offsets {
        false => Offsets::U32(bytemuck::pod_collect_to_vec(&offsets)),
        true => Offsets::U64(bytemuck::pod_collect_to_vec(&offsets)),
    };
    let size = |n: u64| usize::try_from(n).map_err(|e| e.to_string());
    let (columns, values) =
        (bytemuck::pod_collect_to_vec(&columns), bytemuck::pod_collect_to_vec(&values));
    Csr::new(size(header.rows)?, size(header.cols)?, offsets, columns, values)
        .map_err(|e| e.to_string())
}

/// Everything that judging kernels takes, whatever the element types.
#[derive(Clone, Copy)]
struct Tools<'a> {
    device: &'a Device,
    stream: &'a Stream,
    oracle: &'a Oracle,
    holdings: &'a Holdings,
    stopwatch: &'a Stopwatch,
    /// Absent where no baselines are measured.
    contest: Option<&'a Contest>,
    excluded: &'a [Excluded],
    protocol: &'a Protocol,
}

/// The judgement of some kernels.
struct Judgement<'a, A, D> {
    tools: Tools<'a>,
    problem: &'a Problem<A, D>,
    random: fastrand::Rng,
}

/// A kernel that passed its checks.
struct Right {
    kernel: LoadedKernel,
    verified: Verified,
    /// Of the variables that its machine code declares, before it ran.
    state: Vec<u64>,
}

impl<A: Scalar, D: Scalar> Judgement<'_, A, D> {
    fn judge(
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
                    return Ok(Some(Answer::Unable { reason: error.to_string() }));
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
            Err(error) => Ok(Some(Answer::Unable { reason: error.to_string() })),
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
        let mut verified: Vec<Verified> =
            checked.iter().flatten().map(|right| right.verified).collect();
        let mut baselines = self.baselines(announcer);
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
            contenders.push(self.contender(begin, enqueue, Some(verified)));
        }
        let kernels = contenders.len();
        for entry in &baselines {
            let Ok(ready) = &entry.ready else { continue };
            let enqueue = |_: &Stream| ready.enqueue().map_err(refused);
            let begin = || announcer.announce_opponent(&entry.opponent);
            contenders.push(self.contender(begin, enqueue, None));
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

        let mut baseline_timings = timings.split_off(kernels).into_iter();
        let mut timed = timings.into_iter().zip(verified);
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
        let baselines = baselines
            .drain(..)
            .map(|entry| {
                let timing = entry.ready.as_ref().ok().and_then(|_| baseline_timings.next());
                // Its plan is released.
                announcer.announce_opponent(&entry.opponent);
                baseline(entry, timing)
            })
            .collect();
        announcer.announce(Running::Judge);
        let copy_bandwidth = Some(stopwatch.copy_bandwidth());
        Ok(Ok(Evaluation { outcomes, baselines, copy_bandwidth }))
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

    /// Something to be timed. What it finds right is noted in `verified`.
    fn contender<'c>(
        &'c self,
        begin: impl Fn() + 'c,
        enqueue: impl Fn(&Stream) -> Result<(), Stop> + 'c,
        verified: Option<&'c mut Verified>,
    ) -> Box<dyn Contender + 'c> {
        let oracle = self.tools.oracle;
        Box::new(Timed { oracle, problem: self.problem, begin, enqueue, verified })
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

    fn link(&self, stream: &Stream) -> Result<(), Stop> {
        let Operands { input, output } = &self.problem.operands[0];
        Ok(self.oracle.link(stream, output, input)?)
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
