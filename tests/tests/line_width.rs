//! Comments of Rust sources are as narrow as rustfmt makes code.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// As in `rustfmt.toml`.
const WIDEST: usize = 100;

#[test]
fn comments_have_room() {
    let crates = ["core", "onnx-models", "gpu", "cli", "ffi", "trainer", "fuzz", "tests"];
    let mut wide = Vec::new();
    let mut seen = 0;
    for folder in crates {
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
