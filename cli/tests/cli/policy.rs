//! What chooses programs, and why.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Place, matrix};

/// The folder of the policy that is compiled in.
fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../onnx-models/models/learned")
}

fn policy_of(place: &Place, folder: &str) -> (String, String, String) {
    let plan = place.json(&format!("{folder}/plan.json"));
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let (name, version) = (text(&plan["policy"]["name"]), text(&plan["policy"]["version"]));
    (name, version, place.text(&format!("{folder}/program.skl")))
}

#[test]
fn a_policy_from_files_chooses_as_the_same_one_compiled_in_and_the_cost_model_is_there_too() {
    let place = Place::new();
    let gen_rmat = format!("gen {} --op spmm --cols 32 --no-compile", matrix("rmat10.mtx.gz"));
    place.succeed(&format!("{gen_rmat} -o one"));
    let learned = policy_of(&place, "one");
    assert_eq!(learned.0, "learned");
    for (folder, path) in [("two", shipped()), ("three", shipped().join("decoder.onnx"))] {
        place.succeed(&format!("{gen_rmat} --policy {} -o {folder}", path.display()));
        assert_eq!(policy_of(&place, folder), learned);
    }
    place.succeed(&format!("{gen_rmat} --policy cost -o four"));
    assert_eq!(policy_of(&place, "four").0, "cost model");
}

#[test]
fn an_explanation_says_what_was_predicted_of_what_is_written_and_of_others() {
    let place = Place::new();
    let gen_beam = format!("gen {} --no-compile --explain", matrix("beam.mtx"));
    let summary = place.succeed(&gen_beam);
    assert!(
        summary.contains("why        the policy learned ranks kernel 1 as 1 of 8"),
        "{summary}"
    );
    assert!(summary.contains("of plain CSR's speed with a cold cache"), "{summary}");
    let document = place.succeed(&format!("{gen_beam} --json --candidates 2"));
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let programs = document["explanation"]["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 8);
    assert_eq!(programs.iter().filter(|program| program["written"].is_u64()).count(), 2);
    let cold = |program: &serde_json::Value| program["ensemble"]["cold"].as_f64().unwrap();
    assert!(programs.iter().all(|program| cold(program) > 0.0));
    let program = document["kernels"][0]["program"].as_str().unwrap();
    let first = programs.iter().find(|program| program["written"] == 1).unwrap();
    for line in first["program"].as_array().unwrap() {
        assert!(program.contains(line.as_str().unwrap()));
    }
    // The cost model has reasons too, but no ensemble.
    let summary = place.succeed(&format!("{gen_beam} --policy cost"));
    assert!(summary.contains("why        the cost model ranks kernel 1 as 1 of 8"), "{summary}");
}

#[test]
fn what_is_no_policy_or_no_engine_is_refused_in_one_line_and_nothing_is_written() {
    let place = Place::new();
    let gen_beam = format!("gen {} --no-compile", matrix("beam.mtx"));
    fs::write(place.path("broken.onnx"), b"no model").unwrap();
    fs::create_dir(place.path("mixed")).unwrap();
    let encoder = fs::read(shipped().join("encoder.onnx")).unwrap();
    fs::write(place.path("mixed/encoder.onnx"), &encoder).unwrap();
    fs::write(place.path("mixed/decoder.onnx"), &encoder[..encoder.len() / 2]).unwrap();
    std::os::unix::fs::symlink("/dev/zero", place.path("mixed.onnx")).unwrap();
    fs::create_dir(place.path("endless")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", place.path("endless/encoder.onnx")).unwrap();
    let before = place.names("");
    for (options, expected) in [
        ("--policy /dev/zero", "cannot read the policy `/dev/zero`: it is no regular file"),
        ("--policy mixed.onnx", "cannot read the policy `mixed.onnx`: it is no regular file"),
        ("--policy endless", "/encoder.onnx`: it is no regular file"),
        ("--onnxruntime /dev/zero", "`/dev/zero` is not usable: it is no regular file"),
        ("--policy absent", "cannot read the policy `absent`"),
        ("--policy broken.onnx", "`broken.onnx` is no policy of SparseRL, or damaged"),
        ("--policy mixed", "`mixed` is no policy of SparseRL, or damaged: decoder.onnx: "),
        ("--policy cost --ep cuda", "the cost model is no network"),
        ("--onnxruntime absent.so", "ONNX Runtime `absent.so` is not usable"),
        (
            "--ep cuda",
            "`cuda` needs ONNX Runtime: name its library, or set ORT_DYLIB_PATH to it; --onn",
        ),
    ] {
        let error = place.fail(&format!("{gen_beam} {options}"));
        assert!(error.contains(expected), "{options}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    assert_eq!(place.names(""), before);
}
