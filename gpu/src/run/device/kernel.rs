//! Loaded machine code and its launch.

use std::ffi::{CString, c_void};
use std::fmt;
use std::sync::Arc;

use cudarc::driver::{result, sys};
use sparserl_core::layout::LinearGeometry;
use sparserl_core::target::Architecture;

use super::driver::Check;
use super::{Context, Device, DeviceBuffer, DeviceError, DriverFailure, Stream};
use crate::compile::nvrtc::Cubin;

/// A cubin on a device. Unloaded when it and its kernels are dropped.
#[derive(Clone, Debug)]
pub struct Module {
    inner: Arc<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    context: Arc<Context>,
    handle: sys::CUmodule,
}

// SAFETY: a module may be used from every thread; the driver locks it.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Module {
    /// Loads `cubin` onto `device`.
    ///
    /// # Errors
    /// When the driver refuses it: compiled for another architecture, or by a compiler that is
    /// newer than the driver.
    pub fn load(device: &Device, cubin: &Cubin) -> Result<Self, DeviceError> {
        let context = Arc::clone(&device.context);
        context.bind()?;
        // SAFETY: a `Cubin` is what NVRTC wrote, unchanged, so that the driver finds the lengths
        // that it reads in it to be true. The driver copies it.
        let handle = unsafe { result::module::load_data(cubin.bytes().as_ptr().cast()) }
            .check("cuModuleLoadData")?;
        Ok(Self { inner: Arc::new(Loaded { context, handle }) })
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// When there is none, or when the driver fails.
    pub fn kernel(&self, name: &str) -> Result<Kernel, DeviceError> {
        self.inner.context.bind()?;
        // A name that is cut at a NUL is not found.
        let c_name: Vec<u8> = name.bytes().take_while(|&byte| byte != 0).collect();
        let c_name = CString::new(c_name).unwrap_or_default();
        // SAFETY: the module is loaded until `inner` is dropped.
        let function = unsafe { result::module::get_function(self.inner.handle, c_name) }
            .check("cuModuleGetFunction")?;
        Ok(Kernel {
            parameters: parameter_sizes(function)?,
            function,
            module: Arc::clone(&self.inner),
        })
    }
}

impl Module {
    /// Where the variable of this name lies, as (address, bytes).
    ///
    /// # Errors
    /// When there is none, or when the driver fails.
    pub(crate) fn variable(&self, name: &str) -> Result<(u64, u64), DeviceError> {
        self.inner.context.bind()?;
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the module is loaded until `inner` is dropped.
        let (address, bytes) = unsafe { result::module::get_global(self.inner.handle, name) }
            .check("cuModuleGetGlobal")?;
        Ok((address, bytes as u64))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: loaded in `Module::load`, unloaded only here; no kernel of it is left, since
            // each holds `self`.
            let _ = unsafe { result::module::unload(self.handle) };
        }
    }
}

/// A kernel's parameters in order, each one's size in bytes.
pub(in crate::run) fn parameter_sizes(
    function: sys::CUfunction,
) -> Result<Vec<usize>, DeviceError> {
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function is of a loaded module; the pointers are to live integers.
        let status = unsafe {
            sys::cuFuncGetParamInfo(function, sizes.len(), &raw mut offset, &raw mut size)
        };
        match status {
            // This is how the driver says that there are no more.
            sys::CUresult::CUDA_ERROR_INVALID_VALUE => return Ok(sizes),
            status => status.result().check("cuFuncGetParamInfo")?,
        }
        sizes.push(size);
    }
}

/// A kernel that can be launched. Keeps its module loaded.
#[derive(Debug)]
pub struct Kernel {
    module: Arc<Loaded>,
    function: sys::CUfunction,
    parameters: Vec<usize>,
}

// SAFETY: a function handle may be used from every thread; the driver locks it.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// One argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A pointer to a buffer. The kernel may write to it.
    Buffer(&'a DeviceBuffer),
    /// A `float`.
    F32(f32),
    /// A `double`.
    F64(f64),
    /// An `unsigned int`, or an `int` of the same bits.
    U32(u32),
    /// An `unsigned long long`, or a `long long` of the same bits.
    U64(u64),
    /// A structure, as words of 64 bits.
    Words(&'a [u64]),
}

impl Argument<'_> {
    /// Its size as a parameter, in bytes.
    fn size(self) -> usize {
        match self {
            Self::F32(_) | Self::U32(_) => 4,
            Self::Buffer(_) | Self::F64(_) | Self::U64(_) => 8,
            Self::Words(words) => size_of_val(words),
        }
    }

    /// Appends its bits; of what is 4 bytes long the lower ones: at the lower address on every
    /// machine that has CUDA.
    fn append_to(self, values: &mut Vec<u64>) {
        match self {
            Self::Buffer(buffer) => values.push(buffer.address()),
            Self::F32(value) => values.push(value.to_bits().into()),
            Self::F64(value) => values.push(value.to_bits()),
            Self::U32(value) => values.push(value.into()),
            Self::U64(value) => values.push(value),
            Self::Words(words) => values.extend(words),
        }
    }
}

