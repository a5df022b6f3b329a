//! The policy that is compiled in: it is for this version, is what the model card says, and every
//! engine runs it alike.

// Clippy's exception for tests does not reach the helper functions between them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;
use std::sync::Arc;

use sparserl_core::decode::{
    Chooser as _, CostChooser, Policy as _, PolicyInput, is_offered, score,
};
use sparserl_core::decode::{Decoding, beam_search};
use sparserl_core::language::{Mask, Program};
use sparserl_core::matrix::{Csr, generate};
use sparserl_core::outcome::Objective;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_onnx_models::chooser::{LearnedChooser, Picking};
use sparserl_onnx_models::speeds::{MemberSpeeds, SpeedModel as _};
use sparserl_onnx_models::{DECODER, ENCODER, Engine, Model, OnnxPolicy, OnnxRuntime};

fn matrices() -> Vec<(Csr<f64>, Task)> {
    let spmm = |columns: u32| Operation::SpMM { columns: columns.try_into().unwrap() };
    vec![
        (generate::stencil5(60, 60), Task::new(Operation::SpMV, Dtype::F64)),
        (generate::rmat(11, 9, 4), Task::new(spmm(32), Dtype::F64)),
        (generate::uniform(900, 700, 12, 2), Task::new(spmm(8), Dtype::F64)),
        (generate::hyper_sparse(5000, 5000, 300, 3), Task::new(Operation::SpMV, Dtype::F64)),
    ]
}

fn input<'m>(matrix: &'m Csr<f64>, task: Task) -> PolicyInput<'m> {
    PolicyInput::new(Arc::new(MatrixStats::new(matrix.view())), task, Target::H200)
}

#[test]
fn the_policy_that_is_compiled_in_is_the_one_that_its_card_describes() {
    let model = Model::shipped().unwrap();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("models/learned");
    let card = std::fs::read_to_string(folder.join("README.md")).unwrap();
    assert!(card.contains(model.description().version()), "the card is of another version");
    for (name, bytes) in [(ENCODER, model.encoder()), (DECODER, model.decoder())] {
        let sum = blake3::hash(bytes).to_hex().to_string();
        assert!(card.contains(&sum), "the card lacks the checksum {sum} of {name}");
    }
    assert!(model.encoder().len() + model.decoder().len() < 16 << 20);
    // As it is read from the folder, or by either of its files.
    for path in [folder.clone(), folder.join(ENCODER), folder.join(DECODER)] {
        assert_eq!(Model::read(&path).unwrap().description(), model.description());
    }
}

#[test]
fn it_offers_legal_programs_that_differ_and_other_ones_than_the_cost_model() {
    let policy = OnnxPolicy::open(&Model::shipped().unwrap(), &Engine::Embedded).unwrap();
    let chooser = LearnedChooser::new("learned", policy, Picking::RerankedWithCostModel);
    let mut differs = 0;
    for (matrix, task) in &matrices() {
        let input = input(matrix, *task);
        let chosen = chooser.choose(&input, Objective::Both, 8).unwrap();
        assert_eq!(chosen.len(), 8);
        let mask = Mask::legal(&input.stats, *task);
        for (place, choice) in chosen.iter().enumerate() {
            assert!(is_offered(mask, &choice.program));
            assert!(chosen[..place].iter().all(|other| other.program != choice.program));
        }
        assert_eq!(chosen, chooser.choose(&input, Objective::Both, 8).unwrap());
        let first = CostChooser.choose(&input, Objective::Both, 1).unwrap();
        differs += usize::from(first[0].program != chosen[0].program);
    }
    assert!(differs > 0, "it learned nothing beyond the cost model");
}

