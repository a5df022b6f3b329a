//! A socket, which the child has as its standard input. Its standard output is thrown away, so that
//! nothing printed there, as by a kernel's `printf`, can get between frames.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The parent's end of a channel whose child is not there yet.
pub(in super::super) struct Unstarted(UnixStream);

impl Unstarted {
    /// Gives the other end to the child that the command starts.
    pub(in super::super) fn new(command: &mut Command) -> io::Result<Self> {
        let (stream, theirs) = UnixStream::pair()?;
        // A dead child must not send a signal to a host program that does not ignore it.
        #[cfg(target_vendor = "apple")]
        rustix::net::sockopt::set_socket_nosigpipe(&stream, true)?;
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        // A terminal interrupts the processes of a group: that is for the parent to hear, which
        // may want to finish its work first. The child ends with it in any case.
        command.process_group(0);
        Ok(Self(stream))
    }

    /// The end for the child that was started.
    pub(in super::super) fn started(self, _: &mut Child) -> io::Result<ParentEnd> {
        Ok(ParentEnd(self.0))
    }
}

/// The parent's end.
pub(in super::super) struct ParentEnd(UnixStream);

impl ParentEnd {
    /// The end, until a deadline, however many reads and writes it takes.
    pub(in super::super) fn until(&mut self, deadline: Instant) -> Timed<'_> {
        Timed { stream: &self.0, deadline }
    }
}

/// An end with a deadline.
pub(in super::super) struct Timed<'a> {
    stream: &'a UnixStream,
    deadline: Instant,
}

impl Timed<'_> {
    /// Repeats `call` while it is cut short before the deadline.
    fn until_deadline(
        &self,
        set_timeout: impl Fn(Option<Duration>) -> io::Result<()>,
        mut call: impl FnMut() -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            set_timeout(Some(left))?;
            match call() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.stream;
        self.until_deadline(|left| self.stream.set_read_timeout(left), || stream.read(buffer))
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_deadline(
            |left| self.stream.set_write_timeout(left),
            || write(self.stream, bytes),
        )
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes without a signal where the child is dead.
#[cfg(not(target_vendor = "apple"))]
fn write(stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    use rustix::net::{SendFlags, send};

    Ok(send(stream, bytes, SendFlags::NOSIGNAL)?)
}

#[cfg(target_vendor = "apple")]
fn write(mut stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    stream.write(bytes)
}

/// The child's end.
pub(in super::super) struct ChildEnd(UnixStream);

impl ChildEnd {
    /// The end that the parent left as standard input.
    ///
    /// # Errors
    /// When standard input is no socket, as when the program was started by hand.
    pub(in super::super) fn inherited() -> io::Result<Self> {
        // Also where this process hangs. That the parent died before this line, and elsewhere that
        // it died at all, shows as the end of the stream.
        #[cfg(target_os = "linux")]
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        stream.peer_addr()?;
        Ok(Self(stream))
    }

    #[cfg(test)]
    pub(in super::super) fn pair() -> io::Result<(UnixStream, Self)> {
        let (parent, child) = UnixStream::pair()?;
        Ok((parent, Self(child)))
    }
}

impl Read for ChildEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for ChildEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