impl Kernel {
    /// Sizes in bytes of the parameters that it takes.
    #[must_use]
    pub fn parameters(&self) -> &[usize] {
        &self.parameters
    }

    /// Sees that the arguments are those that it takes, and readies it for launches with them.
    ///
    /// # Errors
    /// When the arguments do not fit, or the driver refuses that much shared memory.
    pub fn bind<'k>(
        &'k self,
        geometry: Geometry,
        arguments: &[Argument<'k>],
    ) -> Result<BoundKernel<'k>, LaunchError> {
        let given: Vec<usize> = arguments.iter().map(|argument| argument.size()).collect();
        if given != self.parameters {
            return Err(LaunchError::Arguments { expected: self.parameters.clone(), given });
        }
        let context = &self.module.context;
        let is_foreign =
            |a: &Argument<'_>| matches!(a, Argument::Buffer(b) if !b.belongs_to(context));
        if let Some(position) = arguments.iter().position(is_foreign) {
            return Err(LaunchError::ForeignBuffer { position });
        }
        if geometry.dynamic_shared > 0 {
            self.ask_for_shared(geometry)?;
        }
        let (mut values, mut starts) = (Vec::new(), Vec::new());
        for argument in arguments {
            starts.push(values.len());
            argument.append_to(&mut values);
        }
        Ok(BoundKernel {
            kernel: self,
            geometry,
            serialization: Serialization::Full,
            values,
            starts,
        })
    }

    fn ask_for_shared(&self, geometry: Geometry) -> Result<(), LaunchError> {
        self.module.context.bind()?;
        // SAFETY: the function is of a loaded module.
        let asked = unsafe { ask_for_shared(self.function, geometry.dynamic_shared) };
        asked.map_err(|error| LaunchError::Refused { geometry, failure: error.into() })
    }

    /// Runs it once and waits for it. There is no time limit.
    ///
    /// # Errors
    /// [`LaunchError`] tells a launch that the driver refuses from a fault on the device. After a
    /// fault, every later call in this process fails.
    pub fn launch(
        &self,
        geometry: Geometry,
        arguments: &[Argument<'_>],
    ) -> Result<(), LaunchError> {
        let context = &self.module.context;
        self.bind(geometry, arguments)?.enqueue_on(result::stream::null())?;
        context.bind()?;
        // The whole context, so that a kernel that starts others leaves no work behind.
        result::ctx::synchronize().map_err(|error| LaunchError::Faulted { failure: error.into() })
    }
}

/// Asks for dynamic shared memory where a kernel does not get it unasked.
///
/// # Safety
/// The function is of a module that is loaded in the current context.
pub(crate) unsafe fn ask_for_shared(
    function: sys::CUfunction,
    dynamic: u32,
) -> Result<(), result::DriverError> {
    let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
    // SAFETY: the caller vouches for the function.
    let declared = unsafe { result::function::get_function_attribute(function, attribute) }?;
    if is_unasked(declared.unsigned_abs(), dynamic) {
        return Ok(());
    }
    let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let bytes = i32::try_from(dynamic).unwrap_or(i32::MAX);
    // SAFETY: as above.
    unsafe { result::function::set_function_attribute(function, attribute, bytes) }
}

/// Bytes of shared memory that every kernel may use.
const UNASKED_SHARED: u32 = 48 << 10;

/// Whether a kernel that declares so many bytes of shared memory may use so many more that a launch
/// gives it, without being asked for: both count.
fn is_unasked(declared: u32, dynamic: u32) -> bool {
    declared.saturating_add(dynamic) <= UNASKED_SHARED
}

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Geometry {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory besides what the kernel declares.
    pub dynamic_shared: u32,
}

impl Geometry {
    /// A launch of one dimension without dynamic shared memory.
    #[must_use]
    pub fn linear(grid: u32, block: u32) -> Self {
        Self { grid: [grid, 1, 1], block: [block, 1, 1], dynamic_shared: 0 }
    }
}

impl From<LinearGeometry> for Geometry {
    fn from(geometry: LinearGeometry) -> Self {
        let dynamic_shared = geometry.dynamic_shared();
        Self { dynamic_shared, ..Self::linear(geometry.grid, geometry.block) }
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extent = |[x, y, z]: [u32; 3]| match (y, z) {
            (1, 1) => x.to_string(),
            _ => format!("{x} × {y} × {z}"),
        };
        write!(f, "{} blocks of {} threads", extent(self.grid), extent(self.block))?;
        match self.dynamic_shared {
            0 => Ok(()),
            bytes => write!(f, " with {bytes} bytes of shared memory"),
        }
    }
}

/// What a launch waits for in its stream, and whether its blocks may wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serialization {
    /// The end of what comes before it.
    Full,
    /// Nothing: the kernel waits itself for those before it (CUDA C++ Programming Guide,
    /// programmatic dependent launch).
    Programmatic,
    /// As [`Full`](Self::Full). Besides, all blocks are on the device at once, or the launch is
    /// refused (CUDA C++ Programming Guide, grid synchronization).
    Cooperative,
}

