//! Packing one matrix as many programs say: what programs store alike is stored once, and is what
//! each of them stores alone.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use sparserl_core::arbitrary::{csr, legal_program, task};
use sparserl_core::decode::{mutate, random_walk};
use sparserl_core::language::{LANGUAGE_VERSION, Mask, Program};
use sparserl_core::layout::{Packed, PackedPart, Packer, pack};
use sparserl_core::matrix::{Csr, Scalar, generate};
use sparserl_core::random::SplitMix64;
use sparserl_core::structure::MatrixStats;
use sparserl_core::task::{Dtype, Operation, Task};

const NO_TIME: &(dyn Fn() -> Duration + Sync) = &|| Duration::ZERO;

fn program(task: &str, block: u32, body: &str) -> Program {
    let text = format!("sparserl {LANGUAGE_VERSION}\n{task}\nblock {block}\n{body}\n");
    Program::parse(&text).unwrap()
}

/// Where the arrays lie that hold the matrix, of some parts.
fn places(parts: &[PackedPart]) -> Vec<usize> {
    let arrays = parts.iter().flat_map(|part| &part.arrays);
    let matrix = arrays.filter(|array| !array.role.is_workspace());
    matrix.map(|array| array.data.bytes().as_ptr().addr()).collect()
}

/// Equal to the last bit: empty slots hold NaN, which equals nothing.
fn same(a: &Packed, b: &Packed) -> Result<(), TestCaseError> {
    prop_assert_eq!(&a.program, &b.program);
    prop_assert_eq!((a.rows, a.cols, a.geometry), (b.rows, b.cols, b.geometry));
    prop_assert_eq!(a.parts.len(), b.parts.len());
    for (a, b) in a.parts.iter().zip(&b.parts) {
        prop_assert_eq!((a.layout, &a.rows, a.nnz), (b.layout, &b.rows, b.nnz));
        prop_assert_eq!((a.first_block, a.blocks), (b.first_block, b.blocks));
        prop_assert_eq!(a.arrays.len(), b.arrays.len());
        for (a, b) in a.arrays.iter().zip(&b.arrays) {
            prop_assert_eq!(
                (a.name, a.role, a.data.element_type()),
                (b.name, b.role, b.data.element_type())
            );
            prop_assert_eq!(a.data.bytes(), b.data.bytes(), "{}", a.name);
        }
    }
    Ok(())
}

