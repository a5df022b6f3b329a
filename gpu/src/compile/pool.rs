//! Compiling in several processes at once.
//!
//! ```text
//! CompilePool::compile ─► CubinCache ──(not kept)──► a free process ─► NVRTC
//! ```
//!
//! NVRTC does not scale with threads, and a source can make it run without end, fill the memory or
//! overflow the stack. Here that happens to a process, which is replaced, and it is an outcome of
//! that source: the others go on.

mod message;
mod record;
mod serving;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use message::CompileTarget;
pub(crate) use message::ROLE;
use message::{Answer, Build, Failure, Request};
use record::RecordFile;
pub(crate) use serving::serve;

use crate::compile::cache::{CubinCache, Fetched, Key, Origin};
use crate::compile::nvrtc::{
    CompileError, CompileOptions, Cubin, CubinParts, NoCompiler, UnsupportedByAll, Version,
};
use crate::isolate::{Limits, ServerCommand, ServingError, ServingProcess};

/// How long one source may be compiled, unless [`CompilePool::with_deadline`] says otherwise.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// What the address space of one process may grow to in bytes, unless
/// [`CompilePool::with_address_space`] says otherwise. Kernels written here take 160 MiB, most of
/// it the compiler itself.
pub const ADDRESS_SPACE: u64 = 4 << 30;

type Compiler = ServingProcess<Request, Answer>;

/// Processes that compile, with a cache before them.
///
/// They find their compilers as [`Compilers::discover`](crate::compile::nvrtc::Compilers::discover)
/// does, and end with the pool.
#[derive(Debug)]
pub struct CompilePool {
    command: ServerCommand,
    cache: Option<CubinCache>,
    deadline: Duration,
    address_space: u64,
    /// Whether its program is known to serve.
    has_answered: AtomicBool,
    free: Mutex<Free>,
    /// Somebody has returned a permit.
    returned: Condvar,
    /// The builds of the compilers that were asked for.
    builds: Mutex<HashMap<CompileTarget, Arc<Build>>>,
}

/// A source to compile.
#[derive(Clone, Copy, Debug)]
pub struct CompileRequest<'r> {
    /// Its text.
    pub source: &'r str,
    /// The name of its kernel.
    pub kernel: &'r str,
    /// What code is made for.
    pub target: CompileTarget,
    /// How.
    pub options: &'r CompileOptions,
    /// When to give up, if that comes before the pool's deadline.
    pub until: Option<Instant>,
}

impl<'r> CompileRequest<'r> {
    /// A request that only the pool's deadline ends.
    #[must_use]
    pub fn new(
        source: &'r str,
        kernel: &'r str,
        target: CompileTarget,
        options: &'r CompileOptions,
    ) -> Self {
        Self { source, kernel, target, options, until: None }
    }
}

/// What nobody uses at the moment.
#[derive(Debug)]
struct Free {
    /// How many more processes may work.
    permits: usize,
    /// Processes that are started and have nothing to do, at most `permits`.
    idle: Vec<Compiler>,
}

impl CompilePool {
    /// A pool of at most `processes`, each started by `command` in the role `compile`, with `cache`
    /// before them.
    ///
    /// One process is started now, the others when they are needed.
    ///
    /// # Errors
    /// When a process cannot be started, or finds no compiler.
    pub fn start(
        command: ServerCommand,
        processes: NonZeroUsize,
        cache: Option<CubinCache>,
    ) -> Result<Self, PoolError> {
        let pool = Self::open(command, processes, cache);
        match pool.ask(&Request::Discover, None) {
            Ok((Answer::Discovered(found), _)) => {
                for (version, path) in found {
                    log::debug!("found NVRTC {version}: {}", path.display());
                }
                Ok(pool)
            }
            Ok(_) => Err(PoolError::Process { reason: unexpected().to_string() }),
            Err(PoolCompileError::Pool(error)) => Err(error),
            Err(error) => Err(PoolError::Process { reason: error.to_string() }),
        }
    }

    /// Makes a pool whose first process is started when it is needed: that there is no compiler
    /// shows only then.
    #[must_use]
    pub fn open(
        command: ServerCommand,
        processes: NonZeroUsize,
        cache: Option<CubinCache>,
    ) -> Self {
        Self {
            // A kernel takes a compiler 7 MB, freed after each: 1,800 page faults.
            command: command.keeping_freed_memory(),
            cache,
            deadline: DEADLINE,
            address_space: ADDRESS_SPACE,
            has_answered: AtomicBool::new(false),
            free: Mutex::new(Free { permits: processes.get(), idle: Vec::new() }),
            returned: Condvar::new(),
            builds: Mutex::new(HashMap::new()),
        }
    }

    /// Gives every source this long, also where a second process tries after the first crashed.
    /// Waiting for a free process does not count.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Lets the address space of each process grow to `bytes`.
    #[must_use]
    pub fn with_address_space(self, bytes: u64) -> Self {
        // Started under the other limit.
        lock(&self.free).idle.clear();
        Self { address_space: bytes, ..self }
    }

