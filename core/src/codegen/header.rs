use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::parameter::{Parameter, ParameterKind};
use super::source::PartCall;
use crate::language::Program;
use crate::layout::{LayoutModule, each_layout};
use crate::task::Operation;

/// Says what the kernel computes, what it is given and how it is launched.
pub(super) fn write_header(
    text: &mut String,
    program: &Program,
    kernel: &str,
    parameters: &[Parameter],
    parts: &[PartCall<'_>],
) -> fmt::Result {
    let task = program.task;
    let product = match task.operation {
        Operation::SpMV => "SpMV, y = alpha * A * x + beta * y".to_string(),
        Operation::SpMM { columns } => {
            format!("SpMM, C = alpha * A * B + beta * C, with row-major B and C of width {columns}")
        }
    };
    writeln!(text, "// {product}, in {}.", task.precision.dense())?;
    writeln!(text, "//\n// A is packed, and threads are mapped, as this program says:\n//")?;
    for line in program.to_string().lines() {
        writeln!(text, "//   {line}")?;
    }
    writeln!(text, "//")?;
    for part in parts {
        writeln!(text, "// Part {}: {}", part.index, mapping_in_words(part, task.operation))?;
    }
    writeln!(text, "//\n// Parameters (arrays are in device memory):\n//")?;
    let width = parameters.iter().map(|a| a.name.len()).max().unwrap_or(0);
    for parameter in parameters {
        let meaning = parameter.meaning(program).unwrap_or_default();
        writeln!(text, "//   {:width$}  {meaning}", parameter.name)?;
    }
    let names: Vec<&str> = parameters.iter().map(|p| p.name.as_str()).collect();
    writeln!(text, "//\n// Launch, without dynamic shared memory:\n//")?;
    writeln!(text, "//   {kernel}<<<blocks, {}>>>(", program.block.threads())?;
    let mut line = String::from("//      ");
    for (i, name) in names.iter().enumerate() {
        let end = if i + 1 < names.len() { "," } else { ");" };
        if line.len() + name.len() + end.len() > 98 {
            writeln!(text, "{line}")?;
            line = String::from("//      ");
        }
        write!(line, " {name}{end}")?;
    }
    writeln!(text, "{line}\n//\n// Input and output must not overlap.")?;
    let workspace = parameters.iter().any(|p| matches!(p.kind, ParameterKind::Workspace { .. }));
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
    writeln!(text)
}

/// Which threads do what.
fn mapping_in_words(part: &PartCall<'_>, operation: Operation) -> String {
    let mapping = part.call.mapping;
    let rows = match part.call.function {
        "csr_block" => "a block for each row".to_string(),
        "dia" => "a thread for each row".to_string(),
        "merge_rows" => {
            "a block for each tile, whose rows its threads add up in shared memory".to_string()
        }
        "merge_scan" => "a block for each tile, whose items its threads share evenly".to_string(),
        "merge_columns" => {
            "a block for each tile, whose items its groups of threads share evenly".to_string()
        }
        _ if mapping.lanes == 1 => "a thread for each row".to_string(),
        _ => format!("{} threads of a warp for each row", mapping.lanes),
    };
    match operation {
        Operation::SpMV => format!("{rows}."),
        Operation::SpMM { .. } => format!(
            "{rows}, times {} side by side over columns, each with {}.",
            mapping.stride, mapping.vector
        ),
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
            ParameterKind::Size(size) => size.meaning(),
        })
    }
}
