//! Is a kernel too fast to be true?

use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Outcome, Regime, Timing, Violation};
use sparserl_core::task::Operation;

/// Memory may be read this much faster than the copy that bandwidth was measured with.
const FASTER_THAN_A_COPY: f64 = 1.25;

/// What became of a kernel that took less time than reading `compulsory_bytes` takes; `None` for a
/// credible one.
///
/// Only times with a cold cache can tell. What is written may stay in the cache, so only reads
/// count.
pub(crate) fn too_fast(
    timing: &Timing,
    compulsory_bytes: u64,
    copy_bandwidth: f64,
) -> Option<Outcome> {
    let seconds = timing.median(Regime::Cold)?;
    is_too_fast(seconds, compulsory_bytes, copy_bandwidth).then(|| Outcome::WrongResult {
        violation: Violation::TooFast,
        reason: format!(
            "{:.2} µs for {compulsory_bytes} bytes that it has to read, at {:.0} GB/s of a copy",
            seconds * 1e6,
            copy_bandwidth * 1e-9
        ),
    })
}

fn is_too_fast(seconds: f64, bytes: u64, copy_bandwidth: f64) -> bool {
    seconds * copy_bandwidth * FASTER_THAN_A_COPY < bytes as f64
}

/// Bytes of the rows of the dense input, of type `D`, that some entry multiplies.
pub(crate) fn input_bytes<A: Scalar, D: Scalar>(
    matrix: CsrView<'_, A>,
    operation: Operation,
) -> u64 {
    let mut touched = vec![false; matrix.cols()];
    for &column in matrix.columns() {
        if let Some(touched) = touched.get_mut(column as usize) {
            *touched = true;
        }
    }
    let rows = touched.into_iter().filter(|&touched| touched).count() as u64;
    rows * u64::from(operation.columns()) * size_of::<D>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_input_that_are_multiplied_count_in_its_own_type() {
        use sparserl_core::matrix::{Csr, Offsets};
        let offsets = Offsets::U32(vec![0, 1, 3]);
        let matrix = Csr::<f32>::new(2, 5, offsets, vec![1, 1, 4], vec![1.0; 3]).unwrap();
        let columns = 3.try_into().unwrap();
        assert_eq!(input_bytes::<_, f32>(matrix.view(), Operation::SpMV), 2 * 4);
        assert_eq!(input_bytes::<_, f64>(matrix.view(), Operation::SpMM { columns }), 2 * 3 * 8);
    }

    #[test]
    fn only_the_impossible_is_too_fast() {
        let bandwidth = 4e12;
        // 4 GB take 1 ms.
        assert!(!is_too_fast(1e-3, 4_000_000_000, bandwidth));
        assert!(!is_too_fast(0.81e-3, 4_000_000_000, bandwidth));
        assert!(is_too_fast(0.79e-3, 4_000_000_000, bandwidth));
        assert!(!is_too_fast(1e-6, 0, bandwidth));
    }
}
