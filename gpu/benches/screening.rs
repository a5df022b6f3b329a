//! How many programs a second are screened on one GPU, when one in five was never compiled before:
//! what a search or a training run sees. Programs are drawn from the grammar, as the first that a
//! training run collects, or are those that a search asks for, were it told the cost model's times.
//!
//! Run with `cargo bench -p sparserl-gpu --bench screening`. Without a GPU it says so and does
//! nothing. Cubins are kept in a folder of this run only. With `-- --json PATH` each case adds a
//! line of JSON to a file.

// A program of its own: it prints, and stops at the first error.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use sparserl_core::decode::random_walk;
use sparserl_core::language::{Mask, Program};
use sparserl_core::layout::CostModel;
use sparserl_core::matrix::{Csr, generate};
use sparserl_core::pipeline::Maker;
use sparserl_core::random::SplitMix64;
use sparserl_core::search::{Search, SearchSettings};
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_gpu::compile::cache::CubinCache;
use sparserl_gpu::compile::pool::CompilePool;
use sparserl_gpu::evaluator::GpuEvaluator;
use sparserl_gpu::isolate::ServerCommand;
use sparserl_gpu::run::device::Device;
use sparserl_gpu::serve::serve;
use sparserl_gpu::worker::Protocol;

/// Programs of each case that are screened and timed.
const PROGRAMS: usize = 500;
/// One in so many is new.
const NEW: usize = 5;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((first, role)) = words.split_first()
        && first == "serve"
    {
        let served = serve(role);
        return if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Err(absence) = Device::open(0) {
        println!("not measured: {absence}");
        return ExitCode::SUCCESS;
    }
    let path = words.iter().skip_while(|word| *word != "--json").nth(1);
    let append = |path| OpenOptions::new().create(true).append(true).open(path).unwrap();
    measure(path.map(append));
    ExitCode::SUCCESS
}

fn measure(mut lines: Option<File>) {
    let cubins = tempfile::tempdir().unwrap();
    let command = || ServerCommand::this_program(["serve"]).unwrap();
    let cores = thread::available_parallelism().unwrap();
    let pool = CompilePool::start(command(), cores, Some(CubinCache::at(cubins.path()))).unwrap();
    let protocol = Protocol::screening();
    let mut gpu = GpuEvaluator::open(command(), Arc::new(pool), 0, protocol).unwrap();
    println!("{}, {cores} threads, {PROGRAMS} programs, one in {NEW} new", gpu.facts().name);

    let matrices = [
        ("stencil27, 200,000 entries", generate::stencil27(20, 20, 20)),
        ("uniform, 1,000,000 entries", generate::uniform(100_000, 100_000, 10, 1)),
        ("rmat, 1,000,000 entries", generate::rmat(16, 16, 1)),
    ];
    let columns = NonZeroU32::MIN.saturating_add(31);
    for (name, matrix) in matrices {
        let matrix: Csr<f32> = matrix.cast().unwrap();
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        for operation in [Operation::SpMV, Operation::SpMM { columns }] {
            let task = Task::new(operation, Dtype::F32);
            let target = gpu.facts().target;
            let proposed =
                [("drawn", drawn(&stats, task)), ("searched", searched(&stats, task, target))];
            for (source, all) in proposed {
                let (seconds, right) = screen(&mut gpu, &matrix, &all);
                let rate = PROGRAMS as f64 / seconds;
                println!(
                    "{name}, {task}, {source}: {rate:.0} programs/s, {right} of {PROGRAMS} right"
                );
                if let Some(lines) = &mut lines {
                    let (device, task, nnz) = (&gpu.facts().name, task.to_string(), matrix.nnz());
                    let line = json!({
                        "device": device, "threads": cores, "matrix": name, "nnz": nnz,
                        "task": task, "source": source, "programs": PROGRAMS, "new_one_in": NEW,
                        "right": right, "seconds": seconds,
                    });
                    writeln!(lines, "{line}").unwrap();
                }
            }
        }
    }
}

/// Screens programs when all but one in so many are known; gives seconds, and how many are right.
fn screen(gpu: &mut GpuEvaluator, matrix: &Csr<f32>, all: &[Program]) -> (f64, usize) {
    let known = all.iter().enumerate().filter(|(number, _)| number % NEW != 0);
    let known: Vec<Program> = known.map(|(_, program)| program.clone()).collect();
    let compiler = gpu.compiler();
    let maker = || Maker::new(matrix.view(), Some(&compiler), &|| Duration::ZERO);
    maker().judge(&known, gpu).unwrap();
    let start = Instant::now();
    let evaluation = maker().judge(all, gpu).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    (seconds, evaluation.outcomes.iter().filter(|outcome| outcome.is_right()).count())
}

/// Programs at random.
fn drawn(stats: &MatrixStats<'_>, task: Task) -> Vec<Program> {
    let mut random = SplitMix64::new(1);
    let mask = Mask::legal(stats, task);
    (0..PROGRAMS).map(|_| random_walk(mask, &mut random).unwrap()).collect()
}

/// The programs that a search asks for first, each once.
fn searched(stats: &Arc<MatrixStats<'_>>, task: Task, target: Target) -> Vec<Program> {
    let costs = CostModel::new(Arc::clone(stats), task, target);
    let mut search = Search::new(Arc::clone(stats), task, [], SearchSettings::default(), 1);
    let mut programs = Vec::new();
    while programs.len() < PROGRAMS {
        let round = search.ask().unwrap();
        programs.extend(round.programs.iter().filter(|program| !search.knows(program)).cloned());
        let seconds: Vec<_> =
            round.programs.iter().map(|program| Some(costs.cost(program).seconds)).collect();
        search.tell(&round.programs, &seconds);
    }
    programs.truncate(PROGRAMS);
    programs
}
