//! Drawing generated matrices of a size.

use super::draw::Draw;
use super::generator::{Featured, Generator};

/// Rows and columns of the layers of the Deep Learning Matrix Collection, and of larger ones.
const LAYERS: [(u32, u32); 8] = [
    (512, 512),
    (2048, 512),
    (512, 2048),
    (256, 1024),
    (1024, 1024),
    (4096, 1024),
    (1024, 4096),
    (2048, 2048),
];

impl Draw {
    /// A family, and its parameters for about `target` entries.
    pub(super) fn generator(&mut self, target: f64) -> Generator {
        let seed = self.seed();
        // The general family stands for eight, since it alone has all features in all combinations.
        match self.between(0, 31) {
            0..8 => self.featured(target, seed),
            8..16 => self.regular(target, seed),
            16..18 => self.pruned_layer(target, seed),
            18..22 => self.layer_or_table(target, seed),
            22..26 => self.graph(target, seed),
            26..30 => self.program(target, seed),
            30 => {
                let nz = self.between(1, 3);
                let reach = self.between(1000, 2500);
                let coupled = if nz == 1 { 5.0 } else { 12.0 } * f64::from(reach) / 1000.0;
                let side = libm::sqrt(target / (36.0 * coupled) / f64::from(nz));
                let long = self.log(1.0, 16.0);
                let (nx, ny) = (count(side * libm::sqrt(long)), count(side / libm::sqrt(long)));
                Generator::Atoms { nx: nx.max(2), ny, nz, reach, seed }
            }
            _ => {
                let longest = self.between(3, 8);
                let rows = count(target / (1.0 + f64::from(longest) / 2.0));
                let cols = count(f64::from(rows) * self.log(0.05, 2.0));
                Generator::Clauses { rows, cols, longest, seed }
            }
        }
    }

    /// Families with a grid, a band, or no structure at all.
    fn regular(&mut self, target: f64, seed: u64) -> Generator {
        match self.between(0, 7) {
            0 => self.stencil(target),
            1 => {
                let half_width = self.log_number(1, 200).min(count(libm::sqrt(target / 4.0)));
                let rows = count(target / (2.0 * f64::from(half_width) + 1.0));
                Generator::Banded { rows, half_width, seed }
            }
            2 => {
                let per_row = self.log_number(1, 256);
                let (rows, cols) = self.shape(target, per_row.into());
                Generator::Uniform { rows, cols, per_row, seed }
            }
            3 => {
                let edge_factor = self.log_number(2, 64);
                let scale = libm::log2(target / f64::from(edge_factor)).max(3.0) as u8;
                let upper_left = self.between(25, 65) as u8;
                let upper_right = self.between(10, (100 - u32::from(upper_left)) / 2) as u8;
                // Undirected graphs have as many edges one way as the other.
                let lower_left = match self.chance(0.7) {
                    true => upper_right,
                    false => self.between(5, 99 - u32::from(upper_left + upper_right)) as u8,
                };
                let percent = [upper_left, upper_right, lower_left];
                Generator::Rmat { scale, edge_factor, percent, seed }
            }
            4 => {
                let dof = self.between(1, 8);
                let nodes = count(target / (9.0 * f64::from(dof * dof)));
                Generator::FemBlocks { nodes, dof, seed }
            }
            5 => {
                let rows = count(target * self.log(1.0, 3.0));
                let cols = count(target * self.log(0.05, 3.0));
                Generator::HyperSparse { rows, cols, entries: count(target), seed }
            }
            6 => {
                let cols = count(target * self.log(0.05, 0.9));
                let rows = count(target - f64::from(cols));
                Generator::DenseRow { rows, cols, seed }
            }
            _ => {
                // So many blocks that it is next to impossible that none is kept.
                let most = libm::log2(target / 32.0) / 2.0;
                let block = 1 << self.between(0, 5).min(most.max(0.0) as u32);
                let percent = self.log_number(2, 50) as u8;
                let cells = target * 100.0 / f64::from(percent);
                let aspect = self.log(0.125, 8.0);
                let whole = |size: f64| (count(size) / block).max(1).saturating_mul(block);
                let (rows, cols) = (libm::sqrt(cells * aspect), libm::sqrt(cells / aspect));
                let (rows, cols) = (whole(rows), whole(cols));
                Generator::BlockPruned { rows, cols, block, percent, seed }
            }
        }
    }

