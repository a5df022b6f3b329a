//! The program, run as a user runs it on a machine without a GPU.

// Clippy's exception for tests does not reach the helper functions between them.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sparserl_core::language::Program;
use sparserl_gpu::store::fingerprint::identity;
use sparserl_gpu::store::recording::{Recorder, Recordings};
use sparserl_onnx_models::signature::Signature;
use sparserl_onnx_models::{Engine, Model, OnnxPolicy};
use sparserl_trainer::compiled::{COMPILED, CompiledPrograms};
use sparserl_trainer::corpus::{RealMatrices, Recipe};
use sparserl_trainer::dataset::Dataset;
use sparserl_trainer::export::was_read_back;
use sparserl_trainer::fit_cost::{Report, TaskScores};
use sparserl_trainer::network::{ModelFile, Network, NetworkConfig, Processor};

/// Exit code, results and what it says, with no GPU to be seen.
fn run(command: &str, arguments: &[&Path]) -> (Option<i32>, String, String) {
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

fn collect(configuration: &Path, output: &Path) -> (Option<i32>, String) {
    let (code, results, said) = run("collect", &[configuration, "--output".as_ref(), output]);
    assert!(results.is_empty());
    (code, said)
}

/// The recordings of training's start, of the matrices up to a size.
fn small_recordings(largest_nnz: usize, folder: &Path) -> usize {
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

#[test]
fn what_cannot_be_collected_is_said_in_one_line_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let output = place.path().join("collected");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("collect.toml");
    let wrong = place.path().join("wrong.toml");
    fs::write(&wrong, "matrices = \"many\"\n").unwrap();
    let absent = place.path().join("absent.toml");
    let meaningless = place.path().join("meaningless.toml");
    let share = [("share_of_real = 0.0", "share_of_real = nan")];
    fs::write(&meaningless, shipped_with("collect.toml", &share)).unwrap();
    for configuration in [&shipped, &wrong, &absent, &meaningless] {
        let (code, said) = collect(configuration, &output);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
        assert!(!output.exists());
    }
    assert!(collect(&absent, &output).1.contains("absent.toml"));
    assert!(collect(&wrong, &output).1.contains("wrong.toml:1: "));
    assert!(collect(&meaningless, &output).1.contains("`corpus.share_of_real`"));
}

#[test]
fn constants_are_fitted_and_scored_on_families_that_were_left_out() {
    let place = tempfile::tempdir().unwrap();
    let (folder, output) = (place.path().join("recorded"), place.path().join("fit.json"));
    let matrices = small_recordings(8_000, &folder);
    assert!(matrices >= 5, "{matrices}");
    let (code, results, said) = run("fit-cost", &[&folder, "--output".as_ref(), &output]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    for shown in ["seconds_per_step", "cold, spmv f32", "warm, all", "Spearman"] {
        assert!(results.contains(shown), "{shown}: {results}");
    }
    let report: Report = serde_json::from_str(&fs::read_to_string(&output).unwrap()).unwrap();
    assert_eq!((report.recordings.as_str(), report.matrices), ("recorded", matrices));
    assert!(report.fitted.to_array().iter().all(|constant| *constant > 0.0));
    // Three tasks and all of them, in two regimes.
    assert_eq!(report.scores.len(), 8);
    for scores in &report.scores {
        let all = scores.task.is_none();
        assert_eq!(scores.present.cases, if all { 3 * matrices } else { matrices });
        for scores in [&scores.present, &scores.held_out, &scores.fitted] {
            assert!(0.0 < scores.least_first_pick && scores.first_pick <= 1.0, "{scores:?}");
        }
    }
    let cold = |scores: &TaskScores| scores.regime == "cold";
    assert_eq!(report.scores.iter().filter(|scores| cold(scores)).count(), 4);

    let arguments: [&Path; 5] =
        [&folder, "--regime".as_ref(), "cold".as_ref(), "--output".as_ref(), &output];
    assert_eq!(run("fit-cost", &arguments).0, Some(0));
    let of_cold: Report = serde_json::from_str(&fs::read_to_string(&output).unwrap()).unwrap();
    assert!(of_cold.scores.len() == 4 && of_cold.scores.iter().all(cold));
    assert_ne!(of_cold.fitted, report.fitted);
    let fits_cold = |report: &Report| report.scores[3].fitted.objective;
    assert!(fits_cold(&of_cold) < fits_cold(&report));
}

#[test]
fn what_cannot_be_fitted_to_is_said_in_one_line() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir(path("empty")).unwrap();
    fs::create_dir(path("other")).unwrap();
    fs::write(path("other/part.parquet"), "no table").unwrap();
    for (folder, expected) in
        [("empty", "collect more"), ("absent", "absent"), ("other", "part.parquet")]
    {
        let output = path("fit.json");
        let (code, results, said) = run("fit-cost", &[&path(folder), "--output".as_ref(), &output]);
        assert_eq!((code, results.as_str()), (Some(1), ""), "{said}");
        assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
        assert!(said.contains(expected) && !output.exists(), "{said}");
    }
}

/// A small network that has learned nothing, and the dataset of some recordings.
fn beginner_and_dataset(folder: &Path, recordings: &Path) -> (PathBuf, PathBuf) {
    let (model, dataset) = (folder.join("beginner.safetensors"), folder.join("small.dataset"));
    let network = NetworkConfig {
        width: 16,
        heads: 2,
        encoder_layers: 1,
        decoder_layers: 1,
        speed_width: 8,
        ..NetworkConfig::default()
    };
    ModelFile {
        signature: Signature::current(network.embedding()),
        parameters: Network::<Processor>::new(&network, &Default::default(), 1).parameters(),
        config: network,
        steps: 0,
        provenance: "a test".to_owned(),
        optimizer: Vec::new(),
    }
    .write(&model)
    .unwrap();
    let (code, _, said) = run("prepare", &[recordings, "--output".as_ref(), &dataset]);
    assert_eq!(code, Some(0), "{said}");
    (model, dataset)
}

#[test]
fn a_policy_is_improved_on_recordings_and_interrupted_runs_are_of_one_configuration() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let small = small_recordings(3_000, &path("recorded"));
    let (model, dataset) = beginner_and_dataset(place.path(), &path("recorded"));
    let smaller = [
        ("iterations = 200", "iterations = 3"),
        ("\"masked\"", "\"measured\""),
        ("cases = 16", "cases = 3"),
        ("steps = 100", "steps = 2"),
    ];
    let text = shipped_with("configurations/ppo.toml", &smaller);
    let config = path("ppo.toml");
    fs::write(&config, &text).unwrap();
    let improve = |output: &Path, more: &[&str]| {
        let mut arguments: Vec<&Path> = vec![&config, "--from".as_ref(), &model];
        arguments.extend::<[&Path; 4]>(["--dataset".as_ref(), &dataset, "-o".as_ref(), output]);
        arguments.extend(more.iter().map(Path::new));
        run("ppo", &arguments)
    };
    let recorded = path("recorded");
    let recordings = ["--recordings", recorded.to_str().unwrap()];
    let output = path("improved");
    let stopped = [recordings.as_slice(), &["--minutes", "0"]].concat();
    let (code, _, said) = improve(&output, &stopped);
    assert!(code == Some(0) && said.contains("after 0 of 3 iterations"), "{said}");
    assert!(!output.join("model.safetensors").exists());
    let (code, results, said) = improve(&output, &recordings);
    assert_eq!((code, results.as_str()), (Some(0), ""), "{said}");
    assert!(said.contains("ppo: 3 iterations") && said.contains("reward"), "{said}");
    let log = fs::read_to_string(output.join("log.jsonl")).unwrap();
    assert_eq!(log.lines().filter(|line| line.contains("gradient_norm")).count(), 3);
    assert!(ModelFile::read(&output.join("model.safetensors")).unwrap().optimizer.is_empty());
    // So are other recordings.
    assert!(small_recordings(4_500, &path("more")) > small);
    let more = path("more");
    let (code, _, said) = improve(&output, &["--recordings", more.to_str().unwrap()]);
    assert!(code == Some(1) && said.contains("of another source of outcomes"), "{said}");
    // Another algorithm is another configuration, and has a folder of its own.
    let others = [recordings.as_slice(), &["--algorithm", "grpo"]].concat();
    let (code, _, said) = improve(&output, &others);
    assert!(code == Some(1) && said.contains("of another configuration"), "{said}");
    let (code, _, said) = improve(&path("other"), &others);
    assert!(code == Some(0) && said.contains("grpo: 3 iterations"), "{said}");

    // An exported policy is improved like the network that it was, but by PPO.
    let exported = path("exported");
    assert_eq!(run("export", &[&model, "-o".as_ref(), &exported]).0, Some(0));
    let go_on = |algorithm: &str, config: &Path, output: &Path| {
        let mut arguments: Vec<&Path> = vec![config, "--from".as_ref(), &exported];
        arguments.extend::<[&Path; 4]>(["--dataset".as_ref(), &dataset, "-o".as_ref(), output]);
        arguments.extend([recordings[0], recordings[1], "--algorithm", algorithm].map(Path::new));
        run("ppo", &arguments)
    };
    let (code, _, said) = go_on("grpo", &config, &path("again"));
    assert!(code == Some(0) && said.contains("grpo: 3 iterations"), "{said}");
    let improved = ModelFile::read(&path("again/model.safetensors")).unwrap();
    assert!(was_read_back(&improved) && !was_read_back(&ModelFile::read(&model).unwrap()));
    let (code, _, said) = go_on("ppo", &config, &path("nothing"));
    assert!(code == Some(1) && said.contains("by which PPO's critic begins"), "{said}");
    // What comes of one says what it has learned from.
    let everything = path("everything.toml");
    fs::write(&everything, text.replacen("\"no_real\"", "\"everything\"", 1)).unwrap();
    let (code, _, said) = go_on("grpo", &everything, &path("nothing"));
    assert!(code == Some(1) && said.contains("let them agree"), "{said}");
    assert!(said.lines().count() == 1 && !path("nothing").exists(), "{said}");

    // What cannot be used is said in one line: no GPU, no source of outcomes, a foreign model.
    for (more, expected) in
        [(["--measure-on", "0"], "error: "), (["--real", "absent"], "--recordings")]
    {
        let (code, _, said) = improve(&path("nothing"), &more);
        assert!(code.is_some_and(|code| code > 0) && said.contains(expected), "{said}");
        assert!(!path("nothing").exists());
    }
    let whole = fs::read(&model).unwrap();
    let mut diverged = whole.clone();
    let last = diverged.len() - 4;
    diverged[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&model, diverged).unwrap();
    let (code, _, said) = improve(&path("nothing"), &recordings);
    assert!(code == Some(1) && said.lines().count() == 1, "{said}");
    assert!(said.contains("numbers that are not finite") && !path("nothing").exists(), "{said}");
    fs::write(&model, whole).unwrap();
    let mut foreign = ModelFile::read(&model).unwrap();
    foreign.signature.grammar_hash ^= 1;
    foreign.write(&model).unwrap();
    let (code, _, said) = improve(&path("nothing"), &recordings);
    assert!(code == Some(1) && said.lines().count() == 1, "{said}");
    assert!(said.contains("was made for grammar") && !path("nothing").exists(), "{said}");
}

