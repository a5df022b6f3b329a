//! The stages that train a network on a dataset.
//!
//! ```text
//! Dataset ─► Sampler ─► Batch ─► Learner ─► checkpoint, model, log
//!    └─────► Validation ◄──────────┘
//! ```
//!
//! All of them are one loop: what is drawn of a case, and how much each loss counts, makes the
//! difference, and is said in a [`StageConfig`]. A batch depends on the seed and the number of the
//! step only, so a stage that was interrupted ends with the same network.

mod configuration;
mod epochs;
mod log;
mod run;
mod sampler;
#[cfg(test)]
pub(crate) mod tests;
mod validation;

pub(crate) use configuration::MOST_OF_BATCH;
pub use configuration::{Hidden, Shares, StageConfig};
pub(crate) use epochs::{Epochs, evenly, shuffle, trained_on};
pub(crate) use log::Log;
pub(crate) use run::{CHECKPOINT, LOG};
pub use run::{Finished, MODEL, Progress, StageError, StageRun};
pub use sampler::Sampler;
pub(crate) use sampler::bootstrap_weights;
pub use validation::{Picks, Validation, validate};
