//! One program on one matrix: packed, compiled, launched several times, compared each time.

use anyhow::{Context, Result, bail, ensure};
use sparserl_core::codegen::{self, ArgumentKind, CudaSource};
use sparserl_core::language::Program;
use sparserl_core::layout::{self, Packed};
use sparserl_core::matrix::{Csr, Scalar};
use sparserl_core::reference::{compare, multiply};
use sparserl_core::task::Dtype;
use sparserl_gpu::device::{Case, CaseArgument, CaseOutcome, poison};

use super::Gpu;
use super::operands::{Operands, ROUNDS};

/// Runs a program's kernel several times in a row on the same buffers, with fresh operands each
/// time, and compares every result with the reference; returns the number of comparisons.
///
/// Each launch finds the workspace as the one before left it. With β = 0 the output holds NaN
/// before; afterwards it must not. Nothing else may have been written: inputs are hashed, and every
/// buffer lies between guard zones.
///
/// # Errors
/// When anything of that is not as it should be.
pub fn check<T: Scalar>(gpu: &Gpu, matrix: &Csr<T>, program: &Program, seed: u64) -> Result<usize> {
    let packed = layout::pack(matrix.view(), program).context("the program does not pack")?;
    let source = codegen::emit(&packed)?;
    let cubin = gpu.compile(&source)?;

    let columns = program.task.operation.columns() as usize;
    let operands =
        |round| Operands::<T>::new(matrix.cols() * columns, matrix.rows() * columns, round, seed);
    let first = operands(0);
    let before = initial_bytes(&source, &first);
    let mut case = Case::new(gpu.device(), &cubin, &arguments(&source, &packed, &first, &before))?;
    for round in 0..ROUNDS {
        let operands = operands(round);
        let before = initial_bytes(&source, &operands);
        if round > 0 {
            let arguments = arguments(&source, &packed, &operands, &before);
            for (position, argument) in arguments.into_iter().enumerate() {
                let fixed = [ArgumentKind::Matrix, ArgumentKind::Workspace];
                if !fixed.contains(&source.arguments[position].kind) {
                    case.set(position, argument)?;
                }
            }
        }
        let Operands { alpha, beta, .. } = operands;
        let at = || format!("launch {} with alpha = {alpha}, beta = {beta}", round + 1);
        case.launch(source.launch.grid, source.launch.block).with_context(at)?;
        let outcome = case.outcome().with_context(at)?;
        is_clean(&source, &outcome).with_context(at)?;
        is_right(matrix, columns, &source, &operands, &outcome).with_context(at)?;
    }
    Ok(ROUNDS)
}

/// What the output holds before: NaN when it must not be read.
fn initial_bytes<T: Scalar>(source: &CudaSource, operands: &Operands<T>) -> Vec<u8> {
    let output = source.arguments.iter().find(|a| a.kind == ArgumentKind::Output);
    let length = output.map_or(0, |output| output.len) * size_of::<T>();
    operands.initial.as_ref().map_or_else(|| poison(length), |initial| bytes(initial).to_vec())
}

/// The kernel's arguments, in order.
fn arguments<'a, T: Scalar>(
    source: &CudaSource,
    packed: &'a Packed,
    operands: &'a Operands<T>,
    initial: &'a [u8],
) -> Vec<CaseArgument<'a>> {
    let mut arrays = packed.arguments().map(|(_, array)| array.data.bytes());
    let scalar = |value: T| match T::DTYPE {
        Dtype::F32 => CaseArgument::F32(value.to_f64() as f32),
        Dtype::F64 => CaseArgument::F64(value.to_f64()),
    };
    let argument = |kind| match kind {
        ArgumentKind::Input => CaseArgument::Input(bytes(&operands.input)),
        ArgumentKind::Output => CaseArgument::Output(initial),
        ArgumentKind::Alpha => scalar(operands.alpha),
        ArgumentKind::Beta => scalar(operands.beta),
        ArgumentKind::Matrix => CaseArgument::Input(arrays.next().unwrap_or_default()),
        ArgumentKind::Workspace => CaseArgument::Output(arrays.next().unwrap_or_default()),
    };
    source.arguments.iter().map(|argument| argument.kind).map(argument).collect()
}

fn is_clean(source: &CudaSource, outcome: &CaseOutcome) -> Result<()> {
    let name = |&position: &usize| source.arguments[position].name.as_str();
    if let Some(position) = outcome.changed_inputs.first() {
        bail!("the kernel changed `{}`, which it may only read", name(position));
    }
    if let Some((position, damage)) = outcome.damaged.first() {
        bail!("the kernel wrote outside of `{}`: {damage:?}", name(position));
    }
    for output in &outcome.outputs {
        let name = name(&output.position);
        let is_counter = name.ends_with("_tickets");
        let reset = output.bytes.iter().all(|&byte| byte == 0);
        ensure!(!is_counter || reset, "`{name}` is not zero again");
    }
    Ok(())
}

fn is_right<T: Scalar>(
    matrix: &Csr<T>,
    columns: usize,
    source: &CudaSource,
    operands: &Operands<T>,
    outcome: &CaseOutcome,
) -> Result<()> {
    let position = source.arguments.iter().position(|a| a.kind == ArgumentKind::Output);
    let output = outcome.outputs.iter().find(|output| Some(output.position) == position);
    let got: Vec<T> = bytemuck::pod_collect_to_vec(&output.context("no output")?.bytes);

    let Operands { alpha, beta, input, initial } = operands;
    let initial = initial.as_deref().unwrap_or_default();
    let reference = multiply(matrix.view(), input, columns, *alpha, *beta, initial)?;
    let comparison = compare(&reference, &got);
    ensure!(comparison.unbounded == 0, "operands that may overflow show nothing");
    if let (false, Some(worst)) = (comparison.passed(), comparison.worst_index) {
        bail!(
            "{} of {} elements are wrong; the worst is {worst} (row {}, column {}): {:e} instead of \
             {:e} ± {:e}",
            comparison.violations,
            comparison.elements,
            worst / columns,
            worst % columns,
            got.get(worst).map_or(f64::NAN, |got| got.to_f64()),
            reference.values.get(worst).copied().unwrap_or(f64::NAN),
            reference.bounds.get(worst).copied().unwrap_or(f64::NAN),
        );
    }
    Ok(())
}

fn bytes<T: Scalar>(numbers: &[T]) -> &[u8] {
    bytemuck::cast_slice(numbers)
}
