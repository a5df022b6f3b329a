//! Comments of Rust sources are as narrow as rustfmt makes code, and those of public items can be
//! read alone.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// As in `rustfmt.toml`.
const WIDEST: usize = 100;
const CRATES: [&str; 8] = ["core", "onnx-models", "gpu", "cli", "ffi", "trainer", "fuzz", "tests"];
/// Beginnings of what only those understand who have read the item before.
const FRAGMENTS: [&str; 7] = ["Of ", "The same", "As ", "By ", "Those ", "In ", "With "];

#[test]
fn comments_have_room() {
    let mut wide = Vec::new();
    let mut seen = 0;
    for folder in CRATES {
        for path in sources(&sparserl_tests::root().join(folder)) {
            let text = fs::read_to_string(&path).unwrap();
            let mut is_fenced = false;
            for (line, number) in text.lines().zip(1..) {
                let comment = line.trim_start();
                if !comment.starts_with("//") {
                    is_fenced = false;
                    continue;
                }
                seen += 1;
                let words = comment.trim_start_matches(['/', '!']).trim_start();
                is_fenced ^= words.starts_with("```");
                // Rows of tables, drawings and addresses are not broken.
                let is_whole = is_fenced || words.starts_with('|') || words.contains("://");
                if line.chars().count() > WIDEST && !is_whole {
                    wide.push(format!("{}:{number}", path.display()));
                }
            }
        }
    }
    assert!(seen > 10_000, "only {seen} comments were found");
    assert!(wide.is_empty(), "{wide:#?}");
}

#[test]
fn public_items_say_what_they_are() {
    let mut fragments = Vec::new();
    let mut seen = 0;
    for folder in CRATES {
        for path in sources(&sparserl_tests::root().join(folder)) {
            let text = fs::read_to_string(&path).unwrap();
            for (item, told) in told_items(&text) {
                seen += 1;
                if item.starts_with("pub ") && FRAGMENTS.iter().any(|f| told.starts_with(f)) {
                    fragments.push(format!("{}: `{item}`: {told}", path.display()));
                }
            }
        }
    }
    assert!(seen > 3_000, "only {seen} items with a comment were found");
    assert!(fragments.is_empty(), "begin with what the item is: {fragments:#?}");
}

#[test]
fn fragments_are_found_before_attributes() {
    let text =
        "/// Of it all,\n/// in bytes.\n#[serde(\n    rename = \"b\",\n)]\n    pub bytes: u64,\n";
    assert_eq!(told_items(text), [("pub bytes: u64,", "Of it all,")]);
}

/// The first line of each item that has a comment for its documentation, and that of the comment.
fn told_items(text: &str) -> Vec<(&str, &str)> {
    let mut items = Vec::new();
    let mut told = None;
    let mut is_in_attribute = false;
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("///") {
            told = told.or(Some(comment.trim()));
        } else if is_in_attribute || line.starts_with("#[") {
            is_in_attribute = !line.ends_with(']');
        } else if let Some(told) = told.take() {
            items.push((line, told));
        }
    }
    items
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // What is built is nobody's writing.
            if path.file_name().is_some_and(|name| name != "target") {
                found.extend(sources(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
