//! Of the loss of policy gradients, whose gradient is compared with slopes.

use super::super::policy_gradient::policy_losses;
use super::*;

/// What a policy wrote for two cases, with everything there is to learn from it.
fn rollouts() -> RolloutBatch {
    let (from, mut random) = (batch(4), SplitMix64::new(12));
    let mut row = |row: &Row| {
        let step = |(place, &token): (usize, &u8)| {
            // Two or three tokens are offered, but of every third step there is only one.
            let others = [token, (token + 5) % 30, (token + 11) % 30];
            let legal = others[..1 + place % 3].to_vec();
            let mut uniform = |most: f64| ((2.0 * random.uniform() - 1.0) * most) as f32;
            RolloutStep {
                token,
                structural: place % 2 == 0,
                log_probability: -1.0 + uniform(0.3),
                value: uniform(0.5),
                advantage: uniform(2.0),
                target: uniform(1.0),
                reference: legal.iter().map(|_| -1.0 + uniform(0.5)).collect(),
                legal,
            }
        };
        RolloutRow { steps: row.tokens.iter().enumerate().map(step).collect() }
    };
    let mut rows: Vec<RolloutRow> = from.rows.iter().map(&mut row).collect();
    // One of which nothing is known.
    rows[1].steps.clear();
    RolloutBatch { cases: from.cases, rows }
}

const EVERYTHING: Objective = Objective {
    surrogate: Surrogate::Clipped { low: 0.2, high: 0.28 },
    value_weight: 0.7,
    value_clip: 0.2,
    entropy_weight: 0.4,
    kl_weight: 0.6,
    illegality_weight: 0.3,
};

#[test]
fn the_gradient_of_a_policy_is_the_slope_of_its_objective() {
    type Ad = Autodiff<Flex>;
    let (batch, plain) = (rollouts(), trained(3));
    let given = plain.parameters();
    let device = Default::default();
    let network: Network<Ad> = parameters::set(Network::new(&tiny(), &device, 0), &given);
    for surrogate in [EVERYTHING.surrogate, Surrogate::Likelihood] {
        let objective = Objective { surrogate, ..EVERYTHING };
        let (total, _) = policy_losses(&network, batch.on(&device), &objective);
        let mut gradients = Gradients { of: total.backward(), found: Vec::new() };
        burn::module::Module::visit(&network, &mut gradients);
        let loss = |given: &[Parameter]| {
            let network = parameters::set(plain.clone(), given);
            let (total, _) = policy_losses(&network, batch.on(&Default::default()), &objective);
            f64::from(numbers(total)[0])
        };
        let others = ["reach", "validity", "terms", "resources", "speeds"];
        let learned = |name: &str| !others.iter().any(|other| name.contains(other));
        let checked = assert_slopes(&given, &gradients.found, learned, loss);
        assert!(checked * 2 > given.len(), "{checked} of {}", given.len());
    }
}

#[test]
fn losses_are_what_follows_from_the_probabilities_of_what_was_offered() {
    let (batch, network) = (rollouts(), trained(3));
    let device = Default::default();
    let (_, all) = policy_losses(&network, batch.on(&device), &EVERYTHING);
    let [total, policy, value, entropy, kl, illegality, clipped] = numbers(all).try_into().unwrap();
    // The same sums once more, token by token.
    let (mut gains, mut beyond, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    let (mut nats, mut apart, mut forbidden) = (Vec::new(), Vec::new(), Vec::new());
    let free = free(&batch).assess(&network, &device);
    for ((row, said), free) in batch.rows.iter().zip(batch.assess(&network, &device)).zip(free) {
        for ((step, said), free) in row.steps.iter().zip(said).zip(free) {
            let offered = step.legal.iter().map(|&id| free.log_probabilities[usize::from(id)]);
            forbidden.push(-offered.map(f32::exp).sum::<f32>().ln());
            let (v, r) = (said.value, step.target);
            let near = step.value + (v - step.value).clamp(-0.2, 0.2);
            errors.push(0.5 * (v - r).powi(2).max((near - r).powi(2)));
            let logs = &said.log_probabilities;
            let sum: f32 = logs.iter().map(|log| log.exp()).sum();
            assert!((sum - 1.0).abs() < 1e-5, "{sum}");
            if logs.len() < 2 {
                continue;
            }
            let ratio = (logs[0] - step.log_probability).exp();
            let (a, within) = (step.advantage, ratio.clamp(0.8, 1.28));
            gains.push((ratio * a).min(within * a));
            beyond.push(f32::from(u8::from(ratio != within)));
            let pairs = logs.iter().zip(&step.reference);
            apart.push(pairs.map(|(log, other)| log.exp() * (log - other)).sum::<f32>());
            if step.structural {
                nats.push(-logs.iter().map(|log| log.exp() * log).sum::<f32>());
            }
        }
    }
    let mean = |all: &[f32]| all.iter().sum::<f32>() / all.len() as f32;
    let found = [policy, value, entropy, kl, illegality, clipped];
    let gains: Vec<f32> = gains.iter().map(|gain| -gain).collect();
    let expected = [gains, errors, nats, apart, forbidden, beyond].map(|all| mean(&all));
    for (found, expected) in found.into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-4, "{found} instead of {expected}");
    }
    let [policy, value, entropy, kl, illegality, clipped] = expected;
    let weighted = policy + 0.7 * value - 0.4 * entropy + 0.6 * kl + 0.3 * illegality;
    assert!((total - weighted).abs() < 1e-4, "{total} instead of {weighted}");
    assert!(0.0 < clipped && clipped < 1.0 && illegality > 0.0);
}

