//! From the rewards of a group to what each of its tokens was worth.

use super::{Algorithm, ReinforcementConfig};

/// Deviations below this are rounding.
const SMALLEST_DEVIATION: f64 = 1e-6;

/// A program of a group that was judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What it is worth.
    pub reward: f64,
    /// What the critic expected before each of its tokens.
    pub values: Vec<f64>,
}

/// What a program teaches.
#[derive(Clone, Debug, PartialEq)]
pub struct Lesson {
    /// For each token how much it was better than what else would have been written; with expert
    /// iteration how much the program is imitated.
    pub advantages: Vec<f64>,
    /// What the critic should have expected before each token.
    pub targets: Vec<f64>,
}

/// What the programs of a group teach, in their order; `distinct` says of each whether it is the
/// first of its kind, as imitation takes each once.
///
/// With r_i the reward of the i-th of n programs, the same for each of its tokens but of PPO:
///
/// * RLOO: r_i − b_i, b_i = Σ_{j≠i} r_j ÷ (n − 1);
/// * GRPO: (r_i − mean) ÷ deviation;
/// * PPO: generalised advantage estimation ([`gae`]) with the critic V corrected within the group:
///   V′(s) = V(s) + b_i − V(s_0), s_0 being the empty program. The correction does not depend on
///   the i-th program, so nothing is biased by it; the critic has to know only what differs
///   between beginnings of programs for one matrix, not how fast the matrix allows them to be. With
///   λ = 1 the advantage of the first token is that of RLOO. V itself is fitted to its own
///   λ-return;
/// * expert iteration: 1 for the best distinct programs, 0 for others.
///
/// Alone in its group, a program teaches the critic alone: nothing says whether it or the matrix is
/// fast.
#[must_use]
pub fn lessons(config: &ReinforcementConfig, group: &[Judged], distinct: &[bool]) -> Vec<Lesson> {
    let rewards: Vec<f64> = group.iter().map(|judged| judged.reward).collect();
    let same = |advantages: Vec<f64>| {
        let lesson = |(judged, advantage): (&Judged, f64)| {
            let count = judged.values.len();
            Lesson { advantages: vec![advantage; count], targets: vec![judged.reward; count] }
        };
        group.iter().zip(advantages).map(lesson).collect()
    };
    match config.algorithm {
        Algorithm::Rloo => same(leave_one_out(&rewards)),
        Algorithm::Grpo => same(normalised(&rewards)),
        Algorithm::ExpertIteration => same(best(&rewards, distinct, config.best_share)),
        Algorithm::Ppo => {
            let leads = leave_one_out(&rewards);
            let lesson = |(judged, lead): (&Judged, f64)| {
                let Judged { reward, values } = judged;
                let plain = gae(values, *reward, config.lambda);
                let targets = plain.iter().zip(values).map(|(a, value)| a + value).collect();
                if group.len() < 2 {
                    return Lesson { advantages: vec![0.0; values.len()], targets };
                }
                let first = values.first().copied().unwrap_or(0.0);
                let correction = reward - lead - first;
                let corrected: Vec<f64> = values.iter().map(|value| value + correction).collect();
                Lesson { advantages: gae(&corrected, *reward, config.lambda), targets }
            };
            group.iter().zip(leads).map(lesson).collect()
        }
    }
}

/// Each reward less the mean of the others; 0 where there are no others.
#[must_use]
pub fn leave_one_out(rewards: &[f64]) -> Vec<f64> {
    let others = rewards.len().saturating_sub(1);
    let sum: f64 = rewards.iter().sum();
    let lead = |reward: &f64| match others {
        0 => 0.0,
        _ => reward - (sum - reward) / others as f64,
    };
    rewards.iter().map(lead).collect()
}

/// Each reward less the mean of the group, in standard deviations of it; 0 where all are equal.
#[must_use]
pub fn normalised(rewards: &[f64]) -> Vec<f64> {
    let count = rewards.len().max(1) as f64;
    let mean = rewards.iter().sum::<f64>() / count;
    let square = rewards.iter().map(|reward| (reward - mean).powi(2)).sum::<f64>() / count;
    let deviation = square.sqrt().max(SMALLEST_DEVIATION);
    rewards.iter().map(|reward| (reward - mean) / deviation).collect()
}

/// Generalised advantage estimation (Schulman et al., High-Dimensional Continuous Control, 2016,
/// eq. 16) without a discount, where only the end is rewarded: Σ_l λ^l δ_{t+l}, δ_t =
/// V(s_{t+1}) − V(s_t), and δ = reward − V(s_T) at the last of the T tokens.
#[must_use]
pub fn gae(values: &[f64], reward: f64, lambda: f64) -> Vec<f64> {
    let mut advantages = vec![0.0; values.len()];
    let (mut next_value, mut next_advantage) = (reward, 0.0);
    for (advantage, value) in advantages.iter_mut().zip(values).rev() {
        *advantage = next_value - value + lambda * next_advantage;
        (next_value, next_advantage) = (*value, *advantage);
    }
    advantages
}

