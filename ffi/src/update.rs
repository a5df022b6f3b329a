//! New values for the same pattern.
//!
//! A program for values that may change stores a value for each entry, so where each of them goes
//! can be told by packing the entries' numbers in place of their values. A kernel then puts new
//! values there.

use std::ffi::c_void;
use std::sync::{OnceLock, PoisonError};

use sparserl_core::layout::{ArrayData, Packed, pack};
use sparserl_core::matrix::{Csr, CsrView, Offsets, Scalar};
use sparserl_core::task::Dtype;
use sparserl_gpu::compile::nvrtc::CompileOptions;
use sparserl_gpu::run::device::Device;
use sparserl_gpu::run::operator::{DeviceMemory, ForeignStream, SmallKernel, wait_for};

use crate::api;
use crate::context::Context;
use crate::kernel::{Loaded, PlanKernel};
use crate::matrix::check_memory;
use crate::plan::Plan;
use crate::status::{Failure, Status};

/// Threads of a block of the kernel that puts values in their places.
const BLOCK: u64 = 256;
/// Numbers that a digit has at most.
const MOST_IN_A_DIGIT: f64 = (1_u64 << 52) as f64;
/// What stands in a map where a slot has no entry.
const NO_ENTRY: u64 = u64::MAX;

/// The kernels that put values in their places, compiled when they are first needed: for elements of
/// 2, 4 and 8 bytes.
#[derive(Default)]
pub(crate) struct Scatter {
    kernels: [OnceLock<SmallKernel>; 3],
}

/// For each array of values, which entry of A each of its elements is.
pub(crate) struct Map {
    arrays: Vec<ValueArray>,
}

struct ValueArray {
    /// Its place in the order of the kernel's arguments.
    index: usize,
    entries: DeviceMemory,
    length: usize,
}

impl Map {
    /// Bytes of device memory that the map of a packing takes.
    pub(crate) fn bytes(packed: &Packed) -> u64 {
        let lengths = value_arrays(packed).map(|(_, data)| data.len() as u64);
        lengths.sum::<u64>() * size_of::<u64>() as u64
    }

    /// For a program that was packed for a matrix; `origins` says which entry of A each entry of the
    /// matrix is, where it is Aᵀ.
    pub(crate) fn new<T: Scalar>(
        device: &Device,
        matrix: CsrView<'_, T>,
        packed: &Packed,
        origins: Option<&[u64]>,
    ) -> Result<Self, Failure> {
        let entries = entries(matrix, packed)?;
        let upload = |(index, mut entries): (usize, Vec<u64>)| -> Result<ValueArray, Failure> {
            if let Some(origins) = origins {
                for entry in entries.iter_mut().filter(|entry| **entry != NO_ENTRY) {
                    *entry = origins.get(*entry as usize).copied().unwrap_or(NO_ENTRY);
                }
            }
            let length = entries.len();
            let entries = DeviceMemory::from_bytes(device, bytemuck::cast_slice(&entries))?;
            Ok(ValueArray { index, entries, length })
        };
        Ok(Self { arrays: entries.into_iter().map(upload).collect::<Result<_, _>>()? })
    }
}

/// The arrays of a packing that hold values, by their places in the order of the kernel's arguments.
fn value_arrays(packed: &Packed) -> impl Iterator<Item = (usize, &ArrayData)> {
    let arguments = packed.arguments().enumerate();
    arguments.filter(|(_, (_, array))| array.name == "values").map(|(i, (_, a))| (i, &a.data))
}

/// Which entry each element of each array of values is.
fn entries<T: Scalar>(
    matrix: CsrView<'_, T>,
    packed: &Packed,
) -> Result<Vec<(usize, Vec<u64>)>, Failure> {
    // From 1, because padding may be 0, in digits that the element type holds exactly, as it does
    // all integers up to 1 / u.
    let base = (1.0 / T::DTYPE.unit_roundoff()).min(MOST_IN_A_DIGIT) as u64;
    let digits = |digit: &dyn Fn(u64) -> u64| -> Result<Vec<(usize, Vec<u64>)>, Failure> {
        let numbers = (1..=matrix.nnz() as u64).map(|entry| T::from_f64(digit(entry) as f64));
        let offsets = (0..=matrix.rows()).map(|row| matrix.offsets().at(row) as u64).collect();
        let (columns, offsets) = (matrix.columns().to_vec(), Offsets::U64(offsets));
        let numbered: Csr<T> =
            Csr::new(matrix.rows(), matrix.cols(), offsets, columns, numbers.collect())
                .map_err(Failure::internal)?;
        let packed = pack(numbered.view(), &packed.program).map_err(Failure::internal)?;
        let number = |number: f64| if number.is_nan() { 0 } else { number as u64 };
        let read = |(index, data): (usize, &ArrayData)| match data {
            ArrayData::F32(v) => Ok((index, v.iter().map(|&n| number(n.into())).collect())),
            ArrayData::F64(v) => Ok((index, v.iter().map(|&n| number(n)).collect())),
            ArrayData::F16(v) => Ok((index, v.iter().map(|&n| number(n.to_f64())).collect())),
            ArrayData::BF16(v) => Ok((index, v.iter().map(|&n| number(n.to_f64())).collect())),
            _ => Err(Failure::internal("values are no numbers")),
        };
        value_arrays(&packed).map(read).collect()
    };
    let mut entries = digits(&|entry| entry % base)?;
    let mut place = base;
    while matrix.nnz() as u64 >= place {
        let higher = digits(&|entry| entry / place % base)?;
        for ((_, entries), (_, higher)) in entries.iter_mut().zip(higher) {
            entries.iter_mut().zip(higher).for_each(|(entry, digit)| *entry += digit * place);
        }
        place *= base;
    }
    for (_, entries) in &mut entries {
        entries.iter_mut().for_each(|entry| *entry = entry.checked_sub(1).unwrap_or(NO_ENTRY));
    }
    Ok(entries)
}

