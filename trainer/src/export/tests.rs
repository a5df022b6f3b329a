//! Of exported graphs, which have to say what the network says.

use std::sync::Arc;

use prost::Message as _;
use sparserl_core::decode::{
    Chooser as _, Decoding, Policy as _, PolicyInput, is_offered, sample_batch, score,
};
use sparserl_core::language::{Mask, Program, Token};
use sparserl_core::matrix::{Csr, generate};
use sparserl_core::outcome::Objective;
use sparserl_core::random::SplitMix64;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_onnx_models::chooser::{LearnedChooser, Picking};
use sparserl_onnx_models::onnx::ModelProto;
use sparserl_onnx_models::speeds::SpeedModel as _;
use sparserl_onnx_models::{Engine, OnnxPolicy};

use super::*;
use crate::network::{Modalities, Network, NetworkConfig, NetworkPolicy, Processor};

/// A network in which everything matters, of parameters that half precision holds.
fn file(seed: u64, config: NetworkConfig) -> ModelFile {
    let network = Network::<Processor>::new(&config, &Default::default(), seed);
    let mut random = SplitMix64::new(seed + 1);
    let mut parameters = network.parameters();
    for parameter in &mut parameters {
        let one = f32::from(u8::from(parameter.name.ends_with("gamma")));
        for number in &mut parameter.numbers {
            *number = one + 0.6 * (random.uniform() as f32 - 0.5);
        }
    }
    ModelFile {
        signature: sparserl_onnx_models::signature::Signature::current(config.embedding()),
        config,
        steps: 0,
        provenance: "drawn".to_owned(),
        parameters: half_precision(&parameters).unwrap(),
        optimizer: Vec::new(),
    }
}

fn small() -> NetworkConfig {
    NetworkConfig { width: 32, heads: 4, ..NetworkConfig::default() }
}

fn both(file: &ModelFile) -> (NetworkPolicy<Processor>, OnnxPolicy) {
    let model = export(file, "drawn").unwrap();
    let network = NetworkPolicy::new(file, Modalities::ALL, Default::default());
    (network, OnnxPolicy::open(&model, &Engine::Embedded).unwrap())
}

fn matrices() -> [Csr<f64>; 4] {
    [
        generate::uniform(40, 30, 3, 1),
        generate::stencil5(30, 30),
        generate::rmat(9, 8, 3),
        generate::hyper_sparse(60, 60, 2, 1),
    ]
}

#[test]
fn what_is_exported_predicts_what_the_network_predicts() {
    let (network, exported) = both(&file(1, small()));
    let columns = 32.try_into().unwrap();
    for (operation, matrix) in
        [Operation::SpMV, Operation::SpMM { columns }].into_iter().cycle().zip(matrices())
    {
        let task = Task::new(operation, Dtype::F64);
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let input = PolicyInput::new(Arc::clone(&stats), task, Target::H200);
        let decoding = Decoding::Masked(Mask::legal(&stats, task));
        let mut reading = network.read(&input).unwrap();
        let sampled = sample_batch(&mut *reading, decoding, 1.0, &[1, 2, 3]).unwrap();
        let mut other = exported.read(&input).unwrap();
        let mut programs: Vec<Program> = Vec::new();
        for trajectory in &sampled {
            let tokens: Vec<Token> = trajectory.steps.iter().map(|step| step.token).collect();
            let scored = score(&mut *other, decoding, 1.0, &tokens).unwrap();
            for (one, other) in trajectory.steps.iter().zip(&scored.steps) {
                assert!((one.log_probability - other.log_probability).abs() < 1e-3);
                assert!((one.value.unwrap() - other.value.unwrap()).abs() < 1e-3);
            }
            programs.push(Program::from_tokens(task, &tokens).unwrap());
        }
        // Side by side, rows are taken over from one another.
        let again = sample_batch(&mut *other, decoding, 1.0, &[1, 2, 3]).unwrap();
        let tokens = |t: &sparserl_core::decode::Trajectory| -> Vec<Token> {
            t.steps.iter().map(|step| step.token).collect()
        };
        assert!(again.iter().zip(&sampled).all(|(a, b)| tokens(a) == tokens(b)));
        let expected = network.read_for_speeds(&input).unwrap().speeds(&programs).unwrap();
        let found = exported.read_for_speeds(&input).unwrap().speeds(&programs).unwrap();
        let both = found.iter().flatten().flatten().zip(expected.iter().flatten().flatten());
        assert!(both.clone().all(|(a, b)| (a - b).abs() < 1e-3));
        assert!(both.map(|(_, b)| b.abs()).fold(0.0, f32::max) > 0.1);
    }
}

