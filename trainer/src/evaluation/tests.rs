//! Of choosers and their comparison, on what was measured of small matrices.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use sparserl_core::decode::{Choice, Chooser, CostChooser, PolicyError, PolicyInput, is_offered};
use sparserl_core::language::{Mask, Program, Token};
use sparserl_core::matrix::generate;
use sparserl_core::outcome::{Measurement, Objective, Outcome, Regime, Samples, Tier, Timing};
use sparserl_core::results::ValueSource;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_gpu::store::recording::Recordings;
use sparserl_onnx_models::signature::Signature;

use super::*;
use crate::collect::{Experiment as _, Stopped};
use crate::compiled::CompiledPrograms;
use crate::configuration::Contests;
use crate::corpus::{RealMatrices, Recipe, Role, Split};
use crate::dataset::{Dataset, prepare};
use crate::measured::{MeasuredCase, MeasuredProgram, Speed};
use crate::network::{Modalities, ModelFile, Network, NetworkConfig, NetworkPolicy, Processor};
use crate::proposals::reference;

/// What was measured on small matrices.
fn dataset() -> &'static Dataset {
    static DATASET: OnceLock<Dataset> = OnceLock::new();
    DATASET.get_or_init(|| {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/h200-2026-11-22-five-tasks");
        let mut recordings = Recordings::read(folder).unwrap();
        recordings.retain(|recording| recording.matrix.nnz < 1_500);
        let cases = MeasuredCase::all(&recordings).unwrap();
        let save = |_: &Dataset| Ok::<(), Infallible>(());
        let (real, none) = (RealMatrices::none(), CompiledPrograms::default());
        prepare(&cases, Dataset::empty(), &none, &real, || true, |_| {}, save).unwrap().0
    })
}

#[test]
fn every_chooser_chooses_different_programs_that_are_offered() {
    let [cold, warm, _] = Objective::ALL
        .map(|objective| Experience::of(dataset(), &Split::Everything, objective).unwrap());
    let experience = cold.clone();
    let task = Task::new(Operation::SpMV, Dtype::F32);
    assert!(experience[&task].cases.len() > 40);
    let first = |experience: &std::collections::BTreeMap<Task, Experience>| {
        experience[&task].cases.iter().map(|case| case.regrets[0].0).collect::<Vec<_>>()
    };
    assert_ne!(first(&cold), first(&warm), "the fastest are the same cold and warm");
    for case in &experience[&task].cases {
        assert_eq!(case.regrets[0].1, 0.0);
        assert!(case.regrets.iter().all(|(_, regret)| *regret >= 0.0));
    }
    let choosers: [Box<dyn Chooser>; 5] = [
        Box::new(FixedPortfolio::new(&experience, 8)),
        Box::new(NearestWinners::new(&experience, 1)),
        Box::new(NearestWinners::new(&experience, 5)),
        Box::new(ExtraTrees::new(&experience, 1).unwrap()),
        Box::new(CostChooser),
    ];
    let matrix = generate::uniform(300, 300, 4, 9).cast::<f32>().unwrap();
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let input = PolicyInput::new(Arc::clone(&stats), task, Target::H200);
    let mask = Mask::legal(&stats, task);
    for chooser in &choosers {
        let name = chooser.name();
        assert!(name == COST_MODEL || differences::is_baseline(name), "{name} has no network");
        let chosen = chooser.choose(&input, Objective::Cold, 8).unwrap();
        assert!(!chosen.is_empty() && chosen.len() <= 8, "{}", chooser.name());
        let programs: Vec<_> = chosen.into_iter().map(|choice| choice.program).collect();
        for (place, program) in programs.iter().enumerate() {
            assert!(is_offered(mask, program), "{}: {program}", chooser.name());
            assert!(!programs[..place].contains(program), "{}: {program}", chooser.name());
        }
    }
}

#[test]
fn of_a_list_only_cases_are_learned_from_that_had_it_measured() {
    let all = Experience::of(dataset(), &Split::Everything, Objective::Both).unwrap();
    let all = &all[&Task::new(Operation::SpMV, Dtype::F32)];
    let known = all.well_known(20);
    let listed: Vec<Program> =
        known.iter().take(3).map(|&(place, _)| all.programs[place].clone()).collect();
    let fair = all.of_programs(&listed);
    assert_eq!(fair.programs, listed);
    assert!(!fair.cases.is_empty() && fair.cases.len() < all.cases.len());
    assert!(fair.cases.iter().all(|case| (2..=3).contains(&case.regrets.len())));
    // Against the fastest of all that was measured.
    let meets = |case: &PastCase| case.regrets.iter().any(|(_, regret)| *regret == 0.0);
    assert!(!fair.cases.iter().all(meets));
    assert!(all.of_programs(&[]).cases.is_empty());
}

