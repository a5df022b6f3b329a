//! The emulator against a real device: the same source, the same inputs, and results that are equal
//! to the last bit. Without a driver or a GPU every test is reported as ignored, never as passed.
//!
//! | variable | what |
//! |---|---|
//! | `SPARSERL_EMULATED_CASES` | random legal programs, each for a random matrix; 100 unless given |
//! | `SPARSERL_REPORT` | file for a report as JSON |

#[allow(dead_code, reason = "another suite uses the rest")]
mod case;

use std::collections::BTreeMap;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde::Serialize;
use sparserl_core::arbitrary::{self, random_bits};
use sparserl_core::codegen::{self, ArgumentKind, CudaSource, emit};
use sparserl_core::layout::{ElementType, LinearGeometry, Packed, pack};
use sparserl_core::matrix::Scalar;
use sparserl_emulator::launch::{Argument, Launch, Options};
use sparserl_emulator::machine::run;
use sparserl_emulator::memory::Memory;
use sparserl_emulator::ptx::Module;
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::nvrtc::{CompileOptions, Compilers, Cubin, Nvrtc};
use sparserl_gpu::run::device::{Device, poison};

use case::{CaseArgument, run_case};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // A broken driver is no absent one: then the tests run and fail.
    let absent = Device::open(0).is_err_and(|error| error.is_absence());
    let trials = vec![
        Trial::test("same_bits", same_bits).with_ignored_flag(absent),
        Trial::test("a_hundred_kernels_in_one_module", linked).with_ignored_flag(absent),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// What is written to `SPARSERL_REPORT`.
#[derive(Serialize)]
struct Report {
    device: String,
    nvrtc: String,
    cases: usize,
    /// Cases whose buffers are all equal to the last bit.
    equal: usize,
    /// The others.
    unequal: Vec<Unequal>,
}

#[derive(Serialize)]
struct Unequal {
    case: usize,
    program: String,
    what: String,
}

/// A program, compiled and packed, with all arguments of one launch.
struct Prepared {
    program: String,
    source: CudaSource,
    geometry: LinearGeometry,
    names: Vec<String>,
    ptx: String,
    cubin: Cubin,
    arguments: Vec<Bytes>,
}

/// An argument's bytes.
enum Bytes {
    Input(Vec<u8>),
    Output(Vec<u8>),
    Value(Vec<u8>),
}

fn same_bits() -> Result<(), Failed> {
    let cases = match std::env::var("SPARSERL_EMULATED_CASES") {
        Ok(text) => text.parse()?,
        Err(_) => 100,
    };
    let device = Device::open(0)?;
    let architecture = device.architecture()?;
    let compilers = Compilers::discover()?;
    let nvrtc = compilers.for_device(architecture, device.driver_version()?.0)?;
    let mut report = Report {
        device: device.name()?,
        nvrtc: nvrtc.version().to_string(),
        cases,
        equal: 0,
        unequal: Vec::new(),
    };
    for case in 0..cases {
        let prepared = match case % 2 {
            0 => prepare::<f32>(case, nvrtc, architecture)?,
            _ => prepare::<f64>(case, nvrtc, architecture)?,
        };
        let emulated = emulate(&prepared, case as u64 % 4)?;
        let ran = run_on(&device, &prepared)?;
        let unlike = emulated.iter().zip(&ran).find(|(emulated, ran)| emulated != ran);
        match unlike {
            None => report.equal += 1,
            Some((emulated, ran)) => {
                let at = emulated.iter().zip(ran).position(|(a, b)| a != b).unwrap_or(0) / 4 * 4;
                let word = |bytes: &[u8]| bytes.get(at..at + 4).map(<[u8]>::to_vec);
                let what = format!("byte {at}: {:x?} and {:x?}", word(emulated), word(ran));
                report.unequal.push(Unequal { case, program: prepared.program, what });
            }
        }
    }
    if let Ok(path) = std::env::var("SPARSERL_REPORT") {
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    match report.unequal.first() {
        None => Ok(()),
        Some(Unequal { case, program, what }) => {
            let count = report.unequal.len();
            Err(format!("{count} of {cases} differ; case {case}: {what}\n{program}").into())
        }
    }
}

/// Kernels of a hundred random programs, compiled as one source and launched from one module, leave
/// what the emulator leaves.
fn linked() -> Result<(), Failed> {
    let device = Device::open(0)?;
    let architecture = device.architecture()?;
    let compilers = Compilers::discover()?;
    let nvrtc = compilers.for_device(architecture, device.driver_version()?.0)?;
    let mut kernels = BTreeMap::new();
    for case in 0..1000 {
        let prepared = match case % 2 {
            0 => prepare::<f32>(case, nvrtc, architecture)?,
            _ => prepare::<f64>(case, nvrtc, architecture)?,
        };
        kernels.insert(prepared.source.kernel.clone(), prepared);
        if kernels.len() == 100 {
            break;
        }
    }
    if kernels.len() < 100 {
        return Err(format!("only {} different kernels", kernels.len()).into());
    }
    let text: String = kernels.values().map(|prepared| prepared.source.text.as_str()).collect();
    let first = kernels.keys().next().ok_or("no kernels")?;
    let options = CompileOptions::generated();
    let linked = nvrtc.compile(&text, first, architecture, &options)?;
    for (name, mut prepared) in kernels {
        prepared.cubin = linked.with_kernel(&name).ok_or_else(|| format!("{name} is lost"))?;
        let emulated = emulate(&prepared, 0)?;
        if emulated != run_on(&device, &prepared)? {
            return Err(format!("{name} differs\n{}", prepared.program).into());
        }
    }
    Ok(())
}

/// A random matrix and a legal program for it, with random operands; α and β are sometimes 0 and 1.
fn prepare<T: Scalar>(
    case: usize,
    nvrtc: &Nvrtc,
    architecture: Architecture,
) -> Result<Prepared, Failed> {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&(case as u64).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = arbitrary::case::<T>(700, 700, 5000);
    let arbitrary::Case { matrix, program } = strategy.new_tree(&mut runner)?.current();
    let packed = pack(matrix.view(), &program)?;
    let source = emit(&packed.program, &packed.signature())?;
    let lines = CompileOptions { line_information: true, ..CompileOptions::generated() };
    let ptx = nvrtc.compile_ptx(&source.text, &source.kernel, architecture, &lines)?;
    let options = CompileOptions::generated();
    let cubin = nvrtc.compile(&source.text, &source.kernel, architecture, &options)?;
    let geometry = packed.geometry;
    let names = source.parameters.iter().map(|parameter| parameter.name.clone()).collect();
    let all = source.launch(&packed)?.arguments;
    let arguments = arguments::<T>(&all, packed, case as u64);
    let program = program.to_string();
    Ok(Prepared { program, source, geometry, names, ptx, cubin, arguments })
}

fn arguments<T: Scalar>(all: &[codegen::Argument], packed: Packed, seed: u64) -> Vec<Bytes> {
    let mut random = random_bits(seed);
    let mut number = move || T::from_f64((random() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0);
    let factor = |choice: u64, random: T| match choice % 3 {
        0 => T::from_f64(0.0),
        1 => T::from_f64(1.0),
        _ => random,
    };
    let (alpha, beta) = (factor(seed / 7 + 1, number()), factor(seed, number()));
    let mut arrays = packed.parts.into_iter().flat_map(|part| part.arrays);
    let mut numbers = |len: usize| {
        let numbers: Vec<T> = (0..len).map(|_| number()).collect();
        bytemuck::cast_slice(&numbers).to_vec()
    };
    let own = all.iter().map(|argument| match argument.kind {
        ArgumentKind::Input => Bytes::Input(numbers(argument.len)),
        ArgumentKind::Output if seed.is_multiple_of(3) => {
            Bytes::Output(poison(argument.len * size_of::<T>()))
        }
        ArgumentKind::Output => Bytes::Output(numbers(argument.len)),
        ArgumentKind::Alpha => Bytes::Value(bytemuck::bytes_of(&alpha).to_vec()),
        ArgumentKind::Beta => Bytes::Value(bytemuck::bytes_of(&beta).to_vec()),
        ArgumentKind::Size(size) if argument.element == ElementType::U32 => {
            Bytes::Value((size as u32).to_le_bytes().to_vec())
        }
        ArgumentKind::Size(size) => Bytes::Value(size.to_le_bytes().to_vec()),
        ArgumentKind::Matrix => Bytes::Input(next(&mut arrays)),
        ArgumentKind::Workspace => Bytes::Output(next(&mut arrays)),
    });
    own.collect()
}

fn next(arrays: &mut impl Iterator<Item = sparserl_core::layout::Array>) -> Vec<u8> {
    arrays.next().map(|array| array.data.bytes().to_vec()).unwrap_or_default()
}

/// What the emulator leaves in the outputs, in an order of turns.
fn emulate(prepared: &Prepared, seed: u64) -> Result<Vec<Vec<u8>>, Failed> {
    let kernel = Module::parse(&prepared.ptx)?.kernel(&prepared.source.kernel)?;
    let mut memory = Memory::new();
    let mut outputs = Vec::new();
    let arguments = prepared.arguments.iter().zip(&prepared.names);
    let arguments = arguments.map(|(bytes, name)| match bytes {
        Bytes::Input(bytes) => Argument::Buffer(memory.read_only(name, bytes)),
        Bytes::Output(bytes) => {
            let id = memory.writable(name, bytes);
            outputs.push(id);
            Argument::Buffer(id)
        }
        Bytes::Value(bytes) => Argument::Value(bytes.clone()),
    });
    let launch = Launch {
        grid: [prepared.geometry.grid, 1, 1],
        block: [prepared.geometry.block, 1, 1],
        dynamic_shared: prepared.geometry.dynamic_shared(),
        arguments: arguments.collect(),
    };
    let report = run(&kernel, &launch, &mut memory, &Options { seed, ..Options::default() })?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("{finding}\n{}", prepared.program).into());
    }
    Ok(outputs.into_iter().map(|id| memory.bytes(id)).collect())
}

/// What the device leaves in them.
fn run_on(device: &Device, prepared: &Prepared) -> Result<Vec<Vec<u8>>, Failed> {
    let word = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes);
    let long = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes);
    let arguments: Result<Vec<_>, Failed> = prepared
        .arguments
        .iter()
        .map(|bytes| {
            Ok(match bytes {
                Bytes::Input(bytes) => CaseArgument::Input(bytes),
                Bytes::Output(bytes) => CaseArgument::Output(bytes),
                Bytes::Value(bytes) if bytes.len() == 4 => CaseArgument::U32(word(bytes)?),
                Bytes::Value(bytes) => CaseArgument::U64(long(bytes)?),
            })
        })
        .collect();
    let geometry = prepared.geometry;
    let outcome = run_case(device, &prepared.cubin, geometry.into(), &arguments?)?;
    if !outcome.is_clean() {
        return Err(format!("it wrote where it should not\n{}", prepared.program).into());
    }
    Ok(outcome.outputs.into_iter().map(|output| output.bytes).collect())
}