    /// Pruned by half to 98 %, evenly or as magnitudes are.
    fn pruned_layer(&mut self, target: f64, seed: u64) -> Generator {
        let mut kept = self.log_number(20, 500);
        let aspect = self.log(0.25, 4.0);
        let cells = target * 1000.0 / f64::from(kept);
        let whole = |size: f64| (count(size) / 32).max(1).saturating_mul(32);
        let (mut rows, mut cols) =
            (whole(libm::sqrt(cells * aspect)), whole(libm::sqrt(cells / aspect)));
        let known = self.chance(0.6).then(|| self.one(&LAYERS).copied()).flatten();
        if let Some((known_rows, known_cols)) = known {
            let share = target * 1000.0 / (f64::from(known_rows) * f64::from(known_cols));
            if (20.0..=500.0).contains(&share) {
                (rows, cols, kept) = (known_rows, known_cols, share as u32);
            }
        }
        let [row_deviation, col_deviation] =
            [(); 2].map(|()| if self.chance(0.4) { 0 } else { self.between(50, 1200) });
        Generator::PrunedLayer { rows, cols, kept, row_deviation, col_deviation, seed }
    }

    fn layer_or_table(&mut self, target: f64, seed: u64) -> Generator {
        match self.between(0, 3) {
            0 => {
                let radix = self.log_number(4, 64);
                let neurons = count(target / f64::from(radix));
                let stride = match self.between(0, 2) {
                    0 => 1,
                    1 => radix,
                    _ => neurons / radix,
                };
                Generator::RadixLayer { neurons, radix, stride: stride.max(1), seed }
            }
            1 | 2 => {
                let rows = count(target / self.log(2.0, 200.0));
                let cols = count(target / self.log(2.0, 200.0));
                let [row_skew, col_skew] = [(); 2].map(|()| self.between(1000, 3500));
                Generator::Bipartite {
                    rows,
                    cols,
                    entries: count(target),
                    row_skew,
                    col_skew,
                    seed,
                }
            }
            _ => {
                let pins = self.between(2100, 8000);
                let nets = count(target * 1000.0 / f64::from(pins));
                let cells = count(f64::from(nets) * self.log(0.3, 2.0));
                Generator::Netlist { nets, cells: cells.max(16), pins, seed }
            }
        }
    }

    fn graph(&mut self, target: f64, seed: u64) -> Generator {
        match self.between(0, 3) {
            0 => {
                let percent = self.between(45, 80) as u8;
                let crossings = target / (0.04 * f64::from(percent));
                let ny = libm::sqrt(crossings / self.log(1.0, 4.0));
                Generator::Road { nx: count(crossings / ny), ny: count(ny), percent, seed }
            }
            1 => {
                let reach = self.between(1000, 2500);
                let radius = f64::from(reach) / 1000.0;
                let long = self.log(1.0, 4.0);
                let [nx, ny, nz] = match self.chance(0.5) {
                    true => {
                        let side = libm::sqrt(target / (3.15 * radius * radius) / long);
                        [side * long, side, 1.0]
                    }
                    false => {
                        let ball = 4.19 * radius * radius * radius;
                        let side = libm::cbrt(target / ball / long);
                        [side * long, side, side]
                    }
                };
                Generator::Mesh { nx: count(nx), ny: count(ny), nz: count(nz), reach, seed }
            }
            2 => {
                let edges = count(target / 2.0);
                let vertices = count(target / self.log(3.0, 80.0));
                let size = self.log_number(8, 2000);
                let inside = self.between(30, 95) as u8;
                Generator::Communities { vertices, edges, size, inside, seed }
            }
            _ => {
                let pages = count(target / self.log(0.8, 20.0));
                Generator::Web { pages, links: count(target), seed }
            }
        }
    }

