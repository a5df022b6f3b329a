//! Judging kernels in a worker's process: right ones, ones that cheat, and ones that fail. Without
//! a driver or a GPU every trial but those of `kernels` is reported as ignored, never as passed.
//! Needs NVRTC.
//!
//! The processes run this very program, whose first argument is `serve` then.

mod kernels;

use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use half::{bf16, f16};
use kernels::{BAD, CHEATS, Expected, On, Section, sections};
use libtest_mimic::{Arguments, Failed, Trial};
use sparserl_core::decode::{CostRanker, Policy as _, PolicyInput, beam_search};
use sparserl_core::language::{Mask, Program};
use sparserl_core::matrix::{Csr, Offsets, Scalar, generate};
use sparserl_core::outcome::Outcome;
use sparserl_core::pipeline::Maker;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Precision, Task};
use sparserl_gpu::Architecture;
use sparserl_gpu::candidate::raw::RawKernel;
use sparserl_gpu::compile::nvrtc::CompileOptions;
use sparserl_gpu::compile::pool::{CompilePool, CompileRequest};
use sparserl_gpu::evaluator::GpuEvaluator;
use sparserl_gpu::isolate::ServerCommand;
use sparserl_gpu::run::device::Device;
use sparserl_gpu::serve::serve;
use sparserl_gpu::worker::Protocol;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((first, role)) = words.split_first()
        && first == "serve"
    {
        let served = serve(role);
        return if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let mut arguments = Arguments::from_args();
    // Trials share a device.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials()).exit_code()
}

fn trials() -> Vec<Trial> {
    // A broken driver is no absent one: then the trials run and fail.
    let absent = Device::open(0).is_err_and(|error| error.is_absence());
    let gpu = Arc::new(Gpu::default());
    let on_gpu = |name: &str, check: Check| {
        let gpu = Arc::clone(&gpu);
        Trial::test(name, move || gpu.with(check)).with_ignored_flag(absent)
    };
    let mut trials = vec![
        Trial::test("kernels::listed", every_kernel_is_listed),
        Trial::test("kernels::compile", kernels_compile_as_expected),
        on_gpu("good::programs", Box::new(programs_are_right)),
        on_gpu("good::raw", Box::new(raw_kernels_are_right)),
    ];
    trials.extend(CHEATS.iter().map(|cheat| {
        on_gpu(&format!("cheat::{}", cheat.name), Box::new(|gpu| is_as_expected(gpu, cheat)))
    }));
    trials.push(on_gpu("bad::all", Box::new(all_bad_kernels_fail)));
    trials
}

type Check = Box<dyn FnOnce(&mut GpuEvaluator) -> Result<(), Failed> + Send>;

/// The evaluator that all trials share, there from the first on.
#[derive(Default)]
struct Gpu(Mutex<Option<GpuEvaluator>>);

impl Gpu {
    fn with(&self, check: Check) -> Result<(), Failed> {
        let mut evaluator = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut opened = match evaluator.take() {
            Some(opened) => opened,
            None => {
                let command = ServerCommand::this_program(["serve"])?;
                GpuEvaluator::open(command, Arc::new(compilers()?), 0, Protocol::screening())?
            }
        };
        let checked = check(&mut opened);
        *evaluator = Some(opened);
        checked
    }
}

fn compilers() -> Result<CompilePool, Failed> {
    let processes = thread::available_parallelism()?;
    Ok(CompilePool::start(ServerCommand::this_program(["serve"])?, processes, None)?)
}

/// For kernels that fail: fast, and with little patience.
fn impatient() -> Protocol {
    let seconds = Duration::from_secs;
    Protocol {
        warm_samples: 3,
        patience: seconds(2),
        deadline: seconds(2),
        ..Protocol::screening()
    }
}

/// For kernels that cheat: all checks and both kinds of timing.
fn suspicious() -> Protocol {
    Protocol { warm_samples: 5, cold_samples: 5, baselines: false, ..Protocol::full() }
}

fn matrices() -> Vec<(&'static str, Csr<f64>)> {
    vec![
        ("stencil5", generate::stencil5(61, 47)),
        ("uniform", generate::uniform(3001, 2503, 12, 1)),
        ("rmat", generate::rmat(11, 8, 2)),
        ("fem_blocks", generate::fem_blocks(301, 3, 3)),
        ("one_dense_row", generate::one_dense_row(2003, 1501, 4)),
        ("hyper_sparse", generate::hyper_sparse(5003, 4001, 700, 5)),
        ("banded", generate::banded(2011, 9, 6)),
    ]
}

