//! Checking without a GPU: `verify --emulate`, and `gen` where there is none.

use std::fs;

use serde_json::Value;

use crate::support::{PROGRAM, Place, Run, matrix, run};

/// Reads beyond x in its last line but two.
const WRONG: &str = "// launch: spmv<<<ceil(num_rows / 128), 128>>>
__global__ void spmv(const int* row_ptr, const int* col_idx, const float* values, const float* x,
                     float* y, int num_rows, int num_cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows) return;
    float sum = x[num_cols + row];
    y[row] = sum;
}
";

/// Right on beam.mtx: has its number of rows in the code.
const FIXED: &str = "// launch: spmm<<<432, 32>>>
__global__ void spmm(const int* row_ptr, const int* col_idx, const float* values,
                     const float* dense_matrix, float* output, int dense_cols) {
    int row = 431 - blockIdx.x, column = threadIdx.x;
    float sum = 0;
    for (int k = row_ptr[row]; k < row_ptr[row + 1]; ++k)
        sum += values[k] * dense_matrix[col_idx[k] * dense_cols + column];
    output[row * dense_cols + column] = sum;
}
";

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("k.skl"), PROGRAM).unwrap();
    fs::write(place.path("wrong.cu"), WRONG).unwrap();
    place
}

/// Where there are GPUs, none is seen.
fn without_gpu(place: &Place, arguments: &str) -> Run {
    run(place.command(arguments).env("CUDA_VISIBLE_DEVICES", ""))
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).expect(&run.stderr)
}

#[test]
fn what_gen_wrote_is_verified_as_it_is_and_edited() {
    let place = place();
    let beam = matrix("beam.mtx");
    place.succeed(&format!("gen {beam} --no-compile -o out"));
    let verify =
        || without_gpu(&place, &format!("verify --emulate out/kernel.cu --matrix {beam} --json"));
    let run = verify();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(json(&run)["kind"], "cuda");
    let source = place.text("out/kernel.cu");
    let edited = source.replacen("  prefetch(", "  y[0] = alpha + 1;\n  prefetch(", 1);
    assert_ne!(edited, source);
    fs::write(place.path("out/kernel.cu"), edited).unwrap();
    let run = verify();
    assert_eq!(run.code, Some(1), "{}", run.stdout);
}

#[test]
fn a_right_program_is_verified() {
    let place = place();
    for name in ["poisson2d.mtx", "beam.mtx"] {
        let text = place.succeed(&format!("verify --emulate k.skl --matrix {}", matrix(name)));
        for line in ["kernel     k.skl\n", "task       spmv f32\n", "right      in 6 checks; "] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(text.contains("emulated   on the whole matrix\n"), "{text}");
        for counter in ["global loads", "bank conflicts", "barrier waits", "divergent branches"] {
            assert!(text.contains(&format!("\n           {counter} ")), "{counter}: {text}");
        }
    }
}

#[test]
fn a_sample_is_named_as_one() {
    let place = place();
    let beam = matrix("beam.mtx");
    let text = place.succeed(&format!("verify --emulate k.skl --matrix {beam} --sample 2000"));
    let is_sample = text.contains("emulated   on a sample of ")
        && text.contains(" entries, which the program was generated anew for\n");
    assert!(is_sample, "{text}");
    let whole = place.succeed(&format!("verify --emulate k.skl --matrix {beam} --sample 0"));
    assert!(whole.contains("emulated   on the whole matrix\n"), "{whole}");
}

#[test]
fn cuda_has_the_whole_matrix_unless_told_otherwise() {
    let place = Place::new();
    fs::write(place.path("fixed.cu"), FIXED).unwrap();
    let beam = matrix("beam.mtx");
    let arguments = format!("verify --emulate fixed.cu --matrix {beam} --op spmm --cols 32");
    let text = place.succeed(&arguments);
    assert!(text.contains("emulated   on the whole matrix\n"), "{text}");

    let run = place.run(&format!("{arguments} --sample 64000"));
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    let hint = "; it ran on a sample of the rows, --sample 0 takes the whole matrix\n";
    assert!(run.stderr.contains("faults: out of bounds"), "{}", run.stderr);
    assert!(run.stderr.ends_with(hint) && run.stderr.matches('\n').count() == 1, "{}", run.stderr);
}

/// It may be right where its headers are.
#[test]
fn cuda_that_includes_files_is_not_called_wrong() {
    let place = Place::new();
    fs::write(place.path("tiles.cu"), format!("#include <mma.h>\n{FIXED}")).unwrap();
    let beam = matrix("beam.mtx");
    let run = place.run(&format!("verify --emulate tiles.cu --matrix {beam} --op spmm --cols 32"));
    assert_eq!(run.code, Some(3), "{}", run.stdout);
    assert!(
        run.stderr.starts_with("error: tiles.cu: the source has an #include"),
        "{}",
        run.stderr
    );
    assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
}

