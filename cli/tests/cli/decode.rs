//! What `gen` writes is enough to have the matrix back and to fill other values in: `decode.py`,
//! which shares nothing with this program, does both for every layout and coding.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use half::{bf16, f16};
use serde_json::Value;
use sparserl_core::matrix::{Csr, Scalar, generate};

use crate::support::Place;

/// Patterns, values and products whose candidates have all layouts and codings among them.
const CASES: [(&str, &str, &str); 17] = [
    ("stencil", "few", "--dtype f32"),
    ("stencil", "all", "--dtype f64 --op spmm --cols 4"),
    ("stencil", "all", "--dtype f16"),
    ("blocks", "all", "--dtype f64"),
    ("blocks", "few", "--dtype bf16 --op spmm --cols 8"),
    ("graph", "one", "--dtype f32"),
    ("graph", "few", "--dtype f16 --op spmm --cols 8"),
    ("graph", "all", "--dtype f64"),
    ("wide", "all", "--dtype f32/f64/f64"),
    ("wide", "few", "--dtype f32 --op spmm --cols 16"),
    ("wide", "one", "--dtype bf16"),
    ("wide", "few", "--dtype f64"),
    ("far", "all", "--dtype f32"),
    ("far", "few", "--dtype f64 --op spmm --cols 2"),
    ("dense row", "all", "--dtype f32"),
    ("far blocks", "all", "--dtype f32"),
    ("farther blocks", "few", "--dtype f64"),
];
const CANDIDATES: usize = 60;

/// Rows, columns, and the entries in the order of CSR: row, column and value.
type Entries = (usize, usize, Vec<(usize, u32, f64)>);

/// A pattern by its name, with values of a kind. Some are zeros of either sign, and some numbers
/// that are subnormal in single precision.
fn matrix(pattern: &str, values: &str) -> Entries {
    let (rows, cols, entries): (usize, usize, Vec<(usize, u32)>) = match pattern {
        "stencil" => pattern_of(&generate::stencil5(30, 31)),
        "blocks" => pattern_of(&generate::fem_blocks(60, 3, 7)),
        "graph" => pattern_of(&generate::rmat(9, 8, 3)),
        "wide" => pattern_of(&generate::uniform(300, 100_000, 9, 5)),
        "far" => {
            let row = |row| (0..8).map(move |k| (row, (row * 300 + k * 1000) as u32));
            (300, 100_000, (0..300).flat_map(row).collect())
        }
        "dense row" => pattern_of(&generate::one_dense_row(40, 5_000, 9)),
        "far blocks" => blocks(2_000),
        "farther blocks" => blocks(100_000),
        _ => unreachable!("no pattern {pattern}"),
    };
    let value = |i: usize| match values {
        "one" => 0.75,
        "few" => [4.0, 0.0, -0.0, 1e-40][i % 4],
        _ => (i as f64).sin(),
    };
    let entries = entries.into_iter().enumerate();
    (rows, cols, entries.map(|(i, (row, column))| (row, column, value(i))).collect())
}

/// Dense blocks of four rows and columns, four in a row and so far apart.
fn blocks(distance: usize) -> (usize, usize, Vec<(usize, u32)>) {
    let column = move |row: usize, k: usize| (row / 4 * 4_000 + k / 4 * distance + k % 4) as u32;
    let row = move |row| (0..16).map(move |k| (row, column(row, k)));
    (160, 1_000_000, (0..160).flat_map(row).collect())
}

fn pattern_of(matrix: &Csr<f64>) -> (usize, usize, Vec<(usize, u32)>) {
    let view = matrix.view();
    let rows = (0..view.rows()).flat_map(|row| view.row(row).0.iter().map(move |&c| (row, c)));
    (view.rows(), view.cols(), rows.collect())
}

fn write(path: &Path, (rows, cols, entries): &Entries) {
    let mut text = String::from("%%MatrixMarket matrix coordinate real general\n");
    writeln!(text, "{rows} {cols} {}", entries.len()).unwrap();
    for (row, column, value) in entries {
        writeln!(text, "{} {} {value:e}", row + 1, column + 1).unwrap();
    }
    fs::write(path, text).unwrap();
}