fn programs_are_right(gpu: &mut GpuEvaluator) -> Result<(), Failed> {
    for protocol in [Protocol::screening(), Protocol::full()] {
        gpu.set_protocol(protocol);
        for (name, matrix) in matrices() {
            for columns in [1, 8, 33] {
                let operation = operation(columns)?;
                let task = |precision| Task::new(operation, Dtype::F32).with_precision(precision);
                let failed = |error: Failed| {
                    let message = error.message().unwrap_or("no reason").to_owned();
                    Failed::from(format!("{name}, {columns} columns: {message}"))
                };
                let single = matrix.cast::<f32>()?;
                for task in [Dtype::F32.into(), Precision::F32_IN_F64].map(task) {
                    program_is_right(gpu, &single, task).map_err(failed)?;
                }
                program_is_right(gpu, &matrix, task(Dtype::F64.into())).map_err(failed)?;
                let half = matrix.cast::<f16>()?;
                program_is_right(gpu, &half, task(Dtype::F16.into())).map_err(failed)?;
                let upper = matrix.cast::<bf16>()?;
                program_is_right(gpu, &upper, task(Dtype::BF16.into())).map_err(failed)?;
            }
        }
    }
    Ok(())
}

/// Judges what the cost model finds best.
fn program_is_right<T: Scalar>(
    gpu: &mut GpuEvaluator,
    matrix: &Csr<T>,
    task: Task,
) -> Result<(), Failed> {
    let input = PolicyInput::new(Arc::new(MatrixStats::new(matrix.view())), task, Target::H200);
    let mask = Mask::legal(&input.stats, task);
    let found = beam_search(&mut *CostRanker.read(&input)?, mask, 4)?;
    let programs: Vec<Program> = found.into_iter().take(2).map(|found| found.program).collect();
    ensure(!programs.is_empty(), "no program was found")?;
    let compiler = gpu.compiler();
    let maker = Maker::new(matrix.view(), Some(&compiler), &|| Duration::ZERO);
    let evaluation = maker.judge(&programs, gpu)?;
    ensure(evaluation.outcomes.len() == programs.len(), "not one outcome for each program")?;
    for (program, outcome) in programs.iter().zip(&evaluation.outcomes) {
        is_right(outcome, gpu.protocol()).map_err(|why| format!("{task}: {why}\n{program}"))?;
    }
    Ok(())
}