/// The same rows where the whole vocabulary was offered.
fn free(batch: &RolloutBatch) -> RolloutBatch {
    let mut batch = batch.clone();
    for step in batch.rows.iter_mut().flat_map(|row| &mut row.steps) {
        step.legal = (0..Token::VOCABULARY as u8).collect();
    }
    batch
}

#[test]
fn what_was_not_offered_gets_less_likely_where_that_is_worth_something() {
    let batch = rollouts();
    let illegality = |weight: f64| {
        let objective = Objective { illegality_weight: weight, ..EVERYTHING };
        let config = OptimizerConfig::default();
        let learner: Learner<Autodiff<Flex>> = Learner::new(&tiny(), config, 1, Default::default());
        let mut learner = learner.with_parameters(&trained(3).parameters());
        let steps = (0..30).map(|_| learner.improve(&batch, &objective, None, 1e-2)().policy);
        let steps: Vec<PolicyLosses> = steps.collect();
        (steps[0].illegality, steps[29].illegality, steps[29].policy < steps[0].policy)
    };
    let ((first, without, _), (_, with, improves)) = (illegality(0.0), illegality(1.0));
    assert!(with < 0.5 * first.min(without), "{first}: {without} without, {with} with");
    assert!(improves);
}

#[test]
fn improving_makes_what_was_better_likelier_and_fitting_the_critic_moves_nothing_else() {
    let batch = rollouts();
    let config = OptimizerConfig::default();
    let learner: Learner<Autodiff<Flex>> = Learner::new(&tiny(), config, 1, Default::default());
    let mut learner = learner.with_parameters(&trained(3).parameters());
    let before = learner.network().parameters();
    let mut optimizer = AdamW::new(config);
    let reward = |speed: f32| 0.3 + speed.clamp(-0.25, 3.0);
    let mut fit = || learner.fit_critic(&mut optimizer, &batch, reward, 1e-2);
    let first = fit();
    let last = (0..60).map(|_| fit()).last().unwrap();
    assert!(last < 0.3 * first, "{first} to {last}");
    for (before, after) in before.iter().zip(learner.network().parameters()) {
        assert_eq!(*before != after, after.name.contains("critic"), "{}", after.name);
    }

    let objective = Objective { kl_weight: 0.0, entropy_weight: 0.0, ..EVERYTHING };
    let gain = |learner: &Learner<Autodiff<Flex>>| -> f32 {
        let said = learner.assess(&batch);
        let steps = batch.rows.iter().zip(said).flat_map(|(row, said)| {
            row.steps
                .iter()
                .zip(said)
                .map(|(step, said)| step.advantage * said.log_probabilities[0])
        });
        steps.sum()
    };
    let before = gain(&learner);
    let losses: Vec<PolicyLosses> =
        (0..20).map(|_| learner.improve(&batch, &objective, None, 1e-2)().policy).collect();
    assert!(gain(&learner) > before + 1.0, "{before} to {}", gain(&learner));
    assert!(losses[19].policy < losses[0].policy && losses[19].value < losses[0].value);
}

#[test]
fn predicted_speeds_are_fitted_in_the_steps_that_improve_the_policy() {
    let (rollouts, measured) = (rollouts(), batch(4));
    let config = OptimizerConfig::default();
    let learner = || -> Learner<Autodiff<Flex>> {
        let learner = Learner::new(&tiny(), config, 1, Default::default());
        learner.with_parameters(&trained(3).parameters())
    };
    let weights = LossWeights { speed: 1.0, ranking: 0.5, ..LossWeights::default() };
    let [mut alone, mut fitted] = [learner(), learner()];
    let before = alone.evaluate(&measured, &weights).losses.total;
    for _ in 0..20 {
        let step = alone.improve(&rollouts, &EVERYTHING, None, 1e-2)();
        assert_eq!(step.fit, None);
        let fit = Some((&measured, &weights));
        let step = fitted.improve(&rollouts, &EVERYTHING, fit, 1e-2)();
        let losses = step.fit.unwrap();
        assert!((losses.total - losses.speed - 0.5 * losses.ranking).abs() < 1e-4, "{losses:?}");
    }
    let [alone_after, fitted_after] =
        [&alone, &fitted].map(|learner| learner.evaluate(&measured, &weights).losses.total);
    assert!(fitted_after < 0.8 * before && fitted_after < alone_after, "{before}: {fitted_after}");
    // The heads that predict speeds have no part in the policy.
    let start = trained(3).parameters();
    let same = |learner: &Learner<Autodiff<Flex>>| {
        let all = learner.network().parameters();
        let pairs = start.iter().zip(&all).filter(|(_, after)| after.name.contains("speeds"));
        pairs.map(|(before, after)| before.numbers == after.numbers).collect::<Vec<_>>()
    };
    assert!(same(&alone).iter().all(|same| *same) && same(&fitted).contains(&false));
}