#[test]
fn a_folder_without_recordings_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (empty, output) = (folder.path().join("collected"), folder.path().join("output"));
    fs::create_dir_all(empty.join("recordings")).unwrap();
    for command in ["prepare", "archive"] {
        let (code, results, said) = run(command, &[&empty, "-o".as_ref(), &output]);
        assert_eq!((code, results.as_str(), said.lines().count()), (Some(1), "", 1), "{said}");
        assert!(said.contains("no recordings in") && said.contains("collected"), "{said}");
        assert!(!output.exists());
    }
}

#[test]
fn the_table_of_archived_results_is_that_of_the_results() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let timed = |seconds: f64| format!(r#"{{"program": "", "cold": {seconds}, "warm": null}}"#);
    let picks = |chooser: &str, seconds: f64| {
        let programs = timed(seconds);
        format!(r#"{{"chooser": "{chooser}", "regime": "cold", "programs": [{programs}]}}"#)
    };
    fs::create_dir(path("results")).unwrap();
    for (place, family) in ["a", "b", "c"].into_iter().enumerate() {
        let seconds = 1.0 + place as f64;
        let case = format!(
            r#"{{"recipe": "", "family": "{family}", "task": "spmv f32", "choosers": [{}, {}],
                "oracle": {{"cold": {oracle}, "warm": {oracle}}}, "searched": 9}}"#,
            picks("it", 1.25 * seconds),
            picks("cost model", 2.5 * seconds),
            oracle = timed(seconds),
        );
        fs::write(path(&format!("results/{place:06}-spmv-f32.json")), case).unwrap();
    }
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("evaluations/h200-2026-11-27");
    let (results, kept) = (path("results"), path("kept"));
    let archive =
        || run("archive", &[&recordings, "--results".as_ref(), &results, "-o".as_ref(), &kept]);
    let (code, _, said) = archive();
    assert!(code == Some(0) && said.contains("results of 3 cases"), "{said}");
    let (code, of_results, said) = run("table", &[&results]);
    assert_eq!(code, Some(0), "{said}");
    // 1 / 1.25; and twice as fast as the cost model on each matrix.
    assert!(of_results.contains("0.800") && of_results.contains("2.000 to 2.000"), "{of_results}");
    let (code, of_archive, said) = run("table", &[&kept.join("cases.json.gz")]);
    assert_eq!((code, of_archive), (Some(0), of_results), "{said}");
    // Results are kept once.
    let (code, _, said) = archive();
    assert!(code == Some(1) && said.contains("already") && said.lines().count() == 1, "{said}");
    let (code, _, said) = run("table", &[&path("nothing")]);
    assert!(code == Some(1) && said.contains("no results in"), "{said}");
}

