//! Generated matrices with all their parameters.

use serde::{Deserialize, Serialize};
use sparserl_core::matrix::{Csr, generate};

use super::size::Size;

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
    /// [`generate::road`].
    Road { nx: u32, ny: u32, percent: u8, seed: u64 },
    /// [`generate::mesh`].
    Mesh { nx: u32, ny: u32, nz: u32, reach: u32, seed: u64 },
    /// [`generate::communities`].
    Communities { vertices: u32, edges: u32, size: u32, inside: u8, seed: u64 },
    /// [`generate::web`].
    Web { pages: u32, links: u32, seed: u64 },
    /// [`generate::netlist`].
    Netlist { nets: u32, cells: u32, pins: u32, seed: u64 },
    /// [`generate::linear_program`].
    LinearProgram { rows: u32, cols: u32, per_column: u32, long: u32, percent: u8, seed: u64 },
    /// [`generate::saddle_point`].
    SaddlePoint { primal: u32, dual: u32, half_width: u32, per_row: u32, seed: u64 },
    /// [`generate::bordered_blocks`].
    BorderedBlocks { blocks: u32, size: u32, border: u32, percent: u8, seed: u64 },
    /// [`generate::circuit`].
    Circuit { nodes: u32, wires: u32, rails: u32, percent: u8, seed: u64 },
    /// [`generate::diagonals`].
    Diagonals { rows: u32, count: u32, percent: u8, seed: u64 },
    /// [`generate::pruned_layer`].
    PrunedLayer {
        rows: u32,
        cols: u32,
        kept: u32,
        row_deviation: u32,
        col_deviation: u32,
        seed: u64,
    },
    /// [`generate::radix_layer`].
    RadixLayer { neurons: u32, radix: u32, stride: u32, seed: u64 },
    /// [`generate::bipartite`].
    Bipartite { rows: u32, cols: u32, entries: u32, row_skew: u32, col_skew: u32, seed: u64 },
    /// [`generate::clauses`].
    Clauses { rows: u32, cols: u32, longest: u32, seed: u64 },
    /// [`generate::atoms`].
    Atoms { nx: u32, ny: u32, nz: u32, reach: u32, seed: u64 },
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

/// What thousandths stand for.
fn share(thousandths: u32) -> f64 {
    f64::from(thousandths) / 1000.0
}

