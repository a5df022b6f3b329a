//! CUDA kernels from anywhere, over plain CSR.
//!
//! ```text
//! source ─► source::kernels ─► parameters ─┐
//! launch comment or JSON ─► LaunchRule ────┴─► RawKernel ─► Prepared, for a matrix
//! ```
//!
//! The kernel computes y = A·x or C = A·B, with row-major B and C. It is one function like
//!
//! ```cuda
//! // launch: grid=(ceil(num_rows/256)) block=256
//! __global__ void spmm(const int* row_ptr, const int* col_idx, const float* values,
//!                      const float* dense_matrix, float* output, int num_rows, int dense_cols)
//! ```
//!
//! Parameters may come in any order; what they are is told by their names, and by the order above
//! where their names do not tell. The [`launch`] is described in a comment or in a JSON file.

mod expression;
pub mod launch;
mod parameter;
mod source;

use sparserl_core::layout::ArrayData;
use sparserl_core::matrix::{CsrView, OffsetsView, Scalar};
use sparserl_core::task::{Dtype, Operation};

use crate::candidate::executable::{Executable, Parameter, Prepared};
use crate::compile::nvrtc::Cubin;
use launch::{LaunchRule, RuleError, Sizes};
pub use parameter::{ParameterError, Role};
use parameter::{Signature, read_signature};
use source::{Code, Function};

/// A kernel's source, what its parameters are, and how it is launched.
#[derive(Clone, Debug, PartialEq)]
pub struct RawKernel {
    kernel: String,
    source: String,
    signature: Signature,
    launch: LaunchRule,
}

impl RawKernel {
    /// Reads a source. How to launch it is said by `sidecar`, JSON from a file beside it, or else
    /// by its `// launch:` comment.
    ///
    /// # Errors
    /// When the kernel, its parameters or its launch are not clear.
    pub fn parse(source: &str, sidecar: Option<&str>) -> Result<Self, RawError> {
        let code = Code::read(source);
        let launch = match sidecar {
            Some(json) => Some(LaunchRule::from_json(json)?),
            None => code.launch_comment()?.map(LaunchRule::from_comment).transpose()?,
        };
        let functions = code.kernels();
        let named = launch.as_ref().and_then(LaunchRule::kernel);
        let function = choose(&functions, named)?;
        let signature = read_signature(function.parameters)?;
        let launch = launch.ok_or(RuleError::None)?;
        let source = code.with_c_linkage(&functions, function.name);
        Ok(Self { kernel: function.name.to_owned(), source, signature, launch })
    }

    /// The kernel's name.
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// What to compile: the source, with `extern "C"` where it was missing.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What its parameters are, in their order.
    pub fn roles(&self) -> impl Iterator<Item = Role> {
        self.signature.parameters.iter().map(|parameter| parameter.role)
    }

    /// The kernel for a matrix; `cubin` was compiled from [`source`](Self::source).
    ///
    /// # Errors
    /// When the element type is another than the kernel's, when a size does not fit an `int`, or
    /// when the launch is none for this matrix.
    pub fn executable<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        operation: Operation,
        cubin: Cubin,
    ) -> Result<Executable, RawError> {
        Ok(self.prepare(matrix, operation)?.executable(cubin))
    }

    /// How the kernel is launched for a matrix.
    ///
    /// # Errors
    /// As [`executable`](Self::executable).
    pub fn prepare<T: Scalar>(
        &self,
        matrix: CsrView<'_, T>,
        operation: Operation,
    ) -> Result<Prepared, RawError> {
        if let Some((parameter, found)) = self.signature.other_element_type(T::DTYPE) {
            let (parameter, task) = (parameter.to_owned(), T::DTYPE);
            return Err(RawError::ElementType { parameter, found, task });
        }
        let sizes = Sizes {
            num_rows: matrix.rows() as u64,
            num_cols: matrix.cols() as u64,
            nnz: matrix.nnz() as u64,
            dense_cols: operation.columns().into(),
        };
        let geometry = self.launch.geometry(sizes)?;
        // Indices and offsets are read as `int`, whichever sizes are asked for.
        let rows = as_int("rows", sizes.num_rows)?;
        let cols = as_int("columns", sizes.num_cols)?;
        let nnz = as_int("nonzeros", sizes.nnz)?;
        let dense_cols = as_int("columns of the dense operand", sizes.dense_cols)?;

        let mut arrays = Vec::new();
        let mut array = |data: ArrayData| {
            arrays.push(data);
            Parameter::Array(arrays.len() - 1)
        };
        let parameters = self.signature.parameters.iter().map(|parameter| {
            let what = match parameter.role {
                Role::RowOffsets => array(ArrayData::U32(narrow(matrix.offsets()))),
                Role::ColumnIndices => array(ArrayData::U32(matrix.columns().to_vec())),
                Role::Values => array(values(matrix.values())),
                Role::Dense => Parameter::Input,
                Role::Output => Parameter::Output,
                Role::NumRows => Parameter::I32(rows),
                Role::NumCols => Parameter::I32(cols),
                Role::Nnz => Parameter::I32(nnz),
                Role::DenseCols => Parameter::I32(dense_cols),
            };
            (parameter.name().to_owned(), what)
        });
        let parameters = parameters.collect();
        Ok(Prepared::foreign(geometry, parameters, arrays))
    }
}

