//! What the cost model's ranker chooses, in `ranker_choices.txt`: a change that is not meant to
//! change a choice is seen not to. With `SPARSERL_BLESS` set the file is written again.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::fmt::Write as _;
use std::path::PathBuf;

use sparserl_core::decode::{Candidate, CostRanker, beam_search, diverse_search};
use sparserl_core::language::{Facts, Mask};
use sparserl_core::matrix::{Csr, Duplicates, file, generate};
use sparserl_core::structure::{EmbeddingConfig, StructureEmbedding};
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
fn choices(matrix: &Csr<f64>, task: Task) -> [Vec<Candidate>; 2] {
    let embedding = StructureEmbedding::new(matrix.view(), &EmbeddingConfig::default());
    let facts = Facts::new(matrix.view(), task);
    let ranker = CostRanker::new(&facts);
    let mask = Mask::legal(&facts);
    let Ok(diverse) = diverse_search(&ranker, &embedding, mask, 8);
    let Ok(beam) = beam_search(&ranker, &embedding, mask, 3);
    [diverse, beam]
}

fn describe(name: &str, matrix: &Csr<f64>) -> String {
    let mut text = String::new();
    for task in tasks() {
        for (search, found) in ["diverse", "beam"].iter().zip(choices(matrix, task)) {
            writeln!(text, "{name}, {task}, {search}:").unwrap();
            for Candidate { program, log_probability } in found {
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
