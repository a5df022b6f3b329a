//! Leaves nothing half written when the run is interrupted (SIGINT, SIGTERM, SIGHUP): a file that
//! is being written is written to its end, an unfinished folder is taken away. Before anything is
//! written, an interruption just ends the process. The processes that compile and measure end with
//! it. A run that has something to show at any time can ask to be told of the first interruption
//! instead.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// What must not stay.
static PENDING: Mutex<Option<Pending>> = Mutex::new(None);

/// An unfinished folder, and the folders that were made for it to lie in.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) folder: PathBuf,
    /// The innermost first.
    pub(crate) made: Vec<PathBuf>,
}

impl Pending {
    /// Takes it away, except folders that somebody has put something into meanwhile.
    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.folder);
        self.remove_made();
    }

    /// Takes away what was made around it.
    pub(crate) fn remove_made(&self) {
        for folder in &self.made {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// The folders of a path that are not there, the innermost first.
pub(crate) fn missing(path: &Path) -> Vec<PathBuf> {
    let is_missing = |p: &&Path| !p.as_os_str().is_empty() && !p.exists();
    path.ancestors().take_while(is_missing).map(Path::to_owned).collect()
}

/// Whether the first interruption is noted only, and whether there was one.
static PATIENT: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on the first interruption ends nothing: [`was_asked_for`] says that there was one. The
/// next one ends the process.
pub(crate) fn wait_for_end() {
    PATIENT.store(true, Ordering::Relaxed);
    drop(watch());
}

/// Whether the run was asked to end since [`wait_for_end`].
pub(crate) fn was_asked_for() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// What to take away, if anything. While the guard lives an interruption waits, so that a file is
/// written to its end, and nothing is written into a folder that is being removed.
pub(crate) fn watch() -> MutexGuard<'static, Option<Pending>> {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(install);
    lock()
}

fn lock() -> MutexGuard<'static, Option<Pending>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Without a handler, which is not to be expected, an interruption leaves the folder.
#[cfg(unix)]
fn install() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    // Whoever started this run, such as `nohup` or a shell that runs it in the background, may have
    // had a signal ignored: it stays so.
    let ignored = ignored_signals();
    let heeded = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !ignored.contains(signal));
    let heeded: Vec<i32> = heeded.collect();
    let (heeding, heeds) = std::sync::mpsc::channel::<()>();
    // Where the system refuses a thread no signal may be taken, since nobody would heed it.
    let heed = std::thread::Builder::new().spawn(move || {
        let Ok(mut signals) = Signals::new(heeded) else { return };
        drop(heeding);
        for signal in signals.forever() {
            if PATIENT.load(Ordering::Relaxed) && !ASKED.swap(true, Ordering::Relaxed) {
                continue;
            }
            let pending = lock();
            if let Some(unfinished) = &*pending {
                unfinished.remove();
            }
            end_by(signal);
        }
    });
    if heed.is_ok() {
        // Ends when the signals are taken.
        let _ = heeds.recv();
    }
}

/// Ends the process as the signal would have: whoever waits for it sees which it was.
///
/// `std::process::exit` would run the exit handlers of every library that is loaded, among them
/// CUDA's driver and ONNX Runtime, while other threads are still within those libraries.
#[cfg(unix)]
fn end_by(signal: i32) -> ! {
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    // Not reached where the signal can be raised; the exit code is a shell's for such an end.
    signal_hook::low_level::exit(128 + signal)
}

/// The signals that this process was started to ignore, as far as the system tells.
#[cfg(unix)]
fn ignored_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..=64).filter(|signal| mask >> (signal - 1) & 1 == 1).collect()
}

#[cfg(not(unix))]
fn install() {}
