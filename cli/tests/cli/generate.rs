//! `gen` on the committed matrices: the folder is complete and its files agree with each other.

use std::fs;

use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use sparserl_core::language::Program;
use sparserl_core::matrix::{Duplicates, file};

use crate::support::{MATRICES, Place, matrix, run};

/// Arguments and how the default folder's name ends.
const TASKS: [(&str, &str); 9] = [
    ("--dtype f32", "spmv.f32"),
    ("--dtype f64", "spmv.f64"),
    ("--dtype f32/f64/f64", "spmv.f32-f64-f64"),
    ("--op spmm --cols 8 --dtype f32", "spmm8.f32"),
    ("--op spmm --cols 8 --dtype f64", "spmm8.f64"),
    ("--op spmm --cols 32 --dtype f32", "spmm32.f32"),
    ("--op spmm --cols 32 --dtype f64", "spmm32.f64"),
    ("--dtype f16", "spmv.f16"),
    ("--op spmm --cols 8 --dtype bf16", "spmm8.bf16"),
];

#[test]
fn every_matrix_and_task_gives_a_complete_folder() {
    let place = Place::new();
    for name in MATRICES {
        for (arguments, ending) in TASKS {
            let gen_arguments = format!("gen {} {arguments} --no-compile", matrix(name));
            let summary = place.succeed(&gen_arguments);
            let folder = format!("{}.{ending}", name.split('.').next().unwrap());
            assert!(summary.contains(&format!("{folder}/")), "{summary}");
            assert_eq!(
                place.names(&folder),
                [
                    "Makefile",
                    "expected.txt",
                    "kernel.cu",
                    "packed.safetensors",
                    "plan.json",
                    "program.skl",
                    "run.cpp",
                    "run.py"
                ]
            );
            check_plan(&place, &folder, name);
            check_program(&place, &folder);
            check_arguments(&place, &folder);
            check_packed(&place, &folder);
        }
    }
    assert_eq!(place.names("").len(), MATRICES.len() * TASKS.len(), "nothing else is written");
}

fn check_plan(place: &Place, folder: &str, name: &str) {
    let plan = place.json(&format!("{folder}/plan.json"));
    let matrix = file::load::<f64>(matrix(name).as_ref(), Duplicates::Refuse).unwrap();
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    assert_eq!(plan["format"], "sparserl plan 2");
    assert_eq!(plan["policy"]["name"], "learned");
    assert_eq!(plan["matrix"]["file"], name);
    assert_eq!(number(&plan["matrix"]["rows"]), matrix.rows());
    assert_eq!(number(&plan["matrix"]["cols"]), matrix.cols());
    assert_eq!(number(&plan["matrix"]["nnz"]), matrix.nnz());
    assert_eq!(plan["matrix"]["blake3"].as_str().unwrap().len(), 64);
    let parts = plan["parts"].as_array().unwrap();
    assert_eq!(parts.iter().map(|part| number(&part["nnz"])).sum::<usize>(), matrix.nnz());
    assert_eq!(parts.iter().map(|part| number(&part["rows"])).sum::<usize>(), matrix.rows());
    let blocks: usize = parts.iter().map(|part| number(&part["blocks"])).sum();
    assert_eq!(number(&plan["launch"]["grid"]), blocks.max(1));
    let columns = plan["task"]["columns"].as_u64().unwrap_or(1) as usize;
    assert_eq!(number(&plan["predicted"]["flops"]), 2 * matrix.nnz() * columns);
    let files: Vec<_> = plan["files"].as_array().unwrap().iter().map(|f| f.as_str()).collect();
    assert_eq!(files.len(), place.names(folder).len());
    assert_eq!(plan["machine_code"], Value::Null);
}

fn check_program(place: &Place, folder: &str) {
    let text = place.text(&format!("{folder}/program.skl"));
    let program = Program::parse(&text).unwrap();
    assert_eq!(program.to_string(), text);
    let plan = place.json(&format!("{folder}/plan.json"));
    let task = program.task.to_string();
    assert!(task.starts_with(plan["task"]["operation"].as_str().unwrap()), "{task}");
    let (task, is_free) = match task.strip_suffix(" variable") {
        Some(task) => (task, true),
        None => (task.as_str(), false),
    };
    // These files have no values.
    let is_pattern = ["pruned.", "rmat10."].iter().any(|start| folder.starts_with(start));
    assert_eq!(is_free, is_pattern, "{folder}");
    assert!(task.ends_with(plan["task"]["dtype"].as_str().unwrap()), "{task}");
    assert_eq!(plan["launch"]["block"], program.block.threads());
}

