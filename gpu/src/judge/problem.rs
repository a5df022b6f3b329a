//! A matrix and dense operands on a device.

use std::cell::OnceCell;
use std::sync::Arc;

use sparserl_core::matrix::{Csr, CsrError, CsrView, Offsets, OffsetsView, Scalar};
use sparserl_core::reference;
use sparserl_core::task::{Dtype, Operation};

use super::oracle::{Oracle, Product, Thinning};
use super::speed::input_bytes;
use crate::run::device::{Device, DeviceBuffer, DeviceError, Stream};
use crate::run::device_csr::DeviceCsr;

/// What kernels are judged on: a matrix of type `A`, and memory for the dense operands of an
/// operation, of type `D`.
#[derive(Debug)]
pub(crate) struct Problem<A, D> {
    /// The matrix on the host.
    host: Arc<Csr<A>>,
    pub(crate) csr: DeviceCsr,
    /// The matrix in the dense operands' type, from the first time that it was asked for.
    converted: OnceCell<Converted<D>>,
    pub(crate) operation: Operation,
    /// Bytes of the dense input that every right launch has to read.
    pub(crate) input_bytes: u64,
    /// For the check that looks at single entries of long rows.
    pub(crate) thinning: Thinning,
    /// Two, so that a kernel finds its operands at other addresses from check to check.
    pub(crate) operands: [Operands; 2],
    /// What an output holds before a product that adds to it.
    pub(crate) initial: DeviceBuffer,
}

/// A matrix in another element type than the problem's.
#[derive(Debug)]
struct Converted<D> {
    host: Csr<D>,
    csr: DeviceCsr,
}

/// The dense operands of a product.
#[derive(Debug)]
pub(crate) struct Operands {
    pub(crate) input: DeviceBuffer,
    pub(crate) output: DeviceBuffer,
}

/// Why kernels cannot be judged on a matrix.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProblemError {
    /// A call of the driver failed, for lack of memory among other reasons.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The operands do not fit the matrix.
    #[error(transparent)]
    Shape(#[from] reference::OperandError),
    /// The matrix does not fit another element type.
    #[error(transparent)]
    Matrix(#[from] CsrError),
    /// Nothing could be told from results that may overflow.
    #[error(
        "row {row} (from 0) may be too large for {dtype}, so that nothing can be verified: scale the matrix down"
    )]
    Range {
        /// Row of the matrix.
        row: usize,
        /// Type of the sums or, where the sums do not overflow, of the results.
        dtype: Dtype,
    },
    /// The reference on the device is wrong, and so would be everything judged by it.
    #[error(
        "the reference product on the device is wrong in row {row}: {device:e} ± {device_bound:e} instead of {host:e} ± {host_bound:e}"
    )]
    Oracle {
        /// Row of the matrix.
        row: usize,
        /// Found on the device.
        device: f64,
        /// Its bound.
        device_bound: f64,
        /// Found on the host.
        host: f64,
        /// Its bound.
        host_bound: f64,
    },
}

/// What must stay of an operand so that each entry that it meets shows in the result of the longest
/// row.
///
/// The error bound of a row of n entries allows about 2 n u of the sum of magnitudes, with u the
/// unit roundoff of the sums, and in half precision as much again as that type's: more than one
/// entry of a long row adds when all are of a size. With h of them met, one adds about 1 / h.
pub(crate) fn thinning<A: Scalar, D: Scalar>(matrix: CsrView<'_, A>) -> Thinning {
    let longest = (0..matrix.rows()).max_by_key(|&row| matrix.row_len(row)).unwrap_or(0);
    let columns = if matrix.rows() > 0 { matrix.row(longest).0 } else { &[] };
    let roundoff = D::Accumulator::DTYPE.unit_roundoff();
    let of_result = if D::DTYPE == D::Accumulator::DTYPE { 0.0 } else { D::DTYPE.unit_roundoff() };
    let length = columns.len() as f64;
    let met = (0.25 / (2.0 * roundoff * (length + 2.0) + of_result)).clamp(2.0, 256.0);
    let column = |column: Option<&u32>| u64::from(column.copied().unwrap_or(0));
    Thinning {
        kept: [column(columns.first()), column(columns.last())],
        share: met / length.max(1.0),
    }
}

