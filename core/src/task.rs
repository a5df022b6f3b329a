//! What a kernel has to compute: the operation, the arithmetic, and what may change later.

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a kernel is generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Task {
    /// SpMV or SpMM.
    pub operation: Operation,
    /// Element types of the matrix, the dense operands and the sums.
    pub precision: Precision,
    /// Whether the values of the matrix may change after the kernel was made.
    pub values: Values,
}

impl Task {
    /// The operation in one element type throughout, on a matrix whose values stay as they are.
    #[must_use]
    pub const fn new(operation: Operation, dtype: Dtype) -> Self {
        Self { operation, precision: Precision::uniform(dtype), values: Values::Fixed }
    }

    /// This task in other element types.
    #[must_use]
    pub const fn with_precision(self, precision: Precision) -> Self {
        Self { precision, ..self }
    }

    /// This task on a matrix whose values may, or may not, change.
    #[must_use]
    pub fn with_values(self, values: Values) -> Self {
        Self { values, ..self }
    }
}

/// Element types of a product, by the role of the elements.
///
/// Only combinations that kernels exist for can be made: matrix and dense operands of one type, or
/// a matrix that is stored in single precision and multiplied in double, [`Precision::F32_IN_F64`].
/// Sums, α and β are of the dense operands' [accumulator](Dtype::accumulator) in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Roles", into = "Roles")]
pub struct Precision(Roles);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Roles {
    matrix: Dtype,
    dense: Dtype,
    accumulator: Dtype,
}

/// Element types that no kernel combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no kernel has a matrix of {matrix}, dense operands of {dense} and sums of {accumulator}")]
pub struct UnsupportedPrecision {
    /// Type of the matrix's values.
    pub matrix: Dtype,
    /// Type of the dense operands.
    pub dense: Dtype,
    /// Type of the sums, and of α and β.
    pub accumulator: Dtype,
}

impl Precision {
    /// A matrix of `f32` with dense operands and sums of `f64`: what a solver in double precision
    /// takes when `f32` holds its matrix well enough. An entry with a 32-bit column index is 8
    /// bytes instead of 12, and a value that `f32` holds is multiplied as exactly as in `f64`.
    pub const F32_IN_F64: Self =
        Self(Roles { matrix: Dtype::F32, dense: Dtype::F64, accumulator: Dtype::F64 });

    /// All precisions that kernels are written in.
    pub const ALL: [Self; 5] = [
        Self::uniform(Dtype::F32),
        Self::uniform(Dtype::F64),
        Self::F32_IN_F64,
        Self::uniform(Dtype::F16),
        Self::uniform(Dtype::BF16),
    ];

    /// One type for the matrix and the dense operands, and its accumulator.
    #[must_use]
    pub const fn uniform(dtype: Dtype) -> Self {
        Self(Roles { matrix: dtype, dense: dtype, accumulator: dtype.accumulator() })
    }

    /// A type for each role.
    ///
    /// # Errors
    /// When no kernel combines them.
    pub fn new(
        matrix: Dtype,
        dense: Dtype,
        accumulator: Dtype,
    ) -> Result<Self, UnsupportedPrecision> {
        let asked = Self(Roles { matrix, dense, accumulator });
        let unsupported = UnsupportedPrecision { matrix, dense, accumulator };
        Self::ALL.contains(&asked).then_some(asked).ok_or(unsupported)
    }

    /// Type of the values of A as they are stored.
    #[must_use]
    pub fn matrix(self) -> Dtype {
        self.0.matrix
    }

    /// Type of x and y, or B and C.
    #[must_use]
    pub fn dense(self) -> Dtype {
        self.0.dense
    }

    /// Type in which products are added up, and of α and β; its unit roundoff is that of the error
    /// bound.
    #[must_use]
    pub fn accumulator(self) -> Dtype {
        self.0.accumulator
    }

    /// Whether results are rounded from the sums' type to that of the dense operands.
    #[must_use]
    pub fn rounds_results(self) -> bool {
        self.0.dense != self.0.accumulator
    }
}

impl From<Dtype> for Precision {
    fn from(dtype: Dtype) -> Self {
        Self::uniform(dtype)
    }
}

impl FromStr for Precision {
    type Err = UnknownPrecision;

