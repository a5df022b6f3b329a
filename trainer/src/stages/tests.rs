//! Of whole stages, on recordings of small matrices and with a small network.

use std::cell::Cell;
use std::convert::Infallible;
use std::path::Path;
use std::sync::OnceLock;

use burn::backend::{Autodiff, Flex};
use sparserl_core::structure::IndexScaling;
use sparserl_gpu::store::recording::Recordings;
use sparserl_onnx_models::terms::ProgramTerms;

use super::*;
use crate::compiled::CompiledPrograms;
use crate::compiled::tests::of_registers;
use crate::configuration::Stage;
use crate::corpus::{RealMatrices, Recipe, Role, Split};
use crate::dataset::{Dataset, prepare};
use crate::measured::MeasuredCase;
use crate::network::{Compute, Learner, LossWeights, ModelFile, NetworkConfig, on_device};

/// Cases of the shipped recordings: those of small matrices, some of them for validation.
pub(crate) fn measured() -> Vec<MeasuredCase> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/h200-2026-11-22");
    let mut recordings = Recordings::read(folder).unwrap();
    let role = |name: &str| Split::NoReal.role(&name.parse::<Recipe>().unwrap());
    recordings.retain(|recording| {
        let most = match role(&recording.matrix.name) {
            Role::Validation => 100_000,
            _ => 12_000,
        };
        recording.matrix.nnz < most
    });
    MeasuredCase::all(&recordings).unwrap()
}

/// The dataset of these cases.
pub(crate) fn dataset() -> &'static Dataset {
    static DATASET: OnceLock<Dataset> = OnceLock::new();
    DATASET.get_or_init(|| {
        let cases = measured();
        let save = |_: &Dataset| Ok::<(), Infallible>(());
        let (real, none) = (RealMatrices::none(), CompiledPrograms::default());
        prepare(&cases, Dataset::empty(), &none, &real, || true, |_| {}, save).unwrap().0
    })
}

pub(crate) fn config(steps: u64) -> StageConfig {
    StageConfig {
        seed: 3,
        steps,
        split: Split::NoReal,
        matrices: None,
        cases: 4,
        programs: 12,
        shares: Shares { best: 0.25, legal: 0.1, illegal: 0.25 },
        weights: LossWeights {
            imitation: 1.0,
            terms: 0.2,
            resources: 0.1,
            reach: 0.3,
            validity: 0.3,
            speed: 1.0,
            ranking: 0.5,
        },
        learning_rate: 1e-2,
        warm_up: 5,
        last_learning_rate: 0.1,
        near: 0.05,
        temperature: 0.03,
        shortness: 0.1,
        hidden: Hidden {
            features: 0.1,
            grids: 0.2,
            positions: 0.2,
            single_positions: 0.5,
            noise: 0.02,
        },
        log_every: 5,
        validate_every: 1000,
        validation_cases: 6,
        keep_every: 4,
        optimizer: Default::default(),
        network: NetworkConfig {
            width: 16,
            heads: 2,
            encoder_layers: 1,
            decoder_layers: 1,
            speed_width: 8,
            positions: IndexScaling::Scaled,
        },
    }
}

fn run_until(
    stage: Stage,
    config: &StageConfig,
    from: Option<&ModelFile>,
    folder: &Path,
    most: u64,
) -> Result<Finished, StageError> {
    let made = Cell::new(0);
    let run = StageRun {
        stage,
        config,
        dataset: dataset(),
        from,
        folder,
        go_on: || made.get() < most,
        observe: |_: &Progress<'_>| made.set(made.get() + 1),
    };
    on_device(Compute::Cpu, run).unwrap()
}

fn run(stage: Stage, config: &StageConfig, from: Option<&ModelFile>, folder: &Path) -> Finished {
    run_until(stage, config, from, folder, u64::MAX).unwrap()
}

