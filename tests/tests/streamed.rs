//! Outputs of SpMM that leave the L2 cache first: which they are, and that they are right,
//! emulated. Needs no GPU.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::sync::Arc;

use half::f16;
use sparserl_core::codegen::ArgumentKind;
use sparserl_core::kernel::Kernel;
use sparserl_core::language::Program;
use sparserl_core::matrix::{Csr, Scalar};
use sparserl_gpu::Architecture;
use sparserl_gpu::candidate::Candidate;
use sparserl_gpu::compile::nvrtc::{Compilers, Cubin};
use sparserl_gpu::emulated::{EmulationOptions, EmulatorEvaluator};
use sparserl_tests::matrices;

fn made<T: Scalar>(rows: usize, cols: usize, task: &str, vector: u32) -> (Csr<T>, Kernel<Cubin>) {
    let matrix: Csr<T> = matrices::build(&format!("uniform {rows} {cols} 3 1")).unwrap();
    let program = Program::parse(&format!(
        "sparserl 7\nspmm {task}\nblock 128\nkeep csr index=u32 values=plain cache=cached \
         vector={vector} lanes=1 unroll=2"
    ))
    .unwrap();
    let kernel = Kernel::for_matrix(matrix.view(), &program).unwrap();
    (matrix, kernel)
}

fn is_streamed(kernel: &Kernel<Cubin>) -> bool {
    let streamed =
        kernel.launch.arguments.iter().find(|argument| argument.name == "C_streamed").unwrap();
    streamed.kind == ArgumentKind::Size(1)
}

/// 32 MiB are 65,536 rows of 128 numbers in single precision.
#[test]
fn an_output_is_streamed_where_it_would_displace_the_input() {
    let columns = |rows, cols, task| is_streamed(&made::<f32>(rows, cols, task, 1).1);
    assert!(!columns(300, 65_235, "128 f32"));
    assert!(columns(300, 65_236, "128 f32"));
    assert!(columns(65_236, 300, "128 f32"));
    assert!(!columns(300, 65_236, "64 f32"));
}

fn check<T: Scalar>(task: &str, cols: usize, vectors: &[u32]) {
    let compilers = Arc::new(Compilers::discover().unwrap());
    let options = EmulationOptions::default();
    let emulator = EmulatorEvaluator::in_process(compilers, Architecture::Sm90, options).unwrap();
    for &vector in vectors {
        let (matrix, kernel) = made::<T>(40, cols, task, vector);
        assert!(is_streamed(&kernel), "{task}, {vector}");
        let judged = emulator.judge(matrix.view(), Candidate::Kernel(&kernel)).unwrap();
        assert!(judged.outcome.is_right(), "{task}, {vector}: {}", judged.outcome);
    }
}

#[test]
fn streamed_outputs_are_right_in_vectors_of_every_width() {
    check::<f32>("512 f32", 16_400, &[1, 2, 4]);
    check::<f64>("512 f64", 8_200, &[1, 2]);
    check::<f16>("512 f16", 32_800, &[1, 2, 4, 8]);
}
