//! One kernel run from bytes to bytes: what tests and verification are made of.

use super::{Argument, Device, DeviceBuffer, DeviceError, Guard, LaunchError, Module};
use crate::nvrtc::Cubin;

/// One argument of a case, in the kernel's order.
#[derive(Clone, Copy, Debug)]
pub enum CaseArgument<'a> {
    /// A buffer with these bytes that the kernel may only read.
    Input(&'a [u8]),
    /// A buffer with these bytes that the kernel may write; [`poison`](super::poison) when it must write all of it.
    Output(&'a [u8]),
    /// A `float`.
    F32(f32),
    /// A `double`.
    F64(f64),
    /// A 32-bit integer.
    U32(u32),
    /// A 64-bit integer.
    U64(u64),
}

/// What a case left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseOutcome {
    /// The outputs, in the order of the arguments.
    pub outputs: Vec<CaseOutput>,
    /// Positions of inputs, among the arguments, whose bytes the kernel changed. It must change none.
    pub changed_inputs: Vec<usize>,
    /// Positions of buffers with damaged guard zones, and the damage.
    pub damaged: Vec<(usize, super::Damage)>,
}

impl CaseOutcome {
    /// Whether nothing was written but the outputs.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.changed_inputs.is_empty() && self.damaged.is_empty()
    }
}

/// An output buffer after the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseOutput {
    /// Its place among the arguments, from 0.
    pub position: usize,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// Runs `cubin`'s kernel once with `grid` blocks of `block` threads on fresh buffers and gives back what it wrote.
///
/// # Errors
/// When the cubin does not load, memory does not suffice, or the kernel does not run to its end. Writes where none
/// should be are no error but part of the [`CaseOutcome`].
pub fn run_case(
    device: &Device,
    cubin: &Cubin,
    grid: u32,
    block: u32,
    arguments: &[CaseArgument<'_>],
) -> Result<CaseOutcome, CaseError> {
    let kernel = Module::load(device, cubin)?.kernel(cubin.kernel())?;
    let buffers = arguments
        .iter()
        .map(|argument| match argument {
            CaseArgument::Input(bytes) | CaseArgument::Output(bytes) => {
                DeviceBuffer::from_bytes(device, bytes).map(Some)
            }
            _ => Ok(None),
        })
        .collect::<Result<Vec<_>, _>>()?;

    let launched: Vec<_> = arguments
        .iter()
        .zip(&buffers)
        .filter_map(|pair| match pair {
            (CaseArgument::Input(_) | CaseArgument::Output(_), buffer) => {
                buffer.as_ref().map(Argument::Buffer)
            }
            (CaseArgument::F32(value), _) => Some(Argument::F32(*value)),
            (CaseArgument::F64(value), _) => Some(Argument::F64(*value)),
            (CaseArgument::U32(value), _) => Some(Argument::U32(*value)),
            (CaseArgument::U64(value), _) => Some(Argument::U64(*value)),
        })
        .collect();
    kernel.launch(grid, block, &launched)?;

    let mut outcome =
        CaseOutcome { outputs: Vec::new(), changed_inputs: Vec::new(), damaged: Vec::new() };
    for (position, (argument, buffer)) in arguments.iter().zip(&buffers).enumerate() {
        let Some(buffer) = buffer else { continue };
        if let Guard::Damaged(damage) = buffer.guard()? {
            outcome.damaged.push((position, damage));
        }
        let bytes = buffer.download()?;
        match argument {
            CaseArgument::Input(before) if bytes != *before => {
                outcome.changed_inputs.push(position);
            }
            CaseArgument::Output(_) => outcome.outputs.push(CaseOutput { position, bytes }),
            _ => {}
        }
    }
    Ok(outcome)
}

/// A case was not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaseError {
    /// The device, not the kernel's run.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The kernel's run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}
