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
    ] {
        let run = place.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments}");
    }
}

/// A kernel for CSR whose body is given.
fn cuda(body: &str) -> String {
    format!(
        "// launch: <<<ceil(num_rows / 128), 128>>>\nextern \"C\" __global__ void spmv(const int* row_ptr, \
         const int* col_idx, const float* values, const float* x, float* y, int num_rows) {{\n\
         int row = blockIdx.x * blockDim.x + threadIdx.x;\nif (row >= num_rows) return;\nfloat sum = 0;\n\
         for (int k = row_ptr[row]; k < row_ptr[row + 1]; k++) sum += values[k] * x[col_idx[k]];\n\
         {body}\n}}\n"
    )
}

#[test]
fn candidates_are_judged_without_a_gpu() {
    let place = place();
    for (name, body) in [
        ("right", "y[row] = sum;"),
        ("wrong", "y[row] = 2 * sum;"),
        ("beyond", "y[row + 1] = sum;"),
        (
            "unknown",
            "unsigned t; asm volatile(\"mov.u32 %0, %smid;\" : \"=r\"(t)); y[row] = sum + 0 * t;",
        ),
    ] {
        fs::write(place.path(&format!("c/beam/{name}.cu")), cuda(body)).unwrap();
    }
    let command = format!("eval --emulate --candidates c --matrix {} -k 1", matrix("beam.mtx"));
    let run = place.run(&command);
    println!("{run:#?}");
}
