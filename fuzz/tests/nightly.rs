//! The scripts of the nights, run where all that takes long is a stand-in that says what the real
//! thing says.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const CARGO: &str = r#"case "$1" in
fuzz) printf 'market\nptx\n' ;;
test) printf 'test awkward ... ok\ntest random ... ok\n' ;;
esac"#;
/// The second target finds something on the second night.
const SMOKE: &str = r#"corpus=fuzz/corpus/$2
mkdir -p $corpus fuzz/artifacts/$2
night=$(ls $corpus | wc -l)
touch $corpus/$night $corpus/more$night
echo "stat::number_of_executed_units: 1000"
if [ $2$night = ptx2 ]; then touch fuzz/artifacts/ptx/crash-1; exit 1; fi"#;
const SANITIZE: &str =
    "echo stat::number_of_executed_units: 7; echo stat::number_of_executed_units: 5";

/// A checkout with these scripts and stand-ins for the rest.
struct Checkout {
    folder: TempDir,
}

impl Checkout {
    fn new() -> Self {
        let checkout = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["nightly.sh", "tally.sh"] {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            checkout.put(&format!("fuzz/{name}"), &fs::read_to_string(script).unwrap());
        }
        let stand_ins = [
            ("bin/cargo", CARGO),
            ("bin/rustup", ""),
            ("fuzz/smoke.sh", SMOKE),
            ("ffi/tests/sanitize.sh", SANITIZE),
        ];
        for (name, body) in stand_ins {
            checkout.put(name, &format!("#!/bin/sh\n{body}\n"));
        }
        checkout
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, script: &str, arguments: &[&str], results: &str) -> Output {
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new(self.path(script));
        command.args(arguments).env("PATH", format!("{}:{path}", self.path("bin").display()));
        command.env("SPARSERL_FUZZ_RESULTS", results);
        command.current_dir(self.folder.path()).output().unwrap()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// What stands behind the date and the commit of each line.
fn counts(results: &str) -> Vec<String> {
    let lines = results.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    lines.map(|words| words[2..].join(" ")).collect()
}

#[test]
fn each_night_adds_its_lines_and_the_tally_adds_the_nights_up() {
    let checkout = Checkout::new();
    let first = checkout.run("fuzz/nightly.sh", &["1", "50"], "");
    assert!(first.status.success(), "{}", text(&first.stderr));
    let second = checkout.run("fuzz/nightly.sh", &["1", "50"], "");
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).starts_with("found something: ptx;"), "{}", text(&second.stderr));
    let results = fs::read_to_string(checkout.path("fuzz/results.tsv")).unwrap();
    let night = ["sanitize 12 0 0 0", "emulator_properties 0 0 0 100", "market 1000 2 0 0"];
    let header = ["target executions new entries findings cases"];
    let first = [&night[..], &["ptx 1000 2 0 0"]].concat();
    let second = [&night[..], &["ptx 1000 2 1 0"]].concat();
    assert_eq!(counts(&results), [&header[..], &first, &second].concat());
    let is_date = |line: &str| line.split('\t').next().unwrap().split('-').count() == 3;
    assert!(results.lines().skip(1).all(is_date), "{results}");

    let tally = checkout.run("fuzz/tally.sh", &[], "");
    assert_eq!(
        text(&tally.stdout),
        "target\truns\texecutions\tnew entries\tfindings\tcases\n\
         sanitize\t2\t24\t0\t0\t0\n\
         emulator_properties\t2\t0\t0\t0\t200\n\
         market\t2\t2000\t4\t0\t0\n\
         ptx\t2\t2000\t4\t1\t0\n\
         all\t8\t4024\t8\t1\t200\n"
    );
}

#[test]
fn the_results_lie_where_they_are_asked_for() {
    for (arguments, name) in
        [(&["1", "50"][..], "mine.tsv"), (&["1", "50", "given.tsv"], "given.tsv")]
    {
        let checkout = Checkout::new();
        assert!(checkout.run("fuzz/nightly.sh", arguments, "mine.tsv").status.success());
        assert_eq!(fs::read_to_string(checkout.path(name)).unwrap().lines().count(), 5, "{name}");
        let tally = checkout.run("fuzz/tally.sh", &[name], "");
        assert!(text(&tally.stdout).ends_with("\nall\t4\t2012\t4\t0\t100\n"), "{name}");
        for other in ["mine.tsv", "given.tsv", "fuzz/results.tsv"] {
            assert_eq!(checkout.path(other).exists(), other == name, "{other}");
        }
    }
}

#[test]
fn a_tally_of_something_else_is_one_line() {
    let checkout = Checkout::new();
    fs::write(checkout.path("other.tsv"), "date\tcommit\n2026\tx\n").unwrap();
    for (name, said) in [
        ("none.tsv", "none.tsv: no such file; fuzz/nightly.sh writes it\n"),
        ("other.tsv", "other.tsv:2: no line that fuzz/nightly.sh wrote\n"),
    ] {
        let tally = checkout.run("fuzz/tally.sh", &[name], "");
        assert_eq!((tally.status.code(), text(&tally.stderr)), (Some(1), said));
        assert_eq!(text(&tally.stdout), "");
    }
}
