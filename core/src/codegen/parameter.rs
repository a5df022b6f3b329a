use alloc::format;
use alloc::string::{String, ToString};

use crate::language::{Program, Rows};
use crate::layout::{
    ArrayRole, ElementType, LayoutModule, Packed, PackedPart, PartSize, SizeInputs, each_layout,
    part_name,
};
use crate::task::Operation;

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name in the source.
    pub name: String,
    /// What it is.
    pub kind: ParameterKind,
    /// Type of its elements, or of the number itself.
    pub element: ElementType,
}

/// What a parameter of a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// The dense input x or B: device memory, row-major.
    Input,
    /// The dense output y or C: device memory, row-major; not read when β = 0.
    Output,
    /// α, by value.
    Alpha,
    /// β, by value.
    Beta,
    /// A packed array of the matrix: device memory.
    Matrix {
        /// Index of its part.
        part: usize,
        /// Its name within the part.
        array: &'static str,
    },
    /// Device memory that is zero before the first launch.
    Workspace {
        /// Index of its part.
        part: usize,
        /// Its name within the part.
        array: &'static str,
    },
    /// A size of the packed matrix, by value.
    Size(Size),
}

/// A size that a kernel is given at its launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Of a part.
    Part {
        /// Index of the part.
        part: usize,
        /// Which size.
        what: PartSize,
    },
    /// Lines of 128 bytes to prefetch of an array.
    Lines(Prefetched),
    /// Whether the dense output, a matrix of this name, is the first to leave the L2 cache.
    OutputStreamed(&'static str),
}

/// An array that kernels bring to the L2 cache before they read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetched {
    /// The dense input.
    Input {
        /// Its name.
        name: &'static str,
        /// Whether it has a leading dimension.
        strided: bool,
    },
    /// An array of a part.
    Array {
        /// Index of the part.
        part: usize,
        /// Name of the array within the part.
        array: &'static str,
    },
}

impl Prefetched {
    /// Name of the array's parameter in the kernel of a program with some number of parts.
    pub(super) fn name(self, parts: usize) -> String {
        match self {
            Self::Input { name, .. } => name.to_string(),
            Self::Array { part, array } => part_name(parts, part, array),
        }
    }
}

impl Parameter {
    /// What it is, in words; `None` when `program` is of another kernel.
    pub(super) fn meaning(&self, program: &Program) -> Option<String> {
        let array = |part: usize, array: &str| {
            let part = *program.parts().get(part)?;
            let meaning = each_layout!(&part.layout, layout => layout.meaning(array))?;
            Some(format!("[{}] {}", meaning.shape, meaning.element))
        };
        let of = |rows: &str| match program.task.operation {
            Operation::SpMV => format!("[{rows} of A]"),
            Operation::SpMM { columns } => format!("[{rows} of A][{columns}]"),
        };
        Some(match self.kind {
            ParameterKind::Input => format!("{} the dense input", of("columns")),
            ParameterKind::Output => {
                format!("{} the dense output; not read when beta is 0", of("rows"))
            }
            ParameterKind::Alpha => "factor of the product".to_string(),
            ParameterKind::Beta => "factor of the old output".to_string(),
            ParameterKind::Matrix { part, array: name } => array(part, name)?,
            ParameterKind::Workspace { part, array: name } => {
                format!("{}; workspace", array(part, name)?)
            }
            ParameterKind::Size(size) => size.meaning(program.parts().len()),
        })
    }

    /// How the kernel declares it. The output is `restricted` where no other parameter may point to
    /// it.
    pub(super) fn declaration(&self, restricted: bool) -> String {
        let Self { name, kind, element } = self;
        let ty = element.cuda_type();
        match kind {
            // Not restricted: the compiler would take it for constant as long as the kernel runs,
            // and might read it before the wait for those that write it.
            ParameterKind::Input => format!("const {ty}* {name}"),
            // What the output is not restricts the others as well.
            ParameterKind::Output if restricted => format!("{ty}* __restrict__ {name}"),
            ParameterKind::Matrix { .. } => format!("const {ty}* {name}"),
            ParameterKind::Alpha | ParameterKind::Beta | ParameterKind::Size(_) => {
                format!("{ty} {name}")
            }
            ParameterKind::Output | ParameterKind::Workspace { .. } => format!("{ty}* {name}"),
        }
    }
}

