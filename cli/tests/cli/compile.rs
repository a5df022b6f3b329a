//! Machine code: written where NVRTC is found, and not missed where it is not.

use std::fs;

use serde_json::Value;
use sparserl_gpu::compile::nvrtc::{Compilers, Nvrtc};

use crate::support::{Place, Run, matrix, run};

fn without_nvrtc(place: &Place, arguments: &str) -> Run {
    run(&mut place.command_without_nvrtc(arguments))
}

/// Whether the machine has an NVRTC installed, which no variable can hide from the program.
fn is_installed() -> bool {
    ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"].iter().any(|name| Nvrtc::open(name).is_ok())
        || Compilers::discover_in(["/usr/local/cuda/lib64".into()]).is_ok()
}

#[test]
fn without_nvrtc_the_rest_is_written_and_one_line_says_how_to_get_it() {
    let place = Place::new();
    let run = without_nvrtc(&place, &format!("gen {} -o out", matrix("beam.mtx")));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    if is_installed() {
        assert!(place.path("out/kernel.cubin").exists());
        return;
    }
    assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
    assert!(run.stderr.starts_with("note: not compiled: "), "{}", run.stderr);
    for word in ["pip install", "SPARSERL_NVRTC"] {
        assert!(run.stderr.contains(word), "{}", run.stderr);
    }
    assert_eq!(place.names("out"), ["kernel.cu", "plan.json", "program.skl"]);
    assert_eq!(place.json("out/plan.json")["machine_code"], Value::Null);

    let run = without_nvrtc(&place, &format!("gen {} -o out --json", matrix("beam.mtx")));
    let summary: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(summary["notes"][0].as_str().unwrap().contains("pip install"));
}

#[test]
fn a_program_that_is_run_directly_finds_the_compilers_of_its_workspace() {
    let place = Place::new();
    let mut command = place.command(&format!("gen {} -o out", matrix("beam.mtx")));
    let run = run(command.env_remove("SPARSERL_NVRTC").env_remove("VIRTUAL_ENV"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(place.path("out/kernel.cubin").exists());
}

#[test]
fn a_library_that_cannot_be_used_is_named() {
    let place = Place::new();
    fs::create_dir(place.path("nothing")).unwrap();
    fs::write(place.path("nothing/libnvrtc.so.12"), "no library").unwrap();
    let run = without_nvrtc(&place, &format!("gen {} -o out", matrix("beam.mtx")));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    if !is_installed() {
        assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
        assert!(run.stderr.contains("nothing/libnvrtc.so.12"), "{}", run.stderr);
    }
}

#[test]
fn no_compile_does_not_look_for_nvrtc() {
    let place = Place::new();
    let run = without_nvrtc(&place, &format!("gen {} --no-compile -o out", matrix("beam.mtx")));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(place.names("out"), ["kernel.cu", "plan.json", "program.skl"]);
}

/// The architectures of the compilers at hand.
fn architectures() -> Vec<String> {
    let workspace = concat!(env!("CARGO_MANIFEST_DIR"), "/../.nvrtc");
    let compilers = Compilers::discover_in([workspace.into()])
        .expect("these tests need NVRTC: run tests/install-nvrtc.sh first");
    let known = compilers.all().iter().flat_map(Nvrtc::architectures);
    let mut names: Vec<String> = known.map(ToString::to_string).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn with_nvrtc_the_cubin_is_an_elf_file() {
    let place = Place::new();
    for arch in architectures() {
        let arguments = format!("gen {} --arch {arch} -o {arch}", matrix("rmat10.mtx.gz"));
        let summary = place.succeed(&arguments);
        assert!(summary.contains(&format!("compiled   {arch} by NVRTC ")), "{summary}");
        let cubin = fs::read(place.path(&format!("{arch}/kernel.cubin"))).unwrap();
        assert!(cubin.starts_with(b"\x7fELF"));
        let code = &place.json(&format!("{arch}/plan.json"))["machine_code"];
        assert_eq!(code["architecture"], arch);
        assert!(code["registers"].as_u64().unwrap() > 0);
    }
}

#[test]
fn every_candidate_is_compiled() {
    let place = Place::new();
    let task = "--op spmm --cols 32 --dtype f64 --candidates 3 -o out";
    place.succeed(&format!("gen {} {task}", matrix("poisson2d.mtx")));
    for folder in ["out/1", "out/2", "out/3"] {
        assert!(fs::read(place.path(folder).join("kernel.cubin")).unwrap().starts_with(b"\x7fELF"));
    }
}
