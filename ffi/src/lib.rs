//! The C API.
//!
//! Nothing is implemented yet; Rust programs use `sparserl-core` and `sparserl-gpu`.