    /// Reads the form that `Display` writes.
    fn from_str(text: &str) -> Result<Self, UnknownPrecision> {
        let types = text.split('/').map(Dtype::from_str);
        match *types.collect::<Result<Vec<_>, _>>()?.as_slice() {
            [dtype] => Ok(Self::uniform(dtype)),
            [matrix, dense, accumulator] => Ok(Self::new(matrix, dense, accumulator)?),
            _ => Err(UnknownPrecision::Dtype(UnknownDtype)),
        }
    }
}

/// A text that names no precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPrecision {
    /// It names no element types.
    #[error(transparent)]
    Dtype(#[from] UnknownDtype),
    /// No kernel combines them.
    #[error(transparent)]
    Unsupported(#[from] UnsupportedPrecision),
}

impl TryFrom<Roles> for Precision {
    type Error = UnsupportedPrecision;

    fn try_from(Roles { matrix, dense, accumulator }: Roles) -> Result<Self, Self::Error> {
        Self::new(matrix, dense, accumulator)
    }
}

impl From<Precision> for Roles {
    fn from(precision: Precision) -> Self {
        precision.0
    }
}

impl fmt::Display for Precision {
    /// `f32` or `f16` when matrix and dense operands have one type, else
    /// `matrix/dense/accumulator`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Roles { matrix, dense, accumulator } = self.0;
        if *self == Self::uniform(matrix) {
            write!(f, "{matrix}")
        } else {
            write!(f, "{matrix}/{dense}/{accumulator}")
        }
    }
}

impl Values {
    /// The word for it in programs: `fixed` or `variable`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Variable => "variable",
        }
    }
}

/// Whether the values of a matrix may change after its kernel was made; its pattern never does.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// They stay: a program may store one value once, or codes into a table of few.
    #[default]
    Fixed,
    /// They may change: a program depends on the pattern only, and stores a value for each entry.
    Variable,
}

/// The product computed, after the Sparse BLAS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// `y = αAx + βy`.
    SpMV,
    /// `C = αAB + βC` with row-major, densely stored B and C of `columns` columns.
    SpMM {
        /// Columns of B and C.
        columns: NonZeroU32,
    },
}

impl Operation {
    /// Columns of the dense operand: 1 for SpMV.
    #[must_use]
    pub fn columns(self) -> u32 {
        match self {
            Self::SpMV => 1,
            Self::SpMM { columns } => columns.get(),
        }
    }
}

/// Element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary16: 11 bits of precision, and no number above 65504.
    F16,
    /// The upper half of binary32: 8 bits of precision, and its range.
    BF16,
}

impl Dtype {
    /// All element types of matrices.
    pub const ALL: [Self; 4] = [Self::F32, Self::F64, Self::F16, Self::BF16];

    /// The type in which kernels add up products of this one, and that of α and β.
    #[must_use]
    pub const fn accumulator(self) -> Self {
        match self {
            Self::F32 | Self::F16 | Self::BF16 => Self::F32,
            Self::F64 => Self::F64,
        }
    }

    /// Unit roundoff u: the largest relative error of rounding to nearest.
    #[must_use]
    pub fn unit_roundoff(self) -> f64 {
        match self {
            Self::F32 => f64::from(f32::EPSILON) / 2.0,
            Self::F64 => f64::EPSILON / 2.0,
            Self::F16 => half::f16::EPSILON.to_f64_const() / 2.0,
            Self::BF16 => half::bf16::EPSILON.to_f64_const() / 2.0,
        }
    }

    /// Smallest positive subnormal number.
    #[must_use]
    pub fn smallest(self) -> f64 {
        match self {
            Self::F32 => f64::from(f32::from_bits(1)),
            Self::F64 => f64::from_bits(1),
            Self::F16 => half::f16::from_bits(1).to_f64_const(),
            Self::BF16 => half::bf16::from_bits(1).to_f64_const(),
        }
    }

    /// Largest finite number.
    #[must_use]
    pub fn largest(self) -> f64 {
        match self {
            Self::F32 => f64::from(f32::MAX),
            Self::F64 => f64::MAX,
            Self::F16 => half::f16::MAX.to_f64_const(),
            Self::BF16 => half::bf16::MAX.to_f64_const(),
        }
    }

    /// Name of the type, as Rust or the crate `half` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
        }
    }

    /// Size of one element in bytes.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::F16 | Self::BF16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl FromStr for Dtype {
    type Err = UnknownDtype;

    /// Reads [`Dtype::name`].
    fn from_str(text: &str) -> Result<Self, UnknownDtype> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == text).ok_or(UnknownDtype)
    }
}

