//! Chooses programs by a trained model.

use sparserl_core::decode::{
    Choice, Chooser, CostRanker, Policy as _, PolicyError, PolicyInput, beam_search, diverse_search,
};
use sparserl_core::language::{Mask, Program};
use sparserl_core::outcome::Objective;

use crate::speeds::{MemberSpeeds, SpeedModel, expected_fastest, mean};

/// Programs of the policy's own beam that are considered.
const BEAM: usize = 48;
/// Programs of the cost model that are considered.
const OF_COST_MODEL: usize = 48;

/// How programs are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picking {
    /// What the decoder finds likeliest, in that order.
    Likeliest,
    /// Those of a beam, re-ranked by the ensemble.
    Reranked,
    /// Those of a beam and of the cost model, re-ranked by the ensemble.
    RerankedWithCostModel,
}

impl Picking {
    /// All ways of picking.
    pub const ALL: [Self; 3] = [Self::Likeliest, Self::Reranked, Self::RerankedWithCostModel];
}

/// A policy that writes programs and predicts their speeds, as a chooser.
///
/// The choices are not the programs with the highest predicted speeds, which are often all alike,
/// but those of which the fastest is expected to be fastest, by the members of the ensemble, in the
/// regimes of the objective. Their score is the speed predicted there: the mean of log2 relative to
/// the reference program. The likeliest are the same for all objectives.
#[derive(Debug)]
pub struct LearnedChooser<P> {
    name: String,
    policy: P,
    picking: Picking,
}

impl<P> LearnedChooser<P> {
    /// A chooser of this name.
    #[must_use]
    pub fn new(name: impl Into<String>, policy: P, picking: Picking) -> Self {
        Self { name: name.into(), policy, picking }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &P {
        &self.policy
    }
}

impl<P: SpeedModel + Send + Sync> Chooser for LearnedChooser<P> {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(
        &self,
        input: &PolicyInput<'_>,
        objective: Objective,
        count: usize,
    ) -> Result<Vec<Choice>, PolicyError> {
        let mask = Mask::legal(&input.stats, input.task);
        let mut reading = self.policy.read_for_speeds(input)?;
        let mut found = beam_search(&mut *reading, mask, BEAM)?;
        if self.picking == Picking::Likeliest {
            found.truncate(count);
            return Ok(found.into_iter().map(Choice::from).collect());
        }
        if self.picking == Picking::RerankedWithCostModel {
            let mut ranker = CostRanker.read(input)?;
            // Where more are wanted than the beam has, those of the cost model fill up: they cost
            // less.
            found.extend(diverse_search(&mut *ranker, mask, OF_COST_MODEL.max(count))?);
        }
        let mut programs: Vec<Program> = Vec::new();
        for hypothesis in found {
            if !programs.contains(&hypothesis.program) {
                programs.push(hypothesis.program);
            }
        }
        let speeds = reading.speeds(&programs)?;
        let choice = |place: usize| {
            let (program, speeds): (&Program, &MemberSpeeds) =
                (programs.get(place)?, speeds.get(place)?);
            Some(Choice { program: program.clone(), score: f64::from(mean(speeds, objective)) })
        };
        Ok(expected_fastest(&speeds, objective, count).into_iter().filter_map(choice).collect())
    }
}
