//! Of reinforcement learning as a whole, on recordings of small matrices and with a small network.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;

use burn::backend::{Autodiff, Flex};
use sparserl_core::language::{LANGUAGE_VERSION, Program, Token};
use sparserl_core::outcome::Tier;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_gpu::store::recording::{Recorder, Recordings};
use sparserl_onnx_models::programs::token_ids;

use super::*;
use crate::collect::tests::{Fake, FakeCompiler, context};
use crate::corpus::{RealMatrices, Split};
use crate::measured::MeasuredCase;
use crate::network::{
    Compute, Learner, Modalities, ModelFile, NetworkPolicy, OptimizerConfig, Processor, on_device,
};
use crate::stages;
use crate::stages::tests::{dataset, measured};

/// All programs that are written were recorded.
pub(crate) fn config(algorithm: Algorithm) -> ReinforcementConfig {
    ReinforcementConfig {
        seed: 4,
        iterations: 24,
        split: Split::NoReal,
        matrices: Some(2),
        largest_nnz: None,
        algorithm,
        decoding: DecodingMode::Measured,
        reward: Reward::Tiered,
        cases: 6,
        rollouts: 12,
        epochs: 2,
        minibatch: 3,
        learning_rate: 5e-3,
        warm_up: 2,
        clip: Clip::default(),
        lambda: 0.95,
        value_weight: 0.5,
        entropy_weight: 0.01,
        fit: FitWeights::default(),
        kl: KlConfig { weight: 0.02, target: 0.2, rate: 0.1 },
        illegality_weight: 0.0,
        best_share: 0.25,
        critic: CriticConfig { steps: 10, learning_rate: 1e-2 },
        validate_every: 20,
        validation_cases: 3,
        keep_every: 5,
        optimizer: OptimizerConfig::default(),
    }
}

/// A small network that has learned nothing.
fn beginner() -> ModelFile {
    let network = stages::tests::config(1).network;
    let optimizer = OptimizerConfig::default();
    let learner: Learner<Autodiff<Flex>> = Learner::new(&network, optimizer, 2, Default::default());
    ModelFile::of(&learner, &network, "a test".to_owned(), false)
}

fn run_until<O: Outcomes>(
    config: &ReinforcementConfig,
    from: &ModelFile,
    outcomes: O,
    folder: &Path,
    most: u64,
) -> Result<Improved, ReinforcementError<O::Error>> {
    let made = Cell::new(0);
    let run = ReinforcementRun {
        config,
        dataset: dataset(),
        real: &RealMatrices::none(),
        outcomes,
        from,
        folder,
        go_on: || made.get() < most,
        observe: |_: &Report| made.set(made.get() + 1),
    };
    on_device(Compute::Cpu, run).unwrap()
}

fn recorded() -> RecordedOutcomes {
    RecordedOutcomes::new(Known::of(&measured()))
}