fn losses(folder: &Path) -> Vec<f64> {
    let log = std::fs::read_to_string(folder.join("log.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.filter_map(|line| line["training"]["total"].as_f64()).collect()
}

/// Mean loss of a network, or of a new one, over some batches.
fn mean_loss(stage: Stage, model: Option<&ModelFile>) -> f32 {
    let config = config(1);
    let mut sampler = Sampler::new(dataset(), stage, &config).unwrap();
    let learner: Learner<Autodiff<Flex>> = match model {
        Some(model) => model.begin(config.optimizer, Default::default()),
        None => Learner::new(&config.network, config.optimizer, config.seed, Default::default()),
    };
    let loss = |step| learner.evaluate(&sampler.batch(step), &config.weights).losses.total;
    (0..6).map(loss).sum::<f32>() / 6.0
}

#[test]
fn stages_make_the_loss_fall_one_after_the_other_and_say_how_good_first_picks_are() {
    let place = tempfile::tempdir().unwrap();
    let mut from = None;
    for stage in [Stage::Pretrain, Stage::Sft, Stage::Value] {
        let folder = place.path().join(stage.to_string());
        let finished = run(stage, &config(40), from.as_ref(), &folder);
        assert!(finished.complete && finished.step == 40);
        assert_eq!(losses(&folder).len(), 8);
        let model = ModelFile::read(&finished.path).unwrap();
        let [before, after] = [mean_loss(stage, from.as_ref()), mean_loss(stage, Some(&model))];
        assert!(after < 0.9 * before, "{stage}: {before} to {after}");
        let validation = finished.validation.unwrap();
        assert_eq!(validation.cases, 6);
        for picks in [validation.network, validation.cost_model] {
            for (first, of_eight) in picks.first.into_iter().zip(picks.of_eight) {
                assert!(0.2 < first && first <= of_eight && of_eight <= 1.0, "{picks:?}");
            }
        }
        from = Some(model);
    }
}

#[test]
fn an_interrupted_stage_ends_with_the_same_network() {
    let place = tempfile::tempdir().unwrap();
    let config = config(11);
    let (whole, pieces) = (place.path().join("whole"), place.path().join("pieces"));
    let whole = run(Stage::Value, &config, None, &whole);
    for most in [3, 4] {
        let stopped = run_until(Stage::Value, &config, None, &pieces, most).unwrap();
        assert!(!stopped.complete);
    }
    let finished = run(Stage::Value, &config, None, &pieces);
    let model = |finished: &Finished| ModelFile::read(&finished.path).unwrap();
    assert!(model(&whole) == model(&finished), "another network");
    assert_eq!(whole.validation, finished.validation);
    assert_eq!(losses(whole.path.parent().unwrap()), losses(&pieces));
    // A lost process goes on from the last checkpoint, and its log is of one run.
    let log = pieces.join("log.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, format!("{text}{{\"step\": 99}}\n{{\"step\": 1")).unwrap();
    run(Stage::Value, &config, None, &pieces);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), text);
    // Nothing else goes on there.
    let other = StageConfig { learning_rate: 1e-3, ..config.clone() };
    let refused = |stage, config: &StageConfig| {
        run_until(stage, config, None, &pieces, 1).unwrap_err().to_string()
    };
    assert!(refused(Stage::Value, &other).contains("of another configuration"));
    assert!(refused(Stage::Sft, &config).contains("of another stage"));
}

#[test]
fn what_diverges_ends_in_one_line_and_is_not_kept() {
    let place = tempfile::tempdir().unwrap();
    // The losses are looked at when nothing can be saved any more.
    let config = StageConfig { learning_rate: 1e38, keep_every: 1, log_every: 99, ..config(12) };
    let refused = |config: &StageConfig, name: &str| {
        let folder = place.path().join(name);
        let error = run_until(Stage::Value, config, None, &folder, u64::MAX).unwrap_err();
        let line = error.to_string();
        assert!(line.contains("diverged") && line.contains("`learning_rate`"), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(!folder.join(MODEL).exists());
        folder
    };
    let folder = refused(&config, "kept");
    let kept = ModelFile::read(&folder.join(CHECKPOINT)).unwrap();
    assert!((1..12).contains(&kept.steps), "{}", kept.steps);
    // Neither is what comes of a step whose losses, those of before it, are numbers.
    let validation_cases = 0;
    let one = StageConfig { steps: 1, learning_rate: 1e40, validation_cases, ..config };
    assert!(!refused(&one, "last").join(CHECKPOINT).exists());
}

#[test]
fn rows_have_what_their_programs_were_compiled_to() {
    let config = config(1);
    let without = Sampler::new(dataset(), Stage::Pretrain, &config).unwrap().batch(0);
    assert!(without.rows.iter().all(|row| row.resources.is_none()));
    // As if each program took as many registers as it has tokens.
    let mut compiled = CompiledPrograms::default();
    for case in &dataset().cases {
        let programs = case.programs.iter().filter_map(|known| known.program(case.task));
        for program in programs {
            let registers = program.tokens().len() as u32;
            compiled.insert(of_registers(&program.to_string(), registers));
        }
    }
    let told = dataset().clone().with_resources(&compiled);
    assert_eq!(told.compiled_programs(), told.programs());
    let batch = Sampler::new(&told, Stage::Pretrain, &config).unwrap().batch(0);
    for (row, without) in batch.rows.iter().zip(&without.rows) {
        // Nobody compiles what is drawn.
        assert_eq!(row.resources.is_some(), row.terms.is_some());
        let registers = row.resources.map(|resources| resources[0] * 64.0);
        assert!(registers.is_none_or(|registers| registers == row.tokens.len() as f32));
        assert_eq!(&crate::network::Row { resources: None, ..row.clone() }, without);
    }
}

#[test]
fn batches_have_what_the_configuration_says() {
    let config = config(10);
    let mut sampler = Sampler::new(dataset(), Stage::Sft, &config).unwrap();
    assert!(sampler.training_cases() > 20 && sampler.validation_cases().len() == 6);
    for step in 0..10 {
        let batch = sampler.batch(step);
        assert_eq!((batch.cases.len(), batch.rows.len(), batch.programs()), (4, 48, 12));
        for rows in batch.rows.chunks(12) {
            let count = |wanted: &dyn Fn(&crate::network::Row) -> bool| {
                rows.iter().filter(|row| wanted(row)).count()
            };
            assert_eq!(count(&|row| row.valid == Some(false)), 3);
            assert_eq!(count(&|row| row.valid == Some(true) && row.terms.is_none()), 1);
            assert_eq!(count(&|row| row.terms.is_some()), 8);
            assert!(count(&|row| row.imitate > 0.0) >= 1);
            let sum: f32 = rows.iter().map(|row| row.imitate).sum();
            assert!(sum > 0.0 && sum < 1.001, "{sum}");
            for row in rows.iter().filter(|row| row.terms.is_some()) {
                // What is within reach falls from token to token, to the program's own speed.
                let reach: Vec<f32> = row.reach.iter().map(|reach| reach[0].unwrap()).collect();
                assert_eq!(reach.len(), row.tokens.len() + 1);
                assert!(
                    reach.is_sorted_by(|a, b| a >= b)
                        && *reach.last().unwrap() == row.speeds[0].unwrap()
                );
            }
        }
    }
    // The same step gives the same batch, whatever came before.
    let again = Sampler::new(dataset(), Stage::Sft, &config).unwrap().batch(7);
    assert_eq!(again.rows, sampler.batch(7).rows);
    // An epoch has every case once.
    let whole = StageConfig { cases: sampler.training_cases(), ..config.clone() };
    let mut whole = Sampler::new(dataset(), Stage::Sft, &whole).unwrap();
    let scalars = |batch: crate::network::Batch| {
        let mut scalars: Vec<String> =
            batch.cases.iter().map(|(inputs, _)| format!("{:?}", &inputs.tokens[..8])).collect();
        scalars.sort_unstable();
        scalars
    };
    assert_eq!(scalars(whole.batch(0)).len(), whole.training_cases());
    // Fewer matrices are a part of more.
    let few = |matrices| {
        let config = StageConfig { matrices: Some(matrices), ..config.clone() };
        Sampler::new(dataset(), Stage::Sft, &config).unwrap().training_cases()
    };
    assert_eq!((few(2), few(4)), (6, 12));
}

#[test]
fn a_new_network_picks_what_the_cost_model_picks() {
    let place = tempfile::tempdir().unwrap();
    let config = StageConfig { steps: 1, learning_rate: 1e-12, ..config(1) };
    let validation = run(Stage::Value, &config, None, place.path()).validation.unwrap();
    assert_eq!(validation.network, validation.cost_model);
    let case = &dataset().cases[0];
    assert!(case.programs.iter().all(|program| program.terms[ProgramTerms::PREDICTED].is_finite()));
}

#[test]
fn shipped_configurations_can_be_used_and_wrong_ones_are_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("configurations");
    for stage in [Stage::Pretrain, Stage::Sft, Stage::Value] {
        let path = folder.join(format!("{stage}.toml"));
        let config = StageConfig::read(&path).unwrap();
        assert_eq!(config.learning_rate(config.warm_up), config.learning_rate);
        let last = config.learning_rate(config.steps);
        assert!((last - config.learning_rate * config.last_learning_rate).abs() < 1e-9);
        let text = std::fs::read_to_string(&path).unwrap();
        let place = tempfile::tempdir().unwrap();
        let wrong = place.path().join("wrong.toml");
        for (from, to, why) in [
            ("\ncases = ", "\ncases = 0 # ", "at least 1"),
            ("legal = 0.", "legal = 1.", "shares must be"),
            ("seed = 1", "sead = 1", "unknown field"),
            ("learning_rate = ", "learning_rate = -", "must be positive"),
            ("learning_rate = ", "learning_rate = nan # ", "must be positive"),
            ("\nprograms = ", "\nprograms = 9000000000000000000 # ", "at most 65536"),
            ("imitation = 1.0", "imitation = -1.0", "`weights` must be"),
            ("imitation = 1.0", "imitation = nan", "`weights` must be"),
            ("\nweights = ", "\nweights = {} # ", "one of them positive"),
            ("seed = 1", "seed = 1\noptimizer = { beta_1 = 1.0 }", "`optimizer.beta_1`"),
            ("seed = 1", "seed = 1\noptimizer = { beta_2 = nan }", "`optimizer.beta_2`"),
            ("seed = 1", "seed = 1\noptimizer = { epsilon = 1e-60 }", "`optimizer.epsilon`"),
            ("seed = 1", "seed = 1\noptimizer = { weight_decay = -1.0 }", "must not be negative"),
            ("seed = 1", "seed = 1\noptimizer = { largest_norm = 0.0 }", "must be positive"),
        ] {
            std::fs::write(&wrong, text.replacen(from, to, 1)).unwrap();
            let error = StageConfig::read(&wrong).unwrap_err().to_string();
            assert!(error.contains(why) && error.lines().count() == 1, "{error}");
        }
    }
}
