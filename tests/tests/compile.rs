//! NVRTC compiles every golden source, those of matrices with leading dimensions, too, and random
//! programs, for architectures from Volta to Blackwell. Needs no GPU.
//!
//! NVRTC holds one lock for a whole process, so each architecture has a process of its own: the
//! test's own under cargo-nextest, a child under `cargo test`.

#![allow(clippy::panic, clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

use sparserl_core::codegen::{self, Alignment, CudaSource, Ending};
use sparserl_core::language::Program;
use sparserl_core::layout;
use sparserl_core::matrix::Scalar;
use sparserl_core::task::{Operation, Task};
use sparserl_core::with_scalar;
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::nvrtc::{CompileOptions, Compilers};
use sparserl_tests::{golden, matrices, programs};

/// Set in a child.
const CHILD_VARIABLE: &str = "SPARSERL_COMPILE_CHILD";
/// Random programs for each architecture.
const PROGRAMS: usize = 200;
/// What the random programs are for: between them they offer every layout and coding.
const MATRICES: [&str; 12] = [
    "stencil5 31 33",
    "stencil27 6 7 8",
    "banded 300 4 1 values few 9",
    "uniform 200 300 40 1",
    "uniform 300 100003 3 3",
    "strided 300 200003 7 300",
    "rmat 9 8 1",
    "graded 45 5000",
    "one_dense_row 33 4097 1",
    "fem_blocks 64 3 1",
    "block_pruned 127 255 8 20 1 values few 30",
    "gaps 5000 300 3",
];

/// Kernels that are known to spill registers, and why that is borne: name, architecture, bytes.
///
/// Blocks of 8 with four columns a thread and 512 threads a block spill once on `sm_100`, alone as
/// beside other parts. Another kernel for them would have to be measured on the architectures that
/// they do not spill on.
const SPILLS: [(&str, Architecture, u32); 1] =
    [("program 170 for banded 300 4 1 values few 9", Architecture::Sm100, 4)];

#[test]
fn sm_70() {
    in_its_own_process("sm_70", Architecture::Sm70);
}

#[test]
fn sm_80() {
    in_its_own_process("sm_80", Architecture::Sm80);
}

#[test]
fn sm_90() {
    in_its_own_process("sm_90", Architecture::Sm90);
}

#[test]
fn sm_100() {
    in_its_own_process("sm_100", Architecture::Sm100);
}

/// Kernels of a hundred programs, in one source.
#[test]
fn a_hundred_kernels_link_into_one_application() {
    let compilers = Compilers::discover().unwrap();
    let nvrtc = compilers.for_arch(Architecture::Sm90).unwrap();
    let sources: BTreeMap<String, String> =
        jobs().into_iter().map(|job| (job.source.kernel, job.source.text)).take(100).collect();
    assert!(sources.len() > 90, "the others are programs with the same source: {}", sources.len());
    let all = sources.values().cloned().collect::<Vec<_>>().join("\n");
    let first = sources.keys().next().unwrap();
    let options = CompileOptions::default();
    let cubin = nvrtc.compile(&all, first, Architecture::Sm90, &options).unwrap();
    assert!(cubin.log().lines().all(is_report), "{}", cubin.log());
    for kernel in sources.keys() {
        let entry = format!("Function properties for {kernel}");
        assert!(cubin.log().contains(&entry), "{kernel} is not in the machine code");
    }
}

fn in_its_own_process(test: &str, architecture: Architecture) {
    let is_set = |variable| std::env::var_os(variable).is_some();
    if is_set(CHILD_VARIABLE) || is_set("NEXTEST") {
        compile_all(architecture);
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD_VARIABLE, "1")
        .output()
        .unwrap();
    print!("{}", String::from_utf8_lossy(&child.stdout));
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
}

/// A source to compile.
struct Job {
    name: String,
    source: CudaSource,
    program: Program,
}

fn jobs() -> Vec<Job> {
    let goldens = golden::load().unwrap();
    let matrices = goldens.iter().filter(|golden| golden.program.task.operation != Operation::SpMV);
    let alignments = [Alignment::Vectors, Alignment::Elements];
    let strided: Vec<Job> = matrices
        .flat_map(|golden| alignments.map(|alignment| (golden, alignment)))
        .map(|(golden, alignment)| Job {
            source: golden.emit_ending(&Ending::Strided { epilogue: None, alignment }).unwrap(),
            name: format!("{} with leading dimensions, by {alignment:?}", golden.name),
            program: golden.program.clone(),
        })
        .collect();
    let golden = goldens.into_iter().map(|golden| Job {
        source: golden.emit().unwrap(),
        name: golden.name,
        program: golden.program,
    });
    let random = (0..PROGRAMS).map(|index| {
        let matrix = MATRICES[index % MATRICES.len()];
        // The second term keeps a matrix from meeting the same tasks on every round.
        let task = programs::nth_task(index + index / MATRICES.len());
        let (program, source) =
            with_scalar!(task.precision.matrix(), T => random_program::<T>(matrix, task, index));
        Job { name: format!("program {index} for {matrix}"), source, program }
    });
    golden.chain(strided).chain(random).collect()
}

fn random_program<T: Scalar>(matrix: &str, task: Task, seed: usize) -> (Program, CudaSource) {
    let matrix = matrices::build::<T>(matrix).unwrap();
    let program = programs::legal(matrix.view(), task, seed as u64);
    let packed = layout::pack(matrix.view(), &program).unwrap_or_else(|e| panic!("{e}\n{program}"));
    let source = codegen::emit(&packed.program, &packed.signature())
        .unwrap_or_else(|e| panic!("{e}\n{program}"));
    (program, source)
}

fn compile_all(architecture: Architecture) {
    let compilers = Compilers::discover().unwrap_or_else(|error| {
        panic!("these tests need NVRTC: run tests/install-nvrtc.sh first\n{error}")
    });
    let nvrtc = compilers.for_arch(architecture).unwrap_or_else(|error| panic!("{error}"));
    let jobs = jobs();
    let start = Instant::now();
    let mut registers = BTreeMap::<u32, usize>::new();
    let mut problems = Vec::new();
    for Job { name, source, program } in &jobs {
        let options = CompileOptions::default();
        let cubin = match nvrtc.compile(&source.text, &source.kernel, architecture, &options) {
            Ok(cubin) => cubin,
            Err(error) => {
                problems.push(format!("{name} does not compile: {error}\n{program}"));
                continue;
            }
        };
        let resources = cubin.resources();
        *registers.entry(resources.registers.next_multiple_of(32)).or_default() += 1;
        let spilled = resources.spill_stores.max(resources.spill_loads);
        if spilled > 0 && !SPILLS.contains(&(name.as_str(), architecture, spilled)) {
            problems.push(format!("{name} spills {spilled} bytes\n{program}"));
        }
        if !cubin.log().lines().all(is_report) {
            problems.push(format!("{name} gives warnings:\n{}\n{program}", cubin.log()));
        }
    }
    println!(
        "{architecture}: NVRTC {}, {} kernels in {:.1} s; kernels by registers of a thread, \
         rounded up to 32: {registers:?}",
        nvrtc.version(),
        jobs.len(),
        start.elapsed().as_secs_f64(),
    );
    let count = problems.len();
    assert!(problems.is_empty(), "{count} of {}:\n{}", jobs.len(), problems.join("\n"));
}

/// Whether a line of a compiler's log says nothing about the source.
fn is_report(line: &str) -> bool {
    // NVRTC 12.9 says that it is the last to know `sm_70`.
    !line.contains("warning") || line.contains("are deprecated and may be removed")
}
