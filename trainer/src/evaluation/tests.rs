use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use sparserl_core::decode::is_offered;
use sparserl_core::language::Mask;
use sparserl_core::matrix::generate;
use sparserl_core::outcome::Regime;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_gpu::store::recording::Recordings;
use sparserl_onnx_models::signature::Signature;

use super::*;
use crate::corpus::{RealMatrices, Recipe, Role, Split};
use crate::dataset::{Dataset, prepare};
use crate::measured::MeasuredCase;
use crate::network::{Modalities, ModelFile, Network, NetworkConfig, NetworkPolicy, Processor};

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
        let real = RealMatrices::none();
        prepare(&cases, Dataset::empty(), &real, || true, |_| {}, save).unwrap().0
    })
}

#[test]
fn every_chooser_chooses_different_programs_that_are_offered() {
    let experience = Experience::of(dataset(), &Split::Everything).unwrap();
    let task = Task::new(Operation::SpMV, Dtype::F32);
    assert!(experience[&task].cases.len() > 40);
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
        let chosen = chooser.choose(&input, 8).unwrap();
        assert!(!chosen.is_empty() && chosen.len() <= 8, "{}", chooser.name());
        for (place, program) in chosen.iter().enumerate() {
            assert!(is_offered(mask, program), "{}: {program}", chooser.name());
            assert!(!chosen[..place].contains(program), "{}: {program}", chooser.name());
        }
    }
}

#[test]
fn a_new_network_chooses_as_the_cost_model_does() {
    let dataset = dataset();
    let family = dataset.matrices[0].recipe().unwrap().family().to_owned();
    let split = Split::LeaveOut(family);
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
    let results = replay(dataset, &split, &[("new".to_owned(), policy)], |_, _| {}).unwrap();
    let is_test = |text: &str| split.role(&text.parse::<Recipe>().unwrap()) == Role::Test;
    assert!(!results.is_empty() && results.iter().all(|result| is_test(&result.recipe)));
    let table = Table::new(&results);
    for regime in [Regime::Cold, Regime::Warm] {
        let rows: Vec<_> = table.rows.iter().filter(|row| row.regime == regime).collect();
        for (network, cost_model) in rows.iter().zip(&rows[1..]).step_by(2) {
            assert_eq!((&*network.chooser, &*cost_model.chooser), ("new", "cost model"));
            assert_eq!(network.best_of[0], cost_model.best_of[0]);
            assert!(network.best_of.is_sorted() && network.best_of[3] <= 1.0 + 1e-9);
        }
    }
}
