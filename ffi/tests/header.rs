//! `sparserl.h` is what cbindgen makes of the API. To accept changes after reading them:
//!
//! ```sh
//! SPARSERL_BLESS=1 cargo test -p sparserl-ffi --test header && git diff ffi/sparserl.h
//! ```

#![allow(clippy::unwrap_used, reason = "test code")]

use std::path::Path;
use std::{env, fs};

use cbindgen::{Builder, Config, DocumentationStyle, ExportConfig, Language};

const OPENING: &str = "\
// SparseRL: kernels for sparse matrices, made for one matrix each.
//
// context -> matrix -> plan -> execute. Handles are opaque, and using one after it was destroyed is
// an error like any other; only what pointers point to is trusted. Every function may be called
// from every thread. Functions return a status; where it is not SPARSERL_SUCCESS nothing was
// written, and sparserl_last_error() says why in one line. Statuses, options, types and keys keep
// their numbers, and functions their parameters, in all versions with the same major number.
//
// A process that was forked from one with a context has no threads to work for it: calls there
// wait for ever. Threads that call need a stack of 256 KiB.
//
// With SPARSERL_VERBOSE=1 a line is printed for each plan when the program ends.
//
// Written by cbindgen from ffi/src/types.rs and ffi/src/api.rs; do not edit.
";

#[test]
fn the_header_is_what_the_api_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = Config {
        language: Language::C,
        header: Some(OPENING.to_owned()),
        include_guard: Some("SPARSERL_H".to_owned()),
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        no_includes: true,
        cpp_compat: true,
        documentation_style: DocumentationStyle::C99,
        usize_is_size_t: true,
        line_length: 100,
        // No function names it.
        export: ExportConfig { include: vec!["sparserl_log".to_owned()], ..Default::default() },
        ..Config::default()
    };
    let sources = ["src/types.rs", "src/api.rs"].map(|file| folder.join(file));
    let builder = sources.into_iter().fold(Builder::new(), Builder::with_src);
    let bindings = builder.with_config(config).generate().unwrap();
    let mut written = Vec::new();
    bindings.write(&mut written);
    let header = without_contracts(&String::from_utf8(written).unwrap());
    let path = folder.join("sparserl.h");
    if env::var_os("SPARSERL_BLESS").is_some() {
        fs::write(&path, &header).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == header, "ffi/sparserl.h is not what ffi/src says: see this test");
}

/// Leaves out what Rust's programmers are told of a function's contract: it is said to C's anyway.
fn without_contracts(header: &str) -> String {
    let mut text = String::new();
    let mut in_contract = false;
    for line in header.lines() {
        in_contract = (in_contract && line.starts_with("//")) || line == "// # Safety";
        if in_contract {
            let before = text.strip_suffix("//\n").map(str::len);
            text.truncate(before.unwrap_or(text.len()));
        } else {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}
