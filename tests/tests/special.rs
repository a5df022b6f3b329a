//! Kernels for the sizes of one matrix alone: that they are right, emulated, and that their machine
//! code is made without a warning. Needs no GPU.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::sync::Arc;
use std::time::Duration;

use sparserl_core::codegen::ArgumentKind;
use sparserl_core::kernel::Kernel;
use sparserl_core::layout::pack;
use sparserl_core::matrix::{Csr, Scalar};
use sparserl_core::with_scalar;
use sparserl_gpu::Architecture;
use sparserl_gpu::candidate::Candidate;
use sparserl_gpu::compile::nvrtc::{CompileOptions, Compilers, Cubin};
use sparserl_gpu::emulated::{EmulationOptions, EmulatorEvaluator};
use sparserl_tests::golden::{self, Golden};

fn made<T: Scalar>(golden: &Golden) -> (Csr<T>, Kernel<Cubin>) {
    let matrix = golden.build::<T>().unwrap();
    let packed = Arc::new(pack(matrix.view(), &golden.program).unwrap());
    let kernel = Kernel::specialised(packed, Duration::ZERO).unwrap();
    (matrix, kernel)
}

fn check<T: Scalar>(golden: &Golden, emulator: &EmulatorEvaluator) {
    let (matrix, kernel) = made::<T>(golden);
    let is_size = |kind| matches!(kind, ArgumentKind::Size(_));
    assert!(!kernel.launch.arguments.iter().any(|argument| is_size(argument.kind)));
    let judged = emulator.judge(matrix.view(), Candidate::Kernel(&kernel)).unwrap();
    assert!(judged.outcome.is_right(), "{}: {}", golden.name, judged.outcome);
    assert!(judged.findings.is_empty(), "{}: {:?}", golden.name, judged.findings);
}

#[test]
fn golden_programs_are_right_for_the_sizes_of_their_matrices() {
    let compilers = Arc::new(Compilers::discover().unwrap());
    let options = EmulationOptions { seeds: 1, checks: 2, ..EmulationOptions::default() };
    let emulator = EmulatorEvaluator::in_process(compilers, Architecture::Sm90, options).unwrap();
    for golden in golden::load().unwrap() {
        with_scalar!(golden.program.task.precision.matrix(), T => check::<T>(&golden, &emulator));
    }
}

#[test]
fn machine_code_is_made_without_a_warning() {
    let compilers = Compilers::discover().unwrap();
    let nvrtc = compilers.for_arch(Architecture::Sm90).unwrap();
    for golden in golden::load().unwrap() {
        let kernel =
            with_scalar!(golden.program.task.precision.matrix(), T => made::<T>(&golden).1);
        let (text, name) = (&kernel.source.text, &kernel.source.kernel);
        let options = CompileOptions::default();
        let cubin = nvrtc.compile(text, name, Architecture::Sm90, &options).unwrap();
        assert!(!cubin.log().contains("warning"), "{}: {}", golden.name, cubin.log());
    }
}