    /// Mathematical programs and systems with a border.
    fn program(&mut self, target: f64, seed: u64) -> Generator {
        match self.between(0, 4) {
            0 => {
                let per_column = self.between(1, 8);
                let long = if self.chance(0.4) { 0 } else { self.log_number(1, 20) };
                let percent = self.between(10, 100) as u8;
                let per_col = f64::from(per_column) + 0.01 * f64::from(long * u32::from(percent));
                let cols = count(target / per_col);
                let rows = count(f64::from(cols) * self.log(0.003, 2.0));
                Generator::LinearProgram { rows, cols, per_column, long, percent, seed }
            }
            1 => {
                let (half_width, per_row) = (self.log_number(1, 20) - 1, self.log_number(1, 20));
                let share = self.log(0.1, 1.0);
                let each = f64::from(2 * half_width + 1) + 2.0 * share * f64::from(per_row);
                let primal = count(target / each);
                let dual = count(f64::from(primal) * share);
                Generator::SaddlePoint { primal, dual, half_width, per_row, seed }
            }
            2 => {
                let percent = self.log_number(5, 100) as u8;
                let size = self.log_number(4, 100).min(count(libm::sqrt(target / 16.0)));
                let border = self.log_number(1, 16);
                let each = 0.01 * f64::from(percent) * f64::from(size + 2 * border) + 1.0;
                let blocks = count(target / each / f64::from(size));
                Generator::BorderedBlocks { blocks, size, border, percent, seed }
            }
            3 => {
                let rails = self.between(0, 6);
                let percent = self.log_number(2, 100) as u8;
                let per_node = self.log(0.8, 5.0);
                let each = 1.0 + 2.0 * per_node + 0.02 * f64::from(rails * u32::from(percent));
                let nodes = count(target / each);
                let wires = count(f64::from(nodes) * per_node);
                Generator::Circuit { nodes, wires, rails, percent, seed }
            }
            _ => {
                let (diagonals, percent) = (self.log_number(2, 60), self.between(30, 100) as u8);
                // Far diagonals end early; with half of them there on average.
                let rows = count(target / (0.01 * f64::from(diagonals * u32::from(percent))));
                Generator::Diagonals { rows, count: diagonals, percent, seed }
            }
        }
    }

    /// Rows and columns for so many entries in rows of this mean length: half square, else from 64
    /// times as wide to 64 times as tall.
    fn shape(&mut self, target: f64, mean: f64) -> (u32, u32) {
        let rows = (target / mean).max(1.0);
        let aspect = if self.chance(0.5) { 1.0 } else { self.log(1.0 / 64.0, 64.0) };
        // Enough columns for the mean.
        (count(rows), count((rows * aspect).max(mean * 1.5)))
    }

    fn stencil(&mut self, target: f64) -> Generator {
        // From square to a slab.
        let (long, longer) = (self.log(1.0, 8.0), self.log(1.0, 8.0));
        match self.between(0, 2) {
            0 => {
                let ny = libm::sqrt(target / 5.0 / long);
                Generator::Stencil5 { nx: count(ny * long), ny: count(ny) }
            }
            points => {
                let per_row = if points == 1 { 7.0 } else { 27.0 };
                let nz = libm::cbrt(target / per_row / long / longer);
                let [nx, ny, nz] = [nz * long * longer, nz, nz].map(count);
                match points {
                    1 => Generator::Stencil7 { nx, ny, nz },
                    _ => Generator::Stencil27 { nx, ny, nz },
                }
            }
        }
    }

    fn featured(&mut self, target: f64, seed: u64) -> Generator {
        let block = if self.chance(0.7) { 1 } else { self.between(2, 8) };
        let fill = if block == 1 { 1.0 } else { self.log(0.3, 1.0) };
        // Not without a few rows and columns of blocks.
        let mean = self.log(1.5, 300.0).max(f64::from(block) * fill);
        let mean = mean.min(target / f64::from(32 * block));
        let (rows, cols) = self.shape(target * fill, mean);
        let cols = cols.max(4 * block);
        let variation = if self.chance(0.3) { 0.0 } else { self.log(0.05, 4.0) };
        let skew = if self.chance(0.7) { 6.0 * variation } else { self.log(4.0, 10_000.0) };
        let thousandths = |number: f64| (number * 1000.0) as u32;
        let bandwidth = if self.chance(0.4) { 1.0 } else { self.log(0.002, 1.0) };
        let neighbours = if self.chance(0.3) { 0 } else { self.between(0, 1950) };
        let similarity = if self.chance(0.3) { 0 } else { self.between(0, 980) };
        Generator::Featured(Featured {
            rows,
            cols,
            mean: thousandths(mean),
            variation: thousandths(variation),
            skew: thousandths(skew.max(6.0 * variation)),
            bandwidth: thousandths(bandwidth).max(1),
            neighbours,
            similarity,
            block,
            fill: thousandths(fill),
            seed,
        })
    }
}

/// A size, at least 1.
fn count(size: f64) -> u32 {
    size.max(1.0) as u32
}
