//! Text in lines of the width that sources have.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::{self, Write};

/// Width of the source's lines.
pub(super) const MOST_COLUMNS: usize = 100;

/// Writes a list after its opening, with as many items on a line as have room. The lines align with
/// the first item, or in a comment with its text.
pub(super) fn write_list(
    text: &mut String,
    opening: &str,
    items: &[String],
    end: &str,
) -> fmt::Result {
    let indent = match opening.strip_prefix("//") {
        Some(_) => "//     ".to_owned(),
        None if items.iter().all(|item| opening.len() + item.len() < MOST_COLUMNS) => {
            " ".repeat(opening.len())
        }
        None => " ".repeat(opening.len() - opening.trim_start().len() + 4),
    };
    let mut line = opening.to_owned();
    let mut is_first = true;
    for (i, item) in items.iter().enumerate() {
        let after = if i + 1 < items.len() { "," } else { end };
        let space = if is_first { "" } else { " " };
        // The first item may go beneath the opening as well, where there is any.
        let may_wrap = !line.trim().is_empty();
        if may_wrap && line.len() + space.len() + item.len() + after.len() > MOST_COLUMNS {
            writeln!(text, "{}", line.trim_end())?;
            line.clone_from(&indent);
        } else {
            line.push_str(space);
        }
        line.push_str(item);
        line.push_str(after);
        is_first = false;
    }
    writeln!(text, "{line}")
}

/// Writes words after an opening; further lines align with the first word.
pub(super) fn write_words(text: &mut String, opening: &str, words: &str) -> fmt::Result {
    let mut line = opening.trim_end().to_string();
    for word in words.split(' ') {
        if line.len() + 1 + word.len() > MOST_COLUMNS {
            writeln!(text, "{line}")?;
            line = format!("//{}", " ".repeat(opening.len() - 3));
        }
        if line.len() < opening.len() {
            line = format!("{line:width$}", width = opening.len() - 1);
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(text, "{line}")
}
