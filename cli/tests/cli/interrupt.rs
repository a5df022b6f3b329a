//! A run that is interrupted at any moment ends by the signal, without a crash, and leaves nothing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::support::{Place, matrix};

/// Interruptions in this test; SPARSERL_INTERRUPTIONS asks for another number.
const INTERRUPTIONS: u32 = 24;
const SIGNALS: [(&str, i32); 3] = [("INT", 2), ("TERM", 15), ("HUP", 1)];
/// Where the run writes that is interrupted.
const OUTPUT: &str = "deep/er/out";

/// A run that nobody interrupts.
struct Whole {
    took: Duration,
    /// The files in its folder.
    complete: BTreeSet<String>,
    /// How many files it leaves in the cache.
    kept: usize,
}

static WHOLE: LazyLock<Whole> = LazyLock::new(|| {
    let start = Instant::now();
    let (place, child) = started();
    assert!(child.wait_with_output().unwrap().status.success());
    let took = start.elapsed();
    Whole { took, complete: files(&place.path(OUTPUT)), kept: place.kept().len() }
});

#[test]
fn interrupted_at_any_moment_it_leaves_nothing_and_does_not_crash() {
    let asked = std::env::var("SPARSERL_INTERRUPTIONS").ok();
    let count = asked.map_or(INTERRUPTIONS, |count| count.parse().expect("a number"));
    let Whole { took, complete, kept } = &*WHOLE;

    let mut ended = 0;
    for round in 0..count {
        let (place, child) = started();
        // Spread evenly, in an order that has nothing to do with the signals.
        let moment = *took * (round * 7 % count) / count;
        std::thread::sleep(moment);
        let (name, number) = SIGNALS[round as usize % SIGNALS.len()];
        // As a terminal does: the signal is for all processes of the group.
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-s", name, "--", &group]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let at = format!("{name} after {moment:?}: {}: {stderr}", output.status);
        let left = files(&place.path(""));
        let is_complete = complete.iter().map(|name| format!("{OUTPUT}/{name}")).eq(left.clone());

        if output.status.signal() == Some(number) {
            ended += 1;
            assert_eq!(stderr, "", "{at}");
            // At the very end the folder may have got its name already.
            assert!(left.is_empty() || is_complete, "{at}: {left:?}");
        } else {
            assert!(output.status.success(), "{at}");
            assert!(is_complete, "{at}: {left:?}");
        }
        let kept_now = place.kept();
        assert!(kept_now.len() <= *kept, "{at}");
        let is_whole = |name: &String| name.ends_with(".cubin") || name.ends_with(".json");
        assert!(kept_now.iter().all(is_whole), "{at}: {kept_now:?}");
        assert_eq!(processes_in(&place), Vec::<String>::new(), "{at}");
    }
    assert!(ended * 2 >= count, "only {ended} of {count} were still running");
}

/// Nobody can take away what a process leaves that is killed, so that it must not matter.
#[test]
fn killed_at_any_moment_it_leaves_a_whole_folder_or_none_and_a_cache_to_go_on_with() {
    const KILLS: u32 = 12;
    let Whole { took, complete, .. } = &*WHOLE;

    let mut killed = 0;
    for round in 0..KILLS {
        let (place, mut child) = started();
        let moment = *took * (round + 1) / (KILLS + 1);
        std::thread::sleep(moment);
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        let at = format!("killed after {moment:?}");
        assert_eq!(processes_in(&place), Vec::<String>::new(), "{at}");
        let left = place.path(OUTPUT);
        assert!(!left.exists() || files(&left) == *complete, "{at}: {:?}", files(&left));
        let mut again = place.command(&arguments());
        let again = again.env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
        let said = String::from_utf8_lossy(&again.stderr);
        assert!(again.status.success() && said.is_empty(), "{at}: {}: {said}", again.status);
        assert_eq!(files(&left), *complete, "{at}");
    }
    assert!(killed * 2 >= KILLS, "only {killed} of {KILLS} were still running");
}

#[test]
fn an_unfinished_folder_is_taken_away() {
    let arguments = format!("gen {} --no-compile --packed --candidates 300", matrix("beam.mtx"));
    for (signal, number) in SIGNALS {
        // On a busy machine it may have written everything before the signal comes.
        let caught = (0..20).any(|_| {
            let place = Place::new();
            let mut child = place.command(&arguments).spawn().unwrap();
            while place.names("").is_empty() {
                assert!(child.try_wait().unwrap().is_none(), "ended before it wrote");
                std::thread::sleep(Duration::from_millis(1));
            }
            send(signal, &child);
            let status = child.wait().unwrap();
            if status.success() {
                return false;
            }
            assert_eq!(status.signal(), Some(number));
            assert_eq!(place.names(""), [""; 0]);
            true
        });
        assert!(caught, "{signal} never came in time");
    }
}

#[test]
fn what_a_run_was_started_to_ignore_it_ignores() {
    let place = Place::new();
    let arguments = format!("gen {} --no-compile --packed --candidates 100", matrix("beam.mtx"));
    let program = place.command(&arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(program.get_program());
    shell.args(program.get_args()).current_dir(place.path("")).stdout(Stdio::null());
    let mut child = shell.spawn().unwrap();
    while place.names("").is_empty() {
        assert!(child.try_wait().unwrap().is_none(), "ended before it wrote");
        std::thread::sleep(Duration::from_millis(1));
    }
    send("HUP", &child);
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
}

/// All that a run may be: loading, search, compiling in several processes, emulation, writing.
fn arguments() -> String {
    format!("gen {} --candidates 4 --packed -o {OUTPUT}", matrix("rmat10.mtx.gz"))
}

/// Starts such a run in a process group of its own.
fn started() -> (Place, Child) {
    let place = Place::new();
    let mut command = place.command(&arguments());
    // Where there is a GPU, the run is the same.
    command.env("CUDA_VISIBLE_DEVICES", "").process_group(0);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    (place, child)
}

fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
}

/// The files and empty folders below a folder.
fn files(folder: &Path) -> BTreeSet<String> {
    fn collect(folder: &Path, prefix: &str, into: &mut BTreeSet<String>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let before = into.len();
        for entry in entries {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                collect(&entry.path(), &format!("{name}/"), into);
            } else {
                into.insert(name);
            }
        }
        if into.len() == before && !prefix.is_empty() {
            into.insert(prefix.to_owned());
        }
    }
    let mut names = BTreeSet::new();
    collect(folder, "", &mut names);
    names
}

/// Processes that work in a place, once those that were killed had the time to go.
#[cfg(target_os = "linux")]
fn processes_in(place: &Place) -> Vec<String> {
    let folder = place.path("").canonicalize().unwrap();
    let patience = Instant::now() + Duration::from_secs(10);
    loop {
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let is_there = |entry: &fs::DirEntry| {
            fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder)
        };
        let found: Vec<_> = entries
            .filter(is_there)
            .map(|entry| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default())
            .collect();
        if found.is_empty() || Instant::now() > patience {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(not(target_os = "linux"))]
fn processes_in(_: &Place) -> Vec<String> {
    Vec::new()
}
