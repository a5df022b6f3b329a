use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use thiserror::Error;

use super::blocks;
use super::call::{DeviceCall, dense_names, scalar_type};
use crate::language::each_layout;
use crate::layout::{ArrayRole, Launch, Packed, PackedPart};
use crate::task::{Operation, Task};

/// A CUDA translation unit with one kernel, and how to launch it.
#[derive(Clone, Debug, PartialEq)]
pub struct CudaSource {
    /// The source; it includes nothing.
    pub text: String,
    /// Name of the kernel: `sparserl_spmv` or `sparserl_spmm`.
    pub kernel: &'static str,
    /// Launch geometry.
    pub launch: Launch,
    /// The kernel's arguments, in order.
    pub arguments: Vec<Argument>,
}

/// An argument of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Name in the source.
    pub name: String,
    /// What it is.
    pub kind: ArgumentKind,
    /// Element type, by its Rust name.
    pub dtype: &'static str,
    /// Elements; 1 for a scalar passed by value.
    pub len: usize,
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
}

/// A kernel could not be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EmitError {
    /// A part lacks an array that its device block reads.
    #[error("part {part} ({layout}) lacks an array that its device block reads")]
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

/// Bytes of a prefetched line.
const LINE_BYTES: u64 = 128;
/// Arrays up to this size are prefetched; larger ones keep the memory busy anyway.
const MOST_PREFETCHED: u64 = 8 << 20;
/// Blocks that share the prefetching: about those that run at first on a large GPU.
const PREFETCHING_BLOCKS: u64 = 1024;

/// Writes the kernel of a packed matrix.
///
/// # Errors
/// When `packed` is not what [`crate::layout::pack`] gives.
pub fn emit(packed: &Packed) -> Result<CudaSource, EmitError> {
    let task = packed.program.task;
    let kernel = match task.operation {
        Operation::SpMV => "sparserl_spmv",
        Operation::SpMM { .. } => "sparserl_spmm",
    };
    let arguments = arguments(packed);
    let mut calls: Vec<(usize, &PackedPart, DeviceCall)> = packed
        .parts
        .iter()
        .enumerate()
        .filter(|(_, part)| part.blocks > 0)
        .map(|(index, part)| (index, part, call(part, task, packed.launch.block)))
        .collect();
    calls.sort_by_key(|(_, part, _)| part.first_block);
    let prefetched = prefetched(packed);

    let mut text = String::new();
    write_header(&mut text, packed, kernel, &arguments)?;
    let mut needed = alloc::vec!["types.cuh"];
    needed.extend((!prefetched.is_empty()).then_some("prefetch.cuh"));
    needed.extend(calls.iter().map(|(_, _, call)| call.block));
    for (name, lines) in blocks::inline(&needed) {
        writeln!(text, "\n// ---- {name}\n")?;
        for line in lines {
            writeln!(text, "{line}")?;
        }
    }
    writeln!(text, "\n// ---- the kernel\n")?;
    write_kernel(&mut text, packed, kernel, &arguments, &prefetched, &calls)?;
    Ok(CudaSource { text, kernel, launch: packed.launch, arguments })
}

fn call(part: &PackedPart, task: Task, block: u32) -> DeviceCall {
    each_layout!(&part.layout, layout => layout.call(part, task, block))
}

fn arguments(packed: &Packed) -> Vec<Argument> {
    let task = packed.program.task;
    let columns = task.operation.columns() as usize;
    let (input, output) = dense_names(task.operation);
    let dtype = task.precision.dense().name();
    let own = |name: &str, kind, len| Argument { name: name.to_string(), kind, dtype, len };
    let mut arguments = alloc::vec![
        own(input, ArgumentKind::Input, packed.cols * columns),
        own(output, ArgumentKind::Output, packed.rows * columns),
        own("alpha", ArgumentKind::Alpha, 1),
        own("beta", ArgumentKind::Beta, 1),
    ];
    arguments.extend(packed.arguments().map(|(name, array)| {
        let kind = match array.role {
            ArrayRole::Matrix => ArgumentKind::Matrix,
            ArrayRole::PartialSums | ArrayRole::Counters => ArgumentKind::Workspace,
        };
        Argument { name, kind, dtype: array.data.dtype(), len: array.data.len() }
    }));
    arguments
}