#[test]
fn a_new_network_chooses_as_the_cost_model_does() {
    let dataset = dataset();
    let family = dataset.matrices[0].recipe().unwrap().family().to_owned();
    let split = Split::LeaveOut(vec![family]);
    let config = NetworkConfig { width: 16, heads: 2, ..NetworkConfig::default() };
    let network = Network::<Processor>::new(&config, &Default::default(), 1);
    let file = ModelFile {
        signature: Signature::current(config.embedding()),
        parameters: network.parameters(),
        config,
        steps: 0,
        provenance: String::new(),
        optimizer: Vec::new(),
    };
    let policy = NetworkPolicy::<Processor>::new(&file, Modalities::ALL, Default::default());
    let replayed = replay(dataset, &split, &[("new".to_owned(), policy)], |_, _| {}).unwrap();
    let predicted = replayed.iter().flat_map(|replayed| &replayed.predicted);
    let calibrations = Calibration::all(predicted);
    let results: Vec<CaseResult> = replayed.iter().map(|one| one.result.clone()).collect();
    let is_test = |text: &str| split.role(&text.parse::<Recipe>().unwrap()) == Role::Test;
    assert!(!results.is_empty() && results.iter().all(|result| is_test(&result.recipe)));
    for pair in calibrations.chunks(2) {
        let [network, cost_model] = pair else { panic!("{pair:?}") };
        assert_eq!((&*network.chooser, &*cost_model.chooser), ("new", COST_MODEL));
        assert_eq!((&network.task, network.regime), (&cost_model.task, cost_model.regime));
        let is_near = |a: f64, b: f64| (a - b).abs() < 1e-4;
        let (all, of_cost) = (&network.all, &cost_model.all);
        assert!(is_near(all.rms, of_cost.rms) && is_near(all.within, of_cost.within));
        assert!(all.programs == of_cost.programs && all.rms > 0.0);
    }
    let table = Table::new(&results);
    for regime in [Regime::Cold, Regime::Warm] {
        let rows: Vec<_> = table.rows.iter().filter(|row| row.regime == regime).collect();
        for of_task in rows.chunks(3) {
            let [network, written, cost_model] = of_task else { panic!("{of_task:?}") };
            let names = [network, written, cost_model].map(|row| &*row.chooser);
            assert_eq!(names, ["new", "new, likeliest", "cost model"]);
            assert_eq!(network.best_of[0], cost_model.best_of[0]);
            assert_eq!(written.wrong, 0);
            for row in [network, written] {
                assert!(row.best_of.is_sorted() && row.best_of[3] <= 1.0 + 1e-9);
            }
        }
    }
}

/// Picks the reference program.
struct Plain;

impl Chooser for Plain {
    fn name(&self) -> &str {
        "plain"
    }

    fn choose(
        &self,
        input: &PolicyInput<'_>,
        _: Objective,
        _: usize,
    ) -> Result<Vec<Choice>, PolicyError> {
        let plain = reference(input.task).map(|program| Choice { program, score: 0.0 });
        Ok(plain.into_iter().collect())
    }
}

#[test]
fn the_oracle_is_at_least_as_fast_as_what_is_picked() {
    let folder = tempfile::tempdir().unwrap();
    let settings: Contests = toml::from_str(
        "seed = 1\ntasks = [\"spmv f32\"]\npicks = 4\nmutations = 10\nrounds_of_mutations = 3\n",
    )
    .unwrap();
    let choosers = || -> Vec<Box<dyn Chooser>> { vec![Box::new(CostChooser), Box::new(Plain)] };
    let contestants = ONE_REGIME.map(|(objective, _)| (objective, choosers())).into();
    let recipe = &dataset().matrices[0].recipe().unwrap();
    // A recorded program, which no chooser picks and which is the fastest by far, takes part.
    let smallest = "sparserl 3\nspmv f32\nblock 64\nkeep csr index=u16 values=plain cache=cached vector=1 \
        lanes=1 unroll=1\n";
    let speed = |relative| Some(Speed { relative, seconds: 1.0 });
    let recorded = MeasuredCase {
        nnz: 0,
        recipe: recipe.clone(),
        value_source: ValueSource::Random,
        task: settings.tasks[0],
        target: Target::H200,
        programs: vec![MeasuredProgram {
            program: Program::parse(smallest).unwrap(),
            tier: Tier::Right,
            cold: speed(1.0),
            warm: speed(1.0),
        }],
    };
    let recorded = [recorded];
    let contest = Contest::new(&settings, contestants, &recorded, folder.path().to_owned());
    let matrix = generate::uniform(300, 300, 4, 9).cast::<f32>().unwrap();
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let input = PolicyInput::new(stats, settings.tasks[0], Target::H200);
    let mut measured = BTreeSet::new();
    let mut measure = |programs: &[Program]| -> Result<Vec<Outcome>, Stopped> {
        measured.extend(programs.iter().cloned());
        // The smaller its numbers, the faster.
        let time = |program: &Program| {
            let numbers = program.tokens().into_iter().filter_map(|token| match token {
                Token::Number(number) => Some(f64::from(number)),
                Token::Word(_) => None,
            });
            1e-6 * numbers.sum::<f64>().max(1.0)
        };
        let outcome = |program: &Program| {
            let samples = Samples::try_from(vec![time(program)]).ok();
            let timing = Timing { cold: samples.clone(), warm: samples, ..Timing::default() };
            Outcome::Measured(Measurement { checks: 1, worst_ratio: 0.5, timing })
        };
        Ok(programs.iter().map(outcome).collect())
    };
    contest.run((0, recipe), &input, 1, &mut measure).unwrap();
    let results: Vec<CaseResult> = read_cases(folder.path()).unwrap();
    let [CaseResult { choosers, oracle, searched, .. }] = results.as_slice() else {
        panic!("{results:?}")
    };
    let seconds = |program: &TimedProgram| program.seconds(Regime::Warm).unwrap();
    let picks: Vec<&TimedProgram> = choosers.iter().flat_map(|one| &one.programs).collect();
    // Four of the cost model and the reference, for each regime.
    assert_eq!(picks.len(), 2 * 5);
    assert!(picks.iter().all(|pick| seconds(pick) > oracle.seconds(Regime::Warm).unwrap()));
    assert!(*searched >= 5 + 30 && *searched == measured.len(), "{searched}");
    assert!(measured.contains(&recorded[0].programs[0].program));
}
