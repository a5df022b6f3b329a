//! The features of a matrix, as text.

use std::fmt::{self, Write};

use sparserl_core::structure::Features;

/// The features in two columns, to fit a screen, each with what it stands for.
pub(crate) struct FeatureTable<'a>(pub(crate) &'a Features);

impl fmt::Display for FeatureTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<String> = Features::NAMES
            .iter()
            .zip(self.0.to_array())
            .map(|(name, value)| {
                let text = Reading::of(name).text(f64::from(value));
                let mark = if is_approximate(name, f64::from(value)) { "≈ " } else { "" };
                format!("{name:<17}{:>8.4}  {:<12}", value + 0.0, format!("{mark}{text}"))
            })
            .collect();
        let half = cells.len().div_ceil(2);
        for i in 0..half {
            let mut line = format!("  {}", cells[i]);
            if let Some(right) = cells.get(half + i) {
                write!(line, "  {right}")?;
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Matrices have fewer places for an entry.
const NO_DENSITY: f64 = (1_u64 << 63) as f64;

/// Quantiles of row lengths are exact below 256, and above it to 3 %.
fn is_approximate(name: &str, value: f64) -> bool {
    let is_quantile = name.starts_with("row_q") || matches!(name, "row_min" | "row_median");
    is_quantile && Reading::count(value) >= 255.5
}

/// How a feature encodes what it stands for; see [`Features`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reading {
    /// log2(1 + x) / 8.
    Count,
    /// sign(x) · log2(1 + |x|) / 8.
    Signed,
    /// log2(x) / 8.
    Ratio,
    /// −log2(x) / 8.
    Density,
    /// x, in [0, 1].
    Share,
}

impl Reading {
    fn of(name: &str) -> Self {
        match name {
            "row_skewness" => Self::Signed,
            "aspect" | "slice_padding" | "gap" => Self::Ratio,
            "sparsity" => Self::Density,
            "empty_rows" | "symmetry" | "column_top" => Self::Share,
            _ if name.ends_with("_share") => Self::Share,
            _ if ["diagonal_", "block_", "adjacent_"].iter().any(|p| name.starts_with(p)) => {
                Self::Share
            }
            _ => Self::Count,
        }
    }

    /// What a count stands for.
    fn count(value: f64) -> f64 {
        (8.0 * value.abs()).exp2() - 1.0
    }

    fn text(self, value: f64) -> String {
        let power = (8.0 * value.abs()).exp2();
        match self {
            Self::Count => number(Self::count(value)),
            Self::Signed => number((power - 1.0).copysign(value) + 0.0),
            Self::Ratio => format!("× {}", number((8.0 * value).exp2())),
            // What stands for a density of 0.
            Self::Density if power >= NO_DENSITY => "no entries".to_owned(),
            Self::Density => format!("1 in {}", number(power)),
            Self::Share => format!("{:.2} %", 100.0 * value),
        }
    }
}

/// About four digits: features are single-precision logarithms.
fn number(x: f64) -> String {
    match x.abs() {
        a if a < 9.9995 => format!("{x:.3}"),
        a if a < 99.995 => format!("{x:.2}"),
        a if a < 99_999.5 => format!("{x:.0}"),
        _ => format!("{x:.3e}"),
    }
}

#[cfg(test)]
mod tests {
    use sparserl_core::matrix::{Csr, Offsets};

    use super::*;

    #[test]
    fn features_read_back_what_they_stand_for() {
        // 8 rows of 4 in a band of 16 columns.
        let columns: Vec<u32> = (0..8).flat_map(|row| 2 * row..(2 * row + 4).min(16)).collect();
        let mut offsets: Vec<u32> = (0..=8).map(|row| 4 * row).collect();
        offsets[8] = columns.len() as u32;
        let values = vec![1.0; columns.len()];
        let matrix = Csr::new(8, 16, Offsets::U32(offsets), columns, values).unwrap();
        let features = Features::new(matrix.view());
        let shown = |name: &str| {
            let i = Features::NAMES.iter().position(|n| *n == name).unwrap();
            Reading::of(name).text(f64::from(features.to_array()[i]))
        };
        assert_eq!(shown("rows"), "8.000");
        assert_eq!(shown("nonzeros"), "30.00");
        assert_eq!(shown("aspect"), "× 0.500");
        assert_eq!(shown("sparsity"), "1 in 4.267");
        assert_eq!(shown("empty_rows"), "0.00 %");
        assert_eq!(shown("row_q25"), "4.000");
        assert!(shown("row_skewness").starts_with('-'));
    }

    #[test]
    fn an_empty_matrix_has_no_density_and_no_negative_zeros() {
        for (rows, cols) in [(0, 0), (7, 9)] {
            let offsets = Offsets::U32(vec![0; rows + 1]);
            let matrix = Csr::<f64>::new(rows, cols, offsets, vec![], vec![]).unwrap();
            let table = FeatureTable(&Features::new(matrix.view())).to_string();
            assert!(!table.contains("-0.0000") && !table.contains("e19"), "{table}");
            assert!(table.contains("no entries"), "{table}");
        }
    }

    #[test]
    fn long_quantiles_are_marked() {
        let shown = |length: u32| {
            let offsets = Offsets::U32((0..=3).map(|row| row * length).collect());
            let columns = (0..3).flat_map(|_| 0..length).collect();
            let values = vec![1.0; 3 * length as usize];
            let matrix = Csr::new(3, 1000, offsets, columns, values).unwrap();
            FeatureTable(&Features::new(matrix.view())).to_string()
        };
        assert!(!shown(255).contains('≈'), "{}", shown(255));
        assert_eq!(shown(300).matches('≈').count(), 7, "{}", shown(300));
    }
}
