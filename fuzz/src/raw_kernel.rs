//! CUDA from anywhere: the source, and after a NUL the description of its launch, if there is one.

use sparserl_gpu::candidate::raw::RawKernel;

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
            // Linkage is added once: what is compiled reads as the same kernel.
            let again = RawKernel::parse(kernel.source(), sidecar).unwrap();
            assert_eq!(again, kernel);
        }
        Err(error) => {
            let text = error.to_string();
            assert_eq!(text.lines().count(), 1, "{text}");
        }
    }
}
