//! Judging kernels in a process of its own, one for each device.
//!
//! ```text
//! Worker (parent) ── matrix and arrays once; machine code ──► ServingProcess (child): judge
//!                 ◄── what became of each kernel ──
//! ```
//!
//! A kernel that faults makes its process unable to use the device; one that does not return can
//! only be ended with its process. Both are outcomes: the child is replaced, and judging goes on
//! with the next kernel. Whatever the new child lacks is sent again. An opponent that takes the
//! child down is left out of the case, and is a baseline with that reason.

mod protocol;
mod server;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use sparserl_core::matrix::{CsrView, OffsetsView, Scalar};
use sparserl_core::outcome::{Evaluation, Outcome};
use sparserl_core::task::{Dtype, Task};

use crate::candidate::executable::{ArrayKey, Executable, distinct_arrays};
use crate::compare::{Excluded, Opponent, Opponents};
use crate::compile::nvrtc::Cubin;
use crate::isolate::{Limits, ServerCommand, ServingError, ServingProcess};
use crate::run::device::{Clocks, DeviceError, DeviceFacts};
use crate::store::fingerprint::content_hash;
pub use protocol::Protocol;
use protocol::{Answer, KernelHeader, MatrixHeader, Request, Running};
pub(crate) use server::serve;

/// How long a process may take to open its device.
const TO_START: Duration = Duration::from_secs(120);
/// How long a process may take to receive what it is sent, and to make it ready.
const TO_PREPARE: Duration = Duration::from_secs(300);
/// No kernel may take longer, whatever the deadline.
const MOST_PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// Bytes of arrays that may stay on the device for later kernels, as a share of its memory.
const KEPT_SHARE: u64 = 4;

/// A process that judges kernels on one device, replaced whenever a kernel takes it down.
#[derive(Debug)]
pub struct Worker {
    command: ServerCommand,
    ordinal: u32,
    facts: DeviceFacts,
    oracle: Cubin,
    opponents: Opponents,
    /// Opponents that took a child down, all in the same case.
    excluded: Vec<Excluded>,
    /// The case that is judged.
    case: Option<CaseKey>,
    clocks: Option<Clocks>,
    child: Option<Child>,
}

/// A matrix, by the hash of its content and its element type, as the hash is the same for all types
/// that hold the values; and a task.
type CaseKey = (MatrixKey, Task);
type MatrixKey = (blake3::Hash, Dtype);

/// A running process, and what it holds.
#[derive(Debug)]
struct Child {
    server: ServingProcess<Request, Answer>,
    matrix: Option<MatrixKey>,
    task: Option<Task>,
    arrays: BTreeSet<ArrayKey>,
    array_bytes: u64,
}

/// Nothing can be said of kernels: what is broken is not them.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The worker says that it cannot go on.
    #[error("the worker for device {ordinal} cannot go on: {reason}")]
    Unable {
        /// Number of the device.
        ordinal: u32,
        /// Why.
        reason: String,
    },
    /// Nothing can be verified on this matrix, as where its results overflow, or where the device
    /// has no memory for the operands of the task; others can be judged.
    #[error("{reason}")]
    Unverifiable {
        /// Why.
        reason: String,
    },
    /// The process cannot be started or talked to.
    #[error("the worker for device {ordinal} failed: {reason}")]
    Process {
        /// Number of the device.
        ordinal: u32,
        /// Why.
        reason: String,
    },
}

/// How a judgement ended early.
enum Interruption {
    /// The child is gone.
    Lost {
        /// Whose code ran.
        running: Running,
        outcome: Outcome,
    },
    /// The device cannot hold all kernels at once.
    NoMemory {
        reason: String,
    },
    /// The device cannot hold the matrix and the operands of the task.
    NoMemoryForTask {
        reason: String,
    },
    Broken(WorkerError),
}

/// What became of kernels so far.
struct Pending {
    outcomes: Vec<Option<Outcome>>,
}

impl Pending {
    fn new(executables: &[Executable]) -> Self {
        Self { outcomes: vec![None; executables.len()] }
    }

    /// Places of the kernels of which nothing is known yet.
    fn open(&self) -> Vec<usize> {
        (0..self.outcomes.len()).filter(|&index| self.outcomes[index].is_none()).collect()
    }

