//! Sampling and search: what they give is what the policy said, however it is asked.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use sparserl_core::arbitrary::{csr, task};
use sparserl_core::decode::{
    BatchRow, ConditionedPolicy, CostRanker, Decoding, Policy, PolicyError, PolicyInput,
    Prediction, beam_search, beam_search_among, random_walk, sample, sample_batch, score,
};
use sparserl_core::language::{Derivation, Mask, Program, Token};
use sparserl_core::layout::pack;
use sparserl_core::matrix::generate;
use sparserl_core::random::SplitMix64;
use sparserl_core::structure::MatrixStats;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Operation, Task};

/// Made-up logits that depend on all tokens so far, of some tokens only. It keeps what it has read
/// as a network keeps keys and values, and finds it again by the parents alone.
struct Made {
    known: fn(Token) -> bool,
    read: Vec<Vec<Token>>,
}

impl Made {
    fn new(known: fn(Token) -> bool) -> Self {
        Self { known, read: Vec::new() }
    }

    fn logits(&self, tokens: &[Token]) -> Vec<f32> {
        let fold = |sum: u64, id: usize| SplitMix64::after(sum, id as u64).bits();
        let seed = tokens.iter().map(|token| token.id().unwrap()).fold(7, fold);
        let mut random = SplitMix64::new(seed);
        let logit = |token| {
            let logit = 4.0 * random.uniform() as f32;
            if (self.known)(token) { logit } else { f32::NEG_INFINITY }
        };
        Token::all().map(logit).collect()
    }
}

impl ConditionedPolicy for Made {
    fn next(&mut self, batch: &[BatchRow<'_>]) -> Result<Vec<Prediction>, PolicyError> {
        let read = |row: &BatchRow<'_>| {
            let mut tokens = row.parent.map_or_else(Vec::new, |parent| self.read[parent].clone());
            assert_eq!(tokens, row.prefix.tokens()[..tokens.len()]);
            tokens.extend(row.prefix.tokens_from(tokens.len()));
            tokens
        };
        self.read = batch.iter().map(read).collect();
        let predict = |tokens: &Vec<Token>| Prediction {
            logits: self.logits(tokens),
            value: Some(tokens.len() as f32),
        };
        Ok(self.read.iter().map(predict).collect())
    }
}

/// Equal logits, whatever was asked.
struct Uniform;

impl Policy for Uniform {
    fn read<'m>(
        &self,
        _: &PolicyInput<'m>,
    ) -> Result<Box<dyn ConditionedPolicy + 'm>, PolicyError> {
        Ok(Box::new(Uniform))
    }
}

impl ConditionedPolicy for Uniform {
    fn next(&mut self, batch: &[BatchRow<'_>]) -> Result<Vec<Prediction>, PolicyError> {
        let prediction = Prediction { logits: vec![0.0; Token::VOCABULARY], value: None };
        Ok(vec![prediction; batch.len()])
    }
}

const SPMV: Task = Task::new(Operation::SpMV, Dtype::F64);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn trajectories_are_what_the_policy_says(
        matrix in csr::<f32>(30, 40, 120),
        task in task(Dtype::F32),
        seeds in proptest::collection::vec(any::<u64>(), 1..5),
        temperature in 0.1..3.0_f64,
        free: bool,
    ) {
        let stats = MatrixStats::new(matrix.view());
        let decoding = if free {
            Decoding::Free { task, most_tokens: 64 }
        } else {
            Decoding::Masked(Mask::legal(&stats, task))
        };
        let mut policy = Made::new(|_| true);
        let batch = sample_batch(&mut policy, decoding, temperature, &seeds).unwrap();
        prop_assert_eq!(batch.len(), seeds.len());
        for (&seed, trajectory) in seeds.iter().zip(&batch) {
            // Alone as among others, and the second time as the first.
            let alone = sample(&mut policy, decoding, temperature, seed).unwrap();
            prop_assert_eq!(&alone, trajectory);
            let tokens: Vec<Token> = trajectory.tokens().collect();
            let forced = score(&mut policy, decoding, temperature, &tokens).unwrap();
            prop_assert_eq!(&forced, trajectory);
            for (step, at) in trajectory.steps.iter().zip(0_u16..) {
                prop_assert!(step.legal.contains(&step.token));
                prop_assert!(step.log_probability <= 0.0 && step.log_probability.is_finite());
                prop_assert_eq!(step.value, Some(f32::from(at)));
            }
            let sum: f64 = trajectory.steps.iter().map(|step| step.log_probability).sum();
            prop_assert_eq!(sum, trajectory.log_probability());
            if !free {
                let program = trajectory.end.as_ref().unwrap();
                prop_assert_eq!(program.tokens(), tokens);
                prop_assert!(pack(matrix.view(), program).is_ok());
                let mut derivation = Derivation::start(Mask::legal(&stats, task));
                for step in &trajectory.steps {
                    let legal = derivation.legal();
                    prop_assert!(legal.iter().map(|a| a.token).eq(step.legal.iter().copied()));
                    derivation.push(step.token).unwrap();
                }
            }
        }
    }

