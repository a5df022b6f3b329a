//! The source of a program: its header, what it uses of the library, its parts and its kernel.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::call::Context;
use super::dense::{dense_names, dense_type, result_name};
use super::ending::Ending;
use super::header::write_header;
use super::items::{Dense, used_by, write_items};
use super::lines::{MOST_COLUMNS, write_list, write_words};
use super::parameter::{Parameter, ParameterKind, Prefetched, Size};
use super::part::PartCall;
use super::preprocess::is_named;
use super::signature::Signature;
use super::source::{CudaSource, EmitError, SizeConstant};
use super::statements::Place;
use crate::language::{Fnv, Program};
use crate::layout::{
    ArrayReader, ArrayRole, DeviceCode, ElementType, LayoutModule, Packed, PartSize, each_layout,
    is_declared, part_name,
};
use crate::task::{Operation, Task};

/// Stands for the hash of the source in it while it is written, and is as long.
const HASH: &str = "$-HASH-$";

/// Writes the kernel of a program for the matrices whose packing has a signature.
///
/// # Errors
/// When the signature is not one of the program.
pub fn emit(program: &Program, signature: &Signature) -> Result<CudaSource, EmitError> {
    write(program, signature, None, None)
}

/// Writes the kernel of a program for the sizes of one packed matrix alone: they are constants of
/// the source, and no arguments.
///
/// # Errors
/// When the arrays are not those of the program.
pub fn emit_for(packed: &Packed) -> Result<CudaSource, EmitError> {
    write(&packed.program, &packed.signature(), None, Some(packed))
}

/// Writes the kernel of a program that ends otherwise than with `y = αAx + βy` or `C = αAB + βC`.
///
/// # Errors
/// As [`emit`].
pub fn emit_ending(
    program: &Program,
    signature: &Signature,
    ending: &Ending,
) -> Result<CudaSource, EmitError> {
    write(program, signature, Some(ending), None)
}

/// Writes a kernel; its sizes are constants where there is a matrix that it is for alone.
fn write(
    program: &Program,
    signature: &Signature,
    ending: Option<&Ending>,
    matrix: Option<&Packed>,
) -> Result<CudaSource, EmitError> {
    let task = program.task;
    let block = program.block.threads();
    let parts = program.parts();
    if let Some(part) = parts.get(signature.parts.len()) {
        let layout = part.layout.word().text();
        return Err(EmitError::MissingArray { part: signature.parts.len(), layout });
    }
    let parts: Vec<PartCall<'_>> = parts
        .into_iter()
        .zip(&signature.parts)
        .enumerate()
        .map(|(index, (part, signature))| {
            let call = each_layout!(&part.layout, layout => layout.call(task, block));
            PartCall { index, part, signature, call }
        })
        .collect();
    let parameters = parameters((task, ending), &parts)?;
    let (parameters, constants) = match matrix {
        None => (parameters, Vec::new()),
        Some(packed) => with_constants(parameters, packed),
    };
    let word = match task.operation {
        Operation::SpMV => "spmv",
        Operation::SpMM { .. } => "spmm",
    };
    let kernel = format!("sparserl_{word}_{HASH}");

    let mut code = String::new();
    write_constants(&mut code, &constants, parts.len())?;
    for part in &parts {
        part.write_definitions(&mut code, task, parts.len())?;
    }
    // Parts have it one after the other.
    let shared = parts.iter().map(|part| part.call.shared_bytes).max().unwrap_or(0);
    write_kernel(&mut code, &kernel, (task, ending), &parameters, &parts, shared)?;
    let dense = Dense::of(task, ending);
    let scalar = ElementType::from(task.precision.accumulator()).cuda_type();
    let dense_type = dense_type(task);
    let mut text = String::new();
    if let Some(ending) = ending {
        ending.write_header(&mut text, task.operation)?;
    }
    write_header(&mut text, program, &kernel, (&parameters, &constants), shared)?;
    writeln!(text, "namespace sparserl_{HASH} {{")?;
    writeln!(text, "using Scalar = {scalar};")?;
    writeln!(text, "constexpr unsigned BLOCK = {block};  // threads of a block")?;
    if let Operation::SpMM { columns } = task.operation {
        writeln!(text, "constexpr unsigned COLUMNS = {columns};  // of B and C")?;
    }
    let mut items = used_by(&code, dense);
    if let Some(ending) = ending {
        // The caller's values may be of the dense operands' type.
        let types = used_by(dense_type, dense);
        write_items(&mut text, &types, dense_type)?;
        text.push_str(&ending.definitions(task));
        items.retain(|item| !types.contains(item));
    }
    write_items(&mut text, &items, dense_type)?;
    writeln!(text, "\n{code}\n}}  // namespace sparserl_{HASH}")?;

    let mut hash = Fnv::new();
    hash.add(format_args!("{text}"));
    let hash = format!("{:08x}", (hash.0 ^ hash.0 >> 32) as u32);
    let named = |text: &str| text.replace(HASH, &hash);
    // The kernel begins with the wait.
    Ok(CudaSource {
        text: named(&text),
        kernel: named(&kernel),
        parameters,
        constants,
        waits_itself: true,
    })
}

