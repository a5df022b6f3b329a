//! A robust nonlinear least-squares fit of few parameters.
//!
//! Levenberg–Marquardt steps (Marquardt, SIAM J. Appl. Math. 11(2), 1963) with the weights of
//! Huber's loss (Huber, Ann. Math. Statist. 35(1), 1964), derivatives by differences. The residuals
//! are smooth in nearly all places and few parameters share all of them, so a fit takes some dozens
//! of steps; a simplex search, which knows no derivatives, takes thousands in as many dimensions
//! and stops short of the minimum in the narrow valleys that bandwidth and transactions make.

/// How far a prediction is off, and how much that matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Residual {
    /// Predicted minus measured.
    pub(super) value: f64,
    /// At least 0.
    pub(super) weight: f64,
}

/// A sum of losses, in `N` parameters of about the same scale.
pub(super) struct Fit<const N: usize, F> {
    /// Where the search begins.
    pub(super) start: [f64; N],
    /// The residuals at some parameters, always as many and in the same order.
    pub(super) residuals: F,
}

/// Residuals beyond this, in e-folds, weigh by their distance and not its square.
const HUBER: f64 = 0.3;
/// Of a parameter's squared distance from the start, beside a mean loss of all residuals: decides
/// where the residuals do not.
const PRIOR: f64 = 1e-4;
/// Most steps.
const STEPS: usize = 100;
/// Steps whose loss falls by a smaller share are the last.
const CONVERGED: f64 = 1e-6;
/// Of parameters, for derivatives.
const DIFFERENCE: f64 = 1e-4;
/// Relative to the curvature: the first, and beyond which no step is short enough.
const DAMPING: (f64, f64) = (1e-2, 1e8);

/// Huber's loss: half of the square, or of the distance where that is large.
pub(super) fn loss(value: f64) -> f64 {
    let distance = value.abs();
    if distance <= HUBER { value * value / 2.0 } else { HUBER * (distance - HUBER / 2.0) }
}

impl<const N: usize, F: Fn(&[f64; N]) -> Vec<Residual>> Fit<N, F> {
    /// The parameters at a minimum of the mean loss.
    pub(super) fn minimum(&self) -> [f64; N] {
        let mut at = self.start;
        let mut residuals = (self.residuals)(&at);
        let mut least = self.objective(&at, &residuals);
        let mut damping = DAMPING.0;
        for _ in 0..STEPS {
            let (curvature, slope) = self.linearised(&at, &residuals);
            let before = least;
            while damping < DAMPING.1 {
                let mut damped = curvature;
                for (i, row) in damped.iter_mut().enumerate() {
                    row[i] *= 1.0 + damping;
                }
                let step = solve(damped, slope);
                let next: [f64; N] = std::array::from_fn(|i| at[i] - step[i]);
                let found = (self.residuals)(&next);
                let objective = self.objective(&next, &found);
                if objective < least {
                    (at, residuals, least) = (next, found, objective);
                    damping /= 10.0;
                    break;
                }
                damping *= 10.0;
            }
            if before - least <= CONVERGED * before {
                break;
            }
        }
        at
    }

    fn objective(&self, at: &[f64; N], residuals: &[Residual]) -> f64 {
        let losses: f64 = residuals.iter().map(|r| r.weight * loss(r.value)).sum();
        let losses = losses / total_weight(residuals);
        let moved = at.iter().zip(&self.start).map(|(at, start)| (at - start) * (at - start));
        losses + PRIOR / 2.0 * moved.sum::<f64>()
    }