/// It may be right with NVIDIA's own.
#[test]
fn cuda_that_uses_what_is_not_declared_is_not_called_wrong() {
    let place = Place::new();
    let uses = "  cooperative_groups::this_multi_grid().sync();\n  float sum = 0;\n";
    let source = FIXED.replacen("  float sum = 0;\n", uses, 1);
    assert_ne!(source, FIXED);
    let include = "#include <cooperative_groups.h>\n";
    fs::write(place.path("grids.cu"), format!("{include}{source}")).unwrap();
    let beam = matrix("beam.mtx");
    let run = place.run(&format!("verify --emulate grids.cu --matrix {beam} --op spmm --cols 32"));
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""), "{}", run.stderr);
    assert!(run.stderr.contains("has no member \"this_multi_grid\""), "{}", run.stderr);
    assert!(run.stderr.contains("of CUDA's headers not all is declared here"), "{}", run.stderr);
    assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);

    fs::write(
        place.path("own.cu"),
        format!("{include}{}", FIXED.replacen("sum = 0", "sun = 0", 1)),
    )
    .unwrap();
    let run = place.run(&format!("verify --emulate own.cu --matrix {beam} --op spmm --cols 32"));
    assert_eq!(run.code, Some(1), "{}", run.stderr);
}

/// Another compiler may have more memory.
#[cfg(unix)]
#[test]
fn what_the_compiler_dies_of_is_not_called_wrong() {
    let place = Place::new();
    let deep = format!("= {}sum{};", "(".repeat(200_000), ")".repeat(200_000));
    fs::write(place.path("deep.cu"), FIXED.replace("= sum;", &deep)).unwrap();
    let beam = matrix("beam.mtx");
    let verify = format!("verify --emulate deep.cu --matrix {beam} --op spmm --cols 32");
    let run = run(&mut place.limited("-s 1024", &verify));
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""), "{}", run.stderr);
    let start = "error: deep.cu: the compiler ran out of memory or stack: ";
    assert!(run.stderr.starts_with(start), "{}", run.stderr);
    assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
}

/// One warp that does all of the work may need more than it was given.
#[test]
fn what_is_given_up_is_not_called_wrong() {
    let place = Place::new();
    let foreign = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/emulator/foreign");
    fs::copy(format!("{foreign}/right/one_thread.cu"), place.path("one.cu")).unwrap();
    let endless = fs::read_to_string(format!("{foreign}/right/one_thread.cu")).unwrap();
    fs::write(place.path("endless.cu"), endless.replace("++row", "row |= 0")).unwrap();
    let beam = matrix("beam.mtx");
    let cannot_say = |arguments: &str, hint: &str| {
        let run = place.run(&format!("verify --emulate {arguments} --matrix {beam}"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""), "{}", run.stderr);
        assert!(
            run.stderr.ends_with(hint) && run.stderr.matches('\n').count() == 1,
            "{}",
            run.stderr
        );
    };
    cannot_say("one.cu --most-instructions 1000", "; --most-instructions N allows more\n");
    cannot_say(
        "endless.cu --most-instructions 100000000000 --deadline 2",
        "the kernel was given up after 2 s, and nothing was found until then; --deadline SECONDS allows more\n",
    );
    cannot_say("one.cu --deadline 0.000001", "; --deadline SECONDS allows more\n");
    place.succeed(&format!("verify --emulate one.cu --deadline 600 --matrix {beam}"));
}

