//! Machine code: written where NVRTC is found, and not missed where it is not.

use std::fs;
use std::os::unix::fs::PermissionsExt;

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
fn without_nvrtc_the_rest_is_written_and_it_is_said_loudly() {
    let place = Place::new();
    if is_installed() {
        return;
    }
    // What nobody compiled or checked is said even where nothing but errors is to be printed.
    for quiet in ["", "-q"] {
        let arguments = format!("gen {} --no-packed -o out {quiet}", matrix("beam.mtx"));
        let run = without_nvrtc(&place, &arguments);
        assert_eq!(run.code, Some(3), "{}", run.stderr);
        assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
        let start = "warning: not compiled and not checked: ";
        assert!(run.stderr.starts_with(start), "{}", run.stderr);
        for word in ["sparserl-cli setup", "pip install", "SPARSERL_NVRTC"] {
            assert!(run.stderr.contains(word), "{}", run.stderr);
        }
    }
    assert_eq!(place.names("out"), ["kernel.cu", "plan.json", "program.skl"]);
    assert_eq!(place.json("out/plan.json")["machine_code"], Value::Null);

    let run = without_nvrtc(&place, &format!("gen {} -o out --json", matrix("beam.mtx")));
    let summary: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(run.code, Some(3));
    assert!(summary["warnings"][0].as_str().unwrap().contains("pip install"));
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
    if !is_installed() {
        assert_eq!(run.code, Some(3), "{}", run.stderr);
        assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
        assert!(run.stderr.contains("nothing/libnvrtc.so.12"), "{}", run.stderr);
    }
}

#[test]
fn no_compile_does_not_look_for_nvrtc() {
    let place = Place::new();
    let run = without_nvrtc(
        &place,
        &format!("gen {} --no-compile --no-packed -o out", matrix("beam.mtx")),
    );
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

/// Links the libraries of an installed compiler into a folder below the place.
fn install(place: &Place, folder: &str) {
    let compilers = concat!(env!("CARGO_MANIFEST_DIR"), "/../.nvrtc/12");
    fs::create_dir_all(place.path(folder)).unwrap();
    for library in fs::read_dir(compilers).unwrap() {
        let library = library.unwrap();
        let link = place.path(folder).join(library.file_name());
        std::os::unix::fs::symlink(library.path().canonicalize().unwrap(), link).unwrap();
    }
}

#[test]
fn compilers_are_found_where_they_are_usually_installed() {
    // Where it is, and the variable that leads there.
    for (folder, variable, value) in [
        ("env/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib", "VIRTUAL_ENV", "env"),
        ("conda/lib", "CONDA_PREFIX", "conda"),
        ("toolkit/lib64", "CUDA_HOME", "toolkit"),
        ("toolkit/targets/x86_64-linux/lib", "CUDA_PATH", "toolkit"),
        ("data/sparserl/nvrtc/12", "XDG_DATA_HOME", "data"),
        ("packages/nvidia/cuda_nvrtc/lib", "PYTHONPATH", "packages"),
    ] {
        let place = Place::new();
        install(&place, folder);
        let arguments = format!("gen {} --no-check -o out", matrix("beam.mtx"));
        let mut command = place.command_without_nvrtc(&arguments);
        match variable {
            // Only without the variable are the user's data looked at; then those of the workspace
            // of this program, too, which lie nearer.
            "XDG_DATA_HOME" => {
                let program = place.path("sparserl-cli");
                fs::copy(env!("CARGO_BIN_EXE_sparserl-cli"), &program).unwrap();
                command = std::process::Command::new(program);
                command.current_dir(place.path("")).args(arguments.split_whitespace());
                command.env_remove("SPARSERL_NVRTC").env_remove("VIRTUAL_ENV");
                command.env("SPARSERL_CACHE_DIR", place.path("cache"));
            }
            "PYTHONPATH" => {
                command.env("PATH", std::env::var_os("PATH").unwrap());
            }
            _ => {}
        }
        let run = run(command.env(variable, place.path(value)));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{variable}");
        assert!(run.stdout.contains("compiled   sm_90 by NVRTC "), "{variable}: {}", run.stdout);
    }
}

#[test]
fn setup_installs_nothing_but_the_expected_wheel_and_says_what_to_do_without_a_network() {
    let place = Place::new();
    let setup = |arguments: &str| {
        let mut command = place.command_without_nvrtc(&format!("setup {arguments}"));
        run(command.env("XDG_DATA_HOME", place.path("data")))
    };
    fs::write(place.path("other.whl"), "a wheel of somebody else").unwrap();
    let other = setup("--wheel other.whl");
    assert_eq!((other.code, other.stdout.as_str()), (Some(3), ""));
    let start = "error: other.whl: is not the expected wheel: its SHA-256 is ";
    assert!(other.stderr.starts_with(start), "{}", other.stderr);
    assert!(setup("--wheel missing.whl").stderr.starts_with("error: missing.whl: cannot read: "));

    // There is no Python to fetch it with.
    let fetched = setup("-q");
    assert_eq!((fetched.code, fetched.stderr.lines().count()), (Some(3), 1), "{}", fetched.stderr);
    for words in ["cannot fetch nvidia-cuda-nvrtc-cu12 ", "python3-pip", "setup --wheel FILE.whl"] {
        assert!(fetched.stderr.contains(words), "{}", fetched.stderr);
    }
    // There is one without pip.
    let python = place.path("python3");
    fs::write(&python, "#!/bin/sh\necho /usr/bin/python3: No module named pip >&2\nexit 1\n")
        .unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = place.command_without_nvrtc("setup -q");
    command.env("XDG_DATA_HOME", place.path("data")).env("PATH", place.path(""));
    let without_pip = run(&mut command).stderr;
    assert!(without_pip.contains("No module named pip; install python3 with pip"), "{without_pip}");
    assert!(!place.path("data").exists(), "nothing is left");
}

#[test]
fn setup_says_what_is_there_already() {
    let place = Place::new();
    let folder = place.path("data/sparserl/nvrtc/12");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("version"), "12.9.86\n").unwrap();
    let setup = |arguments: &str| {
        let mut command = place.command_without_nvrtc(&format!("setup {arguments}"));
        let run = run(command.env("XDG_DATA_HOME", place.path("data")));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        run.stdout
    };
    assert_eq!(setup(""), format!("NVRTC 12.9.86 is in {} already\n", folder.display()));
    assert_eq!(setup("-q"), "");
    let document: Value = serde_json::from_str(&setup("--json")).unwrap();
    let expected = serde_json::json!({ "nvrtc": "12.9.86", "folder": folder, "new": false });
    assert_eq!(document, expected);
}
