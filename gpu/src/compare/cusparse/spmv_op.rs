//! `cusparseSpMVOp`: z = αAx + βy with a plan, of CUDA 13.1 and later.

use std::ffi::{c_int, c_void};

use super::description::Description;
use super::offer::{Preparation, SpMvOpFunctions};
use super::types::{AS_IS, Address};
use super::{Cusparse, CusparseError};
use crate::run::device::DeviceBuffer;

/// A planned product.
#[derive(Debug)]
pub(super) struct SpMvOp<'c> {
    cusparse: &'c Cusparse,
    functions: &'c SpMvOpFunctions,
    scalars: Box<[u64; 2]>,
    operands: Operands,
    /// The library's description of the operation; null before it is made.
    description: *mut c_void,
    /// Null before it is made.
    plan: *mut c_void,
    _workspace: Option<DeviceBuffer>,
}

/// A, x, y and z. What is added is a vector of its own, all 0: a library that reads y though β is 0
/// may not find the output there, which holds NaN before a product is verified.
#[derive(Debug)]
pub(super) struct Operands {
    pub(super) a: Description,
    pub(super) x: Description,
    pub(super) y: Description,
    pub(super) z: Description,
    /// What `y` describes.
    pub(super) _zeros: DeviceBuffer,
}

impl<'c> SpMvOp<'c> {
    /// Takes memory and makes the plan. `number` is the algorithm's, and `compute` the type of the
    /// scalars. Also gives the bytes of memory.
    pub(super) fn prepare(
        cusparse: &'c Cusparse,
        functions: &'c SpMvOpFunctions,
        (number, compute): (c_int, c_int),
        operands: Operands,
        scalars: [u64; 2],
    ) -> Result<(Self, usize), CusparseError> {
        cusparse.device.bind()?;
        let check = |call, status| cusparse.functions.check(call, status);
        let Operands { a, x, y, z, .. } = &operands;
        let (handle, a, x, y, z) = (cusparse.handle, a.raw(), x.raw(), y.raw(), z.raw());
        let mut bytes = 0;
        // SAFETY: the handle and the descriptions are live, of operands whose sizes were checked to
        // fit; the pointer is to a live integer.
        let status = unsafe {
            match functions.preparation {
                Preparation::Plain { buffer_size, .. } => {
                    buffer_size(handle, AS_IS, a, x, y, z, compute, &raw mut bytes)
                }
                Preparation::OfAlgorithm { buffer_size, .. } => {
                    buffer_size(handle, AS_IS, a, x, y, z, compute, number, &raw mut bytes)
                }
            }
        };
        check("cusparseSpMVOp_bufferSize", status)?;
        let workspace = DeviceBuffer::new(&cusparse.device, bytes)?;
        let buffer = workspace.address() as Address;
        let mut planned = Self {
            cusparse,
            functions,
            scalars: Box::new(scalars),
            operands,
            description: std::ptr::null_mut(),
            plan: std::ptr::null_mut(),
            _workspace: Some(workspace),
        };
        let description = &raw mut planned.description;
        // SAFETY: as above; the workspace has as many bytes as were asked for, and is dropped after
        // the description.
        let status = unsafe {
            match functions.preparation {
                Preparation::Plain { create_description, .. } => {
                    create_description(handle, description, AS_IS, a, x, y, z, compute, buffer)
                }
                Preparation::OfAlgorithm { create_description, .. } => create_description(
                    handle,
                    description,
                    AS_IS,
                    a,
                    x,
                    y,
                    z,
                    compute,
                    number,
                    buffer,
                ),
            }
        };
        check("cusparseSpMVOp_createDescr", status)?;
        // SAFETY: the description was just made; without code, the epilogue is the plain one.
        let status = unsafe {
            (functions.create_plan)(
                handle,
                planned.description,
                &raw mut planned.plan,
                std::ptr::null(),
                0,
            )
        };
        check("cusparseSpMVOp_createPlan", status)?;
        Ok((planned, bytes))
    }

    /// Enqueues the product.
    pub(super) fn run(&self) -> Result<(), CusparseError> {
        let Self { cusparse, functions, plan, .. } = self;
        let Operands { x, y, z, .. } = &self.operands;
        let [alpha, beta] = self.scalars.each_ref().map(|cell| std::ptr::from_ref(cell).cast());
        cusparse.device.bind()?;
        // SAFETY: the handle, the plan and the descriptions are live, and so are the scalars, of
        // the type that the plan was made for.
        let status = unsafe {
            (functions.run)(cusparse.handle, *plan, alpha, beta, x.raw(), y.raw(), z.raw())
        };
        cusparse.functions.check("cusparseSpMVOp", status)
    }
}

impl Drop for SpMvOp<'_> {
    fn drop(&mut self) {
        if self.cusparse.device.bind().is_err() {
            return;
        }
        // A failure leaves nothing that could be done.
        if !self.plan.is_null() {
            // SAFETY: made in `prepare`, destroyed only here.
            let _ = unsafe { (self.functions.destroy_plan)(self.plan) };
        }
        if !self.description.is_null() {
            // SAFETY: as above.
            let _ = unsafe { (self.functions.destroy_description)(self.description) };
        }
    }
}
