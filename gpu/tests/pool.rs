//! Compiling in processes. They run this very program, whose first argument is `serve` then. Needs
//! NVRTC, no GPU.

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use sparserl_gpu::Architecture;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::cache::{CubinCache, Fetched, Origin};
use sparserl_gpu::compile::nvrtc::{CompileError, CompileOptions, Compilers, Nvrtc};
use sparserl_gpu::compile::pool::{
    CompilePool, CompileRequest, CompileTarget, PoolCompileError, PoolError,
};
use sparserl_gpu::isolate::ServerCommand;
use sparserl_gpu::serve::serve;

type Check = fn() -> Result<(), Failed>;

const CHECKS: [(&str, Check); 16] = [
    ("pool::same_cubins", many_threads_get_the_cubins_of_one),
    ("pool::ptx", ptx_is_that_of_the_compiler_itself),
    ("pool::driver", the_driver_decides_on_the_compiler),
    ("pool::cache", what_is_kept_needs_no_process),
    ("pool::known_compiler", a_compiler_that_is_known_is_not_asked_again),
    ("pool::refused", refused_sources_leave_their_process_alone),
    ("pool::endless", an_endless_source_is_stopped_and_others_go_on),
    ("pool::until", what_has_to_end_ends_over_all_sources),
    ("pool::crash", a_crash_is_the_sources_outcome),
    ("pool::no_server", a_program_that_does_not_serve_is_named_and_no_fault_of_the_source),
    ("pool::memory", a_compiler_that_runs_out_of_memory_does_not_refuse_the_source),
    ("pool::foreign", no_source_from_anywhere_is_refused_that_a_compiler_ends_over),
    ("pool::starting_thread", processes_outlive_the_thread_that_started_them),
    ("pool::orphan", processes_die_with_their_parent),
    ("pool::no_server", a_program_that_does_not_serve_is_an_error),
    ("serve::by_hand", serving_by_hand_is_refused),
];

/// Starts a pool and keeps it busy, until it is killed.
const ORPHAN_MAKER: &str = "compile-without-end";

/// Compiles with a cache in the folder that it is given.
const KEEPER: &str = "compile-and-keep";
/// Mounts a disk of one page at the folder `$0`, for nobody else to see.
const MOUNT: &str = "mount -t tmpfs -o size=4k tmpfs \"$0\"";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((first, role)) if first == "serve" => finish(serve(role)),
        Some((first, folder)) if first == KEEPER => {
            finish(keep_in(&folder.concat()).map_err(|error| format!("{error:?}")))
        }
        Some((first, _)) if first == ORPHAN_MAKER => {
            finish(compile_without_end().map_err(|error| format!("{error:?}")))
        }
        _ => libtest_mimic::run(&Arguments::from_args(), trials()).exit_code(),
    }
}

fn finish<E: std::fmt::Display>(result: Result<(), E>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    #[allow(clippy::print_stderr)] // A program's own last words.
    {
        eprintln!("{error}");
    }
    ExitCode::FAILURE
}

fn trials() -> Vec<Trial> {
    // Where the system has a compiler of its own, there is no making it absent.
    let system =
        ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"];
    let elsewhere = system.into_iter().any(|path| Nvrtc::open(path).is_ok());
    let absent = Trial::test("pool::no_compiler", no_compiler_is_one_clear_line);
    let absent = absent.with_ignored_flag(elsewhere);
    let full = Trial::test("pool::full_disk", a_full_disk_keeps_nothing_and_stops_nothing);
    let full = full.with_ignored_flag(!may_mount());
    let trial = |(name, check): (&str, Check)| Trial::test(name, check);
    CHECKS.into_iter().map(trial).chain([absent, full]).collect()
}

const SAXPY: &str = r#"
extern "C" __global__ void saxpy(const float* x, float* y, float a, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"#;

/// 2^60 classes, none of them deep enough to be refused.
const ENDLESS: &str = r#"
template <int DEPTH, long long PATH> struct Sum {
    static constexpr int value = Sum<DEPTH - 1, 2 * PATH>::value + Sum<DEPTH - 1, 2 * PATH + 1>::value;
};
template <long long PATH> struct Sum<0, PATH> { static constexpr int value = 1; };
extern "C" __global__ void saxpy(int* x) { *x = Sum<60, 0>::value; }
"#;

static OPTIONS: CompileOptions = CompileOptions {
    max_registers: None,
    line_information: false,
    defines: Vec::new(),
    minimal: true,
    device_by_default: false,
};

fn pool(processes: usize, cache: Option<CubinCache>) -> Result<CompilePool, Failed> {
    let processes = NonZeroUsize::new(processes).ok_or("no processes")?;
    Ok(CompilePool::start(ServerCommand::this_program(["serve"])?, processes, cache)?)
}

fn wanted(source: &str, target: CompileTarget) -> CompileRequest<'_> {
    CompileRequest::new(source, "saxpy", target, &OPTIONS)
}

