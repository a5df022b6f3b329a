//! The parent's end of a connection, and the child behind it.

use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::marker::PhantomData;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(unix)]
use rustix::process::{Pid, WaitOptions, waitpid};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ServerCommand;
use super::channel::{ParentEnd, Unstarted};
use super::frame::{self, Blobs, FrameError};

/// How much of the child's standard error is kept, in bytes.
const KEPT_STDERR: usize = 4096;

/// How long a child whose connection ended may take to exit by itself, and a killed one to be gone.
const GRACE: Duration = Duration::from_secs(1);

/// What the child may use, where the system can limit it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Bytes of address space. Not for CUDA, which reserves far more than it uses.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) address_space: Option<u64>,
}

/// A child process that takes requests of `Q` and gives answers of `A`. Killed when dropped.
///
/// After an error the child is gone and every call fails: start another.
pub(crate) struct ServingProcess<Q, A> {
    child: Child,
    state: State,
    channel: ParentEnd,
    stderr: Tail,
    kinds: PhantomData<fn(Q) -> A>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Running,
    Ended(ExitStatus),
    /// Killed, but the kernel does not let go of it, as when a driver hangs. Somebody else waits
    /// for it.
    Stuck,
}

/// A serving process did not do its work. It is gone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServingError {
    /// It did not start.
    #[error("cannot start `{program}` as a serving process: {source}")]
    Start {
        /// The program.
        program: String,
        /// The reason.
        source: io::Error,
    },
    /// The deadline passed. It was killed.
    #[error("a serving process did not answer in time")]
    TimedOut,
    /// It ended, or was ended, before it had answered.
    #[error("a serving process died ({status}){}", last_lines(stderr))]
    Died {
        /// Its exit code or signal.
        status: String,
        /// Whether it ended by itself: a signal is what too little memory, or a bug, ends it with.
        has_exited: bool,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
    /// What it said, or what was to be said, is no message. It was killed.
    #[error("a serving process cannot be talked to: {reason}")]
    Protocol {
        /// What is wrong.
        reason: String,
    },
}

impl<Q: Serialize, A: DeserializeOwned> ServingProcess<Q, A> {
    /// Starts a child in `role`. That it cannot serve shows with the first answer.
    pub(crate) fn start(
        command: &ServerCommand,
        role: &[&str],
        limits: Limits,
    ) -> Result<Self, ServingError> {
        let start = || -> io::Result<Self> {
            let mut child = Command::new(&command.program);
            child.args(&command.arguments).args(role).stderr(Stdio::piped());
            child.envs(command.environment.iter().copied());
            let channel = Unstarted::new(&mut child)?;
            let mut child = spawn(child)?;
            let channel = channel.started(&mut child)?;
            let stderr = Tail::of(child.stderr.take());
            let state = State::Running;
            let server = Self { child, state, channel, stderr, kinds: PhantomData };
            // It has had no request yet, so it cannot have used much. On failure it is dropped and
            // thereby killed.
            limits.apply(&server.child)?;
            Ok(server)
        };
        start().map_err(|source| ServingError::Start {
            program: command.program.display().to_string(),
            source,
        })
    }

    /// Sends a request with its blobs.
    pub(crate) fn send(
        &mut self,
        request: &Q,
        blobs: &[&[u8]],
        deadline: Instant,
    ) -> Result<(), ServingError> {
        self.check_running()?;
        frame::write(&mut self.channel.until(deadline), request, blobs)
            .map_err(|error| self.fail(error))
    }

    /// Waits for an answer with its blobs.
    pub(crate) fn receive(&mut self, deadline: Instant) -> Result<(A, Blobs), ServingError> {
        self.check_running()?;
        let answer =
            frame::read(&mut self.channel.until(deadline)).map_err(|error| self.fail(error))?;
        answer.ok_or_else(|| self.died())
    }
}

impl<Q, A> ServingProcess<Q, A> {
    /// Kills the child and waits until it is gone. Harmless when it is.
    pub(crate) fn kill(&mut self) {
        if !matches!(self.state, State::Running) {
            return;
        }
        // Fails only where there is nothing left to kill.
        let _ = self.child.kill();
        self.wait();
        if matches!(self.state, State::Running) {
            #[cfg(unix)]
            {
                let pid = Pid::from_child(&self.child);
                let wait = move || waitpid(Some(pid), WaitOptions::empty());
                // Without the thread it stays a zombie until this process ends.
                let _ = thread::Builder::new().spawn(wait);
            }
            self.state = State::Stuck;
        }
    }

