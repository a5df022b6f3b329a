//! `verify` where there is no GPU: what can be said without one is said first, in one line.

use std::fs;

use crate::support::{NO_DEVICE, PROGRAM, Place, matrix};

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("k.skl"), PROGRAM).unwrap();
    place
}

#[test]
fn without_a_gpu_one_line_says_so() {
    let place = place();
    let beam = matrix("beam.mtx");
    for rest in ["", "--json", "--no-baselines --deadline 0.5", "--op spmv --dtype f32"] {
        let error = place.fail(&format!("verify k.skl --matrix {beam} {NO_DEVICE} {rest}"));
        assert!(error.contains("no CUDA d"), "{error}");
    }
    assert_eq!(place.names(""), ["k.skl"], "nothing is written");
}

#[test]
fn a_kernel_that_cannot_be_read_is_named() {
    let place = place();
    let beam = matrix("beam.mtx");
    fs::write(place.path("bad.skl"), "sparserl 3\nspmv f32\nblock 256\nkeep frobnicate").unwrap();
    fs::write(place.path("bad.cu"), "int main() {}").unwrap();
    fs::write(place.path("unsaid.cu"), "__global__ void k(float* x, float* y, int n) {}").unwrap();
    fs::write(place.path("latin.cu"), b"// \xe9\n").unwrap();
    fs::write(place.path("kernel.py"), "").unwrap();
    fs::create_dir(place.path("folder.cu")).unwrap();
    for (kernel, text) in [
        ("missing.skl", "missing.skl: cannot read the file: No such file"),
        ("bad.skl", "bad.skl: line 4: "),
        ("bad.cu", "bad.cu: the source has no kernel"),
        (
            "unsaid.cu",
            "unsaid.cu: it is not known what the parameter `n` is given: declare it, as in",
        ),
        ("latin.cu", "latin.cu: is not UTF-8 text, from byte 3 on"),
        (
            "kernel.py",
            "kernel.py: neither a program (.skl), CUDA (.cu) nor a folder that `gen` wrote",
        ),
        ("folder.cu", "folder.cu: the folder holds no kernel.cu"),
    ] {
        let error = place.fail(&format!("verify {kernel} --matrix {beam} {NO_DEVICE}"));
        assert!(error.starts_with(&format!("error: {text}")), "{error}");
        assert!(error.matches("os error").count() <= 1, "{error}");
    }
}

#[test]
fn a_program_for_another_task_is_refused() {
    let place = place();
    for (asked, name) in [
        ("--dtype f64", "spmv f64"),
        ("--op spmm --cols 8", "spmm 8 f32"),
        ("--op spmm --cols 8 --dtype f64", "spmm 8 f64"),
    ] {
        let beam = matrix("beam.mtx");
        let error = place.fail(&format!("verify k.skl --matrix {beam} {asked} {NO_DEVICE}"));
        let text = format!("k.skl: the program is for spmv f32, not for {name}; leave out --op");
        assert!(error.contains(&text), "{error}");
    }
}

#[test]
fn the_cuda_that_gen_wrote_is_read_back() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    place.succeed(&format!("gen {beam} --no-compile --op spmm --cols 8 -o out"));
    for kernel in ["kernel.cu", "program.skl"] {
        let error = place.fail(&format!("verify out/{kernel} --matrix {beam} {NO_DEVICE}"));
        assert!(error.contains("no CUDA d"), "{error}");
        let rest = format!("--op spmv --matrix {beam} {NO_DEVICE}");
        let error = place.fail(&format!("verify out/{kernel} {rest}"));
        assert!(error.contains("is for spmm 8 f32, not for spmv f32"), "{error}");
    }
}

#[test]
fn a_matrix_that_cannot_be_read_is_named() {
    let place = place();
    fs::write(place.path("a.mtx"), "%%MatrixMarket rubbish\n").unwrap();
    let error = place.fail(&format!("verify k.skl --matrix a.mtx {NO_DEVICE}"));
    assert!(error.starts_with("error: a.mtx:1: "), "{error}");
    let error = place.fail(&format!("verify k.skl --matrix none.mtx {NO_DEVICE}"));
    assert!(error.starts_with("error: none.mtx: cannot read the file"), "{error}");
}

#[test]
fn a_wrong_command_line_is_2() {
    let place = place();
    for arguments in [
        "verify",
        "verify k.skl",
        "verify k.skl --matrix a.mtx --cols 3",
        "verify k.skl --matrix a.mtx --op spmm",
        "verify k.skl --matrix a.mtx --deadline 0",
        "verify k.skl --matrix a.mtx --deadline never",
        "verify k.skl --matrix a.mtx --device first",
    ] {
        let run = place.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments}");
    }
}
