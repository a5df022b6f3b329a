//! The files by which a kernel's folder runs: a host program in C++ with its Makefile, a short one
//! in Python, and elements of the product to check against.
//!
//! The expected elements are those of y = αAx + βy with α = 1.5, β = -0.5 and operands that both
//! sides compute from their indices alone ([`operand`]), so that no operand is written to a file.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::anyhow;
use sparserl_core::codegen::{Argument, ArgumentKind};
use sparserl_core::kernel::Kernel;
use sparserl_core::layout::LinearGeometry;
use sparserl_core::matrix::{Csr, CsrView, Offsets, Scalar};
use sparserl_core::reference;
use sparserl_core::target::Target;
use sparserl_core::task::{Dtype, Task};
use sparserl_core::with_scalar;
use sparserl_gpu::compile::nvrtc::Cubin;

use crate::file_names;
use crate::output_folder::OutputFolder;

/// Files that are written, and what each is called.
pub(crate) const FILES: [&str; 4] =
    [file_names::HOST, file_names::MAKEFILE, file_names::PYTHON, file_names::EXPECTED];

const ALPHA: f64 = 1.5;
const BETA: f64 = -0.5;
/// What indices of y are moved by, so that it differs from x.
const OUTPUT_SEED: u32 = 0x9e37_79b9;
/// Rows whose elements are checked, and about how many elements.
const MOST_ROWS: usize = 256;
const ELEMENTS: usize = 1024;

/// Writes the files of a kernel for a matrix.
pub(crate) fn write<T: Scalar>(
    matrix: CsrView<'_, T>,
    kernel: &Kernel<Cubin>,
    target: Target,
    folder: &OutputFolder,
    at: &Path,
) -> anyhow::Result<()> {
    let task = kernel.packed.program.task;
    let expected = with_scalar!(task.precision.dense(), D => expected::<T, D>(matrix, task)?);
    let makefile = include_str!("host/Makefile");
    let makefile = makefile.replace("@ARCHITECTURE@", &target.architecture.to_string());
    folder.write(at.join(file_names::HOST), program(matrix.nnz(), kernel, target))?;
    folder.write(at.join(file_names::MAKEFILE), makefile)?;
    folder.write(at.join(file_names::PYTHON), include_str!("host/run.py"))?;
    folder.write(at.join(file_names::EXPECTED), expected)
}

/// The program in C++, with what plan.json says of the kernel.
fn program(nnz: usize, kernel: &Kernel<Cubin>, target: Target) -> String {
    let Kernel { packed, source, launch, .. } = kernel;
    let task = packed.program.task;
    let dense = task.precision.dense();
    let number = match task.precision.accumulator() {
        Dtype::F64 => "double",
        Dtype::F32 | Dtype::F16 | Dtype::BF16 => "float",
    };
    let half = match dense {
        Dtype::F32 | Dtype::F64 => include_str!("host/whole.cpp"),
        Dtype::F16 => include_str!("host/f16.cpp"),
        Dtype::BF16 => include_str!("host/bf16.cpp"),
    };
    let geometry @ LinearGeometry { grid, block, .. } = launch.geometry;
    let arguments: String = launch.arguments.iter().map(row).collect();
    let begins_early = source.begins_early(target.architecture);
    let operations = 2.0 * nnz as f64 * f64::from(task.operation.columns());
    [
        ("@ARGUMENTS@", arguments),
        ("@KERNEL@", source.kernel.clone()),
        ("@GRID@", grid.to_string()),
        ("@BLOCK@", block.to_string()),
        ("@SHARED@", geometry.dynamic_shared().to_string()),
        ("@EARLY@", begins_early.to_string()),
        ("@OPERATIONS@", format!("{operations:e}")),
        ("@DENSE@", half.trim_end().to_owned()),
        ("@NUMBER@", number.to_owned()),
        ("@BITS@", operand_bits(dense).to_string()),
    ]
    .iter()
    .fold(include_str!("host/run.cpp").to_owned(), |text, (mark, word)| text.replace(mark, word))
}

/// An argument in the program's table.
fn row(argument: &Argument) -> String {
    let Argument { name, kind, element, len, .. } = argument;
    let (word, value) = match kind {
        ArgumentKind::Input => ("INPUT", 0),
        ArgumentKind::Output => ("OUTPUT", 0),
        ArgumentKind::Alpha => ("ALPHA", 0),
        ArgumentKind::Beta => ("BETA", 0),
        ArgumentKind::Matrix => ("MATRIX", 0),
        ArgumentKind::Workspace => ("WORKSPACE", 0),
        ArgumentKind::Size(size) => ("SIZE", *size),
    };
    let (dtype, bytes) = (element.name(), element.size() * len);
    format!("    {{\"{name}\", {word}, \"{dtype}\", {bytes}u, {value}u}},\n")
}