fn log(folder: &Path) -> Vec<Report> {
    let text = std::fs::read_to_string(folder.join("log.jsonl")).unwrap();
    // Those of validations are no reports.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The steps of validations, and what they found.
fn validations(folder: &Path) -> Vec<(u64, Tally)> {
    let text = std::fs::read_to_string(folder.join("log.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let validated = lines.filter(|line| !line["validation"].is_null());
    validated
        .map(|mut line| {
            let tally = serde_json::from_value(line["validation"].take()).unwrap();
            (line["step"].as_u64().unwrap(), tally)
        })
        .collect()
}

#[test]
fn rewards_rise_on_what_was_recorded_whatever_is_made_of_them() {
    let place = tempfile::tempdir().unwrap();
    for algorithm in Algorithm::ALL {
        let folder = place.path().join(algorithm.to_string());
        let config = config(algorithm);
        let improved = run_until(&config, &beginner(), recorded(), &folder, u64::MAX).unwrap();
        assert!(improved.complete && improved.step == config.iterations);
        let log = log(&folder);
        let mean = |some: &[Report]| {
            some.iter().map(|report| report.written.reward).sum::<f64>() / some.len() as f64
        };
        let [first, last] = [mean(&log[..4]), mean(&log[20..])];
        assert!(last > first + 0.3, "{algorithm}: {first} to {last}");
        for report in &log {
            let Tally { missing, right, compiled, best, .. } = report.written;
            assert_eq!((missing, right, compiled), (0.0, 1.0, 1.0));
            assert!(0.0 < best && best <= 1.0, "{report:?}");
            assert!(report.kl >= 0.0 && report.entropy > 0.0, "{report:?}");
        }
        assert!(log[0].kl < 1e-4 && log[23].kl > 0.01);
        assert!(log[23].kl_weight != log[0].kl_weight);
        // Nothing is learned from other families, but they are looked at.
        let validations = validations(&folder);
        let steps: Vec<u64> = validations.iter().map(|(step, _)| *step).collect();
        assert_eq!((log.len(), steps), (24, vec![0, 20, 24]));
        let (found, logged) = (improved.validation.unwrap(), validations[2].1);
        assert!((found.reward - logged.reward).abs() < 1e-9 && found.missing == 0.0);
        assert!(validations[0].1.reward != found.reward);
    }
}

#[test]
fn an_interrupted_run_ends_with_the_same_network_and_nothing_else_goes_on_there() {
    let place = tempfile::tempdir().unwrap();
    let config = ReinforcementConfig { iterations: 7, ..config(Algorithm::Ppo) };
    let from = beginner();
    let (whole, pieces) = (place.path().join("whole"), place.path().join("pieces"));
    let whole = run_until(&config, &from, recorded(), &whole, u64::MAX).unwrap();
    for most in [2, 3] {
        assert!(!run_until(&config, &from, recorded(), &pieces, most).unwrap().complete);
    }
    let finished = run_until(&config, &from, recorded(), &pieces, u64::MAX).unwrap();
    let model = |improved: &Improved| ModelFile::read(&improved.path).unwrap();
    assert!(model(&whole) == model(&finished), "another network");
    let without_times = |folder: &Path| -> Vec<Report> {
        log(folder).into_iter().map(|report| Report { seconds: [0.0; 3], ..report }).collect()
    };
    let folder = whole.path.parent().unwrap();
    assert_eq!(without_times(folder), without_times(&pieces));
    assert_eq!((validations(folder).len(), validations(folder)), (2, validations(&pieces)));

    let refused = |config: &ReinforcementConfig, from: &ModelFile| {
        run_until(config, from, recorded(), &pieces, 1).unwrap_err().to_string()
    };
    let other = ReinforcementConfig { learning_rate: 1e-3, ..config.clone() };
    assert!(refused(&other, &from).contains("of another configuration"));
    let mut changed = from.clone();
    changed.parameters[0].numbers[0] += 1.0;
    assert!(refused(&config, &changed).contains("of another network to begin with"));
    // A checkpoint of another stage is none of ours.
    let path = pieces.join("checkpoint.safetensors");
    beginner().write(&path).unwrap();
    assert!(refused(&config, &from).contains("of another stage"));
}

#[test]
fn what_diverges_ends_in_one_line_and_is_not_kept() {
    let place = tempfile::tempdir().unwrap();
    let diverging = |algorithm, change: &dyn Fn(&mut ReinforcementConfig)| {
        let mut config = ReinforcementConfig { keep_every: 1, ..config(algorithm) };
        change(&mut config);
        let folder = place.path().join(algorithm.to_string());
        let error = run_until(&config, &beginner(), recorded(), &folder, u64::MAX).unwrap_err();
        let line = error.to_string();
        assert!(line.contains("diverged") && line.lines().count() == 1, "{line}");
        assert!(!folder.join(stages::MODEL).exists());
        assert!(!folder.join(stages::CHECKPOINT).exists());
        line
    };
    // The losses, those of before the only step of an iteration, are numbers.
    let line = diverging(Algorithm::Rloo, &|config| {
        (config.epochs, config.minibatch, config.learning_rate) = (1, 99, 1e40);
    });
    assert!(line.contains("by step 1,") && line.contains("lower `learning_rate`"), "{line}");
    let line = diverging(Algorithm::Ppo, &|config| config.critic.learning_rate = 1e38);
    assert!(line.contains("lower `critic.learning_rate`"), "{line}");
}

#[test]
fn masked_programs_are_legal_and_free_ones_that_are_none_are_worth_least() {
    let from = beginner();
    let real = RealMatrices::none();
    let matrices = Matrices::new(dataset(), &real);
    let cases = Cases::new(&matrices);
    let policy =
        NetworkPolicy::with(&from.parameters, &from.config, Modalities::ALL, Default::default());
    let places = [0, 4];
    let write = |mode| write_programs(&policy, &cases, &places, mode, 40, 7).unwrap();
    let masked = write(DecodingMode::Masked);
    for (group, again) in masked.iter().zip(write(DecodingMode::Masked)) {
        let mask =
            sparserl_core::language::Mask::legal(cases.stats(group.case).unwrap(), group.case.task);
        for (rollout, again) in group.rollouts.iter().zip(&again.rollouts) {
            assert_eq!(rollout.row, again.row);
            let program = rollout.program.as_ref().unwrap();
            assert!(sparserl_core::decode::is_offered(mask, program));
            assert!(rollout.row.steps.iter().all(|step| step.legal.contains(&step.token)));
        }
    }
    // Free ones are offered every token, and hardly any is a program.
    let free = write(DecodingMode::Free);
    let rollouts = || free.iter().flat_map(|group| &group.rollouts);
    assert!(rollouts().flat_map(|r| &r.row.steps).all(|s| s.legal.len() == Token::VOCABULARY));
    assert!(rollouts().filter(|rollout| rollout.program.is_none()).count() > 70);
    let place = tempfile::tempdir().unwrap();
    let config = ReinforcementConfig {
        decoding: DecodingMode::Free,
        iterations: 1,
        ..config(Algorithm::Grpo)
    };
    run_until(&config, &from, recorded(), place.path(), u64::MAX).unwrap();
    let log = log(place.path());
    let Tally { reward, compiled, missing, .. } = log[0].written;
    assert!(reward < -0.9 && compiled < 0.1 && missing < 0.1, "{log:?}");
}

#[test]
fn what_was_not_recorded_is_unknown_unless_it_does_not_fit() {
    let case = &dataset().cases[0];
    let real = RealMatrices::none();
    let matrices = Matrices::new(dataset(), &real);
    let cases = Cases::new(&matrices);
    let program = |text: &str| {
        Program::parse(&format!("sparserl {LANGUAGE_VERSION}\n{}\nblock 256\n{text}\n", case.task))
            .unwrap()
    };
    let recorded_program = case.programs[3].program(case.task).unwrap();
    // Values that are all different are not one constant.
    let unfit =
        program("keep csr index=u32 values=constant cache=cached vector=1 lanes=4 unroll=1");
    let mut outcomes = RecordedOutcomes::new(Known::of(&measured()[1..]));
    let programs = vec![recorded_program.clone(), unfit.clone(), recorded_program.clone()];
    let request = Request { case, programs };
    let found = outcomes.judge(&cases, std::slice::from_ref(&request)).unwrap();
    assert_eq!(found, [[None, Some(Judgement::NOT_COMPILED), None]]);
    let found = recorded().judge(&cases, &[request]).unwrap();
    let speeds = case.programs[3].speeds;
    let expected = Some(Judgement { tier: Tier::Right, speeds });
    assert_eq!(found, [[expected, Some(Judgement::NOT_COMPILED), expected]]);
}

#[test]
fn every_program_is_measured_once_and_recorded() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("recordings");
    let real = RealMatrices::none();
    let matrices = Matrices::new(dataset(), &real);
    let cases = Cases::new(&matrices);
    let of_case = |number: usize, places: &[usize]| {
        let case = &dataset().cases[number];
        let program = |&place: &usize| case.programs[place].program(case.task).unwrap();
        Request { case, programs: places.iter().map(program).collect() }
    };
    let measure_by = |fake: Fake, known: Known, requests: &[Request<'_>]| {
        let recorder = Recorder::append_to(&folder).unwrap();
        let two = NonZeroUsize::new(2).unwrap();
        let mut outcomes =
            MeasuredOutcomes::new((fake, FakeCompiler), (recorder, context()), known, two);
        let first = outcomes.judge(&cases, requests).map_err(|error| error.to_string())?;
        let measured = outcomes.measured();
        // The second time nothing is measured.
        assert_eq!(outcomes.judge(&cases, requests).as_ref().unwrap(), &first);
        assert_eq!(outcomes.measured(), measured);
        outcomes.keep().unwrap();
        Ok::<_, String>((first, measured))
    };
    let measure = |known: Known, mortal: bool, requests: &[Request<'_>]| {
        measure_by(Fake { mortal, ..Fake::default() }, known, requests)
    };
    let requests = [of_case(0, &[1, 2, 1, 3]), of_case(4, &[5, 6]), of_case(5, &[])];
    let (found, count) = measure(Known::default(), false, &requests).unwrap();
    // Three and two programs, and a reference before each few.
    assert_eq!(count, 3 + 2 + 2);
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [4, 2, 0]);
    assert_eq!(found[0][0], found[0][2]);
    let judged = found.iter().flatten().map(|judgement| judgement.unwrap());
    assert!(judged.clone().all(|j| j.tier == Tier::Right && j.speeds[1].is_some()));
    assert!(judged.clone().any(|j| j.speed().unwrap() != 0.0));
    // What was recorded says the same.
    let recordings = Recordings::read(&folder).unwrap();
    let known = Known::of(&MeasuredCase::all(&recordings).unwrap());
    let mut again = RecordedOutcomes::new(known.clone());
    assert_eq!(again.judge(&cases, &requests).unwrap(), found);
    assert_eq!(measure(known, false, &requests).unwrap(), (found, 0));
    // What fails is said, and ends it.
    let many: Vec<Request<'_>> = (0..9).map(|number| of_case(number, &[1])).collect();
    let error = measure(Known::default(), true, &many).unwrap_err();
    assert!(error.starts_with("spm") && error.ends_with(": lost"), "{error}");
    // Of cases in which nothing can be verified nothing becomes known, and it goes on.
    let unverifiable = Fake { too_large: Some(Dtype::F32), ..Fake::default() };
    let (found, count) = measure_by(unverifiable, Known::default(), &requests).unwrap();
    assert_eq!((found, count), (vec![vec![None; 4], vec![None; 2], vec![]], 0));
}

#[test]
fn what_becomes_of_rows_and_their_layout_is_structural() {
    let task = Task::new(Operation::SpMV, Dtype::F32);
    let text = format!(
        "sparserl {LANGUAGE_VERSION}\n{task}\nblock 256\nsplit-length threshold=8\n  \
         keep csr index=u32 values=plain cache=cached vector=1 lanes=4 unroll=1\n  \
         sort window=256 sell height=32 index=u32 values=plain cache=cached vector=1 lanes=1 \
         unroll=1\n"
    );
    let tokens = Program::parse(&text).unwrap().tokens();
    let decisive: Vec<String> = tokens
        .iter()
        .zip(structural(task, &tokens))
        .filter(|(_, structural)| *structural)
        .map(|(token, _)| token.to_string())
        .collect();
    // Neither the block, nor the threshold, nor the window, nor any field.
    assert_eq!(decisive, ["split-length", "keep", "csr", "sort", "sell"]);
    // After what the language does not allow, nothing is.
    let mut broken = tokens;
    broken[1] = broken[0];
    assert!(structural(task, &broken).iter().all(|structural| !structural));
}

#[test]
fn shipped_configurations_can_be_used_and_wrong_ones_are_refused() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("configurations/ppo.toml");
    let config = ReinforcementConfig::read(&path).unwrap();
    assert_eq!((config.algorithm, config.decoding), (Algorithm::Ppo, DecodingMode::Masked));
    assert!((config.learning_rate(0) - config.learning_rate / 5.0).abs() < 1e-12);
    assert_eq!(config.learning_rate(77), config.learning_rate);
    let text = std::fs::read_to_string(&path).unwrap();
    let place = tempfile::tempdir().unwrap();
    let changed = place.path().join("changed.toml");
    for (from, to, why) in [
        ("\ncases = ", "\ncases = 0 # ", "at least 1"),
        ("lambda = 0.", "lambda = 1.", "must be from 0 to 1"),
        ("target = 0.05", "target = 0.0", "must be positive"),
        ("weight = 0.1", "weight = -0.1", "must not be negative"),
        ("weight = 0.1", "weight = nan", "must not be negative"),
        ("seed = 1", "seed = 1\nillegality_weight = -1.0", "must not be negative"),
        ("decoding = \"masked\"", "decoding = \"free\"\nillegality_weight = 1.0", "`masked`"),
        ("epochs = 2", "epochs = 9000000000000000000", "`epochs` must be at most 1000"),
        ("rollouts = 16", "rollouts = 9000000000000000000", "at most 65536"),
        ("steps = 100", "steps = 9000000000000000000", "`critic.steps` at most 100000"),
        ("seed = 1", "seed = 1\noptimizer = { beta_1 = -0.1 }", "`optimizer.beta_1`"),
        ("algorithm = \"ppo\"", "algorithm = \"reinforce\"", "unknown variant"),
        ("seed = 1", "sead = 1", "unknown field"),
    ] {
        std::fs::write(&changed, text.replacen(from, to, 1)).unwrap();
        let error = ReinforcementConfig::read(&changed).unwrap_err().to_string();
        assert!(error.contains(why) && error.lines().count() == 1, "{error}");
    }
    let paper = "reward = { paper = { efficiency = 0.5 } }";
    std::fs::write(&changed, text.replacen("reward = \"tiered\"", paper, 1)).unwrap();
    let config = ReinforcementConfig::read(&changed).unwrap();
    assert_eq!(config.reward, Reward::Paper { efficiency: 0.5 });
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
    }
    assert!("reinforce".parse::<Algorithm>().is_err());
}

