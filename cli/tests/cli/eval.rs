//! `eval` where there is no GPU: what can be said without one is said first, in one line.

use std::fs;

use crate::support::{NO_DEVICE, PROGRAM, Place, matrix};

/// Candidates in the folder `c`: for two matrices, one that is no program among them.
fn place() -> Place {
    let place = Place::new();
    for name in ["beam", "rmat10"] {
        fs::create_dir_all(place.path("c").join(name)).unwrap();
        fs::write(place.path("c").join(name).join("1.skl"), PROGRAM).unwrap();
    }
    fs::write(place.path("c/beam/2.skl"), "rubbish").unwrap();
    place
}

#[test]
fn without_a_gpu_one_line_says_so() {
    let place = place();
    let (beam, rmat) = (matrix("beam.mtx"), matrix("rmat10.mtx.gz"));
    for rest in [
        format!("--matrix {beam}"),
        format!("--matrix {beam} {rmat}"),
        format!("--matrix {beam} --matrix {rmat} -k 1,3 -o out.json"),
        format!("--matrix {beam} -o out.json --resume --op spmm --cols 4 --dtype f64"),
    ] {
        let error = place.fail(&format!("eval --candidates c {rest} {NO_DEVICE}"));
        assert!(error.contains("no CUDA d"), "{error}");
    }
    assert_eq!(place.names(""), ["c"], "nothing is written");
}

#[test]
fn folders_without_candidates_are_named() {
    let place = place();
    let (beam, pruned) = (matrix("beam.mtx"), matrix("pruned.smtx"));
    fs::create_dir(place.path("empty")).unwrap();
    fs::write(place.path("file"), "").unwrap();
    for (folder, matrices, text) in [
        ("empty", beam.clone(), "empty: holds no candidates, programs (.skl) or CUDA (.cu)"),
        ("none", beam.clone(), "none: No such file"),
        ("file", beam.clone(), "file: is not a folder"),
        ("c", format!("{beam} {pruned}"), "c/pruned: holds no candidates for pruned.smtx"),
        ("c", format!("{beam} {beam}"), &format!("{beam} and {beam} share")),
    ] {
        let error =
            place.fail(&format!("eval --candidates {folder} --matrix {matrices} {NO_DEVICE}"));
        assert!(error.starts_with(&format!("error: {text}")), "{error}");
    }
}

#[test]
fn results_are_not_lost() {
    let place = place();
    let arguments = format!("eval --candidates c --matrix {} {NO_DEVICE}", matrix("beam.mtx"));
    fs::write(place.path("out.json"), "{}").unwrap();
    let error = place.fail(&format!("{arguments} -o out.json"));
    assert!(error.contains("out.json: is there already") && error.contains("--resume"), "{error}");
    let error = place.fail(&format!("{arguments} -o out.json --resume"));
    assert!(error.contains("out.json: is not a results file of eval"), "{error}");
    assert_eq!(place.text("out.json"), "{}");
    for resume in ["", "--resume"] {
        let error = place.fail(&format!("{arguments} -o no/such/out.json {resume}"));
        assert!(error.contains("no/such/out.json: its folder does not exist"), "{error}");
    }
}

#[test]
fn every_matrix_is_read_before_anything_is_opened() {
    let place = place();
    fs::write(place.path("rmat10.mtx"), "%%MatrixMarket rubbish\n").unwrap();
    let matrices = format!("{} rmat10.mtx", matrix("beam.mtx"));
    let error = place.fail(&format!("eval --candidates c --matrix {matrices} {NO_DEVICE}"));
    assert!(error.starts_with("error: rmat10.mtx:1: "), "{error}");
}

#[test]
fn a_wrong_command_line_is_2() {
    let place = place();
    for arguments in [
        "eval",
        "eval --candidates c",
        "eval --matrix a.mtx",
        "eval --candidates c --matrix a.mtx -k 0",
        "eval --candidates c --matrix a.mtx -k 1,x",
        "eval --candidates c --matrix a.mtx --cols 3",
        "eval --candidates c --matrix a.mtx --resume",
        "eval --candidates c --matrix a.mtx --deadline -1",
        "eval --candidates c --matrix a.mtx --emulate --record r",
        "eval --candidates c --matrix a.mtx --emulate --no-baselines",
        "eval --candidates c --matrix a.mtx --seeds 3",
        "eval --candidates c --emulate --matrix -",
    ] {
        let run = place.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments}");
    }
}

