//! Of the network, its losses and its files.

mod policy_gradient;

use std::sync::Arc;

use burn::backend::{Autodiff, Flex};
use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData};
use sparserl_core::decode::{PolicyInput, random_walk};
use sparserl_core::language::{Mask, Token};
use sparserl_core::matrix::generate;
use sparserl_core::random::SplitMix64;
use sparserl_core::structure::{IndexScaling, MatrixStats};
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_onnx_models::terms::ProgramTerms;

use super::loss::losses;
use super::parameters::{self, numbers};
use super::*;

type Cpu = Flex;

fn tiny() -> NetworkConfig {
    NetworkConfig {
        width: 16,
        heads: 2,
        encoder_layers: 1,
        decoder_layers: 2,
        speed_width: 8,
        positions: IndexScaling::Scaled,
    }
}

/// A network in which everything matters: drawn ones have corrections and biases of 0.
fn trained(seed: u64) -> Network<Cpu> {
    let network = Network::new(&tiny(), &Default::default(), seed);
    let mut random = SplitMix64::new(seed + 1);
    parameters::change(network, |name, shape| {
        let (count, one) = (shape.iter().product(), f64::from(u8::from(name.ends_with("gamma"))));
        Some((0..count).map(|_| (one + 0.6 * (random.uniform() - 0.5)) as f32).collect())
    })
}

/// Two cases with programs, of which everything is to be learned.
fn batch(programs: usize) -> Batch {
    let mut random = SplitMix64::new(5);
    let task = Task::new(Operation::SpMV, Dtype::F64);
    let mut batch = Batch { cases: Vec::new(), rows: Vec::new() };
    for matrix in [generate::uniform(40, 30, 3, 1), generate::stencil5(9, 9)] {
        let stats = Arc::new(MatrixStats::new(matrix.view()));
        let input = PolicyInput::new(Arc::clone(&stats), task, Target::H200);
        batch.cases.push((Inputs::new(&input, &tiny().embedding()), Modalities::ALL));
        let terms = ProgramTerms::new(Arc::clone(&stats), task, Target::H200).unwrap();
        for number in 0..programs {
            let program = random_walk(Mask::legal(&stats, task), &mut random).unwrap();
            let tokens = sparserl_onnx_models::programs::token_ids(&program);
            let mut speed = || Some((random.uniform() * 3.0 - 1.0) as f32);
            let speeds = [speed(), speed()];
            let reach = (0..=tokens.len()).map(|_| [speed(), speed()]).collect();
            batch.rows.push(Row {
                tokens,
                imitate: 0.5 + number as f32,
                terms: Some(terms.of(&program)),
                resources: Some([0.5 + 0.1 * number as f32, 1.0, -0.3, 0.0, 0.2]),
                speeds,
                members: [1.0, 0.0, 2.0, 1.0, 1.0],
                reach,
                valid: Some(number % 2 == 0),
            });
        }
    }
    batch
}

const ALL: LossWeights = LossWeights {
    imitation: 1.0,
    terms: 0.5,
    resources: 0.4,
    reach: 0.7,
    validity: 0.3,
    speed: 1.1,
    ranking: 0.9,
};

fn ids(rows: &[Vec<i32>]) -> Tensor<Cpu, 3, Int> {
    let data = TensorData::new(rows.concat(), [1, rows.len(), rows[0].len()]);
    Tensor::from_data(data, &Default::default())
}

fn assert_near(a: &[f32], b: &[f32], most: f32) {
    assert_eq!(a.len(), b.len());
    let farthest = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(farthest <= most, "{farthest}");
    assert!(a.iter().any(|x| *x != 0.0));
}