    fn decide(&mut self, index: usize, outcome: Outcome) {
        self.outcomes[index] = Some(outcome);
    }

    /// The evaluation of all, when those that are open were evaluated together.
    fn finish(self, evaluation: Evaluation) -> Evaluation {
        evaluation.among(self.outcomes)
    }
}

impl From<WorkerError> for Interruption {
    fn from(error: WorkerError) -> Self {
        Self::Broken(error)
    }
}

impl Worker {
    /// Starts a process for a device. `oracle` compiles the device code that kernels are judged
    /// with, for the device's architecture.
    ///
    /// # Errors
    /// Without such a device, or when the process does not start.
    pub(crate) fn start<E: From<WorkerError>>(
        command: ServerCommand,
        ordinal: u32,
        oracle: impl FnOnce(&DeviceFacts) -> Result<Cubin, E>,
    ) -> Result<Self, E> {
        let (server, facts) = open(&command, ordinal)?;
        let oracle = oracle(&facts)?;
        let opponents = Opponents::default();
        let mut worker = Self {
            command,
            ordinal,
            facts,
            oracle,
            opponents,
            excluded: Vec::new(),
            case: None,
            clocks: None,
            child: None,
        };
        worker.equip(server)?;
        Ok(worker)
    }

    /// What is known of the device.
    #[must_use]
    pub fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    /// Measures these opponents from now on, in a new process: a library stays loaded in one that
    /// has loaded it.
    pub fn set_opponents(&mut self, opponents: Opponents) {
        self.opponents = opponents;
        self.excluded.clear();
        self.restart();
    }

    /// The device's clocks after the last judgement, where its driver tells them.
    #[must_use]
    pub fn clocks(&self) -> Option<Clocks> {
        self.clocks
    }

    /// Ends the process; the next judgement starts another.
    pub fn restart(&mut self) {
        self.child = None;
    }

