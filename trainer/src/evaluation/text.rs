//! Tables as people read them.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{Row, Table};
use sparserl_core::results::Interval;

/// A table of Markdown that has no rows yet.
pub(crate) fn table(header: impl Into<Row>) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(header);
    table
}

/// An interval as tables have it; nothing where there is none.
pub(crate) fn written(interval: Option<Interval>) -> String {
    interval.map_or_else(String::new, |Interval { low, high }| format!("{low:.3} to {high:.3}"))
}
