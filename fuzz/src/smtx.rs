//! `.smtx` text: what is read is a valid matrix of ones.

use sparserl_core::matrix::smtx;

use crate::market::is_valid;

/// Runs the target.
pub fn run(bytes: &[u8]) {
    match smtx::parse::<f32>(bytes) {
        Ok(matrix) => {
            is_valid(&matrix);
            assert!(matrix.view().values().iter().all(|&value| value == 1.0));
            assert_eq!(smtx::parse::<f64>(bytes), Ok(matrix.cast().unwrap()));
        }
        Err(error) => {
            let text = error.to_string();
            assert_eq!(text.lines().count(), 1, "{text}");
            assert!(error.line >= 1, "{text}");
        }
    }
}