/// Where the L2 cache holds x they are no gain, and some GPUs have no room for them.
#[test]
fn panels_and_bins_are_chosen_where_no_cache_holds_x() {
    let policy = OnnxPolicy::open(&Model::shipped().unwrap(), &Engine::Embedded).unwrap();
    let chooser = LearnedChooser::new("learned", policy, Picking::RerankedWithCostModel);
    let matrix = generate::uniform(600_000, 600_000, 4, 1).cast::<f32>().unwrap();
    let task = Task::new(Operation::SpMV, Dtype::F32);
    let stats = Arc::new(MatrixStats::new(matrix.view()));
    let are_chosen = |target| {
        let input = PolicyInput::new(stats.clone(), task, target);
        let chosen = chooser.choose(&input, Objective::Both, 8).unwrap();
        chosen.iter().any(|choice| choice.program.to_string().contains("binned"))
    };
    let small_cache = Target { l2_bytes: 1 << 18, ..Target::H200 };
    assert!(are_chosen(small_cache) && !are_chosen(Target::H200));
    let no_room = Target { shared_memory_bytes: 32 << 10, ..small_cache };
    assert!(!are_chosen(no_room));
}

#[test]
fn what_a_search_left_behind_changes_no_speed() {
    let policy = OnnxPolicy::open(&Model::shipped().unwrap(), &Engine::Embedded).unwrap();
    for (matrix, task) in &matrices() {
        let input = input(matrix, *task);
        let mask = Mask::legal(&input.stats, *task);
        let mut reading = policy.read_for_speeds(&input).unwrap();
        let found = beam_search(&mut *reading, mask, 6).unwrap();
        let chosen = CostChooser.choose(&input, Objective::Both, 6).unwrap();
        // Some whose prefixes are known, and some that the search has not seen.
        let programs: Vec<Program> = found
            .into_iter()
            .map(|found| found.program)
            .chain(chosen.into_iter().map(|choice| choice.program))
            .collect();
        let after = reading.speeds(&programs).unwrap();
        for (program, after) in programs.iter().zip(&after) {
            let alone = std::slice::from_ref(program);
            let fresh = policy.read_for_speeds(&input).unwrap().speeds(alone).unwrap();
            let both = after.iter().flatten().zip(fresh[0].iter().flatten());
            assert!(both.into_iter().all(|(a, b)| (a - b).abs() < 1e-3), "{after:?} {fresh:?}");
        }
    }
}

/// What a policy says of some programs: log-probabilities and values on the way, and speeds.
fn said(policy: &OnnxPolicy, input: &PolicyInput<'_>, programs: &[Program]) -> Vec<f64> {
    let mut all = Vec::new();
    let decoding = Decoding::Masked(Mask::legal(&input.stats, input.task));
    for program in programs {
        let mut reading = policy.read(input).unwrap();
        let scored = score(&mut *reading, decoding, 1.0, &program.tokens()).unwrap();
        for step in &scored.steps {
            all.extend([step.log_probability, f64::from(step.value.unwrap())]);
        }
    }
    let speeds: Vec<MemberSpeeds> =
        policy.read_for_speeds(input).unwrap().speeds(programs).unwrap();
    all.extend(speeds.iter().flatten().flatten().map(|&speed| f64::from(speed)));
    all
}

#[test]
fn onnx_runtime_says_the_same() {
    let library = std::env::var_os("SPARSERL_TEST_ONNXRUNTIME").map(PathBuf::from);
    let library = library.filter(|library| library.exists());
    let library = library.expect("this test needs ONNX Runtime: run tests/install-onnxruntime.sh");
    let model = Model::shipped().unwrap();
    let runtime = OnnxRuntime::load(&library).unwrap();
    let runtime = OnnxPolicy::open(&model, &Engine::OnnxRuntime(runtime)).unwrap();
    let embedded = OnnxPolicy::open(&model, &Engine::Embedded).unwrap();
    for (matrix, task) in &matrices() {
        let input = input(matrix, *task);
        let mask = Mask::legal(&input.stats, *task);
        let found = beam_search(&mut *embedded.read(&input).unwrap(), mask, 6).unwrap();
        let programs: Vec<Program> = found.into_iter().map(|found| found.program).collect();
        let (one, other) = (said(&embedded, &input, &programs), said(&runtime, &input, &programs));
        assert_eq!(one.len(), other.len());
        for (one, other) in one.iter().zip(&other) {
            assert!((one - other).abs() < 1e-3 * (1.0 + one.abs()), "{one} {other}");
        }
    }
}
