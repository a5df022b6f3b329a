//! Where the entries of a matrix are: what it starts from, and the steps that make others of it.

use serde::{Deserialize, Serialize};

use super::generator::Generator;
use super::size::Size;

/// A matrix, generated or real, and what is done to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// What it starts from.
    pub base: Base,
    /// Applied one after the other. A step that would leave no entry is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

/// What a pattern starts from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Base {
    /// A matrix of a generated family.
    Generated(Generator),
    /// A real matrix.
    Real {
        /// Its name in [`RealMatrices`](super::RealMatrices).
        name: String,
        /// Its family there.
        family: String,
        /// Rows, columns and entries.
        size: Size,
    },
}

/// Makes a matrix of another one. Shares are in thousandths.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Rows in random order.
    PermuteRows {
        /// Of the random numbers.
        seed: u64,
    },
    /// Columns in random order.
    PermuteColumns {
        /// Of the random numbers.
        seed: u64,
    },
    /// Rows and columns in the same random order, in which a graph's vertices are renumbered; each
    /// in an order of its own if there are not as many.
    PermuteBoth {
        /// Of the random numbers.
        seed: u64,
    },
    /// Rows and columns as reverse Cuthill-McKee orders the graph of A + Aᵀ, or the bipartite graph
    /// of rows and columns if there are not as many.
    CuthillMckee,
    /// Longest rows first, columns in the same order; each by their own lengths if there are not as
    /// many.
    DegreeOrder,
    /// Rows become columns.
    Transpose,
    /// A rectangle of it.
    Crop {
        /// First row: this share of the rows is above.
        top: u16,
        /// Share of the rows.
        rows: u16,
        /// First column: this share of the columns is to the left.
        left: u16,
        /// Share of the columns.
        cols: u16,
    },
    /// Copies of it along the diagonal.
    Replicate {
        /// How many, at least 1.
        times: u32,
    },
    /// Each entry is kept with a probability.
    Thin {
        /// The probability.
        keep: u16,
        /// Of the random numbers.
        seed: u64,
    },
    /// Entries are added to some rows.
    DenseRows {
        /// To how many.
        count: u32,
        /// Share of the columns at which they are.
        fill: u16,
        /// Of the random numbers.
        seed: u64,
    },
    /// Entries are added to some columns.
    DenseColumns {
        /// To how many.
        count: u32,
        /// Share of the rows at which they are.
        fill: u16,
        /// Of the random numbers.
        seed: u64,
    },
    /// Another matrix to its right.
    Beside(Box<Pattern>),
    /// Another matrix below it.
    Above(Box<Pattern>),
}