impl Featured {
    fn features(&self) -> generate::Features {
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
    /// The name of the family, `generated/NAME`, lest it be a real one's: there are circuits of
    /// either kind. Stencils are one family.
    #[must_use]
    pub fn family(&self) -> &'static str {
        match self {
            Self::Featured(_) => "generated/featured",
            Self::Stencil5 { .. } | Self::Stencil7 { .. } | Self::Stencil27 { .. } => {
                "generated/stencil"
            }
            Self::Banded { .. } => "generated/banded",
            Self::Uniform { .. } => "generated/uniform",
            Self::Rmat { .. } => "generated/rmat",
            Self::FemBlocks { .. } => "generated/fem_blocks",
            Self::HyperSparse { .. } => "generated/hyper_sparse",
            Self::DenseRow { .. } => "generated/dense_row",
            Self::BlockPruned { .. } => "generated/block_pruned",
            Self::Road { .. } => "generated/road",
            Self::Mesh { .. } => "generated/mesh",
            Self::Communities { .. } => "generated/communities",
            Self::Web { .. } => "generated/web",
            Self::Netlist { .. } => "generated/netlist",
            Self::LinearProgram { .. } => "generated/linear_program",
            Self::SaddlePoint { .. } => "generated/saddle_point",
            Self::BorderedBlocks { .. } => "generated/bordered_blocks",
            Self::Circuit { .. } => "generated/circuit",
            Self::Diagonals { .. } => "generated/diagonals",
            Self::PrunedLayer { .. } => "generated/pruned_layer",
            Self::RadixLayer { .. } => "generated/radix_layer",
            Self::Bipartite { .. } => "generated/bipartite",
            Self::Clauses { .. } => "generated/clauses",
            Self::Atoms { .. } => "generated/atoms",
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
            Self::Road { nx, ny, .. } => square(product(&[nx, ny]), 4),
            Self::Mesh { nx, ny, nz, reach, .. } => {
                square(product(&[nx, ny, nz]), most_within(reach, nz > 1))
            }
            Self::Communities { vertices, edges, .. } => {
                of(vertices, vertices, 2 * u64::from(edges))
            }
            Self::Web { pages, links, .. } => of(pages, pages, links.into()),
            Self::Netlist { nets, cells, pins, .. } => of(nets, cells, most_pins(nets, pins)),
            Self::LinearProgram { rows, cols, per_column, long, percent, .. } => {
                let long = u64::from(long.min(rows))
                    * (u64::from(cols) * u64::from(percent.min(100)) / 100);
                of(rows, cols, product(&[cols, per_column]).saturating_add(long))
            }
            Self::SaddlePoint { primal, dual, half_width, per_row, .. } => {
                let lines = u64::from(primal) + u64::from(dual);
                let band = u64::from(primal).saturating_mul(2 * u64::from(half_width) + 1);
                Size {
                    rows: lines,
                    cols: lines,
                    nnz: band.saturating_add(product(&[2, dual, per_row])),
                }
            }
            Self::BorderedBlocks { blocks, size, border, percent, .. } => {
                let (inner, border) = (product(&[blocks, size]), u64::from(border));
                let lines = inner.saturating_add(border);
                let pairs = inner
                    .saturating_mul(u64::from(size) + border)
                    .saturating_add(border.saturating_mul(lines));
                Size {
                    rows: lines,
                    cols: lines,
                    nnz: most_kept(pairs, percent).saturating_add(lines).min(pairs),
                }
            }
            Self::Circuit { nodes, wires, rails, percent, .. } => {
                let rails = most_kept(product(&[rails.min(nodes), nodes]), percent);
                of(
                    nodes,
                    nodes,
                    (u64::from(nodes) + 2 * u64::from(wires))
                        .saturating_add(rails.saturating_mul(2)),
                )
            }
            Self::Diagonals { rows, count, .. } => square(rows.into(), u64::from(count).max(1)),
            Self::PrunedLayer { rows, cols, kept, row_deviation, col_deviation, .. } => {
                of(rows, cols, most_left(rows, cols, kept, [row_deviation, col_deviation]))
            }
            Self::RadixLayer { neurons, radix, .. } => square(neurons.into(), radix.into()),
            Self::Bipartite { rows, cols, entries, .. } => of(rows, cols, entries.into()),
            Self::Clauses { rows, cols, longest, .. } => {
                of(rows, cols, product(&[rows, longest.max(2)]))
            }
            Self::Atoms { nx, ny, nz, reach, .. } => most_coupled([nx, ny, nz], reach),
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
            Self::Road { nx, ny, percent, seed } => {
                generate::road(n(nx), n(ny), percent.into(), seed)
            }
            Self::Mesh { nx, ny, nz, reach, seed } => {
                generate::mesh(n(nx), n(ny), n(nz), share(reach), seed)
            }
            Self::Communities { vertices, edges, size, inside, seed } => {
                generate::communities(n(vertices), n(edges), n(size), inside.into(), seed)
            }
            Self::Web { pages, links, seed } => generate::web(n(pages), n(links), seed),
            Self::Netlist { nets, cells, pins, seed } => {
                generate::netlist(n(nets), n(cells), share(pins), seed)
            }
            Self::LinearProgram { rows, cols, per_column, long, percent, seed } => {
                generate::linear_program(
                    n(rows),
                    n(cols),
                    n(per_column),
                    n(long),
                    percent.into(),
                    seed,
                )
            }
            Self::SaddlePoint { primal, dual, half_width, per_row, seed } => {
                generate::saddle_point(n(primal), n(dual), n(half_width), n(per_row), seed)
            }
            Self::BorderedBlocks { blocks, size, border, percent, seed } => {
                generate::bordered_blocks(n(blocks), n(size), n(border), percent.into(), seed)
            }
            Self::Circuit { nodes, wires, rails, percent, seed } => {
                generate::circuit(n(nodes), n(wires), n(rails), percent.into(), seed)
            }
            Self::Diagonals { rows, count, percent, seed } => {
                generate::diagonals(n(rows), n(count), percent.into(), seed)
            }
            Self::PrunedLayer { rows, cols, kept, row_deviation, col_deviation, seed } => {
                generate::pruned_layer(
                    n(rows),
                    n(cols),
                    share(kept),
                    share(row_deviation),
                    share(col_deviation),
                    seed,
                )
            }
            Self::RadixLayer { neurons, radix, stride, seed } => {
                generate::radix_layer(n(neurons), n(radix), n(stride), seed)
            }
            Self::Bipartite { rows, cols, entries, row_skew, col_skew, seed } => {
                generate::bipartite(
                    n(rows),
                    n(cols),
                    n(entries),
                    share(row_skew),
                    share(col_skew),
                    seed,
                )
            }
            Self::Clauses { rows, cols, longest, seed } => {
                generate::clauses(n(rows), n(cols), n(longest), seed)
            }
            Self::Atoms { nx, ny, nz, reach, seed } => {
                generate::atoms(n(nx), n(ny), n(nz), share(reach), seed)
            }
        }
    }
}