    /// Judges kernels of one task for one matrix, whose type is that of the task's precision; one
    /// outcome for each, in their order.
    ///
    /// # Errors
    /// When the device or the process fails for a reason that is not a kernel's.
    pub fn judge<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        task: Task,
        executables: &[Executable],
        protocol: &Protocol,
    ) -> Result<Evaluation, WorkerError> {
        let mut pending = Pending::new(executables);
        let key = (content_hash(matrix), T::DTYPE);
        if self.case.replace((key, task)) != Some((key, task)) && !self.excluded.is_empty() {
            // Who failed in one case may do well in another, with a process that has it loaded.
            self.excluded.clear();
            self.restart();
        }
        // Each turn of this loop without a result decides at least one kernel, excludes an
        // opponent, or is followed by one with a new process.
        loop {
            let open = pending.open();
            let kernels: Vec<&Executable> = open.iter().map(|&i| &executables[i]).collect();
            let fresh = self.child.is_none();
            let interruption = match self.attempt(matrix, key, task, &kernels, protocol) {
                Ok(evaluation) => return Ok(pending.finish(evaluation)),
                // The process is well, and goes on with another matrix.
                Err(Interruption::Broken(error @ WorkerError::Unverifiable { .. })) => {
                    return Err(error);
                }
                Err(interruption) => interruption,
            };
            self.child = None;
            match interruption {
                // A process that served before may have been ended by someone else, and it may hold
                // arrays of kernels that were judged before: once more, with another.
                Interruption::Broken(WorkerError::Process { .. })
                | Interruption::NoMemory { .. }
                | Interruption::NoMemoryForTask { .. }
                    if !fresh => {}
                Interruption::Broken(error) => return Err(error),
                Interruption::NoMemoryForTask { reason } => {
                    return Err(WorkerError::Unverifiable { reason });
                }
                Interruption::NoMemory { reason } => match *open {
                    [] => return Err(WorkerError::Unable { ordinal: self.ordinal, reason }),
                    [index] => pending.decide(index, Outcome::LaunchFailed { reason }),
                    _ => {
                        let mut whole = Evaluation::default();
                        for half in kernels.chunks(kernels.len().div_ceil(2)) {
                            let half: Vec<_> = half.iter().copied().cloned().collect();
                            whole.append(self.judge(matrix, task, &half, protocol)?);
                        }
                        return Ok(pending.finish(whole));
                    }
                },
                Interruption::Lost { running: Running::Opponent(opponent), outcome } => {
                    self.exclude(*opponent, &outcome)?;
                }
                Interruption::Lost { running: Running::Kernel(kernel), outcome } => {
                    let Some(&index) = open.get(kernel) else {
                        let reason = format!("it ran kernel {kernel} of {}", open.len());
                        return Err(WorkerError::Process { ordinal: self.ordinal, reason });
                    };
                    pending.decide(index, outcome);
                }
                Interruption::Lost { running: Running::Judge, outcome } => match *open {
                    [] => {
                        let reason = outcome.to_string();
                        return Err(WorkerError::Process { ordinal: self.ordinal, reason });
                    }
                    // What was found when all had been timed: it is one of them.
                    [index] => pending.decide(index, outcome),
                    // Whoever it was shows alone.
                    _ => {
                        for (&index, kernel) in open.iter().zip(kernels) {
                            let alone = std::slice::from_ref(kernel);
                            let judged = self.judge(matrix, task, alone, protocol)?;
                            judged.outcomes.into_iter().for_each(|o| pending.decide(index, o));
                        }
                    }
                },
            }
        }
    }

    /// Judges kernels in one process.
    fn attempt<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        key: MatrixKey,
        task: Task,
        kernels: &[&Executable],
        protocol: &Protocol,
    ) -> Result<Evaluation, Interruption> {
        if self.child.is_none() {
            let (server, _) = open(&self.command, self.ordinal)?;
            self.equip(server)?;
        }
        self.give_problem(matrix, key, task)?;
        self.request_judgement(kernels, protocol)?;
        self.await_preparation()?;
        let patience = patience(protocol.deadline, matrix.nnz(), task);
        self.await_checks(kernels.len(), patience)?;
        self.await_evaluation(patience)
    }

    /// Waits until the child holds all arrays and has opened the opponents, whose code runs there.
    fn await_preparation(&mut self) -> Result<(), Interruption> {
        let mut running = Running::Judge;
        match self.receive_noting(&mut running, |_| TO_PREPARE) {
            Ok(Answer::Done) => Ok(()),
            Ok(Answer::Judged { ended: Some(outcome) }) => {
                Err(Interruption::Lost { running, outcome })
            }
            Ok(other) => Err(self.interrupted(other)),
            Err(error) if running == Running::Judge => Err(self.failed(&error).into()),
            Err(error) => Err(self.lost(error, running, TO_PREPARE)),
        }
    }

    /// Waits until so many kernels are checked, each of which may take so long.
    fn await_checks(&mut self, kernels: usize, patience: Duration) -> Result<(), Interruption> {
        for kernel in 0..kernels {
            match self.receive(Instant::now() + patience) {
                Ok(Answer::Judged { ended: None }) => {}
                Ok(Answer::Judged { ended: Some(outcome) }) => {
                    return Err(Interruption::Lost { running: Running::Kernel(kernel), outcome });
                }
                Ok(other) => return Err(self.interrupted(other)),
                Err(error) => return Err(self.lost(error, Running::Kernel(kernel), patience)),
            }
        }
        Ok(())
    }

    /// Waits until all is timed. Of a kernel, every sample ends in the time that all checks of it
    /// may take.
    fn await_evaluation(&mut self, patience: Duration) -> Result<Evaluation, Interruption> {
        let patience_with = |running: &Running| match running {
            Running::Kernel(_) => patience,
            Running::Judge | Running::Opponent(_) => patience.max(TO_PREPARE),
        };
        let mut running = Running::Judge;
        match self.receive_noting(&mut running, patience_with) {
            Ok(Answer::Evaluated { evaluation, clocks }) => {
                self.clocks = clocks;
                Ok(*evaluation)
            }
            Ok(Answer::Judged { ended: Some(outcome) }) => {
                Err(Interruption::Lost { running, outcome })
            }
            Ok(other) => Err(self.interrupted(other)),
            Err(error) => {
                let patience = patience_with(&running);
                Err(self.lost(error, running, patience))
            }
        }
    }

    /// Leaves an opponent out of the case, as it took the child down.
    fn exclude(&mut self, opponent: Opponent, outcome: &Outcome) -> Result<(), WorkerError> {
        if self.excluded.iter().any(|excluded| excluded.opponent.source == opponent.source) {
            let Opponent { library, algorithm, .. } = opponent;
            let reason = format!("{library} {algorithm} ran although it is left out: {outcome}");
            return Err(WorkerError::Process { ordinal: self.ordinal, reason });
        }
        self.excluded.push(Excluded { opponent, reason: format!("left out: {outcome}") });
        Ok(())
    }

    /// What the loss of the child says of whatever it was busy with.
    fn lost(&self, error: ServingError, running: Running, patience: Duration) -> Interruption {
        let outcome = match error {
            ServingError::TimedOut => Outcome::TimedOut { seconds: patience.as_secs_f64() },
            error @ ServingError::Died { .. } => Outcome::Faulted { reason: error.to_string() },
            error @ (ServingError::Start { .. } | ServingError::Protocol { .. }) => {
                return Interruption::Broken(self.failed(&error));
            }
        };
        Interruption::Lost { running, outcome }
    }

    fn equip(&mut self, server: ServingProcess<Request, Answer>) -> Result<(), WorkerError> {
        let (matrix, task, arrays) = (None, None, BTreeSet::new());
        self.child = Some(Child { server, matrix, task, arrays, array_bytes: 0 });
        let request = Request::Oracle { cubin: self.oracle.parts().clone() };
        let bytes = self.oracle.bytes().to_vec();
        match self.ask(&request, &[&bytes])? {
            Answer::Done => Ok(()),
            other => Err(self.unexpected(other)),
        }
    }

    /// Sees that the child has the matrix and memory for the task.
    fn give_problem<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        key: MatrixKey,
        task: Task,
    ) -> Result<(), Interruption> {
        let Some(child) = &self.child else { return Ok(()) };
        if child.matrix != Some(key) {
            let (offsets, wide_offsets): (&[u8], bool) = match matrix.offsets() {
                OffsetsView::U32(offsets) => (bytemuck::cast_slice(offsets), false),
                OffsetsView::U64(offsets) => (bytemuck::cast_slice(offsets), true),
            };
            let (rows, cols) = (matrix.rows() as u64, matrix.cols() as u64);
            let header = MatrixHeader { rows, cols, dtype: T::DTYPE, wide_offsets };
            let columns = bytemuck::cast_slice(matrix.columns());
            let values = bytemuck::cast_slice(matrix.values());
            match self.ask(&Request::Matrix(header), &[offsets, columns, values])? {
                Answer::Done => {}
                other => return Err(self.unexpected(other).into()),
            }
            if let Some(child) = &mut self.child {
                child.matrix = Some(key);
                child.task = None;
                child.arrays.clear();
                child.array_bytes = 0;
            }
        }
        if self.child.as_ref().is_some_and(|child| child.task != Some(task)) {
            match self.ask(&Request::Task(task), &[])? {
                Answer::Done => {}
                Answer::NoMemory { reason } => {
                    return Err(Interruption::NoMemoryForTask { reason });
                }
                other => return Err(self.unexpected(other).into()),
            }
            if let Some(child) = &mut self.child {
                child.task = Some(task);
            }
        }
        Ok(())
    }

    /// Sends kernels and those of their arrays that the child does not have.
    fn request_judgement(
        &mut self,
        kernels: &[&Executable],
        protocol: &Protocol,
    ) -> Result<(), WorkerError> {
        let most = self.facts.memory_bytes / KEPT_SHARE;
        let ordinal = self.ordinal;
        let Some(child) = &mut self.child else { return Ok(()) };
        let needed = distinct_arrays(kernels);
        let needed_array = |key: &ArrayKey| needed.iter().find(|array| array.key == *key);
        let bytes =
            |key: &ArrayKey| needed_array(key).map_or(0, |array| array.bytes().len() as u64);
        let new: Vec<_> =
            needed.iter().filter(|array| !child.arrays.contains(&array.key)).collect();
        let new_bytes: u64 = new.iter().map(|array| array.bytes().len() as u64).sum();
        let mut gone = Vec::new();
        if child.array_bytes + new_bytes > most {
            gone = child.arrays.iter().copied().filter(|key| needed_array(key).is_none()).collect();
            child.arrays.retain(|key| !gone.contains(key));
            child.array_bytes = child.arrays.iter().map(bytes).sum();
        }
        child.array_bytes += new_bytes;
        child.arrays.extend(new.iter().map(|array| array.key));

        let mut blobs: Vec<&[u8]> = new.iter().map(|array| array.bytes()).collect();
        blobs.extend(kernels.iter().map(|kernel| kernel.cubin.bytes()));
        let header = |kernel: &&Executable| KernelHeader {
            cubin: kernel.cubin.parts().clone(),
            launch: kernel.launch.clone(),
            arrays: kernel.arrays.iter().map(|array| array.key).collect(),
        };
        let request = Request::Judge {
            gone,
            new: new.iter().map(|array| array.key).collect(),
            kernels: kernels.iter().map(header).collect(),
            protocol: protocol.clone(),
            opponents: self.opponents.clone(),
            excluded: self.excluded.clone(),
            seed: fastrand::u64(..),
        };
        child
            .server
            .send(&request, &blobs, Instant::now() + TO_PREPARE)
            .map_err(|error| WorkerError::Process { ordinal, reason: error.to_string() })
    }

    /// Sends what the child only has to take note of. What it says to that.
    fn ask(&mut self, request: &Request, blobs: &[&[u8]]) -> Result<Answer, WorkerError> {
        let deadline = Instant::now() + TO_PREPARE;
        let ordinal = self.ordinal;
        let failed =
            |error: ServingError| WorkerError::Process { ordinal, reason: error.to_string() };
        if let Some(child) = &mut self.child {
            child.server.send(request, blobs, deadline).map_err(failed)?;
        }
        self.receive(deadline).map_err(failed)
    }

    fn receive(&mut self, deadline: Instant) -> Result<Answer, ServingError> {
        match &mut self.child {
            Some(child) => Ok(child.server.receive(deadline)?.0),
            None => Err(ServingError::Protocol { reason: "it is not running".to_owned() }),
        }
    }

    /// The next answer that does not only say whose code runs, which is noted in `running`. Whoever
    /// runs may take as long as `patience` says of them.
    fn receive_noting(
        &mut self,
        running: &mut Running,
        patience: impl Fn(&Running) -> Duration,
    ) -> Result<Answer, ServingError> {
        loop {
            match self.receive(Instant::now() + patience(running))? {
                Answer::Running(next) => *running = next,
                answer => return Ok(answer),
            }
        }
    }

    fn interrupted(&self, answer: Answer) -> Interruption {
        match answer {
            Answer::NoMemory { reason } => Interruption::NoMemory { reason },
            other => Interruption::Broken(self.unexpected(other)),
        }
    }

    fn unexpected(&self, answer: Answer) -> WorkerError {
        let reason = match answer {
            Answer::Unverifiable { reason } => return WorkerError::Unverifiable { reason },
            Answer::Unable { reason } | Answer::NoMemory { reason } => reason,
            other => format!("it gave an answer to another question: {other:?}"),
        };
        WorkerError::Unable { ordinal: self.ordinal, reason }
    }

    fn failed(&self, error: &ServingError) -> WorkerError {
        WorkerError::Process { ordinal: self.ordinal, reason: error.to_string() }
    }
}