/// The kernel's parameters are the plan's arguments, in name, order and type.
fn check_arguments(place: &Place, folder: &str) {
    let plan = place.json(&format!("{folder}/plan.json"));
    let source = place.text(&format!("{folder}/kernel.cu"));
    let kernel = plan["kernel"]["name"].as_str().unwrap();
    let (_, rest) = source.split_once(&format!(" {kernel}(\n")).expect("the kernel");
    let (parameters, _) = rest.split_once(") {").unwrap();
    let parameters: Vec<&str> = parameters.split(',').map(str::trim).collect();
    let arguments = plan["arguments"].as_array().unwrap();
    assert_eq!(parameters.len(), arguments.len(), "{parameters:?}");
    for (parameter, argument) in parameters.iter().zip(arguments) {
        let text = |key: &str| argument[key].as_str().unwrap();
        let (cuda, size) = match text("dtype") {
            "f32" => ("float", 4),
            "f64" => ("double", 8),
            "f16" => ("f16", 2),
            "bf16" => ("bf16", 2),
            "i32" => ("int", 4),
            "u8" => ("u8", 1),
            "u16" => ("u16", 2),
            "u32" => ("u32", 4),
            "u64" => ("u64", 8),
            other => unreachable!("{other}"),
        };
        let expected = match text("kind") {
            "alpha" | "beta" | "size" => format!("{cuda} {}", text("name")),
            "input" | "matrix" => format!("const {cuda}* {}", text("name")),
            "output" => format!("{cuda}* __restrict__ {}", text("name")),
            "workspace" => format!("{cuda}* {}", text("name")),
            other => unreachable!("{other}"),
        };
        assert_eq!(*parameter, expected, "{folder}");
        let length = argument["length"].as_u64().unwrap();
        assert_eq!(argument["bytes"].as_u64().unwrap(), size * length, "{expected}");
        let shape: Vec<u64> =
            argument["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        assert_eq!(shape.iter().product::<u64>(), length, "{expected}");
        let is_value = matches!(text("kind"), "alpha" | "beta" | "size");
        assert_eq!(argument.get("value").is_some(), text("kind") == "size");
        assert!(!text("meaning").is_empty());
        assert_eq!(text("passed"), if is_value { "value" } else { "pointer" });
        assert_eq!(argument.get("initial").is_some(), text("kind") == "workspace");
        let columns = plan["task"]["columns"].as_u64();
        let dense = matches!(text("kind"), "input" | "output");
        let wide = columns.is_some() && (dense || text("kind") == "workspace");
        let vectors = ["// Arrays of A must be aligned", "// All arrays must be aligned"];
        let vectors = vectors.iter().any(|line| source.contains(line));
        let wide = wide || (vectors && text("kind") == "matrix");
        assert_eq!(argument["alignment"], if wide { 16 } else { size }, "{expected}");
        if dense {
            let rows = &plan["matrix"][if text("kind") == "input" { "cols" } else { "rows" }];
            let rows = rows.as_u64().unwrap();
            assert_eq!(shape, columns.map_or(vec![rows], |columns| vec![rows, columns]));
        }
    }
    let workspace = arguments.iter().filter(|a| a["kind"] == "workspace");
    let workspace: u64 = workspace.map(|a| a["bytes"].as_u64().unwrap()).sum();
    let expected = serde_json::json!({"bytes": workspace, "zeroed": true, "exclusive": true});
    assert_eq!(plan["workspace"], if workspace > 0 { expected } else { Value::Null });
    assert_eq!(plan["order"], "row-major");
    assert_eq!(plan["launch"]["dynamic_shared"], 0);
    let declared = source
        .split_once("unsigned char scratch[")
        .map_or("0", |(_, rest)| rest.split_once(']').unwrap().0);
    assert_eq!(plan["launch"]["static_shared"].to_string(), declared);
}

/// The arrays are the plan's, under the same names.
fn check_packed(place: &Place, folder: &str) {
    let plan = place.json(&format!("{folder}/plan.json"));
    let bytes = fs::read(place.path(&format!("{folder}/packed.safetensors"))).unwrap();
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let workspace = &metadata.metadata().as_ref().unwrap()["workspace"];
    let workspace: Vec<String> = serde_json::from_str(workspace).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let arguments = plan["arguments"].as_array().unwrap();
    let arrays: Vec<&Value> =
        arguments.iter().filter(|a| a["kind"] == "matrix" || a["kind"] == "workspace").collect();
    assert_eq!(tensors.len(), arrays.len());
    for array in arrays {
        let name = array["name"].as_str().unwrap();
        let tensor = tensors.tensor(name).unwrap();
        assert_eq!(tensor.shape(), [array["length"].as_u64().unwrap() as usize]);
        assert_eq!(tensor.data().len() as u64, array["bytes"].as_u64().unwrap());
        let dtype = match array["dtype"].as_str().unwrap() {
            "u8" => Dtype::U8,
            "u16" => Dtype::U16,
            "u32" => Dtype::U32,
            "u64" => Dtype::U64,
            "i32" => Dtype::I32,
            "f32" => Dtype::F32,
            "f64" => Dtype::F64,
            "f16" => Dtype::F16,
            "bf16" => Dtype::BF16,
            other => unreachable!("{other}"),
        };
        assert_eq!(tensor.dtype(), dtype, "{name}");
        assert_eq!(workspace.iter().any(|w| w == name), array["kind"] == "workspace", "{name}");
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let place = Place::new();
    // However many threads there are.
    for (output, threads) in [("a", ""), ("b", "--threads 1")] {
        let task = format!("--op spmm --cols 8 --packed --no-compile --candidates 2 {threads}");
        place.succeed(&format!("gen {} {task} -o {output}", matrix("rmat10.mtx.gz")));
    }
    for folder in ["1", "2"] {
        for name in place.names(&format!("a/{folder}")) {
            let read = |output| fs::read(place.path(&format!("{output}/{folder}/{name}"))).unwrap();
            assert!(read("a") == read("b"), "{folder}/{name}");
        }
    }
    assert_eq!(place.text("a/candidates.json"), place.text("b/candidates.json"));
}

#[test]
fn candidates_are_ranked_and_differ() {
    let place = Place::new();
    place.succeed(&format!("gen {} --candidates 6 --no-compile --no-packed", matrix("beam.mtx")));
    let folder = "beam.spmv.f32";
    assert_eq!(place.names(folder), ["1", "2", "3", "4", "5", "6", "candidates.json"]);
    let list = place.json(&format!("{folder}/candidates.json"));
    let list = list["candidates"].as_array().unwrap();
    let mut programs = Vec::new();
    for (entry, rank) in list.iter().zip(1..) {
        let subfolder = format!("{folder}/{rank}");
        assert_eq!(entry["folder"], rank.to_string());
        assert_eq!(place.names(&subfolder), ["kernel.cu", "plan.json", "program.skl"]);
        let program = place.text(&format!("{subfolder}/program.skl"));
        assert_eq!(entry["program"], program);
        check_program(&place, &subfolder);
        check_arguments(&place, &subfolder);
        programs.push(program);
    }
    let score = |entry: &Value| entry["score"].as_f64().unwrap();
    assert!(list.is_sorted_by(|a, b| score(a) >= score(b)));
    programs.sort();
    programs.dedup();
    assert_eq!(programs.len(), 6);
}

#[test]
fn a_new_run_replaces_the_old_whatever_it_was() {
    let place = Place::new();
    let gen_beam = format!("gen {} --no-compile --no-packed -o out", matrix("beam.mtx"));
    place.succeed(&format!("{gen_beam} --candidates 2"));
    place.succeed(&gen_beam);
    assert_eq!(place.names("out"), ["kernel.cu", "plan.json", "program.skl"]);
    place.succeed(&format!("{gen_beam} --candidates 2"));
    assert_eq!(place.names("out"), ["1", "2", "candidates.json"]);
    assert_eq!(place.names(""), ["out"]);
}

#[test]
fn json_is_the_only_output() {
    let place = Place::new();
    let arguments = format!("gen {} --no-compile --json --candidates 2", matrix("beam.mtx"));
    let summary: Value = serde_json::from_str(&place.succeed(&arguments)).unwrap();
    assert_eq!(summary["output"], "beam.spmv.f32");
    assert_eq!(summary["matrix"]["nnz"], 10404);
    let kernels = summary["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 2);
    for (kernel, rank) in kernels.iter().zip(1..) {
        assert_eq!(kernel["folder"], format!("beam.spmv.f32/{rank}"));
        assert!(kernel["pack_seconds"].as_f64().unwrap() > 0.0);
        assert!(kernel["predicted"]["matrix_bytes"].as_u64().unwrap() > 0);
        assert!(Program::parse(kernel["program"].as_str().unwrap()).is_ok());
    }
}

#[test]
fn quiet_says_nothing() {
    let place = Place::new();
    assert_eq!(place.succeed(&format!("gen {} --no-compile -q", matrix("beam.mtx"))), "");
    assert_eq!(place.names(""), ["beam.spmv.f32"]);
}

#[test]
fn a_gpu_is_missed_only_where_one_was_asked_for() {
    let place = Place::new();
    for (arguments, missed) in [("", false), ("--budget 2", true), ("--device 0", true)] {
        let arguments = format!("gen {} {arguments}", matrix("beam.mtx"));
        // Where there are GPUs, none is seen.
        let run = run(place.command(&arguments).env("CUDA_VISIBLE_DEVICES", ""));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let notes = run.stderr.matches("note: not measured: no CUDA d").count();
        assert_eq!(notes, usize::from(missed), "{}", run.stderr);
    }
}

#[test]
fn matrices_at_the_limits_get_kernels_too() {
    let place = Place::new();
    let files = [
        ("none", "0 0 0\n"),
        ("no-rows", "0 5 0\n"),
        ("no-columns", "5 0 0\n"),
        ("empty", "7 9 0\n"),
        ("one", "1 1 1\n1 1 2.5\n"),
        ("corner", "100 300 1\n100 300 -1\n"),
    ];
    for (name, text) in files {
        let text = format!("%%MatrixMarket matrix coordinate real general\n{text}");
        fs::write(place.path(&format!("{name}.mtx")), text).unwrap();
        for task in ["", "--op spmm --cols 3 --dtype f64"] {
            place.succeed(&format!("gen {name}.mtx {task} --no-compile --packed -o out"));
            check_arguments(&place, "out");
            check_packed(&place, "out");
        }
    }
}

#[test]
fn duplicates_are_summed_or_refused() {
    let place = Place::new();
    let text = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n1 1 2\n";
    fs::write(place.path("twice.mtx"), text).unwrap();
    for command in ["gen twice.mtx --no-compile", "inspect twice.mtx"] {
        let run = place.run(command);
        let note = "note: 1 duplicate entry was summed; --duplicates refuse rejects them\n";
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), note));
    }
    assert_eq!(place.json("twice.spmv.f32/plan.json")["matrix"]["nnz"], 1);
    let error = place.fail("gen twice.mtx --no-compile --duplicates refuse -o refused");
    assert!(error.contains("twice.mtx:4: "), "{error}");
    assert!(!place.path("refused").exists());
}