/// At most so many of `count` are kept with a probability of `percent` in 100.
fn most_kept(count: u64, percent: u8) -> u64 {
    let mean = count as f64 * f64::from(percent) / 100.0;
    count.min((mean + 8.0 * mean.sqrt()) as u64 + 8)
}

/// Points within reach of one in [`generate::mesh`], one in each cell: as many as the cells that a
/// ball (or a disc) of that radius has, and an eighth more.
fn most_within(reach: u32, space: bool) -> u64 {
    let reach = share(reach).min(16.0);
    let ball = if space { 4.19 * reach * reach * reach } else { 3.15 * reach * reach };
    (ball * 1.125) as u64 + 2
}

/// Pins of so many nets, from their mean.
fn most_pins(nets: u32, pins: u32) -> u64 {
    let (nets, mean) = (f64::from(nets), share(pins).max(2.0));
    let spread = 8.0 * mean * nets.sqrt();
    ((nets * mean + spread) as u64).min(nets as u64 * generate::MOST_PINS as u64)
}

/// Entries left of a layer. Few rows and columns of log-normal shares may have far more than the
/// mean, so the spread is that of the rows' and columns' sums.
fn most_left(rows: u32, cols: u32, kept: u32, deviations: [u32; 2]) -> u64 {
    let (rows, cols) = (f64::from(rows), f64::from(cols));
    let [of_rows, of_cols] =
        deviations.map(share).map(|deviation| libm::exp(deviation * deviation) - 1.0);
    let mean = rows * cols * share(kept).min(1.0);
    let relative = (of_rows / rows.max(1.0) + of_cols / cols.max(1.0)).sqrt();
    (mean * (1.0 + 8.0 * relative) + 8.0 * mean.sqrt()) as u64 + 8
}

/// Functions and entries of [`generate::atoms`]: 6 functions an atom on average.
fn most_coupled(cells: [u32; 3], reach: u32) -> Size {
    let reach = share(reach);
    let [x, y, z] = cells.map(f64::from);
    let atoms = x * y * z;
    let side = 2.0 * reach.floor() + 1.0;
    let near = x.min(side) * y.min(side) * z.min(side);
    let ball = 4.19 * (reach + 0.87) * (reach + 0.87) * (reach + 0.87);
    let lines = (6.0 * atoms + 8.0 * 5.1 * atoms.sqrt()).min(14.0 * atoms) as u64;
    // The own block is dense in squares, whose mean is 60.8, the others in products.
    let entries = atoms * (60.8 + 36.0 * (near.min(ball) - 1.0));
    let spread = 8.0 * 75.0 * near.min(ball) * atoms.sqrt();
    let nnz = (entries + spread).min(196.0 * atoms * near) as u64;
    Size { rows: lines, cols: lines, nnz }
}
