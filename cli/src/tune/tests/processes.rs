//! Searches in processes of their own: killed at any moment, on a disk that is full, ten at once.

use std::process::{Command, Output, Stdio};

use super::*;

/// Names the folder to work in, for [`searches_where_it_is_told`].
const PLACE: &str = "SPARSERL_TEST_PLACE";
/// The name of the output in it.
const OUTPUT: &str = "SPARSERL_TEST_OUTPUT";
const ROUNDS: u32 = 3;
const KILLS: u32 = 12;

fn asking(place: &Path, output: &str) -> Asking {
    let store = Some(place.join("winners.redb"));
    Asking { store, ..Asking::at(place.join(output)) }
}

/// What the other tests run in processes.
#[test]
#[ignore = "is run by the tests beside it"]
fn searches_where_it_is_told() {
    crate::be_told_of_files_that_grow_too_long();
    let told = |name| std::env::var(name).expect("a test names it");
    let asking = asking(Path::new(&told(PLACE)), &told(OUTPUT));
    match asking.run(ROUNDS) {
        Ok(summary) => assert_eq!(summary.summary.notes, [""; 0]),
        Err(error) => panic!("error: {error:#}"),
    }
}

/// A search in a process, under a shell's limit.
fn process(place: &Path, output: &str, limit: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]);
    shell.arg(std::env::current_exe().unwrap());
    shell.args(["--exact", "--ignored", "--nocapture"]);
    shell.arg("tune::tests::processes::searches_where_it_is_told");
    shell.env(PLACE, place).env(OUTPUT, output).env("RUST_BACKTRACE", "0");
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

const UNLIMITED: &str = "-c 0";

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

/// Goes on with what is there, whatever that is, and finds what a whole search finds.
fn check_that_it_goes_on(place: &Path, whole: &TuneRecord, at: &str) {
    let asking = asking(place, "out");
    let kernel = asking.output.join("kernel");
    const WHOLE: [&str; 3] = ["kernel.cu", "plan.json", "program.skl"];
    assert!(!kernel.exists() || names(&kernel) == WHOLE, "{at}");
    let summary = asking.run(ROUNDS).unwrap_or_else(|error| panic!("{at}: {error:#}"));
    assert_eq!(summary.summary.notes, [""; 0], "{at}");
    assert_eq!(names(&kernel), WHOLE, "{at}");
    let programs = asking.json().programs;
    assert!(programs >= whole.programs, "{at}: {programs} of {}", whole.programs);
    // Others are lent what was found.
    let next = Asking { output: place.join("next"), ..asking };
    let notes = next.run(1).unwrap().summary.notes;
    assert_eq!(notes, [""; 0], "{at}");
}

#[test]
fn a_search_that_is_killed_at_any_moment_is_gone_on_with() {
    let place = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let output = process(place.path(), "out", UNLIMITED).output().unwrap();
    let duration = start.elapsed();
    assert!(output.status.success(), "{}", said(&output));
    let whole = asking(place.path(), "out").json();

    let mut killed = 0;
    for round in 0..KILLS {
        let place = tempfile::tempdir().unwrap();
        let mut child = process(place.path(), "out", UNLIMITED).spawn().unwrap();
        let moment = duration * (round + 1) / (KILLS + 1);
        std::thread::sleep(moment);
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        check_that_it_goes_on(place.path(), &whole, &format!("killed after {moment:?}"));
    }
    assert!(killed * 2 >= KILLS, "only {killed} of {KILLS} were still running");
}

/// The moment that a random one hits least often.
#[test]
fn a_search_that_was_killed_before_its_first_record_is_begun_anew() {
    let place = tempfile::tempdir().unwrap();
    let asking = asking(place.path(), "out");
    fs::create_dir(&asking.output).unwrap();
    for name in [".lock", ".part-Ab12Cd.json"] {
        fs::write(asking.output.join(name), "").unwrap();
        asking.run(1).unwrap();
        fs::remove_file(asking.output.join("tune.json")).unwrap();
        fs::remove_dir_all(asking.output.join("kernel")).unwrap();
        fs::remove_dir_all(asking.output.join("recordings")).unwrap();
    }
}

#[test]
fn a_full_disk_is_one_line_and_spoils_nothing() {
    let whole = tempfile::tempdir().unwrap();
    asking(whole.path(), "out").run(ROUNDS).unwrap();
    let whole = asking(whole.path(), "out").json();
    let mut failed = 0;
    // Blocks of 512 bytes, which no file may be longer than: nothing, records, recordings and
    // kernels, the store of winners.
    for blocks in [0, 1, 8, 24, 64, 256, 1024] {
        let place = tempfile::tempdir().unwrap();
        let output = process(place.path(), "out", &format!("-f {blocks}")).output().unwrap();
        let (at, said) = (format!("{blocks} blocks"), said(&output));
        // 101 is how a test ends that fails.
        assert!(matches!(output.status.code(), Some(0 | 101)), "{at}: {}: {said}", output.status);
        if !output.status.success() {
            failed += 1;
            let is_told = |line: &&str| line.contains("File too large");
            assert_eq!(said.lines().filter(is_told).count(), 1, "{at}: {said}");
        }
        check_that_it_goes_on(place.path(), &whole, &at);
    }
    assert!(failed >= 4, "{failed} failed");
}

#[test]
fn ten_searches_at_once_share_a_store() {
    let place = tempfile::tempdir().unwrap();
    let numbers = 0..10;
    let output = |number: i32| format!("out{number}");
    let begun: Vec<_> = numbers
        .clone()
        .map(|number| process(place.path(), &output(number), UNLIMITED).spawn().unwrap())
        .collect();
    for child in begun {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    for number in numbers {
        // What later ones borrowed may have been faster than what the first found.
        assert!(asking(place.path(), &output(number)).json().result.is_some());
    }
    let next = asking(place.path(), "next");
    assert_eq!(next.run(1).unwrap().summary.notes, [""; 0]);
}
