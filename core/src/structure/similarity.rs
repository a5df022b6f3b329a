use alloc::vec::Vec;

/// What the numbers of feature vectors are divided by before vectors are compared, so that all
/// weigh the same: their standard deviations over some vectors.
#[derive(Clone, Debug)]
pub struct FeatureScale(Vec<f32>);

impl FeatureScale {
    /// The scale of some vectors of one length: the deviation of each component.
    #[must_use]
    pub fn of(vectors: &[&[f32]]) -> Self {
        let count = vectors.len().max(1) as f32;
        let width = vectors.first().map_or(0, |vector| vector.len());
        let deviation = |place: usize| {
            let column = || vectors.iter().filter_map(move |vector| vector.get(place));
            let mean = column().sum::<f32>() / count;
            libm::sqrtf(column().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count)
        };
        Self((0..width).map(deviation).collect())
    }

    /// The sum of the squares of the scaled differences. What does not vary says nothing.
    #[must_use]
    pub fn squared_distance(&self, one: &[f32], other: &[f32]) -> f32 {
        let terms = self.0.iter().zip(one.iter().zip(other)).filter(|(scale, _)| **scale > 1e-6);
        terms.map(|(scale, (a, b))| (a - b) / scale).map(|difference| difference * difference).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_weighs_the_same_and_constants_nothing() {
        let vectors: [&[f32]; 3] = [&[1.0, 100.0, 7.0], &[2.0, 300.0, 7.0], &[3.0, 200.0, 7.0]];
        let scale = FeatureScale::of(&vectors);
        let distance = |one: &[f32], other: &[f32]| scale.squared_distance(one, other);
        let (first, second) = (
            distance(&[1.0, 0.0, 0.0], &[2.0, 0.0, 9.0]),
            distance(&[0.0, 100.0, 0.0], &[0.0, 200.0, 0.0]),
        );
        assert!((first - second).abs() < 1e-4 && (first - 1.5).abs() < 1e-4, "{first} {second}");
        assert_eq!(distance(vectors[0], vectors[0]), 0.0);
        let alone = FeatureScale::of(&vectors[..1]);
        assert_eq!(alone.squared_distance(vectors[0], vectors[1]), 0.0);
    }
}
