//! The algorithms that generated kernels are compared with.

use std::ffi::c_int;
use std::fmt;

use serde::{Deserialize, Serialize};
use sparserl_core::task::Operation;

/// One of cuSPARSE's algorithms, and the format of A that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Algorithm {
    /// What the library chooses for CSR, called without analysis, as most callers do.
    Default,
    /// CSR, the first algorithm, analysed.
    CsrAlg1,
    /// CSR, the second algorithm, analysed.
    CsrAlg2,
    /// CSR, the third algorithm, analysed. SpMM only.
    CsrAlg3,
    /// Sliced ELLPACK. SpMV only.
    Sell,
    /// Square blocks.
    Bsr,
    /// CSR with a plan, `cusparseSpMVOp`, the first algorithm. SpMV only, of CUDA 13.1 and later.
    SpMvOpAlg1,
    /// The second algorithm. Of later versions than the first.
    SpMvOpAlg2,
}

/// How A is stored for an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Csr,
    Sell,
    Bsr,
}

impl Algorithm {
    /// Those that there are for an operation, the default first.
    #[must_use]
    pub(crate) fn all(operation: Operation) -> &'static [Self] {
        match operation {
            Operation::SpMV => {
                const ALL: &[Algorithm] = &[
                    Algorithm::Default,
                    Algorithm::CsrAlg1,
                    Algorithm::CsrAlg2,
                    Algorithm::Sell,
                    Algorithm::Bsr,
                    Algorithm::SpMvOpAlg1,
                    Algorithm::SpMvOpAlg2,
                ];
                ALL
            }
            Operation::SpMM { .. } => {
                &[Self::Default, Self::CsrAlg1, Self::CsrAlg2, Self::CsrAlg3, Self::Bsr]
            }
        }
    }

    /// The name in reports, after cuSPARSE's own: `DEFAULT`, `CSR_ALG1`, `SELL`, ….
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Default => "DEFAULT",
            Self::CsrAlg1 => "CSR_ALG1",
            Self::CsrAlg2 => "CSR_ALG2",
            Self::CsrAlg3 => "CSR_ALG3",
            Self::Sell => "SELL",
            Self::Bsr => "BSR",
            Self::SpMvOpAlg1 => "SPMVOP_ALG1",
            Self::SpMvOpAlg2 => "SPMVOP_ALG2",
        }
    }

    /// Whether it is what the library does unasked.
    #[must_use]
    pub(crate) fn is_default(self) -> bool {
        self == Self::Default
    }

    pub(super) fn format(self) -> Format {
        match self {
            Self::Default
            | Self::CsrAlg1
            | Self::CsrAlg2
            | Self::CsrAlg3
            | Self::SpMvOpAlg1
            | Self::SpMvOpAlg2 => Format::Csr,
            Self::Sell => Format::Sell,
            Self::Bsr => Format::Bsr,
        }
    }

    /// Whether the library's analysis can help. It does nothing for formats other than CSR.
    pub(super) fn is_analysed(self) -> bool {
        self.format() == Format::Csr && !self.is_default() && !self.is_planned()
    }

    /// Whether it is called through a plan.
    pub(super) fn is_planned(self) -> bool {
        matches!(self, Self::SpMvOpAlg1 | Self::SpMvOpAlg2)
    }

    /// The value of `cusparseSpMVAlg_t`, `cusparseSpMMAlg_t` or, where it is planned,
    /// `cusparseSpMVOpAlg_t`; `None` where the operation lacks it.
    pub(super) fn number(self, operation: Operation) -> Option<c_int> {
        match (operation, self) {
            (_, Self::Default) => Some(0),
            (Operation::SpMV, Self::SpMvOpAlg1) => Some(1),
            (Operation::SpMV, Self::SpMvOpAlg2) => Some(2),
            (Operation::SpMV, Self::CsrAlg1) => Some(2),
            (Operation::SpMV, Self::CsrAlg2) => Some(3),
            (Operation::SpMV, Self::Sell) => Some(5),
            (Operation::SpMV, Self::Bsr) => Some(6),
            (Operation::SpMM { .. }, Self::CsrAlg1) => Some(4),
            (Operation::SpMM { .. }, Self::CsrAlg2) => Some(6),
            (Operation::SpMM { .. }, Self::CsrAlg3) => Some(12),
            (Operation::SpMM { .. }, Self::Bsr) => Some(14),
            (Operation::SpMV, Self::CsrAlg3)
            | (Operation::SpMM { .. }, Self::Sell | Self::SpMvOpAlg1 | Self::SpMvOpAlg2) => None,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_operation_has_its_own_numbers_and_names_and_one_default() {
        let spmm = Operation::SpMM { columns: 8.try_into().unwrap() };
        for operation in [Operation::SpMV, spmm] {
            let all = Algorithm::all(operation);
            // Those with a plan are numbered on their own.
            let number = |a: &Algorithm| Some((a.is_planned(), a.number(operation)?));
            let numbers: BTreeSet<_> = all.iter().filter_map(number).collect();
            let names: BTreeSet<_> = all.iter().map(|a| a.name()).collect();
            assert_eq!((numbers.len(), names.len()), (all.len(), all.len()));
            assert_eq!(all.iter().filter(|a| a.is_default()).count(), 1);
        }
    }
}
