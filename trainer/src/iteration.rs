//! Rounds of what a policy writes being measured and learned from, instead of reinforcement
//! learning: TLM (Zhai et al., OSDI 2024) improves so, each round from the pre-trained base.
//!
//! ```text
//! policy ─► PolicySamples ─► measured, recorded ─► dataset ─► stages, from the base ─► policy ─► …
//!                                  └─► gain: the last round is the one that gains little
//! ```

use std::collections::BTreeMap;

use sparserl_core::decode::{Decoding, PolicyInput, beam_search, sample_batch};
use sparserl_core::language::{Mask, Program};
use sparserl_core::outcome::Regime;
use sparserl_core::random::SplitMix64;
use sparserl_core::results::geometric_mean;

use crate::collect::{Experiment, Measure, Stopped};
use crate::configuration::Rounds;
use crate::corpus::Recipe;
use crate::evaluation::{NamedPolicy, SIDE_BY_SIDE};
use crate::measured::MeasuredCase;

/// Has measured what a policy writes: its likeliest programs, and samples.
pub struct PolicySamples<'a> {
    settings: &'a Rounds,
    policy: NamedPolicy,
}

impl<'a> PolicySamples<'a> {
    /// Programs of this policy.
    #[must_use]
    pub fn new(settings: &'a Rounds, policy: NamedPolicy) -> Self {
        Self { settings, policy }
    }
}

impl Experiment for PolicySamples<'_> {
    fn run(
        &self,
        _: (u64, &Recipe),
        input: &PolicyInput<'_>,
        seed: u64,
        measure: &mut Measure<'_>,
    ) -> Result<(), Stopped> {
        let (_, policy) = &self.policy;
        let mut reading = policy.read(input)?;
        let mask = Mask::legal(&input.stats, input.task);
        let mut programs: Vec<Program> = Vec::new();
        let likeliest = beam_search(&mut *reading, mask, self.settings.likeliest)?;
        let mut random = SplitMix64::new(seed);
        let seeds: Vec<u64> = (0..self.settings.samples).map(|_| random.bits()).collect();
        let decoding = Decoding::Masked(mask);
        let mut sampled = Vec::new();
        for seeds in seeds.chunks(SIDE_BY_SIDE) {
            let temperature = self.settings.temperature;
            sampled.extend(sample_batch(&mut *reading, decoding, temperature, seeds)?);
        }
        let sampled = sampled.into_iter().filter_map(|trajectory| trajectory.end.ok());
        for program in likeliest.into_iter().map(|found| found.program).chain(sampled) {
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
        measure(&programs).map(|_| ())
    }
}

/// The factor by which the fastest programs of the cases of a round are faster than those that were
/// known before, the geometric mean over cases and regimes: 1.01 where they take 1 % less time.
/// Cases that were not measured before count for nothing; `None` without any.
///
/// What was known stays known, and times are medians of few samples, so that it is never below 1,
/// and luck alone raises it a little.
#[must_use]
pub fn gain(before: &[MeasuredCase], round: &[MeasuredCase]) -> Option<f64> {
    let best = |case: &MeasuredCase, regime: Regime| {
        let speeds = case.programs.iter().filter_map(|program| program.speed(regime));
        speeds.map(|speed| speed.relative).max_by(f64::total_cmp)
    };
    let key = |case: &MeasuredCase| (case.recipe.to_string(), case.task.to_string());
    let mut known = BTreeMap::<_, Vec<&MeasuredCase>>::new();
    for case in before {
        known.entry(key(case)).or_default().push(case);
    }
    let mut gains: Vec<f64> = Vec::new();
    for case in round {
        let known = known.get(&key(case)).into_iter().flatten();
        for known in known.filter(|known| known.target == case.target) {
            gains.extend(
                [Regime::Cold, Regime::Warm].into_iter().filter_map(|regime| {
                    Some((best(case, regime)? - best(known, regime)?).max(0.0))
                }),
            );
        }
    }
    geometric_mean(gains.into_iter().map(f64::exp2))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::Arc;
    use std::time::Duration;

    use sparserl_core::decode::CostRanker;
    use sparserl_core::target::Target;
    use sparserl_gpu::store::recording::{Recorder, Recordings};

    use super::*;
    use crate::collect::Collector;
    use crate::collect::tests::{Fake, FakeCompiler, context};
    use crate::corpus::{Corpus, RealMatrices, Recipes};
    use crate::shards::Shards;

    fn rounds() -> Rounds {
        toml::from_str(
            "training = \"train.toml\"\nmatrices = 3\ntasks = [\"spmv f32\"]\nlikeliest = 2\n\
             samples = 6\ntemperature = 2.0\nrounds = 2\nleast_gain = 0.01\n\
             [corpus]\nseed = 3\nshare_of_real = 0.0\nlargest_nnz = 2000\n",
        )
        .unwrap()
    }

    #[test]
    fn what_a_policy_writes_is_measured_once_and_gains_where_it_is_faster() {
        let folder = tempfile::tempdir().unwrap();
        let (rounds, real) = (rounds(), RealMatrices::none());
        let recipes = Recipes::of_corpus(rounds.corpus, rounds.matrices, &real);
        let lease = Duration::from_secs(600);
        let mut shards =
            Shards::open(&folder.path().join("shards"), rounds.matrices, lease).unwrap();
        let recorder = Recorder::append_to(folder.path().join("recordings")).unwrap();
        let samples = PolicySamples::new(&rounds, ("it".to_owned(), Arc::new(CostRanker)));
        let measuring = (Fake::default(), FakeCompiler);
        let what = (&recipes, &rounds.tasks[..]);
        let mut collector =
            Collector::new(samples, what, measuring, Target::H200, (recorder, context()));
        let collected = collector.run(&mut shards, NonZeroUsize::MIN, || true, |_| {}).unwrap();
        assert_eq!(collected.matrices, 3);

        let recordings = Recordings::read(folder.path().join("recordings")).unwrap();
        let cases = MeasuredCase::all(&recordings).unwrap();
        assert_eq!(cases.len(), 3);
        for case in &cases {
            // The likeliest, other samples, and the reference.
            assert!((3..=9).contains(&case.programs.len()), "{}", case.programs.len());
        }
        assert_eq!(gain(&cases, &cases), Some(1.0));
        assert_eq!(gain(&[], &cases), None);
        // Without the fastest programs of one case of three, which the fake says takes time by
        // the length of its text.
        let mut before = cases.clone();
        let warm = |program: &crate::measured::MeasuredProgram| program.warm.unwrap().relative;
        before[0].programs.sort_by(|a, b| warm(b).total_cmp(&warm(a)));
        let fastest = warm(&before[0].programs[0]);
        before[0].programs.retain(|program| warm(program) < fastest);
        let expected = (fastest - warm(&before[0].programs[0])) / 3.0;
        assert!((gain(&before, &cases).unwrap().log2() - expected).abs() < 1e-12 && expected > 0.0);
    }

    #[test]
    fn rounds_that_mean_nothing_are_refused() {
        assert_eq!(rounds().wrong(), None);
        assert!(Rounds { rounds: 0, ..rounds() }.wrong().is_some());
        assert!(Rounds { temperature: 0.0, ..rounds() }.wrong().is_some());
        assert!(Rounds { likeliest: 0, samples: 0, ..rounds() }.wrong().is_some());
        assert!(Rounds { samples: usize::MAX, ..rounds() }.wrong().is_some());
        let corpus = Corpus { share_of_real: f64::NAN, ..rounds().corpus };
        assert!(Rounds { corpus, ..rounds() }.wrong().is_some_and(|w| w.contains("share_of_real")));
    }
}
