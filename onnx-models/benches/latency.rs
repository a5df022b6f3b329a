//! How long the policy that is compiled in takes on one core: a greedy decode, and the choice of
//! eight programs by beam and re-ranking.
//!
//! Run with `cargo bench -p sparserl-onnx-models --bench latency`; with `-- LIBRARY`, a
//! `libonnxruntime.so`, it is run by ONNX Runtime.

// A program of its own: it prints, and stops at the first error.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Instant;

use sparserl_core::decode::{Chooser as _, Policy as _, PolicyInput, beam_search};
use sparserl_core::language::Mask;
use sparserl_core::matrix::generate;
use sparserl_core::outcome::Objective;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_onnx_models::chooser::{LearnedChooser, Picking};
use sparserl_onnx_models::speeds::SpeedModel as _;
use sparserl_onnx_models::{Engine, Model, OnnxPolicy, OnnxRuntime};

const REPETITIONS: usize = 31;

fn main() {
    let library = std::env::args().skip(1).find(|word| !word.starts_with("--"));
    let engine = match library {
        Some(library) => Engine::OnnxRuntime(OnnxRuntime::load(library.as_ref()).unwrap()),
        None => Engine::Embedded,
    };
    let model = Model::shipped().unwrap();
    let start = Instant::now();
    let policy = OnnxPolicy::open(&model, &engine).unwrap();
    println!("{}: ready after {:.1} ms", engine.name(), 1e3 * start.elapsed().as_secs_f64());

    let matrix = generate::rmat(14, 12, 1);
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let task = Task::new(Operation::SpMV, Dtype::F64);
    let input = PolicyInput::new(Arc::clone(&stats), task, Target::H200);
    let mask = Mask::legal(&stats, task);
    median("reading the input", || drop(policy.read(&input).unwrap()));
    median("greedy decode", || {
        beam_search(&mut *policy.read(&input).unwrap(), mask, 1).unwrap();
    });
    median("beam of 16, re-ranked", || {
        let mut reading = policy.read_for_speeds(&input).unwrap();
        let found = beam_search(&mut *reading, mask, 16).unwrap();
        let programs: Vec<_> = found.into_iter().map(|found| found.program).collect();
        reading.speeds(&programs).unwrap();
    });
    let chooser = LearnedChooser::new("learned", policy, Picking::RerankedWithCostModel);
    median("choosing eight programs", || {
        chooser.choose(&input, Objective::Both, 8).unwrap();
    });
}

/// Prints the median time of some repetitions, after one that does not count.
fn median(what: &str, mut run: impl FnMut()) {
    run();
    let mut seconds: Vec<f64> = (0..REPETITIONS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!("{what}: {:.2} ms", 1e3 * seconds[REPETITIONS / 2]);
}