    /// Second and first derivatives of the objective, where residuals are taken to be linear.
    fn linearised(&self, at: &[f64; N], residuals: &[Residual]) -> ([[f64; N]; N], [f64; N]) {
        let derivatives: Vec<Vec<f64>> = (0..N)
            .map(|parameter| {
                let mut beside = *at;
                beside[parameter] += DIFFERENCE;
                let beside = (self.residuals)(&beside);
                let both = beside.iter().zip(residuals);
                both.map(|(beside, here)| (beside.value - here.value) / DIFFERENCE).collect()
            })
            .collect();
        let total = total_weight(residuals);
        let weights: Vec<f64> = residuals
            .iter()
            .map(|r| r.weight / total * (HUBER / r.value.abs().max(HUBER)))
            .collect();
        let mut curvature = [[0.0; N]; N];
        let mut slope = [0.0; N];
        for (i, one) in derivatives.iter().enumerate() {
            let weighted: Vec<f64> = one.iter().zip(&weights).map(|(d, w)| d * w).collect();
            for (j, other) in derivatives.iter().enumerate() {
                curvature[i][j] = weighted.iter().zip(other).map(|(a, b)| a * b).sum();
            }
            curvature[i][i] += PRIOR;
            slope[i] = weighted.iter().zip(residuals).map(|(d, r)| d * r.value).sum::<f64>()
                + PRIOR * (at[i] - self.start[i]);
        }
        (curvature, slope)
    }
}

/// Of no residuals some weight all the same, to divide by.
fn total_weight(residuals: &[Residual]) -> f64 {
    residuals.iter().map(|residual| residual.weight).sum::<f64>().max(f64::MIN_POSITIVE)
}

/// Solves a system whose matrix is symmetric and positive definite, by Cholesky's decomposition.
fn solve<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> [f64; N] {
    for i in 0..N {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| matrix[i][k] * matrix[j][k]).sum();
            let rest = matrix[i][j] - known;
            matrix[i][j] =
                if i == j { rest.max(f64::MIN_POSITIVE).sqrt() } else { rest / matrix[j][j] };
        }
        let known: f64 = (0..i).map(|k| matrix[i][k] * right[k]).sum();
        right[i] = (right[i] - known) / matrix[i][i];
    }
    for i in (0..N).rev() {
        let known: f64 = (i + 1..N).map(|k| matrix[k][i] * right[k]).sum();
        right[i] = (right[i] - known) / matrix[i][i];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symmetric_system_is_solved() {
        let rows = [[4.0, 2.0, 0.0], [2.0, 5.0, 1.0], [0.0, 1.0, 3.0]];
        let right = [2.0, 7.0, -8.0];
        let found = solve(rows, right);
        for (row, right) in rows.iter().zip(right) {
            let product: f64 = row.iter().zip(&found).map(|(a, b)| a * b).sum();
            assert!((product - right).abs() < 1e-12);
        }
    }

    #[test]
    fn a_curve_is_found_among_outliers() {
        // e^(a t) + b, every tenth point far off to one side.
        let (a, b) = (0.7, 2.0);
        let points: Vec<(f64, f64)> = (0..200)
            .map(|i| {
                let t = f64::from(i) / 100.0;
                (t, (a * t).exp() + b + if i % 10 == 0 { 50.0 } else { 0.0 })
            })
            .collect();
        let residuals = |[a, b]: &[f64; 2]| {
            let off = points.iter().map(|(t, y)| (a * t).exp() + b - y);
            off.map(|value| Residual { value, weight: 2.0 }).collect()
        };
        let fit = Fit { start: [0.0, 0.0], residuals };
        let [found_a, found_b] = fit.minimum();
        // The mean of all would be off by 5.
        assert!((found_a - a).abs() < 0.05 && (found_b - b).abs() < 0.1, "{found_a} {found_b}");
    }

    #[test]
    fn residuals_that_do_not_depend_on_a_parameter_leave_it() {
        let residuals = |[a, _]: &[f64; 2]| vec![Residual { value: a - 0.5, weight: 1.0 }];
        let [a, b] = Fit { start: [0.0, 3.0], residuals }.minimum();
        assert!((a - 0.5).abs() < 1e-3, "{a}");
        assert_eq!(b, 3.0);
        let nothing = Fit { start: [1.0], residuals: |_: &[f64; 1]| Vec::new() };
        assert_eq!(nothing.minimum(), [1.0]);
    }
}