/// How long the checks of a kernel may take. Nothing but the judge's own depends on the size, and
/// that takes far less than what is allowed for it.
fn patience(deadline: Duration, nnz: usize, task: Task) -> Duration {
    let size = (nnz as u64).saturating_mul(u64::from(task.operation.columns()));
    let allowance = Duration::from_nanos(size.saturating_mul(20));
    deadline.saturating_add(allowance).min(MOST_PATIENCE)
}

/// Starts a process and waits until it has opened the device.
fn open(
    command: &ServerCommand,
    ordinal: u32,
) -> Result<(ServingProcess<Request, Answer>, DeviceFacts), WorkerError> {
    let failed = |error: ServingError| WorkerError::Process { ordinal, reason: error.to_string() };
    let number = ordinal.to_string();
    let mut server = ServingProcess::start(command, &[protocol::ROLE, &number], Limits::default())
        .map_err(failed)?;
    match server.receive(Instant::now() + TO_START).map_err(failed)? {
        (Answer::Ready(facts), _) => Ok((server, *facts)),
        (Answer::Unable { reason }, _) => Err(WorkerError::Unable { ordinal, reason }),
        (other, _) => {
            let reason = format!("it began with {other:?}");
            Err(WorkerError::Process { ordinal, reason })
        }
    }
}
