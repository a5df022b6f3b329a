//! Policies that are trained, improved, and compared with what lacks a part.

use std::fs;
use std::path::{Path, PathBuf};

use sparserl_gpu::store::recording::Recordings;
use sparserl_onnx_models::signature::Signature;
use sparserl_onnx_models::{Engine, Model, OnnxPolicy};
use sparserl_trainer::corpus::Recipe;
use sparserl_trainer::export::was_read_back;
use sparserl_trainer::network::{ModelFile, Network, NetworkConfig, Processor};

use crate::support::{run, shipped_with, small_recordings, small_reinforcement, small_stages};

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
