//! What a process and a child that serves it talk over: a socket where there are such, else two
//! pipes. Both have a parent's end, whose reads and writes end at a deadline, and a child's.

#[cfg(any(not(unix), test))]
mod pipes;
#[cfg(unix)]
mod socket;

#[cfg(not(unix))]
pub(super) use pipes::{ChildEnd, ParentEnd, Unstarted};
#[cfg(unix)]
pub(super) use socket::{ChildEnd, ParentEnd, Unstarted};
