//! Kernels in a program that has its own streams, vectors and CUDA context: what a library runs
//! inside of its caller.
//!
//! Everything here works on the device's primary context, which is the one of CUDA's runtime API,
//! and leaves the calling thread's current context as it was. Memory is filled on a stream of its
//! own, so that nothing waits for the caller's streams, and in relaxed capture mode, so that a
//! stream which somebody else captures stays whole. [`Operator::enqueue`] allocates nothing, waits
//! for nothing and may be captured.

mod foreign;
mod function;
mod memory;
mod workspace;

use std::ffi::c_void;
use std::sync::Arc;

use sparserl_core::codegen::{ArgumentKind, CudaSource, Launch};
use sparserl_core::layout::Packed;

use super::device::{Device, DeviceError, Geometry, Serialization};
use crate::compile::nvrtc::Cubin;
use function::Function;
use memory::Filling;

pub use foreign::{Entered, ForeignStream, MemoryAt, wait_for};
pub use memory::{DeviceMemory, read};
pub use workspace::{WORKSPACE_ALIGNMENT, WorkspaceLayout};

/// Parameters of a kernel, at most: their addresses lie on the stack of each launch.
const MOST_PARAMETERS: usize = 160;

/// The arrays of a packed matrix on a device, with workspace.
#[derive(Debug)]
pub struct DeviceArrays {
    device: Device,
    /// In the order of the kernel's arguments.
    memory: Vec<DeviceMemory>,
}

impl DeviceArrays {
    /// Takes memory for them, which [`fill`](Self::fill) has to fill before a launch.
    ///
    /// # Errors
    /// When memory does not suffice, or when the driver fails.
    pub fn allocate(device: &Device, packed: &Packed) -> Result<Self, DeviceError> {
        let lengths = packed.arguments().map(|(_, array)| array.data.bytes().len());
        let memory = lengths.map(|length| DeviceMemory::new(device, length));
        Ok(Self { device: device.clone(), memory: memory.collect::<Result<_, _>>()? })
    }

    /// Copies them there, waiting once for all of them.
    ///
    /// # Errors
    /// When they are of another matrix, or when the driver fails.
    pub fn fill(&self, packed: &Packed) -> Result<(), DeviceError> {
        let arrays = packed.arguments().map(|(_, array)| match array.role.is_workspace() {
            true => Filling::Zeros(array.data.bytes().len()),
            false => Filling::Bytes(array.data.bytes()),
        });
        memory::fill(&self.device, self.memory.iter().zip(arrays))
    }

    /// Bytes of all of them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.memory.iter().map(|memory| memory.len() as u64).sum()
    }

    /// The array at a place in the order of the kernel's arguments.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&DeviceMemory> {
        self.memory.get(index)
    }
}

/// A kernel of a program, loaded, with all its arguments but the dense operands.
#[derive(Debug)]
pub struct Operator {
    function: Function,
    /// What the words point to.
    _arrays: Arc<DeviceArrays>,
    geometry: Geometry,
    /// A word for each parameter; those of operands are replaced at each launch.
    words: Box<[u64]>,
    places: Places,
    /// Which parameters the arrays of the workspace are.
    workspace_places: Vec<usize>,
    workspace: WorkspaceLayout,
}

/// Which parameters the dense operands are.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    input: Option<usize>,
    output: Option<usize>,
    alpha: Option<usize>,
    beta: Option<usize>,
    /// Where the old vector, leading dimensions and the caller's values are, behind all others.
    old: Option<usize>,
    leading: Option<usize>,
    user: Option<usize>,
}

/// The dense operands of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Operands {
    /// Address of x.
    pub input: u64,
    /// Address of what is written.
    pub output: u64,
    /// Address of the old vector, for kernels that have another than the output.
    pub old: u64,
    /// Elements from the beginning of a row to that of the next, of the input, the old matrix and
    /// what is written, for kernels that take any.
    pub leading: [u32; 3],
    /// α and β, as the bits of their type.
    pub alpha: u64,
    /// β, as the bits of its type.
    pub beta: u64,
    /// Where the caller's values lie, for kernels that take any; null otherwise.
    pub user: *const c_void,
    /// Address of a workspace in the place of the one among the arrays.
    pub workspace: Option<u64>,
}

/// What a kernel is given behind the arguments of the plain one, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndingArguments {
    /// Whether it is given the old vector.
    pub has_old: bool,
    /// Whether it is given leading dimensions.
    pub has_leading: bool,
    /// Bytes of the caller's values; 0 where it is given none.
    pub user_bytes: usize,
}

/// A kernel cannot be made ready to be launched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// The device failed, or has too little memory.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// It takes other arguments than it would be given.
    #[error("the kernel {kernel} takes other arguments than it would be given")]
    Parameters {
        /// Its name.
        kernel: String,
    },
}