fn has_python() -> bool {
    let mut python = Command::new("python3");
    python.arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn decode(folder: &Path, arguments: &[&Path]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("decode.py");
    let output = Command::new("python3").arg(script).arg(folder).args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", folder.display());
    String::from_utf8(output.stdout).unwrap()
}

/// Bits of a number in the type that the matrix has.
fn bits(value: f64, dtype: &str) -> u64 {
    match dtype.split('/').next().unwrap() {
        "f16" => <f16 as Scalar>::from_f64(value).bits(),
        "bf16" => <bf16 as Scalar>::from_f64(value).bits(),
        "f32" => <f32 as Scalar>::from_f64(value).bits(),
        _ => value.bits(),
    }
}

fn check(folder: &Path, (rows, cols, entries): &Entries, plan: &Value) {
    let dtype = plan["task"]["dtype"].as_str().unwrap();
    let text = decode(folder, &[]);
    let mut lines = text.lines().skip(1);
    assert_eq!(lines.next(), Some(format!("{rows} {cols} {}", entries.len()).as_str()));
    for (line, &(row, column, value)) in lines.by_ref().zip(entries) {
        let words: Vec<&str> = line.split(' ').collect();
        let at = format!("{}: {line}", folder.display());
        assert_eq!(words[0].parse(), Ok(row + 1), "{at}");
        assert_eq!(words[1].parse(), Ok(column + 1), "{at}");
        assert_eq!(bits(words[2].parse().unwrap(), dtype), bits(value, dtype), "{at}");
    }
    assert_eq!(lines.next(), None);
}

/// What the parts of a plan show: `sell index=u16`, `sell values=plain`, …
fn shown(plan: &Value) -> impl Iterator<Item = String> + '_ {
    plan["parts"].as_array().unwrap().iter().flat_map(|part| {
        let layout = part["layout"].as_str().unwrap();
        let fields = part["fields"].as_object().unwrap().iter();
        let rows = if part["first_row"].is_u64() { "rows=range" } else { "rows=list" };
        let coded = fields.filter(|(name, _)| {
            !["cache", "lanes", "panel", "unroll", "vector"].contains(&name.as_str())
        });
        let coded = coded.map(move |(name, value)| format!("{layout} {name}={value}"));
        coded.chain([rows.to_owned()]).map(|text| text.replace('"', ""))
    })
}

/// The folders of a case's candidates that show something new, with their plans.
fn candidates(place: &Place, task: &str, seen: &mut BTreeSet<String>) -> Vec<(String, Value)> {
    place.succeed(&format!(
        "gen a.mtx {task} --quiet --policy cost --candidates {CANDIDATES} --no-compile --force \
         -o out"
    ));
    let folders = (1..=CANDIDATES).map(|candidate| format!("out/{candidate}"));
    let plans = folders.map(|folder| {
        let plan = place.json(&format!("{folder}/plan.json"));
        (folder, plan)
    });
    let mut is_new = |plan: &Value| {
        let count = seen.len();
        seen.extend(shown(plan));
        seen.len() > count
    };
    plans.filter(|(_, plan)| is_new(plan)).collect()
}

