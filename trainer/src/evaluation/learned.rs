use sparserl_core::decode::{
    CostRanker, Policy, PolicyError, PolicyInput, beam_search, diverse_search,
};
use sparserl_core::language::{Mask, Program};

use super::Chooser;
use crate::dataset::REGIMES;
use crate::network::{Backend, ENSEMBLE, MemberSpeeds, NetworkPolicy};

/// How a network's picks are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picking {
    /// What its decoder finds likeliest.
    Likeliest,
    /// Those of a beam, re-ranked by its ensemble.
    Reranked,
    /// Those of a beam and of the cost model, re-ranked by its ensemble.
    RerankedWithCostModel,
}

impl Picking {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Likeliest, Self::Reranked, Self::RerankedWithCostModel];
}

/// A network as a chooser.
///
/// The picks are not the programs with the highest predicted speeds, which are often all alike, but
/// those of which the fastest is expected to be fastest, by the members of the ensemble.
#[derive(Debug)]
pub struct LearnedChooser<B: Backend> {
    name: String,
    policy: NetworkPolicy<B>,
    picking: Picking,
}

/// Width of the beam, and candidates of the cost model.
const WIDTH: usize = 48;

impl<B: Backend> LearnedChooser<B> {
    /// A chooser called by the name of a model.
    #[must_use]
    pub fn new(model: &str, policy: NetworkPolicy<B>, picking: Picking) -> Self {
        let name = match picking {
            Picking::Likeliest => format!("{model}, likeliest"),
            Picking::Reranked => format!("{model}, re-ranked"),
            Picking::RerankedWithCostModel => format!("{model}, re-ranked with the cost model's"),
        };
        Self { name, policy, picking }
    }
}

impl<B: Backend> Chooser for LearnedChooser<B> {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(&self, input: &PolicyInput<'_>, count: usize) -> Result<Vec<Program>, PolicyError> {
        let mask = Mask::legal(&input.stats, input.task);
        let mut reading = self.policy.read(input)?;
        let beam = beam_search(&mut *reading, mask, WIDTH)?;
        let mut programs: Vec<Program> = beam.into_iter().map(|found| found.program).collect();
        if self.picking == Picking::Likeliest {
            programs.truncate(count);
            return Ok(programs);
        }
        if self.picking == Picking::RerankedWithCostModel {
            let mut ranker = CostRanker.read(input)?;
            for found in diverse_search(&mut *ranker, mask, WIDTH)? {
                if !programs.contains(&found.program) {
                    programs.push(found.program);
                }
            }
        }
        let speeds = self.policy.speeds(input, &programs)?;
        let chosen = expected_fastest(&speeds, count);
        Ok(chosen.into_iter().filter_map(|place| programs.get(place).cloned()).collect())
    }
}

/// Places of the `count` programs the fastest of which is expected to be fastest, found greedily:
/// each gains most over those before it in the mean over the members and regimes. The first is the
/// one with the highest mean; once none gains anything, the next ones are those with the highest
/// means.
pub(super) fn expected_fastest(speeds: &[MemberSpeeds], count: usize) -> Vec<usize> {
    let mut best = [[f32::NEG_INFINITY; REGIMES.len()]; ENSEMBLE];
    let mut chosen: Vec<usize> = Vec::new();
    let mean = |speeds: &MemberSpeeds| speeds.iter().flatten().sum::<f32>();
    let with = |best: &MemberSpeeds, place: usize| {
        let mut both = speeds[place];
        both.iter_mut().flatten().zip(best.iter().flatten()).for_each(|(a, b)| *a = a.max(*b));
        both
    };
    while chosen.len() < count.min(speeds.len()) {
        let worth = |place: usize| (mean(&with(&best, place)), mean(&speeds[place]));
        // Backwards, since of equals the last one is taken.
        let open = (0..speeds.len()).rev().filter(|place| !chosen.contains(place));
        let next = open.max_by(|&a, &b| {
            let (a, b) = (worth(a), worth(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let Some(next) = next else { break };
        best = with(&best, next);
        chosen.push(next);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_pick_is_what_some_members_find_faster_and_not_what_is_alike() {
        let alike = |speed: f32| [[speed; REGIMES.len()]; ENSEMBLE];
        let mut daring = alike(0.0);
        daring[0] = [5.0; REGIMES.len()];
        let speeds = [alike(1.0), alike(2.0), alike(1.9), daring];
        assert_eq!(expected_fastest(&speeds, 3), [1, 3, 2]);
        assert_eq!(expected_fastest(&speeds, 9).len(), 4);
        assert!(expected_fastest(&[], 2).is_empty());
    }
}
