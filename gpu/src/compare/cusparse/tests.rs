//! Every algorithm on a device: `cargo test -p sparserl-gpu --lib cusparse -- --ignored
//! --nocapture`.

use std::sync::Arc;

use bytemuck::{cast_slice, pod_read_unaligned};
use half::{bf16, f16};
use sparserl_core::matrix::{Coo, Csr, Duplicates, Scalar, generate};
use sparserl_core::reference;
use sparserl_core::task::Operation;

use super::*;
use crate::run::device::{DeviceBuffer, Guard};
use crate::run::device_csr::DeviceCsr;

const ALPHA: f64 = 1.5;
const BETA: f64 = -0.5;

#[test]
fn that_there_is_no_library_is_told_from_other_reasons_and_names_no_option_of_a_program() {
    let absent = CusparseError::NotFound { reason: "it is not there".to_owned() }.to_string();
    assert!(super::super::lacks_cusparse(&absent) && !absent.contains("--"), "{absent}");
    let old = CusparseError::TooOld { symbol: "cusparseSpMV_preprocess" }.to_string();
    assert!(!super::super::lacks_cusparse(&old), "{old}");
}

#[test]
#[ignore = "needs a GPU and cuSPARSE"]
fn every_algorithm_is_right_at_once_and_in_a_graph() {
    let none = |rows| Coo::<f64>::new(rows, 8, vec![], vec![], vec![]).unwrap();
    let matrices = [
        ("blocks", generate::fem_blocks(300, 3, 1)),
        ("stencil", generate::stencil5(37, 41)),
        ("dense row", generate::one_dense_row(900, 700, 2)),
        ("no entries", none(8).to_csr(Duplicates::Refuse).unwrap()),
        ("no rows", none(0).to_csr(Duplicates::Refuse).unwrap()),
    ];
    let spmm = [1u32, 8, 33].map(|n| Operation::SpMM { columns: n.try_into().unwrap() });
    let device = Device::open(0).unwrap();
    println!("clocks: {:?}", device.clocks());
    let stream = Arc::new(Stream::new(&device).unwrap());
    let cusparse = Cusparse::open(&device, Arc::clone(&stream), None).unwrap();
    println!("cuSPARSE {}", cusparse.version().unwrap());
    let mut failures = Vec::new();
    for (name, matrix) in &matrices {
        for operation in [Operation::SpMV].into_iter().chain(spmm) {
            let single = matrix.cast::<f32>().unwrap();
            let (half, upper) = (matrix.cast::<f16>().unwrap(), matrix.cast::<bf16>().unwrap());
            // What an algorithm lacks in half precision, versions tell as they like.
            let in_half =
                [outcomes(&cusparse, &half, operation), outcomes(&cusparse, &upper, operation)];
            let wide =
                [outcomes(&cusparse, &single, operation), outcomes(&cusparse, matrix, operation)];
            let wide = wide.into_iter().flatten().map(|outcome| (outcome, false));
            let in_half = in_half.into_iter().flatten().map(|outcome| (outcome, true));
            for (outcome, is_half) in wide.chain(in_half) {
                let line = format!("{name}, {operation:?}, half {is_half}: {outcome:?}");
                println!("{line}");
                let is_refused = outcome.as_ref().is_err_and(|error| error.starts_with("failed"));
                let may_fail = matrix.nnz() == 0 || is_half && is_refused;
                if outcome.is_err_and(|error| !error.starts_with("left out")) && !may_fail {
                    failures.push(line);
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

fn outcomes<T: Scalar>(
    cusparse: &Cusparse,
    matrix: &Csr<T>,
    operation: Operation,
) -> Vec<Result<String, String>> {
    let outcome = |algorithm| check(cusparse, matrix, operation, algorithm);
    cusparse.algorithms(operation).map(outcome).collect()
}

/// What was seen, or what went wrong.
fn check<T: Scalar>(
    cusparse: &Cusparse,
    matrix: &Csr<T>,
    operation: Operation,
    algorithm: Algorithm,
) -> Result<String, String> {
    let device = &cusparse.device;
    let n = operation.columns() as usize;
    let value = |i: usize| T::from_f64(((i * 37 + 11) % 101) as f64 / 50.0 - 1.0);
    let x: Vec<T> = (0..matrix.cols() * n).map(value).collect();
    let y: Vec<T> = (0..matrix.rows() * n).map(value).collect();
    let [alpha, beta] = [ALPHA, BETA].map(T::Accumulator::from_f64);
    let expected = reference::multiply(matrix.view(), &x, n, alpha, beta, &y).unwrap();

    let csr = DeviceCsr::upload(device, matrix.view()).unwrap();
    let input = DeviceBuffer::from_bytes(device, cast_slice(&x)).unwrap();
    let output = DeviceBuffer::from_bytes(device, cast_slice(&y)).unwrap();
    let initial = DeviceBuffer::from_bytes(device, cast_slice(&y)).unwrap();
    let product = Product {
        operation,
        host: matrix.view(),
        csr: &csr,
        input: &input,
        output: &output,
        alpha,
        beta,
    };
    let prepared = cusparse.prepare(algorithm, &product).map_err(|error| {
        let how = if error.is_not_applicable() { "left out" } else { "failed" };
        format!("{how}: {error}")
    })?;
    let compare = |when: &str| {
        cusparse.stream.synchronize().map_err(|error| error.to_string())?;
        let bytes = output.download().unwrap();
        let got: Vec<T> = bytes.chunks_exact(size_of::<T>()).map(pod_read_unaligned).collect();
        let comparison = reference::compare(&expected, &got);
        let intact = output.guard().unwrap() == Guard::Intact;
        if comparison.passed() && intact {
            return Ok(());
        }
        Err(format!("{} is wrong {when}: {comparison:?}, guards {intact}", prepared.name()))
    };
    prepared.enqueue().map_err(|error| error.to_string())?;
    compare("at once")?;
    let graph =
        cusparse.stream.capture(|| prepared.enqueue()).map_err(|error| error.to_string())?;
    cusparse.stream.copy(&initial, &output).unwrap();
    cusparse.stream.replay(&graph).unwrap();
    compare("in a graph")?;
    let Prepared { analysis_seconds, buffer_bytes, .. } = prepared;
    Ok(format!("{} analysed in {analysis_seconds:.1e} s, {buffer_bytes} bytes", prepared.name()))
}