/// A text that names no element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an element type: f32, f64, f16 or bf16")]
pub struct UnknownDtype;

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Task {
    /// The form used in program files: `spmv f32`, `spmm 32 f64`, `spmv f32 variable`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            Operation::SpMV => write!(f, "spmv {}", self.precision)?,
            Operation::SpMM { columns } => write!(f, "spmm {columns} {}", self.precision)?,
        }
        match self.values {
            Values::Fixed => Ok(()),
            Values::Variable => f.write_str(" variable"),
        }
    }
}

impl FromStr for Task {
    type Err = UnknownTask;

    /// Reads the form that `Display` writes.
    fn from_str(text: &str) -> Result<Self, UnknownTask> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let values = match words.last() {
            Some(&"variable") => {
                words.pop();
                Values::Variable
            }
            _ => Values::Fixed,
        };
        let (operation, precision) = match words.as_slice() {
            ["spmv", precision] => (Operation::SpMV, precision),
            ["spmm", columns, precision] => {
                let canonical = !columns.starts_with(['0', '+']);
                let columns = columns.parse::<NonZeroU32>().ok().filter(|_| canonical);
                (Operation::SpMM { columns: columns.ok_or(UnknownTask)? }, precision)
            }
            _ => return Err(UnknownTask),
        };
        Ok(Self { operation, precision: precision.parse().map_err(|_| UnknownTask)?, values })
    }
}

/// A text that names no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no task: expected one as `spmv f32`, `spmm 32 f64` or `spmv f32 variable`")]
pub struct UnknownTask;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn precisions_are_read_back_and_unsupported_ones_are_refused() {
        for precision in Precision::ALL {
            assert_eq!(precision.to_string().parse(), Ok(precision));
        }
        for dtype in Dtype::ALL {
            let precision = Precision::uniform(dtype);
            let roles = (precision.matrix(), precision.dense(), precision.accumulator());
            let accumulator = dtype.accumulator();
            assert_eq!(roles, (dtype, dtype, accumulator));
            assert_eq!(precision.rounds_results(), dtype.size() == 2);
            // The short form is the written one.
            let roles: Result<Precision, _> =
                alloc::format!("{dtype}/{dtype}/{accumulator}").parse();
            assert_eq!(roles.map(|read| read.to_string()), Ok(dtype.to_string()));
        }
        let mixed: Precision = "f32/f64/f64".parse().unwrap();
        let roles = (mixed.matrix(), mixed.dense(), mixed.accumulator());
        assert_eq!(roles, (Dtype::F32, Dtype::F64, Dtype::F64));
        for (matrix, dense, accumulator) in [
            (Dtype::F64, Dtype::F32, Dtype::F32),
            (Dtype::F32, Dtype::F32, Dtype::F64),
            (Dtype::F32, Dtype::F64, Dtype::F32),
            (Dtype::F16, Dtype::F16, Dtype::F16),
            (Dtype::F16, Dtype::BF16, Dtype::F32),
            (Dtype::BF16, Dtype::F32, Dtype::F32),
        ] {
            let unsupported = UnsupportedPrecision { matrix, dense, accumulator };
            let text = alloc::format!("{matrix}/{dense}/{accumulator}");
            assert_eq!(text.parse::<Precision>(), Err(unsupported.into()));
        }
        assert_eq!("f8".parse::<Precision>(), Err(UnknownDtype.into()));
        assert_eq!("f32/f32".parse::<Precision>(), Err(UnknownDtype.into()));
    }

    #[test]
    fn limits_are_those_of_the_formats() {
        let of = |dtype: Dtype| (dtype.unit_roundoff(), dtype.smallest(), dtype.largest());
        assert_eq!(of(Dtype::F32), (2f64.powi(-24), 2f64.powi(-149), f64::from(f32::MAX)));
        assert_eq!(of(Dtype::F64), (2f64.powi(-53), f64::from_bits(1), f64::MAX));
        assert_eq!(of(Dtype::F16), (2f64.powi(-11), 2f64.powi(-24), 65504.0));
        let largest = 255.0 * 2f64.powi(120);
        assert_eq!(of(Dtype::BF16), (2f64.powi(-8), 2f64.powi(-133), largest));
    }
}
