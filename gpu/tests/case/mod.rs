//! One kernel run from bytes to bytes.

use sparserl_gpu::compile::nvrtc::Cubin;
use sparserl_gpu::run::device::{
    Argument, Damage, Device, DeviceBuffer, DeviceError, Geometry, Guard, Kernel, LaunchError,
    Module,
};

/// One argument of a case, in the kernel's order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CaseArgument<'a> {
    /// A buffer with these bytes that the kernel may only read.
    Input(&'a [u8]),
    /// A buffer with these bytes that the kernel may write; `poison` when it must write all of it.
    Output(&'a [u8]),
    /// A `float`.
    F32(f32),
    /// A 32-bit integer.
    U32(u32),
    /// A 64-bit integer.
    U64(u64),
}

/// What a case left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaseOutcome {
    /// The outputs, in the order of the arguments.
    pub(crate) outputs: Vec<CaseOutput>,
    /// Positions of inputs, among the arguments, whose bytes the kernel changed. It must change
    /// none.
    pub(crate) changed_inputs: Vec<usize>,
    /// Positions of buffers with damaged guard zones, and the damage.
    pub(crate) damaged: Vec<(usize, Damage)>,
}

impl CaseOutcome {
    /// Whether nothing was written but the outputs.
    #[must_use]
    pub(crate) fn is_clean(&self) -> bool {
        self.changed_inputs.is_empty() && self.damaged.is_empty()
    }
}

/// An output buffer after the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaseOutput {
    /// Its place among the arguments, from 0.
    pub(crate) position: usize,
    /// Its contents.
    pub(crate) bytes: Vec<u8>,
}

/// A kernel with buffers of its own, to be launched any number of times.
///
/// ```text
/// Case::new ─► launch ─► outcome ─► set (new operands, same addresses) ─► launch ─► outcome ─► …
/// ```
///
/// What a launch leaves in its outputs is there at the next one, unless it is set again.
#[derive(Debug)]
pub(crate) struct Case {
    kernel: Kernel,
    arguments: Vec<Held>,
}

/// An argument as a case holds it.
#[derive(Debug)]
enum Held {
    /// With a hash of what it must go on holding.
    Input(DeviceBuffer, blake3::Hash),
    Output(DeviceBuffer),
    F32(f32),
    U32(u32),
    U64(u64),
}

impl Held {
    fn new(device: &Device, argument: &CaseArgument<'_>) -> Result<Self, DeviceError> {
        Ok(match *argument {
            CaseArgument::Input(bytes) => {
                Self::Input(DeviceBuffer::from_bytes(device, bytes)?, blake3::hash(bytes))
            }
            CaseArgument::Output(bytes) => Self::Output(DeviceBuffer::from_bytes(device, bytes)?),
            CaseArgument::F32(value) => Self::F32(value),
            CaseArgument::U32(value) => Self::U32(value),
            CaseArgument::U64(value) => Self::U64(value),
        })
    }

    fn as_argument(&self) -> Argument<'_> {
        match self {
            Self::Input(buffer, _) | Self::Output(buffer) => Argument::Buffer(buffer),
            Self::F32(value) => Argument::F32(*value),
            Self::U32(value) => Argument::U32(*value),
            Self::U64(value) => Argument::U64(*value),
        }
    }

    fn buffer(&self) -> Option<&DeviceBuffer> {
        match self {
            Self::Input(buffer, _) | Self::Output(buffer) => Some(buffer),
            _ => None,
        }
    }
}

impl Case {
    /// Loads `cubin` and takes a buffer for each argument that needs one.
    ///
    /// # Errors
    /// When the cubin does not load or memory does not suffice.
    pub(crate) fn new(
        device: &Device,
        cubin: &Cubin,
        arguments: &[CaseArgument<'_>],
    ) -> Result<Self, CaseError> {
        let kernel = Module::load(device, cubin)?.kernel(cubin.kernel())?;
        let arguments = arguments.iter().map(|argument| Held::new(device, argument));
        Ok(Self { kernel, arguments: arguments.collect::<Result<_, _>>()? })
    }

    /// Gives the argument at `position` another value. A buffer keeps its address, and so its
    /// length.
    ///
    /// # Errors
    /// When the argument at `position` is of another kind or length, or when the driver fails.
    pub(crate) fn set(
        &mut self,
        position: usize,
        argument: CaseArgument<'_>,
    ) -> Result<(), CaseError> {
        let unlike = CaseError::Unlike { position };
        match (self.arguments.get_mut(position), argument) {
            (Some(Held::Input(buffer, hash)), CaseArgument::Input(bytes)) => {
                buffer.upload(bytes)?;
                *hash = blake3::hash(bytes);
            }
            (Some(Held::Output(buffer)), CaseArgument::Output(bytes)) => buffer.upload(bytes)?,
            (Some(Held::F32(held)), CaseArgument::F32(value)) => *held = value,
            (Some(Held::U32(held)), CaseArgument::U32(value)) => *held = value,
            (Some(Held::U64(held)), CaseArgument::U64(value)) => *held = value,
            _ => return Err(unlike),
        }
        Ok(())
    }

    /// Launches the kernel and waits for it.
    ///
    /// # Errors
    /// When the kernel does not run to its end.
    pub(crate) fn launch(&self, geometry: Geometry) -> Result<(), CaseError> {
        let arguments: Vec<_> = self.arguments.iter().map(Held::as_argument).collect();
        Ok(self.kernel.launch(geometry, &arguments)?)
    }

    /// What the buffers hold now.
    ///
    /// # Errors
    /// When the driver fails.
    pub(crate) fn outcome(&self) -> Result<CaseOutcome, CaseError> {
        let mut outcome =
            CaseOutcome { outputs: Vec::new(), changed_inputs: Vec::new(), damaged: Vec::new() };
        for (position, argument) in self.arguments.iter().enumerate() {
            let Some(buffer) = argument.buffer() else { continue };
            if let Guard::Damaged(damage) = buffer.guard()? {
                outcome.damaged.push((position, damage));
            }
            match argument {
                Held::Input(buffer, hash) if buffer.checksum()? != *hash.as_bytes() => {
                    outcome.changed_inputs.push(position);
                }
                Held::Output(buffer) => {
                    outcome.outputs.push(CaseOutput { position, bytes: buffer.download()? });
                }
                _ => {}
            }
        }
        Ok(outcome)
    }
}

/// Runs `cubin`'s kernel once with `grid` blocks of `block` threads on fresh buffers and gives back
/// what it wrote.
///
/// # Errors
/// When the cubin does not load, memory does not suffice, or the kernel does not run to its end.
/// Writes where none should be are no error but part of the [`CaseOutcome`].
pub(crate) fn run_case(
    device: &Device,
    cubin: &Cubin,
    geometry: Geometry,
    arguments: &[CaseArgument<'_>],
) -> Result<CaseOutcome, CaseError> {
    let case = Case::new(device, cubin, arguments)?;
    case.launch(geometry)?;
    case.outcome()
}

/// A case was not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CaseError {
    /// The device, not the kernel's run.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The kernel's run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// [`Case::set`] was given something that the argument cannot become.
    #[error("argument {position} is of another kind than what it is set to")]
    Unlike {
        /// Its place among the arguments, from 0.
        position: usize,
    },
}
