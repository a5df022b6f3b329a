//! Who judges kernels of both kinds.

use std::time::Instant;

use anyhow::Result;
use sparserl_core::kernel::Candidate;
use sparserl_core::language::Program;
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Evaluation, Evaluator};
use sparserl_core::pipeline::Maker;
use sparserl_core::results::ValueSource;
use sparserl_core::task::Task;
use sparserl_gpu::candidate::raw::RawKernel;
use sparserl_gpu::evaluator::GpuEvaluator;
use sparserl_gpu::run::device::DeviceFacts;
use sparserl_gpu::store::recording::Context;

use crate::args::JudgingArgs;
use crate::{gpu, recordings};

/// Judges kernels for a matrix, and measures the library beside them.
pub(crate) trait Judge {
    /// On what.
    fn device(&self) -> &DeviceFacts;

    /// What evaluations of programs are made with.
    fn context(&self) -> Result<Context>;

    /// Judges programs of one task; one outcome for each, in their order.
    fn programs<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        programs: &[Program],
    ) -> Result<Evaluation>;

    /// Judges CUDA kernels, timed in turn with one another; one outcome for each, in their order.
    fn cuda<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        task: Task,
        kernels: &[&RawKernel],
    ) -> Result<Evaluation>;
}

/// Judges on a GPU.
pub(crate) struct GpuJudge {
    evaluator: GpuEvaluator,
}

/// Opens the GPU that was asked for.
pub(crate) fn open(args: &JudgingArgs) -> Result<GpuJudge> {
    let compilers = gpu::compilers()?;
    let evaluator =
        gpu::open(&compilers, args.device, args.protocol(), args.opponents.opponents()?)?;
    Ok(GpuJudge { evaluator })
}

impl Judge for GpuJudge {
    fn device(&self) -> &DeviceFacts {
        self.evaluator.facts()
    }

    fn context(&self) -> Result<Context> {
        recordings::context(&self.evaluator, ValueSource::File)
    }

    fn programs<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        programs: &[Program],
    ) -> Result<Evaluation> {
        let (start, compiler) = (Instant::now(), self.evaluator.compiler());
        let clock = || start.elapsed();
        Ok(Maker::new(matrix, Some(&compiler), &clock).judge(programs, &mut self.evaluator)?)
    }

    fn cuda<T: Scalar>(
        &mut self,
        matrix: CsrView<'_, T>,
        task: Task,
        kernels: &[&RawKernel],
    ) -> Result<Evaluation> {
        let candidates = kernels.iter().map(|&kernel| Candidate::Cuda(kernel, task));
        Ok(self.evaluator.judge_all(matrix, &candidates.collect::<Vec<_>>())?)
    }
}

#[cfg(test)]
pub(crate) mod fake {
    //! A judge that needs no GPU.

    use std::cell::Cell;
    use std::rc::Rc;

    use anyhow::bail;
    use sparserl_core::outcome::{Baseline, Measurement, Outcome, Samples, Timing, Violation};
    use sparserl_core::target::Target;

    use super::*;

    /// Says of each CUDA kernel what its source says after `// fake:`, and of each program that it
    /// is right in as many microseconds as its blocks have threads. The library takes 100 µs
    /// unasked, and 80 µs at best; with a cold cache, everything takes twice as long.
    pub(crate) struct FakeJudge {
        pub(crate) device: DeviceFacts,
        /// Kernels judged so far.
        pub(crate) judged: Rc<Cell<usize>>,
        pub(crate) baselines: bool,
    }

    impl FakeJudge {
        pub(crate) fn new() -> Self {
            let device = DeviceFacts {
                name: "Fake".to_owned(),
                driver: (13, 0),
                memory_bytes: 1 << 30,
                target: Target::H200,
            };
            Self { device, judged: Rc::default(), baselines: true }
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
                baseline("CSR_ALG1", Err("not supported".to_owned())),
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

    fn outcome_of(source: &str) -> Result<Outcome> {
        let said = source.split("// fake: ").nth(1).unwrap().lines().next().unwrap();
        let reason = "as told".to_owned();
        Ok(match said {
            "broken" => bail!("the GPU is gone"),
            "compile" => Outcome::CompileFailed { reason },
            "launch" => Outcome::LaunchFailed { reason },
            "fault" => Outcome::Faulted { reason },
            "wrong" => Outcome::WrongResult { violation: Violation::Inexact, reason },
            "hang" => Outcome::TimedOut { seconds: 10.0 },
            micros => right(micros.parse().unwrap()),
        })
    }

    impl Judge for FakeJudge {
        fn device(&self) -> &DeviceFacts {
            &self.device
        }

        fn context(&self) -> Result<Context> {
            let nvrtc = sparserl_gpu::compile::nvrtc::Version { major: 13, minor: 0 };
            Ok(Context {
                device: self.device.clone(),
                nvrtc,
                protocol: "full".to_owned(),
                value_source: ValueSource::File,
            })
        }

        fn programs<T: Scalar>(
            &mut self,
            _: CsrView<'_, T>,
            programs: &[Program],
        ) -> Result<Evaluation> {
            let micros = programs.iter().map(|program| f64::from(program.block.threads()));
            let outcomes = micros.map(right).collect();
            Ok(self.evaluation(outcomes))
        }

        fn cuda<T: Scalar>(
            &mut self,
            _: CsrView<'_, T>,
            _: Task,
            kernels: &[&RawKernel],
        ) -> Result<Evaluation> {
            let outcomes: Result<_> = kernels.iter().map(|k| outcome_of(k.source())).collect();
            Ok(self.evaluation(outcomes?))
        }
    }
}