/// A shipped file of the trainer, with some of its text replaced.
fn shipped_with(name: &str, replacements: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let mut text = fs::read_to_string(path).unwrap();
    for (from, to) in replacements {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    text
}

/// The shipped reinforcement by what is recorded, of two iterations.
fn small_reinforcement() -> String {
    let smaller = [
        ("iterations = 100", "iterations = 2"),
        ("cases = 16", "cases = 2"),
        ("rollouts = 16", "rollouts = 4"),
    ];
    shipped_with("configurations/ppo-recorded.toml", &smaller)
}

/// The shipped stages, of two steps each and a small network.
fn small_stages(folder: &Path) {
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

#[test]
fn one_command_trains_a_policy_from_recordings_that_can_be_used() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    small_recordings(3_000, &path("recorded"));
    small_stages(place.path());
    let config = path("stages.toml");
    let (recorded, output) = (path("recorded"), path("out"));
    let arguments: [&Path; 5] =
        [&config, "--recordings".as_ref(), &recorded, "--output".as_ref(), &output];
    let (code, _, said) = run("train", &arguments);
    assert_eq!(code, Some(0), "{said}");
    let model = Model::read(&output.join("policy")).unwrap();
    assert_eq!(model.description().name, "stages");
    OnnxPolicy::open(&model, &Engine::Embedded).unwrap();
    // What the shipped training measures needs a GPU, and says so before anything is made.
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("train.toml");
    let nothing = path("nothing");
    let arguments_of_all: [&Path; 5] =
        [&whole, "--recordings".as_ref(), &recorded, "--output".as_ref(), &nothing];
    let (code, _, said) = run("train", &arguments_of_all);
    assert!(code == Some(1) && said.lines().count() == 1 && !nothing.exists(), "{said}");
    assert!(
        said.contains("nearly nothing that a policy will write by itself is in recordings"),
        "{said}"
    );
    // Reinforcement goes on from the last stage, and what comes of it is the policy.
    let (reinforced, improved) = (path("reinforced.toml"), path("improved"));
    fs::write(path("recorded.toml"), small_reinforcement()).unwrap();
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&reinforced, format!("reinforcement = \"recorded.toml\"\n{text}")).unwrap();
    let arguments_of_it: [&Path; 5] =
        [&reinforced, "--recordings".as_ref(), &recorded, "--output".as_ref(), &improved];
    let (code, _, said) = run("train", &arguments_of_it);
    assert_eq!(code, Some(0), "{said}");
    let by = |folder: &str| ModelFile::read(&improved.join(folder).join("model.safetensors"));
    assert_ne!(by("ppo").unwrap().fingerprint(), by("value").unwrap().fingerprint());
    let other = Model::read(&improved.join("policy")).unwrap();
    assert_ne!(other.description().version(), model.description().version());
    let on_gpu = [&arguments[..], &["--measure-on=0".as_ref()]].concat();
    let (code, _, said) = run("train", &on_gpu);
    assert!(code == Some(1) && said.contains("has no `reinforcement`"), "{said}");
    // What has to be measured needs a GPU, and says so before it leaves anything behind.
    let (value, iterated) = (output.join("value/model.safetensors"), path("iterated"));
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("iterate.toml");
    let arguments_of_rounds: [&Path; 7] = [
        &shipped,
        "--base".as_ref(),
        &value,
        "--recordings".as_ref(),
        &recorded,
        "-o".as_ref(),
        &iterated,
    ];
    let (code, _, said) = run("iterate", &arguments_of_rounds);
    assert!(code == Some(1) && said.lines().count() == 1, "{said}");
    assert!(said.starts_with("error: ") && !iterated.exists(), "{said}");
    let (tables, tabulated) = (path("tabulated"), shipped.with_file_name("tables.toml"));
    let arguments_of_tables: [&Path; 5] =
        [&tabulated, "--recordings".as_ref(), &recorded, "-o".as_ref(), &tables];
    let (code, _, said) = run("tables", &arguments_of_tables);
    assert!(code == Some(1) && said.lines().count() == 1, "{said}");
    assert!(said.starts_with("error: ") && !tables.exists(), "{said}");
    // Another split that the dataset does not have, and sizes that are no network's.
    let dataset = output.join("dataset");
    for (from, to, says) in [
        ("split = \"no_real\"", "split = { leave_out = [\"heet\"] }", "names `heet`, of which"),
        ("split = \"no_real\"", "split = { leave_out = [] }", "names no family"),
        ("width = 16, heads = 2", "width = 17, heads = 2", "a multiple of its `heads`"),
        ("width = 16, heads = 2", "width = 16, heads = 0", "a multiple of its `heads`"),
    ] {
        let text = fs::read_to_string(path("configurations/pretrain.toml")).unwrap();
        assert!(text.contains(from), "{text}");
        let (other, to_folder) = (path("other.toml"), path("of-other"));
        fs::write(&other, text.replacen(from, to, 1)).unwrap();
        let (code, _, said) =
            run("pretrain", &[&other, "-d".as_ref(), &dataset, "-o".as_ref(), &to_folder]);
        assert!(code == Some(1) && said.contains(says) && said.lines().count() == 1, "{said}");
    }
    // Where networks cannot be trained, nothing is prepared for them.
    let elsewhere = path("elsewhere");
    let on_cuda: [&Path; 5] =
        [&config, "--recordings".as_ref(), &recorded, "-o".as_ref(), &elsewhere];
    let (code, _, said) = run("train", &[&on_cuda[..], &["--device=cuda".as_ref()]].concat());
    assert!(code == Some(1) && said.starts_with("error: ") && said.contains("CUDA"), "{said}");
    assert!(!elsewhere.exists());
    // Again, it comes to the same.
    let (code, _, said) = run("train", &arguments);
    assert_eq!(code, Some(0), "{said}");
    let again = Model::read(&output.join("policy")).unwrap();
    assert_eq!(again.description(), model.description());
}

