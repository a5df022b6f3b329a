//! Random operands of a product.

use sparserl_core::arbitrary::random_bits;
use sparserl_core::matrix::Scalar;

/// One product to compute: fresh dense operands, α and β.
#[derive(Clone, Debug)]
pub(super) struct Operands<T> {
    pub(super) alpha: T,
    pub(super) beta: T,
    /// The dense input.
    pub(super) input: Vec<T>,
    /// What the output holds before; nothing when β = 0, for then it must not be read.
    pub(super) initial: Option<Vec<T>>,
}

/// Pairs of α and β after the first two products: signs, zeros, ones and fractions.
const SCALINGS: [(f64, f64); 8] = [
    (-1.5, 0.0),
    (1.0, 1.0),
    (0.5, -2.0),
    (0.0, 1.0),
    (2.0, 0.25),
    (-1.0, 3.0),
    (0.0, 0.0),
    (1.0 / 3.0, -1.0),
];

/// Products in a row on the same buffers.
pub(super) const ROUNDS: usize = 4;

impl<T: Scalar> Operands<T> {
    /// The operands of one of [`ROUNDS`] products: y = Ax twice, then others.
    pub(super) fn new(inputs: usize, outputs: usize, round: usize, seed: u64) -> Self {
        let mut random = random_bits(seed.wrapping_mul(31).wrapping_add(round as u64));
        let (alpha, beta) = match round {
            0 | 1 => (1.0, 0.0),
            _ => SCALINGS[(seed as usize % SCALINGS.len() + round) % SCALINGS.len()],
        };
        let mut vector = |length| (0..length).map(|_| number(random())).collect();
        Self {
            alpha: T::from_f64(alpha),
            beta: T::from_f64(beta),
            input: vector(inputs),
            initial: (beta != 0.0).then(|| vector(outputs)),
        }
    }
}

/// A number in ±[1/8, 8): never 0, so that every entry counts, and of every digit.
fn number<T: Scalar>(random: u64) -> T {
    let sign = if random & 1 == 0 { 1.0 } else { -1.0 };
    let fraction = 1.0 + (random >> 12) as f64 * f64::EPSILON;
    T::from_f64(sign * fraction * 2f64.powi((random >> 1 & 0xff) as i32 % 6 - 3))
}
