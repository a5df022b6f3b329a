//! `verify`.

use std::path::PathBuf;

use clap::Args;

use super::matrix::ReadingArgs;
use super::{AskedTaskArgs, EmulationArgs, JudgingArgs, MatrixArgs};

/// The grammar of launches, for those who write CUDA.
const LAUNCHES: &str = "\
How CUDA is launched, and what each parameter is given, a comment in the source says as CUDA does:

  // launch: spmv<<<ceil(num_rows / 256), 256>>>(row_offsets, columns, values, x, y, num_rows)
  // launch: spmm<<<dim3(num_rows, ceil(dense_cols / 32)), 32, 4096>>>

Blocks, threads of a block, and bytes of dynamic shared memory, 0 unless given; then what is passed:
  row_offsets  columns  values         the matrix in CSR: integers of 32 or 64 bits, each as the
                                       parameter is declared, and float* or double*
  x or B, y or C                       the dense operands, row-major, aligned to 16 bytes at least
  alpha  beta                          their factors; 1 and 0 for kernels without
  num_rows  num_cols  nnz  dense_cols  sizes, also in expressions as C++ has them: / rounds down, as
                                       in (num_rows + 255) / 256; ceil(num_rows / 256) rounds up
Macros, constants, dim3 variables and functions of one `return` mean what the source says, and between
<<< and >>> a parameter of the kernel is the number that it is given, as `n` and BLOCK in
  // launch: spmv<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(row_offsets, columns, values, x, y, num_rows)
Where nothing is passed, the parameters have to bear these names (or row_ptr, col_idx, dense_matrix,
output). A kernel that is a template is launched with the template's arguments, as in
  // launch: spmv<float, 128><<<ceil(num_rows / 128), 128>>>
A .json file of the source's name can say how it is launched, too:

  {\"kernel\": \"spmv\", \"grid\": [\"ceil(num_rows / 256)\"], \"block\": [256], \"shared\": 0,
   \"arguments\": [\"row_offsets\", \"columns\", \"values\", \"x\", \"y\", \"num_rows\"]}

A kernel.cu that `gen` wrote is read back, as it is or edited: its comment has the program, which
says how the matrix is packed, and its launch passes the packed arrays by their names, to `blocks`.";

#[derive(Args, Debug)]
#[command(after_long_help = LAUNCHES)]
pub(crate) struct VerifyArgs {
    /// Kernel to judge: a program (.skl), CUDA (.cu) with a `// launch:` comment, see below, or a
    /// folder that `gen` wrote, whose kernel.cu may be edited
    #[arg(value_name = "KERNEL")]
    pub(crate) kernel: PathBuf,
    /// Matrix to judge it on: a file, - for standard input, or a generated one, as `gen` takes it
    #[arg(long, value_name = "FILE")]
    matrix: PathBuf,
    #[command(flatten)]
    reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) asked: AskedTaskArgs,
    #[command(flatten)]
    pub(crate) judging: JudgingArgs,
    #[command(flatten)]
    pub(crate) emulation: EmulationArgs,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

impl VerifyArgs {
    /// What is read.
    pub(crate) fn matrix(&self) -> MatrixArgs {
        MatrixArgs::new(self.matrix.clone(), self.reading.clone())
    }
}
