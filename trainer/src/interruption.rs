//! Ends a command between two steps.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Whether the user or the system has asked the program to end.
#[derive(Clone, Debug)]
pub(crate) struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// Watches from now on: the first signal is noted, the second one ends the program at once.
    pub(crate) fn watch() -> io::Result<Self> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&interrupted))?;
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        Ok(Self(interrupted))
    }

    pub(crate) fn was_asked_for(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
