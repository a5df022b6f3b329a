//! The program without a GPU, and small recordings and configurations.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use sparserl_core::language::Program;
use sparserl_gpu::store::fingerprint::identity;
use sparserl_gpu::store::recording::{Recorder, Recordings};
use sparserl_trainer::corpus::{RealMatrices, Recipe};

/// Exit code, results and what it says, with no GPU to be seen.
pub(crate) fn run(command: &str, arguments: &[&Path]) -> (Option<i32>, String, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_sparserl-trainer"))
        .arg(command)
        .args(arguments)
        .env("CUDA_VISIBLE_DEVICES", "")
        .env_remove("ORT_DYLIB_PATH")
        .output()
        .unwrap();
    let [results, said] = [run.stdout, run.stderr].map(|text| String::from_utf8(text).unwrap());
    (run.status.code(), results, said)
}

/// The recordings of training's start, of the matrices up to a size.
pub(crate) fn small_recordings(largest_nnz: usize, folder: &Path) -> usize {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/h200-2026-11-22");
    let mut recorder = Recorder::append_to(folder).unwrap();
    let mut matrices = BTreeSet::new();
    for recording in &Recordings::read(shipped).unwrap() {
        if recording.matrix.nnz > largest_nnz {
            continue;
        }
        let recipe: Recipe = recording.matrix.name.parse().unwrap();
        let as_read = recipe.build(&RealMatrices::none()).unwrap();
        let programs: Vec<Program> =
            recording.programs.iter().map(|text| Program::parse(text).unwrap()).collect();
        let identity = identity(recipe.to_string(), as_read.view());
        let (evaluation, context) = (&recording.evaluation, &recording.context);
        recorder.record::<f32>(&identity, &programs, evaluation, context).unwrap();
        matrices.insert(recording.matrix.name.clone());
    }
    recorder.flush().unwrap();
    matrices.len()
}

/// A shipped file of the trainer, with some of its text replaced.
pub(crate) fn shipped_with(name: &str, replacements: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let mut text = fs::read_to_string(path).unwrap();
    for (from, to) in replacements {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    text
}

/// The shipped reinforcement by what is recorded, of two iterations.
pub(crate) fn small_reinforcement() -> String {
    let smaller = [
        ("iterations = 100", "iterations = 2"),
        ("cases = 16", "cases = 2"),
        ("rollouts = 16", "rollouts = 4"),
    ];
    shipped_with("configurations/ppo-recorded.toml", &smaller)
}

/// The shipped stages, of two steps each and a small network.
pub(crate) fn small_stages(folder: &Path) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir(folder.join("configurations")).unwrap();
    for stage in ["pretrain", "sft", "value"] {
        let name = format!("configurations/{stage}.toml");
        let steps = if stage == "value" { "steps = 2000" } else { "steps = 1000" };
        let smaller =
            [(steps, "steps = 2"), ("cases = 32", "cases = 2"), ("programs = 24", "programs = 4")];
        let mut text = shipped_with(&name, &smaller);
        text += "network = { width = 16, heads = 2, encoder_layers = 1, decoder_layers = 1, \
                 speed_width = 8 }\n";
        fs::write(folder.join(&name), text).unwrap();
    }
    fs::copy(shipped.join("stages.toml"), folder.join("stages.toml")).unwrap();
}
