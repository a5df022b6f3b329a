//! Improves a policy by what becomes of the programs that it writes.
//!
//! ```text
//! cases ─► policy ─► groups of programs ─► Outcomes ─► rewards ─► lessons ─► Learner ─► policy
//!                    one for each case     measured                 │
//!                                          or recorded       critic, reference policy
//! ```
//!
//! What is written ([`write_programs`]) and what becomes of it ([`Outcomes`]) do not know what is
//! made of it: any other way of learning from measurements can use both. An [`Algorithm`] makes
//! [`lessons`] of the rewards of a group, the programs that were written for one case; a
//! [`ReinforcementRun`] goes from iteration to iteration. What is drawn depends on the seed and the
//! number of the iteration only, so a run that was interrupted ends with the same network.
//!
//! Probabilities are those of the tokens that were offered, when programs are written as when they
//! are learned from.

mod advantage;
mod cases;
mod configuration;
mod fit;
mod kl;
mod measuring;
mod outcomes;
mod report;
mod reward;
mod rollout;
mod run;
mod state;
#[cfg(test)]
mod tests;

pub use advantage::{Judged, Lesson, gae, leave_one_out, lessons, normalised};
pub use cases::{Cases, Matrices, MatrixError};
pub use configuration::{
    Algorithm, Clip, CriticConfig, DecodingMode, FitWeights, ReinforcementConfig, UnknownAlgorithm,
};
pub use fit::FitError;
pub use kl::KlConfig;
pub use measuring::{MeasuredOutcomes, MeasuringError};
pub use outcomes::{Judgement, Judgements, Known, Outcomes, RecordedOutcomes, Request};
pub use report::{Report, Tally};
pub use reward::Reward;
pub use rollout::{Group, Rollout, RolloutError, structural, write_programs};
pub use run::{Improved, ReinforcementError, ReinforcementRun};
