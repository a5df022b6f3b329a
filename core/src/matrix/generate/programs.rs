//! Matrices of mathematical programs and of systems with a border.

use super::random::{mixed, pair_value, skewed};
use super::rows::by_rows;
use super::{Scatter, evenly, mirrored, of_row, positions};
use crate::matrix::Csr;

/// Constraints of a linear program: `per_column` entries drawn for each column, equal ones merged,
/// near the place where a staircase of stages has them; and among the rows `long` evenly spread
/// ones with entries at `percent` in 100 of the columns.
#[must_use]
pub fn linear_program(
    rows: usize,
    cols: usize,
    per_column: usize,
    long: usize,
    percent: usize,
    seed: u64,
) -> Csr<f64> {
    let (rows, cols) = (rows.min(u32::MAX as usize), cols.min(u32::MAX as usize));
    let entries = if rows == 0 { 0 } else { cols.saturating_mul(per_column) };
    let stage = rows.div_ceil(16).max(1);
    let drawn = positions(entries, 2, seed, |random| {
        let col = random.below(cols);
        let first = (col as u128 * rows as u128 / cols as u128) as usize / stage * stage;
        ((first + random.below(2 * stage)) % rows, col)
    });
    let long = long.min(rows);
    by_rows(rows, cols, |at, row| {
        // Row `at` is a long one when a multiple of rows ÷ long falls on it.
        let is_long = (at + 1) as u128 * long as u128 / rows as u128
            > at as u128 * long as u128 / rows as u128;
        let value = |col: usize| (col, mixed(seed ^ 1, at as u64, col as u64).value());
        match is_long {
            true => row.extend(
                evenly(cols, cols * percent.min(100) / 100, mixed(seed, at as u64, 0)).map(value),
            ),
            false => row.extend(of_row(&drawn, at).map(|(_, col)| value(col))),
        }
    })
}

/// The KKT matrix [H Aᵀ; A 0]: H is `primal` × `primal` with a band of `half_width` beside the
/// diagonal, A has `dual` rows for each of which `per_row` entries are drawn near the diagonal of
/// A, equal ones merged. Symmetric.
#[must_use]
pub fn saddle_point(
    primal: usize,
    dual: usize,
    half_width: usize,
    per_row: usize,
    seed: u64,
) -> Csr<f64> {
    let primal = primal.min(u32::MAX as usize);
    let dual = dual.min(u32::MAX as usize - primal);
    let entries = if primal == 0 { 0 } else { dual.saturating_mul(per_row) };
    let near = (primal / 64).max(4 * per_row).clamp(1, primal.max(1));
    let constraints = mirrored(positions(entries, 2, seed, |random| {
        let row = random.below(dual);
        let first = (row as u128 * primal as u128 / dual as u128) as usize;
        (primal + row, (first + random.below(near)) % primal)
    }));
    by_rows(primal + dual, primal + dual, |at, row| {
        let value = |col: usize| (col, pair_value(seed, at, col));
        if at < primal {
            let end = at.saturating_add(half_width).saturating_add(1).min(primal);
            row.extend((at.saturating_sub(half_width)..end).map(value));
        }
        row.extend(of_row(&constraints, at).map(|(_, col)| value(col)));
    })
}

/// `blocks` square blocks of `size` rows along the diagonal, coupled by a border of as many last
/// rows and columns as `border` says; in blocks and border `percent` in 100 of the positions have
/// an entry, and all of the diagonal. Symmetric.
#[must_use]
pub fn bordered_blocks(
    blocks: usize,
    size: usize,
    border: usize,
    percent: usize,
    seed: u64,
) -> Csr<f64> {
    let inner = blocks.saturating_mul(size);
    let rows = inner.saturating_add(border);
    by_rows(rows, rows, |at, row| {
        let entry = |col: usize| {
            let (low, high) = (at.min(col) as u64, at.max(col) as u64);
            let mut random = mixed(seed, low, high);
            let kept = random.below(100) < percent || at == col;
            kept.then(|| (col, random.value()))
        };
        if at < inner {
            let first = at / size * size;
            row.extend((first..first + size).filter_map(entry));
            row.extend((inner..rows).filter_map(entry));
        } else {
            row.extend((0..rows).filter_map(entry));
        }
    })
}

/// A circuit: `nodes` nodes with their diagonal, `wires` wires drawn between two of them, equal
/// ones merged, most of them short; and `rails` nodes, such as the supply, that are connected with
/// `percent` in 100 of all. Symmetric.
#[must_use]
pub fn circuit(nodes: usize, wires: usize, rails: usize, percent: usize, seed: u64) -> Csr<f64> {
    let nodes = nodes.min(u32::MAX as usize);
    let wires = mirrored(positions(if nodes == 0 { 0 } else { wires }, 2, seed, |random| {
        let from = random.below(nodes);
        (from, (from + 1 + skewed(random, nodes, 6.0)) % nodes)
    }));
    let scatter = Scatter::new(nodes);
    let rails: alloc::collections::BTreeSet<usize> =
        (0..rails.min(nodes)).map(|rail| scatter.of(rail)).collect();
    by_rows(nodes, nodes, |at, row| {
        let on_rail = |col: usize| {
            let (low, high) = (at.min(col) as u64, at.max(col) as u64);
            mixed(seed ^ 1, low, high).below(100) < percent
        };
        let value = |col: usize| (col, pair_value(seed, at, col));
        row.push(value(at));
        row.extend(of_row(&wires, at).map(|(_, col)| value(col)));
        match rails.contains(&at) {
            true => row.extend((0..nodes).filter(|&col| on_rail(col)).map(value)),
            false => row.extend(rails.iter().copied().filter(|&col| on_rail(col)).map(value)),
        }
        row.sort_unstable_by_key(|&(col, _)| col);
        row.dedup_by_key(|&mut (col, _)| col);
    })
}

/// `count` diagonals, the main one and others at random places, each of whose positions has an
/// entry with a probability of `percent` in 100; the main one is full.
#[must_use]
pub fn diagonals(rows: usize, count: usize, percent: usize, seed: u64) -> Csr<f64> {
    let rows = rows.min(u32::MAX as usize);
    let mut random = mixed(seed, 0, 0);
    // Far ones are as likely as near ones, as grids of several dimensions have them.
    let mut offsets: alloc::vec::Vec<i64> = (1..count)
        .filter(|_| rows > 0)
        .map(|_| {
            let offset = 1 + skewed(&mut random, rows, 3.0) as i64;
            if random.below(2) == 1 { offset } else { -offset }
        })
        .collect();
    offsets.push(0);
    offsets.sort_unstable();
    offsets.dedup();
    by_rows(rows, rows, |at, row| {
        for &offset in &offsets {
            let col = at as i64 + offset;
            let mut random = mixed(seed ^ 1, at as u64, col as u64);
            let kept = random.below(100) < percent || offset == 0;
            if kept && (0..rows as i64).contains(&col) {
                row.push((col as usize, random.value()));
            }
        }
    })
}
