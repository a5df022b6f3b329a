//! What needs no GPU to judge kernels.

use std::cell::Cell;
use std::rc::Rc;

use sparserl_core::kernel::Candidate;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{
    Abilities, Baseline, Evaluation, Evaluator, Measurement, Outcome, Samples, Timing, Violation,
};
use sparserl_core::results::ValueSource;
use sparserl_core::target::Target;
use sparserl_gpu::candidate::raw::RawKernel;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::nvrtc::{Cubin, Version};
use sparserl_gpu::run::device::{Clocks, DeviceFacts};
use sparserl_gpu::store::recording::Context;
use sparserl_gpu::worker::Protocol;

use crate::instrument::{Broken, Instrument};

/// Says of each CUDA kernel what its source says after `// fake:`, and of each program that it
/// is right in as many microseconds as its blocks have threads. The library takes 100 µs
/// unasked, and 80 µs at best; with a cold cache, everything takes twice as long.
pub(crate) struct FakeJudge {
    pub(crate) device: DeviceFacts,
    /// Kernels judged so far.
    pub(crate) judged: Rc<Cell<usize>>,
    pub(crate) baselines: bool,
    /// Why one of the library's algorithms did not run.
    pub(crate) not_run: &'static str,
}

impl FakeJudge {
    pub(crate) fn new() -> Self {
        let device = DeviceFacts {
            name: "Fake".to_owned(),
            driver: (13, 0),
            memory_bytes: 1 << 30,
            target: Target::H200,
        };
        Self { device, judged: Rc::default(), baselines: true, not_run: "not supported" }
    }

    fn evaluation(&self, outcomes: Vec<Outcome>) -> Evaluation {
        self.judged.update(|judged| judged + outcomes.len());
        let baseline = |name: &str, timing| Baseline {
            library: "cuSPARSE 12.9.4".to_owned(),
            algorithm: name.to_owned(),
            is_default: name == "DEFAULT",
            analysis_seconds: 0.0,
            buffer_bytes: 0,
            timing,
        };
        let mut baselines = vec![
            baseline("DEFAULT", Ok(timing(100.0))),
            baseline("CSR_ALG1", Err(self.not_run.to_owned())),
            baseline("CSR_ALG2", Ok(timing(80.0))),
        ];
        baselines.retain(|_| self.baselines);
        Evaluation { outcomes, baselines, copy_bandwidth: Some(4e12) }
    }
}

fn timing(micros: f64) -> Timing {
    let samples = |s: f64| Samples::try_from(vec![s * 1e-6]).unwrap();
    Timing {
        cold: Some(samples(2.0 * micros)),
        warm: Some(samples(micros)),
        back_to_back: Some(samples(0.9 * micros)),
    }
}

pub(crate) fn right(micros: f64) -> Outcome {
    let timing = timing(micros);
    Outcome::Measured(Measurement { checks: 4, worst_ratio: 0.25, timing })
}

/// A CUDA kernel that turns out to be what is said.
pub(crate) fn cuda(said: &str) -> String {
    format!(
        "// launch: <<<1, 1>>>\n// fake: {said}\nextern \"C\" __global__ void spmv(const int* row_ptr, \
         const int* col_idx, const float* values, const float* x, float* y, int num_rows) {{}}\n"
    )
}

fn outcome_of(source: &str) -> Result<Outcome, Broken> {
    let said = source.split("// fake: ").nth(1).unwrap().lines().next().unwrap();
    let reason = "as told".to_owned();
    Ok(match said {
        "broken" => return Err(Broken("the GPU is gone")),
        "compile" => Outcome::CompileFailed { reason },
        "launch" => Outcome::LaunchFailed { reason },
        "fault" => Outcome::Faulted { reason },
        "wrong" => Outcome::WrongResult { violation: Violation::Inexact, reason },
        "hang" => Outcome::TimedOut { seconds: 10.0 },
        micros => right(micros.parse().unwrap()),
    })
}

impl Evaluator for FakeJudge {
    type Code = Cubin;
    type Cuda = RawKernel;
    type Error = Broken;

    fn abilities(&self) -> Abilities {
        Abilities { times: true, findings: false, cuda: true, protocol: "full".to_owned() }
    }

    fn judge_all<T: Scalar>(
        &mut self,
        _: CsrView<'_, T>,
        candidates: &[Candidate<'_, Cubin, RawKernel>],
    ) -> Result<Evaluation, Self::Error> {
        let outcome = |candidate: &Candidate<'_, _, RawKernel>| match candidate {
            Candidate::Kernel(kernel) => {
                Ok(right(f64::from(kernel.packed.program.block.threads())))
            }
            Candidate::Cuda { kernel, .. } => outcome_of(kernel.source()),
        };
        let outcomes: Result<_, _> = candidates.iter().map(outcome).collect();
        Ok(self.evaluation(outcomes?))
    }
}

impl Instrument for FakeJudge {
    fn device(&self) -> DeviceFacts {
        self.device.clone()
    }

    fn compiler(&self) -> Option<CubinCompiler> {
        None
    }

    fn clocks(&self) -> Option<Clocks> {
        None
    }

    fn context(&self, value_source: ValueSource) -> anyhow::Result<Context> {
        let nvrtc = Version { major: 13, minor: 0 };
        Ok(Context { device: self.device(), nvrtc, protocol: "full".to_owned(), value_source })
    }

    fn set_protocol(&mut self, _: Protocol) {}

    fn restart(&mut self) {}
}