#[test]
fn an_exported_policy_chooses_different_programs_that_are_offered() {
    let (_, exported) = both(&file(2, small()));
    let chooser = LearnedChooser::new("drawn", exported, Picking::RerankedWithCostModel);
    for matrix in matrices() {
        let task = Task::new(Operation::SpMV, Dtype::F64);
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let input = PolicyInput::new(Arc::clone(&stats), task, Target::H200);
        let chosen = chooser.choose(&input, Objective::Both, 8).unwrap();
        assert!(!chosen.is_empty() && chosen.len() <= 8);
        let mask = Mask::legal(&stats, task);
        for (place, choice) in chosen.iter().enumerate() {
            assert!(is_offered(mask, &choice.program));
            assert!(chosen[..place].iter().all(|other| other.program != choice.program));
            // The first four are of the beam, and a program of the cost model may be faster.
            assert!(place >= 4 || choice.score <= chosen[0].score);
        }
    }
}

#[test]
fn other_models_are_refused_in_one_line() {
    let file = file(3, small());
    let model = export(&file, "drawn").unwrap();
    let refused = |encoder: &[u8], decoder: &[u8]| {
        Model::new("here", encoder.to_vec(), decoder.to_vec()).unwrap_err().to_string()
    };
    let message = refused(b"no model", model.decoder());
    assert!(message.starts_with("`here` is no policy of SparseRL, or damaged: "), "{message}");
    assert_eq!(message.lines().count(), 1);
    let other = export(&ModelFile { provenance: "other".into(), ..file.clone() }, "drawn").unwrap();
    assert!(refused(model.encoder(), other.decoder()).contains("of different models"));
    let mut changed = ModelProto::decode(model.decoder()).unwrap();
    changed.graph.as_mut().unwrap().input[1].name = "parents".to_owned();
    let message = refused(model.encoder(), &changed.encode_to_vec());
    assert!(message.contains("decoder.onnx: its graph has other inputs"), "{message}");
    let mut signature = file.signature.clone();
    signature.language_version += 1;
    let made_for = format!("made for language version {}", signature.language_version);
    let message = export(&ModelFile { signature, ..file }, "drawn").unwrap_err().to_string();
    assert!(message.contains(&made_for), "{message}");
}

#[test]
fn the_network_of_an_exported_policy_is_read_back() {
    let config = NetworkConfig { encoder_layers: 3, decoder_layers: 1, speed_width: 24, ..small() };
    let file = file(4, config);
    let model = export(&file, "drawn").unwrap();
    let read = network_of(&model).unwrap();
    assert_eq!((&read.config, &read.signature), (&file.config, &file.signature));
    assert_eq!(read.provenance, file.provenance);
    // Parameters are of half precision; those of heads that are not exported are lost.
    let lost = |name: &str| {
        ["heads.reach", "heads.validity", "heads.terms", "heads.resources"]
            .iter()
            .any(|head| name.starts_with(head))
    };
    for (read, written) in read.parameters.iter().zip(&file.parameters) {
        assert_eq!((&read.name, &read.shape), (&written.name, &written.shape));
        assert_eq!(read.numbers != written.numbers, lost(&read.name), "{}", read.name);
    }
    // Exported again, it is the same policy.
    let again = export(&read, "drawn").unwrap();
    let graph = |bytes: &[u8]| ModelProto::decode(bytes).unwrap().graph;
    assert!(graph(again.encoder()) == graph(model.encoder()));
    assert!(graph(again.decoder()) == graph(model.decoder()));
    network_of(&Model::shipped().unwrap()).unwrap();
    assert!(was_read_back(&read) && !was_read_back(&file));
    // What lacks a parameter is refused by its name, or by that of one that has no place then.
    for (lacking, named) in [
        ("heads.tokens.bias", "heads.tokens.bias"),
        ("heads.speeds.0.second.bias", "heads.speeds.0.second.bias"),
        ("encoder.layers.2.norm.gamma", "encoder.layers.2."),
        ("encoder.layers.0.norm.gamma", "encoder.layers.0."),
    ] {
        let without = |bytes: &[u8]| {
            let mut file = ModelProto::decode(bytes).unwrap();
            let tensors = &mut file.graph.as_mut().unwrap().initializer;
            tensors.retain(|tensor| tensor.name != format!("{lacking}.f16"));
            file.encode_to_vec()
        };
        let (encoder, decoder) = (without(model.encoder()), without(model.decoder()));
        let message =
            network_of(&Model::new("here", encoder, decoder).unwrap()).unwrap_err().to_string();
        assert!(message.contains(&format!("exports: `{named}")), "{message}");
        assert_eq!(message.lines().count(), 1);
    }
}