/// The sum of a row's magnitudes.
fn magnitude<A: Scalar>(matrix: CsrView<'_, A>, row: usize) -> f64 {
    matrix.row(row).1.iter().map(|value| value.to_f64().abs()).sum()
}

/// Sees that no sum for results of type `D` can overflow, with which any result would be right.
fn check_range<A: Scalar, D: Scalar>(matrix: CsrView<'_, A>) -> Result<(), ProblemError> {
    let dtype = D::Accumulator::DTYPE;
    // Operands are at most 1, factors at most 2.
    let most = dtype.largest() / 16.0;
    match (0..matrix.rows()).find(|&row| magnitude(matrix, row) > most) {
        Some(row) => Err(ProblemError::Range { row, dtype }),
        None => Ok(()),
    }
}

/// A matrix without its empty columns, and which columns those are that stay.
fn with_used_columns<A: Scalar>(matrix: CsrView<'_, A>) -> Result<(Csr<A>, Vec<u32>), CsrError> {
    let mut used = matrix.columns().to_vec();
    used.sort_unstable();
    used.dedup();
    let place = |column: &u32| used.partition_point(|other| other < column) as u32;
    let columns = matrix.columns().iter().map(place).collect();
    let offsets = match matrix.offsets() {
        OffsetsView::U32(offsets) => Offsets::U32(offsets.to_vec()),
        OffsetsView::U64(offsets) => Offsets::U64(offsets.to_vec()),
    };
    let values = matrix.values().to_vec();
    Ok((Csr::new(matrix.rows(), used.len(), offsets, columns, values)?, used))
}

/// Entries of rows that the oracle is compared with the host on, at most, times columns of the
/// dense operand.
const COMPARED: usize = 1 << 20;

impl<A: Scalar, D: Scalar> Problem<A, D> {
    /// Takes the memory, and compares the oracle with the host's reference on some of the rows.
    pub(crate) fn new(
        device: &Device,
        stream: &Stream,
        oracle: &Oracle,
        host: Arc<Csr<A>>,
        operation: Operation,
        seed: u64,
    ) -> Result<Self, ProblemError> {
        let width = operation.columns() as usize;
        let bytes = |rows: usize| rows.saturating_mul(width).saturating_mul(size_of::<D>());
        let (rows, cols) = (host.rows(), host.cols());
        let operands = || -> Result<Operands, DeviceError> {
            Ok(Operands {
                input: DeviceBuffer::new(device, bytes(cols))?,
                output: DeviceBuffer::new(device, bytes(rows))?,
            })
        };
        check_range::<A, D>(host.view())?;
        let problem = Self {
            csr: DeviceCsr::upload(device, host.view())?,
            converted: OnceCell::new(),
            input_bytes: input_bytes::<A, D>(host.view(), operation),
            thinning: thinning::<A, D>(host.view()),
            host,
            operation,
            operands: [operands()?, operands()?],
            initial: DeviceBuffer::new(device, bytes(rows))?,
        };
        problem.certify(device, stream, oracle, seed)?;
        problem.check_results(stream, oracle, seed)?;
        Ok(problem)
    }

    /// Sees that no result is too large for half precision, with random operands and the largest
    /// factors: 65504 is not far from what long rows of large values add up to.
    fn check_results(
        &self,
        stream: &Stream,
        oracle: &Oracle,
        seed: u64,
    ) -> Result<(), ProblemError> {
        if D::DTYPE == D::Accumulator::DTYPE {
            return Ok(());
        }
        let operands = &self.operands[0];
        oracle.fill::<D>(stream, &operands.input, seed ^ 2)?;
        oracle.fill::<D>(stream, &self.initial, seed ^ 3)?;
        let two = D::Accumulator::from_f64(2.0);
        // Which result is judged makes no difference to how many are unbounded.
        let product = self.product(operands, two, two);
        if oracle.judge(stream, product, &self.initial)?.unbounded == 0 {
            return Ok(());
        }
        let matrix = self.host.view();
        let larger = |a: &usize, b: &usize| magnitude(matrix, *a).total_cmp(&magnitude(matrix, *b));
        let row = (0..matrix.rows()).max_by(larger).unwrap_or_default();
        Err(ProblemError::Range { row, dtype: D::DTYPE })
    }