#[test]
fn what_is_missing_is_named_with_its_cause_once() {
    let missing = Path::new("missing");
    for (command, arguments) in [
        ("fit-cost", vec![missing, "-o".as_ref(), "fit.json".as_ref()]),
        ("replay", vec![missing, "-d".as_ref(), missing]),
        ("export", vec![missing, "-o".as_ref(), "policy".as_ref()]),
        ("pretrain", vec![missing, "-d".as_ref(), missing, "-o".as_ref(), "x".as_ref()]),
    ] {
        let (code, results, said) = run(command, &arguments);
        assert_eq!((code, results.as_str()), (Some(1), ""), "{said}");
        assert!(said.starts_with("error: cannot read the ") || command == "fit-cost", "{said}");
        assert_eq!(said.matches("No such file").count(), 1, "{said}");
        assert_eq!(said.matches('\n').count(), 1, "{said}");
    }
}

#[test]
fn what_the_compiler_says_of_programs_is_kept_beside_their_recordings() {
    let place = tempfile::tempdir().unwrap();
    let (folder, dataset) = (place.path().join("recorded"), place.path().join("dataset"));
    fs::create_dir(&folder).unwrap();
    let (code, results, said) = run("compile", &[&folder]);
    assert_eq!((code, results.as_str(), said.lines().count()), (Some(1), "", 1), "{said}");
    assert!(said.contains("no recordings in"), "{said}");
    small_recordings(4_000, &folder);
    let compile = |most: &str| run("compile", &[&folder, "--most".as_ref(), most.as_ref()]);
    let done = |most: u32| {
        let said = format!("{most} of {most} programs are compiled, 0 are refused\n");
        (Some(0), String::new(), said)
    };
    assert_eq!(compile("3"), done(3));
    let path = folder.join(COMPILED);
    let three = CompiledPrograms::read(&folder).unwrap();
    assert_eq!(three.len(), 3);
    // More of them, and nothing twice.
    assert_eq!(compile("5"), done(5));
    let five = CompiledPrograms::read(&folder).unwrap();
    assert!(three.iter().all(|one| five.iter().any(|other| one == other)));
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(compile("5"), done(5));
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
    for one in five.iter() {
        let program = Program::parse(&one.program).unwrap();
        assert!((16..=255).contains(&one.machine_code.registers), "{one:?}");
        let occupancy = one.resources(program.block.threads())[1];
        assert!(one.cubin_bytes > 1000 && (-3.0..=0.0).contains(&occupancy), "{one:?}");
    }
    // Who learns from the recordings learns that, too.
    let prepare = || run("prepare", &[&folder, "-o".as_ref(), &dataset]);
    assert_eq!(prepare().0, Some(0));
    let told = |path: &Path| {
        let dataset = Dataset::read(path).unwrap();
        let programs = dataset.cases.iter().flat_map(|case| &case.programs);
        programs.filter(|program| program.resources.is_some()).count()
    };
    assert!(told(&dataset) >= 5, "{}", told(&dataset));
    // It goes with recordings that are kept elsewhere, and is never written by two names.
    let kept = place.path().join("kept");
    assert_eq!(run("archive", &[&folder, "-o".as_ref(), &kept]).0, Some(0));
    assert_eq!(CompiledPrograms::read(&kept).unwrap(), five);
    let same = place.path().join("recorded/.");
    let (code, _, said) = run("compile", &[&folder, &same]);
    assert!(
        code == Some(1) && said.contains("is named twice") && said.lines().count() == 1,
        "{said}"
    );
    // Where there is no compiler, that is said.
    let mut without = Command::new(env!("CARGO_BIN_EXE_sparserl-trainer"));
    let without = without.arg("compile").arg(&folder).env("SPARSERL_NVRTC", place.path());
    let said = String::from_utf8(without.output().unwrap().stderr).unwrap();
    assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
    fs::write(&path, "no programs").unwrap();
    let (code, _, said) = prepare();
    assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains(COMPILED) && said.contains("remove it"), "{said}");
    assert_eq!(compile("5").2, said);
}

