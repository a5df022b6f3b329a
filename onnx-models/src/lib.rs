//! Trained policies and the code that runs them.
//!
//! No policy has been trained yet; `sparserl_core::decode::CostRanker` stands in for one.
