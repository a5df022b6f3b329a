use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::access::loads_vectors;
use super::lines::{MOST_COLUMNS, write_list, write_words};
use super::parameter::{Parameter, ParameterKind};
use super::source::SizeConstant;
use crate::language::Program;
use crate::layout::is_declared;
use crate::task::Operation;

/// Says what the kernel computes, what it is given and how it is launched.
pub(super) fn write_header(
    text: &mut String,
    program: &Program,
    kernel: &str,
    (parameters, constants): (&[Parameter], &[SizeConstant]),
    shared: usize,
) -> fmt::Result {
    let task = program.task;
    let precision = task.precision;
    let (matrix, dense) = (precision.matrix(), precision.dense());
    let mut dtype = format!("{dense}");
    if matrix != dense {
        write!(dtype, ", A in {matrix}")?;
    }
    if precision.rounds_results() {
        write!(dtype, ", sums in {}", precision.accumulator())?;
    }
    let product = match task.operation {
        Operation::SpMV => format!("SpMV in {dtype}: y = alpha * A * x + beta * y."),
        Operation::SpMM { columns } => {
            format!("SpMM in {dtype}: C = alpha * A * B + beta * C, row-major, {columns} columns.")
        }
    };
    // Version, task and threads of a block, then the parts.
    let program_text = program.to_string();
    let mut lines = program_text.lines();
    let opening: Vec<&str> = lines.by_ref().take(3).collect();
    let opening = opening.join(" ");
    let line = format!("// {product} Program: {opening}");
    if line.len() <= MOST_COLUMNS {
        writeln!(text, "{line}")?;
    } else {
        writeln!(text, "// {product} Program:\n//   {opening}")?;
    }
    for line in lines {
        if line.len() + "//   ".len() <= MOST_COLUMNS {
            writeln!(text, "//   {line}")?;
        } else {
            let words = line.trim_start();
            let indent = &line[..line.len() - words.len()];
            write_words(text, &format!("//   {indent}"), words)?;
        }
    }
    writeln!(
        text,
        "// Arguments; arrays are in device memory, and input and output do not overlap:"
    )?;
    let is_lines = |parameter: &Parameter| match parameter.kind {
        ParameterKind::Size(size) => size.is_lines(),
        _ => false,
    };
    let width = parameters.iter().filter(|p| !is_lines(p)).map(|p| p.name.len()).max().unwrap_or(0);
    let has_lines = parameters.iter().any(is_lines);
    let width = if has_lines { width.max("*_lines".len()) } else { width };
    let mut write = |name: &str, meaning: &str| {
        let opening = format!("//   {name:width$}  ");
        write_words(text, &opening, meaning)
    };
    // The first line says what alpha and beta are.
    let is_factor = |p: &Parameter| matches!(p.kind, ParameterKind::Alpha | ParameterKind::Beta);
    for parameter in parameters.iter().filter(|p| !is_lines(p) && !is_factor(p)) {
        write(&parameter.name, &parameter.meaning(program).unwrap_or_default())?;
    }
    if has_lines {
        write("*_lines", "lines of 128 bytes of that array to prefetch, or 0")?;
    }
    if !constants.is_empty() {
        writeln!(
            text,
            "// Sizes are constants, no arguments: it is only for matrices that have the same."
        )?;
    }
    let names: Vec<String> = parameters.iter().map(|p| p.name.clone()).collect();
    let dynamic = if is_declared(shared) { String::new() } else { format!(", {shared}") };
    let launch = format!("// Launch: {kernel}<<<blocks, {}{dynamic}>>>(", program.block.threads());
    write_list(text, &launch, &names, ");")?;
    if !is_declared(shared) {
        writeln!(
            text,
            "// Before the first launch: cudaFuncSetAttribute({kernel},\n\
             //     cudaFuncAttributeMaxDynamicSharedMemorySize, {shared});"
        )?;
    }
    let workspace = parameters.iter().any(|p| matches!(p.kind, ParameterKind::Workspace { .. }));
    if workspace {
        writeln!(
            text,
            "// Workspace must be zero before the first launch; launches that share it must not overlap."
        )?;
    }
    let aligned = match (task.operation, loads_vectors(program), workspace) {
        (Operation::SpMV, false, _) => None,
        (Operation::SpMV, true, _) => Some("Arrays of A"),
        (Operation::SpMM { .. }, true, _) => Some("All arrays"),
        (Operation::SpMM { .. }, false, true) => Some("Input and output, and workspace,"),
        (Operation::SpMM { .. }, false, false) => Some("Input and output"),
    };
    if let Some(aligned) = aligned {
        writeln!(text, "// {aligned} must be aligned to 16 bytes.")?;
    }
    writeln!(text)
}
