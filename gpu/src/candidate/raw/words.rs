//! Words of a text in C++.

/// Whether a character may be in a name.
pub(super) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The letters, digits and underscores that a text begins with, and the rest.
pub(super) fn split_name(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !is_name(c)).unwrap_or(text.len()))
}

/// The name that a declaration ends with.
pub(super) fn last_name(declaration: &str) -> &str {
    declaration.trim_end().rsplit(|c| !is_name(c)).next().unwrap_or_default()
}

/// A text with the names that the standard library has of its own for sized integers as C has them.
pub(super) fn unqualified(text: &str) -> String {
    text.replace("std::", "")
}

/// A text in which some words are replaced.
pub(super) fn replaced(text: &str, by: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (between, after) = rest.split_at(rest.find(is_name).unwrap_or(rest.len()));
        let (word, after) = split_name(after);
        out.push_str(between);
        out.push_str(&by(word).unwrap_or_else(|| word.to_owned()));
        rest = after;
    }
    out
}

/// The integers that a text has as numbers.
pub(super) fn integers(text: &str) -> impl Iterator<Item = u64> {
    let number = |word: &str| {
        let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
        match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => digits.parse().ok(),
        }
    };
    text.split(|c| !is_name(c)).filter_map(number)
}
