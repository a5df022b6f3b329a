//! Trained policies and the code that runs them.
//!
//! No policy has been trained yet; `sparserl_core::decode::CostRanker` stands in for one. What one
//! is given ([`inputs`], [`terms`]) and what it was made for ([`signature`]) is said here, for
//! training and for use alike.

pub mod inputs;
pub mod programs;
pub mod reference;
pub mod signature;
pub mod terms;