#[test]
fn tokens_one_by_one_give_the_same_as_all_at_once_and_programs_can_be_taken_over() {
    let (network, batch) = (trained(1), batch(1));
    let memory = network.read_one(&batch.cases[0].0, Modalities::ALL, &Default::default());
    let begin = BEGIN as i32;
    let rows = [vec![begin, 3, 7, 1, 20], vec![begin, 30, 2, 2, 11], vec![begin, 3, 7, 5, 9]];
    let whole = network.advance(ids(&rows), &memory, &mut Cache::empty());
    let whole = numbers(network.predict(whole).logits);
    let mut cache = Cache::empty();
    let mut steps = Vec::new();
    for at in 0..5 {
        // The third program is the first one until its fourth token.
        let token = |row: usize| vec![rows[if at < 3 && row == 2 { 0 } else { row }][at]];
        if at == 3 {
            cache = cache.select(&[0, 1, 0], &Default::default());
        }
        let asked: Vec<Vec<i32>> = (0..if at < 3 { 2 } else { 3 }).map(token).collect();
        let hidden = network.advance(ids(&asked), &memory, &mut cache);
        let logits = numbers(network.predict(hidden).logits);
        let third = if at < 3 { 0 } else { 2 };
        steps.push([0, 1, third].map(|row| {
            let first = row * Token::VOCABULARY;
            logits[first..first + Token::VOCABULARY].to_vec()
        }));
        assert_eq!(cache.positions(), at + 1);
    }
    for row in 0..3 {
        let stepped: Vec<f32> = steps.iter().flat_map(|step| step[row].clone()).collect();
        let first = row * 5 * Token::VOCABULARY;
        assert_near(&stepped, &whole[first..first + stepped.len()], 1e-4);
    }
    // In two pieces as well.
    let mut cache = Cache::empty();
    let pieces = rows.each_ref().map(|row| (row[..2].to_vec(), row[2..].to_vec()));
    let _ = network.advance(ids(&pieces.each_ref().map(|(a, _)| a.clone())), &memory, &mut cache);
    let second = pieces.map(|(_, b)| b);
    let hidden = network.advance(ids(&second), &memory, &mut cache);
    let logits = numbers(network.predict(hidden).logits);
    assert_near(&logits[..Token::VOCABULARY], &steps[2][0], 1e-4);
}

#[test]
fn the_gradient_is_the_slope_of_the_loss() {
    type Ad = Autodiff<Flex>;
    let (batch, plain) = (batch(4), trained(3));
    let given = plain.parameters();
    let device = Default::default();
    let network: Network<Ad> = parameters::set(Network::new(&tiny(), &device, 0), &given);
    let (total, _) = losses(&network, batch.on(&device), &ALL);
    let mut gradients = Gradients { of: total.backward(), found: Vec::new() };
    burn::module::Module::visit(&network, &mut gradients);
    let gradient = gradients.found;
    assert_eq!(gradient.len(), given.len());
    let loss = |given: &[Parameter]| {
        let network = parameters::set(plain.clone(), given);
        let (total, _) = losses(&network, batch.on(&Default::default()), &ALL);
        f64::from(numbers(total)[0])
    };
    // Nothing is learned by the critic here.
    let learned = |name: &str| !name.contains("critic");
    let checked = assert_slopes(&given, &gradient, learned, loss);
    assert!(checked * 3 > 2 * given.len(), "{checked} of {}", given.len());
}

/// The gradients of the parameters that are learned are the slopes of the loss, and the others have
/// none. The number of those that are large enough to be compared.
fn assert_slopes(
    given: &[Parameter],
    gradient: &[Option<Vec<f32>>],
    learned: impl Fn(&str) -> bool,
    loss: impl Fn(&[Parameter]) -> f64,
) -> usize {
    let whole = loss(given).abs();
    let mut random = SplitMix64::new(9);
    let mut checked = 0;
    for (place, parameter) in given.iter().enumerate() {
        let Some(gradient) = &gradient[place] else {
            assert!(!learned(&parameter.name), "{}", parameter.name);
            continue;
        };
        // Along its own gradient, the slope is its norm; along a random direction, the product.
        let norm = gradient.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        if norm < 1e-3 {
            continue;
        }
        let along: Vec<f64> = gradient.iter().map(|x| f64::from(*x) / norm).collect();
        let noise: Vec<f64> = along
            .iter()
            .map(|x| x + 0.3 * (random.uniform() - 0.5) / (along.len() as f64).sqrt())
            .collect();
        let expected: f64 = noise.iter().zip(gradient).map(|(d, g)| d * f64::from(*g)).sum();
        let step = (3e-3 / norm.sqrt()).min(0.02);
        let shifted = |sign: f64| {
            let mut given = given.to_vec();
            for (number, d) in given[place].numbers.iter_mut().zip(&noise) {
                *number += (sign * step * d) as f32;
            }
            loss(&given)
        };
        let slope = (shifted(1.0) - shifted(-1.0)) / (2.0 * step);
        // The loss is known to a few units of its last place.
        let most = 0.02 * expected.abs() + 4.0 * f64::from(f32::EPSILON) * whole / step;
        let error = (slope - expected).abs();
        assert!(error < most, "{}: {slope} instead of {expected}", parameter.name);
        checked += 1;
    }
    checked
}