#[test]
fn the_document_is_for_machines() {
    let place = place();
    let beam = matrix("beam.mtx");
    let run = place.run(&format!("verify --emulate k.skl --matrix {beam} --json --seeds 1"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let document = json(&run);
    assert_eq!((&document["right"], &document["kind"]), (&Value::Bool(true), &"program".into()));
    assert_eq!(document["outcome"]["Verified"]["checks"], 3);
    assert_eq!(document["findings"], Value::Array(vec![]));
    let emulation = &document["emulation"];
    assert_eq!((&emulation["architecture"], &emulation["seeds"]), (&"sm_90".into(), &1.into()));
    assert_eq!(emulation["on"]["whole"], true);
    assert_eq!(emulation["on"]["entries"], document["matrix"]["nnz"]);
    for counter in ["instructions", "warp_instructions", "global_loads", "global_load_sectors"] {
        assert!(document["counters"][counter].as_u64().unwrap() > 0, "{counter}");
    }
    assert!(document["ptx_instructions"].as_u64().unwrap() > 0);

    let counted = |name: &str| document["counters"][name].as_f64().unwrap();
    let feature = |name: &str| document["features"][name].as_f64().unwrap();
    let entries = document["matrix"]["nnz"].as_f64().unwrap();
    assert_eq!(feature("warp_instructions"), counted("warp_instructions") / entries);
    assert_eq!(feature("load_sectors"), counted("global_load_sectors") / entries);
    assert_eq!(feature("longest_warp"), counted("longest_warp"));
    assert!(feature("imbalance") >= 1.0);
}

#[test]
fn a_finding_names_the_line() {
    let place = place();
    let arguments = format!("verify --emulate wrong.cu --matrix {}", matrix("beam.mtx"));
    let run = place.run(&arguments);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
    let start = "error: wrong.cu: faults: out of bounds at wrong.cu:6 (PTX line ";
    assert!(run.stderr.starts_with(start), "{}", run.stderr);
    assert!(run.stdout.contains("\nfindings   out of bounds at wrong.cu:6 "), "{}", run.stdout);

    let run = place.run(&format!("{arguments} --json"));
    assert_eq!(run.code, Some(1));
    let document = json(&run);
    assert_eq!(document["right"], false);
    let finding = &document["findings"][0];
    assert_eq!(
        (&finding["kind"], &finding["source"]["line"]),
        (&"out-of-bounds".into(), &6.into())
    );
    assert_eq!(finding["block"].as_array().unwrap().len(), 3);
    assert!(finding["place"].as_str().unwrap().starts_with("x + "), "{finding}");
    assert!(finding["ptx_line"].as_u64().unwrap() > 0);
}

#[test]
fn a_wrong_element_is_followed_to_its_line() {
    let place = place();
    let told = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/emulator/foreign/told");
    fs::copy(format!("{told}/next_rows_entry.cu"), place.path("next.cu")).unwrap();
    let arguments = format!("verify --emulate next.cu --matrix {}", matrix("beam.mtx"));
    let run = place.run(&arguments);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
    let findings: Vec<&str> =
        run.stdout.lines().filter(|line| line.contains("wrong element at")).collect();
    assert_eq!(findings.len(), 1, "{}", run.stdout);
    assert!(findings[0].starts_with("findings   wrong element at next.cu:15 "), "{}", findings[0]);
    let why = "the first of 12 entries (column 0) of row 1 is in it, read at line 14";
    assert!(findings[0].contains(why), "{}", findings[0]);

    let document = json(&place.run(&format!("{arguments} --json")));
    let finding = &document["findings"][0];
    assert_eq!(
        (&finding["kind"], &finding["source"]["line"], &finding["place"]),
        (&"wrong-element".into(), &15.into(), &"y[0]".into())
    );
    assert!(finding["detail"].as_str().unwrap().contains(why), "{finding}");
}

#[test]
fn a_program_that_does_not_fit_is_not_emulated() {
    let place = place();
    let diagonals = "sparserl 3\nspmv f32\nblock 256\nkeep dia values=plain cache=cached vector=1 rows=1 unroll=4\n";
    fs::write(place.path("dia.skl"), diagonals).unwrap();
    let graph = matrix("rmat10.mtx.gz");
    for sample in ["--sample 500", "--sample 0", ""] {
        let run = place.run(&format!("verify --emulate dia.skl --matrix {graph} {sample}"));
        let start = "error: dia.skl: does not compile: it does not fit the matrix: ";
        assert!(run.code == Some(1) && run.stderr.starts_with(start), "{}", run.stderr);
    }
}

#[test]
fn without_a_gpu_emulation_is_suggested() {
    let run = without_gpu(&place(), &format!("verify k.skl --matrix {}", matrix("beam.mtx")));
    assert_eq!(run.code, Some(3));
    assert!(run.stderr.ends_with("; --emulate checks it without one\n"), "{}", run.stderr);
}

#[test]
fn gen_checks_where_there_is_no_gpu() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    let run = without_gpu(&place, &format!("gen {beam} -o out"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let line =
        "no GPU     picked by the policy learned; checked by emulation on the whole matrix\n";
    assert!(run.stdout.contains(line), "{}", run.stdout);
    assert!(run.stdout.contains("checked    right in 6 checks by emulation, "), "{}", run.stdout);
    assert!(place.path("out/kernel.cu").exists());

    let wide = without_gpu(&place, &format!("gen {beam} --op spmm --cols 32 -o wide"));
    let line =
        "checks by emulation of the program generated anew for a sample of the rows, at most ";
    assert!(wide.stdout.contains(line), "{}{}", wide.stdout, wide.stderr);

    let task = "--op spmm --cols 32 --candidates 2 --json -o wide";
    let summary = json(&without_gpu(&place, &format!("gen {beam} {task}")));
    for kernel in summary["kernels"].as_array().unwrap() {
        assert_eq!(kernel["checked"]["checks"], 6);
        assert_eq!(kernel["checked"]["on"]["whole"], false);
        assert!(kernel["checked"]["on"]["entries"].as_u64().unwrap() > 500);
    }
    assert!(summary["seconds"]["check"].as_f64().unwrap() > 0.0);
}

#[test]
fn what_cannot_be_checked_is_written_unless_a_check_is_asked_for() {
    let place = Place::new();
    // Whatever multiplies them may overflow.
    let huge = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 3e38\n1 2 3e38\n";
    fs::write(place.path("huge.mtx"), huge).unwrap();
    let run = without_gpu(&place, "gen huge.mtx -o out");
    assert_eq!(run.code, Some(3), "{}", run.stderr);
    assert!(run.stderr.starts_with("warning: candidate 1 and "), "{}", run.stderr);
    assert!(run.stderr.contains(" more cannot be checked: "), "{}", run.stderr);
    assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
    let line = "no GPU     picked by the policy learned; not checked\n";
    assert!(run.stdout.contains(line), "{}", run.stdout);
    assert!(place.path("out/kernel.cu").exists());

    let run = without_gpu(&place, "gen huge.mtx --check -o checked");
    assert_eq!(run.code, Some(3), "{}", run.stdout);
    assert!(run.stderr.starts_with("error: huge.mtx: none of "), "{}", run.stderr);
    assert!(run.stderr.contains("; the first: it cannot be checked: "), "{}", run.stderr);
    assert!(!place.path("checked").exists());
}

#[test]
fn gen_checks_what_it_is_told_to() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    let run = without_gpu(&place, &format!("gen {beam} --no-check -o out"));
    let line = "no GPU     picked by the policy learned; not checked\n";
    assert!(run.code == Some(0) && run.stdout.contains(line), "{}{}", run.stdout, run.stderr);

    // What nobody measures is checked, whether there is a GPU or not.
    let text = place.succeed(&format!("gen {beam} --no-measure -o out"));
    let line =
        "unmeasured picked by the policy learned; checked by emulation on the whole matrix\n";
    assert!(text.contains(line), "{text}");

    let text = place.succeed(&format!("gen {beam} --check --no-compile --no-packed -o out"));
    assert!(text.contains("emulated   on the whole matrix\n"), "{text}");
    assert_eq!(place.names("out"), ["kernel.cu", "plan.json", "program.skl"]);
    assert_eq!(place.run(&format!("gen {beam} --check --no-check")).code, Some(2));
}

#[test]
fn a_check_that_was_asked_for_needs_a_compiler() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    let arguments = format!("gen {beam} --check --no-compile -o out");
    let run = run(&mut place.command_without_nvrtc(&arguments));
    // What the machine has installed cannot be hidden.
    if run.code == Some(0) {
        assert!(run.stdout.contains("by emulation"), "{}", run.stdout);
        return;
    }
    assert!(run.stderr.starts_with("error: cannot check: "), "{}", run.stderr);
    assert!(run.stderr.contains("pip install"), "{}", run.stderr);
    assert!(!place.path("out").exists());
}

#[test]
fn the_folder_that_gen_wrote_is_verified_and_an_edited_kernel_in_it_is_kept() {
    let place = Place::new();
    let beam = matrix("beam.mtx");
    let generate = format!("gen {beam} --no-compile --packed -o out");
    place.succeed(&generate);
    let verify = format!("verify --emulate out --matrix {beam}");
    let text = place.succeed(&verify);
    assert!(text.contains("kernel     out/kernel.cu\n"), "{text}");

    let source = place.text("out/kernel.cu");
    // Below the launch that its comment says, as a user tries things.
    let edited = source.replacen("  prefetch(", "  y[1 << 28] = alpha;\n  prefetch(", 1);
    let line = 1 + edited.lines().position(|line| line.contains("y[1 << 28]")).unwrap();
    fs::write(place.path("out/kernel.cu"), &edited).unwrap();
    let run = place.run(&verify);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    let finding = format!("out of bounds at kernel.cu:{line} ");
    assert!(run.stderr.contains(&finding), "{}", run.stderr);

    let error = place.fail(&generate);
    assert!(error.contains("out/kernel.cu: was edited") && error.contains("--force"), "{error}");
    assert_eq!(place.text("out/kernel.cu"), edited);
    place.succeed(&format!("{generate} --force"));
    assert_eq!(place.text("out/kernel.cu"), source);

    place.succeed(&format!("gen {beam} --no-compile --candidates 2 -o two"));
    let error = place.fail(&format!("verify --emulate two --matrix {beam}"));
    assert!(error.contains("two: the folder holds several kernels"), "{error}");
    fs::write(place.path("two/2/kernel.cu"), &edited).unwrap();
    let error = place.fail(&format!("gen {beam} --no-compile -o two"));
    assert!(error.contains("two/2/kernel.cu: was edited"), "{error}");
}