    /// The child's process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn check_running(&mut self) -> Result<(), ServingError> {
        if matches!(self.state, State::Running) { Ok(()) } else { Err(self.died()) }
    }

    fn fail(&mut self, error: FrameError) -> ServingError {
        let error = match error {
            FrameError::Malformed(reason) => ServingError::Protocol { reason },
            FrameError::Stream(error) => match error.kind() {
                ErrorKind::TimedOut => ServingError::TimedOut,
                ErrorKind::OutOfMemory => ServingError::Protocol { reason: error.to_string() },
                _ => return self.died(),
            },
        };
        // Half a message may be on its way: the connection is of no use any more.
        self.kill();
        error
    }

    /// The connection has ended. Leaves the child the time to end by itself, which says why, before
    /// it is killed.
    fn died(&mut self) -> ServingError {
        self.wait();
        self.kill();
        let (status, has_exited) = match self.state {
            State::Ended(status) => (status.to_string(), status.code().is_some()),
            State::Running | State::Stuck => ("killed, but still there".to_owned(), false),
        };
        ServingError::Died { status, has_exited, stderr: self.stderr.text() }
    }

    /// Waits for the child's end, for a while.
    fn wait(&mut self) {
        let patience = Instant::now() + GRACE;
        let mut pause = Duration::from_micros(100);
        while matches!(self.state, State::Running) {
            match self.child.try_wait() {
                Ok(Some(status)) => self.state = State::Ended(status),
                Ok(None) if Instant::now() < patience => thread::sleep(pause),
                Ok(None) => break,
                // Somebody else has waited for it, so it is gone.
                Err(_) => self.state = State::Stuck,
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

impl<Q, A> fmt::Debug for ServingProcess<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("ServingProcess");
        fields.field("id", &self.id()).field("state", &self.state).finish_non_exhaustive()
    }
}

impl<Q, A> Drop for ServingProcess<Q, A> {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Limits {
    #[cfg(target_os = "linux")]
    fn apply(self, child: &Child) -> io::Result<()> {
        use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

        let limit = |resource, most: u64| {
            // The child has this process's limits, which only the privileged may raise.
            let inherited = getrlimit(resource);
            let current = Some(inherited.current.map_or(most, |current| current.min(most)));
            let maximum = Some(inherited.maximum.map_or(most, |maximum| maximum.min(most)));
            prlimit(Some(Pid::from_child(child)), resource, Rlimit { current, maximum })
        };
        // These children are expected to crash: no core files.
        limit(Resource::Core, 0)?;
        if let Some(bytes) = self.address_space {
            limit(Resource::As, bytes)?;
        }
        Ok(())
    }

    /// Nobody can limit another process here.
    #[cfg(not(target_os = "linux"))]
    fn apply(self, _: &Child) -> io::Result<()> {
        Ok(())
    }
}

/// Starts a child from a thread that lives as long as this process: children ask to die with their
/// parent, and for that the kernel takes the thread that started them.
fn spawn(command: Command) -> io::Result<Child> {
    type Order = (Command, mpsc::Sender<io::Result<Child>>);
    static STARTER: LazyLock<mpsc::Sender<Order>> = LazyLock::new(|| {
        let (orders, taken) = mpsc::channel::<Order>();
        // Without the thread the channel is closed, which the caller sees.
        let _ = thread::Builder::new().name("starter".to_owned()).spawn(move || {
            for (mut command, reply) in taken {
                let child = command.spawn();
                // With it goes the child's end of the connection: only the child has it now.
                drop(command);
                let _ = reply.send(child);
            }
        });
        orders
    });
    let (reply, child) = mpsc::channel();
    let no_thread = || io::Error::other("no thread to start it from");
    STARTER.send((command, reply)).map_err(|_| no_thread())?;
    child.recv().map_err(|_| no_thread())?
}

/// The end of what a child writes to its standard error, read by a thread so that the child never
/// waits.
#[derive(Debug)]
struct Tail {
    kept: Arc<Mutex<Vec<u8>>>,
    /// Hangs up when everything was read.
    complete: Receiver<()>,
}

impl Tail {
    fn of(stderr: Option<impl Read + Send + 'static>) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (reading, complete) = mpsc::channel();
        let shared = Arc::clone(&kept);
        let read = move || {
            let mut piece = [0; 1024];
            let Some(mut stderr) = stderr else { return };
            while let Ok(length @ 1..) = stderr.read(&mut piece) {
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(piece.iter().take(length));
                let surplus = kept.len().saturating_sub(KEPT_STDERR);
                kept.drain(..surplus);
            }
            drop(reading);
        };
        // Without the thread nothing is kept.
        let _ = thread::Builder::new().name("stderr".to_owned()).spawn(read);
        Self { kept, complete }
    }

    /// What there is. To be asked for when the child has ended; a process of its own may still hold
    /// the pipe.
    fn text(&self) -> String {
        let _ = self.complete.recv_timeout(GRACE);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

/// The last lines as the end of a message of one line.
fn last_lines(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.len() {
        0 => String::new(),
        count => format!(": {}", lines[count.saturating_sub(3)..].join("; ")),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