/// One packer for programs of several tasks, among them some that do not fit.
fn packs_as_if_alone<T: Scalar>(
    matrix: &Csr<T>,
    tasks: &[Task],
    seed: u64,
) -> Result<(), TestCaseError> {
    let packer = Packer::new(matrix.view(), NO_TIME);
    let stats = MatrixStats::new(matrix.view());
    let mut random = SplitMix64::new(seed);
    for &task in tasks.iter().cycle().take(24) {
        let legal = random_walk(Mask::legal(&stats, task), &mut random).unwrap();
        let free = random_walk(Mask::free(task), &mut random).unwrap();
        // As searches do: most of what it stores is stored already.
        let neighbour = mutate(Mask::legal(&stats, task), &legal, &mut random);
        for program in [legal, free].into_iter().chain(neighbour) {
            match (packer.pack(&program), pack(matrix.view(), &program)) {
                (Ok(packing), Ok(alone)) => same(&packing.packed, &alone)?,
                (packing, alone) => prop_assert_eq!(packing.err(), alone.err(), "{}", program),
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_was_packed_before_changes_nothing(
        matrix in csr::<f32>(90, 90, 900),
        tasks in prop::collection::vec(task(Dtype::F32), 1..3),
        seed in any::<u64>(),
    ) {
        packs_as_if_alone(&matrix, &tasks, seed)?;
    }

    #[test]
    fn whatever_was_packed_before_changes_nothing_in_f64(
        matrix in csr::<f64>(90, 90, 900),
        tasks in prop::collection::vec(task(Dtype::F64), 1..3),
        seed in any::<u64>(),
    ) {
        packs_as_if_alone(&matrix, &tasks, seed)?;
    }
}

/// Of each layout two parts that differ in all that only threads care about.
const MAPPINGS: [[&str; 2]; 8] = [
    [
        "keep csr index=u16 values=plain cache=cached vector=1 lanes=4 unroll=1",
        "keep csr index=u16 values=plain cache=streamed vector=2 lanes=block unroll=4",
    ],
    [
        "sort window=32 sell height=8 index=u16 values=plain cache=cached vector=1 lanes=1 unroll=1",
        "sort window=32 sell height=8 index=u16 values=plain cache=streamed vector=2 lanes=2 unroll=2",
    ],
    [
        "keep dia values=plain cache=cached vector=1 rows=1 unroll=1",
        "keep dia values=plain cache=streamed vector=2 rows=1 unroll=2",
    ],
    [
        "keep bcsr side=2 index=u16 values=plain cache=cached vector=1 lanes=1",
        "keep bcsr side=2 index=u16 values=plain cache=streamed vector=2 lanes=4",
    ],
    [
        "keep merge items=64 index=d16 values=plain cache=cached vector=1 reduction=scan",
        "keep merge items=64 index=d16 values=plain cache=streamed vector=1 reduction=scan",
    ],
    [
        "keep chunk entries=32 index=u16 values=plain cache=cached vector=1 lanes=1 unroll=1",
        "keep chunk entries=32 index=u16 values=plain cache=streamed vector=2 lanes=4 unroll=2",
    ],
    [
        "keep ell index=u16 values=plain cache=cached vector=1 lanes=1 unroll=1",
        "keep ell index=u16 values=plain cache=streamed vector=2 lanes=4 unroll=2",
    ],
    [
        "keep cvse rows=2 index=u16 values=plain cache=cached vector=1 lanes=1 unroll=1",
        "keep cvse rows=2 index=u16 values=plain cache=streamed vector=2 lanes=4 unroll=8",
    ],
];

#[test]
fn programs_that_differ_in_mapping_share_arrays() {
    let matrix = generate::stencil5(20, 20);
    let packer = Packer::new(matrix.view(), NO_TIME);
    let mut all = BTreeSet::new();
    for [one, other] in MAPPINGS {
        // Tiles are cut for the threads of a block.
        let block = if one.contains("merge") { 256 } else { 64 };
        let one = packer.pack(&program("spmm 32 f64", 256, one)).unwrap().packed;
        let other = packer.pack(&program("spmm 32 f64", block, other)).unwrap().packed;
        assert_ne!(one.program, other.program);
        let shared = places(&one.parts);
        assert_eq!(shared, places(&other.parts), "{}", one.program);
        let new = shared.iter().filter(|&&place| all.insert(place)).count();
        assert_eq!(new, shared.len(), "other layouts have other arrays");
    }
}

#[test]
fn a_part_is_shared_where_its_rows_are_those_of_the_same_splits() {
    let matrix = generate::rmat(9, 6, 1);
    let packer = Packer::new(matrix.view(), NO_TIME);
    let csr = "keep csr index=u16 values=plain cache=cached vector=1 lanes=4 unroll=1";
    let merge = "keep merge items=8 index=u16 values=plain cache=cached vector=1 reduction=scan";
    let split = |threshold: u32, low: &str, high: &str| {
        let body = format!("split-length threshold={threshold}\n  {low}\n  {high}");
        packer.pack(&program("spmv f64", 256, &body)).unwrap().packed
    };
    let places =
        |packed: &Packed, part: usize| BTreeSet::from_iter(places(&packed.parts[part..=part]));
    let both = split(4, csr, csr);
    let low = split(4, csr, merge);
    assert_eq!(places(&both, 0), places(&low, 0));
    assert!(places(&both, 1).is_disjoint(&places(&low, 1)), "another layout");
    assert!(places(&both, 0).is_disjoint(&places(&split(8, csr, csr), 0)), "other rows");
    assert!(places(&both, 0).is_disjoint(&places(&both, 1)), "the other side");
}

#[test]
fn scratch_memory_is_of_each_program() {
    let matrix = generate::rmat(9, 6, 1);
    let packer = Packer::new(matrix.view(), NO_TIME);
    let merge = |lanes: u32| {
        let body = format!(
            "keep merge items=8 index=u16 values=plain cache=cached vector=1 reduction={lanes}"
        );
        packer.pack(&program("spmv f64", 256, &body)).unwrap().packed
    };
    let (one, other) = (merge(1), merge(8));
    let carry = |packed: &Packed| packed.parts[0].array("carry").unwrap().bytes().as_ptr().addr();
    assert_eq!(places(&one.parts), places(&other.parts));
    assert_ne!(carry(&one), carry(&other));
}

/// A clock that goes on by a second whenever it is looked at.
#[test]
fn shared_parts_take_the_time_that_they_took() {
    let matrix = generate::stencil5(20, 20);
    let looks = AtomicU64::new(0);
    let clock = || Duration::from_secs(looks.fetch_add(1, Relaxed));
    let packer = Packer::new(matrix.view(), &clock);
    let [one, other] = MAPPINGS[0];
    let first = packer.pack(&program("spmm 32 f64", 256, one)).unwrap().time;
    let looked = looks.load(Relaxed);
    let second = packer.pack(&program("spmm 32 f64", 256, other)).unwrap().time;
    assert_eq!(looks.load(Relaxed) - looked, 2, "it stored nothing");
    // The rows and their storage took one second each.
    assert!(first >= Duration::from_secs(2), "{first:?}");
    assert_eq!(second, Duration::from_secs(2 + 1));
}

#[test]
fn threads_share_a_packer() {
    let matrix = generate::rmat(9, 6, 1).cast::<f32>().unwrap();
    let columns = NonZeroU32::MIN.saturating_add(7);
    let tasks = [Operation::SpMV, Operation::SpMM { columns }].map(|o| Task::new(o, Dtype::F32));
    let packer = Packer::new(matrix.view(), NO_TIME);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (packer, matrix) = (&packer, &matrix);
            scope.spawn(move || {
                for number in 0..24 {
                    let task = tasks[number % 2];
                    let program = legal_program(matrix.view(), task, seed / 2 + number as u64);
                    let packing = packer.pack(&program).unwrap();
                    same(&packing.packed, &pack(matrix.view(), &program).unwrap()).unwrap();
                }
            });
        }
    });
}
