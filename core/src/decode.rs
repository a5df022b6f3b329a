//! Decoding: a [`Policy`] proposes tokens, a [`Mask`](crate::language::Mask) says which of them are
//! legal, and search or sampling turns that into programs.
//!
//! Masking and sampling live here and nowhere else, so that training and inference cannot drift
//! apart.

mod beam;
mod choice;
mod chooser;
mod diverse;
mod mutate;
mod policy;
mod prefix;
mod ranker;
mod sample;

pub use beam::{Hypothesis, beam_search, beam_search_among};
pub use chooser::{Choice, Choices, Chooser, CostChoices, CostChooser};
pub use diverse::{Diverse, diverse_search, family};
pub use mutate::{cross, is_offered, mutate, random_walk, regrow};
pub use policy::{BatchRow, ConditionedPolicy, Policy, PolicyError, PolicyInput, Prediction};
pub use prefix::Prefix;
pub use ranker::CostRanker;
pub use sample::{Decoding, Trajectory, TrajectoryStep, sample, sample_batch, score};
