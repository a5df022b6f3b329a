use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::error::Error;

use super::Prefix;
use crate::structure::{EmbeddingConfig, MatrixStats, StructureEmbedding};
use crate::target::Target;
use crate::task::Task;

/// What a policy is asked about.
#[derive(Clone, Debug)]
pub struct PolicyInput<'m> {
    /// The structure of the matrix as numbers of fixed shape, its features among them.
    pub embedding: StructureEmbedding,
    /// Statistics of the matrix: the same that the mask asks, for policies that compute.
    pub stats: Arc<MatrixStats<'m>>,
    /// What the kernel computes.
    pub task: Task,
    /// The GPU that it runs on.
    pub target: Target,
}

impl<'m> PolicyInput<'m> {
    /// The input for a matrix, with an embedding of the usual size.
    #[must_use]
    pub fn new(stats: Arc<MatrixStats<'m>>, task: Task, target: Target) -> Self {
        let embedding = stats.embedding(&EmbeddingConfig::default());
        Self { embedding, stats, task, target }
    }
}

/// Writes programs token by token, for any matrix, task and GPU.
pub trait Policy {
    /// Reads an input; what comes of it answers for any number of searches and samples.
    ///
    /// # Errors
    /// When the policy cannot take this input, or fails to run.
    fn read<'m>(
        &self,
        input: &PolicyInput<'m>,
    ) -> Result<Box<dyn ConditionedPolicy + 'm>, PolicyError>;
}

impl<P: Policy + ?Sized> Policy for Arc<P> {
    fn read<'m>(
        &self,
        input: &PolicyInput<'m>,
    ) -> Result<Box<dyn ConditionedPolicy + 'm>, PolicyError> {
        (**self).read(input)
    }
}

/// A [`Policy`] that has read its input: it predicts how programs for it go on.
pub trait ConditionedPolicy {
    /// A prediction for each row of a batch, in order.
    ///
    /// Each row begins with all tokens of a row of the batch before, its parent, or has no parent.
    /// Several may share a parent, and some parents may have no row: a policy with a key–value
    /// cache gathers it by the parents. The rows of a batch are equally long.
    ///
    /// # Errors
    /// When the policy fails to run.
    fn next(&mut self, batch: &[BatchRow<'_>]) -> Result<Vec<Prediction>, PolicyError>;
}

/// A prefix that a policy is to continue.
#[derive(Clone, Copy, Debug)]
pub struct BatchRow<'p> {
    /// Row of the batch before that this one continues by one or more tokens.
    pub parent: Option<usize>,
    /// The tokens so far.
    pub prefix: &'p Prefix,
}

/// What a policy thinks of a prefix.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Logits of the next token, by token id ([`Token::VOCABULARY`](crate::language::Token) of
    /// them). One that is missing or not finite is impossible.
    pub logits: Vec<f32>,
    /// The reward that it expects, where it estimates that.
    pub value: Option<f32>,
}

/// A policy gave no predictions, or not those that it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// It failed to run.
    #[error("the policy failed")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
    /// Not one prediction for each row.
    #[error("the policy gave {found} predictions for a batch of {rows}")]
    Predictions {
        /// Predictions.
        found: usize,
        /// Rows.
        rows: usize,
    },
}

/// The predictions for a batch, as many as it has rows.
pub(super) fn predict(
    policy: &mut dyn ConditionedPolicy,
    batch: &[BatchRow<'_>],
) -> Result<Vec<Prediction>, PolicyError> {
    let predictions = policy.next(batch)?;
    let (found, rows) = (predictions.len(), batch.len());
    if found == rows { Ok(predictions) } else { Err(PolicyError::Predictions { found, rows }) }
}