    #[test]
    fn the_ranker_follows_any_legal_prefix(matrix in csr::<f64>(30, 40, 120), seed: u64) {
        let input =
            PolicyInput::new(Arc::new(MatrixStats::new(matrix.view())), SPMV, Target::A100);
        let mut policy = CostRanker.read(&input).unwrap();
        let masked = Decoding::Masked(Mask::legal(&input.stats, SPMV));
        let trajectory = sample(&mut *policy, masked, 10.0, seed).unwrap();
        prop_assert!(trajectory.end.is_ok());
        let tokens: Vec<Token> = trajectory.tokens().collect();
        prop_assert_eq!(score(&mut *policy, masked, 10.0, &tokens).unwrap(), trajectory);
        // What is not legal for the matrix it has no opinion on, and says so.
        let free = Decoding::Free { task: SPMV, most_tokens: 50 };
        sample(&mut *policy, free, 10.0, seed).unwrap();
    }
}

#[test]
fn free_decoding_mostly_ends_in_errors_and_never_goes_on() {
    let matrix = generate::rmat(5, 4, 1);
    let input = PolicyInput::new(Arc::new(MatrixStats::new(matrix.view())), SPMV, Target::H200);
    let free = Decoding::Free { task: SPMV, most_tokens: 40 };
    let seeds: Vec<u64> = (0..500).collect();
    let policies: [&dyn Policy; 2] = [&Uniform, &CostRanker];
    for (policy, least_errors) in policies.into_iter().zip([450, 0]) {
        let mut policy = policy.read(&input).unwrap();
        let found = sample_batch(&mut *policy, free, 1.0, &seeds).unwrap();
        assert!(found.iter().filter(|found| found.end.is_err()).count() >= least_errors);
        for trajectory in &found {
            let tokens: Vec<Token> = trajectory.tokens().collect();
            assert!((1..=40).contains(&tokens.len()));
            // Nothing follows the token that decides.
            let before = &tokens[..tokens.len() - 1];
            let mut derivation = Derivation::start(Mask::free(SPMV));
            assert!(before.iter().all(|&token| derivation.push(token).is_ok()));
            assert!(!derivation.is_complete());
        }
        assert!(found.iter().all(|found| found.steps[0].legal.len() == Token::VOCABULARY));
    }
    let none = sample(&mut Uniform, Decoding::Free { task: SPMV, most_tokens: 0 }, 1.0, 1).unwrap();
    assert!(none.steps.is_empty() && none.end.is_err());
}

/// A few hundred programs: without splits and dictionaries, and two choices for most fields.
fn in_slice(token: Token) -> bool {
    let words = ["keep", "csr", "sell", "u32", "d8", "u16", "plain", "cached", "streamed"];
    let numbers = [1, 4, 32, 128, 256];
    match token {
        Token::Word(_) => words.contains(&token.to_string().as_str()),
        Token::Number(n) => numbers.contains(&n),
    }
}

/// All programs of the slice with their log-probabilities, from the definition.
fn enumerate(derivation: Derivation<'_>, log_probability: f64, found: &mut Vec<(Program, f64)>) {
    if derivation.is_complete() {
        found.push((derivation.finish().unwrap(), log_probability));
        return;
    }
    let logits = Made::new(in_slice).logits(derivation.tokens());
    let legal: Vec<(Token, f64)> = derivation
        .legal()
        .iter()
        .map(|a| (a.token, f64::from(logits[a.token.id().unwrap()])))
        .filter(|(_, logit)| logit.is_finite())
        .collect();
    let sum: f64 = legal.iter().map(|(_, logit)| logit.exp()).sum();
    for (token, logit) in legal {
        let mut next = derivation.clone();
        next.push(token).unwrap();
        enumerate(next, log_probability + logit - sum.ln(), found);
    }
}

