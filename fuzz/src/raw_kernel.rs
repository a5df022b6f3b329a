//! CUDA from anywhere: the source, and after a NUL the description of its launch, if there is one.

use sparserl_core::matrix::{Csr, generate};
use sparserl_core::task::{Dtype, Operation, Task};
use sparserl_gpu::candidate::raw::{RawError, RawKernel};

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (source, sidecar) = match text.split_once('\0') {
        Some((source, sidecar)) => (source, Some(sidecar)),
        None => (text, None),
    };
    match RawKernel::parse(source, sidecar) {
        Ok(kernel) => {
            assert!(source.contains(kernel.kernel()));
            assert!(kernel.parameters().count() >= 2);
            // Linkage and declarations are added once: what is compiled reads as the same kernel,
            // with nothing to add.
            let again = RawKernel::parse(kernel.source(), sidecar).unwrap();
            assert_eq!(again.source(), kernel.source());
            assert_eq!((again.kernel(), again.task()), (kernel.kernel(), kernel.task()));
            assert!(again.parameters().eq(kernel.parameters()));
            let operation = kernel.task().map_or(Operation::SpMV, |task| task.operation);
            // More only means more memory.
            if operation.columns() <= 64 {
                let matrix = generate::stencil5(6, 7);
                let single: Csr<f32> = matrix.cast().unwrap();
                let double = Task::new(operation, Dtype::F64);
                said(kernel.prepare(matrix.view(), double).err());
                said(kernel.prepare(single.view(), Task::new(operation, Dtype::F32)).err());
                let launches =
                    [&again, &kernel].map(|kernel| kernel.prepare(matrix.view(), double));
                let [one, other] = launches.map(|prepared| format!("{prepared:?}"));
                assert_eq!(one, other);
            }
        }
        Err(error) => said(Some(error)),
    }
}

/// What is refused is refused in one line.
fn said(error: Option<RawError>) {
    let text = error.map_or("none".to_owned(), |error| error.to_string());
    assert_eq!(text.lines().count(), 1, "{text}");
}
