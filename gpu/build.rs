//! Tells the crate which sources and crates it is built of: what the emulator has found right is
//! kept for these alone, since others may find it wrong.

// How a build script says what it has to say.
#![allow(clippy::print_stdout)]

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let mut hasher = DefaultHasher::new();
    for folder in ["../core/src", "emulator/src", "src"] {
        println!("cargo::rerun-if-changed={folder}");
        add(Path::new(folder), &mut hasher)?;
    }
    let lock = "../Cargo.lock";
    println!("cargo::rerun-if-changed={lock}");
    fs::read(lock)?.hash(&mut hasher);
    println!("cargo::rustc-env=SPARSERL_SOURCES={:016x}", hasher.finish());
    Ok(())
}

/// Adds the files of a folder, in the order of their names.
fn add(folder: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add(&path, hasher)?;
        } else {
            path.hash(hasher);
            fs::read(&path)?.hash(hasher);
        }
    }
    Ok(())
}