/// A kernel for CSR whose end is given.
fn cuda(end: &str) -> String {
    format!(
        "// launch: <<<ceil(num_rows / 128), 128>>>\n\
         extern \"C\" __global__ void spmv(const int* row_ptr, const int* col_idx, const float* values,\n\
                                          const float* x, float* y, int num_rows) {{\n\
         int row = blockIdx.x * blockDim.x + threadIdx.x;\n\
         if (row >= num_rows) return;\n\
         float sum = 0;\n\
         for (int k = row_ptr[row]; k < row_ptr[row + 1]; k++) sum += values[k] * x[col_idx[k]];\n\
         {end}\n}}\n"
    )
}

/// Candidates for `beam`: a program, a file that is none, and CUDA that is right, wrong, out of
/// bounds.
fn emulated() -> Place {
    let place = place();
    fs::remove_dir_all(place.path("c/rmat10")).unwrap();
    for (name, end) in [
        ("right", "y[row] = sum;"),
        ("wrong", "y[row] = 2 * sum;"),
        ("beyond", "y[row + 1] = sum;"),
    ] {
        fs::write(place.path(&format!("c/beam/{name}.cu")), cuda(end)).unwrap();
    }
    place
}

#[test]
fn candidates_are_judged_without_a_gpu() {
    let place = emulated();
    let command = format!("eval --emulate --candidates c --matrix {} -k 1", matrix("beam.mtx"));
    let text = place.succeed(&format!("{command} -o out.json"));
    assert!(text.contains("beam.mtx ┆ 5 ┆ 4, 80.0 %"), "{text}");
    assert!(
        text.contains("2, 40.0 %") && text.contains("Emulated as sm_90, compiled by "),
        "{text}"
    );
    assert!(text.contains("on the whole matrix; no times.") && !text.contains("GFLOPS"), "{text}");

    let document = place.json("out.json");
    let of = |file: &str| {
        let candidates = document["matrices"][0]["candidates"].as_array().unwrap();
        candidates.iter().find(|candidate| candidate["file"] == file).unwrap().clone()
    };
    assert!(of("beam/right.cu")["outcome"]["Verified"]["worst_ratio"].is_number());
    assert_eq!(of("beam/right.cu")["emulated"]["whole"], true);
    assert!(of("beam/1.skl")["outcome"]["Verified"].is_object());
    assert!(of("beam/2.skl")["outcome"]["CompileFailed"].is_object());
    assert!(of("beam/wrong.cu")["outcome"]["WrongResult"].is_object());
    let reason = of("beam/beyond.cu")["outcome"]["Faulted"]["reason"].to_string();
    assert!(reason.contains("out of bounds at beyond.cu:8"), "{reason}");
    assert_eq!(document["emulation"]["seeds"], 2);
    assert_eq!(document["summary"]["all"]["counts"]["right"], 2);

    // The same document on standard output, from the file: nothing is emulated again.
    let again = place.succeed(&format!("{command} -o out.json --resume --json"));
    assert_eq!(again, place.text("out.json"));
    let error = place.fail(&format!("{command} -o out.json --resume --seeds 3"));
    assert!(error.contains("was measured with another protocol"), "{error}");
}

#[test]
fn what_the_emulator_cannot_run_is_no_result_and_is_said() {
    let place = emulated();
    let end = "y[row] = tex1Dfetch<float>(*(cudaTextureObject_t*)y, 0);";
    fs::write(place.path("c/beam/unknown.cu"), cuda(end)).unwrap();
    let run =
        place.run(&format!("eval --emulate --candidates c --matrix {} -k 1", matrix("beam.mtx")));
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    assert!(run.stdout.contains("beam.mtx ┆ 5 ┆ 4, 80.0 %"), "{}", run.stdout);
    let start = "warning: beam/unknown.cu is not among the results: the emulator cannot run the kernel `spmv`: ";
    assert!(run.stderr.starts_with(start), "{}", run.stderr);
    assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
}
