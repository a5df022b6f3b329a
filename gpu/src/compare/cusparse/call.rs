//! The library's calls for one product.

use std::ffi::c_int;

use bytemuck::bytes_of;
use sparserl_core::matrix::Scalar;
use sparserl_core::task::Operation;

use super::description::{Description, address, data_type};
use super::types::{AS_IS, Address, ScalarPointer, SpMm, SpMv, Status};
use super::{Cusparse, CusparseError};
use crate::run::device::DeviceBuffer;

/// The arguments that the library's calls for one product share.
#[derive(Debug)]
pub(super) struct Call<'c> {
    cusparse: &'c Cusparse,
    operation: Operation,
    /// The algorithm's.
    number: c_int,
    /// The type of the scalars, and of what is computed with.
    compute: c_int,
    /// α and β, each in the first bytes of its cell. Boxed: the library is given their addresses.
    scalars: Box<[u64; 2]>,
    a: Description,
    /// The input and the output.
    dense: [Description; 2],
    workspace: Option<DeviceBuffer>,
}

impl<'c> Call<'c> {
    /// An operation and its algorithm's number; A; input and output; α and β.
    pub(super) fn new<S: Scalar>(
        cusparse: &'c Cusparse,
        (operation, number): (Operation, c_int),
        a: Description,
        dense: [Description; 2],
        scalars: [S; 2],
    ) -> Self {
        let scalars = Box::new(scalars.map(cell));
        let compute = data_type(S::DTYPE);
        Self { cusparse, operation, number, compute, scalars, a, dense, workspace: None }
    }

    /// Bytes of memory that [`take_workspace`](Self::take_workspace) has to be given before the
    /// other calls.
    pub(super) fn workspace_bytes(&self) -> Result<usize, CusparseError> {
        self.cusparse.device.bind()?;
        let functions = self.cusparse.functions;
        let mut bytes = 0;
        match self.operation {
            Operation::SpMV => {
                // SAFETY: the pointer is to a live integer.
                let status = unsafe { self.spmv(functions.spmv_buffer_size, &raw mut bytes) };
                functions.check("cusparseSpMV_bufferSize", status)?;
            }
            Operation::SpMM { .. } => {
                // SAFETY: the pointer is to a live integer.
                let status = unsafe { self.spmm(functions.spmm_buffer_size, &raw mut bytes) };
                functions.check("cusparseSpMM_bufferSize", status)?;
            }
        }
        Ok(bytes)
    }

    pub(super) fn take_workspace(&mut self, workspace: DeviceBuffer) {
        self.workspace = Some(workspace);
    }

    /// Analyses A.
    pub(super) fn analyse(&self) -> Result<(), CusparseError> {
        let functions = self.cusparse.functions;
        self.perform(
            ("cusparseSpMV_preprocess", functions.spmv_preprocess),
            ("cusparseSpMM_preprocess", functions.spmm_preprocess),
        )
    }

    /// Asks the stream for the product.
    pub(super) fn run(&self) -> Result<(), CusparseError> {
        let functions = self.cusparse.functions;
        self.perform(("cusparseSpMV", functions.spmv), ("cusparseSpMM", functions.spmm))
    }

    fn perform(
        &self,
        (spmv_name, spmv): (&'static str, SpMv<Address>),
        (spmm_name, spmm): (&'static str, SpMm<Address>),
    ) -> Result<(), CusparseError> {
        self.cusparse.device.bind()?;
        let functions = self.cusparse.functions;
        let workspace = self.workspace.as_ref().map_or(std::ptr::null_mut(), address);
        match self.operation {
            Operation::SpMV => {
                // SAFETY: the workspace has as many bytes as the library asked for and is this
                // call's own.
                functions.check(spmv_name, unsafe { self.spmv(spmv, workspace) })
            }
            Operation::SpMM { .. } => {
                // SAFETY: as above.
                functions.check(spmm_name, unsafe { self.spmm(spmm, workspace) })
            }
        }
    }

    /// # Safety
    /// `last` is what `function` takes there.
    unsafe fn spmv<Last>(&self, function: SpMv<Last>, last: Last) -> Status {
        let ([alpha, beta], [x, y]) = (self.scalar_pointers(), &self.dense);
        let (handle, a) = (self.cusparse.handle, self.a.raw());
        // SAFETY: the handle and the descriptions are live, of operands whose sizes were checked to
        // fit, and so are the scalars, of the type that `compute` says. `last` is the caller's
        // promise.
        unsafe {
            function(
                handle,
                AS_IS,
                alpha,
                a,
                x.raw(),
                beta,
                y.raw(),
                self.compute,
                self.number,
                last,
            )
        }
    }

    /// # Safety
    /// `last` is what `function` takes there.
    unsafe fn spmm<Last>(&self, function: SpMm<Last>, last: Last) -> Status {
        let ([alpha, beta], [b, c]) = (self.scalar_pointers(), &self.dense);
        let (handle, a) = (self.cusparse.handle, self.a.raw());
        // SAFETY: as in `spmv`.
        unsafe {
            function(
                handle,
                AS_IS,
                AS_IS,
                alpha,
                a,
                b.raw(),
                beta,
                c.raw(),
                self.compute,
                self.number,
                last,
            )
        }
    }

    fn scalar_pointers(&self) -> [ScalarPointer; 2] {
        self.scalars.each_ref().map(|cell| std::ptr::from_ref(cell).cast())
    }
}

/// A value in the first bytes of a cell.
pub(super) fn cell<T: Scalar>(value: T) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    bytes.iter_mut().zip(bytes_of(&value)).for_each(|(to, from)| *to = *from);
    u64::from_ne_bytes(bytes)
}
