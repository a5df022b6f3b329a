//! The process behind a worker.

mod announcer;
mod judge;

use std::io;
use std::sync::Arc;

use half::{bf16, f16};
use sparserl_core::matrix::{Csr, Offsets, Scalar};
use sparserl_core::task::{Dtype, Task};

use super::protocol::{Answer, KernelHeader, MatrixHeader, Protocol, Request, Running};
use crate::candidate::executable::ArrayKey;
use crate::compare::{Contest, Excluded, Opponent, Opponents};
use crate::compile::nvrtc::{Cubin, CubinParts};
use crate::isolate::Connection;
use crate::judge::{Holdings, Oracle, Problem, ProblemError, Stopwatch};
use crate::run::device::{Device, DeviceError, DeviceFacts, Stream};
use announcer::{Announcer, Lost};
use judge::{Judge, Tools};

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
            Request::Oracle { cubin } => unable(server.take_oracle(cubin, blobs)),
            Request::Matrix(header) => unable(server.take_matrix(&header, blobs)),
            Request::Task(task) => match server.take_task(task) {
                Ok(()) => Answer::Done,
                Err(refusal) => refusal,
            },
        };
        client.send(&answer, &[])?;
    }
    Ok(())
}

fn unable(taken: Result<(), String>) -> Answer {
    match taken {
        Ok(()) => Answer::Done,
        Err(reason) => Answer::Unable { reason },
    }
}

/// What is said of a task that kernels cannot be judged for.
fn refused(error: &ProblemError) -> Answer {
    match error {
        ProblemError::Device(error) => Answer::failed(error),
        // What is broken is the device, or what judges.
        ProblemError::Oracle { .. } => Answer::Unable { reason: error.to_string() },
        ProblemError::Range { .. } | ProblemError::Shape(_) | ProblemError::Matrix(_) => {
            Answer::Unverifiable { reason: error.to_string() }
        }
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
    gone: Vec<ArrayKey>,
    new: Vec<ArrayKey>,
    kernels: Vec<KernelHeader>,
    blobs: Vec<Vec<u8>>,
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

    /// Takes the operands' memory; the error is what is answered where that fails.
    fn take_task(&mut self, task: Task) -> Result<(), Answer> {
        self.problem = None;
        let (Some(oracle), Some(matrix)) = (&self.oracle, &self.matrix) else {
            return Err(Answer::Unable { reason: "no matrix was sent".to_owned() });
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
            _ => {
                let reason = format!("the matrix that was sent is none for {task}");
                return Err(Answer::Unable { reason });
            }
        };
        self.problem = Some(problem.map_err(|error| refused(&error))?);
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
                return Ok(Some(Answer::failed(&error)));
            }
        }
        if self.stopwatch.is_none() {
            match Stopwatch::new(&self.device, &self.stream, &self.facts) {
                Ok(stopwatch) => self.stopwatch = Some(stopwatch),
                Err(error) => return Ok(Some(Answer::failed(&error))),
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
            AnyProblem::F32(problem) => Judge { tools, problem, random }.judge(kernels, client),
            AnyProblem::F64(problem) => Judge { tools, problem, random }.judge(kernels, client),
            AnyProblem::F32InF64(problem) => {
                Judge { tools, problem, random }.judge(kernels, client)
            }
            AnyProblem::F16(problem) => Judge { tools, problem, random }.judge(kernels, client),
            AnyProblem::BF16(problem) => Judge { tools, problem, random }.judge(kernels, client),
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
