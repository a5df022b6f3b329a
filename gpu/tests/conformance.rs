//! One suite for all who judge: the same candidates, right ones and wrong ones of every kind, must
//! end in the same tier whether a GPU or the emulator says what became of them. Without a driver or
//! a GPU its part is reported as ignored, never as passed. Needs NVRTC.

#[allow(dead_code, reason = "another suite uses the rest")]
mod kernels;

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use sparserl_core::kernel::{Candidate, CudaCompiler as _, Kernel, WriteError};
use sparserl_core::language::Program;
use sparserl_core::matrix::{Csr, generate};
use sparserl_core::outcome::{Evaluator, Outcome, Tier};
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_gpu::Architecture;
use sparserl_gpu::candidate::raw::RawKernel;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::compile::pool::CompilePool;
use sparserl_gpu::emulated::{EmulationOptions, EmulatorEvaluator};
use sparserl_gpu::evaluator::GpuEvaluator;
use sparserl_gpu::isolate::ServerCommand;
use sparserl_gpu::run::device;
use sparserl_gpu::serve::serve;
use sparserl_gpu::worker::Protocol;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((_, role)) = words.split_first().filter(|(first, _)| *first == "serve") {
        return if serve(role).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    // A broken driver is no absent one: then the tests run and fail.
    let absent = device::count().is_err_and(|error| error.is_absence());
    libtest_mimic::run(&Arguments::from_args(), trials(absent)).exit_code()
}

