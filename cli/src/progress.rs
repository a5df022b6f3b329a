//! Says on a terminal what is going on, once it takes long.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// The steps of one run, as one line on standard error that goes away at the end. Where that is no
/// terminal, nothing is shown.
pub(crate) struct Progress {
    bar: ProgressBar,
    waiter: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Counts `steps` steps; `shown` says whether anything may be shown.
    pub(crate) fn new(steps: usize, shown: bool) -> Self {
        let target = ProgressDrawTarget::hidden();
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
        // The template is constant; the default style would do as well.
        if let Ok(style) = ProgressStyle::with_template("{spinner} [{pos}/{len}] {msg} ({elapsed})")
        {
            bar.set_style(style);
        }
        let wait = || {
            let (stop, stopped) = mpsc::channel();
            let late = bar.clone();
            let thread = thread::Builder::new().spawn(move || {
                if stopped.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    late.set_draw_target(ProgressDrawTarget::stderr());
                    late.enable_steady_tick(TICK);
                }
            });
            // Without a thread nothing is shown.
            Some((stop, thread.ok()?))
        };
        let waiter = if shown { wait() } else { None };
        Self { bar, waiter }
    }

    /// Begins the next step.
    pub(crate) fn step(&self, what: impl Into<String>) {
        let what = what.into();
        log::info!("{what}");
        self.bar.inc(1);
        self.bar.set_message(what);
    }

    /// Leaves out steps that are not needed.
    pub(crate) fn pass(&self, steps: usize) {
        self.bar.inc(steps as u64);
    }

    /// Takes the line away while `print` prints something that stays.
    pub(crate) fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.suspend(print)
    }
}

impl Drop for Progress {
    /// Takes the line away, whether the work succeeded or not, so that nothing is printed into it.
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.waiter.take() {
            drop(stop);
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}