struct Gradients<B: burn::tensor::backend::AutodiffBackend> {
    of: B::Gradients,
    found: Vec<Option<Vec<f32>>>,
}

impl<B: burn::tensor::backend::AutodiffBackend> burn::module::ModuleVisitor<B> for Gradients<B> {
    fn visit_float<const D: usize>(&mut self, param: &burn::module::Param<Tensor<B, D>>) {
        self.found.push(param.val().grad(&self.of).map(numbers));
    }
}

#[test]
fn a_new_network_says_what_the_cost_model_says() {
    let batch = batch(3);
    let learner: Learner<Autodiff<Flex>> =
        Learner::new(&tiny(), OptimizerConfig::default(), 1, Default::default());
    let evaluated = learner.evaluate(&batch, &ALL);
    for (row, speeds) in batch.rows.iter().zip(&evaluated.speeds) {
        let predicted = row.terms.unwrap()[ProgramTerms::PREDICTED];
        assert!(speeds.iter().all(|speed| (speed - predicted).abs() < 1e-5));
    }
    let usual = NetworkConfig::default();
    let size = Network::<Cpu>::new(&usual, &Default::default(), 1).num_params();
    assert!((1_000_000..8_000_000).contains(&size), "{size}");
}

#[test]
fn a_modality_that_is_not_shown_does_not_matter_and_the_others_do() {
    let (network, batch) = (trained(2), batch(1));
    let device = Default::default();
    let (inputs, _) = &batch.cases[0];
    let summary = |inputs: &Inputs, shown: Modalities| {
        numbers(network.read_one(inputs, shown, &device).summary())
    };
    let mut other = inputs.clone();
    other.grids.iter_mut().for_each(|cell| *cell = 1.0 - *cell);
    other.tokens.iter_mut().for_each(|number| *number *= 0.5);
    let scalars = Modalities::SCALARS;
    assert_eq!(summary(inputs, scalars), summary(&other, scalars));
    assert_ne!(summary(inputs, Modalities::ALL), summary(&other, Modalities::ALL));
    let no_positions = Modalities { positions: false, ..Modalities::ALL };
    assert_ne!(summary(inputs, no_positions), summary(inputs, Modalities::ALL));
    // What stands in for it does not depend on other cases of the batch, nor on how many there are.
    let all = Modalities::ALL;
    let both = network.read(&EncoderInputs::new(&[(&other, scalars), (inputs, all)], &device));
    let both = numbers(both.summary());
    assert_near(&both[16..], &summary(inputs, all), 1e-5);
    assert_near(&both[..16], &summary(&other, scalars), 1e-5);
}

