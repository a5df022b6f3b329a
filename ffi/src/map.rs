//! Where each value of a matrix goes in its packing.
//!
//! A program for values that may change stores a value for each entry, so where each of them goes
//! can be told by packing the entries' numbers in place of their values.

use sparserl_core::layout::{ArrayData, Packed, pack};
use sparserl_core::matrix::{Csr, CsrView, Offsets, Scalar};
use sparserl_gpu::run::device::Device;
use sparserl_gpu::run::operator::DeviceMemory;

use crate::status::Failure;

/// Numbers that a digit has at most.
const MOST_IN_A_DIGIT: f64 = (1_u64 << 52) as f64;
/// What stands in a map where a slot has no entry.
const NO_ENTRY: u64 = u64::MAX;

/// For each array of values, which entry of A each of its elements is.
pub(crate) struct Map {
    pub(crate) arrays: Vec<ValueArray>,
}

pub(crate) struct ValueArray {
    /// Its place in the order of the kernel's arguments.
    pub(crate) index: usize,
    pub(crate) entries: DeviceMemory,
    pub(crate) length: usize,
}

impl Map {
    /// Bytes of device memory that the map of a packing takes.
    pub(crate) fn bytes(packed: &Packed) -> u64 {
        let lengths = value_arrays(packed).map(|(_, data)| data.len() as u64);
        lengths.sum::<u64>() * size_of::<u64>() as u64
    }

    /// For a program that was packed for a matrix; `origins` says which entry of A each entry of
    /// the matrix is, where it is Aᵀ.
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

/// The arrays of a packing that hold values, by their places in the order of the kernel's
/// arguments.
fn value_arrays(packed: &Packed) -> impl Iterator<Item = (usize, &ArrayData)> {
    let arguments = packed.arguments().enumerate();
    arguments.filter(|(_, (_, array))| array.name == "values").map(|(i, (_, a))| (i, &a.data))
}

/// Whether an array of values is the matrix's own.
fn is_shared<T: Scalar>(data: &ArrayData, matrix: CsrView<'_, T>) -> bool {
    std::ptr::eq(data.bytes(), bytemuck::cast_slice::<T, u8>(matrix.values()))
}

/// Which entry each element of each array of values is.
fn entries<T: Scalar>(
    matrix: CsrView<'_, T>,
    packed: &Packed,
) -> Result<Vec<(usize, Vec<u64>)>, Failure> {
    if value_arrays(packed).any(|(_, data)| !is_shared(data, matrix)) {
        return packed_entries(matrix, packed);
    }
    let own = |(index, data): (usize, &ArrayData)| (index, (0..data.len() as u64).collect());
    Ok(value_arrays(packed).map(own).collect())
}

/// The same by packing entries' numbers.
fn packed_entries<T: Scalar>(
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
            let text = format!("sparserl 7\n{task} variable\nblock 128\n{layout}\n");
            let packed = pack(matrix.view(), &Program::parse(&text).unwrap()).unwrap();
            let found = packed_entries(matrix.view(), &packed).unwrap();
            let expected: Vec<u64> = (0..matrix.nnz() as u64).collect();
            assert_eq!(found.iter().map(|(_, entries)| entries).collect::<Vec<_>>(), [&expected]);
            // The matrix's own values need no packing to be told apart.
            assert!(value_arrays(&packed).all(|(_, data)| is_shared(data, matrix.view())));
            assert_eq!(entries(matrix.view(), &packed).unwrap(), found);
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
            "keep merge items=4 index=u32 values=plain cache=cached vector=1 reduction=4",
            "keep chunk entries=32 index=u16 values=plain cache=cached vector=1 lanes=2 unroll=1",
            "keep ell index=u16 values=plain cache=cached vector=1 lanes=2 unroll=1",
            "keep binned shared=1 values=plain cache=cached vector=1 lanes=2 unroll=1",
            "keep cvse rows=2 index=u16 values=plain cache=cached vector=1 lanes=2 unroll=4",
        ];
        for layout in layouts {
            let text = format!("sparserl 7\nspmv f64 variable\nblock 128\n{layout}\n");
            let program = Program::parse(&text).unwrap();
            let packed = pack(matrix.view(), &program).unwrap();
            let mut seen = vec![0; matrix.nnz()];
            let found = packed_entries(matrix.view(), &packed).unwrap();
            assert_eq!(entries(matrix.view(), &packed).unwrap(), found, "{layout}");
            for ((_, data), (_, entries)) in value_arrays(&packed).zip(found) {
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
