//! Statistics over candidates and matrices.

use serde::Serialize;

/// The unbiased estimate of pass@k, the chance that at least one of k samples is right, from `n`
/// samples of which `c` are right: 1 − C(n−c, k) / C(n, k), as the product that Chen et al. compute
/// (Evaluating Large Language Models Trained on Code, 2021, figure 3).
///
/// Absent for fewer samples than k.
pub(crate) fn pass_at_k(n: usize, c: usize, k: usize) -> Option<f64> {
    if n < k || c > n {
        return None;
    }
    if n - c < k {
        return Some(1.0);
    }
    let none_right: f64 = (n - c + 1..=n).map(|i| 1.0 - k as f64 / i as f64).product();
    Some(1.0 - none_right)
}

/// A mean over the matrices that have a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Mean {
    /// Absent where no matrix has one.
    pub(crate) value: Option<f64>,
    /// How many have one.
    pub(crate) matrices: usize,
}

impl Mean {
    pub(crate) fn of(values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let values: Vec<f64> = values.into_iter().flatten().collect();
        let matrices = values.len();
        let value = (matrices > 0).then(|| values.iter().sum::<f64>() / matrices as f64);
        Self { value, matrices }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_values() {
        for (n, c, k, expected) in [
            (1, 0, 1, 0.0),
            (1, 1, 1, 1.0),
            (10, 3, 1, 0.3),
            (5, 2, 2, 0.7),
            (10, 3, 5, 11.0 / 12.0),
            (10, 1, 10, 1.0),
            (10, 0, 10, 0.0),
            (200, 1, 100, 0.5),
            // C(190, 100) and C(200, 100) overflow neither here nor there.
            (200, 10, 100, 0.999_228_973_937),
        ] {
            let found = pass_at_k(n, c, k).unwrap();
            assert!((found - expected).abs() < 1e-7, "pass@{k} of {c} in {n}: {found}");
        }
    }

    #[test]
    fn too_few_samples_say_nothing() {
        assert_eq!(pass_at_k(4, 4, 5), None);
        assert_eq!(pass_at_k(0, 0, 1), None);
    }

    #[test]
    fn many_samples_stay_in_bounds() {
        let found = pass_at_k(1_000_000, 3, 1000).unwrap();
        let expected = 1.0 - 0.999_f64.powi(3);
        assert!((found - expected).abs() < 1e-6, "{found}");
    }

    proptest! {
        #[test]
        fn pass_at_k_counts_the_choices_with_a_right_sample(
            n in 1_usize..=10, c in 0_usize..=10, k in 1_usize..=10
        ) {
            let c = c.min(n);
            let k = k.min(n);
            // The right samples are the lowest bits.
            let right = (1_u32 << c) - 1;
            let choices: Vec<u32> =
                (0..1_u32 << n).filter(|set| set.count_ones() as usize == k).collect();
            let passing = choices.iter().filter(|&&set| set & right != 0).count();
            let expected = passing as f64 / choices.len() as f64;
            prop_assert!((pass_at_k(n, c, k).unwrap() - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn means_leave_out_what_is_absent() {
        assert_eq!(Mean::of([Some(1.0), None, Some(0.0)]), Mean { value: Some(0.5), matrices: 2 });
        assert_eq!(Mean::of([None]), Mean { value: None, matrices: 0 });
    }
}
