//! What instructions do with small matrices that the lanes of a warp hold together.

use super::{Address, Register};

/// `mma.sync`: D = A B + C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mma {
    /// Types and sizes.
    pub shape: MmaShape,
    /// Registers of each lane's part of D.
    pub d: Box<[Register]>,
    /// Registers of each lane's part of A, whose rows are those of D.
    pub a: Box<[Register]>,
    /// Registers of each lane's part of B, whose columns are those of D.
    pub b: Box<[Register]>,
    /// Registers of each lane's part of C.
    pub c: Box<[Register]>,
    /// 32-bit register: all lanes.
    pub members: Register,
}

/// Types and sizes of a product; B has 8 columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmaShape {
    /// Type of A and B.
    pub factors: MmaType,
    /// Type of C and D: binary16, binary32 or binary64.
    pub sums: MmaType,
    /// Rows of A: 8 or 16.
    pub rows: u32,
    /// Columns of A and rows of B.
    pub depth: u32,
}

/// Type of a matrix's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmaType {
    /// binary16, two in a register.
    F16,
    /// bfloat16, two in a register.
    BF16,
    /// binary32 of which the lower 13 bits are not looked at.
    TF32,
    /// binary32.
    F32,
    /// binary64.
    F64,
}

impl MmaType {
    /// Elements in a register.
    #[must_use]
    pub fn packed(self) -> u32 {
        match self {
            Self::F16 | Self::BF16 => 2,
            Self::TF32 | Self::F32 | Self::F64 => 1,
        }
    }
}

/// `ldmatrix`: loads one, two or four matrices of 8 × 8 elements of 16 bits from shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadMatrix {
    /// The address of a row: lane 8 i + j has that of row j of matrix i.
    pub address: Address,
    /// A 32-bit register for each matrix.
    pub destinations: Box<[Register]>,
    /// `.trans`: lanes receive the elements of the transposed matrices.
    pub transposed: bool,
    /// 32-bit register: all lanes.
    pub members: Register,
}

/// `stmatrix`: stores as many to shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreMatrix {
    /// The address of a row: lane 8 i + j has that of row j of matrix i.
    pub address: Address,
    /// A 32-bit register for each matrix.
    pub sources: Box<[Register]>,
    /// `.trans`: lanes give the elements of the transposed matrices.
    pub transposed: bool,
    /// 32-bit register: all lanes.
    pub members: Register,
}
