//! What `gen` writes is enough to have the matrix back and to fill other values in: `decode.py`, which
//! shares nothing with this program, does both for every layout and coding.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use half::{bf16, f16};
use serde_json::Value;
use sparserl_core::matrix::{Csr, Scalar, generate};

use crate::support::Place;

/// Matrices and products whose candidates have all layouts and codings among them.
const CASES: [(&str, &str); 9] = [
    ("stencil", "--dtype f32"),
    ("stencil", "--dtype f64 --op spmm --cols 4"),
    ("blocks", "--dtype f64"),
    ("blocks", "--dtype bf16 --op spmm --cols 8"),
    ("graph", "--dtype f32"),
    ("graph", "--dtype f16 --op spmm --cols 8"),
    ("wide", "--dtype f32/f64/f64"),
    ("wide", "--dtype f32 --op spmm --cols 16"),
    ("wide", "--dtype bf16"),
];
const CANDIDATES: usize = 40;

/// Row, column and value of each entry, in the order of CSR.
type Entries = Vec<(usize, u32, f64)>;

/// A matrix by name, with its number of rows and of columns.
fn matrix(name: &str) -> (usize, usize, Entries) {
    match name {
        // Zeros of both signs, and a number that is subnormal in single precision.
        "stencil" => entries(&generate::stencil5(30, 31), |i| [4.0, 0.0, -0.0, 1e-40][i % 4]),
        "blocks" => entries(&generate::fem_blocks(60, 3, 7), |i| (i as f64).sin()),
        "graph" => entries(&generate::rmat(9, 8, 3), |_| 0.75),
        "wide" => entries(&generate::uniform(300, 100_000, 9, 5), |i| (i as f64).cos() * 1e-3),
        _ => unreachable!("no matrix {name}"),
    }
}

fn entries(matrix: &Csr<f64>, value: impl Fn(usize) -> f64) -> (usize, usize, Entries) {
    let view = matrix.view();
    let rows = (0..view.rows()).flat_map(|row| view.row(row).0.iter().map(move |&c| (row, c)));
    let entries = rows.enumerate().map(|(i, (row, column))| (row, column, value(i))).collect();
    (view.rows(), view.cols(), entries)
}

fn write(path: &Path, (rows, cols, entries): &(usize, usize, Entries)) {
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
        "f16" => f16::from_f64(value).bits(),
        "bf16" => <bf16 as Scalar>::from_f64(value).bits(),
        "f32" => <f32 as Scalar>::from_f64(value).bits(),
        _ => value.bits(),
    }
}

fn check(folder: &Path, (rows, cols, entries): &(usize, usize, Entries), plan: &Value) {
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
        let coded = fields
            .filter(|(name, _)| !["cache", "lanes", "unroll", "vector"].contains(&name.as_str()));
        let coded = coded.map(move |(name, value)| format!("{layout} {name}={value}"));
        coded.chain([rows.to_owned()]).map(|text| text.replace('"', ""))
    })
}

#[test]
fn every_layout_and_coding_is_decoded() {
    if !has_python() {
        return;
    }
    let place = Place::new();
    let mut seen = BTreeSet::new();
    for (name, task) in CASES {
        let matrix = matrix(name);
        write(&place.path("a.mtx"), &matrix);
        place.succeed(&format!(
            "gen a.mtx {task} --policy cost --candidates {CANDIDATES} --no-compile --force -o out"
        ));
        for candidate in 1..=CANDIDATES {
            let folder = format!("out/{candidate}");
            let plan = place.json(&format!("{folder}/plan.json"));
            let count = seen.len();
            seen.extend(shown(&plan));
            if seen.len() > count {
                check(&place.path(&folder), &matrix, &plan);
            }
        }
    }
    println!("{seen:#?}");
}