#[test]
fn how_often_the_compiled_in_policy_is_right_is_found_by_emulation() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("samples.toml");
    let text = "tasks = [\"spmv f32\", \"spmm 8 f64\"]\nsamples = 6\ntemperature = 1.0\n\
        tries = [1, 6]\nmatrices = 2\n\
        [corpus]\nseed = 5\nshare_of_real = 0.0\nlargest_nnz = 1500\n";
    fs::write(&settings, text).unwrap();
    let output = folder.path().join("samples");
    let sample = || {
        let arguments = [settings.as_ref(), "--emulate".as_ref(), "-o".as_ref(), output.as_path()];
        run("pass-at-k", &arguments)
    };
    // Where a GPU would run the policy, nothing is begun without what runs it there.
    let arguments: [&Path; 4] = [&settings, "--ep=cuda".as_ref(), "-o".as_ref(), output.as_path()];
    let (code, shown, said) = run("pass-at-k", &arguments);
    assert_eq!((code, shown.as_str()), (Some(1), ""), "{said}");
    assert!(said.starts_with("error: `cuda` needs ONNX Runtime: name its library, or"), "{said}");
    assert!(said.ends_with("; --onnxruntime LIBRARY names it\n"), "{said}");
    assert!(!output.exists());
    let (code, shown, said) = sample();
    assert_eq!(code, Some(0), "{said}");
    let table: serde_json::Value =
        serde_json::from_slice(&fs::read(output.join("table.json")).unwrap()).unwrap();
    let rows = table["rows"].as_array().unwrap();
    // Two tasks, legal tokens and any.
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!((row["policy"].as_str(), row["samples"].as_u64()), (Some("learned"), Some(12)));
        let share = |field: &str| row[field].as_f64().unwrap();
        let pass: Vec<Option<f64>> =
            row["pass"].as_array().unwrap().iter().map(|pass| pass["value"].as_f64()).collect();
        assert!((pass[0].unwrap() - share("right")).abs() < 1e-12, "{row}");
        assert!(pass[1] >= pass[0], "{row}");
        assert!(shown.contains(row["task"].as_str().unwrap()), "{shown}");
        // The mask offers nothing that is wrong; whoever is free at least writes some programs.
        match row["tokens"].as_str() {
            Some("legal") => assert_eq!((share("compiled"), share("right")), (1.0, 1.0)),
            Some("any") => assert!(share("right") > 0.5 && share("distinct") > 1.0, "{row}"),
            other => panic!("{other:?}"),
        }
    }
    // What is done is not done again, and not mixed with other samples.
    let results = || fs::read_dir(output.join("results")).unwrap().count();
    assert_eq!(results(), 4);
    fs::remove_file(output.join("table.json")).unwrap();
    assert_eq!(sample(), (Some(0), shown, said.clone()));
    assert_eq!(said, "2 of 2 matrices are done\n");
    fs::write(&settings, text.replace("samples = 6", "samples = 7")).unwrap();
    let (code, shown, said) = sample();
    assert_eq!((code, shown.as_str(), said.lines().count()), (Some(1), "", 1), "{said}");
    assert!(said.contains("has results of other settings"), "{said}");
    fs::write(&settings, text.replace("temperature = 1.0", "temperature = 0.0")).unwrap();
    let (code, _, said) = sample();
    assert!(code == Some(1) && said.contains("`temperature` has to be"), "{said}");
}