fn write_header(
    text: &mut String,
    packed: &Packed,
    kernel: &str,
    arguments: &[Argument],
) -> fmt::Result {
    let task = packed.program.task;
    let nnz: usize = packed.parts.iter().map(|part| part.nnz).sum();
    let Launch { grid, block, .. } = packed.launch;
    let product = match task.operation {
        Operation::SpMV => "SpMV, y = alpha * A * x + beta * y".to_string(),
        Operation::SpMM { columns } => {
            format!("SpMM, C = alpha * A * B + beta * C, with row-major B and C of width {columns}")
        }
    };
    writeln!(text, "// {product}, in {}.", task.precision.dense())?;
    writeln!(text, "//")?;
    writeln!(
        text,
        "// Made for one matrix of {} rows, {} columns and {nnz} entries, packed as this program says:",
        packed.rows, packed.cols
    )?;
    writeln!(text, "//")?;
    for line in packed.program.to_string().lines() {
        writeln!(text, "//   {line}")?;
    }
    writeln!(text, "//")?;
    writeln!(
        text,
        "// Launch: {kernel}<<<{grid}, {block}>>>(arguments), no dynamic shared memory."
    )?;
    writeln!(text, "// Arguments, in order (pointers are to device memory):")?;
    writeln!(text, "//")?;
    let width = arguments.iter().map(|a| a.name.len()).max().unwrap_or(0);
    for Argument { name, kind, dtype, len } in arguments {
        let what = match kind {
            ArgumentKind::Input => format!("{len} x {dtype}, the dense input"),
            ArgumentKind::Output => {
                format!("{len} x {dtype}, the dense output; not read when beta is 0")
            }
            ArgumentKind::Alpha | ArgumentKind::Beta => format!("{dtype}, by value"),
            ArgumentKind::Matrix => format!("{len} x {dtype}"),
            ArgumentKind::Workspace => format!("{len} x {dtype}, workspace"),
        };
        writeln!(text, "//   {name:width$}  {what}")?;
    }
    writeln!(text, "//\n// Input and output must not overlap.")?;
    let workspace = arguments.iter().any(|a| a.kind == ArgumentKind::Workspace);
    if workspace {
        writeln!(
            text,
            "// Workspace must be zero before the first launch; launches that share it must not overlap."
        )?;
    }
    if task.operation != Operation::SpMV {
        let and = if workspace { ", and workspace," } else { "" };
        writeln!(text, "// Input and output{and} must be aligned to 16 bytes.")?;
    }
    Ok(())
}

fn write_kernel(
    text: &mut String,
    packed: &Packed,
    kernel: &str,
    arguments: &[Argument],
    prefetched: &[(String, u64)],
    calls: &[(usize, &PackedPart, DeviceCall)],
) -> Result<(), EmitError> {
    let task = packed.program.task;
    let Launch { block, shared, .. } = packed.launch;
    writeln!(text, "extern \"C\" __global__ void __launch_bounds__({block}, 1)")?;
    writeln!(text, "{kernel}(")?;
    // The dense operands and the factors come first; they are of the element type.
    let scalar = scalar_type(task.precision.dense());
    let own = arguments.len() - packed.arguments().count();
    let arrays = packed.arguments().map(|(_, array)| array.data.cuda_type());
    let types = core::iter::repeat_n(scalar, own).chain(arrays);
    for (i, (argument, ty)) in arguments.iter().zip(types).enumerate() {
        let comma = if i + 1 < arguments.len() { "," } else { ") {" };
        writeln!(text, "    {}{comma}", parameter(argument, ty))?;
    }
    writeln!(text, "  static_assert({block} % 32 == 0, \"whole warps\");")?;
    if shared > 0 {
        writeln!(text, "  __shared__ alignas(16) unsigned char scratch[{shared}];")?;
    }
    for (name, bytes) in prefetched {
        let lines = bytes.div_ceil(LINE_BYTES);
        let share = lines.div_ceil(u64::from(packed.launch.grid).min(PREFETCHING_BLOCKS));
        writeln!(text, "  prefetch<{block}>({name}, {lines}u, {share}u);")?;
    }
    for (i, (index, part, call)) in calls.iter().enumerate() {
        let nested = calls.len() > 1;
        let indent = if nested { "    " } else { "  " };
        if nested {
            let opening = match i {
                0 => format!("  if (blockIdx.x < {}u) {{", part.first_block + part.blocks),
                _ if i + 1 < calls.len() => {
                    format!("  }} else if (blockIdx.x < {}u) {{", part.first_block + part.blocks)
                }
                _ => "  } else {".to_string(),
            };
            writeln!(text, "{opening}")?;
        }
        write_part(text, indent, *index, part, call, task)?;
        if nested && i + 1 == calls.len() {
            writeln!(text, "  }}")?;
        }
    }
    writeln!(text, "}}")?;
    Ok(())
}

