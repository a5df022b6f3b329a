//! How well a network picks among measured programs of families that it is not trained on, beside
//! the cost model.

use serde::{Deserialize, Serialize};

use sparserl_onnx_models::terms::ProgramTerms;

use super::Sampler;
use crate::network::{AutodiffBackend, Learner, LossWeights, Losses, Row};
use sparserl_onnx_models::speeds::REGIMES;

/// Programs that are tried where several are.
const SEVERAL: usize = 8;

/// How good a network is on families that it is not trained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Cases that were looked at.
    pub cases: usize,
    /// Mean losses over batches.
    pub losses: Losses,
    /// Picks of the network, by the mean of its ensemble.
    pub network: Picks,
    /// Picks of the cost model, on the same programs.
    pub cost_model: Picks,
}

/// Speed of what is chosen among the measured programs of a case ÷ speed of the best of them:
/// geometric means over cases, by regime (cold, warm). NaN without cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Picks {
    /// The program that is predicted to be the fastest.
    pub first: [f64; REGIMES.len()],
    /// The best of the eight that are.
    pub of_eight: [f64; REGIMES.len()],
}

/// Sums of log2(chosen ÷ best).
#[derive(Default)]
struct Sums {
    first: [f64; REGIMES.len()],
    of_eight: [f64; REGIMES.len()],
    cases: [u32; REGIMES.len()],
}

impl Sums {
    /// Adds a case: programs and what is predicted of them in each regime.
    fn add(&mut self, rows: &[Row], predicted: impl Fn(usize, usize) -> f32) {
        for regime in 0..REGIMES.len() {
            let speed = |place: usize| rows[place].speeds[regime];
            let mut places: Vec<usize> =
                (0..rows.len()).filter(|&place| speed(place).is_some()).collect();
            places.sort_by(|&a, &b| predicted(b, regime).total_cmp(&predicted(a, regime)));
            let best_of = |count: usize| {
                places.iter().take(count).filter_map(|&place| speed(place)).reduce(f32::max)
            };
            let (first, of_eight, best) = (best_of(1), best_of(SEVERAL), best_of(usize::MAX));
            if let (Some(first), Some(of_eight), Some(best)) = (first, of_eight, best) {
                self.first[regime] += f64::from(first - best);
                self.of_eight[regime] += f64::from(of_eight - best);
                self.cases[regime] += 1;
            }
        }
    }

    fn picks(&self) -> Picks {
        let mean = |sums: &[f64; REGIMES.len()]| {
            std::array::from_fn(|regime| (sums[regime] / f64::from(self.cases[regime])).exp2())
        };
        Picks { first: mean(&self.first), of_eight: mean(&self.of_eight) }
    }
}

/// Looks at what a network says of the cases to validate on; `at_once` of them at a time.
#[must_use]
pub fn validate<B: AutodiffBackend>(
    learner: &Learner<B>,
    sampler: &Sampler<'_>,
    weights: &LossWeights,
    at_once: usize,
) -> Validation {
    let (mut network, mut cost_model) = (Sums::default(), Sums::default());
    let mut losses: Vec<Losses> = Vec::new();
    let places = sampler.validation_cases();
    for some in places.chunks(at_once.max(1)) {
        let (batch, ranges) = sampler.whole(some);
        let evaluated = learner.evaluate(&batch, weights);
        losses.push(evaluated.losses);
        for range in ranges {
            let rows = &batch.rows[range.clone()];
            let speeds = &evaluated.speeds[range];
            network.add(rows, |place, regime| speeds[place][regime]);
            cost_model.add(rows, |place, _| {
                rows[place].terms.map_or(f32::NEG_INFINITY, |terms| terms[ProgramTerms::PREDICTED])
            });
        }
    }
    Validation {
        cases: places.len(),
        losses: Losses::mean(&losses),
        network: network.picks(),
        cost_model: cost_model.picks(),
    }
}
