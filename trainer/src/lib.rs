//! Training of policies, which needs measurements first.
//!
//! ```text
//! corpus ─► recipe ─► matrix ─► proposals ─► programs ─► collect (Evaluator) ─► recordings
//!    └──────────── shards: any number of processes share the work ────────────┘
//! ```
//!
//! [`corpus`] draws recipes of matrices, [`proposals`] the programs that are measured on each,
//! [`collect`] measures and records them, [`measured`] is what recordings say and [`compiled`] the
//! resource usage of their programs, [`shards`] divides the work among processes, and
//! [`configuration`] says how much of it there is. A [`dataset`] has what is learned from
//! recordings, [`fit_cost`] fits the cost model to them, [`network`] is what learns, [`stages`]
//! train it, [`reinforcement`] improves it by what becomes of its own programs, [`iteration`] by
//! measuring them and training anew, [`evaluation`] compares it with others that choose,
//! [`ablation`] with what comes of training without a part of it, and [`export`] writes it as it is
//! used.

pub mod ablation;
pub mod collect;
pub mod compiled;
pub mod configuration;
pub mod corpus;
pub mod dataset;
pub mod evaluation;
pub mod export;
pub mod fit_cost;
pub mod iteration;
pub mod measured;
pub mod network;
pub mod proposals;
pub mod reinforcement;
pub mod shards;
pub mod stages;
pub mod whole_file;