#[test]
fn parts_of_a_training_are_left_out_and_the_rest_is_compared() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    small_recordings(3_000, &path("recorded"));
    small_stages(place.path());
    let recorded = Recordings::read(path("recorded")).unwrap();
    let first = recorded.into_iter().next().unwrap();
    let family = first.matrix.name.parse::<Recipe>().unwrap().family().to_owned();
    let (config, dataset, output) = (path("ablations.toml"), path("dataset"), path("out"));
    let text = format!(
        "training = \"stages.toml\"\nsplit = {{ leave_out = [\"{family}\"] }}\nseeds = [1, 2]\n\
         reinforcement = \"recorded.toml\"\n[[variants]]\nname = \"all\"\n\
         [[variants]]\nname = \"no SFT\"\nwithout = [\"sft\"]\n\
         shown = {{ features = true, grids = false, positions = false }}\n\
         [[improvements]]\nname = \"RLOO\"\nalgorithm = \"rloo\"\nreward = \"tiered\"\n"
    );
    fs::write(&config, &text).unwrap();
    fs::write(path("recorded.toml"), small_reinforcement()).unwrap();
    let arguments: [&Path; 3] = [&path("recorded"), "--output".as_ref(), &dataset];
    assert_eq!(run("prepare", &arguments).0, Some(0));
    let ablate = || {
        let dataset = ["--dataset".as_ref(), dataset.as_path()];
        run("ablate", &[&config, dataset[0], dataset[1], "--output".as_ref(), &output])
    };
    // Two processes share the networks: each is made once.
    let both: Vec<_> = std::thread::scope(|scope| {
        let processes: Vec<_> = (0..2).map(|_| scope.spawn(ablate)).collect();
        processes.into_iter().map(|process| process.join().unwrap()).collect()
    });
    for (code, _, said) in &both {
        assert_eq!(*code, Some(0), "{said}");
    }
    let (code, shown, rest) = ablate();
    assert_eq!(code, Some(0), "{rest}");
    let made: Vec<&str> = both.iter().map(|(_, _, said)| said.as_str()).chain([&*rest]).collect();
    for network in ["all, seed 1:", "no SFT, seed 2:", "RLOO, seed 1:", "RLOO, seed 2:"] {
        assert_eq!(made.concat().matches(network).count(), 1, "{network} {made:?}");
    }
    assert!(made[..2].iter().all(|said| said.contains("seed")), "one did all: {made:?}");
    let table: serde_json::Value =
        serde_json::from_slice(&fs::read(output.join("table.json")).unwrap()).unwrap();
    for (variant, seeds) in [
        ("all", 2),
        ("all, likeliest", 2),
        ("no SFT", 2),
        ("RLOO", 2),
        ("RLOO, likeliest", 2),
        ("cost model", 1),
    ] {
        assert!(shown.contains(variant), "{shown}");
        let rows = table["rows"].as_array().unwrap().iter();
        let rows: Vec<_> = rows.filter(|row| row["variant"] == variant).collect();
        // As many tasks as were recorded, cold and warm.
        assert!(rows.len() >= 2 && rows.len().is_multiple_of(2), "{table}");
        for row in rows {
            let first = row["first"].as_array().unwrap();
            assert_eq!(first.len(), seeds);
            assert!(first.iter().all(|ratio| (0.0..=1.0).contains(&ratio.as_f64().unwrap())));
        }
    }
    // Six steps in all, in three stages or in two.
    for (variant, stages) in [("all", &["pretrain", "sft", "value"][..]), ("no SFT", &["value"])] {
        for stage in stages {
            let model = output.join(variant).join("2").join(stage).join("model.safetensors");
            let steps = if variant == "all" { 2 } else { 3 };
            assert_eq!(ModelFile::read(&model).unwrap().steps, steps, "{variant} {stage}");
        }
    }
    // What is improved is the whole network of the same seed, and it is another one then.
    let model = |path: PathBuf| ModelFile::read(&path.join("model.safetensors")).unwrap();
    let (improved, whole) = (output.join("RLOO/2"), model(output.join("all/2/value")));
    let asked: serde_json::Value =
        serde_json::from_slice(&fs::read(improved.join("asked.json")).unwrap()).unwrap();
    assert_eq!(asked["from"], whole.fingerprint());
    assert_ne!(model(improved).fingerprint(), whole.fingerprint());
    // Nothing is trained again, and nothing is mixed with other variants.
    let (code, again, said) = ablate();
    assert_eq!((code, again.as_str(), said.as_str()), (Some(0), shown.as_str(), ""));
    fs::write(&config, text.replace("[\"sft\"]", "[\"value\"]")).unwrap();
    let (code, _, said) = ablate();
    assert!(code == Some(1) && said.contains("name another folder"), "{said}");
}
