//! The child's standard input and output. A thread for each waits for the child in the parent's
//! place, which therefore can stop waiting. There are no GPUs where this is used, so no kernel
//! prints between frames.

use std::io::{self, ErrorKind, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Instant;

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// The parent's end of a channel whose child is not there yet.
pub(in super::super) struct Unstarted;

impl Unstarted {
    /// Has the command start its child with pipes.
    pub(in super::super) fn new(command: &mut Command) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Ok(Self)
    }

    /// The end for the child that was started.
    pub(in super::super) fn started(self, child: &mut Child) -> io::Result<ParentEnd> {
        let (Some(mut to), Some(mut from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the child has no pipes"));
        };
        let (requests, written) = (mpsc::channel::<Vec<u8>>(), mpsc::channel());
        let (reports, pieces) = (written.0, mpsc::channel());
        let taken = requests.1;
        thread::Builder::new().name("to a server".to_owned()).spawn(move || {
            for bytes in taken {
                if reports.send(to.write_all(&bytes)).is_err() {
                    break;
                }
            }
        })?;
        let arrived = pieces.0;
        thread::Builder::new().name("from a server".to_owned()).spawn(move || {
            let mut piece = vec![0; PIECE];
            loop {
                let read = from.read(&mut piece).map(|length| piece[..length].to_vec());
                let is_last = read.as_ref().map_or(true, Vec::is_empty);
                if arrived.send(read).is_err() || is_last {
                    break;
                }
            }
        })?;
        Ok(ParentEnd { to: requests.0, written: written.1, from: pieces.1, rest: Vec::new() })
    }
}

/// The parent's end.
pub(in super::super) struct ParentEnd {
    to: Sender<Vec<u8>>,
    /// What became of each request.
    written: Receiver<io::Result<()>>,
    from: Receiver<io::Result<Vec<u8>>>,
    /// What has arrived and was not read yet.
    rest: Vec<u8>,
}

impl ParentEnd {
    /// The end, until a deadline, however many reads and writes it takes.
    pub(in super::super) fn until(&mut self, deadline: Instant) -> Timed<'_> {
        Timed { end: self, deadline }
    }
}

/// An end with a deadline.
pub(in super::super) struct Timed<'a> {
    end: &'a mut ParentEnd,
    deadline: Instant,
}

/// What comes before the deadline; `None` where nothing comes any more.
fn receive<T>(from: &Receiver<io::Result<T>>, deadline: Instant) -> io::Result<Option<T>> {
    match from.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(received) => received.map(Some),
        Err(RecvTimeoutError::Timeout) => Err(ErrorKind::TimedOut.into()),
        Err(RecvTimeoutError::Disconnected) => Ok(None),
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.end.rest.is_empty() {
            self.end.rest = receive(&self.end.from, self.deadline)?.unwrap_or_default();
        }
        let length = buffer.len().min(self.end.rest.len());
        for (to, from) in buffer.iter_mut().zip(self.end.rest.drain(..length)) {
            *to = from;
        }
        Ok(length)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let broken = || io::Error::from(ErrorKind::BrokenPipe);
        self.end.to.send(bytes.to_vec()).map_err(|_| broken())?;
        receive(&self.end.written, self.deadline)?.ok_or_else(broken)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The child's end.
#[cfg(not(unix))]
pub(in super::super) struct ChildEnd;

#[cfg(not(unix))]
impl ChildEnd {
    /// The end that the parent left as standard input and output.
    ///
    /// # Errors
    /// When the program was started by hand.
    pub(in super::super) fn inherited() -> io::Result<Self> {
        use std::io::IsTerminal as _;

        if io::stdin().is_terminal() || io::stdout().is_terminal() {
            return Err(io::Error::other("standard input and output are no pipes"));
        }
        Ok(Self)
    }
}

#[cfg(not(unix))]
impl Read for ChildEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        io::stdin().read(buffer)
    }
}

#[cfg(not(unix))]
impl Write for ChildEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stdout = io::stdout();
        let length = stdout.write(bytes)?;
        // Standard output waits for the end of a line.
        stdout.flush()?;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn start(script: &str) -> (Child, ParentEnd) {
        let mut command = Command::new("sh");
        let channel = Unstarted::new(command.args(["-c", script])).unwrap();
        let mut child = command.spawn().unwrap();
        let end = channel.started(&mut child).unwrap();
        (child, end)
    }

    fn in_time() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn what_is_written_comes_back() {
        let (mut child, mut end) = start("cat");
        let bytes: Vec<u8> = (0..1 << 20).map(|i: u32| (i % 251) as u8).collect();
        end.until(in_time()).write_all(&bytes).unwrap();
        let mut back = vec![0; bytes.len()];
        end.until(in_time()).read_exact(&mut back).unwrap();
        assert!(back == bytes);
        drop(end);
        assert!(child.wait().unwrap().success(), "it sees the end");
    }

    #[test]
    fn nobody_waits_past_the_deadline() {
        let (mut child, mut end) = start("exec sleep 60");
        let soon = || Instant::now() + Duration::from_millis(100);
        let error = end.until(soon()).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        // More than a pipe holds.
        let error = end.until(soon()).write_all(&vec![0; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn the_end_of_a_child_is_the_end_of_the_stream() {
        let (mut child, mut end) = start("printf x");
        let mut all = Vec::new();
        end.until(in_time()).read_to_end(&mut all).unwrap();
        assert_eq!(all, b"x");
        child.wait().unwrap();
        let written = (0..100).map(|_| end.until(in_time()).write_all(&[0; 1 << 16]));
        assert!(written.into_iter().any(|written| written.is_err()));
    }
}
