//! Kernels that copy dense matrices from column-major to row-major order, and back: what reads rows
//! of a column-major matrix at random reads a sector for each element.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::source::CudaSource;
use crate::task::Dtype;

/// Threads of a block, as the device code has it.
const BLOCK: u32 = 256;
/// Threads that a tile has places for, as the device code has it.
const TILE: u64 = 1024;
/// Blocks that a grid may have.
const MOST_BLOCKS: u64 = i32::MAX as u64;

/// Direction in which a dense matrix is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transposing {
    /// From column-major order with a leading dimension to row-major order without gaps.
    ToRows,
    /// Back.
    ToColumns,
}

impl Transposing {
    /// The kernel for matrices of so many columns in a type. Its parameters are where the matrix is
    /// read, where it is written, its rows, and the leading dimension of the column-major one, each
    /// of 8 bytes. What lies between columns stays as it is.
    #[must_use]
    pub fn source(self, dtype: Dtype, columns: NonZeroU32) -> CudaSource {
        let element = match dtype {
            Dtype::F16 | Dtype::BF16 => "unsigned short",
            Dtype::F32 => "unsigned int",
            Dtype::F64 => "unsigned long long",
        };
        let (kernel, to_rows) = match self {
            Self::ToRows => ("sparserl_columns_to_rows", true),
            Self::ToColumns => ("sparserl_rows_to_columns", false),
        };
        let text = format!(
            "namespace {{\nusing Element = {element};\nconstexpr unsigned COLUMNS = {columns};\n\n{}\n\
             }}  // namespace\n\n\
             extern \"C\" __global__ void __launch_bounds__(BLOCK) {kernel}(\n    \
             const Element* from, Element* to, u64 rows, u64 ld) {{\n  \
             transpose<{to_rows}>(from, to, rows, ld);\n}}\n",
            include_str!("../../cuda/transposing.cuh")
        );
        CudaSource {
            text,
            kernel: kernel.to_string(),
            parameters: Vec::new(),
            constants: Vec::new(),
            waits_itself: false,
        }
    }

    /// Blocks and threads of a block for a matrix of so many rows; a block takes several tiles
    /// where there are too many.
    #[must_use]
    pub fn geometry(rows: u64, columns: NonZeroU32) -> (u32, u32) {
        let column_tiles = u64::from(columns.get()).div_ceil(32);
        let width = u64::from(columns.get()).div_ceil(column_tiles);
        let height = TILE / width.next_power_of_two();
        let tiles = rows.div_ceil(height).saturating_mul(column_tiles);
        (tiles.clamp(1, MOST_BLOCKS) as u32, BLOCK)
    }
}
