//! Sources of programs: how many the matrices of this repository need, where a program is compiled
//! once for all of them, and that each is read back.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use sparserl_core::arbitrary::legal_program;
use sparserl_core::codegen::{Argument, ArgumentKind, emit};
use sparserl_core::language::Program;
use sparserl_core::layout::pack;
use sparserl_core::matrix::{Csr, Duplicates, Scalar, file};
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_core::with_scalar;
use sparserl_gpu::candidate::raw::RawKernel;
use sparserl_tests::golden::{self, Golden};
use sparserl_tests::matrices;

/// Two matrices of each family, of different sizes.
const GENERATED: [&str; 14] = [
    "stencil5 20 20",
    "stencil5 31 17",
    "stencil27 6 6 6",
    "stencil27 5 7 8",
    "banded 300 4 1",
    "banded 411 4 2",
    "uniform 200 200 5 1",
    "uniform 320 150 5 2",
    "rmat 8 8 1",
    "rmat 9 6 2",
    "fem_blocks 60 3 1",
    "fem_blocks 83 3 2",
    "block_pruned 128 128 4 70 1",
    "block_pruned 192 64 4 70 2",
];
/// Legal programs that are drawn for each matrix and task.
const DRAWN: u64 = 3;

fn all() -> Vec<Csr<f32>> {
    let folder = sparserl_tests::root().join("tests/matrices");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_none_or(|extension| extension != "md"));
    paths.sort();
    let committed = paths.iter().map(|path| file::load(path, Duplicates::Refuse).unwrap());
    committed.chain(GENERATED.iter().map(|words| matrices::build(words).unwrap())).collect()
}

fn read_back<T: Scalar>(golden: &Golden) {
    let matrix: Csr<T> = golden.build().unwrap();
    let source = golden.emit().unwrap();
    let kernel = RawKernel::parse(&source.text, None).unwrap();
    assert_eq!(kernel.kernel(), source.kernel);
    assert_eq!(kernel.task(), Some(golden.program.task));
    let names = source.parameters.iter().map(|parameter| parameter.name.as_str());
    assert!(kernel.parameters().eq(names), "{}", golden.name);
    let prepared = kernel.prepare(matrix.view(), golden.program.task);
    assert!(prepared.is_ok(), "{}: {prepared:?}", golden.name);
}

/// Large matrices keep the memory busy without it, and their kernels have the time for nothing
/// else.
#[test]
fn arrays_of_large_matrices_are_not_prefetched() {
    let prefetched = |matrix: &str| {
        let matrix: Csr<f32> = matrices::build(matrix).unwrap();
        let text = "sparserl 3\nspmv f32\nblock 128\nkeep csr index=u32 values=plain cache=cached \
                    vector=1 lanes=4 unroll=4";
        let program = Program::parse(text).unwrap();
        let packed = pack(matrix.view(), &program).unwrap();
        let source = emit(&program, &packed.signature()).unwrap();
        let lines = |argument: &Argument| match argument.kind {
            ArgumentKind::Size(lines) if argument.name.ends_with("_lines") => Some(lines),
            _ => None,
        };
        source.launch(&packed).unwrap().arguments.iter().filter_map(lines).collect::<Vec<_>>()
    };
    // x, then columns and values: 5 of 4 bytes a row; the offsets make the second too large.
    assert_eq!(prefetched("banded 20000 2 1"), [625, 3_124, 3_124]);
    assert_eq!(prefetched("banded 200000 2 1"), [0, 0, 0]);
}

#[test]
fn every_golden_source_is_read_back() {
    for golden in golden::load().unwrap() {
        with_scalar!(golden.program.task.precision.matrix(), T => read_back::<T>(&golden));
    }
}

#[test]
fn a_program_has_few_sources() {
    let matrices = all();
    let columns = 32.try_into().unwrap();
    let tasks = [Operation::SpMV, Operation::SpMM { columns }].map(|o| Task::new(o, Dtype::F32));
    let mut sources: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut packings = 0;
    for task in tasks {
        let drawn = matrices.iter().flat_map(|matrix| {
            (0..DRAWN).map(move |seed| legal_program(matrix.view(), task, seed))
        });
        let programs: BTreeMap<String, _> = drawn.map(|p| (p.to_string(), p)).collect();
        for (text, program) in programs {
            for matrix in &matrices {
                if let Ok(packed) = pack(matrix.view(), &program) {
                    let source = emit(&program, &packed.signature()).unwrap();
                    sources.entry(text.clone()).or_default().insert(source.kernel);
                    packings += 1;
                }
            }
        }
    }
    let distinct: usize = sources.values().map(BTreeSet::len).sum();
    let shown = format!("{} programs, {packings} packings, {distinct} sources", sources.len());
    let kernels: BTreeSet<_> = sources.values().flatten().collect();
    assert_eq!(kernels.len(), distinct, "programs of their own have sources of their own: {shown}");
    assert!(sources.len() >= 80 && packings > 3 * sources.len(), "{shown}");
    // Element types of row lengths, and rows as a range or a list, are chosen by the matrix.
    assert!(distinct * 2 <= 5 * sources.len() && packings >= 4 * distinct, "{shown}");
}
