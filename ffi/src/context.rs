//! What all plans share: the policy, the compilers, and the GPU, if there is one.

use std::collections::HashSet;
use std::env;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;

use sparserl_core::target::Target;
use sparserl_gpu::compile::CubinCompiler;
use sparserl_gpu::compile::cache::CubinCache;
use sparserl_gpu::compile::pool::CompilePool;
use sparserl_gpu::emulated::found_right::FoundRight;
use sparserl_gpu::isolate::ServerCommand;
use sparserl_gpu::run::device::{self, Device, DeviceFacts};
use sparserl_gpu::run::operator::ForeignStream;
use sparserl_onnx_models::{Engine, OpenedPolicy, PolicySource};

use crate::options::{ContextOptions, Log};
use crate::remembered::Remembered;
use crate::scatter::Scatter;
use crate::status::{Failure, Status};

/// Names the program that compiles and measures.
const SERVER_VARIABLE: &str = "SPARSERL_SERVER";
/// What it is called.
const SERVER: &str = "sparserl-server";

/// What a handle of a context stands for.
pub(crate) struct Context {
    policy_source: PolicySource,
    policy: OnceLock<Result<OpenedPolicy, String>>,
    pub(crate) server: ServerCommand,
    pub(crate) pool: Arc<CompilePool>,
    pub(crate) compiler: CubinCompiler,
    /// What the policy has chosen, beside the compiled kernels, where there is a folder for both.
    pub(crate) remembered: Option<Remembered>,
    /// What kernels are made for.
    pub(crate) target: Target,
    /// The GPU, or why there is none.
    pub(crate) gpu: Result<Gpu, String>,
    log: Option<Log>,
    searches: Arc<Searches>,
    /// Held while programs are measured: two at once would measure each other.
    pub(crate) measuring: Mutex<()>,
    pub(crate) scatter: Scatter,
    /// Kernels with epilogues that emulation found right: hashes of programs and sources.
    pub(crate) right_epilogues: Mutex<HashSet<blake3::Hash>>,
    /// The same of all contexts, beside the compiled kernels: hashes of all that it depends on.
    pub(crate) found_right: Option<FoundRight>,
}

/// The GPU that plans run on.
pub(crate) struct Gpu {
    pub(crate) ordinal: u32,
    pub(crate) device: Device,
    pub(crate) facts: DeviceFacts,
}

impl Gpu {
    /// Refuses a stream of another device.
    pub(crate) fn check_stream(&self, stream: ForeignStream) -> Result<(), Failure> {
        if self.device.owns(stream)? {
            return Ok(());
        }
        let text =
            format!("the stream is not one of device {}, which the plan is for", self.ordinal);
        Err(Failure::new(Status::WrongDevice, text))
    }
}

impl Context {
    pub(crate) fn open(options: ContextOptions) -> Result<Self, Failure> {
        let gpu = find_gpu(options.device)?;
        let asked = options.target.as_deref().map(str::parse::<Target>).transpose();
        let asked = asked.map_err(Failure::argument)?;
        let target = match (&gpu, asked) {
            (Ok(gpu), Some(asked)) if gpu.facts.target.architecture != asked.architecture => {
                return Err(Failure::new(
                    Status::WrongDevice,
                    format_args!(
                        "{} is {}, not {}: plans for another GPU are made with \
                         SPARSERL_OPTION_DEVICE = -1",
                        gpu.facts.name, gpu.facts.target.architecture, asked.architecture
                    ),
                ));
            }
            (Ok(gpu), _) => gpu.facts.target,
            (Err(_), asked) => asked.unwrap_or(Target::H200),
        };
        let server = find_server(options.server.as_deref())?;
        let cache = options.cache_folder.map(CubinCache::at).or_else(|| CubinCache::open().ok());
        let beside = |folder| cache.as_ref().map(|cache| cache.directory().join(folder));
        let remembered = beside("choices").map(Remembered::at);
        let found_right = beside("epilogues").map(FoundRight::at);
        let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let pool = Arc::new(CompilePool::open(server.clone(), cores, cache));
        let driver_major = gpu.as_ref().ok().map(|gpu: &Gpu| gpu.facts.driver.0);
        let compiler = CubinCompiler::new(Arc::clone(&pool), target.architecture, driver_major);
        // Known from earlier contexts where nothing has changed since: no process is started then.
        let known = compiler.version();
        known.map_err(|error| Failure::new(Status::NoCompiler, error))?;
        let context = Self {
            policy_source: options.policy,
            policy: OnceLock::new(),
            server,
            pool,
            compiler,
            remembered,
            target,
            gpu,
            log: options.log,
            searches: Arc::default(),
            measuring: Mutex::new(()),
            scatter: Scatter::default(),
            right_epilogues: Mutex::default(),
            found_right,
        };
        if let PolicySource::Exported(_) = &context.policy_source {
            context.policy().map_err(|why| Failure::new(Status::File, why))?;
        }
        Ok(context)
    }

    /// The policy, which is made ready when it is first needed; one in a folder with the context.
    pub(crate) fn policy(&self) -> Result<&OpenedPolicy, String> {
        let open = || {
            OpenedPolicy::open(&self.policy_source, &Engine::Embedded)
                .map_err(|error| error.to_string())
        };
        self.policy.get_or_init(open).as_ref().map_err(String::clone)
    }

    /// The GPU, for what cannot be done without one.
    pub(crate) fn gpu(&self) -> Result<&Gpu, Failure> {
        self.gpu.as_ref().map_err(|why| {
            Failure::new(Status::NoDevice, format_args!("nothing can be executed: {why}"))
        })
    }