/// The kernel of that name, or the only one.
fn choose<'a, 'f>(
    functions: &'f [Function<'a>],
    named: Option<&str>,
) -> Result<&'f Function<'a>, RawError> {
    let mut names: Vec<&str> = Vec::new();
    for function in functions {
        if !names.contains(&function.name) {
            names.push(function.name);
        }
    }
    let name = match (named, names.as_slice()) {
        (_, []) => return Err(RawError::NoKernel),
        (None, [name]) => *name,
        (None, _) => return Err(RawError::Several { names: names.join(", ") }),
        (Some(name), _) => name,
    };
    let same: Vec<_> = functions.iter().filter(|function| function.name == name).collect();
    let defined = same.iter().find(|function| function.is_defined).or(same.first());
    let Some(&function) = defined else {
        let (kernel, names) = (launch::shortened(name), names.join(", "));
        return Err(RawError::NoSuchKernel { kernel, names });
    };
    let kernel = || name.to_owned();
    if same.iter().any(|function| function.is_template) {
        return Err(RawError::Template { kernel: kernel() });
    }
    let differs =
        |other: &&Function<'_>| other.is_defined && other.parameters != function.parameters;
    if same.iter().copied().any(|other| differs(&other)) {
        return Err(RawError::Redefined { kernel: kernel() });
    }
    Ok(function)
}

fn as_int(what: &'static str, count: u64) -> Result<i32, RawError> {
    i32::try_from(count).map_err(|_| RawError::TooLarge { what, count })
}

/// Offsets of fewer than 2³¹ nonzeros.
fn narrow(offsets: OffsetsView<'_>) -> Vec<u32> {
    match offsets {
        OffsetsView::U32(offsets) => offsets.to_vec(),
        OffsetsView::U64(offsets) => offsets.iter().map(|&offset| offset as u32).collect(),
    }
}

fn values<T: Scalar>(values: &[T]) -> ArrayData {
    match T::DTYPE {
        Dtype::F32 => ArrayData::F32(bytemuck::cast_slice(values).to_vec()),
        Dtype::F64 => ArrayData::F64(bytemuck::cast_slice(values).to_vec()),
    }
}

/// A source is no kernel that can be run, or not on this matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RawError {
    /// There is no kernel.
    #[error("the source has no kernel: no `__global__` function is written out in it")]
    NoKernel,
    /// There are several, and nothing says which.
    #[error("the source has several kernels ({names}): name one in the launch, as in kernel=NAME")]
    Several {
        /// Their names.
        names: String,
    },
    /// The launch names a kernel that there is not.
    #[error("the launch names the kernel `{kernel}`, but the source has {names}")]
    NoSuchKernel {
        /// The name.
        kernel: String,
        /// Names of those that there are.
        names: String,
    },
    /// A template cannot be compiled alone.
    #[error("the kernel `{kernel}` is a template: write it out for one type and size")]
    Template {
        /// Its name.
        kernel: String,
    },
    /// The kernel is defined more than once.
    #[error("the kernel `{kernel}` is defined more than once, with different parameters: keep one")]
    Redefined {
        /// Its name.
        kernel: String,
    },
    /// A parameter is none that can be given.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// How to launch it is not said, or not clear.
    #[error(transparent)]
    Launch(#[from] RuleError),
    /// The kernel is for another element type.
    #[error("the parameter `{parameter}` is of {found}, but the task is {task}")]
    ElementType {
        /// The parameter's name.
        parameter: String,
        /// The kernel's element type.
        found: Dtype,
        /// The task's element type.
        task: Dtype,
    },
    /// The matrix is too large for parameters of type `int`.
    #[error("{count} {what} do not fit the `int` that the kernel reads")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many.
        count: u64,
    },
}

#[cfg(test)]
mod tests;
