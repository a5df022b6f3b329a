//! The values of a recipe's matrix.

use serde::{Deserialize, Serialize};
use sparserl_core::matrix::generate::with_random_values;
use sparserl_core::matrix::{Csr, CsrError};
use sparserl_core::random::SplitMix64;
use sparserl_core::results::ValueSource;

use super::arrays::with_values;

/// What the values of a matrix are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Values {
    /// As [`with_random_values`] draws them: no coding makes them smaller.
    Random {
        /// Of the random numbers.
        seed: u64,
    },
    /// Each is one of a few, as a dictionary holds them.
    Few {
        /// How many there are, at least 1.
        distinct: u16,
        /// Of the random numbers.
        seed: u64,
    },
    /// Every value is 1, as of a pattern.
    Equal,
    /// Those of the file or the generator.
    AsBuilt,
}

impl Values {
    /// Where recordings say that they come from.
    #[must_use]
    pub fn source(self) -> ValueSource {
        match self {
            Self::Random { .. } => ValueSource::Random,
            Self::Few { .. } | Self::Equal | Self::AsBuilt => ValueSource::File,
        }
    }

    /// The same entries with these values.
    pub(super) fn apply(self, matrix: Csr<f64>) -> Result<Csr<f64>, CsrError> {
        match self {
            Self::Random { seed } => with_random_values(&matrix, seed),
            Self::Few { distinct, seed } => {
                let mut random = SplitMix64::new(seed);
                let end = usize::from(distinct.max(1));
                let draw = |_| (random.below(end) + 1) as f64 * 0.25;
                let values = (0..matrix.nnz()).map(draw).collect();
                with_values(&matrix, values)
            }
            Self::Equal => with_values(&matrix, vec![1.0; matrix.nnz()]),
            Self::AsBuilt => Ok(matrix),
        }
    }
}