/// Bytes of a prefetched line.
const LINE_BYTES: u64 = 128;
/// Of a matrix up to this packed size, arrays and an input up to this size are prefetched. Larger
/// ones keep the memory busy anyway: on an H200 prefetching gains them nothing cold, and costs 2 %
/// warm.
const MOST_PREFETCHED: u64 = 8 << 20;
/// B and C of this many bytes together do not fit the L2 caches of 40 to 60 MB side by side with A:
/// C then is stored such that it leaves first, and B stays. On an H200 that takes up to a fifth off
/// the time (47.6 MB, 128 columns), and where both fit it costs up to an eighth.
const LEAST_STREAMED: u64 = 32 << 20;

impl Size {
    /// Name of the parameter in the kernel of a program with some number of parts.
    pub(super) fn name(self, parts: usize) -> String {
        match self {
            Self::Lines(array) => format!("{}_lines", array.name(parts)),
            Self::OutputStreamed(output) => format!("{output}_streamed"),
            Self::Part { part, what } => part_name(parts, part, what.name()),
        }
    }

    /// What it means in the kernel of a program with some number of parts, in words.
    #[must_use]
    pub fn meaning(self, parts: usize) -> String {
        match self {
            Self::Lines(array) => {
                format!("lines of 128 bytes of {} to prefetch, or 0", array.name(parts))
            }
            Self::OutputStreamed(output) => {
                format!("1 where {output} is the first to leave the L2 cache, else 0")
            }
            Self::Part { part, what } => what.meaning(&match parts {
                1 => "A".to_string(),
                _ => format!("part {part}"),
            }),
        }
    }

    /// Whether it says how much is prefetched.
    pub(super) fn is_lines(self) -> bool {
        matches!(self, Self::Lines(_))
    }

    /// What it is for a packed matrix; `None` where that has no such part or array.
    #[must_use]
    pub fn of(self, packed: &Packed) -> Option<u64> {
        match self {
            // Between the rows of such an input there is what nobody wants.
            Self::Lines(Prefetched::Input { strided: true, .. }) => Some(0),
            Self::Lines(Prefetched::Input { strided: false, .. }) => Some(input_lines(packed)),
            Self::Lines(Prefetched::Array { part, array }) => {
                Some(lines(packed, packed.parts.get(part)?.array(array)?.bytes().len() as u64))
            }
            Self::OutputStreamed(_) => Some(is_output_streamed(packed).into()),
            Self::Part { part, what } => part_size(packed, packed.parts.get(part)?, what),
        }
    }
}

fn part_size(packed: &Packed, part: &PackedPart, what: PartSize) -> Option<u64> {
    Some(match what {
        PartSize::Rows => part.rows.len() as u64,
        PartSize::Columns => packed.cols as u64,
        PartSize::FirstRow => match part.rows {
            Rows::Range { first, .. } => first.into(),
            Rows::List(_) => return None,
        },
        PartSize::FirstBlock => part.first_block.into(),
        PartSize::Entries => part.nnz as u64,
        PartSize::PanelBlocks => {
            let (task, block) = (packed.program.task, packed.program.block.threads());
            let call = each_layout!(&part.layout, layout => layout.call(task, block));
            // Kernels divide by it, also where the part has no rows.
            (part.blocks / call.mapping.panels).max(1).into()
        }
        PartSize::Own(own) => {
            let elements = match own.array {
                Some(array) => part.array(array)?.len(),
                None => 0,
            };
            let columns = packed.program.task.operation.columns() as usize;
            (own.of)(SizeInputs { rows: part.rows.len(), nnz: part.nnz, elements, columns }) as u64
        }
    })
}

/// The input is prefetched where most of it is used.
fn input_lines(packed: &Packed) -> u64 {
    let task = packed.program.task;
    let nnz: usize = packed.parts.iter().map(|part| part.nnz).sum();
    let elements = packed.cols as u64 * u64::from(task.operation.columns());
    let is_used = nnz >= packed.cols;
    if is_used { lines(packed, elements * task.precision.dense().size() as u64) } else { 0 }
}

fn is_output_streamed(packed: &Packed) -> bool {
    let task = packed.program.task;
    let rows = packed.rows as u64 + packed.cols as u64;
    let bytes = u64::from(task.operation.columns()) * task.precision.dense().size() as u64;
    rows.saturating_mul(bytes) >= LEAST_STREAMED
}

/// Whole lines of an array of so many bytes to prefetch, where it is one for a packed matrix.
fn lines(packed: &Packed, bytes: u64) -> u64 {
    let is_small = packed.bytes(ArrayRole::Matrix) <= MOST_PREFETCHED;
    let has_room = (LINE_BYTES..=MOST_PREFETCHED).contains(&bytes);
    if is_small && has_room { bytes / LINE_BYTES } else { 0 }
}