/// The parameters that are no sizes, and what the sizes are for a packed matrix.
fn with_constants(all: Vec<Parameter>, packed: &Packed) -> (Vec<Parameter>, Vec<SizeConstant>) {
    let (mut parameters, mut constants) = (Vec::new(), Vec::new());
    for parameter in all {
        match parameter.kind {
            ParameterKind::Size(size) => {
                // A packing has all sizes of its own program and signature.
                let value = size.of(packed).unwrap_or_default();
                constants.push(SizeConstant::of(parameter, size, value));
            }
            _ => parameters.push(parameter),
        }
    }
    (parameters, constants)
}

/// Writes sizes as constants, each with what it means.
fn write_constants(text: &mut String, constants: &[SizeConstant], parts: usize) -> fmt::Result {
    for constant in constants {
        let (line, meaning) = (constant.declaration(), constant.size.meaning(parts));
        match line.len() + "  // ".len() + meaning.len() <= MOST_COLUMNS {
            true => writeln!(text, "{line}  // {meaning}")?,
            false => {
                write_words(text, "// ", &meaning)?;
                writeln!(text, "{line}")?;
            }
        }
    }
    if constants.is_empty() { Ok(()) } else { writeln!(text) }
}

/// The parameters of the kernel, in order. Every array has a meaning, and every size the array that
/// tells it.
fn parameters(
    (task, ending): (Task, Option<&Ending>),
    parts: &[PartCall<'_>],
) -> Result<Vec<Parameter>, EmitError> {
    let (input, old) = dense_names(task.operation);
    let output = if ending.is_some() { result_name(task.operation) } else { old };
    let precision = task.precision;
    let (dense, factor) = (precision.dense().into(), precision.accumulator().into());
    let own = |name: &str, kind, element| Parameter { name: name.to_owned(), kind, element };
    let mut parameters = alloc::vec![
        own(input, ParameterKind::Input, dense),
        own(output, ParameterKind::Output, dense),
        own("alpha", ParameterKind::Alpha, factor),
        own("beta", ParameterKind::Beta, factor),
    ];
    for part in parts {
        let PartCall { index, signature, .. } = part;
        let is_known =
            |name| each_layout!(&part.part.layout, layout => layout.meaning(name)).is_some();
        if !signature.arrays.iter().all(|array| is_known(array.name)) {
            return Err(part.lacks_array());
        }
        parameters.extend(signature.arrays.iter().map(|array| {
            let kind = match array.role {
                ArrayRole::Matrix => ParameterKind::Matrix { part: *index, array: array.name },
                ArrayRole::PartialSums | ArrayRole::Counters => {
                    ParameterKind::Workspace { part: *index, array: array.name }
                }
            };
            let name = part_name(parts.len(), *index, array.name);
            Parameter { name, kind, element: array.element }
        }));
    }
    let mut size = |size: Size, element| {
        let kind = ParameterKind::Size(size);
        parameters.push(Parameter { name: size.name(parts.len()), kind, element });
    };
    for part in parts {
        let PartCall { index, signature, call, .. } = part;
        let last = index + 1 == parts.len();
        let first_block = (!last).then_some(PartSize::FirstBlock);
        for what in first_block.into_iter().chain(call.sizes(signature.rows)) {
            if what.array().is_some_and(|array| signature.element(array).is_none()) {
                return Err(part.lacks_array());
            }
            size(Size::Part { part: *index, what }, signature.size_type(what));
        }
    }
    if task.operation != Operation::SpMV {
        size(Size::OutputStreamed(output), ElementType::U32);
    }
    for array in prefetched((task, ending), parts) {
        size(Size::Lines(array), ElementType::U32);
    }
    Ok(parameters)
}

/// The arrays whose addresses depend on other loads: the input and the entries.
fn prefetched((task, ending): (Task, Option<&Ending>), parts: &[PartCall<'_>]) -> Vec<Prefetched> {
    let (name, _) = dense_names(task.operation);
    let strided = ending.is_some_and(|ending| ending.strided(task.operation).is_some());
    let mut arrays = alloc::vec![Prefetched::Input { name, strided }];
    for PartCall { index, signature, .. } in parts {
        let by_entries =
            signature.arrays.iter().filter(|array| array.reader == ArrayReader::PartByEntries);
        arrays
            .extend(by_entries.map(|array| Prefetched::Array { part: *index, array: array.name }));
    }
    arrays
}

fn write_kernel(
    text: &mut String,
    kernel: &str,
    (task, ending): (Task, Option<&Ending>),
    parameters: &[Parameter],
    parts: &[PartCall<'_>],
    shared: usize,
) -> Result<(), EmitError> {
    writeln!(text, "extern \"C\" __global__ void __launch_bounds__(BLOCK, 1) {kernel}(")?;
    // With an ending the old vector may be the output, which then is not restricted.
    let declaration = |parameter: &Parameter| parameter.declaration(ending.is_none());
    let mut declarations: Vec<String> = parameters.iter().map(declaration).collect();
    declarations.extend(ending.into_iter().flat_map(|ending| ending.declarations(task)));
    write_list(text, "    ", &declarations, ") {")?;
    if !is_declared(shared) {
        writeln!(text, "  extern __shared__ uint4 shared[];")?;
        let array = format!("unsigned char(&)[{shared}]");
        writeln!(text, "  auto& scratch = reinterpret_cast<{array}>(*shared);")?;
    } else if shared > 0 {
        writeln!(text, "  __shared__ alignas(16) unsigned char scratch[{shared}];")?;
    }
    write_prefetches(text, &prefetched((task, ending), parts), parts.len())?;
    // Before this, kernels may still be writing what is read, and reading what is written.
    writeln!(text, "#if __CUDA_ARCH__ >= 900  // Earlier kernels may still run:")?;
    writeln!(text, "  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");")?;
    writeln!(text, "#endif")?;
    // The last part is the first in the grid.
    for part in parts.iter().rev() {
        let nested = parts.len() > 1;
        if nested {
            let first = part.index + 1 == parts.len();
            let own = part
                .index
                .checked_sub(1)
                .map(|next| part_name(parts.len(), next, PartSize::FirstBlock.name()));
            match (first, own) {
                (true, Some(end)) => writeln!(text, "  if (blockIdx.x < {end}) {{")?,
                (false, Some(end)) => writeln!(text, "  }} else if (blockIdx.x < {end}) {{")?,
                (_, None) => writeln!(text, "  }} else {{")?,
            }
        }
        let indent = if nested { "    " } else { "  " };
        write_part(text, indent, part, parts.len(), (task, ending))?;
    }
    if parts.len() > 1 {
        writeln!(text, "  }}")?;
    }
    write!(text, "}}")?;
    Ok(())
}

/// Writes the prefetching of arrays, each by a thread of its own: the code is there once, and
/// short, since in a cold cache instructions are waited for, too.
fn write_prefetches(text: &mut String, arrays: &[Prefetched], parts: usize) -> fmt::Result {
    writeln!(text, "  if (threadIdx.x < {}) {{", arrays.len())?;
    for (thread, &array) in arrays.iter().enumerate() {
        let (array, lines) = (array.name(parts), Size::Lines(array).name(parts));
        match thread {
            0 => writeln!(text, "    const void* array = {array};\n    u32 lines = {lines};")?,
            _ => writeln!(
                text,
                "    if (threadIdx.x == {thread}) array = {array}, lines = {lines};"
            )?,
        }
    }
    writeln!(text, "    prefetch(array, lines);\n  }}")
}

fn write_part(
    text: &mut String,
    indent: &str,
    part: &PartCall<'_>,
    parts: usize,
    (task, ending): (Task, Option<&Ending>),
) -> Result<(), EmitError> {
    let mapping = part.call.mapping;
    let block = if part.index + 1 == parts {
        "blockIdx.x".to_string()
    } else {
        format!("blockIdx.x - {}", part_name(parts, part.index, PartSize::FirstBlock.name()))
    };
    let mut own_block = block.as_str();
    if task.operation != Operation::SpMV {
        let (tiles, stride, vector) = (mapping.column_tiles, mapping.stride, mapping.vector);
        if tiles > 1 {
            let block = if block.contains(' ') { format!("({block})") } else { block.clone() };
            let (tiles, panels) = (mapping.tiles_of_panel(), mapping.panels);
            let blocks = part_name(parts, part.index, PartSize::PanelBlocks.name());
            match (tiles, panels) {
                (_, 1) => {
                    writeln!(text, "{indent}const u32 block = {block} / {tiles};")?;
                    writeln!(text, "{indent}const u32 column_tile = {block} % {tiles};")?;
                }
                (1, _) => {
                    writeln!(text, "{indent}const u32 column_tile = {block} / {blocks};")?;
                    writeln!(text, "{indent}const u32 block = {block} % {blocks};")?;
                }
                _ => {
                    writeln!(text, "{indent}const u32 panel = {block} / {blocks};")?;
                    writeln!(text, "{indent}const u32 of_panel = {block} % {blocks};")?;
                    writeln!(text, "{indent}const u32 block = of_panel / {tiles};")?;
                    writeln!(
                        text,
                        "{indent}const u32 column_tile = panel * {tiles} + of_panel % {tiles};"
                    )?;
                }
            }
            own_block = "block";
        }
        let thread = match part.call.shares.threads_of_columns() {
            1 => "threadIdx.x".to_string(),
            threads => format!("threadIdx.x / {threads}"),
        };
        let lane = match (tiles, stride) {
            (1, 1) => "0".to_string(),
            (1, _) => format!("{thread} % {stride}"),
            (_, 1) => "column_tile".to_string(),
            _ => format!("(column_tile * {stride} + {thread} % {stride})"),
        };
        match (lane.as_str(), vector) {
            ("0", _) | (_, 1) => writeln!(text, "{indent}const u32 first_column = {lane};")?,
            _ => writeln!(text, "{indent}const u32 first_column = {lane} * {vector};")?,
        }
    }
    let context = Context { part, parts, task, ending, block: own_block };
    if parts == 1 {
        let place = Place::Kernel { block: own_block };
        if let Some(statements) = part.statements(task, place, ending.is_none()) {
            // Only SpMM has statements that name the input so.
            if is_named("input", &statements) {
                writeln!(text, "{indent}{}", context.input_columns().definition("input"))?;
            }
            if is_named("output", &statements) {
                writeln!(text, "{indent}{}", context.output().definition("output"))?;
            }
            statements.iter().try_for_each(|line| writeln!(text, "{line}"))?;
            return Ok(());
        }
    }
    let arguments = context.arguments().ok_or_else(|| part.lacks_array())?;
    let members = part.members(parts);
    let (function, all): (_, Vec<String>) = match part.call.code {
        DeviceCode::Function(name) => {
            let matrix = format!("{}{{{}}}", part.type_name(parts), members.join(", "));
            (name.to_owned(), core::iter::once(matrix).chain(arguments).collect())
        }
        DeviceCode::Statements(_) => {
            (part.function_name(), members.into_iter().chain(arguments).collect())
        }
    };
    write_list(text, &format!("{indent}{function}("), &all, ");")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::pack;
    use crate::matrix::generate;

    #[test]
    fn no_source_is_written_without_an_array_that_tells_a_size() {
        let matrix = generate::stencil5(30, 30);
        for (layout, array) in [
            ("merge items=8 index=u16 values=plain cache=cached vector=1 reduction=scan", "carry"),
            ("dia values=plain cache=cached vector=1 rows=1 unroll=8", "diagonals"),
            ("ell index=u16 values=plain cache=cached vector=1 lanes=1 unroll=2", "columns"),
        ] {
            let text = format!("sparserl 7\nspmv f64\nblock 128\nkeep {layout}\n");
            let program = Program::parse(&text).unwrap();
            let mut signature = pack(matrix.view(), &program).unwrap().signature();
            assert!(emit(&program, &signature).is_ok(), "{layout}");
            let part = &mut signature.parts[0];
            let before = part.arrays.len();
            part.arrays.retain(|known| known.name != array);
            assert_eq!(part.arrays.len() + 1, before, "{layout} has no {array}");
            let refused = emit(&program, &signature);
            assert!(matches!(refused, Err(EmitError::MissingArray { part: 0, .. })), "{layout}");
        }
    }
}