fn compile(pool: &CompilePool, source: &str) -> Result<Fetched, PoolCompileError> {
    pool.compile(wanted(source, Architecture::Sm90.into()))
}

fn ptx_is_that_of_the_compiler_itself() -> Result<(), Failed> {
    let pool = pool(1, None)?.with_deadline(Duration::from_secs(2));
    let nvrtc = Compilers::discover()?;
    let nvrtc = nvrtc.for_arch(Architecture::Sm90)?;
    let ptx = pool.compile_ptx(wanted(SAXPY, Architecture::Sm90.into()))?;
    let expected = nvrtc.compile_ptx(SAXPY, "saxpy", Architecture::Sm90, &OPTIONS)?;
    ensure(ptx == expected, "other PTX")?;
    ensure(pool.version(Architecture::Sm90.into())? == nvrtc.version(), "another version")?;
    // A hostile source costs a process, not the caller.
    let endless = pool.compile_ptx(wanted(ENDLESS, Architecture::Sm90.into()));
    let Err(error) = endless else { return Err("it ended".into()) };
    ensure(error.is_sources_fault(), &error.to_string())
}

fn many_threads_get_the_cubins_of_one() -> Result<(), Failed> {
    let compilers = Compilers::discover()?;
    let sources: Vec<String> =
        (0..8).map(|i| SAXPY.replace("a *", &format!("{i} * a *"))).collect();
    let pool = pool(3, None)?;
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = sources
            .iter()
            .map(|source| {
                let both =
                    |architecture| pool.compile(wanted(source, CompileTarget::from(architecture)));
                scope.spawn(move || [both(Architecture::Sm70), both(Architecture::Sm90)])
            })
            .collect();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    for (source, results) in sources.iter().zip(results) {
        let Ok([old, new]) = results else { return Err("a thread panicked".into()) };
        for (architecture, fetched) in [(Architecture::Sm70, old?), (Architecture::Sm90, new?)] {
            let nvrtc = compilers.for_arch(architecture)?;
            let expected = nvrtc.compile(source, "saxpy", architecture, &OPTIONS)?;
            ensure(fetched.cubin == expected, &format!("{architecture}: another cubin"))?;
            ensure(matches!(fetched.origin, Origin::Compiled), "not compiled")?;
        }
    }
    Ok(())
}

fn the_driver_decides_on_the_compiler() -> Result<(), Failed> {
    let pool = pool(1, None)?;
    let fetch = |driver_major| {
        let target = CompileTarget { architecture: Architecture::Sm90, driver_major };
        pool.compile(wanted(SAXPY, target))
    };
    let major = fetch(Some(12))?.cubin.nvrtc_version().major;
    ensure(major == 12, &format!("a compiler of CUDA {major} for a driver of CUDA 12"))?;
    let error = fetch(Some(11));
    ensure(matches!(error, Err(PoolCompileError::Unsupported(_))), &format!("{error:?}"))
}

fn what_is_kept_needs_no_process() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let deadline = Duration::from_secs(3);
    let pool = pool(1, Some(CubinCache::at(folder.path())))?.with_deadline(deadline);
    let first = compile(&pool, SAXPY)?;
    ensure(matches!(first.origin, Origin::Compiled), &format!("{:?}", first.origin))?;
    thread::scope(|scope| {
        let busy = scope.spawn(|| compile(&pool, ENDLESS));
        // Long enough for it to have the only process.
        thread::sleep(Duration::from_millis(300));
        let second = compile(&pool, SAXPY)?;
        ensure(!busy.is_finished(), "it waited for the process")?;
        ensure(matches!(second.origin, Origin::Cache), &format!("{:?}", second.origin))?;
        ensure(second.cubin == first.cubin, "another cubin")?;
        let busy = busy.join().map_err(|_| "the thread panicked")?;
        ensure(matches!(busy, Err(PoolCompileError::TimedOut { .. })), &format!("{busy:?}"))
    })?;
    let again = compile(&pool, &SAXPY.replace("+=", "-="))?;
    ensure(matches!(again.origin, Origin::Compiled), &format!("{:?}", again.origin))
}

