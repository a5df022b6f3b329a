//! Who is to blame where the device is lost.

use std::cell::RefCell;
use std::io;

use sparserl_core::outcome::Outcome;

use super::super::protocol::{Answer, Request, Running};
use crate::compare::Opponent;
use crate::isolate::Connection;
use crate::run::device::Stream;

/// The device can no longer be used by this process, because of one of the kernels that were timed.
pub(super) struct Lost(pub(super) Outcome);

impl Lost {
    pub(super) fn while_timing() -> Self {
        Self(Outcome::Faulted { reason: "the device was lost while it was timed".to_owned() })
    }

    pub(super) fn to_an_opponent() -> Self {
        let reason = "the device was lost while it was made ready".to_owned();
        Self(Outcome::Faulted { reason })
    }
}

/// Tells the worker whose code runs, by which it knows who took this process down.
pub(super) struct Announcer<'a> {
    client: RefCell<&'a mut Connection<Request, Answer>>,
    stream: &'a Stream,
}

impl<'a> Announcer<'a> {
    pub(super) fn new(client: &'a mut Connection<Request, Answer>, stream: &'a Stream) -> Self {
        Self { client: RefCell::new(client), stream }
    }

    /// From now on the code of `next` runs. Where the device is lost already, whoever was announced
    /// then stays it.
    pub(super) fn announce(&self, next: Running) {
        if self.stream.is_broken() {
            return;
        }
        // That the worker is gone shows with the next answer.
        let _ = self.client.borrow_mut().send(&Answer::Running(next), &[]);
    }

    pub(super) fn announce_opponent(&self, opponent: &Opponent) {
        self.announce(Running::Opponent(Box::new(opponent.clone())));
    }

    /// Says that the device is lost, through whoever was announced last.
    pub(super) fn lose(&self, Lost(outcome): Lost) -> io::Result<()> {
        self.client.borrow_mut().send(&Answer::Judged { ended: Some(outcome) }, &[])
    }
}
