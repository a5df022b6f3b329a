//! Panics of libraries that read files: they are caught, and become an error like any other.
//!
//! Before a panic can be caught it is said on standard error, in several lines, unless the program
//! has asked for silence.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What `act` gives; nothing where it panics. What it was at work on must not be used after that.
pub fn caught<R>(act: impl FnOnce() -> R) -> Option<R> {
    let outer = IS_CAUGHT.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(act));
    IS_CAUGHT.set(outer);
    result.ok()
}

/// From now on this process says nothing of panics that [`caught`] catches. For programs, when they
/// begin: what is said of panics is not a library's to decide.
pub fn hide_caught() {
    let say = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if !IS_CAUGHT.get() {
            say(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;

    use super::*;

    #[test]
    fn only_panics_that_nobody_catches_are_said() {
        // Other tests may panic meanwhile.
        static SAID_OF: Mutex<Vec<thread::ThreadId>> = Mutex::new(Vec::new());
        let hook = panic::take_hook();
        panic::set_hook(Box::new(|_| SAID_OF.lock().unwrap().push(thread::current().id())));
        hide_caught();
        let nothing: [u8; 0] = [];
        let empty = std::hint::black_box(nothing.as_slice());
        let inner = caught(|| caught(|| empty[0]).is_none());
        let outer = caught(|| empty[1]);
        let (other, ended) = thread::scope(|scope| {
            let panics = scope.spawn(|| empty[2]);
            (panics.thread().id(), panics.join())
        });
        panic::set_hook(hook);
        assert_eq!((inner, outer), (Some(true), None));
        assert!(ended.is_err());
        let said_of = SAID_OF.lock().unwrap();
        assert!(said_of.contains(&other) && !said_of.contains(&thread::current().id()));
    }
}