#[test]
fn every_layout_and_coding_is_decoded() {
    if !has_python() {
        return;
    }
    let place = Place::new();
    let mut seen = BTreeSet::new();
    for (pattern, values, task) in CASES {
        let matrix = matrix(pattern, values);
        write(&place.path("a.mtx"), &matrix);
        for (folder, plan) in candidates(&place, task, &mut seen) {
            check(&place.path(&folder), &matrix, &plan);
        }
    }
    let mut wanted: BTreeSet<String> = ["rows=list", "rows=range", "dia rows=1", "dia rows=4"]
        .into_iter()
        .chain(["merge reduction=scan", "merge reduction=2"])
        .map(str::to_owned)
        .collect();
    for layout in ["csr", "sell", "bcsr", "merge", "chunk", "ell", "cvse"] {
        wanted.extend(["u32", "u16", "d16", "d8"].map(|index| format!("{layout} index={index}")));
    }
    for layout in ["csr", "sell", "dia", "bcsr", "merge", "chunk", "ell", "binned", "cvse"] {
        wanted.extend(["plain", "dictionary"].map(|values| format!("{layout} values={values}")));
    }
    // Padded slots have another value.
    wanted.extend(
        ["csr", "sell", "merge", "chunk", "ell", "binned"]
            .map(|layout| format!("{layout} values=constant")),
    );
    assert_eq!(wanted.difference(&seen).collect::<Vec<_>>(), [""; 0], "no candidate has these");
}

#[test]
fn other_values_are_filled_into_every_layout() {
    if !has_python() {
        return;
    }
    let place = Place::new();
    let mut seen = BTreeSet::new();
    for (pattern, task) in [
        ("stencil", "--dtype f32"),
        ("blocks", "--dtype f64 --op spmm --cols 4"),
        ("graph", "--dtype f16"),
        ("far", "--dtype bf16"),
    ] {
        let task = format!("{task} --values variable");
        let (_, _, others) = matrix(pattern, "few");
        let values: String = others.iter().map(|(_, _, value)| format!("{value:e}\n")).collect();
        fs::write(place.path("values.txt"), values).unwrap();
        write(&place.path("a.mtx"), &matrix(pattern, "few"));
        place.succeed(&format!(
            "gen a.mtx {task} --quiet --policy cost --candidates {CANDIDATES} --no-compile -o {pattern}"
        ));
        write(&place.path("a.mtx"), &matrix(pattern, "all"));
        for (folder, _) in candidates(&place, &task, &mut seen) {
            let refilled = place.path("refilled.safetensors");
            let values = place.path("values.txt");
            let [values_flag, output_flag] = ["--values", "-o"].map(Path::new);
            decode(&place.path(&folder), &[values_flag, &values, output_flag, &refilled]);
            let expected = folder.replace("out/", &format!("{pattern}/"));
            let program = |folder: &str| place.text(&format!("{folder}/program.skl"));
            assert_eq!(program(&folder), program(&expected), "values do not count");
            let packed = |path| fs::read(path).unwrap();
            let expected = packed(place.path(&format!("{expected}/packed.safetensors")));
            assert!(packed(refilled) == expected, "{folder} of {pattern}: {}", program(&folder));
        }
    }
    for layout in ["csr", "sell", "dia", "bcsr", "merge", "chunk", "ell", "binned", "cvse"] {
        assert!(seen.contains(&format!("{layout} values=plain")), "no candidate has {layout}");
    }
}

#[test]
fn what_cannot_be_filled_is_said() {
    if !has_python() {
        return;
    }
    let place = Place::new();
    write(&place.path("a.mtx"), &matrix("graph", "one"));
    place.succeed("gen a.mtx --no-compile -o out");
    let refused = |words: &[&str], expected: &str| {
        let mut script = Command::new("python3");
        script.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("decode.py"));
        let output = script.current_dir(place.path("")).args(words).output().unwrap();
        assert!(!output.status.success());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.starts_with(expected) && stderr.lines().count() == 1, "{stderr}");
    };
    for (values, expected) in [
        ("1\n", "error: 1 values for "),
        ("1\nx\n", "error: values.txt:2: x is no finite number in f32"),
        ("1e60\n", "error: values.txt:1: 1e60 is no finite number in f32"),
        ("nan\n", "error: values.txt:1: nan is no finite number in f32"),
    ] {
        fs::write(place.path("values.txt"), values).unwrap();
        refused(&["out", "--values", "values.txt", "-o", "new"], expected);
    }
    assert_eq!(place.names(""), ["a.mtx", "out", "values.txt"]);
    fs::write(place.path("out/plan.json"), "{").unwrap();
    refused(&["out"], "error: not a folder as sparserl-cli gen writes it: ");
}