/// A candidate, and how far it must come.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    what: What,
    tier: Tier,
    /// With a judge who sees what a kernel does on the way: what is only wrong elsewhere may be a
    /// fault there.
    seen: Tier,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// The lines of a program after its first two.
    Program(&'static str),
    /// The name of a kernel in a file.
    Cuda(&'static str),
}

const fn program(name: &'static str, body: &'static str, tier: Tier) -> Case {
    Case { name, what: What::Program(body), tier, seen: tier }
}

const fn cuda(file: &'static str, name: &'static str, tier: Tier) -> Case {
    Case { name, what: What::Cuda(file), tier, seen: tier }
}

/// Wrong for who sees the result only, a fault for who sees how it came about.
const fn fault_if_seen(file: &'static str, name: &'static str) -> Case {
    Case { name, what: What::Cuda(file), tier: Tier::Wrong, seen: Tier::Failed }
}

const CASES: [Case; 31] = [
    program(
        "csr",
        "keep csr index=u16 values=plain cache=cached vector=1 lanes=16 unroll=4",
        Tier::Right,
    ),
    program(
        "sell",
        "keep sell height=32 index=u16 values=plain cache=cached vector=1 lanes=4 unroll=4",
        Tier::Right,
    ),
    program(
        "merge",
        "keep merge items=8 index=u16 values=plain cache=cached vector=1 reduction=scan",
        Tier::Right,
    ),
    program(
        "no_such_value",
        "keep csr index=u16 values=constant cache=cached vector=1 lanes=16 unroll=4",
        Tier::NotCompiled,
    ),
    cuda(kernels::GOOD, "scalar", Tier::Right),
    cuda(kernels::GOOD, "shared_of_both_kinds", Tier::Right),
    cuda(kernels::CHEATING, "unwritten_elements", Tier::Wrong),
    fault_if_seen(kernels::CHEATING, "adds_to_what_is_there"),
    cuda(kernels::CHEATING, "constant", Tier::Wrong),
    cuda(kernels::CHEATING, "zero", Tier::Wrong),
    cuda(kernels::CHEATING, "changes_the_input", Tier::Wrong),
    cuda(kernels::CHEATING, "changes_the_values", Tier::Wrong),
    fault_if_seen(kernels::CHEATING, "writes_after_the_output"),
    fault_if_seen(kernels::FAILING, "write_last_of_guard_after_output"),
    fault_if_seen(kernels::FAILING, "read_before_input"),
    cuda(kernels::FAILING, "write_far_after", Tier::Failed),
    cuda(kernels::FAILING, "write_null", Tier::Failed),
    cuda(kernels::FAILING, "read_null", Tier::Failed),
    cuda(kernels::FAILING, "misaligned_vector_read", Tier::Failed),
    cuda(kernels::FAILING, "trap_builtin", Tier::Failed),
    cuda(kernels::FAILING, "hang", Tier::Failed),
    cuda(kernels::FAILING, "hang_in_one_thread", Tier::Failed),
    cuda(kernels::FAILING, "syntax_error", Tier::NotCompiled),
    cuda(kernels::FAILING, "undefined_name", Tier::NotCompiled),
    cuda(kernels::FAILING, "include", Tier::NotCompiled),
    cuda(kernels::FAILING, "templates_without_end", Tier::NotCompiled),
    cuda(kernels::FAILING, "kernel_left_out", Tier::NotCompiled),
    cuda(kernels::FAILING, "first_row_forgotten", Tier::Wrong),
    cuda(kernels::FAILING, "last_entry_forgotten", Tier::Wrong),
    cuda(kernels::FAILING, "slightly_scaled", Tier::Wrong),
    cuda(kernels::FAILING, "nan", Tier::Wrong),
];

fn trials(absent: bool) -> Vec<Trial> {
    let gpu: Arc<Mutex<Option<GpuEvaluator>>> = Arc::default();
    let mut trials = Vec::new();
    for case in CASES {
        let gpu = Arc::clone(&gpu);
        let on_gpu = move || {
            let mut gpu = gpu.lock().unwrap_or_else(PoisonError::into_inner);
            let gpu = match &mut *gpu {
                Some(gpu) => gpu,
                none => none.insert(open_gpu()?),
            };
            let compiler = gpu.compiler();
            judge(gpu, &compiler, case)
        };
        trials.push(Trial::test(format!("gpu::{}", case.name), on_gpu).with_ignored_flag(absent));
        trials.push(Trial::test(format!("emulator::{}", case.name), move || {
            judge(&mut emulator()?, &compiler()?, case)
        }));
    }
    trials
}

/// 300 rows of up to 12 entries, some of them empty; the first and the last are not.
fn matrix() -> Csr<f64> {
    generate::banded(300, 3, 7)
}

fn pool() -> Result<Arc<CompilePool>, Failed> {
    static POOL: Mutex<Option<Arc<CompilePool>>> = Mutex::new(None);
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = &*pool {
        return Ok(Arc::clone(pool));
    }
    let two = NonZeroUsize::MIN.saturating_add(1);
    let started = CompilePool::start(ServerCommand::this_program(["serve"])?, two, None)?;
    let started = Arc::new(started.with_deadline(Duration::from_secs(20)));
    Ok(Arc::clone(pool.insert(started)))
}

fn compiler() -> Result<CubinCompiler, Failed> {
    Ok(CubinCompiler::new(pool()?, Architecture::Sm90, None))
}

fn open_gpu() -> Result<GpuEvaluator, Failed> {
    let protocol = Protocol { deadline: Duration::from_secs(2), ..Protocol::screening() };
    Ok(GpuEvaluator::open(ServerCommand::this_program(["serve"])?, pool()?, 0, protocol)?)
}

fn emulator() -> Result<EmulatorEvaluator, Failed> {
    let options = EmulationOptions {
        seeds: 1,
        checks: 5,
        budget: Some(1 << 20),
        ..EmulationOptions::default()
    };
    Ok(EmulatorEvaluator::open(pool()?, Architecture::Sm90, options)?)
}

fn parse(body: &str) -> Result<Program, Failed> {
    Ok(Program::parse(&format!("sparserl 3\nspmv f32\nblock 128\n{body}\n"))?)
}

/// Judges a case by whoever it is, and sees that it comes as far as it must, and that the judge
/// says what it is able to say.
fn judge<E>(evaluator: &mut E, compiler: &CubinCompiler, case: Case) -> Result<(), Failed>
where
    E: Evaluator<Code = Cubin, Cuda = RawKernel, Error: std::fmt::Display>,
{
    match case.what {
        What::Program(body) => match kernel(compiler, &parse(body)?)? {
            Some(kernel) => judged(evaluator, case, Candidate::Kernel(&kernel)),
            None if case.tier == Tier::NotCompiled => Ok(()),
            None => Err("it does not fit the matrix".into()),
        },
        What::Cuda(file) => {
            let sections = kernels::sections(file).into_iter();
            let section = sections.into_iter().find(|section| section.name == case.name);
            let section = section.ok_or("there is no such kernel")?;
            let kernel = RawKernel::parse(&section.text, section.sidecar())?;
            let task = Task::new(Operation::SpMV, Dtype::F32);
            match compiler.compile_cuda(&kernel)? {
                Ok(cubin) => {
                    let code = Some(&cubin);
                    judged(evaluator, case, Candidate::Cuda { kernel: &kernel, task, code })
                }
                // It compiles for itself, and has to refuse the source as well.
                Err(_) if evaluator.abilities().findings => {
                    judged(evaluator, case, Candidate::uncompiled(&kernel, task))
                }
                Err(_) if case.tier == Tier::NotCompiled => Ok(()),
                Err(reason) => Err(format!("it is refused: {reason}").into()),
            }
        }
    }
}

/// The kernel of a program; nothing where the program does not fit.
fn kernel(compiler: &CubinCompiler, program: &Program) -> Result<Option<Kernel<Cubin>>, Failed> {
    let matrix: Csr<f32> = matrix().cast()?;
    match Kernel::for_matrix(matrix.view(), program) {
        Ok(kernel) => Ok(Some(kernel.compiled(compiler, &|| Duration::ZERO)??)),
        Err(WriteError::Pack(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn judged<E>(
    evaluator: &mut E,
    case: Case,
    candidate: Candidate<'_, Cubin, RawKernel>,
) -> Result<(), Failed>
where
    E: Evaluator<Code = Cubin, Cuda = RawKernel, Error: std::fmt::Display>,
{
    let matrix: Csr<f32> = matrix().cast()?;
    let abilities = evaluator.abilities();
    let judged = evaluator.judge_all(matrix.view(), &[candidate]);
    if candidate.program().is_none() && !abilities.cuda {
        return match judged {
            Err(_) => Ok(()),
            Ok(_) => Err("it judges CUDA, and says that it does not".into()),
        };
    }
    let evaluation = judged.map_err(|error| Failed::from(error.to_string()))?;
    let [outcome] = evaluation.outcomes.as_slice() else {
        return Err(format!("{} outcomes for one candidate", evaluation.outcomes.len()).into());
    };
    let expected = if abilities.findings { case.seen } else { case.tier };
    if outcome.tier() != expected {
        return Err(format!("expected {expected:?}: it {outcome}").into());
    }
    match outcome {
        Outcome::Measured(_) if !abilities.times => {
            Err("it times, and says that it does not".into())
        }
        Outcome::Verified(_) if abilities.times => {
            Err("it does not time, and says that it does".into())
        }
        _ if !abilities.times && !evaluation.baselines.is_empty() => {
            Err("untimed baselines".into())
        }
        _ => Ok(()),
    }
}