/// The arrays whose addresses depend on other loads, with their bytes: the entries, and the input
/// where most of it is used.
fn prefetched(packed: &Packed) -> Vec<(String, u64)> {
    let task = packed.program.task;
    let element = task.precision.dense().size() as u64;
    let input = packed.cols as u64 * u64::from(task.operation.columns()) * element;
    let nnz: usize = packed.parts.iter().map(|part| part.nnz).sum();
    let used = nnz >= packed.cols;
    let (input_name, _) = dense_names(task.operation);
    let input = used.then(|| (input_name.to_string(), input));
    let arrays = packed.arguments().filter(|(_, array)| array.holds_entries());
    let arrays = arrays.map(|(name, array)| (name, array.data.bytes().len() as u64));
    let worthwhile = |&(_, bytes): &(String, u64)| (LINE_BYTES..=MOST_PREFETCHED).contains(&bytes);
    input.into_iter().chain(arrays).filter(worthwhile).collect()
}

fn parameter(argument: &Argument, ty: &str) -> String {
    let Argument { name, kind, .. } = argument;
    match kind {
        ArgumentKind::Input | ArgumentKind::Matrix => format!("const {ty}* __restrict__ {name}"),
        ArgumentKind::Output => format!("{ty}* __restrict__ {name}"),
        ArgumentKind::Alpha | ArgumentKind::Beta => format!("const {ty} {name}"),
        ArgumentKind::Workspace => format!("{ty}* {name}"),
    }
}

fn write_part(
    text: &mut String,
    indent: &str,
    index: usize,
    part: &PackedPart,
    call: &DeviceCall,
    task: Task,
) -> Result<(), EmitError> {
    let layout = part.layout.word().text();
    writeln!(text, "{indent}// Part {index}: {} rows with {} entries.", part.rows.len(), part.nnz)?;
    let mapping = call.mapping;
    let own_block = match part.first_block {
        0 => "blockIdx.x".to_string(),
        first => format!("(blockIdx.x - {first}u)"),
    };
    let own_block_bare = own_block.trim_start_matches('(').trim_end_matches(')');
    match task.operation {
        Operation::SpMV => {
            writeln!(text, "{indent}const u32 block = {own_block_bare}, column = 0;")?;
        }
        Operation::SpMM { .. } => {
            let (tiles, stride, vector) = (mapping.column_tiles, mapping.stride, mapping.vector);
            if tiles == 1 {
                writeln!(text, "{indent}const u32 block = {own_block_bare};")?;
            } else {
                writeln!(text, "{indent}const u32 block = {own_block} / {tiles};")?;
                writeln!(text, "{indent}const u32 column_tile = {own_block} % {tiles};")?;
            }
            let lane = match (tiles, stride) {
                (1, 1) => "0".to_string(),
                (1, _) => format!("threadIdx.x % {stride}"),
                (_, 1) => "column_tile".to_string(),
                _ => format!("(column_tile * {stride} + threadIdx.x % {stride})"),
            };
            match (lane.as_str(), vector) {
                ("0", _) | (_, 1) => writeln!(text, "{indent}const u32 column = {lane};")?,
                _ => writeln!(text, "{indent}const u32 column = {lane} * {vector};")?,
            }
        }
    }
    let arguments =
        call.arguments(index, part, task).ok_or(EmitError::MissingArray { part: index, layout })?;
    writeln!(text, "{indent}{}(", call.callee(task))?;
    for (i, argument) in arguments.iter().enumerate() {
        let end = if i + 1 < arguments.len() { "," } else { ");" };
        writeln!(text, "{indent}    {argument}{end}")?;
    }
    Ok(())
}
