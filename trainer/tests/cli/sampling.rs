//! How often policies are right.

use std::fs;
use std::path::Path;

use crate::support::run;

#[test]
fn how_often_the_compiled_in_policy_is_right_is_found_by_emulation() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("samples.toml");
    let text = "tasks = [\"spmv f32\", \"spmm 8 f64\"]\nsamples = 6\ntemperature = 1.0\n\
        tries = [1, 6]\nmatrices = 2\n\
        [corpus]\nseed = 5\nshare_of_real = 0.0\nlargest_nnz = 1500\n";
    fs::write(&settings, text).unwrap();
    let output = folder.path().join("samples");
    let sample = || {
        let arguments = [settings.as_ref(), "--emulate".as_ref(), "-o".as_ref(), output.as_path()];
        run("pass-at-k", &arguments)
    };
    // Where a GPU would run the policy, nothing is begun without what runs it there.
    let arguments: [&Path; 4] = [&settings, "--ep=cuda".as_ref(), "-o".as_ref(), output.as_path()];
    let (code, shown, said) = run("pass-at-k", &arguments);
    assert_eq!((code, shown.as_str()), (Some(1), ""), "{said}");
    assert!(said.starts_with("error: `cuda` needs ONNX Runtime: name its library, or"), "{said}");
    assert!(said.ends_with("; --onnxruntime LIBRARY names it\n"), "{said}");
    assert!(!output.exists());
    let (code, shown, said) = sample();
    assert_eq!(code, Some(0), "{said}");
    let table: serde_json::Value =
        serde_json::from_slice(&fs::read(output.join("table.json")).unwrap()).unwrap();
    let rows = table["rows"].as_array().unwrap();
    // Two tasks, legal tokens and any.
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!((row["policy"].as_str(), row["samples"].as_u64()), (Some("learned"), Some(12)));
        let share = |field: &str| row[field].as_f64().unwrap();
        let pass: Vec<Option<f64>> =
            row["pass"].as_array().unwrap().iter().map(|pass| pass["value"].as_f64()).collect();
        assert!((pass[0].unwrap() - share("right")).abs() < 1e-12, "{row}");
        assert!(pass[1] >= pass[0], "{row}");
        assert!(shown.contains(row["task"].as_str().unwrap()), "{shown}");
        // The mask offers nothing that is wrong; whoever is free at least writes some programs.
        match row["tokens"].as_str() {
            Some("legal") => assert_eq!((share("compiled"), share("right")), (1.0, 1.0)),
            Some("any") => assert!(share("right") > 0.5 && share("distinct") > 1.0, "{row}"),
            other => panic!("{other:?}"),
        }
    }
    // What is done is not done again, and not mixed with other samples.
    let results = || fs::read_dir(output.join("results")).unwrap().count();
    assert_eq!(results(), 4);
    fs::remove_file(output.join("table.json")).unwrap();
    assert_eq!(sample(), (Some(0), shown, said.clone()));
    assert_eq!(said, "2 of 2 matrices are done\n");
    fs::write(&settings, text.replace("samples = 6", "samples = 7")).unwrap();
    let (code, shown, said) = sample();
    assert_eq!((code, shown.as_str(), said.lines().count()), (Some(1), "", 1), "{said}");
    assert!(said.contains("has results of other settings"), "{said}");
    fs::write(&settings, text.replace("temperature = 1.0", "temperature = 0.0")).unwrap();
    let (code, _, said) = sample();
    assert!(code == Some(1) && said.contains("`temperature` has to be"), "{said}");
}
