//! What the cost model's ranker chooses, in `ranker_choices.txt`: a change that is not meant to
//! change a choice is seen not to. With `SPARSERL_BLESS` set the file is written again.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use sparserl_core::decode::{
    CostRanker, Hypothesis, Policy as _, PolicyInput, beam_search, diverse_search,
};
use sparserl_core::language::Mask;
use sparserl_core::matrix::{Csr, Duplicates, file, generate};
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};

/// All generated families and the committed matrices.
fn matrices() -> Vec<(&'static str, Csr<f64>)> {
    let mut matrices = vec![
        ("stencil5", generate::stencil5(100, 90)),
        ("stencil7", generate::stencil7(16, 15, 14)),
        ("stencil27", generate::stencil27(12, 12, 11)),
        ("banded", generate::banded(3_000, 40, 2)),
        ("uniform", generate::uniform(5_000, 3_000, 12, 3)),
        ("rmat", generate::rmat(12, 8, 4)),
        ("fem_blocks", generate::fem_blocks(1_000, 3, 5)),
        ("hyper_sparse", generate::hyper_sparse(100_000, 90_000, 3_000, 6)),
        ("one_dense_row", generate::one_dense_row(4_000, 70_000, 7)),
        ("block_pruned", generate::block_pruned(512, 256, 8, 20, 8)),
        // With 128 columns B has 67 MB, more than the L2.
        ("uniform_wide", generate::uniform(100_000, 130_000, 4, 9)),
    ];
    for name in ["beam.mtx", "poisson2d.mtx", "pruned.smtx", "rmat10.mtx.gz"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/matrices");
        let path = PathBuf::from(folder).join(name);
        matrices.push((name, file::load(&path, Duplicates::Refuse).unwrap()));
    }
    matrices
}

fn tasks() -> impl Iterator<Item = Task> {
    let operation = |columns: u32| match columns.try_into() {
        Ok(columns) => Operation::SpMM { columns },
        Err(_) => Operation::SpMV,
    };
    let tasks = [
        (0, Dtype::F32),
        (0, Dtype::F64),
        (7, Dtype::F64),
        (8, Dtype::F32),
        (32, Dtype::F32),
        (128, Dtype::F32),
    ];
    tasks.into_iter().map(move |(columns, dtype)| Task::new(operation(columns), dtype))
}

/// The diverse eight, and what a narrow beam finds.
fn choices(input: &PolicyInput<'_>) -> [Vec<Hypothesis>; 2] {
    let mut ranker = CostRanker.read(input).unwrap();
    let mask = Mask::legal(&input.stats, input.task);
    let diverse = diverse_search(&mut *ranker, mask, 8).unwrap();
    [diverse, beam_search(&mut *ranker, mask, 3).unwrap()]
}

fn describe(name: &str, matrix: &Csr<f64>) -> String {
    let mut text = String::new();
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    for task in tasks() {
        let input = PolicyInput::new(Arc::clone(&stats), task, Target::H200);
        for (search, found) in ["diverse", "beam"].iter().zip(choices(&input)) {
            writeln!(text, "{name}, {task}, {search}:").unwrap();
            for Hypothesis { program, log_probability } in found {
                // All bits: prices are to be the same to the last one.
                write!(text, "{:016x}", log_probability.to_bits()).unwrap();
                program.tokens().iter().for_each(|token| write!(text, " {token}").unwrap());
                text.push('\n');
            }
        }
    }
    text
}

#[test]
fn choices_are_as_recorded() {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ranker_choices.txt"));
    let text: String = matrices().iter().map(|(name, matrix)| describe(name, matrix)).collect();
    if std::env::var_os("SPARSERL_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap();
    for (found, recorded) in text.lines().zip(recorded.lines()) {
        assert_eq!(found, recorded);
    }
    assert_eq!(text.lines().count(), recorded.lines().count());
}

#[test]
fn other_gpus_get_other_programs() {
    let first = |matrix: &Csr<f64>, task, target| {
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let [diverse, _] = choices(&PolicyInput::new(stats, task, target));
        diverse[0].program.clone()
    };
    let matrices = matrices();
    for target in [Target::V100, Target::RTX4090] {
        let differ =
            tasks().flat_map(|task| matrices.iter().map(move |(_, matrix)| (matrix, task))).filter(
                |&(matrix, task)| first(matrix, task, target) != first(matrix, task, Target::H200),
            );
        assert!(differ.take(3).count() == 3, "{target:?} is searched for as an H200 is");
    }
}

#[test]
fn columns_are_walked_in_panels_where_the_l2_does_not_hold_what_is_in_use_of_b() {
    let task = Task::new(Operation::SpMM { columns: 128.try_into().unwrap() }, Dtype::F32);
    let best = |matrix: &Csr<f64>| {
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let input = PolicyInput::new(stats, task, Target::H200);
        choices(&input)[1].first().unwrap().program.to_string()
    };
    // As many rows of B in both, but near each other in one.
    let (spread, near) = (generate::uniform(130_000, 130_000, 4, 9), generate::stencil5(361, 361));
    assert!(best(&spread).contains("panel=32"), "{}", best(&spread));
    assert!(!best(&near).contains("panel"), "{}", best(&near));
}
