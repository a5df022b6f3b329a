//! Writes a part of a store with an outcome of every kind into the folder given: the seed of the
//! target `recording`, to be made anew when the columns change.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use sparserl_core::arbitrary::free_program;
use sparserl_core::matrix::generate::uniform;
use sparserl_core::outcome::{Baseline, Evaluation, Measurement, Outcome, Timing, Violation};
use sparserl_core::results::ValueSource;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_gpu::compile::nvrtc::Version;
use sparserl_gpu::run::device::DeviceFacts;
use sparserl_gpu::store::fingerprint::identity;
use sparserl_gpu::store::recording::{Context, Recorder};

fn main() {
    let folder = std::env::args_os().nth(1).expect("name a folder");
    let task = Task::new(Operation::SpMV, Dtype::F32);
    let samples = |seconds: &[f64]| seconds.to_vec().try_into().unwrap();
    let timing = Timing {
        cold: Some(samples(&[3e-5])),
        warm: Some(samples(&[1e-5, 2e-5])),
        back_to_back: Some(samples(&[9e-6])),
    };
    let reason = || "why".to_owned();
    let measured = Measurement { checks: 3, worst_ratio: 0.5, timing: timing.clone() };
    let outcomes = vec![
        Outcome::Measured(measured),
        Outcome::CompileFailed { reason: reason() },
        Outcome::LaunchFailed { reason: reason() },
        Outcome::Faulted { reason: reason() },
        Outcome::WrongResult { violation: Violation::Inexact, reason: reason() },
        Outcome::TimedOut { seconds: 1.0 },
    ];
    let baseline = |timing| Baseline {
        library: "cuSPARSE 12.9.4".into(),
        algorithm: "DEFAULT".into(),
        is_default: true,
        analysis_seconds: 1e-3,
        buffer_bytes: 8,
        timing,
    };
    let baselines = vec![baseline(Ok(timing)), baseline(Err(reason()))];
    let programs: Vec<_> = (0..outcomes.len() as u64).map(|i| free_program(task, i)).collect();
    let evaluation = Evaluation { outcomes, baselines, copy_bandwidth: Some(4e12) };
    let device = DeviceFacts {
        name: "a device".into(),
        driver: (13, 0),
        memory_bytes: 1 << 37,
        target: Target::H200,
    };
    let nvrtc = Version { major: 12, minor: 9 };
    let value_source = ValueSource::Random;
    let context = Context { device, nvrtc, protocol: "full".into(), value_source };
    let as_read = uniform(4, 4, 2, 1);
    let identity = identity("a matrix", as_read.view());
    let mut recorder = Recorder::append_to(folder).unwrap();
    recorder.record::<f32>(&identity, &programs, &evaluation, &context).unwrap();
    recorder.flush().unwrap();
}
