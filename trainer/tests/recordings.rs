//! The recordings that training starts from belong to the corpus and the language of today.

// Clippy's exception for tests does not reach the helper functions between them.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

use sparserl_core::decode::is_offered;
use sparserl_core::language::{Mask, Program, grammar_hash};
use sparserl_core::outcome::Outcome;
use sparserl_core::structure::MatrixStats;
use sparserl_gpu::store::fingerprint::fingerprint;
use sparserl_gpu::store::recording::Recordings;
use sparserl_trainer::configuration::{Collection, read};
use sparserl_trainer::corpus::{RealMatrices, Recipe};
use sparserl_trainer::proposals::reference;

/// Entries of the largest matrix that is made again.
const LARGEST: u64 = 30_000;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn recorded_matrices_are_made_again_and_recorded_programs_are_legal_for_them() {
    let recordings = Recordings::read(folder().join("recordings/h200-2026-11-22")).unwrap();
    let mut made = BTreeSet::new();
    for recording in &recordings {
        assert_eq!(recording.language.grammar_hash, grammar_hash());
        let reference = reference(recording.task).unwrap().to_string();
        assert_eq!(recording.programs.first(), Some(&reference));
        if recording.matrix.nnz > LARGEST {
            continue;
        }
        let recipe: Recipe = recording.matrix.name.parse().unwrap();
        let matrix = recipe.build(&RealMatrices::none()).unwrap();
        assert_eq!(fingerprint(matrix.view()), recording.matrix.fingerprint, "{recipe}");
        let single = matrix.cast::<f32>().unwrap();
        let stats = MatrixStats::new(single.view());
        let mask = Mask::legal(&stats, recording.task);
        for (text, outcome) in recording.programs.iter().zip(&recording.evaluation.outcomes) {
            let program = Program::parse(text).unwrap();
            assert!(is_offered(mask, &program), "{recipe}: {text}");
            assert!(matches!(outcome, Outcome::Measured(_)), "{text}: {outcome}");
        }
        made.insert(recording.matrix.fingerprint.to_hex().to_string());
    }
    assert!(made.len() >= 10, "{} matrices", made.len());
}

#[test]
fn the_configuration_is_that_of_the_recordings() {
    let collection: Collection = read(&folder().join("collect.toml")).unwrap();
    let recordings = Recordings::read(folder().join("recordings/h200-2026-11-22")).unwrap();
    let of_corpus: BTreeSet<String> = (0..100)
        .map(|index| collection.corpus.recipe(index, &RealMatrices::none()).to_string())
        .collect();
    for recording in &recordings {
        assert!(collection.tasks.contains(&recording.task));
        assert!(of_corpus.contains(&recording.matrix.name), "{}", recording.matrix.name);
    }
}
