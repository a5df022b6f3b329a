//! Leaves nothing half written when the run is interrupted (SIGINT, SIGTERM): a file that is being
//! written is written to its end, an unfinished folder is taken away. Before anything is written,
//! an interruption just ends the process. The processes that compile and measure end with it. A run
//! that has something to show at any time can ask to be told of the first interruption instead.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// The folder that must not stay.
static PENDING: Mutex<Option<PathBuf>> = Mutex::new(None);

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

/// The folder to take away, if any. While the guard lives an interruption waits, so that a file is
/// written to its end, and nothing is written into a folder that is being removed.
pub(crate) fn watch() -> MutexGuard<'static, Option<PathBuf>> {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(install);
    lock()
}

fn lock() -> MutexGuard<'static, Option<PathBuf>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Without a handler, which is not to be expected, an interruption leaves the folder.
#[cfg(unix)]
#[allow(clippy::exit, reason = "the main thread cannot be stopped in any other way")]
fn install() {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if PATIENT.load(Ordering::Relaxed) && !ASKED.swap(true, Ordering::Relaxed) {
                continue;
            }
            let pending = lock();
            if let Some(folder) = &*pending {
                let _ = std::fs::remove_dir_all(folder);
            }
            // As a shell reports a process that a signal ended.
            std::process::exit(128 + signal);
        }
    });
}

#[cfg(not(unix))]
fn install() {}
