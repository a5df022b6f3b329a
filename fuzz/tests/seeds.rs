//! Every seed goes through its target without finding anything.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use sparserl_fuzz::TARGETS;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn names(folder: &Path) -> Vec<String> {
    let name = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| name(entry.unwrap().path())).collect();
    names.sort();
    names
}

#[test]
fn every_target_has_a_program_and_seeds() {
    let targets = TARGETS.map(|(name, _)| name);
    assert_eq!(names(&folder().join("fuzz_targets")), targets);
    assert_eq!(names(&folder().join("seeds")), targets);
    for dictionary in names(&folder().join("dictionaries")) {
        assert!(targets.contains(&dictionary.as_str()), "{dictionary}");
    }
}

#[test]
fn seeds_find_nothing() {
    for (name, run) in TARGETS {
        let seeds = fs::read_dir(folder().join("seeds").join(name)).unwrap();
        let seeds: Vec<_> = seeds.map(|seed| seed.unwrap().path()).collect();
        assert!(!seeds.is_empty(), "{name}");
        for seed in seeds {
            let bytes = fs::read(&seed).unwrap();
            let found = std::panic::catch_unwind(|| run(&bytes));
            assert!(found.is_ok(), "{}", seed.display());
        }
    }
}

#[test]
fn golden_programs_find_nothing() {
    let golden = fs::read_dir(folder().join("../tests/golden")).unwrap();
    let programs = golden.map(|entry| entry.unwrap().path());
    for path in programs.filter(|path| path.extension().is_some_and(|e| e == "skl")) {
        sparserl_fuzz::program_text::run(&fs::read(path).unwrap());
    }
}

/// The seed was made by `cargo run -p sparserl-fuzz --example recording_seed`; another version's
/// would end the fuzzing at the first check.
#[test]
fn the_seed_of_recordings_is_of_this_version() {
    let store = tempfile::tempdir().unwrap();
    let seed = fs::read(folder().join("seeds/recording/all_outcomes.parquet")).unwrap();
    let name = format!("part-{}.parquet", blake3::hash(&seed).to_hex());
    fs::write(store.path().join(name), seed).unwrap();
    let recordings = sparserl_gpu::store::recording::Recordings::read(store.path()).unwrap();
    assert_eq!(recordings.as_slice().len(), 1);
}
