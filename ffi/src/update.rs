//! New values for the same pattern: a kernel puts them where the plan's maps say.

use std::ffi::c_void;
use std::sync::PoisonError;

use sparserl_gpu::run::operator::{DeviceMemory, ForeignStream, SmallKernel, wait_for};

use crate::kernel::{Loaded, PlanKernel};
use crate::map::ValueArray;
use crate::matrix::{Location, check_memory};
use crate::operands::check_alignment;
use crate::plan::Plan;
use crate::scatter::BLOCK;
use crate::status::{Failure, Status};

impl Plan {
    /// Puts new values in the place of the old ones, in the order of the stream.
    ///
    /// # Safety
    /// `values` points to as many elements as the matrix has entries, where `location` says; on a
    /// device they stay until the stream has come past this call.
    pub(crate) unsafe fn update_values(
        &self,
        stream: *mut c_void,
        values: *const c_void,
        location: i32,
    ) -> Result<(), Failure> {
        if !self.options.values_variable {
            let text = "the values of this plan are fixed: make it with \
                        SPARSERL_OPTION_VALUES_VARIABLE = 1";
            return Err(Failure::new(Status::Unsupported, text));
        }
        let gpu = self.context.gpu()?;
        if values.is_null() && self.nnz > 0 {
            return Err(Failure::null("values"));
        }
        // SAFETY: by the contract.
        let stream = unsafe { ForeignStream::new(stream) };
        gpu.check_stream(stream)?;
        let _entered = gpu.device.enter()?;
        let capturing = gpu.device.is_capturing(stream)?;
        let from_host = Location::read(location)? == Location::Host;
        if from_host && capturing {
            return Err(Failure::new(
                Status::Capturing,
                "the stream is being captured, and values on the host would have to be copied now: \
                 give them in device memory",
            ));
        }
        // There is nothing to put anywhere, and `values` may be NULL.
        if self.nnz == 0 {
            return Ok(());
        }
        let dtype = self.task.precision.matrix();
        let bytes = self.nnz * dtype.size();
        if !from_host {
            check_alignment("values", values, dtype.size())?;
            if self.options.check_pointers {
                check_memory(&gpu.device, "values", values, bytes)?;
            }
        }
        let kernel = self.context.scatter.kernel(&self.context.compiler, &gpu.device, dtype)?;
        let staged = if from_host {
            // SAFETY: by the contract, and `values` is not NULL where there are entries.
            let given = unsafe { std::slice::from_raw_parts(values.cast::<u8>(), bytes) };
            Some(DeviceMemory::from_bytes(&gpu.device, given)?)
        } else {
            None
        };
        let source = staged.as_ref().map_or(values.addr() as u64, DeviceMemory::address);
        let mut updates = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        updates.has_new_values = true;
        updates.is_captured |= capturing;
        // SAFETY: by the contract, and what is staged stays until the stream has been waited for.
        let scattered = unsafe { self.scatter(kernel, stream, source, !updates.is_captured) };
        // Searches and other updates need not wait for the stream.
        drop(updates);
        if staged.is_some() {
            // Even where a launch was refused, those before it read what is staged.
            let waited = wait_for(stream);
            scattered?;
            return Ok(waited?);
        }
        scattered
    }

    /// # Safety
    /// `values` is device memory with an element for each entry, which stays until the stream has
    /// come past this call.
    unsafe fn scatter(
        &self,
        kernel: &SmallKernel,
        stream: ForeignStream,
        values: u64,
        may_swap: bool,
    ) -> Result<(), Failure> {
        for side in self.sides() {
            // A graph that updates values goes on with the kernels that it has: another would miss
            // what its replays bring.
            if may_swap {
                side.take_pending();
            } else {
                side.keep_current();
            }
            let current = side.current();
            let mut kernels = side.captured();
            kernels.retain(|kernel| !std::sync::Arc::ptr_eq(kernel, &current));
            kernels.push(current);
            for PlanKernel { loaded, .. } in kernels.iter().map(|kernel| &**kernel) {
                let Some(Loaded { map: Some(map), arrays, .. }) = loaded else {
                    continue;
                };
                for ValueArray { index, entries, length } in &map.arrays {
                    let Some(slots) = arrays.get(*index) else { continue };
                    if *length == 0 {
                        continue;
                    }
                    let grid = (*length as u64).div_ceil(BLOCK) as u32;
                    let arguments = [slots.address(), entries.address(), values, *length as u64];
                    // SAFETY: slots and entries are as long as is said, and entries are those of
                    // the matrix, which the caller's values have.
                    unsafe { kernel.enqueue(stream, (grid, BLOCK as u32), arguments) }?;
                }
            }
        }
        Ok(())
    }
}
