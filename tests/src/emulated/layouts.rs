//! A small random matrix in the layouts that kernels take.
//!
//! | arrays | layout |
//! |---|---|
//! | `csr-offsets`, `csr-columns`, `csr-values`; `csr-entries`, their number | rows one after the other |
//! | `coo-rows` | the row of each entry |
//! | `ell-columns`, `ell-values`; `ell-width` | every row as long as the longest, column by column; columns -1 |
//! | `sell-offsets R`, `sell-columns R`, `sell-values R` | the same for each R rows; columns 0 |
//! | `dia-offsets`, `dia-values`; `dia-count` | diagonals, from the lowest |
//! | `bsr-offsets B`, `bsr-columns B`, `bsr-values B` | dense blocks of B by B |

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

use super::random::{draw, fraction};

/// A matrix: columns and values of each row, by column.
#[derive(Debug)]
pub struct Matrix {
    rows: Vec<Vec<(usize, f64)>>,
}

impl Matrix {
    pub(super) fn parse(options: &BTreeMap<&str, &str>) -> Result<Self> {
        let option = |name: &str| options.get(name).map(|text| text.parse()).transpose();
        let num_rows: usize = option("rows")?.context("no rows")?;
        let num_columns: usize = option("columns")?.context("no columns")?;
        let mean: usize = option("mean")?.context("no mean")?;
        let band = option("band")?;
        let mut entry = 0;
        let row = |row: usize| {
            let (low, high) = match band {
                Some(band) => (row.saturating_sub(band), num_columns.min(row + band + 1)),
                None => (0, num_columns),
            };
            let width = high.saturating_sub(low);
            let length = (draw("lengths", row) % (2 * mean as u64 + 1)) as usize;
            let length = length.min(width);
            let entries = (0..length).map(|k| {
                let (begin, end) = (k * width / length, (k + 1) * width / length);
                let within = draw("columns", row * 4096 + k) % (end - begin) as u64;
                entry += 1;
                (low + begin + within as usize, fraction("values", entry - 1))
            });
            entries.collect()
        };
        Ok(Self { rows: (0..num_rows).map(row).collect() })
    }

    /// Its product with `x`, which has `width` columns, row by row; so has the product.
    pub(super) fn product(&self, x: &[f64], width: usize) -> Result<Vec<f64>> {
        let mut y = Vec::new();
        for row in &self.rows {
            for k in 0..width {
                let mut sum = 0.0;
                for (column, value) in row {
                    sum += value * x.get(column * width + k).context("too few columns")?;
                }
                y.push(sum);
            }
        }
        Ok(y)
    }

    /// The numbers of an array of a layout.
    pub(super) fn layout(&self, name: &str, parameter: usize) -> Result<Vec<f64>> {
        let rows = &self.rows;
        let (layout, part) = name.split_once('-').context("no layout")?;
        Ok(match (layout, part) {
            ("csr", "offsets") => offsets(rows.iter().map(Vec::len)),
            ("csr", "columns") => rows.iter().flatten().map(|entry| entry.0 as f64).collect(),
            ("csr", "values") => rows.iter().flatten().map(|entry| entry.1).collect(),
            ("csr", "entries") => vec![rows.iter().map(Vec::len).sum::<usize>() as f64],
            ("coo", "rows") => (0..)
                .zip(rows)
                .flat_map(|(row, entries)| entries.iter().map(move |_| f64::from(row)))
                .collect(),
            ("ell", "width") => vec![longest(rows) as f64],
            ("ell", part) => padded(rows, rows.len(), part, -1.0)?,
            ("sell", "offsets") => {
                offsets(rows.chunks(parameter).map(|slice| longest(slice) * parameter))
            }
            ("sell", part) => {
                let mut numbers = Vec::new();
                for slice in rows.chunks(parameter) {
                    numbers.extend(padded(slice, parameter, part, 0.0)?);
                }
                numbers
            }
            ("dia", "count") => vec![self.diagonals().len() as f64],
            ("dia", "offsets") => self.diagonals().into_iter().map(|d| d as f64).collect(),
            ("dia", "values") => {
                let mut numbers = Vec::new();
                for diagonal in self.diagonals() {
                    let value = |(row, entries): (usize, &Vec<_>)| {
                        value_at(entries, row.checked_add_signed(diagonal))
                    };
                    numbers.extend(rows.iter().enumerate().map(value));
                }
                numbers
            }
            ("bsr", part) => self.blocked(part, parameter)?,
            _ => bail!("no layout `{name}`"),
        })
    }

    fn diagonals(&self) -> BTreeSet<isize> {
        let rows = self.rows.iter().enumerate();
        rows.flat_map(|(row, entries)| {
            entries.iter().map(move |&(column, _)| column as isize - row as isize)
        })
        .collect()
    }

    fn blocked(&self, part: &str, size: usize) -> Result<Vec<f64>> {
        let bands: Vec<(&[_], BTreeSet<usize>)> = self
            .rows
            .chunks(size)
            .map(|band| (band, band.iter().flatten().map(|&(column, _)| column / size).collect()))
            .collect();
        Ok(match part {
            "offsets" => offsets(bands.iter().map(|(_, columns)| columns.len())),
            "columns" => bands.iter().flat_map(|(_, columns)| columns).map(|&c| c as f64).collect(),
            "values" => {
                let mut numbers = Vec::new();
                for (band, columns) in bands {
                    for column in columns {
                        for entries in band {
                            let places = (0..size).map(|k| Some(column * size + k));
                            numbers.extend(places.map(|place| value_at(entries, place)));
                        }
                    }
                }
                numbers
            }
            _ => bail!("no part `{part}`"),
        })
    }
}

fn value_at(entries: &[(usize, f64)], column: Option<usize>) -> f64 {
    let entry = entries.iter().find(|entry| Some(entry.0) == column);
    entry.map_or(0.0, |entry| entry.1)
}

fn longest(rows: &[Vec<(usize, f64)>]) -> usize {
    rows.iter().map(Vec::len).max().unwrap_or(0)
}

fn offsets(lengths: impl Iterator<Item = usize>) -> Vec<f64> {
    let sums = lengths.scan(0, |sum, length| {
        *sum += length;
        Some(*sum as f64)
    });
    std::iter::once(0.0).chain(sums).collect()
}

/// Column by column, each of `height` elements.
fn padded(
    rows: &[Vec<(usize, f64)>],
    height: usize,
    part: &str,
    no_column: f64,
) -> Result<Vec<f64>> {
    let mut numbers = Vec::new();
    for k in 0..longest(rows) {
        for row in 0..height {
            let entry = rows.get(row).and_then(|row| row.get(k));
            numbers.push(match part {
                "columns" => entry.map_or(no_column, |entry| entry.0 as f64),
                "values" => entry.map_or(0.0, |entry| entry.1),
                _ => bail!("no part `{part}`"),
            });
        }
    }
    Ok(numbers)
}
