//! Numbers, tables and documents as they are printed.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::Serialize;

/// A JSON document that people can read, with a line break at its end.
pub(crate) fn json(document: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}

/// Seconds in a unit that suits them.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s if s < 1.0 => format!("{:.3} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// A ratio. One below 1 never rounds up to 1.
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        r if r < 1.0 && r > 0.995 => format!("{:.4}×", (r * 1e4).floor() / 1e4),
        r if r < 10.0 => format!("{r:.2}×"),
        r => format!("{r:.1}×"),
    }
}

/// A table of numbers, but for the first column, which names the rows.
pub(crate) fn table(header: Vec<String>, rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_never_looks_like_a_win() {
        assert_eq!(times(0.99999), "0.9999×");
        assert_eq!(times(0.994), "0.99×");
        assert_eq!(times(1.0), "1.00×");
        assert_eq!(times(12.345), "12.3×");
    }

    #[test]
    fn times_have_a_unit_that_suits_them() {
        let shown = [12.34e-6, 0.5, 62.0].map(time);
        assert_eq!(shown, ["12.34 µs", "500.000 ms", "62.00 s"]);
    }
}
