//! Sources, and the arguments of their launches.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use thiserror::Error;

use super::lines::write_list;
use super::parameter::{Parameter, ParameterKind, Size};
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
    /// The sizes that it has as constants: it is for matrices of these alone. A kernel that is
    /// given its sizes has none.
    pub constants: Vec<SizeConstant>,
    /// Whether the kernel waits by itself for those before it in the stream, so that it may begin
    /// before they have ended.
    pub waits_itself: bool,
}

/// A size that a source has as a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeConstant {
    /// Name in the source.
    pub name: String,
    /// Which size.
    pub size: Size,
    /// Its type.
    pub element: ElementType,
    /// What it is.
    pub value: u64,
}

impl SizeConstant {
    /// The constant in the place of a parameter, of which the size is known.
    pub(super) fn of(Parameter { name, element, .. }: Parameter, size: Size, value: u64) -> Self {
        Self { name, size, element, value }
    }

    /// How the source declares it.
    pub(super) fn declaration(&self) -> String {
        let Self { name, element, value, .. } = self;
        format!("constexpr {} {name} = {value}u;", element.cuda_type())
    }

    /// Refuses a source that declares it with another value.
    ///
    /// # Errors
    /// When there is one.
    pub fn check_source(&self, text: &str) -> Result<(), OtherSize> {
        let declaration = self.declaration();
        let opening = declaration.split_inclusive(" = ").next().unwrap_or_default();
        let declared = text.lines().find_map(|line| line.strip_prefix(opening)?.split('u').next());
        match declared.and_then(|number| number.parse().ok()) {
            Some(value) if value != self.value => {
                Err(OtherSize { name: self.name.clone(), value, found: Some(self.value) })
            }
            _ => Ok(()),
        }
    }

    /// Refuses a packed matrix that has another size.
    fn check(&self, packed: &Packed) -> Result<(), OtherSize> {
        match self.size.of(packed) {
            Some(found) if found == self.value => Ok(()),
            found => Err(OtherSize { name: self.name.clone(), value: self.value, found }),
        }
    }
}

/// A kernel is for matrices of other sizes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the kernel is for matrices with {name} = {value} alone, and here it is {}",
    found.map_or("nothing".to_owned(), |found| found.to_string())
)]
pub struct OtherSize {
    /// Name of the size in the source.
    pub name: String,
    /// What it is there.
    pub value: u64,
    /// What it is for the matrix; absent where that has nothing of the kind.
    pub found: Option<u64>,
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
    /// The sizes are of another matrix.
    #[error(transparent)]
    OtherSize(#[from] OtherSize),
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
    ///
    /// # Errors
    /// When the source has other sizes than the matrix as constants.
    pub fn launch(&self, packed: &Packed) -> Result<Launch, OtherSize> {
        self.constants.iter().try_for_each(|constant| constant.check(packed))?;
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
        Ok(Launch { geometry: packed.geometry, arguments })
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
        let launch = format!("// For the matrix of plan.json: {grid} blocks of {block} threads");
        if sizes.is_empty() {
            return format!("\n{launch}\n");
        }
        let mut text = "\n".to_owned();
        // A string takes all that is written to it.
        let _ = write_list(&mut text, &format!("{launch}, with "), &sizes, "");
        text
    }
}