    /// Columns of the dense operands.
    pub(crate) fn width(&self) -> u32 {
        self.operation.columns()
    }

    /// The product of one pair of operands.
    pub(crate) fn product<'a>(
        &'a self,
        operands: &'a Operands,
        alpha: D::Accumulator,
        beta: D::Accumulator,
    ) -> Product<'a, D> {
        let dense = &operands.input;
        Product { csr: &self.csr, width: self.width(), dense, initial: &self.initial, alpha, beta }
    }

    /// The matrix on the host and on the device in the dense operands' type, for libraries that
    /// take one type for all operands: the problem's own where that is its type, else a copy.
    pub(crate) fn uniform(
        &self,
        device: &Device,
    ) -> Result<(CsrView<'_, D>, &DeviceCsr), ProblemError> {
        if let Some(host) = self.host.view().of_type() {
            return Ok((host, &self.csr));
        }
        let converted = match self.converted.get() {
            Some(converted) => converted,
            None => {
                let host = self.host.cast()?;
                let csr = DeviceCsr::upload(device, host.view())?;
                self.converted.get_or_init(|| Converted { host, csr })
            }
        };
        Ok((converted.host.view(), &converted.csr))
    }

    /// Compares the oracle with the host's reference on rows all over the matrix.
    fn certify(
        &self,
        device: &Device,
        stream: &Stream,
        oracle: &Oracle,
        seed: u64,
    ) -> Result<(), ProblemError> {
        let rows = self.sampled_rows(seed);
        let Some(sample) = self.of_rows(&rows) else { return Ok(()) };
        let csr = DeviceCsr::upload(device, sample.view())?;
        let (width, input) = (self.width() as usize, &self.operands[0].input);
        let initial = DeviceBuffer::new(device, rows.len() * width * size_of::<D>())?;
        oracle.fill::<D>(stream, input, seed)?;
        oracle.fill::<D>(stream, &initial, seed ^ 1)?;
        let (alpha, beta) = (D::Accumulator::from_f64(-1.75), D::Accumulator::from_f64(0.6));
        let (columns, dense) = (self.width(), input);
        let product: Product<'_, D> =
            Product { csr: &csr, width: columns, dense, initial: &initial, alpha, beta };
        let (values, bounds) = oracle.product(stream, product)?;

        // The operand may be far larger than what these rows read of it.
        let (sample, read) = with_used_columns(sample.view())?;
        let dense: Vec<D> = oracle.gather(stream, input, self.width(), &read)?;
        let initial: Vec<D> = bytemuck::pod_collect_to_vec(&initial.download()?);
        let host = reference::multiply(sample.view(), &dense, width, alpha, beta, &initial)?;
        let pairs = values.iter().zip(&bounds).zip(host.values.iter().zip(&host.bounds));
        for (index, ((&device, &device_bound), (&host, &host_bound))) in pairs.enumerate() {
            // Both are far more precise than the bound, and the bounds differ by the order of
            // summation only.
            let agree = (device - host).abs() <= 0.05 * host_bound
                && (device_bound - host_bound).abs() <= 1e-6 * host_bound;
            let unbounded = host_bound.is_infinite() && device_bound.is_infinite();
            if !agree && !unbounded {
                let row = rows.get(index / width).copied().unwrap_or_default();
                return Err(ProblemError::Oracle { row, device, device_bound, host, host_bound });
            }
        }
        Ok(())
    }

    /// The matrix of some of the rows; `None` when there are none.
    fn of_rows(&self, rows: &[usize]) -> Option<Csr<A>> {
        let view = self.host.view();
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for &row in rows {
            let (row_columns, row_values) = view.row(row);
            columns.extend_from_slice(row_columns);
            values.extend_from_slice(row_values);
            offsets.push(columns.len() as u64);
        }
        if rows.is_empty() {
            return None;
        }
        // Rows of a valid matrix are a valid matrix.
        Csr::new(rows.len(), self.host.cols(), Offsets::U64(offsets), columns, values).ok()
    }

    /// The first, the last and the longest row, and others at random, as many as [`COMPARED`]
    /// allows.
    fn sampled_rows(&self, seed: u64) -> Vec<usize> {
        let (rows, matrix) = (self.host.rows(), self.host.view());
        let Some(longest) = (0..rows).max_by_key(|&row| matrix.row_len(row)) else {
            return Vec::new();
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let mut sampled = vec![0, rows - 1, longest];
        let mut left = COMPARED / self.width() as usize;
        for _ in 0..rows.min(500) {
            let row = random.usize(..rows);
            let Some(rest) = left.checked_sub(matrix.row_len(row)) else { break };
            left = rest;
            sampled.push(row);
        }
        sampled
    }
}