    /// What [`Nvrtc::compile`](crate::compile::nvrtc::Nvrtc::compile) makes of a source, by the
    /// newest compiler that knows the architecture and whose machine code the driver loads, if
    /// there is one.
    ///
    /// Can be called from many threads at once; waits for a free process, unless the result is in
    /// the cache.
    ///
    /// # Errors
    /// [`PoolCompileError`] says whether the source is at fault. Failures are not kept.
    pub fn compile(&self, wanted: CompileRequest<'_>) -> Result<Fetched, PoolCompileError> {
        let CompileRequest { source, kernel, target, options, until } = wanted;
        let compile = || {
            log::debug!("compiling {kernel} for {}", target.architecture);
            let (source, kernel) = (source.to_owned(), kernel.to_owned());
            let request = Request::Compile { source, kernel, target, options: options.clone() };
            match self.ask(&request, until)? {
                (Answer::Compiled(parts), Some(bytes)) => {
                    Ok(Cubin::new(CubinParts { bytes, ..parts }))
                }
                _ => Err(unexpected()),
            }
        };
        let Some(cache) = &self.cache else {
            return Ok(Fetched { cubin: compile()?, origin: Origin::Compiled });
        };
        let build = self.build(target)?;
        let arguments = options.cubin_arguments(target.architecture);
        cache.fetch(&Key { source, kernel, arguments: &arguments, build: &build.id }, compile)
    }

    /// What [`Nvrtc::compile_ptx`](crate::compile::nvrtc::Nvrtc::compile_ptx) makes of a source, by
    /// the compiler that [`compile`](Self::compile) takes. PTX is not kept: it is made four
    /// times faster than machine code, and few kernels are emulated twice.
    ///
    /// # Errors
    /// As [`compile`](Self::compile), except that a missing kernel goes unnoticed.
    pub fn compile_ptx(&self, wanted: CompileRequest<'_>) -> Result<String, PoolCompileError> {
        let CompileRequest { source, kernel, target, options, until } = wanted;
        let (source, kernel) = (source.to_owned(), kernel.to_owned());
        let request = Request::CompilePtx { source, kernel, target, options: options.clone() };
        match self.ask(&request, until)? {
            (Answer::Ptx, Some(ptx)) => String::from_utf8(ptx).map_err(|_| unexpected()),
            _ => Err(unexpected()),
        }
    }

    /// The version of the compiler that [`compile`](Self::compile) takes.
    ///
    /// # Errors
    /// When none suits, or when even an empty kernel does not compile.
    pub fn version(&self, target: CompileTarget) -> Result<Version, PoolCompileError> {
        Ok(self.build(target)?.version)
    }

    /// The exact build of the compiler that [`compile`](Self::compile) takes, patch level included.
    ///
    /// # Errors
    /// As [`version`](Self::version).
    pub fn build_id(&self, target: CompileTarget) -> Result<String, PoolCompileError> {
        Ok(self.build(target)?.id.clone())
    }

    /// The exact build of the compiler for `target`, which only a process can tell; what it told is
    /// kept with the cubins.
    fn build(&self, target: CompileTarget) -> Result<Arc<Build>, PoolCompileError> {
        // Held while asking: the other threads would only ask the same.
        let mut builds = lock(&self.builds);
        if let Some(build) = builds.get(&target) {
            return Ok(Arc::clone(build));
        }
        let file = self.cache.as_ref().map(|cache| RecordFile::new(cache, &self.command, target));
        let build = match file.as_ref().and_then(RecordFile::read) {
            Some(build) => build,
            None => {
                let (Answer::Build(build, looked), _) = self.ask(&Request::Build(target), None)?
                else {
                    return Err(unexpected());
                };
                if let (Some(file), Some(looked)) = (file, looked) {
                    file.keep(&build, looked);
                }
                build
            }
        };
        Ok(Arc::clone(builds.entry(target).or_insert(Arc::new(build))))
    }

    /// Has a free process answer until then or the pool's deadline, with the blob that follows.
    ///
    /// A process that has worked before may fail for what it did then, so that another is asked
    /// after it, in the time that is left.
    fn ask(
        &self,
        request: &Request,
        until: Option<Instant>,
    ) -> Result<(Answer, Option<Vec<u8>>), PoolCompileError> {
        let mut permit = self.wait_for_permit();
        let limit = Limit::new(self.deadline, until);
        if limit.until <= Instant::now() {
            return Err(limit.passed());
        }
        if let Some(used) = permit.process.take() {
            match self.ask_process(used, request, limit, &mut permit) {
                Err(
                    PoolCompileError::Crashed { .. }
                    | PoolCompileError::Pool(PoolError::Process { .. })
                    | PoolCompileError::Compile(CompileError::Nvrtc(_)),
                ) => {}
                done => return done,
            }
        }
        let limits = Limits { address_space: Some(self.address_space) };
        let fresh = ServingProcess::start(&self.command, &[ROLE], limits)
            .map_err(|error| PoolError::Process { reason: error.to_string() })?;
        log::debug!("process {} compiles", fresh.id());
        self.ask_process(fresh, request, limit, &mut permit)
    }