#[test]
fn models_are_read_back_and_foreign_ones_are_refused_in_one_line() {
    let batch = batch(2);
    let optimizer = OptimizerConfig::default();
    let mut learner: Learner<Autodiff<Flex>> =
        Learner::new(&tiny(), optimizer, 1, Default::default());
    for _ in 0..3 {
        let (losses, norm) = learner.learn(&batch, &ALL, 1e-2)();
        assert!(losses.total.is_finite() && norm > 0.0);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let kept = ModelFile::of(&learner, &tiny(), "a test".to_owned(), true);
    kept.write(&path).unwrap();
    let read = ModelFile::read(&path).unwrap();
    assert!(read == kept, "another model");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    // What goes on from the file ends where the other one does, to the last bit.
    let mut again: Learner<Autodiff<Flex>> = read.go_on(optimizer, Default::default());
    for learner in [&mut learner, &mut again] {
        let _ = learner.learn(&batch, &ALL, 1e-2)();
    }
    assert!(learner.network().parameters() == again.network().parameters());
    assert!(learner.optimizer().state() == again.optimizer().state());
    assert_eq!(again.optimizer().steps(), 4);

    let refused = |model: &ModelFile| {
        model.write(&path).unwrap();
        ModelFile::read(&path).unwrap_err().to_string()
    };
    let mut other = kept.clone();
    other.signature.vocabulary_hash ^= 1;
    assert!(refused(&other).contains("was made for vocabulary"));
    let mut other = kept.clone();
    other.config.width = 32;
    assert!(refused(&other).contains("is not of shape"));
    let mut other = kept.clone();
    other.config.heads = 5;
    assert!(refused(&other).contains("width 16 with 5 heads"));
    let mut other = kept.clone();
    other.parameters.pop();
    assert!(refused(&other).contains("parameters, expected"));
    kept.write(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    // What diverged is neither written over what did not, nor read from elsewhere.
    let mut other = kept.clone();
    other.parameters[0].numbers[0] = f32::NAN;
    let error = other.write(&path).unwrap_err().to_string();
    assert!(error.contains("not finite") && error.lines().count() == 1, "{error}");
    assert!(std::fs::read(&path).unwrap() == bytes);
    let mut diverged = bytes.clone();
    let last = diverged.len() - 4;
    diverged[last..].copy_from_slice(&f32::INFINITY.to_le_bytes());
    std::fs::write(&path, diverged).unwrap();
    let error = ModelFile::read(&path).unwrap_err().to_string();
    assert!(error.contains("not finite") && error.lines().count() == 1, "{error}");
    for wrong in [&bytes[..bytes.len() / 2], b"something else"] {
        std::fs::write(&path, wrong).unwrap();
        let error = ModelFile::read(&path).unwrap_err().to_string();
        assert!(error.lines().count() == 1 && error.contains("is no model"), "{error}");
    }
}

#[test]
fn learning_makes_every_loss_fall() {
    let batch = batch(4);
    let mut learner: Learner<Autodiff<Flex>> =
        Learner::new(&tiny(), OptimizerConfig::default(), 1, Default::default());
    let before = learner.evaluate(&batch, &ALL).losses;
    for _ in 0..60 {
        let _ = learner.learn(&batch, &ALL, 1e-2)();
    }
    let after = learner.evaluate(&batch, &ALL).losses;
    for (before, after) in [
        (before.imitation, after.imitation),
        (before.terms, after.terms),
        (before.resources, after.resources),
        (before.reach, after.reach),
        (before.validity, after.validity),
        (before.speed, after.speed),
        (before.ranking, after.ranking),
    ] {
        assert!(after < 0.9 * before, "{before} to {after}");
    }
    assert!(before.imitation > 2.5 && before.imitation < 5.0, "{}", before.imitation);
}

#[test]
fn what_has_no_weight_is_not_learned_from() {
    // Padding rows, with nothing in them, change nothing either.
    let few = batch(2);
    let mut padded = few.clone();
    let rows = std::mem::take(&mut padded.rows);
    for pair in rows.chunks(2) {
        padded.rows.extend(pair.iter().cloned().chain([Row::default()]));
    }
    let learner: Learner<Autodiff<Flex>> =
        Learner::new(&tiny(), OptimizerConfig::default(), 1, Default::default());
    let (a, b) = (learner.evaluate(&few, &ALL).losses, learner.evaluate(&padded, &ALL).losses);
    for (a, b) in [
        (a.total, b.total),
        (a.imitation, b.imitation),
        (a.resources, b.resources),
        (a.validity, b.validity),
        (a.ranking, b.ranking),
    ] {
        assert!((a - b).abs() < 1e-4 * a.abs(), "{a} {b}");
    }
}
