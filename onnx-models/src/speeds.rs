//! How fast programs are, as an ensemble predicts it, and the choice that follows.

use std::sync::Arc;

use sparserl_core::decode::{ConditionedPolicy, Policy, PolicyError, PolicyInput};
use sparserl_core::language::Program;
use sparserl_core::outcome::{Objective, Regime};

/// Members of the ensemble that predicts speeds.
pub const ENSEMBLE: usize = 5;
/// Regimes of the L2 cache in which speeds are predicted, in this order.
pub const REGIMES: [Regime; 2] = [Regime::Cold, Regime::Warm];

/// log2 of the speeds of a program relative to the reference program
/// ([`crate::reference::reference`]), as each member of the ensemble predicts them for each of
/// [`REGIMES`].
pub type MemberSpeeds = [[f32; REGIMES.len()]; ENSEMBLE];

/// A policy that also predicts how fast finished programs are.
pub trait SpeedModel: Policy {
    /// As [`Policy::read`]; what comes of it also knows speeds.
    ///
    /// # Errors
    /// When the policy cannot take this input, or fails to run.
    fn read_for_speeds<'m>(
        &self,
        input: &PolicyInput<'m>,
    ) -> Result<Box<dyn ConditionedSpeedModel + 'm>, PolicyError>;
}

impl<P: SpeedModel + ?Sized> SpeedModel for Arc<P> {
    fn read_for_speeds<'m>(
        &self,
        input: &PolicyInput<'m>,
    ) -> Result<Box<dyn ConditionedSpeedModel + 'm>, PolicyError> {
        (**self).read_for_speeds(input)
    }
}

/// A [`SpeedModel`] that has read its input.
pub trait ConditionedSpeedModel: ConditionedPolicy {
    /// The speeds of programs for the matrix, task and GPU of the input, in their order. Those that
    /// it wrote before cost less.
    ///
    /// # Errors
    /// When the model fails to run.
    fn speeds(&mut self, programs: &[Program]) -> Result<Vec<MemberSpeeds>, PolicyError>;
}

/// Whether a regime, by its place among [`REGIMES`], is one of the objective's.
fn counts(objective: Objective, place: usize) -> bool {
    REGIMES.get(place).is_some_and(|regime| objective.regimes().contains(regime))
}

/// Mean over the regimes of the objective of what one member says.
fn over_regimes(member: &[f32; REGIMES.len()], objective: Objective) -> f32 {
    let speeds = (0..REGIMES.len()).filter(|&place| counts(objective, place));
    let sum: f32 = speeds.map(|place| member[place]).sum();
    sum / objective.regimes().len() as f32
}

/// Mean over members and the regimes of the objective.
#[must_use]
pub fn mean(speeds: &MemberSpeeds, objective: Objective) -> f32 {
    speeds.iter().map(|member| over_regimes(member, objective)).sum::<f32>() / ENSEMBLE as f32
}

/// Standard deviation over the members of the mean over regimes: how much they disagree.
#[must_use]
pub fn disagreement(speeds: &MemberSpeeds) -> f32 {
    let members = speeds.map(|member| over_regimes(&member, Objective::Both));
    let mean = members.iter().sum::<f32>() / ENSEMBLE as f32;
    let variance = members.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / ENSEMBLE as f32;
    variance.sqrt()
}

/// Places of the `count` programs the fastest of which is expected to be fastest, found greedily:
/// each gains most over those before it in the mean over the members and the regimes of the
/// objective. The first is the one with the highest mean; once none gains anything, the next ones
/// are those with the highest means. Those that were `begun` with, places all of them, come first.
#[must_use]
pub fn expected_fastest(
    speeds: &[MemberSpeeds],
    begun: &[usize],
    objective: Objective,
    count: usize,
) -> Vec<usize> {
    let with = |best: &MemberSpeeds, place: usize| {
        let mut both = speeds[place];
        both.iter_mut().flatten().zip(best.iter().flatten()).for_each(|(a, b)| *a = a.max(*b));
        both
    };
    let mut chosen = begun.to_vec();
    let none = [[f32::NEG_INFINITY; REGIMES.len()]; ENSEMBLE];
    let mut best = begun.iter().fold(none, |best, &place| with(&best, place));
    while chosen.len() < count.min(speeds.len()) {
        let worth =
            |place: usize| (mean(&with(&best, place), objective), mean(&speeds[place], objective));
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
        for objective in Objective::ALL {
            assert_eq!(expected_fastest(&speeds, &[], objective, 3), [1, 3, 2]);
            assert_eq!(expected_fastest(&speeds, &[], objective, 9).len(), 4);
            // Beside what was begun with, daring is still what gains most.
            assert_eq!(expected_fastest(&speeds, &[2], objective, 3), [2, 3, 1]);
            assert!(expected_fastest(&[], &[], objective, 2).is_empty());
        }
        assert_eq!(disagreement(&alike(1.5)), 0.0);
        // One member of five says 5, the others 0: the mean is 1, the variance (16 + 4) / 5 = 4.
        assert_eq!((mean(&daring, Objective::Both), disagreement(&daring)), (1.0, 2.0));
    }

    #[test]
    fn what_streams_is_chosen_for_a_cold_cache_alone() {
        let streamed = [[1.1, 0.7]; ENSEMBLE];
        let cached = [[1.0, 1.0]; ENSEMBLE];
        let first = |objective| expected_fastest(&[streamed, cached], &[], objective, 1);
        assert_eq!(first(Objective::Cold), [0]);
        assert_eq!(first(Objective::Warm), [1]);
        assert_eq!(first(Objective::Both), [1]);
        assert_eq!(
            (mean(&streamed, Objective::Cold), mean(&streamed, Objective::Warm)),
            (1.1, 0.7)
        );
        // Both are there where two may be measured.
        assert_eq!(expected_fastest(&[streamed, cached], &[], Objective::Both, 2), [1, 0]);
    }
}
