//! How many PTX instructions a second the emulator executes, with all its checks, on 1, 2, 4, … of
//! the host's cores.
//!
//! ```text
//! cargo bench -p sparserl-gpu --bench emulator
//! ```
//!
//! An instruction counts once for each thread that executes it, and once for each group of a warp's
//! lanes that executes it together. The kernels are random legal programs for matrices of three
//! families; their launches, not compilation, are timed.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::num::NonZeroU32;
use std::time::Instant;

use rayon::ThreadPoolBuilder;
use sparserl_core::arbitrary::legal_program;
use sparserl_core::codegen::{ArgumentKind, emit};
use sparserl_core::layout::{ElementType, pack};
use sparserl_core::matrix::{Csr, generate};
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_emulator::code::Kernel;
use sparserl_emulator::counters::Counters;
use sparserl_emulator::launch::{Argument, Launch, Options};
use sparserl_emulator::machine::run;
use sparserl_emulator::memory::Memory;
use sparserl_emulator::ptx::Module;
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::nvrtc::{CompileOptions, Compilers};

const PROGRAMS_PER_TASK: u64 = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let compilers = Compilers::discover()?;
    let matrices: [(&str, Csr<f64>); 3] = [
        ("uniform", generate::uniform(20_000, 20_000, 10, 1)),
        ("rmat", generate::rmat(14, 12, 1)),
        ("stencil", generate::stencil7(30, 30, 30)),
    ];
    let mut cases = Vec::new();
    for (name, matrix) in &matrices {
        for columns in [None, Some(8), Some(32)] {
            let operation = match columns.and_then(NonZeroU32::new) {
                None => Operation::SpMV,
                Some(columns) => Operation::SpMM { columns },
            };
            for seed in 0..PROGRAMS_PER_TASK {
                cases.push(Case::new(name, matrix, operation, seed, &compilers)?);
            }
        }
    }
    let cores = std::thread::available_parallelism()?.get();
    let counts = std::iter::successors(Some(1), |count| Some(count * 2));
    println!("threads  instructions  by warps  seconds   M/s  M/s by warps");
    for threads in counts.take_while(|&count| count <= cores) {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
        let mut total = Counters::default();
        let mut seconds = 0.0;
        for case in &cases {
            let mut memory = Memory::new();
            let launch = case.launch(&mut memory);
            let start = Instant::now();
            let report =
                pool.install(|| run(&case.kernel, &launch, &mut memory, &Options::default()))?;
            seconds += start.elapsed().as_secs_f64();
            if let Some(finding) = report.findings.first() {
                return Err(format!("{}: {finding}", case.name).into());
            }
            total.add(&report.counters);
        }
        let (instructions, by_warps) = (total.instructions as f64, total.warp_instructions as f64);
        println!(
            "{threads:7}  {:10.1} M  {:6.1} M  {seconds:7.2}  {:4.0}  {:12.1}",
            instructions / 1e6,
            by_warps / 1e6,
            instructions / seconds / 1e6,
            by_warps / seconds / 1e6
        );
    }
    Ok(())
}

/// A kernel and the bytes of its arguments.
struct Case {
    name: String,
    kernel: Kernel,
    grid: u32,
    block: u32,
    arguments: Vec<(ArgumentKind, Vec<u8>)>,
}

impl Case {
    fn new(
        name: &str,
        matrix: &Csr<f64>,
        operation: Operation,
        seed: u64,
        compilers: &Compilers,
    ) -> Result<Self, Box<dyn Error>> {
        let task = Task::new(operation, Dtype::F64);
        let program = legal_program(matrix.view(), task, seed);
        let packed = pack(matrix.view(), &program)?;
        let source = emit(&packed.program, &packed.signature())?;
        let nvrtc = compilers.for_arch(Architecture::Sm80)?;
        let options = CompileOptions::generated();
        let ptx = nvrtc.compile_ptx(&source.text, &source.kernel, Architecture::Sm80, &options)?;
        let kernel = Module::parse(&ptx)?.kernel(&source.kernel)?;
        let (grid, block) = (packed.geometry.grid, packed.geometry.block);
        let arguments = source.launch(&packed)?.arguments;
        let mut arrays = packed.parts.into_iter().flat_map(|part| part.arrays);
        let arguments = arguments.iter().map(|argument| {
            let bytes = match argument.kind {
                ArgumentKind::Input | ArgumentKind::Output => {
                    let numbers: Vec<f64> = (0..argument.len).map(|i| (i % 97) as f64).collect();
                    bytemuck::cast_slice(&numbers).to_vec()
                }
                ArgumentKind::Alpha | ArgumentKind::Beta => 0.5_f64.to_le_bytes().to_vec(),
                ArgumentKind::Size(size) if argument.element == ElementType::U32 => {
                    (size as u32).to_le_bytes().to_vec()
                }
                ArgumentKind::Size(size) => size.to_le_bytes().to_vec(),
                ArgumentKind::Matrix | ArgumentKind::Workspace => {
                    arrays.next().map(|array| array.data.bytes().to_vec()).unwrap_or_default()
                }
            };
            (argument.kind, bytes)
        });
        let name = format!("{name} {program}");
        Ok(Self { name, kernel, grid, block, arguments: arguments.collect() })
    }

    fn launch(&self, memory: &mut Memory) -> Launch {
        let arguments = self.arguments.iter().enumerate().map(|(index, (kind, bytes))| {
            let name = format!("argument {index}");
            match kind {
                ArgumentKind::Input | ArgumentKind::Matrix => {
                    Argument::Buffer(memory.read_only(&name, bytes))
                }
                ArgumentKind::Output | ArgumentKind::Workspace => {
                    Argument::Buffer(memory.writable(&name, bytes))
                }
                ArgumentKind::Alpha | ArgumentKind::Beta | ArgumentKind::Size(_) => {
                    Argument::Value(bytes.clone())
                }
            }
        });
        Launch {
            grid: [self.grid, 1, 1],
            block: [self.block, 1, 1],
            dynamic_shared: 0,
            arguments: arguments.collect(),
        }
    }
}
