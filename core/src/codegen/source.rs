//! Sources, and the arguments of their launches.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use thiserror::Error;

use super::lines::write_list;
use super::parameter::{Parameter, ParameterKind};
use crate::layout::{ArrayData, ElementType, LinearGeometry, Packed};
use crate::target::Architecture;

/// A CUDA translation unit with one kernel.
///
/// A kernel that [waits itself](Self::waits_itself) may be launched with programmatic stream
/// serialization where the [architecture has it](Architecture::has_programmatic_launch): it then
/// begins before those before it in the stream have ended, and waits for them before it touches
/// memory (CUDA C++ Programming Guide, programmatic dependent launch).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaSource {
    /// The source; it includes nothing.
    pub text: String,
    /// Name of the kernel: `sparserl_spmv_` or `sparserl_spmm_` and a hash of the source, so that
    /// different kernels can be linked into one program.
    pub kernel: String,
    /// The kernel's parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Whether the kernel waits by itself for those before it in the stream, so that it may begin
    /// before they have ended.
    pub waits_itself: bool,
}

/// A kernel could not be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EmitError {
    /// The signature is of another program.
    #[error("part {part} ({layout}) lacks an array that its device code reads, or what one means")]
    MissingArray {
        /// Index of the part.
        part: usize,
        /// The layout's word.
        layout: &'static str,
    },
    /// Formatting failed.
    #[error("out of memory while writing the source")]
    Format(#[from] fmt::Error),
}

/// How a kernel is launched for one packed matrix: geometry and arguments, resolved once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks and threads.
    pub geometry: LinearGeometry,
    /// The arguments, in the order of the kernel's parameters.
    pub arguments: Vec<Argument>,
}

/// An argument of a kernel for one packed matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Name in the source.
    pub name: String,
    /// What it is.
    pub kind: ArgumentKind,
    /// Type of its elements.
    pub element: ElementType,
    /// Elements; 1 for a number passed by value.
    pub len: usize,
    /// What its elements mean, in words.
    pub meaning: String,
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// The dense input x or B: device memory, row-major.
    Input,
    /// The dense output y or C: device memory, row-major; not read when β = 0.
    Output,
    /// α, by value.
    Alpha,
    /// β, by value.
    Beta,
    /// A packed array of the matrix: device memory.
    Matrix,
    /// Device memory that is zero before the first launch.
    Workspace,
    /// A number of the argument's type, by value.
    Size(u64),
}

impl CudaSource {
    /// The launch for a matrix; `packed` is of the source's program and signature.
    #[must_use]
    pub fn launch(&self, packed: &Packed) -> Launch {
        let columns = packed.program.task.operation.columns() as usize;
        let array_len = |part: usize, array: &str| {
            let data = packed.parts.get(part).and_then(|part| part.array(array));
            data.map_or(0, ArrayData::len)
        };
        let argument = |parameter: &Parameter| {
            let (kind, len) = match parameter.kind {
                ParameterKind::Input => (ArgumentKind::Input, packed.cols * columns),
                ParameterKind::Output => (ArgumentKind::Output, packed.rows * columns),
                ParameterKind::Alpha => (ArgumentKind::Alpha, 1),
                ParameterKind::Beta => (ArgumentKind::Beta, 1),
                ParameterKind::Matrix { part, array } => {
                    (ArgumentKind::Matrix, array_len(part, array))
                }
                ParameterKind::Workspace { part, array } => {
                    (ArgumentKind::Workspace, array_len(part, array))
                }
                // A packing of the program has all of its sizes: emission has seen to that.
                ParameterKind::Size(size) => {
                    (ArgumentKind::Size(size.of(packed).unwrap_or_default()), 1)
                }
            };
            let name = parameter.name.clone();
            let meaning = parameter.meaning(&packed.program).unwrap_or_default();
            Argument { name, kind, element: parameter.element, len, meaning }
        };
        let arguments = self.parameters.iter().map(argument).collect();
        Launch { geometry: packed.geometry, arguments }
    }

    /// Whether it may be launched with programmatic stream serialization on an architecture.
    #[must_use]
    pub fn begins_early(&self, architecture: Architecture) -> bool {
        self.waits_itself && architecture.has_programmatic_launch()
    }
}

impl Launch {
    /// The arguments, each with the place of its array in the order of [`Packed::arguments`], where
    /// it is one.
    pub fn with_arrays(&self) -> impl Iterator<Item = (&Argument, Option<usize>)> {
        self.arguments.iter().scan(0, |arrays, argument| {
            let is_array = matches!(argument.kind, ArgumentKind::Matrix | ArgumentKind::Workspace);
            let place = is_array.then_some(*arrays);
            *arrays += usize::from(is_array);
            Some((argument, place))
        })
    }

    /// Says how a source is launched for this matrix, to stand after the last line of its source:
    /// neither that nor what it compiles to depends on the matrix.
    pub(crate) fn comment(&self) -> String {
        let LinearGeometry { grid, block, .. } = self.geometry;
        let sizes = self.arguments.iter().filter_map(|argument| match argument.kind {
            ArgumentKind::Size(size) => Some(format!("{} = {size}", argument.name)),
            _ => None,
        });
        let sizes: Vec<String> = sizes.collect();
        let opening =
            format!("// For the matrix of plan.json: {grid} blocks of {block} threads, with ");
        let mut text = "\n".to_owned();
        // A string takes all that is written to it.
        let _ = write_list(&mut text, &opening, &sizes, "");
        text
    }
}