/// A second pool takes from the cache which compiler there is, until there may be another.
#[cfg(unix)]
fn a_compiler_that_is_known_is_not_asked_again() -> Result<(), Failed> {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir()?;
    let [started, server, toolkit] =
        ["started", "server", "toolkit"].map(|n| folder.path().join(n));
    // Says that it was started, and looks for compilers in a toolkit, too.
    let script = format!(
        "#!/bin/sh\necho >> '{}'\nCUDA_HOME='{}' exec '{}' serve \"$@\"\n",
        started.display(),
        toolkit.display(),
        std::env::current_exe()?.display()
    );
    std::fs::write(&server, script)?;
    std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755))?;
    let version = || -> Result<_, Failed> {
        let command = ServerCommand::new(&server, [""; 0]);
        let cache = CubinCache::at(folder.path().join("cache"));
        let pool = CompilePool::open(command, NonZeroUsize::MIN, Some(cache));
        Ok(pool.version(Architecture::Sm90.into())?)
    };
    let starts = || std::fs::read_to_string(&started).map_or(0, |lines| lines.lines().count());
    let known = version()?;
    ensure(version()? == known && starts() == 1, &format!("{} processes", starts()))?;
    std::fs::create_dir_all(toolkit.join("lib64"))?;
    ensure(version()? == known && starts() == 2, &format!("{} processes", starts()))?;
    std::fs::write(toolkit.join("lib64/libnvrtc.so.1"), "no library")?;
    ensure(version()? == known && starts() == 3, &format!("{} processes", starts()))?;
    ensure(version()? == known && starts() == 3, &format!("{} processes", starts()))
}

#[cfg(not(unix))]
fn a_compiler_that_is_known_is_not_asked_again() -> Result<(), Failed> {
    Ok(())
}

fn refused_sources_leave_their_process_alone() -> Result<(), Failed> {
    let pool = pool(1, None)?;
    // Which process there is.
    let idle = || format!("{pool:?}");
    let before = idle();
    let recursion = "template <int N> struct A { static constexpr int v = A<N + 1>::v; };\n\
                     extern \"C\" __global__ void saxpy(int* x) { *x = A<0>::v; }";
    let loops = "__device__ constexpr int f() { int s = 0; for (;;) s ^= 1; return s; }\n\
                 constexpr int V = f();\nextern \"C\" __global__ void saxpy(int* x) { *x = V; }";
    for source in [
        "",
        "extern \"C\" __global__ void saxpy( {",
        recursion,
        loops,
        "\0",
        "#include </etc/passwd>",
    ] {
        let Err(PoolCompileError::Compile(error)) = compile(&pool, source) else {
            return Err(format!("not refused: {source}").into());
        };
        ensure(error.is_sources_fault(), &error.to_string())?;
        ensure(error.to_string().lines().count() == 1, &error.to_string())?;
    }
    let error = compile(&pool, &SAXPY.replace("a *", "b *"));
    let Err(PoolCompileError::Compile(CompileError::Failed { log, .. })) = error else {
        return Err(format!("{error:?}").into());
    };
    ensure(log.contains("identifier \"b\" is undefined"), &log)?;
    compile(&pool, SAXPY)?;
    ensure(before.contains("id: ") && idle() == before, "it was replaced")
}

fn an_endless_source_is_stopped_and_others_go_on() -> Result<(), Failed> {
    let deadline = Duration::from_secs(2);
    let pool = pool(2, None)?.with_deadline(deadline);
    thread::scope(|scope| {
        let begin = Instant::now();
        let stuck = scope.spawn(|| compile(&pool, ENDLESS));
        for _ in 0..3 {
            compile(&pool, SAXPY)?;
        }
        let error = stuck.join().map_err(|_| "the thread panicked")?;
        let Err(error @ PoolCompileError::TimedOut { .. }) = error else {
            return Err(format!("{error:?}").into());
        };
        ensure(
            error.is_sources_fault()
                && !error.is_refusal()
                && error.to_string() == "the compiler had not ended after 2 s",
            &error.to_string(),
        )?;
        ensure(begin.elapsed() >= deadline, "stopped too early")?;
        ensure(begin.elapsed() < 3 * deadline, &format!("stopped after {:?}", begin.elapsed()))
    })?;
    compile(&pool, SAXPY)?;
    Ok(())
}