impl Operator {
    /// Loads a kernel for arrays of its program.
    ///
    /// # Errors
    /// When the driver refuses the code, or when it is no kernel for these arguments.
    pub fn load(
        arrays: &Arc<DeviceArrays>,
        packed: &Packed,
        (source, launch): (&CudaSource, &Launch),
        cubin: &Cubin,
        ending: EndingArguments,
    ) -> Result<Self, OperatorError> {
        let (mut words, mut sizes) = (Vec::new(), Vec::new());
        let (mut places, mut workspace_places) = (Places::default(), Vec::new());
        for (place, (argument, array)) in launch.with_arrays().enumerate() {
            let slot = match argument.kind {
                ArgumentKind::Input => Some(&mut places.input),
                ArgumentKind::Output => Some(&mut places.output),
                ArgumentKind::Alpha => Some(&mut places.alpha),
                ArgumentKind::Beta => Some(&mut places.beta),
                _ => None,
            };
            if let Some(slot) = slot {
                *slot = Some(place);
            }
            if argument.kind == ArgumentKind::Workspace {
                workspace_places.push(place);
            }
            words.push(match argument.kind {
                ArgumentKind::Size(size) => size,
                _ => array.and_then(|array| arrays.get(array)).map_or(0, DeviceMemory::address),
            });
            sizes.push(match argument.kind {
                ArgumentKind::Alpha | ArgumentKind::Beta | ArgumentKind::Size(_)
                    if argument.element.size() == 4 =>
                {
                    4
                }
                _ => 8,
            });
        }
        let mut behind = |sizes_there: &[usize]| {
            let place = words.len();
            words.extend(sizes_there.iter().map(|_| 0));
            sizes.extend(sizes_there);
            Some(place)
        };
        let EndingArguments { has_old, has_leading, user_bytes } = ending;
        places.old = if has_old { behind(&[8]) } else { None };
        places.leading = if has_leading { behind(&[4; 3]) } else { None };
        places.user = if user_bytes > 0 { behind(&[user_bytes]) } else { None };
        let serialization = Serialization::of(source.waits_itself, cubin.architecture());
        let geometry = Geometry::from(launch.geometry);
        let (kernel, shared) = (&source.kernel, geometry.dynamic_shared);
        let function = Function::load(&arrays.device, cubin, kernel, serialization, shared)?;
        if function.parameters() != sizes || sizes.len() > MOST_PARAMETERS {
            return Err(OperatorError::Parameters { kernel: source.kernel.clone() });
        }
        Ok(Self {
            function,
            _arrays: Arc::clone(arrays),
            geometry,
            words: words.into(),
            places,
            workspace_places,
            workspace: WorkspaceLayout::new(packed),
        })
    }

    /// Bytes that a workspace has to have.
    #[must_use]
    pub fn workspace_bytes(&self) -> u64 {
        self.workspace.bytes
    }

    /// Asks a stream for the product. Returns at once.
    ///
    /// # Errors
    /// When the driver refuses the launch.
    ///
    /// # Safety
    /// The operands are device memory of the matrix's sizes that stays until the stream has come
    /// past the launch, `user` points to as many bytes as the kernel was loaded with, a workspace
    /// has [`workspace_bytes`](Self::workspace_bytes), and no other launch with the same workspace,
    /// be it given or that of the arrays, overlaps with this one.
    pub unsafe fn enqueue(
        &self,
        stream: ForeignStream,
        operands: &Operands,
    ) -> Result<(), DeviceError> {
        let mut given = *operands;
        let mut addresses = [std::ptr::null_mut::<c_void>(); MOST_PARAMETERS];
        for (address, word) in addresses.iter_mut().zip(&self.words) {
            // The driver only reads them.
            *address = (&raw const *word).cast_mut().cast();
        }
        let Places { input, output, alpha, beta, old, leading, user } = self.places;
        let mut put = |place: Option<usize>, address: *mut c_void| {
            if let Some(slot) = place.and_then(|place| addresses.get_mut(place)) {
                *slot = address;
            }
        };
        put(input, (&raw mut given.input).cast());
        put(output, (&raw mut given.output).cast());
        put(alpha, (&raw mut given.alpha).cast());
        put(beta, (&raw mut given.beta).cast());
        put(old, (&raw mut given.old).cast());
        for (index, own) in given.leading.iter_mut().enumerate() {
            put(leading.map(|place| place + index), (&raw mut *own).cast());
        }
        put(user, given.user.cast_mut());
        let mut arrays = [0; MOST_PARAMETERS];
        if let Some(workspace) = given.workspace {
            // Another kernel may have left sums there.
            // SAFETY: the caller vouches for the memory.
            unsafe { self.function.zero(stream, workspace, self.workspace.counters) }?;
            let places = self.workspace_places.iter().zip(&self.workspace.offsets);
            for ((&place, offset), array) in places.zip(&mut arrays) {
                *array = workspace + offset;
                put(Some(place), (&raw mut *array).cast());
            }
        }
        // SAFETY: `addresses` has one for each parameter, which `load` compared, and the caller
        // vouches for the memory behind them.
        unsafe { self.function.launch(stream, self.geometry, &mut addresses) }
    }
}

/// A kernel of this crate's own user, with whatever it takes.
#[derive(Debug)]
pub struct SmallKernel(Function);

impl SmallKernel {
    /// Loads it.
    ///
    /// # Errors
    /// When the driver refuses it.
    pub fn load(device: &Device, cubin: &Cubin) -> Result<Self, DeviceError> {
        Function::load(device, cubin, cubin.kernel(), Serialization::Full, 0).map(Self)
    }

    /// Asks a stream for a launch with parameters of 8 bytes each. Returns at once.
    ///
    /// # Errors
    /// When it takes others, or when the driver refuses the launch.
    ///
    /// # Safety
    /// What the kernel does with these arguments is sound.
    pub unsafe fn enqueue<const N: usize>(
        &self,
        stream: ForeignStream,
        (grid, block): (u32, u32),
        mut arguments: [u64; N],
    ) -> Result<(), DeviceError> {
        if self.0.parameters() != [8; N] {
            let reason = format!("the kernel does not take {N} words");
            return Err(DeviceError::WrongArguments { reason });
        }
        let mut addresses = [std::ptr::null_mut::<c_void>(); N];
        for (address, argument) in addresses.iter_mut().zip(&mut arguments) {
            *address = (&raw mut *argument).cast();
        }
        // SAFETY: as many addresses as parameters, each of a word; the caller vouches for the rest.
        unsafe { self.0.launch(stream, Geometry::linear(grid, block), &mut addresses) }
    }
}
