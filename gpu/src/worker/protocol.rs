//! What a worker and its process say to each other.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sparserl_core::outcome::{Evaluation, Outcome};
use sparserl_core::task::{Dtype, Task};

use crate::candidate::executable::{ArrayKey, LaunchTemplate};
use crate::compare::{Excluded, Opponent, Opponents};
use crate::compile::nvrtc::CubinParts;
use crate::run::device::{Clocks, DeviceError, DeviceFacts};

/// The role of a worker's process; the number of the device follows.
pub(crate) const ROLE: &str = "device";

/// How thoroughly kernels are judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protocol {
    /// How often each kernel goes through the checks, each time with inputs of its own. At least 1
    /// is done.
    pub checks: u32,
    /// Samples of launches in a chain. At least 1 is taken.
    pub warm_samples: u32,
    /// Samples with a cold cache.
    pub cold_samples: u32,
    /// Samples of launches with nothing between them.
    pub back_to_back_samples: u32,
    /// Whether the opponents' algorithms are measured in turn with the kernels.
    pub baselines: bool,
    /// Time for the launches that the samples of one regime are about: a kernel that takes long has
    /// fewer samples, at least one.
    pub patience: Duration,
    /// How long a kernel may take for its checks, before allowance for the size of the matrix.
    pub deadline: Duration,
}

impl Protocol {
    /// Everything: for what is reported, and for rewards.
    #[must_use]
    pub fn full() -> Self {
        Self {
            checks: 2,
            warm_samples: 20,
            cold_samples: 20,
            back_to_back_samples: 20,
            baselines: true,
            patience: Duration::from_secs(2),
            deadline: Duration::from_secs(10),
        }
    }

    /// Right or wrong, and about how fast: for search.
    #[must_use]
    pub fn screening() -> Self {
        Self {
            checks: 1,
            warm_samples: 5,
            cold_samples: 0,
            back_to_back_samples: 0,
            baselines: false,
            // The times of slow kernels vary little, and it is the fast ones that are looked for.
            patience: Duration::from_micros(500),
            ..Self::full()
        }
    }

    /// The word for it: `full`, `screening` or `custom`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        // The deadline says how long a kernel may take, not how well it is judged.
        let is = |other: Self| *self == Self { deadline: self.deadline, ..other };
        match () {
            () if is(Self::full()) => "full",
            () if is(Self::screening()) => "screening",
            () => "custom",
        }
    }
}

/// From the worker to its process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// The device code to judge with; its bytes as a blob. Answered by `Done`.
    Oracle { cubin: CubinParts },
    /// A matrix: row offsets, column indices and values as blobs. What was there of another is
    /// gone. Answered by `Done`.
    Matrix(MatrixHeader),
    /// What kernels compute from now on; its precision has the matrix's type. Answered by `Done`,
    /// `Unverifiable` or `NoMemory`.
    Task(Task),
    /// Kernels; the bytes of new arrays and then of their cubins as blobs. Answered by `Done` when
    /// all is ready, by `Judged` for each, in their order, and then by `Evaluated`; between any of
    /// them, `Running` says whose code runs.
    Judge {
        gone: Vec<ArrayKey>,
        new: Vec<ArrayKey>,
        kernels: Vec<KernelHeader>,
        protocol: Protocol,
        opponents: Opponents,
        /// Opponents that are not to run, and why.
        excluded: Vec<Excluded>,
        seed: u64,
    },
}

/// A matrix, but for its arrays.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MatrixHeader {
    pub(crate) rows: u64,
    pub(crate) cols: u64,
    pub(crate) dtype: Dtype,
    pub(crate) wide_offsets: bool,
}

/// A kernel, but for its bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KernelHeader {
    pub(crate) cubin: CubinParts,
    pub(crate) launch: LaunchTemplate,
    pub(crate) arrays: Vec<ArrayKey>,
}

/// From the process to its worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The device is open. Said once, unasked.
    Ready(Box<DeviceFacts>),
    /// What was sent was taken.
    Done,
    /// The device does not allow it.
    Unable { reason: String },
    /// Nothing can be verified on the matrix that was sent.
    Unverifiable { reason: String },
    /// The device has no memory left for so many kernels, or for the operands of the task.
    NoMemory { reason: String },
    /// The next kernel was checked, or all are being timed. Where that left the process in
    /// disorder, this is what became of the kernel, and the process ends.
    Judged { ended: Option<Outcome> },
    /// Whose code runs from now on. If the process is lost now, it is their fault.
    Running(Running),
    /// What became of all kernels.
    Evaluated {
        evaluation: Box<Evaluation>,
        /// Read when the last sample was taken.
        clocks: Option<Clocks>,
    },
}

impl Answer {
    /// What is said of a device that fails while it is to judge.
    pub(crate) fn failed(error: &DeviceError) -> Self {
        let reason = error.to_string();
        match error {
            DeviceError::OutOfMemory { .. } => Self::NoMemory { reason },
            _ => Self::Unable { reason },
        }
    }
}

/// Whose code runs on the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Running {
    /// The judge's own.
    Judge,
    /// That of the kernel in this place of those that are judged.
    Kernel(usize),
    /// An opponent's.
    Opponent(Box<Opponent>),
}