fn what_has_to_end_ends_over_all_sources() -> Result<(), Failed> {
    let pool = Arc::new(pool(1, None)?);
    let begin = Instant::now();
    let limit = Duration::from_secs(2);
    let compiler = CubinCompiler::new(Arc::clone(&pool), Architecture::Sm90, None);
    let compiler = compiler.until(Some(begin + limit));
    compiler.compile_ptx(SAXPY, "saxpy", &OPTIONS)?;
    let ended = compiler.compile_foreign(ENDLESS, "saxpy", &OPTIONS);
    ensure(matches!(ended, Err(PoolCompileError::TimedOut { .. })), &format!("{ended:?}"))?;
    ensure(begin.elapsed() >= limit, "stopped too early")?;
    compile(&pool, SAXPY)?;

    // A process is not even asked then.
    let idle = format!("{pool:?}");
    let late = compiler.compile_foreign(SAXPY, "saxpy", &OPTIONS);
    ensure(matches!(late, Err(PoolCompileError::TimedOut { .. })), &format!("{late:?}"))?;
    ensure(idle.contains("id: ") && format!("{pool:?}") == idle, "it was replaced")?;
    ensure(begin.elapsed() < 10 * limit, &format!("stopped after {:?}", begin.elapsed()))
}

fn no_source_from_anywhere_is_refused_that_a_compiler_ends_over() -> Result<(), Failed> {
    let pool = pool(1, None)?.with_deadline(Duration::from_secs(1));
    let compiler = CubinCompiler::new(Arc::new(pool), Architecture::Sm90, None);
    let ended = compiler.compile_foreign(ENDLESS, "saxpy", &OPTIONS);
    ensure(matches!(ended, Err(PoolCompileError::TimedOut { .. })), &format!("{ended:?}"))?;
    let refused = compiler.compile_foreign("wrong", "saxpy", &OPTIONS)?;
    ensure(refused.is_err(), "refused")?;
    // What is generated is the source's fault: the next candidate is tried.
    let ended = compiler.compile_with(ENDLESS, "saxpy", &OPTIONS)?;
    ensure(ended.is_err_and(|why| why.starts_with("the compiler had not ended")), "ended")
}

fn a_crash_is_the_sources_outcome() -> Result<(), Failed> {
    let pool = pool(1, None)?.with_address_space(1 << 30);
    // The first takes more memory than there is, the second more stack.
    let large = format!("__device__ int a[1 << 29] = {{1}};\n{SAXPY}");
    let deep = SAXPY.replace("a *", &format!("{}a{} *", "(".repeat(500_000), ")".repeat(500_000)));
    for source in [large, deep] {
        let error = compile(&pool, &source);
        let Err(error @ PoolCompileError::Crashed { .. }) = error else {
            return Err(format!("{error:?}").into());
        };
        ensure(
            error.is_sources_fault() && error.to_string().lines().count() == 1,
            &error.to_string(),
        )?;
        ensure(error.to_string().contains("signal: "), &error.to_string())?;
        compile(&pool, SAXPY)?;
    }
    Ok(())
}

fn a_program_that_does_not_serve_is_named_and_no_fault_of_the_source() -> Result<(), Failed> {
    let command = ServerCommand::new("/bin/true", [""; 0]);
    let pool = CompilePool::open(command, NonZeroUsize::MIN, None);
    let Err(error) = compile(&pool, SAXPY) else { return Err("it compiled".into()) };
    let text = error.to_string();
    ensure(text.contains("`/bin/true` does not serve") && text.contains("exit status: 0"), &text)?;
    ensure(!error.is_sources_fault() && text.lines().count() == 1, &text)
}

fn a_compiler_that_runs_out_of_memory_does_not_refuse_the_source() -> Result<(), Failed> {
    let pool = pool(1, None)?.with_address_space(400 << 20);
    let Err(error) = compile(&pool, ENDLESS) else { return Err("it ended".into()) };
    let text = error.to_string();
    ensure(matches!(error, PoolCompileError::Crashed { .. }) && !error.is_refusal(), &text)?;
    ensure(text.contains("out of memory") && text.lines().count() == 1, &text)?;
    compile(&pool, SAXPY)?;
    Ok(())
}

/// A shell that may mount.
fn mounting(script: &str, folder: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script]).arg(folder);
    command
}

fn may_mount() -> bool {
    let tried = tempfile::tempdir().and_then(|folder| mounting(MOUNT, folder.path()).output());
    tried.is_ok_and(|output| output.status.success())
}

fn keep_in(folder: &str) -> Result<(), Failed> {
    let origin = compile(&pool(1, Some(CubinCache::at(folder)))?, SAXPY)?.origin;
    ensure(matches!(origin, Origin::NotKept(_)), &format!("{origin:?}"))?;
    let Origin::NotKept(error) = origin else { return Ok(()) };
    ensure(error.to_string().contains("No space left"), &error.to_string())?;
    ensure(error.to_string().lines().count() == 1, &error.to_string())
}