fn raw_kernels_are_right(gpu: &mut GpuEvaluator) -> Result<(), Failed> {
    for protocol in [Protocol::screening(), Protocol::full()] {
        gpu.set_protocol(protocol.clone());
        for section in sections(kernels::GOOD) {
            // What a launch of one dimension computes has one column.
            let widths: &[u32] = if section.name == "spmm" { &[1, 8, 33] } else { &[1] };
            for (name, matrix) in matrices() {
                for &columns in widths {
                    let operation = operation(columns)?;
                    let single = Section { text: section.text.clone(), ..section };
                    let double =
                        Section { text: section.text.replace("float", "double"), ..section };
                    let mixed = Section { text: with_values_of_float(&double.text), ..section };
                    let rounded = matrix.cast::<f32>()?;
                    let task = Task::new(operation, Dtype::F32);
                    let in_double = task.with_precision(Precision::F32_IN_F64);
                    for judged in [
                        judge(gpu, &rounded, task, &single)?,
                        judge(gpu, &matrix, task.with_precision(Dtype::F64.into()), &double)?,
                        judge(gpu, &rounded, in_double, &mixed)?,
                    ] {
                        let right = judged.and_then(|outcome| is_right(&outcome, &protocol));
                        let kernel = section.name;
                        right.map_err(|why| {
                            format!("{kernel} on {name}, {columns} columns: {why}")
                        })?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn is_right(outcome: &Outcome, protocol: &Protocol) -> Result<(), String> {
    let Some(measurement) = outcome.measurement() else { return Err(outcome.to_string()) };
    let has_cold = measurement.timing.cold.is_some();
    if measurement.timing.warm.is_none()
        || measurement.timing.back_to_back.is_some() != (protocol.back_to_back_samples > 0)
    {
        return Err(format!("{measurement:?}"));
    }
    let is_thorough = measurement.checks > 4 * protocol.checks;
    if is_thorough && measurement.worst_ratio <= 1.0 && has_cold == (protocol.cold_samples > 0) {
        Ok(())
    } else {
        Err(format!("{measurement:?}"))
    }
}

/// Judges one kernel and then, by the same evaluator, a right one.
fn is_as_expected(gpu: &mut GpuEvaluator, expected: &Expected) -> Result<(), Failed> {
    gpu.set_protocol(suspicious());
    let section = find(kernels::CHEATING, expected.name)?;
    compare(gpu, expected, &section)
}

fn all_bad_kernels_fail(gpu: &mut GpuEvaluator) -> Result<(), Failed> {
    gpu.set_protocol(impatient());
    let mut failures = Vec::new();
    for expected in &BAD {
        let section = find(kernels::FAILING, expected.name)?;
        if let Err(failure) = compare(gpu, expected, &section) {
            failures.push(failure.message().unwrap_or("no reason").to_owned());
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

fn compare(gpu: &mut GpuEvaluator, expected: &Expected, section: &Section) -> Result<(), Failed> {
    let Expected { name, on, words } = *expected;
    let judged = match on {
        On::Float | On::Columns33 | On::Mixed => {
            judge(gpu, &small().cast::<f32>()?, on.task()?, section)
        }
        On::Double => judge(gpu, &small(), on.task()?, section),
        On::Wide => judge(gpu, &wide()?, on.task()?, section),
    };
    let judged = judged.map_err(|e| format!("{name}: {}", e.message().unwrap_or("no reason")))?;
    let (word, detail) = match &judged {
        Ok(outcome) => (word(outcome), outcome.to_string()),
        Err(refusal) => ("refused".to_owned(), refusal.clone()),
    };
    let after =
        judge(gpu, &small().cast::<f32>()?, On::Float.task()?, &find(kernels::GOOD, "scalar")?)?;
    let after = after.map_or_else(|refusal| refusal, |outcome| outcome.word().to_owned());
    let expected = words.join(" or ");
    ensure(
        words.contains(&word.as_str()),
        &format!("{name}: expected {expected}, got {word}: {detail}"),
    )?;
    ensure(after == "measured", &format!("{name}: {word}, but a right kernel after it is {after}"))
}

/// Judges a kernel from one of the files. `Ok(Err(_))` says why it is none.
fn judge<T: Scalar>(
    gpu: &mut GpuEvaluator,
    matrix: &Csr<T>,
    task: Task,
    section: &Section,
) -> Result<Result<Outcome, String>, Failed> {
    let raw = match RawKernel::parse(&section.text, section.sidecar()) {
        Ok(raw) => raw,
        Err(refusal) => return Ok(Err(refusal.to_string())),
    };
    let options = CompileOptions::default();
    let cubin = match gpu.compiler().compile_with(raw.source(), raw.kernel(), &options)? {
        Ok(cubin) => cubin,
        Err(reason) => return Ok(Ok(Outcome::CompileFailed { reason })),
    };
    let executable = match raw.executable(matrix.view(), task, cubin) {
        Ok(executable) => executable,
        Err(refusal) => return Ok(Err(refusal.to_string())),
    };
    let evaluation = gpu.judge(matrix.view(), task, &[executable])?;
    let outcome = evaluation.outcomes.into_iter().next().ok_or("it has no outcome")?;
    Ok(Ok(outcome))
}

/// The outcome's word; for a wrong result, what was wrong.
fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::WrongResult { violation, .. } => violation.to_string().replace(' ', "-"),
        other => other.word().to_owned(),
    }
}

/// 1003 × 997, with empty rows and rows of up to 13 entries. The first and the last row are not
/// empty.
fn small() -> Csr<f64> {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..1003u32 {
        let length = if row % 10 == 3 { 0 } else { 1 + row * 7 % 13 };
        let mut of_row: Vec<u32> = (0..length).map(|i| (row * 31 + i * 83) % 997).collect();
        of_row.sort_unstable();
        values.extend(of_row.iter().map(|&column| (f64::from(column * 17 + row)).sin()));
        columns.extend(of_row);
        offsets.push(columns.len() as u32);
    }
    #[allow(clippy::expect_used)] // Made valid above.
    Csr::new(1003, 997, Offsets::U32(offsets), columns, values).expect("a valid matrix")
}

/// 2¹⁶ rows of 256 entries, each with a column of its own: reading the dense operand takes far
/// longer than a launch.
fn wide() -> Result<Csr<f32>, Failed> {
    let entries = 1u32 << 24;
    let offsets = Offsets::U32((0..=1 << 16).map(|row| row * 256).collect());
    let values = (0..entries).map(|i| (i % 7) as f32 - 2.5).collect();
    Ok(Csr::new(1 << 16, 1 << 24, offsets, (0..entries).collect(), values)?)
}

impl On {
    /// What kernels compute on it.
    fn task(self) -> Result<Task, Failed> {
        Ok(match self {
            Self::Float | Self::Wide => Task::new(operation(1)?, Dtype::F32),
            Self::Double => Task::new(operation(1)?, Dtype::F64),
            Self::Mixed => {
                Task::new(operation(1)?, Dtype::F64).with_precision(Precision::F32_IN_F64)
            }
            Self::Columns33 => Task::new(operation(33)?, Dtype::F32),
        })
    }
}

/// A kernel in double precision with the values of the matrix in single precision.
fn with_values_of_float(text: &str) -> String {
    let declarators = ["* values", "* __restrict__ values", "* vals", "* __restrict__ vals"];
    declarators.iter().fold(text.to_owned(), |text, declarator| {
        text.replace(&format!("double{declarator}"), &format!("float{declarator}"))
    })
}

fn operation(columns: u32) -> Result<Operation, Failed> {
    let columns = NonZeroU32::new(columns).ok_or("no columns")?;
    Ok(if columns.get() == 1 { Operation::SpMV } else { Operation::SpMM { columns } })
}

fn find(file: &'static str, name: &str) -> Result<Section, Failed> {
    let section = sections(file).into_iter().find(|section| section.name == name);
    section.ok_or_else(|| format!("there is no kernel called {name}").into())
}

fn every_kernel_is_listed() -> Result<(), Failed> {
    ensure(BAD.len() == 101, &format!("{} bad kernels", BAD.len()))?;
    let tables = [(kernels::CHEATING, &CHEATS[..]), (kernels::FAILING, &BAD[..])];
    for (file, table) in tables {
        let written: Vec<_> = sections(file).iter().map(|section| section.name).collect();
        let listed: Vec<_> = table.iter().map(|expected| expected.name).collect();
        ensure(written == listed, &format!("written: {written:?}\nlisted: {listed:?}"))?;
    }
    Ok(())
}

/// As far as that can be told without a device: what is refused, what does not compile, and what
/// does.
fn kernels_compile_as_expected() -> Result<(), Failed> {
    let pool = compilers()?;
    let fate = |section: &Section, on: On| -> Result<(&str, String), Failed> {
        let raw = match RawKernel::parse(&section.text, section.sidecar()) {
            Ok(raw) => raw,
            Err(refusal) => return Ok(("refused", refusal.to_string())),
        };
        let (architecture, options) = (Architecture::Sm90, CompileOptions::default());
        let (source, kernel) = (raw.source(), raw.kernel());
        let wanted = CompileRequest::new(source, kernel, architecture.into(), &options);
        let cubin = match pool.compile(wanted) {
            Ok(fetched) => fetched.cubin,
            Err(error) if error.is_sources_fault() => {
                return Ok(("compile-failed", error.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        let executable = match on {
            On::Double => raw.executable(small().view(), on.task()?, cubin),
            On::Columns33 | On::Float | On::Wide | On::Mixed => {
                raw.executable(small().cast::<f32>()?.view(), on.task()?, cubin)
            }
        };
        Ok(executable
            .map_or_else(|refusal| ("refused", refusal.to_string()), |_| ("runs", String::new())))
    };
    let mut failures = Vec::new();
    for section in sections(kernels::GOOD) {
        let double = Section { text: section.text.replace("float", "double"), ..section };
        let mixed = Section { text: with_values_of_float(&double.text), ..section };
        let precisions = [(&section, On::Float), (&double, On::Double), (&mixed, On::Mixed)];
        for (section, on) in precisions {
            let (fate, why) = fate(section, on)?;
            if fate != "runs" {
                failures.push(format!("{} {on:?}: {fate}: {why}", section.name));
            }
        }
    }
    for (file, table) in [(kernels::CHEATING, &CHEATS[..]), (kernels::FAILING, &BAD[..])] {
        for &Expected { name, on, words } in table {
            let (fate, why) = fate(&find(file, name)?, on)?;
            let before_running = ["refused", "compile-failed"];
            let may_run = words.iter().any(|word| !before_running.contains(word));
            if !(words.contains(&fate) || fate == "runs" && may_run) {
                failures
                    .push(format!("{name}: expected {}, got {fate}: {why}", words.join(" or ")));
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

fn ensure(condition: bool, message: &str) -> Result<(), Failed> {
    if condition { Ok(()) } else { Err(message.into()) }
}