/// 1 for the best `share` of the distinct programs, at least for one; of equal ones for the
/// earlier.
fn best(rewards: &[f64], distinct: &[bool], share: f64) -> Vec<f64> {
    let is_distinct = |place: &usize| distinct.get(*place) == Some(&true);
    let mut places: Vec<usize> = (0..rewards.len()).filter(is_distinct).collect();
    places.sort_by(|&a, &b| rewards[b].total_cmp(&rewards[a]));
    let kept = ((share * rewards.len() as f64) as usize).max(1);
    let mut imitated = vec![0.0; rewards.len()];
    for place in places.into_iter().take(kept) {
        imitated[place] = 1.0;
    }
    imitated
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reinforcement::tests::config;

    #[track_caller]
    fn assert_near(found: &[f64], expected: &[f64]) {
        let near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(near && found.len() == expected.len(), "{found:?} instead of {expected:?}");
    }

    #[test]
    fn leaving_one_out_compares_each_with_the_mean_of_the_others() {
        // 1 − (2 + 6) / 2 = −3; 2 − (1 + 6) / 2 = −1.5; 6 − (1 + 2) / 2 = 4.5.
        assert_near(&leave_one_out(&[1.0, 2.0, 6.0]), &[-3.0, -1.5, 4.5]);
        assert_near(&leave_one_out(&[7.0]), &[0.0]);
        assert!(leave_one_out(&[]).is_empty());
    }

    #[test]
    fn normalised_rewards_have_mean_0_and_deviation_1() {
        // Mean 3, squares 4, 1, 9 of which the mean is 14 / 3: deviation 2.160247.
        let deviation = (14.0_f64 / 3.0).sqrt();
        let expected = [-2.0 / deviation, -1.0 / deviation, 3.0 / deviation];
        assert_near(&normalised(&[1.0, 2.0, 6.0]), &expected);
        assert_near(&normalised(&[0.3, 0.3]), &[0.0, 0.0]);
    }

    #[test]
    fn estimated_advantages_are_the_sums_of_the_paper() {
        // Values 1, 2, 4 and reward 3: δ = 2 − 1 = 1, 4 − 2 = 2, 3 − 4 = −1. With λ = ½:
        // −1; 2 + ½ (−1) = 1.5; 1 + ½ 1.5 = 1.75.
        assert_near(&gae(&[1.0, 2.0, 4.0], 3.0, 0.5), &[1.75, 1.5, -1.0]);
        // λ = 1: reward less value. λ = 0: δ alone.
        assert_near(&gae(&[1.0, 2.0, 4.0], 3.0, 1.0), &[2.0, 1.0, -1.0]);
        assert_near(&gae(&[1.0, 2.0, 4.0], 3.0, 0.0), &[1.0, 2.0, -1.0]);
        assert!(gae(&[], 3.0, 0.5).is_empty());
    }

    #[test]
    fn the_critic_is_corrected_by_the_rewards_of_the_others() {
        let mut config = config(Algorithm::Ppo);
        config.lambda = 0.5;
        let judged = |reward: f64, values: [f64; 2]| Judged { reward, values: values.to_vec() };
        let group = [judged(2.0, [1.0, 1.5]), judged(5.0, [1.0, 0.5]), judged(4.0, [1.0, 3.0])];
        let found = lessons(&config, &group, &[true; 3]);
        // The others of the first have 4.5 in the mean, so that its values are raised by
        // 4.5 − 1 = 3.5 to 4.5 and 5: δ = 5 − 4.5 = 0.5 and 2 − 5 = −3, and 0.5 + ½ (−3) = −1.
        assert_near(&found[0].advantages, &[-1.0, -3.0]);
        // What the critic itself is to say: δ = 0.5 and 2 − 1.5 = 0.5; 0.5 + ½ 0.5 = 0.75, and
        // added to its values 1.75 and 2.
        assert_near(&found[0].targets, &[1.75, 2.0]);
        // With λ = 1 the first token has what leaving one out gives: 5 − 3 = 2.
        config.lambda = 1.0;
        let found = lessons(&config, &group, &[true; 3]);
        assert_near(&found[1].advantages, &[2.0, 2.0 + 0.5]);
        // Alone, only the critic learns something: the reward, with λ = 1.
        let found = lessons(&config, &group[..1], &[true]);
        assert_near(&found[0].advantages, &[0.0, 0.0]);
        assert_near(&found[0].targets, &[2.0, 2.0]);
    }

    #[test]
    fn the_best_share_is_imitated_each_program_once() {
        let config = ReinforcementConfig { best_share: 0.4, ..config(Algorithm::ExpertIteration) };
        let rewards = [1.0, 3.0, 3.0, 2.0, 0.0];
        let group = rewards.map(|reward| Judged { reward, values: vec![0.0; 2] });
        // 0.4 × 5 = 2: the fourth, as the third is the second once more.
        let found = lessons(&config, &group, &[true, true, false, true, true]);
        let imitated: Vec<f64> = found.iter().map(|lesson| lesson.advantages[1]).collect();
        assert_near(&imitated, &[0.0, 1.0, 0.0, 1.0, 0.0]);
        let rloo = ReinforcementConfig { algorithm: Algorithm::Rloo, ..config.clone() };
        // 1 − (3 + 3 + 2 + 0) / 4 = −1, the same for all tokens.
        assert_near(&lessons(&rloo, &group, &[true; 5])[0].advantages, &[-1.0, -1.0]);
    }
}
