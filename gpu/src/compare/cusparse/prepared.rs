//! One product made ready for one algorithm.

use std::time::Instant;

use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::task::Operation;

use super::call::{Call, cell};
use super::description::{Description, data_type};
use super::spmv_op::{Operands, SpMvOp};
use super::stored::Stored;
use super::{Algorithm, Cusparse, CusparseError};
use crate::run::device::{DeviceBuffer, Fill};
use crate::run::device_csr::DeviceCsr;

/// What is computed: `output = alpha * A * input + beta * output`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product<'c, T: Scalar> {
    /// SpMV or SpMM.
    pub(crate) operation: Operation,
    /// A on the host, for algorithms that need it in another format.
    pub(crate) host: CsrView<'c, T>,
    /// A on the device.
    pub(crate) csr: &'c DeviceCsr,
    /// `cols × N` elements of T, row-major, `N` being the operation's columns.
    pub(crate) input: &'c DeviceBuffer,
    /// `rows × N` elements of T, row-major.
    pub(crate) output: &'c DeviceBuffer,
    /// α, of the type that is computed with.
    pub(crate) alpha: T::Accumulator,
    /// β.
    pub(crate) beta: T::Accumulator,
}

impl<T: Scalar> Product<'_, T> {
    fn check(&self) -> Result<(), CusparseError> {
        let (host, csr) = (self.host, self.csr);
        let shape = |rows, cols, nnz, dtype| format!("{rows} x {cols}, {nnz} entries of {dtype}");
        let expected = shape(host.rows(), host.cols(), host.nnz(), T::DTYPE);
        let found = shape(csr.rows, csr.cols, csr.nnz, csr.dtype);
        if expected != found {
            return Err(CusparseError::Operand { operand: "the matrix", expected, found });
        }
        self.check_dense("the input", self.input, host.cols())?;
        self.check_dense("the output", self.output, host.rows())
    }

    fn check_dense(
        &self,
        operand: &'static str,
        buffer: &DeviceBuffer,
        rows: usize,
    ) -> Result<(), CusparseError> {
        let bytes = rows as u128 * u128::from(self.operation.columns()) * size_of::<T>() as u128;
        if buffer.len() as u128 == bytes {
            return Ok(());
        }
        let expected = format!("{bytes} bytes");
        Err(CusparseError::Operand { operand, expected, found: format!("{} bytes", buffer.len()) })
    }
}

/// A product made ready for one algorithm: A converted, the work buffer taken, A analysed.
///
/// The matrix is described anew for each, as the library keeps what its analysis finds with the
/// description.
#[derive(Debug)]
pub(crate) struct Prepared<'c> {
    /// Seconds that this took, on the host's clock: conversion, taking memory and the library's
    /// analysis or plan. The first in a process includes the loading of the library's kernels.
    pub(crate) analysis_seconds: f64,
    /// Bytes of the library's work buffer. Another format's arrays are not counted.
    pub(crate) buffer_bytes: u64,
    name: String,
    work: Work<'c>,
    // After `work`, whose description of it is destroyed first.
    _stored: Stored<'c>,
}

/// What asks for the product.
#[derive(Debug)]
enum Work<'c> {
    Call(Call<'c>),
    Planned(SpMvOp<'c>),
}

impl Cusparse {
    /// Makes a product ready for an algorithm. Work already on the stream is waited for; what is
    /// prepared does not touch the output.
    ///
    /// # Errors
    /// [`CusparseError::NotApplicable`] when the operation, the matrix's shape or its pattern is
    /// none for the algorithm; others when memory does not suffice, or when the library or the
    /// driver fails.
    pub(crate) fn prepare<'c, T: Scalar>(
        &'c self,
        algorithm: Algorithm,
        product: &Product<'c, T>,
    ) -> Result<Prepared<'c>, CusparseError> {
        product.check()?;
        let not_applicable = |reason| CusparseError::NotApplicable { algorithm, reason };
        let number = algorithm
            .number(product.operation)
            .ok_or_else(|| not_applicable("the operation has no such algorithm".to_owned()))?;
        if algorithm.is_planned() && product.beta.to_f64() != 0.0 {
            return Err(not_applicable("it is used for products that add nothing".to_owned()));
        }
        let matrix = product.host;
        if matrix.rows() == 0 || matrix.cols() == 0 {
            return Err(not_applicable("the matrix is empty".to_owned()));
        }
        if i32::try_from(matrix.cols()).is_err() {
            return Err(not_applicable("column indices are past 2^31".to_owned()));
        }
        let planned = if algorithm.is_planned() {
            let functions = self.functions.spmv_op.functions()?;
            let absent = || not_applicable("the library does not have it".to_owned());
            Some(functions.ok_or_else(absent)?)
        } else {
            None
        };
        self.device.bind()?;
        self.stream.synchronize()?;

        // Our own need, which is no analysis of the library's.
        let zeros = if algorithm.is_planned() {
            let mut zeros = DeviceBuffer::new(&self.device, product.output.len())?;
            zeros.fill(Fill::Byte(0))?;
            Some(zeros)
        } else {
            None
        };

        let start = Instant::now();
        let stored = Stored::new(&self.device, algorithm, matrix, product.csr)?;
        let dense = |buffer, rows| {
            Description::dense(self.functions, product.operation, buffer, rows, T::DTYPE)
        };
        let a = stored.describe(self.functions)?;
        let x = dense(product.input, matrix.cols())?;
        let output = dense(product.output, matrix.rows())?;
        let scalars = [product.alpha, product.beta];
        let (work, bytes) = match (planned, zeros) {
            (Some(functions), Some(zeros)) => {
                let y = dense(&zeros, matrix.rows())?;
                let operands = Operands { a, x, y, z: output, _zeros: zeros };
                let compute = data_type(T::Accumulator::DTYPE);
                let (planned, bytes) = SpMvOp::prepare(
                    self,
                    functions,
                    (number, compute),
                    operands,
                    scalars.map(cell),
                )?;
                (Work::Planned(planned), bytes)
            }
            _ => {
                let mut call =
                    Call::new(self, (product.operation, number), a, [x, output], scalars);
                let bytes = call.workspace_bytes()?;
                call.take_workspace(DeviceBuffer::new(&self.device, bytes)?);
                if algorithm.is_analysed() {
                    call.analyse()?;
                }
                (Work::Call(call), bytes)
            }
        };
        self.stream.synchronize()?;
        let analysis_seconds = start.elapsed().as_secs_f64();

        let name = match &stored {
            Stored::Bsr { side, .. } => format!("{algorithm}({side})"),
            _ => algorithm.name().to_owned(),
        };
        let buffer_bytes = bytes as u64;
        Ok(Prepared { analysis_seconds, buffer_bytes, name, work, _stored: stored })
    }
}

impl Prepared<'_> {
    /// The algorithm's name, with the side of the blocks where it has them: `BSR(3)`.
    #[must_use]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Asks the stream for the product. It can be captured into a graph, after it was asked for
    /// once outside of one: the first call loads the library's kernels.
    ///
    /// # Errors
    /// When the library refuses.
    pub(crate) fn enqueue(&self) -> Result<(), CusparseError> {
        match &self.work {
            Work::Call(call) => call.run(),
            Work::Planned(planned) => planned.run(),
        }
    }
}
