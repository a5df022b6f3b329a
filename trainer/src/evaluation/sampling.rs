//! The experiment that draws samples from policies, under the mask and freely, and has each program
//! judged once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use sparserl_core::decode::{
    ConditionedPolicy, Decoding, Policy, PolicyError, PolicyInput, sample_batch,
};
use sparserl_core::language::{Mask, Program};
use sparserl_core::outcome::Outcome;
use sparserl_core::random::SplitMix64;
use sparserl_core::results::Counts;
use sparserl_onnx_models::programs::most_tokens;

use super::result::write_case;
use super::sampled::{Sampled, SampledCase, WhichTokens};
use crate::collect::{Experiment, Measure, Stopped};
use crate::configuration::Samples;
use crate::corpus::Recipe;

/// Programs that are drawn side by side.
pub const SIDE_BY_SIDE: usize = 256;

/// A policy and what it is called.
pub type NamedPolicy = (String, Arc<dyn Policy + Send + Sync>);

/// Draws programs from policies, under the mask and freely, and finds out how many are right. One
/// that was drawn several times, or from several policies, is judged once.
pub struct Sampling<'a> {
    settings: &'a Samples,
    policies: Vec<NamedPolicy>,
    results: PathBuf,
}

/// What was drawn from a policy: how often it was each program, and how often none.
struct Drawn<'p> {
    policy: &'p str,
    tokens: WhichTokens,
    programs: BTreeMap<Program, usize>,
    none: usize,
}

impl<'a> Sampling<'a> {
    /// Writes a [`SampledCase`] for each matrix and task into the folder `results`.
    #[must_use]
    pub fn new(settings: &'a Samples, policies: Vec<NamedPolicy>, results: PathBuf) -> Self {
        Self { settings, policies, results }
    }

    fn draw<'p>(
        &self,
        policy: &'p str,
        reading: &mut dyn ConditionedPolicy,
        input: &PolicyInput<'_>,
        tokens: WhichTokens,
        seed: u64,
    ) -> Result<Drawn<'p>, PolicyError> {
        let decoding = match tokens {
            WhichTokens::Legal => Decoding::Masked(Mask::legal(&input.stats, input.task)),
            WhichTokens::Any => Decoding::Free { task: input.task, most_tokens: most_tokens() },
        };
        let mut random = SplitMix64::new(seed);
        let seeds: Vec<u64> = (0..self.settings.samples).map(|_| random.bits()).collect();
        let mut drawn = Drawn { policy, tokens, programs: BTreeMap::new(), none: 0 };
        for seeds in seeds.chunks(SIDE_BY_SIDE) {
            let temperature = self.settings.temperature;
            for trajectory in sample_batch(reading, decoding, temperature, seeds)? {
                match trajectory.end {
                    Ok(program) => *drawn.programs.entry(program).or_default() += 1,
                    Err(_) => drawn.none += 1,
                }
            }
        }
        Ok(drawn)
    }
}

impl Experiment for Sampling<'_> {
    fn run(
        &self,
        (shard, recipe): (u64, &Recipe),
        input: &PolicyInput<'_>,
        seed: u64,
        measure: &mut Measure<'_>,
    ) -> Result<(), Stopped> {
        let mut all_drawn = Vec::new();
        for (name, policy) in &self.policies {
            let mut reading = policy.read(input)?;
            for tokens in [WhichTokens::Legal, WhichTokens::Any] {
                all_drawn.push(self.draw(name, &mut *reading, input, tokens, seed)?);
            }
        }
        let mut outcomes: BTreeMap<&Program, Option<Outcome>> =
            all_drawn.iter().flat_map(|drawn| drawn.programs.keys()).map(|p| (p, None)).collect();
        let programs: Vec<Program> = outcomes.keys().map(|&program| program.clone()).collect();
        let judged = measure(&programs)?;
        outcomes.values_mut().zip(judged).for_each(|(outcome, judged)| *outcome = Some(judged));

        let no_program = Outcome::CompileFailed { reason: "no program".to_owned() };
        let count = |drawn: &Drawn<'_>| {
            let each = drawn.programs.iter().flat_map(|(program, &times)| {
                let outcome = outcomes.get(program).and_then(Option::as_ref);
                std::iter::repeat_n(outcome.unwrap_or(&no_program), times)
            });
            let counts = Counts::of(each.chain(std::iter::repeat_n(&no_program, drawn.none)));
            let (policy, distinct) = (drawn.policy.to_owned(), drawn.programs.len());
            Sampled { policy, tokens: drawn.tokens, distinct, no_program: drawn.none, counts }
        };
        let result = SampledCase {
            recipe: recipe.to_string(),
            family: recipe.family().to_owned(),
            task: input.task.to_string(),
            sampled: all_drawn.iter().map(count).collect(),
        };
        let written = write_case(&result, &self.results, shard, input.task);
        written.map_err(|(path, source)| Stopped::Write { path, source })
    }
}