#[test]
fn only_cases_of_the_split_and_size_are_trained_on() {
    let place = tempfile::tempdir().unwrap();
    let config = ReinforcementConfig { largest_nnz: Some(0), ..config(Algorithm::Rloo) };
    let error = run_until(&config, &beginner(), recorded(), place.path(), 1).unwrap_err();
    assert!(error.to_string().contains("none of the dataset's cases"), "{error}");
}

#[test]
fn speeds_are_fitted_to_what_was_written_and_to_recorded_programs_besides() {
    let (data, real) = (dataset(), RealMatrices::none());
    let matrices = Matrices::new(data, &real);
    let cases = Cases::new(&matrices);
    let network = beginner();
    let policy = NetworkPolicy::<Processor>::new(&network, Modalities::ALL, Default::default());
    let groups = write_programs(&policy, &cases, &[0, 5], DecodingMode::Measured, 6, 3).unwrap();
    let requests: Vec<Request<'_>> = groups.iter().map(Group::request).collect();
    let mut judgements = recorded().judge(&cases, &requests).unwrap();
    // Of the first program nothing is known.
    judgements[0][0] = None;
    let rows = fit::rows(&cases, &groups, &judgements, (1, 7)).unwrap();
    for ((group, judgements), rows) in groups.iter().zip(&judgements).zip(&rows) {
        assert_eq!(rows.len(), 12);
        let ids = |rollout: &Rollout| token_ids(rollout.program.as_ref().unwrap());
        let known = group.rollouts.iter().zip(judgements).filter(|(_, known)| known.is_some());
        let mut written = BTreeSet::new();
        let first: Vec<Vec<u8>> = known
            .map(|(rollout, _)| ids(rollout))
            .filter(|ids| written.insert(ids.clone()))
            .collect();
        assert!(!first.is_empty() && rows[..first.len()].iter().map(|row| &row.tokens).eq(&first));
        let members = stages::bootstrap_weights(1, group.case.matrix);
        let mut different = BTreeSet::new();
        for row in rows.iter().filter(|row| !row.tokens.is_empty()) {
            let place = group.case.programs.iter().position(|known| known.tokens == row.tokens);
            let known = &group.case.programs[place.unwrap()];
            assert_eq!((row.terms, row.members), (Some(known.terms), members));
            for (regime, speed) in row.speeds.into_iter().enumerate() {
                assert!((speed.unwrap() - known.speed(regime).unwrap()).abs() < 1e-6);
            }
            assert!(different.insert(&row.tokens) && (row.imitate, row.valid) == (0.0, None));
        }
        assert!(different.len() > first.len());
    }
    // In the log are their errors, which fall.
    let place = tempfile::tempdir().unwrap();
    let fit = FitWeights { speed: 1.0, ranking: 0.5 };
    let config = ReinforcementConfig { iterations: 8, fit, ..config(Algorithm::Grpo) };
    run_until(&config, &beginner(), recorded(), place.path(), u64::MAX).unwrap();
    let errors: Vec<f32> =
        log(place.path()).iter().map(|report| report.fit.unwrap().speed).collect();
    assert!(errors.len() == 8 && errors[7] < 0.8 * errors[0], "{errors:?}");
}