    /// Says something to the caller's log.
    pub(crate) fn say(&self, text: &str) {
        let Some(Log { function: Some(function), user }) = self.log else { return };
        let line = CString::new(text.replace(['\n', '\0'], " ")).unwrap_or_default();
        // SAFETY: the caller promised that the function may be called from any thread with this
        // pointer, as long as the context lives; the line outlives the call.
        unsafe { function(line.as_ptr(), user) };
    }

    /// Whether there is a folder that compiled kernels are kept in.
    pub(crate) fn keeps_kernels(&self) -> bool {
        // What was chosen lies beside them.
        self.remembered.is_some()
    }

    /// Counts a search until what is returned is dropped; none begins once the context is closed.
    pub(crate) fn search(&self) -> Result<Searching, Failure> {
        let mut searches = self.searches.count.lock().unwrap_or_else(PoisonError::into_inner);
        if searches.is_closed {
            return Err(closed());
        }
        searches.left += 1;
        Ok(Searching(Arc::clone(&self.searches)))
    }

    /// Whether no search begins any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.searches.count.lock().unwrap_or_else(PoisonError::into_inner).is_closed
    }

    /// Refuses what would go on after the context was destroyed.
    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        if self.is_closed() { Err(closed()) } else { Ok(()) }
    }

    /// Lets no search begin any more, and waits until none is left.
    pub(crate) fn close(&self) {
        let Searches { count, ended } = &*self.searches;
        let mut searches = count.lock().unwrap_or_else(PoisonError::into_inner);
        searches.is_closed = true;
        while searches.left > 0 {
            searches = ended.wait(searches).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn closed() -> Failure {
    Failure::new(Status::InvalidHandle, "context: this handle was destroyed")
}

/// The plans that are being made, and the searches of those that were. A search shares this, and
/// not the context: whoever has waited for its end finds nothing kept by it.
#[derive(Default)]
struct Searches {
    count: Mutex<SearchCount>,
    ended: Condvar,
}

#[derive(Default)]
struct SearchCount {
    /// Those that have not ended.
    left: usize,
    /// No further one begins.
    is_closed: bool,
}

/// A search that has not ended.
pub(crate) struct Searching(Arc<Searches>);

impl Drop for Searching {
    fn drop(&mut self) {
        self.0.count.lock().unwrap_or_else(PoisonError::into_inner).left -= 1;
        self.0.ended.notify_all();
    }
}

/// The GPU that is asked for. Without a wish, that there is none is no error.
fn find_gpu(asked: Option<i32>) -> Result<Result<Gpu, String>, Failure> {
    let ordinal = match asked.map(u32::try_from) {
        Some(Err(_)) => {
            return Ok(Err(
                "the context was made without a device (SPARSERL_OPTION_DEVICE = -1)".to_owned()
            ));
        }
        Some(Ok(ordinal)) => ordinal,
        None => match device::count() {
            Err(error) if error.is_absence() => return Ok(Err(error.to_string())),
            count => {
                count?;
                0
            }
        },
    };
    let device = Device::open(ordinal)?;
    let entered = device.enter()?;
    let facts = device.facts()?;
    drop(entered);
    Ok(Ok(Gpu { ordinal, device, facts }))
}

/// The program that compiles and measures: where it is said to be, or where it is installed beside
/// the library.
fn find_server(asked: Option<&Path>) -> Result<ServerCommand, Failure> {
    let set = env::var_os(SERVER_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let places = match asked.map(Path::to_owned).or(set) {
        Some(path) => vec![path],
        None => {
            let library = own_file();
            let folder = library.as_deref().and_then(Path::parent);
            let beside = ["", "..", "../libexec/sparserl", "../../libexec/sparserl", "sparserl"];
            let in_folder =
                |folder: &Path| beside.map(|place| folder.join(place).join(SERVER)).to_vec();
            folder.map(in_folder).unwrap_or_default()
        }
    };
    match places.iter().find(|path| path.is_file()) {
        Some(path) => Ok(ServerCommand::new(path, [] as [&OsStr; 0])),
        None => {
            let looked: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
            let text = format!(
                "there is no program {SERVER} at {}: install it there, or name it by \
                 {SERVER_VARIABLE} or SPARSERL_OPTION_SERVER",
                looked.join(" or ")
            );
            Err(Failure::new(Status::NoCompiler, text))
        }
    }
}

/// The file that this code was loaded from: the shared library, or the program that it was linked
/// into. The loader knows a program by the word that it was started with only, which may be a file
/// of another name in the current folder.
fn own_file() -> Option<PathBuf> {
    /// `Dl_info` of `dlfcn.h`.
    #[repr(C)]
    struct Info {
        file: *const c_char,
        base: *mut c_void,
        symbol: *const c_char,
        address: *mut c_void,
    }
    unsafe extern "C" {
        fn dladdr(address: *const c_void, info: *mut Info) -> c_int;
    }
    let null = std::ptr::null_mut();
    let mut info = Info { file: null, base: null.cast(), symbol: null, address: null.cast() };
    // SAFETY: any address may be asked for, and the structure is the one of dlfcn.h.
    let found = unsafe { dladdr(own_file as *const c_void, &raw mut info) };
    if found == 0 || info.file.is_null() {
        return None;
    }
    // SAFETY: the loader's own text, which lives as long as this code is loaded.
    let file = unsafe { CStr::from_ptr(info.file) };
    let file = Path::new(OsStr::from_bytes(file.to_bytes()));
    if file.is_absolute() { file.canonicalize().ok() } else { env::current_exe().ok() }
}