#[test]
fn matrices_come_from_standard_input_archives_and_families() {
    let place = Place::new();
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/files");
    let archive = format!("{files}/stencil.tar.gz");
    let run_gen = |arguments: &str, input: Option<&str>| {
        let mut command = place.command(&format!("gen {arguments} --no-compile"));
        if let Some(input) = input {
            command.stdin(fs::File::open(input).unwrap());
        }
        let run = run(&mut command);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stderr
    };
    let note = "note: read stencil/stencil.mtx, not stencil/stencil_b.mtx; --member chooses\n";
    assert_eq!(run_gen(&archive, None), note);
    assert_eq!(run_gen("-", Some(&archive)), note);
    assert_eq!(run_gen("stencil5:2x2", None), "");
    let rows = |folder: &str| place.json(&format!("{folder}/plan.json"))["matrix"].clone();
    let blake3 = rows("stencil.spmv.f32")["blake3"].clone();
    assert_eq!(rows("stdin.spmv.f32")["blake3"], blake3);
    assert_eq!(rows("stencil5-2x2.spmv.f32")["blake3"], blake3);
    let error = place.fail("gen stencil5:2");
    assert!(error.starts_with("error: stencil5:2: expected stencil5:NXxNY"), "{error}");
}

#[test]
fn what_is_assumed_of_values_is_said() {
    let place = Place::new();
    let text = |field: &str, value: &str| {
        format!("%%MatrixMarket matrix coordinate {field} general\n2 2 2\n1 1{value}\n2 1{value}\n")
    };
    fs::write(place.path("p.mtx"), text("pattern", "")).unwrap();
    fs::write(place.path("r.mtx"), text("real", " 2.5")).unwrap();
    for (arguments, says, variable) in [
        ("p.mtx", "none in the file: free, packed as 1; --values fixed ", true),
        ("p.mtx --values fixed --policy cost", "all 1, for the file has none", false),
        ("r.mtx --policy cost", "", false),
        ("r.mtx --values variable", "free: the kernel depends on the pattern only", true),
    ] {
        let summary = place.succeed(&format!("gen {arguments} --no-compile -o out"));
        assert!(summary.contains(&format!("\nvalues     {says}")), "{arguments}: {summary}");
        let program = place.text("out/program.skl");
        assert_eq!(program.contains(" variable"), variable, "{program}");
    }
    let json = place.succeed("gen p.mtx --no-compile -o out --json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["values"], serde_json::json!({"from_file": false, "stored": "free"}));
}
