//! The modules of this crate depend downwards only.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// All modules, each above everything that it may use.
const ORDER: [&str; 17] = [
    "random",
    "target",
    "task",
    "matrix",
    "reference",
    "structure",
    "syntax",
    "layout",
    "language",
    "codegen",
    "plan",
    "kernel",
    "decode",
    "outcome",
    "results",
    "pipeline",
    "arbitrary",
];

/// The crate's own code: no comments, no tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    // Tests are the last item of their file.
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn files(module: &str) -> Vec<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = vec![source.join(format!("{module}.rs"))];
    let mut folders = vec![source.join(module)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
                found.push(path);
            }
        }
    }
    found.retain(|path| path.exists());
    found
}

/// The modules that some code names.
fn named(code: &str) -> impl Iterator<Item = &str> {
    code.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

#[test]
fn modules_depend_downwards_only() {
    let mut seen = 0;
    for (height, module) in ORDER.iter().enumerate() {
        let files = files(module);
        assert!(!files.is_empty(), "there is no module {module}");
        for path in files {
            for used in named(&code(&path)) {
                let below = ORDER.iter().position(|name| *name == used);
                let below = below.unwrap_or_else(|| panic!("{}: crate::{used}", path.display()));
                assert!(below <= height, "{} uses {used}, which is above", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "only {seen} uses were found");
}

#[test]
fn every_module_has_its_place() {
    let root = code(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"));
    let declared: Vec<&str> =
        root.lines().filter_map(|line| line.split("mod ").nth(1)?.strip_suffix(';')).collect();
    assert_eq!(declared.len(), ORDER.len());
    assert!(declared.iter().all(|module| ORDER.contains(module)), "{declared:?}");
}
