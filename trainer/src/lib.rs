//! Training of policies.
//!
//! Nothing is implemented yet.
