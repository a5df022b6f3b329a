//! The recordings that training starts from belong to the corpus and the language of today.

// Clippy's exception for tests does not reach the helper functions between them.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sparserl_core::decode::is_offered;
use sparserl_core::language::{Mask, Program, layouts_changed_since};
use sparserl_core::outcome::Outcome;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Architecture;
use sparserl_core::with_scalar;
use sparserl_gpu::store::fingerprint::fingerprint;
use sparserl_gpu::store::recording::{Recording, Recordings};
use sparserl_trainer::compiled::CompiledPrograms;
use sparserl_trainer::configuration::{Collection, read};
use sparserl_trainer::corpus::{RealMatrices, Recipe};
use sparserl_trainer::proposals::reference;

/// Entries of the largest matrix that is made again, where a collection has smaller ones.
const LARGEST: usize = 30_000;

/// Matrices of each collection that are made again.
const MATRICES: usize = 12;

/// The folders of what was collected, each with its configuration.
fn collections() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    let folders: Vec<PathBuf> =
        fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(folders.len() >= 2);
    folders
}

#[test]
fn recorded_matrices_are_made_again_and_recorded_programs_are_legal_for_them() {
    for folder in collections() {
        let collection: Collection = read(&folder.join("collect.toml")).unwrap();
        let recordings = Recordings::read(folder).unwrap();
        let smallest = (&recordings).into_iter().map(|recording| recording.matrix.nnz).min();
        let of_large_ones = collection.corpus.smallest_nnz > LARGEST as u64;
        let largest = if of_large_ones { smallest.unwrap() } else { LARGEST };
        let mut made = BTreeSet::new();
        for recording in &recordings {
            assert!(layouts_changed_since(recording.language.grammar_hash).is_some());
            let first = recording.programs.first().map(|text| Program::parse(text).unwrap());
            assert_eq!(first, Some(reference(recording.task).unwrap()));
            let name = recording.matrix.fingerprint.to_string();
            let is_known = made.contains(&name);
            if recording.matrix.nnz > largest || (made.len() == MATRICES && !is_known) {
                continue;
            }
            check(recording);
            made.insert(name);
        }
        let expected = if of_large_ones { 1 } else { 10 };
        assert!(made.len() >= expected, "{} matrices", made.len());
    }
}

fn check(recording: &Recording) {
    let recipe: Recipe = recording.matrix.name.parse().unwrap();
    let matrix = recipe.build(&RealMatrices::none()).unwrap();
    assert_eq!(fingerprint(matrix.view()), recording.matrix.fingerprint, "{recipe}");
    with_scalar!(recording.task.precision.matrix(), T => {
        let matrix = matrix.cast::<T>().unwrap();
        let stats = MatrixStats::new(matrix.view());
        let mask = Mask::legal(&stats, recording.task);
        for (text, outcome) in recording.programs.iter().zip(&recording.evaluation.outcomes) {
            let program = Program::parse(text).unwrap();
            assert!(is_offered(mask, &program), "{recipe}: {text}");
            assert!(matches!(outcome, Outcome::Measured(_)), "{text}: {outcome}");
        }
    });
}

#[test]
fn compiled_programs_are_among_those_recorded_beside_them() {
    let mut all = 0;
    for folder in collections() {
        let compiled = CompiledPrograms::read(&folder).unwrap();
        let lines = compiled.len();
        all += lines;
        let mut missing: BTreeSet<(String, Architecture)> = compiled
            .iter()
            .map(|known| (known.program.clone(), known.machine_code.architecture))
            .collect();
        for recording in &Recordings::read(&folder).unwrap() {
            if missing.is_empty() {
                break;
            }
            let architecture = recording.context.device.target.architecture;
            for text in &recording.programs {
                let program = Program::parse(text).unwrap().to_string();
                missing.remove(&(program, architecture));
            }
        }
        assert_eq!(missing.len(), 0, "of {lines} in {}: {:?}", folder.display(), missing.first());
    }
    assert!(all > 10_000, "{all}");
}

#[test]
fn recordings_are_of_the_corpus_and_the_tasks_that_their_configuration_says() {
    for folder in collections() {
        let collection: Collection = read(&folder.join("collect.toml")).unwrap();
        let of_corpus: BTreeSet<String> = (0..collection.matrices)
            .map(|index| collection.corpus.recipe(index, &RealMatrices::none()).to_string())
            .collect();
        for recording in &Recordings::read(folder).unwrap() {
            assert!(collection.tasks.contains(&recording.task));
            assert!(of_corpus.contains(&recording.matrix.name), "{}", recording.matrix.name);
        }
    }
}
