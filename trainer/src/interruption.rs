//! Ends a command between two steps.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Whether the user or the system has asked the program to end.
#[derive(Clone, Debug)]
pub(crate) struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// Watches from now on: the first signal is noted, the second one ends the program at once. All
    /// steps of a command share one watch, so that none misses a signal that another one saw.
    pub(crate) fn watch() -> io::Result<Self> {
        static WATCH: Mutex<Option<Interruption>> = Mutex::new(None);
        let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*watch {
            return Ok(known.clone());
        }
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&interrupted))?;
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        Ok(watch.insert(Self(interrupted)).clone())
    }

    pub(crate) fn was_asked_for(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