    /// Leaves the process with the permit if it can go on.
    fn ask_process(
        &self,
        mut process: Compiler,
        request: &Request,
        limit: Limit,
        permit: &mut Permit<'_>,
    ) -> Result<(Answer, Option<Vec<u8>>), PoolCompileError> {
        let Limit { until, .. } = limit;
        let answer = process.send(request, &[], until).and_then(|()| process.receive(until));
        let answer = answer.map_err(|error| match error {
            ServingError::TimedOut => limit.passed(),
            // After an answer it may be the source over which the compiler has ended.
            ServingError::Died { has_exited: true, .. }
                if !self.has_answered.load(Ordering::Relaxed) =>
            {
                let program = self.command.program();
                let reason = format!("`{}` does not serve: {error}", program.display());
                PoolError::Process { reason }.into()
            }
            other => PoolCompileError::Crashed { reason: other.to_string() },
        });
        let (answer, mut blobs) = answer.inspect_err(|error| log::debug!("{error}"))?;
        self.has_answered.store(true, Ordering::Relaxed);
        match answer {
            Answer::Failed(Failure::NoCompiler(error)) => Err(PoolError::NoCompiler(error).into()),
            // It may be a compiler that is out of memory or otherwise beyond repair.
            Answer::Failed(Failure::Compile(error @ CompileError::Nvrtc(_))) => Err(error.into()),
            // Its memory is full of this source, and the next would find none.
            Answer::Failed(Failure::Compile(error)) if error.is_out_of_memory() => {
                Err(PoolCompileError::Crashed { reason: error.to_string() })
            }
            answer => {
                permit.process = Some(process);
                match answer {
                    Answer::Failed(Failure::Compile(error)) => Err(error.into()),
                    Answer::Failed(Failure::Unsupported(error)) => Err(error.into()),
                    answer => Ok((answer, blobs.pop())),
                }
            }
        }
    }

    fn wait_for_permit(&self) -> Permit<'_> {
        let mut free = lock(&self.free);
        while free.permits == 0 {
            free = self.returned.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        free.permits -= 1;
        Permit { pool: self, process: free.idle.pop() }
    }
}

/// When a request has to be answered.
#[derive(Clone, Copy)]
struct Limit {
    until: Instant,
    /// How long that is.
    time: Duration,
}

impl Limit {
    /// After this time, or at another moment that comes before that.
    fn new(deadline: Duration, until: Option<Instant>) -> Self {
        let now = Instant::now();
        let left = until.map(|until| until.saturating_duration_since(now));
        let time = left.map_or(deadline, |left| left.min(deadline));
        Self { until: now + time, time }
    }

    fn passed(self) -> PoolCompileError {
        PoolCompileError::TimedOut { deadline: self.time }
    }
}

/// The right to let one process work. Given back when dropped, with the process if it is still
/// there.
struct Permit<'a> {
    pool: &'a CompilePool,
    process: Option<Compiler>,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut free = lock(&self.pool.free);
        free.permits += 1;
        free.idle.extend(self.process.take());
        drop(free);
        self.pool.returned.notify_one();
    }
}

/// What is behind these locks is whole at all times.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unexpected() -> PoolCompileError {
    PoolError::Process { reason: "it answered something else".to_owned() }.into()
}

/// Nothing can be compiled in processes. The installation is at fault.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// A process does not start, or is no compiling process.
    #[error("no process to compile in: {reason}")]
    Process {
        /// Why not.
        reason: String,
    },
    /// The processes find no compiler.
    #[error(transparent)]
    NoCompiler(#[from] NoCompiler),
}

/// A source was not compiled.
#[derive(Debug, thiserror::Error)]
pub enum PoolCompileError {
    /// The compiler says why.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// Compiling took too long.
    #[error("the compiler had not ended after {} s", deadline.as_secs_f64())]
    TimedOut {
        /// The time that it had.
        deadline: Duration,
    },
    /// The compiler died of the source: out of memory, or its stack overflowed.
    #[error("the compiler ran out of memory or stack: {reason}")]
    Crashed {
        /// How it ended.
        reason: String,
    },
    /// No compiler suits the target.
    #[error(transparent)]
    Unsupported(#[from] UnsupportedByAll),
    /// Nothing can be compiled.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

impl PoolCompileError {
    /// Whether the source is at fault, rather than the installation or the caller.
    #[must_use]
    pub fn is_sources_fault(&self) -> bool {
        match self {
            Self::Compile(error) => error.is_sources_fault(),
            Self::TimedOut { .. } | Self::Crashed { .. } => true,
            Self::Unsupported(_) | Self::Pool(_) => false,
        }
    }

    /// Whether a compiler has read the source and refuses it, rather than ended over it.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Compile(error) if error.is_sources_fault())
    }
}
