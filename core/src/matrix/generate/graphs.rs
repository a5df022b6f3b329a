//! Graphs: symmetric but for the web's, each edge's value the same both ways.

use alloc::vec::Vec;

use super::random::{mixed, pair_value, skewed};
use super::rows::by_rows;
use super::{Scatter, mirrored, of_row, positions};
use crate::matrix::Csr;

/// Roads: crossings on an `nx` × `ny` grid, of whose edges `percent` in 100 are there. No diagonal.
#[must_use]
pub fn road(nx: usize, ny: usize, percent: usize, seed: u64) -> Csr<f64> {
    let crossings = nx.saturating_mul(ny);
    by_rows(crossings, crossings, |at, row| {
        let (x, y) = (at % nx, at / nx);
        let edge = |other: usize| {
            let (low, high) = (at.min(other) as u64, at.max(other) as u64);
            let mut random = mixed(seed, low, high);
            (random.below(100) < percent).then(|| (other, random.value()))
        };
        row.extend((y > 0).then(|| edge(at - nx)).flatten());
        row.extend((x > 0).then(|| edge(at - 1)).flatten());
        row.extend((x + 1 < nx).then(|| edge(at + 1)).flatten());
        row.extend((y + 1 < ny).then(|| edge(at + nx)).flatten());
    })
}

/// An unstructured mesh: a point in each cell of an `nx` × `ny` × `nz` grid, coupled with itself
/// and all points not farther than `reach`, in units of the grid. Points are numbered along x, then
/// y, then z; with `nz` = 1 the mesh is plane.
#[must_use]
pub fn mesh(nx: usize, ny: usize, nz: usize, reach: f64, seed: u64) -> Csr<f64> {
    let points = nx.saturating_mul(ny).saturating_mul(nz);
    let reach = if reach.is_finite() { reach.clamp(0.0, 16.0) } else { 0.0 };
    let cells = libm::ceil(reach) as usize;
    let place = |x: usize, y: usize, z: usize| {
        let mut random = mixed(seed, ((z * ny + y) * nx + x) as u64, 0);
        let [dx, dy, dz] = [random.uniform(), random.uniform(), random.uniform()];
        [x as f64 + dx, y as f64 + dy, if nz > 1 { z as f64 + dz } else { 0.0 }]
    };
    let around = |at: usize, end: usize| at.saturating_sub(cells)..(at + cells + 1).min(end);
    by_rows(points, points, |at, row| {
        let (x, y, z) = (at % nx, at / nx % ny, at / nx / ny);
        let here = place(x, y, z);
        for other_z in around(z, nz) {
            for other_y in around(y, ny) {
                for other_x in around(x, nx) {
                    let other = (other_z * ny + other_y) * nx + other_x;
                    let there = place(other_x, other_y, other_z);
                    let square = |axis: usize| {
                        let distance = here[axis] - there[axis];
                        distance * distance
                    };
                    if square(0) + square(1) + square(2) <= reach * reach {
                        row.push((other, pair_value(seed, at, other)));
                    }
                }
            }
        }
    })
}

/// A social network: `edges` edges drawn, equal ones merged, of which `inside` in 100 are within a
/// community of `size` vertices numbered one after the other. Degrees are skewed in a community,
/// and outside.
#[must_use]
pub fn communities(
    vertices: usize,
    edges: usize,
    size: usize,
    inside: usize,
    seed: u64,
) -> Csr<f64> {
    let vertices = vertices.min(u32::MAX as usize);
    let size = size.clamp(1, vertices.max(1));
    let edges = if vertices == 0 { 0 } else { edges };
    let drawn = positions(edges, 4, seed, |random| {
        let community = random.below(vertices.div_ceil(size)) * size;
        let members = size.min(vertices - community);
        let first = community + skewed(random, members, 2.0);
        let second = match random.below(100) < inside {
            true => community + skewed(random, members, 2.0),
            false => skewed(random, vertices, 3.0),
        };
        (first, second)
    });
    let edges = mirrored(drawn);
    by_rows(vertices, vertices, |at, row| {
        let neighbours = of_row(&edges, at).filter(|&(_, other)| other != at);
        row.extend(neighbours.map(|(_, other)| (other, pair_value(seed, at, other))));
    })
}

/// Pages that link to pages: `links` links drawn, equal ones merged, most from few pages, three
/// quarters to near pages, as those of one host are, the others to popular ones. Many rows are
/// empty.
#[must_use]
pub fn web(pages: usize, links: usize, seed: u64) -> Csr<f64> {
    let pages = pages.min(u32::MAX as usize);
    let links = if pages == 0 { 0 } else { links };
    let scatter = Scatter::new(pages);
    let drawn = positions(links, 4, seed, |random| {
        // Pages with many links are all over the web.
        let from = scatter.of(skewed(random, pages, 1.5));
        let near = random.below(4) < 3;
        let up = random.below(2) == 1;
        let to = match near {
            true => {
                let distance = skewed(random, pages.min(1000), 3.0);
                if up { (from + distance).min(pages - 1) } else { from.saturating_sub(distance) }
            }
            false => scatter.of(skewed(random, pages, 4.0)),
        };
        (from, to)
    });
    by_rows(pages, pages, |at, row| {
        row.extend(of_row(&drawn, at).map(|(index, to)| (to, pair_value(seed, index, to))));
    })
}

/// Nets of a chip: each row a net, its columns the cells that it connects, 2 and more with
/// geometrically falling frequency, `pins` on average; most of them near each other.
#[must_use]
pub fn netlist(nets: usize, cells: usize, pins: f64, seed: u64) -> Csr<f64> {
    by_rows(nets, cells, |at, row| {
        if cells == 0 {
            return;
        }
        let mut random = mixed(seed, at as u64, 0);
        let centre = (at as u128 * cells as u128 / nets as u128) as usize;
        let more = if pins > 2.0 { (pins - 2.0) / (pins - 1.0) } else { 0.0 };
        let mut columns = Vec::new();
        while columns.len() < MOST_PINS.min(cells) && (columns.len() < 2 || random.uniform() < more)
        {
            // Each power of two of distances is as likely, as Rent's rule has it.
            let distance = libm::exp2(random.uniform() * libm::log2(cells as f64)) as usize - 1;
            let up = random.below(2) == 1;
            let col = if up { centre + distance } else { centre + cells - distance };
            columns.push(col % cells);
        }
        columns.sort_unstable();
        columns.dedup();
        row.extend(columns.into_iter().map(|col| (col, random.value())));
    })
}

/// Pins of the longest net of [`netlist`].
pub const MOST_PINS: usize = 256;