#[test]
fn a_wide_beam_finds_what_enumeration_finds() {
    let matrix = generate::uniform(40, 60, 4, 1);
    let stats = MatrixStats::new(matrix.view());
    let mask = Mask::legal(&stats, SPMV);
    let mut all = Vec::new();
    enumerate(Derivation::start(mask), 0.0, &mut all);
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    assert!((100..5_000).contains(&all.len()), "{} programs", all.len());
    let total: f64 = all.iter().map(|(_, log)| log.exp()).sum();
    assert!((total - 1.0).abs() < 1e-9, "{total}");

    let found = beam_search(&mut Made::new(in_slice), mask, all.len()).unwrap();
    for (candidate, (program, log_probability)) in found.iter().zip(&all) {
        assert_eq!(&candidate.program, program);
        assert!((candidate.log_probability - log_probability).abs() < 1e-9);
    }
    assert_eq!(found.len(), all.len());
    // A narrow one is a part of it, and greedy decoding what a cold sampler finds.
    let greedy = beam_search(&mut Made::new(in_slice), mask, 1).unwrap();
    let cold = sample(&mut Made::new(in_slice), Decoding::Masked(mask), 0.0, 9).unwrap();
    assert_eq!(greedy[0].program, cold.end.unwrap());
}

/// Counts what it is asked.
struct Counting(Made, usize);

impl ConditionedPolicy for Counting {
    fn next(&mut self, batch: &[BatchRow<'_>]) -> Result<Vec<Prediction>, PolicyError> {
        self.1 += 1;
        self.0.next(batch)
    }
}

#[test]
fn a_search_asks_nothing_where_there_is_no_choice() {
    let matrix = generate::uniform(40, 60, 4, 1);
    let stats = MatrixStats::new(matrix.view());
    let mask = Mask::legal(&stats, SPMV);
    let mut policy = Counting(Made::new(|_| true), 0);
    let found = beam_search(&mut policy, mask, 1).unwrap();
    let tokens = found[0].program.tokens();
    let known = score(&mut Made::new(|_| true), Decoding::Masked(mask), 1.0, &tokens).unwrap();
    let choices = known.steps.iter().filter(|step| step.legal.len() > 1).count();
    assert_eq!(policy.1, choices);
    assert!(choices < tokens.len());
    assert!((found[0].log_probability - known.log_probability()).abs() < 1e-12);
}

#[test]
fn decoding_among_some_programs_gives_each_of_them_and_no_other() {
    let matrix = generate::rmat(7, 6, 1);
    let stats = MatrixStats::new(matrix.view());
    let mut random = SplitMix64::new(5);
    let mask = Mask::legal(&stats, SPMV);
    let programs: BTreeSet<Vec<Token>> =
        (0..6).map(|_| random_walk(mask, &mut random).unwrap().tokens()).collect();
    assert!(programs.len() > 3);
    let decoding = Decoding::Among { task: SPMV, programs: &programs };
    let seeds: Vec<u64> = (0..200).collect();
    let found = sample_batch(&mut Uniform, decoding, 1.0, &seeds).unwrap();
    let mut reached = BTreeSet::new();
    for trajectory in &found {
        assert!(trajectory.end.is_ok());
        // Where only one program is left there is no choice, and none is paid for.
        let choices = trajectory.steps.iter().filter(|step| step.legal.len() > 1).count();
        assert!(choices < programs.len());
        for step in &trajectory.steps {
            let expected = -(step.legal.len() as f64).ln();
            assert!((step.log_probability - expected).abs() < 1e-12);
        }
        reached.insert(trajectory.tokens().collect::<Vec<_>>());
    }
    assert_eq!(reached, programs);
    let all = beam_search_among(&mut Uniform, SPMV, &programs, 64).unwrap();
    assert_eq!(all.iter().map(|h| h.program.tokens()).collect::<BTreeSet<_>>(), programs);
    for hypothesis in &all {
        let tokens = hypothesis.program.tokens();
        let scored = score(&mut Uniform, decoding, 1.0, &tokens).unwrap();
        assert!((scored.log_probability() - hypothesis.log_probability).abs() < 1e-9);
    }
    let best = beam_search_among(&mut Uniform, SPMV, &programs, 2).unwrap();
    assert_eq!(best.len(), 2);
    assert!(best.iter().all(|hypothesis| all.contains(hypothesis)));
    assert!(best.is_sorted_by(|a, b| a.log_probability >= b.log_probability));
    let none = Decoding::Among { task: SPMV, programs: &BTreeSet::new() };
    let empty = sample(&mut Uniform, none, 1.0, 1).unwrap();
    assert!(empty.steps.is_empty() && empty.end.is_err());
}
