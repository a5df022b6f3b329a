//! Generated matrices with all their parameters.

use serde::{Deserialize, Serialize};
use sparserl_core::matrix::{Csr, generate};

use super::recipe::Size;

/// A generated matrix: the arguments of a function of [`generate`]. Shares are in thousandths,
/// percentages in hundredths.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are the arguments of the functions named")]
pub enum Generator {
    /// [`generate::featured`].
    Featured(Featured),
    /// [`generate::stencil5`].
    Stencil5 { nx: u32, ny: u32 },
    /// [`generate::stencil7`].
    Stencil7 { nx: u32, ny: u32, nz: u32 },
    /// [`generate::stencil27`].
    Stencil27 { nx: u32, ny: u32, nz: u32 },
    /// [`generate::banded`].
    Banded { rows: u32, half_width: u32, seed: u64 },
    /// [`generate::uniform`].
    Uniform { rows: u32, cols: u32, per_row: u32, seed: u64 },
    /// [`generate::rmat_with`].
    Rmat { scale: u8, edge_factor: u32, percent: [u8; 3], seed: u64 },
    /// [`generate::fem_blocks`].
    FemBlocks { nodes: u32, dof: u32, seed: u64 },
    /// [`generate::hyper_sparse`].
    HyperSparse { rows: u32, cols: u32, entries: u32, seed: u64 },
    /// [`generate::one_dense_row`].
    DenseRow { rows: u32, cols: u32, seed: u64 },
    /// [`generate::block_pruned`].
    BlockPruned { rows: u32, cols: u32, block: u32, percent: u8, seed: u64 },
}

/// [`generate::Features`], each but the first two and `block` in thousandths.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of `generate::Features`")]
pub struct Featured {
    pub rows: u32,
    pub cols: u32,
    pub mean: u32,
    pub variation: u32,
    pub skew: u32,
    pub bandwidth: u32,
    pub neighbours: u32,
    pub similarity: u32,
    pub block: u32,
    pub fill: u32,
    pub seed: u64,
}

impl Featured {
    fn features(&self) -> generate::Features {
        let share = |thousandths: u32| f64::from(thousandths) / 1000.0;
        generate::Features {
            rows: self.rows as usize,
            cols: self.cols as usize,
            mean: share(self.mean),
            variation: share(self.variation),
            skew: share(self.skew),
            bandwidth: share(self.bandwidth),
            neighbours: share(self.neighbours),
            similarity: share(self.similarity),
            block: self.block as usize,
            fill: share(self.fill),
        }
    }
}

impl Generator {
    /// The name of the family: stencils are one.
    #[must_use]
    pub fn family(&self) -> &'static str {
        match self {
            Self::Featured(_) => "featured",
            Self::Stencil5 { .. } | Self::Stencil7 { .. } | Self::Stencil27 { .. } => "stencil",
            Self::Banded { .. } => "banded",
            Self::Uniform { .. } => "uniform",
            Self::Rmat { .. } => "rmat",
            Self::FemBlocks { .. } => "fem_blocks",
            Self::HyperSparse { .. } => "hyper_sparse",
            Self::DenseRow { .. } => "dense_row",
            Self::BlockPruned { .. } => "block_pruned",
        }
    }

    /// What it has at most. Where entries are kept at random, a matrix with more is so unlikely
    /// (eight standard deviations) that it is an error only when it is built.
    pub(super) fn size(&self) -> Size {
        let square = |rows: u64, per_row: u64| Size {
            rows,
            cols: rows,
            nnz: rows.saturating_mul(per_row.min(rows)),
        };
        let product = |sizes: &[u32]| {
            sizes.iter().fold(1_u64, |product, &size| product.saturating_mul(size.into()))
        };
        let of = |rows: u32, cols: u32, nnz: u64| {
            let (rows, cols) = (u64::from(rows), u64::from(cols));
            Size { rows, cols, nnz: nnz.min(rows * cols) }
        };
        match *self {
            Self::Featured(ref featured) => {
                let most = featured.features().most_entries();
                of(featured.rows, featured.cols, most.ceil() as u64)
            }
            Self::Stencil5 { nx, ny } => square(product(&[nx, ny]), 5),
            Self::Stencil7 { nx, ny, nz } => square(product(&[nx, ny, nz]), 7),
            Self::Stencil27 { nx, ny, nz } => square(product(&[nx, ny, nz]), 27),
            Self::Banded { rows, half_width, .. } => {
                square(rows.into(), 2 * u64::from(half_width) + 1)
            }
            Self::Uniform { rows, cols, per_row, .. } => {
                of(rows, cols, product(&[rows, per_row.min(cols)]))
            }
            Self::Rmat { scale, edge_factor, .. } => {
                square(1_u64 << scale.min(31), edge_factor.into())
            }
            Self::FemBlocks { nodes, dof, .. } => {
                square(product(&[nodes, dof]), 9 * u64::from(dof))
            }
            Self::HyperSparse { rows, cols, entries, .. } => of(rows, cols, entries.into()),
            Self::DenseRow { rows, cols, .. } => of(rows, cols, u64::from(rows) + u64::from(cols)),
            Self::BlockPruned { rows, cols, block, percent, .. } => {
                let block = u64::from(block.max(1));
                let blocks = u64::from(rows).div_ceil(block) * u64::from(cols).div_ceil(block);
                of(rows, cols, most_kept(blocks, percent).saturating_mul(block * block))
            }
        }
    }

    /// Makes the matrix.
    pub(super) fn build(&self) -> Csr<f64> {
        let n = |number: u32| number as usize;
        match *self {
            Self::Featured(ref featured) => generate::featured(&featured.features(), featured.seed),
            Self::Stencil5 { nx, ny } => generate::stencil5(n(nx), n(ny)),
            Self::Stencil7 { nx, ny, nz } => generate::stencil7(n(nx), n(ny), n(nz)),
            Self::Stencil27 { nx, ny, nz } => generate::stencil27(n(nx), n(ny), n(nz)),
            Self::Banded { rows, half_width, seed } => {
                generate::banded(n(rows), n(half_width), seed)
            }
            Self::Uniform { rows, cols, per_row, seed } => {
                generate::uniform(n(rows), n(cols), n(per_row), seed)
            }
            Self::Rmat { scale, edge_factor, percent, seed } => {
                generate::rmat_with(scale.into(), n(edge_factor), percent, seed)
            }
            Self::FemBlocks { nodes, dof, seed } => generate::fem_blocks(n(nodes), n(dof), seed),
            Self::HyperSparse { rows, cols, entries, seed } => {
                generate::hyper_sparse(n(rows), n(cols), n(entries), seed)
            }
            Self::DenseRow { rows, cols, seed } => generate::one_dense_row(n(rows), n(cols), seed),
            Self::BlockPruned { rows, cols, block, percent, seed } => {
                generate::block_pruned(n(rows), n(cols), n(block), percent.into(), seed)
            }
        }
    }
}

/// At most so many of `count` are kept with a probability of `percent` in 100.
fn most_kept(count: u64, percent: u8) -> u64 {
    let mean = count as f64 * f64::from(percent) / 100.0;
    count.min((mean + 8.0 * mean.sqrt()) as u64 + 8)
}
