//! The modules of each crate depend downwards only.

#![allow(clippy::unwrap_used)]

use sparserl_tests::module_order::{check, check_inside};

/// All modules of `core`, each above everything that it may use.
const CORE: [&str; 22] = [
    "message",
    "memo",
    "quoted",
    "random",
    "timing",
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
    "search",
    "outcome",
    "results",
    "pipeline",
    "arbitrary",
];

/// All modules of code generation, likewise.
const CODEGEN: [&str; 14] = [
    "lines",
    "dense",
    "signature",
    "parameter",
    "source",
    "transposing",
    "epilogue",
    "ending",
    "items",
    "unfused",
    "part",
    "call",
    "header",
    "emit",
];

/// All modules of `gpu`, likewise.
const GPU: [&str; 11] = [
    "isolate",
    "compile",
    "run",
    "candidate",
    "compare",
    "judge",
    "store",
    "worker",
    "emulated",
    "evaluator",
    "serve",
];

/// All modules of the emulator, likewise.
const EMULATOR: [&str; 9] =
    ["error", "compute", "code", "ptx", "counters", "finding", "memory", "launch", "machine"];

/// All modules of `ffi`, likewise.
const FFI: [&str; 29] = [
    "huge_pages",
    "types",
    "status",
    "handle",
    "options",
    "effort",
    "epilogue",
    "progress",
    "scatter",
    "context",
    "transpose",
    "matrix",
    "pattern",
    "plain",
    "map",
    "kernel",
    "side",
    "workspace",
    "operands",
    "copies",
    "plan",
    "query",
    "verbose",
    "search",
    "make",
    "file",
    "execute",
    "update",
    "api",
];

#[test]
fn modules_of_core_depend_downwards_only() {
    let uses = check("core", &CORE).unwrap();
    assert!(uses > 100, "only {uses} uses were found");
}

#[test]
fn modules_of_code_generation_depend_downwards_only() {
    let uses = check_inside("core", &["codegen"], &CODEGEN).unwrap();
    assert!(uses > 25, "only {uses} uses were found");
}

#[test]
fn modules_of_gpu_depend_downwards_only() {
    let uses = check("gpu", &GPU).unwrap();
    assert!(uses > 60, "only {uses} uses were found");
}

#[test]
fn modules_of_the_emulator_depend_downwards_only() {
    let uses = check("gpu/emulator", &EMULATOR).unwrap();
    assert!(uses > 60, "only {uses} uses were found");
}

#[test]
fn modules_of_ffi_depend_downwards_only() {
    let uses = check("ffi", &FFI).unwrap();
    assert!(uses > 60, "only {uses} uses were found");
}