impl Serialization {
    /// What launches of a kernel wait for that waits itself for those before it, or does not.
    pub(crate) fn of(waits_itself: bool, architecture: Architecture) -> Self {
        match waits_itself && architecture.has_programmatic_launch() {
            true => Self::Programmatic,
            false => Self::Full,
        }
    }
}

/// Asks a stream for a launch; does not wait for it.
///
/// # Safety
/// The function is of a loaded module, there is the address of an argument for each of its
/// parameters, and what the kernel does with them is sound.
pub(in crate::run) unsafe fn launch(
    function: sys::CUfunction,
    geometry: Geometry,
    serialization: Serialization,
    stream: sys::CUstream,
    arguments: &mut [*mut c_void],
) -> Result<(), result::DriverError> {
    let Geometry { grid: [x, y, z], block, dynamic_shared } = geometry;
    let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
    let id = match serialization {
        Serialization::Cooperative => {
            value.cooperative = 1;
            sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        }
        Serialization::Programmatic | Serialization::Full => {
            value.programmaticStreamSerializationAllowed = 1;
            sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        }
    };
    let mut attribute = sys::CUlaunchAttribute { id, pad: [0; 4], value };
    let configuration = sys::CUlaunchConfig {
        gridDimX: x,
        gridDimY: y,
        gridDimZ: z,
        blockDimX: block[0],
        blockDimY: block[1],
        blockDimZ: block[2],
        sharedMemBytes: dynamic_shared,
        hStream: stream,
        attrs: &raw mut attribute,
        numAttrs: match serialization {
            Serialization::Full => 0,
            Serialization::Programmatic | Serialization::Cooperative => 1,
        },
    };
    let (arguments, nothing) = (arguments.as_mut_ptr(), std::ptr::null_mut());
    // SAFETY: the configuration and its attribute live until the call returns; the rest is the
    // contract.
    unsafe { sys::cuLaunchKernelEx(&raw const configuration, function, arguments, nothing) }
        .result()
}

/// A kernel with its arguments. Holds on to the buffers among them.
#[derive(Clone, Debug)]
pub struct BoundKernel<'k> {
    kernel: &'k Kernel,
    geometry: Geometry,
    serialization: Serialization,
    values: Vec<u64>,
    /// Where among the values each argument begins.
    starts: Vec<usize>,
}

impl BoundKernel<'_> {
    /// The same, with launches that wait otherwise.
    pub(crate) fn serialized(self, serialization: Serialization) -> Self {
        Self { serialization, ..self }
    }

    /// Asks for one run; does not wait for it.
    ///
    /// # Errors
    /// When the driver refuses the launch.
    pub fn enqueue(&self, stream: &Stream) -> Result<(), LaunchError> {
        self.enqueue_on(stream.handle())
    }

    fn enqueue_on(&self, stream: sys::CUstream) -> Result<(), LaunchError> {
        self.kernel.module.context.bind()?;
        let mut values = self.values.clone();
        let first = values.as_mut_ptr();
        let mut pointers: Vec<*mut c_void> =
            self.starts.iter().map(|&start| first.wrapping_add(start).cast()).collect();
        // SAFETY: the module is loaded. The driver reads as many parameters of as many bytes as
        // were compared in `bind`, each from aligned words of `values`, and copies them before it
        // returns. What the kernel does on the device is the condition that this module's
        // documentation states.
        let launched = unsafe {
            launch(self.kernel.function, self.geometry, self.serialization, stream, &mut pointers)
        };
        launched.map_err(|error| LaunchError::Refused {
            geometry: self.geometry,
            failure: error.into(),
        })
    }
}

/// A kernel did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The arguments are not those that the kernel takes. Nothing was launched.
    #[error("the kernel takes parameters of {expected:?} bytes but is given {given:?}")]
    Arguments {
        /// Sizes of its parameters.
        expected: Vec<usize>,
        /// Sizes of the arguments.
        given: Vec<usize>,
    },
    /// A buffer was taken from another [`Device`] than the kernel's. Nothing was launched.
    #[error("argument {position} is a buffer of another device")]
    ForeignBuffer {
        /// Its place among the arguments, from 0.
        position: usize,
    },
    /// The driver refuses to launch it: too many threads, registers or bytes of shared memory, or a
    /// grid of 0 blocks.
    #[error("cannot launch {geometry}: {failure}")]
    Refused {
        /// The shape of the launch.
        geometry: Geometry,
        /// The driver's reason.
        failure: DriverFailure,
    },
    /// It was launched and faulted. The process can no longer use the device.
    #[error("the kernel faulted: {failure}")]
    Faulted {
        /// The driver's reason.
        failure: DriverFailure,
    },
    /// The device was unusable before.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_declares_counts_for_what_it_gets_unasked() {
        const KIB: u32 = 1 << 10;
        assert!(is_unasked(0, 48 * KIB) && is_unasked(16 * KIB, 32 * KIB));
        assert!(!is_unasked(0, 48 * KIB + 1) && !is_unasked(32 * KIB, 32 * KIB));
        assert!(!is_unasked(1, u32::MAX));
    }
}