/// Random bits of an element of x or y: as many as all types have that are at least as wide as it.
fn operand_bits(dense: Dtype) -> u32 {
    match dense {
        Dtype::F32 | Dtype::F64 => 24,
        Dtype::F16 => 11,
        Dtype::BF16 => 8,
    }
}

/// An element of x or y, by its index: from -1 to 1, and exact in the type.
fn operand<D: Scalar>(index: u64, seed: u32) -> D {
    let bits = (index as u32).wrapping_add(seed).wrapping_mul(2_654_435_761);
    let kept = operand_bits(D::DTYPE);
    D::from_f64(f64::from(bits >> (32 - kept)) / f64::from(1_u32 << (kept - 1)) - 1.0)
}

/// Elements of the product in rows that lie evenly, each with its index and its error bound.
fn expected<T: Scalar, D: Scalar>(matrix: CsrView<'_, T>, task: Task) -> anyhow::Result<String> {
    let n = task.operation.columns() as usize;
    let count = (ELEMENTS / n).clamp(1, MOST_ROWS).min(matrix.rows());
    let rows: Vec<usize> = (0..count).map(|i| i * matrix.rows() / count).collect();
    // Only the columns that these rows have, so that no more of x is made.
    let mut columns: Vec<u32> = rows.iter().flat_map(|&row| matrix.row(row).0).copied().collect();
    columns.sort_unstable();
    columns.dedup();
    let (mut offsets, mut indices, mut values) = (vec![0_u64], Vec::new(), Vec::new());
    for &row in &rows {
        let (own, factors) = matrix.row(row);
        indices
            .extend(own.iter().filter_map(|col| columns.binary_search(col).ok()).map(|i| i as u32));
        values.extend_from_slice(factors);
        offsets.push(indices.len() as u64);
    }
    let part = Csr::new(count, columns.len(), Offsets::U64(offsets), indices, values)?;
    let at = |row: u64, column: usize| row * n as u64 + column as u64;
    let operand_rows = |row: u64, seed| (0..n).map(move |j| operand::<D>(at(row, j), seed));
    let x: Vec<D> = columns.iter().flat_map(|&col| operand_rows(col.into(), 0)).collect();
    let y: Vec<D> = rows.iter().flat_map(|&row| operand_rows(row as u64, OUTPUT_SEED)).collect();
    let [alpha, beta] = [ALPHA, BETA].map(D::Accumulator::from_f64);
    let product = reference::multiply(part.view(), &x, n, alpha, beta, &y);
    let product = product.map_err(|error| anyhow!("the expected elements: {error}"))?;
    let mut text = String::new();
    let elements = rows.iter().flat_map(|&row| (0..n).map(move |j| (row, j)));
    for ((row, j), (value, bound)) in elements.zip(product.values.iter().zip(&product.bounds)) {
        // Nothing is wrong where a right kernel may overflow.
        if bound.is_finite() {
            writeln!(text, "{} {value:e} {bound:e}", at(row as u64, j))?;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use half::{bf16, f16};
    use sparserl_core::matrix::generate;
    use sparserl_core::task::Operation;

    use super::*;

    #[test]
    fn operands_are_exact_in_single_precision() {
        for index in 0..10_000 {
            let (single, double) = (operand::<f32>(index, 7), operand::<f64>(index, 7));
            assert_eq!(f64::from(single), double);
            assert!((-1.0..1.0).contains(&double));
        }
        assert_ne!(operand::<f64>(1, 0), operand::<f64>(2, 0));
        // All of those of half precision differ: none was rounded.
        let distinct = |number: fn(u64) -> u64| (0..100_000).map(number).collect::<BTreeSet<_>>();
        assert_eq!(distinct(|index| operand::<f16>(index, 7).bits()).len(), 1 << 11);
        assert_eq!(distinct(|index| operand::<bf16>(index, 7).bits()).len(), 1 << 8);
    }

    #[test]
    fn expected_elements_are_those_of_the_whole_product() {
        let matrix = generate::rmat(9, 8, 1);
        let task = Task::new(Operation::SpMV, Dtype::F64);
        let x: Vec<f64> = (0..512).map(|i| operand(i, 0)).collect();
        let y: Vec<f64> = (0..512).map(|i| operand(i, OUTPUT_SEED)).collect();
        let whole = reference::multiply(matrix.view(), &x, 1, ALPHA, BETA, &y).unwrap();
        let text = expected::<f64, f64>(matrix.view(), task).unwrap();
        assert_eq!(text.lines().count(), MOST_ROWS);
        for line in text.lines() {
            let numbers: Vec<f64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
            let index = numbers[0] as usize;
            assert_eq!(numbers[1..], [whole.values[index], whole.bounds[index]]);
        }
    }
}