impl Scatter {
    fn kernel(&self, context: &Context, dtype: Dtype) -> Result<&SmallKernel, Failure> {
        let [two, four, eight] = &self.kernels;
        let (known, word) = match dtype {
            Dtype::F16 | Dtype::BF16 => (two, "unsigned short"),
            Dtype::F32 => (four, "unsigned"),
            Dtype::F64 => (eight, "unsigned long long"),
        };
        if let Some(kernel) = known.get() {
            return Ok(kernel);
        }
        let name = "sparserl_scatter_values";
        let source = format!(
            "extern \"C\" __global__ void {name}({word}* slots, const unsigned long long* entries,\n    \
             const {word}* values, unsigned long long count) {{\n  \
             const unsigned long long slot = blockIdx.x * {BLOCK}ull + threadIdx.x;\n  \
             if (slot < count && entries[slot] != ~0ull) slots[slot] = values[entries[slot]];\n}}\n"
        );
        let compiled = context.compiler.compile_with(&source, name, &CompileOptions::generated());
        let compiled = compiled.map_err(|error| Failure::new(Status::NoCompiler, error))?;
        let cubin = compiled.map_err(Failure::internal)?;
        let kernel = SmallKernel::load(&context.gpu()?.device, &cubin)?;
        Ok(known.get_or_init(|| kernel))
    }

    /// Makes the kernel ready, so that nothing is compiled when values come.
    pub(crate) fn prepare(&self, context: &Context, dtype: Dtype) -> Result<(), Failure> {
        self.kernel(context, dtype).map(drop)
    }
}

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
        self.check_stream(stream)?;
        let _entered = gpu.device.enter()?;
        let capturing = gpu.device.is_capturing(stream)?;
        let from_host = match location {
            api::SPARSERL_DEVICE => false,
            api::SPARSERL_HOST => true,
            other => {
                return Err(Failure::argument(format_args!(
                    "location is {other}: expected SPARSERL_HOST or SPARSERL_DEVICE"
                )));
            }
        };
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
        if !from_host && self.options.check_pointers {
            check_memory(&gpu.device, "values", values, bytes)?;
        }
        let kernel = self.context.scatter.kernel(&self.context, dtype)?;
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

#[cfg(test)]
mod tests {
    use sparserl_core::language::Program;
    use sparserl_core::matrix::generate;

    use super::*;

    #[test]
    fn entries_are_told_apart_by_few_digits_of_few_bits() {
        // 1,205 entries, and 8 bits to a number.
        let matrix = generate::stencil5(20, 13).cast::<half::bf16>().unwrap();
        assert!(matrix.nnz() > 1_000);
        for task in ["spmv bf16", "spmm 8 bf16"] {
            let layout = "keep csr index=u32 values=plain cache=cached vector=1 lanes=4 unroll=1";
            let text = format!("sparserl 3\n{task} variable\nblock 128\n{layout}\n");
            let packed = pack(matrix.view(), &Program::parse(&text).unwrap()).unwrap();
            let found = entries(matrix.view(), &packed).unwrap();
            let expected: Vec<u64> = (0..matrix.nnz() as u64).collect();
            assert_eq!(found.iter().map(|(_, entries)| entries).collect::<Vec<_>>(), [&expected]);
        }
    }

    #[test]
    fn every_layout_says_where_each_entry_is() {
        let matrix = generate::stencil5(9, 7);
        let layouts = [
            "keep csr index=u32 values=plain cache=cached vector=1 lanes=4 unroll=1",
            "keep dia values=plain cache=cached vector=1 rows=1 unroll=1",
            "sort window=32 sell height=4 index=u16 values=plain cache=cached vector=1 lanes=1 unroll=1",
            "keep bcsr side=2 index=u32 values=plain cache=cached vector=1 lanes=2",
        ];
        for layout in layouts {
            let text = format!("sparserl 3\nspmv f64 variable\nblock 128\n{layout}\n");
            let program = Program::parse(&text).unwrap();
            let packed = pack(matrix.view(), &program).unwrap();
            let mut seen = vec![0; matrix.nnz()];
            for ((_, data), (_, entries)) in
                value_arrays(&packed).zip(entries(matrix.view(), &packed).unwrap())
            {
                let ArrayData::F64(values) = data else { panic!() };
                for (value, entry) in values.iter().zip(entries) {
                    if entry == NO_ENTRY {
                        assert!(value.is_nan() || *value == 0.0);
                        continue;
                    }
                    seen[entry as usize] += 1;
                    assert_eq!(*value, matrix.view().values()[entry as usize]);
                }
            }
            assert!(seen.iter().all(|&times| times == 1), "{layout}");
        }
    }
}
