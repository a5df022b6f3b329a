use alloc::vec::Vec;

use crate::matrix::Scalar;

/// The values of a matrix when there are few: at most 256, sorted by their bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table(Vec<u64>);

impl Table {
    const MOST: usize = 256;

    /// The distinct values; `None` when there are more than 256.
    pub(crate) fn of<T: Scalar>(values: &[T]) -> Option<Self> {
        let mut bits: Vec<u64> = Vec::new();
        let mut last = None;
        for value in values {
            let value = value.bits();
            if last == Some(value) {
                continue;
            }
            last = Some(value);
            if let Err(position) = bits.binary_search(&value) {
                if bits.len() == Self::MOST {
                    return None;
                }
                bits.insert(position, value);
            }
        }
        Some(Self(bits))
    }

    /// The bits of the values, in order.
    pub(crate) fn bits(&self) -> &[u64] {
        &self.0
    }

    /// Number of distinct values.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// True when a code is left for the slots of a padded layout that hold no entry.
    pub(crate) fn has_code_for_padding(&self) -> bool {
        self.0.len() < Self::MOST
    }
}