fn a_full_disk_keeps_nothing_and_stops_nothing() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let script = format!("{MOUNT} && \"$1\" {KEEPER} \"$0\" && find \"$0\" -type f");
    let mut command = mounting(&script, folder.path());
    let output = command.arg(std::env::current_exe()?).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure(output.status.success() && said.is_empty(), &said)?;
    // Which compiler there is may have found room.
    let left = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure(left.lines().count() <= 1 && left.lines().all(|name| name.ends_with(".json")), &left)
}

fn processes_outlive_the_thread_that_started_them() -> Result<(), Failed> {
    let pool = thread::scope(|scope| scope.spawn(|| pool(1, None)).join());
    let pool = pool.map_err(|_| "the thread panicked")??;
    // Which process there is.
    let started = format!("{pool:?}");
    thread::sleep(Duration::from_millis(200));
    compile(&pool, SAXPY)?;
    ensure(started.contains("id: ") && format!("{pool:?}") == started, "it was replaced")
}

fn compile_without_end() -> Result<(), Failed> {
    compile(&pool(1, None)?, ENDLESS)?;
    Ok(())
}

fn processes_die_with_their_parent() -> Result<(), Failed> {
    let mut parent =
        Command::new(std::env::current_exe()?).arg(ORPHAN_MAKER).stdout(Stdio::null()).spawn()?;
    let wait = |what: &str, is_so: &dyn Fn() -> Result<bool, Failed>| {
        let begin = Instant::now();
        while !is_so()? {
            ensure(begin.elapsed() < Duration::from_secs(20), what)?;
            thread::sleep(Duration::from_millis(20));
        }
        Ok::<_, Failed>(())
    };
    let id = parent.id();
    let started = wait("no child was started", &|| Ok(!children(id)?.is_empty()));
    // Then it is busy and does not look at the connection.
    thread::sleep(Duration::from_secs(1));
    let orphans = children(id);
    parent.kill()?;
    parent.wait()?;
    started?;
    let orphans = orphans?;
    ensure(!orphans.is_empty(), "the child was gone before its parent")?;
    wait("a child outlives its parent", &|| Ok(!orphans.iter().any(|&id| is_running(id))))
}

/// The processes that a process has started.
fn children(id: u32) -> Result<Vec<u32>, Failed> {
    let mut children = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{id}/task"))? {
        let list = std::fs::read_to_string(task?.path().join("children")).unwrap_or_default();
        children.extend(list.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    }
    Ok(children)
}

/// A zombie waits for whoever adopted it, but runs no more.
fn is_running(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn no_compiler_is_one_clear_line() -> Result<(), Failed> {
    let program = std::env::current_exe()?.into_os_string();
    let unset = ["-u", "VIRTUAL_ENV", "-u", "CONDA_PREFIX", "SPARSERL_NVRTC="];
    let arguments = unset.into_iter().map(Into::into).chain([program, "serve".into()]);
    let error = CompilePool::start(ServerCommand::new("env", arguments), NonZeroUsize::MIN, None);
    let Err(error @ PoolError::NoCompiler(_)) = error else {
        return Err(format!("{error:?}").into());
    };
    let text = error.to_string();
    ensure(text.contains("pip install") && text.lines().count() == 1, &text)
}

fn a_program_that_does_not_serve_is_an_error() -> Result<(), Failed> {
    for program in ["true", "false", "/nonexistent/program"] {
        let command = ServerCommand::new(program, ["serve"]);
        let error = CompilePool::start(command, NonZeroUsize::MIN, None);
        let Err(error @ PoolError::Process { .. }) = error else {
            return Err(format!("{error:?}").into());
        };
        ensure(error.to_string().lines().count() == 1, &error.to_string())?;
    }
    Ok(())
}

fn serving_by_hand_is_refused() -> Result<(), Failed> {
    for (role, reason) in
        [("compile", "cannot talk to the process"), ("nonsense", "`nonsense`"), ("", "``")]
    {
        let mut command = Command::new(std::env::current_exe()?);
        let output = command.args(["serve", role]).stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure(!output.status.success() && text.contains(reason), &text)?;
        ensure(text.lines().count() == 1, &text)?;
    }
    Ok(())
}

fn ensure(condition: bool, message: &str) -> Result<(), Failed> {
    if condition { Ok(()) } else { Err(message.into()) }
}
