//! Training of policies, which needs measurements first.
//!
//! ```text
//! corpus ─► recipe ─► matrix ─► proposals ─► programs ─► collect (Evaluator) ─► recordings
//!    └──────────── shards: any number of processes share the work ────────────┘
//! ```
//!
//! [`corpus`] draws recipes of matrices, [`proposals`] the programs that are measured on each,
//! [`collect`] measures and records them, [`measured`] is what recordings say, [`shards`] divides
//! the work among processes, and [`configuration`] says how much of it there is. A [`dataset`] has
//! what is learned from recordings, [`network`] is what learns, and [`stages`] train it.

pub mod collect;
pub mod configuration;
pub mod corpus;
pub mod dataset;
pub mod evaluation;
pub mod measured;
pub mod network;
pub mod proposals;
pub mod shards;
pub mod stages;