#[cfg(test)]
mod tests {
    use sparserl_core::matrix::generate;

    use super::*;

    #[test]
    fn short_rows_are_met_whole_and_long_ones_in_part() {
        let short = generate::stencil5(20, 20);
        assert!(thinning::<f64, f64>(short.view()).share >= 1.0);

        let long = generate::one_dense_row(10, 100_000, 3);
        let single = long.cast::<f32>().unwrap();
        let Thinning { kept, share } = thinning::<f32, f32>(single.view());
        assert_eq!(kept, [0, 99_999]);
        // About 21 entries, each of which adds more than the 1.2 % that the bound allows.
        assert!((15.0..25.0).contains(&(share * 1e5)), "{share}");
        assert_eq!(thinning::<f64, f64>(long.view()).share, 256.0 / 1e5);
        // It is the sums whose error the bound allows.
        assert_eq!(thinning::<f32, f64>(single.view()).share, 256.0 / 1e5);
        // And the result's, which is more than one of very many adds.
        let half = generate::one_dense_row(10, 1000, 3).cast::<half::bf16>().unwrap();
        let met = 1e3 * thinning::<half::bf16, half::bf16>(half.view()).share;
        assert!((60.0..64.0).contains(&met), "{met}");
    }

    #[test]
    fn used_columns_keep_their_order_and_their_entries() {
        let matrix = generate::hyper_sparse(50, 1000, 30, 5);
        let (compact, used) = with_used_columns(matrix.view()).unwrap();
        assert!(used.is_sorted() && used.len() == compact.cols() && used.len() < 1000);
        for row in 0..50 {
            let (columns, values) = compact.view().row(row);
            let columns: Vec<u32> = columns.iter().map(|&column| used[column as usize]).collect();
            assert_eq!((columns.as_slice(), values), matrix.view().row(row));
        }
    }

    #[test]
    fn what_may_overflow_is_refused() {
        let matrix = |value: f32| {
            let offsets = Offsets::U32(vec![0, 0, 2]);
            Csr::new(2, 2, offsets, vec![0, 1], vec![value, -value]).unwrap()
        };
        assert!(check_range::<f32, f32>(matrix(1e30).view()).is_ok());
        let error = check_range::<f32, f32>(matrix(2e37).view()).unwrap_err();
        assert!(error.to_string().contains("row 1 (from 0) may be too large for f32"), "{error}");
        assert!(check_range::<f32, f64>(matrix(2e37).view()).is_ok());
        // Sums in half precision are of f32; that results fit is seen on the device.
        let half = matrix(6e4).cast::<half::f16>().unwrap();
        assert!(check_range::<half::f16, half::f16>(half.view()).is_ok());
    }
}
