//! The modules of each crate depend downwards only, and no modules that stand beside each other use
//! one another in a circle.

#![allow(clippy::unwrap_used)]

use sparserl_tests::module_order::{check, check_circles, check_inside};

/// All modules of `core`, each above everything that it may use.
const CORE: [&str; 23] = [
    "message",
    "memo",
    "quoted",
    "regular_file",
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
    "kernel",
    "decode",
    "search",
    "outcome",
    "results",
    "pipeline",
    "plan",
    "arbitrary",
];

/// All modules of the statistics of matrices, likewise.
const STRUCTURE: [&str; 18] = [
    "limits",
    "pattern",
    "chunks",
    "count",
    "probe",
    "rows",
    "groups",
    "grid",
    "row_lengths",
    "sketch",
    "scan",
    "values",
    "features",
    "embedding",
    "answers",
    "stats",
    "similarity",
    "spy",
];

/// All modules of the syntax, likewise.
const SYNTAX: [&str; 10] = [
    "token",
    "mask",
    "reader",
    "block_size",
    "coding",
    "grammar",
    "legality",
    "tree",
    "derivation",
    "space",
];

/// All modules of the layouts, likewise.
const LAYOUT: [&str; 21] = [
    "array",
    "mapping",
    "call",
    "pack",
    "coding",
    "cost",
    "emulated",
    "layout_module",
    "bcsr",
    "binned",
    "chunk",
    "csr",
    "cvse",
    "dia",
    "ell",
    "merge",
    "sell",
    "registry",
    "packed",
    "packer",
    "pricing",
];

/// All modules of code generation, likewise.
const CODEGEN: [&str; 17] = [
    "lines",
    "dense",
    "access",
    "preprocess",
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
    "statements",
    "header",
    "emit",
];

/// All modules of `gpu`, likewise.
const GPU: [&str; 13] = [
    "panics",
    "shared_library",
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
const EMULATOR: [&str; 11] = [
    "error",
    "compute",
    "occupancy",
    "code",
    "ptx",
    "counters",
    "finding",
    "memory",
    "launch",
    "trace",
    "machine",
];

/// All modules of `ffi`, likewise.
const FFI: [&str; 35] = [
    "types",
    "float_environment",
    "status",
    "op",
    "options",
    "scatter",
    "remembered",
    "context",
    "transpose",
    "matrix",
    "operands",
    "epilogue",
    "plain",
    "trial",
    "map",
    "code",
    "kernel",
    "copies",
    "handle",
    "pattern",
    "progress",
    "side",
    "workspace",
    "plan",
    "ahead",
    "execute",
    "verbose",
    "api",
    "effort",
    "file",
    "huge_pages",
    "search",
    "make",
    "query",
    "update",
];

/// All modules of `onnx-models`, likewise.
const ONNX_MODELS: [&str; 12] = [
    "speeds",
    "chooser",
    "onnx",
    "engine",
    "inputs",
    "reference",
    "terms",
    "signature",
    "model",
    "programs",
    "policy",
    "opened",
];

/// All modules of `trainer`, likewise.
const TRAINER: [&str; 17] = [
    "corpus",
    "configuration",
    "shards",
    "collect",
    "measured",
    "whole_file",
    "compiled",
    "dataset",
    "network",
    "proposals",
    "evaluation",
    "stages",
    "reinforcement",
    "ablation",
    "export",
    "fit_cost",
    "iteration",
];

/// All modules of `cli`, likewise.
const CLI: [&str; 35] = [
    "console",
    "file_names",
    "interrupt",
    "whole_file",
    "output_folder",
    "kernel_file",
    "free_memory",
    "args",
    "gpu",
    "instrument",
    "matrix_source",
    "policy",
    "progress",
    "recordings",
    "software",
    "text",
    "bench",
    "documentation",
    "ending",
    "load",
    "program_words",
    "explanation",
    "summary",
    "verify",
    "eval",
    "feature_table",
    "host",
    "kernel_folder",
    "generate",
    "spy_plot",
    "inspect",
    "logging",
    "setup",
    "winners",
    "tune",
];

#[test]
fn modules_of_core_depend_downwards_only() {
    let uses = check("core", &CORE).unwrap();
    assert!(uses > 100, "only {uses} uses were found");
}

#[test]
fn modules_of_the_statistics_depend_downwards_only() {
    let uses = check_inside("core", &["structure"], &STRUCTURE).unwrap();
    assert!(uses > 25, "only {uses} uses were found");
}

#[test]
fn modules_of_the_syntax_depend_downwards_only() {
    let uses = check_inside("core", &["syntax"], &SYNTAX).unwrap();
    assert!(uses > 20, "only {uses} uses were found");
}

#[test]
fn modules_of_the_layouts_depend_downwards_only() {
    let uses = check_inside("core", &["layout"], &LAYOUT).unwrap();
    assert!(uses > 60, "only {uses} uses were found");
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

#[test]
fn modules_of_onnx_models_depend_downwards_only() {
    let uses = check("onnx-models", &ONNX_MODELS).unwrap();
    assert!(uses > 15, "only {uses} uses were found");
}

#[test]
fn modules_of_the_trainer_depend_downwards_only() {
    let uses = check("trainer", &TRAINER).unwrap();
    assert!(uses > 60, "only {uses} uses were found");
}

#[test]
fn modules_of_the_command_line_depend_downwards_only() {
    let uses = check("cli", &CLI).unwrap();
    assert!(uses > 60, "only {uses} uses were found");
}

#[test]
fn no_modules_use_one_another_in_a_circle() {
    for (folder, least) in [
        ("core", 250),
        ("gpu", 100),
        ("gpu/emulator", 250),
        ("ffi", 60),
        ("onnx-models", 15),
        ("trainer", 120),
        ("cli", 100),
        ("tests", 1),
    ] {
        let uses = check_circles(folder).unwrap();
        assert!(uses >= least, "only {uses} uses were found in {folder}");
    }
}
