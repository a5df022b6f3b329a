use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::parameter::{Parameter, ParameterKind};
use super::source::{MOST_COLUMNS, PartCall, write_list};
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
    let dtype = task.precision.dense();
    let product = match task.operation {
        Operation::SpMV => format!("SpMV in {dtype}: y = alpha * A * x + beta * y."),
        Operation::SpMM { columns } => format!(
            "SpMM in {dtype}: C = alpha * A * B + beta * C, row-major, with B and C of width {columns}."
        ),
    };
    writeln!(text, "// {product} The program:")?;
    for line in program.to_string().lines() {
        writeln!(text, "//   {line}")?;
    }
    for part in parts {
        let words = mapping_in_words(part, task.operation);
        match parts.len() {
            1 => write_words(text, "// Mapping: ", &words)?,
            _ => write_words(text, &format!("// Part {}: ", part.index), &words)?,
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
    let width = width.max("alpha, beta".len());
    let is_beta = |parameter: &Parameter| parameter.kind == ParameterKind::Beta;
    let mut write = |name: &str, meaning: &str| {
        let opening = format!("//   {name:width$}  ");
        write_words(text, &opening, meaning)
    };
    for parameter in parameters.iter().filter(|p| !is_lines(p) && !is_beta(p)) {
        if parameter.kind == ParameterKind::Alpha {
            write("alpha, beta", "factors of the product and of the old output")?;
        } else {
            write(&parameter.name, &parameter.meaning(program).unwrap_or_default())?;
        }
    }
    write("*_lines", "lines of 128 bytes of that array to prefetch, or 0")?;
    let names: Vec<String> = parameters.iter().map(|p| p.name.clone()).collect();
    let launch = format!("// Launch: {kernel}<<<blocks, {}>>>(", program.block.threads());
    write_list(text, &launch, &names, ");")?;
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

/// Writes words after an opening; further lines align with the first word.
fn write_words(text: &mut String, opening: &str, words: &str) -> fmt::Result {
    let mut line = opening.trim_end().to_string();
    for word in words.split(' ') {
        if line.len() + 1 + word.len() > MOST_COLUMNS {
            writeln!(text, "{line}")?;
            line = format!("//{}", " ".repeat(opening.len() - 3));
        }
        if line.len() < opening.len() {
            line = format!("{line:width$}", width = opening.len() - 1);
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(text, "{line}")
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
            ParameterKind::Size(size) => size.meaning(program.parts().len()),
        })
    }
}
