//! A policy that is ready to choose: the cost model or a trained one.

use std::path::PathBuf;

use sparserl_core::decode::{
    Choice, Choices, Chooser, CostChoices, CostChooser, PolicyError, PolicyInput,
};
use sparserl_core::language::Program;
use sparserl_core::outcome::Objective;

use crate::chooser::{LearnedChoices, LearnedChooser, Picking};
use crate::engine::{Engine, EngineError};
use crate::model::{Model, ModelError};
use crate::policy::OnnxPolicy;
use crate::speeds::MemberSpeeds;

/// Raised when the cost model's choice for some matrix changes.
pub const COST_VERSION: &str = "8";

/// A policy as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicySource {
    /// The cost model.
    Cost,
    /// The trained policy that is compiled in.
    Learned,
    /// A trained policy in a folder, or by one of its two files.
    Exported(PathBuf),
}

/// A policy that is ready to choose.
#[derive(Debug)]
pub enum OpenedPolicy {
    /// The cost model.
    Cost(CostChooser),
    /// A trained policy.
    Learned(Box<LearnedChooser<OnnxPolicy>>),
}

/// What an [`OpenedPolicy`] offers for one input and objective.
pub struct OpenedChoices<'a> {
    policy: &'a OpenedPolicy,
    offered: Offered<'a>,
}

/// Whose choices they are.
enum Offered<'a> {
    Cost(CostChoices<'a>),
    Learned(LearnedChoices<'a, OnnxPolicy>),
}

impl OpenedChoices<'_> {
    /// Who offers them.
    #[must_use]
    pub fn policy(&self) -> &OpenedPolicy {
        self.policy
    }

    /// Predicted speeds of programs for the input; the cost model predicts none.
    ///
    /// # Errors
    /// When the policy fails.
    pub fn speeds(
        &mut self,
        programs: &[Program],
    ) -> Result<Option<Vec<MemberSpeeds>>, PolicyError> {
        match &mut self.offered {
            Offered::Cost(_) => Ok(None),
            Offered::Learned(choices) => choices.speeds(programs).map(Some),
        }
    }

    /// Whether a program is the cost model's, and not of a network's own beam.
    ///
    /// # Errors
    /// When the policy fails.
    pub fn is_of_cost_model(&mut self, program: &Program) -> Result<bool, PolicyError> {
        match &mut self.offered {
            Offered::Cost(_) => Ok(true),
            Offered::Learned(choices) => choices.wrote(program).map(|wrote| !wrote),
        }
    }
}

impl Choices for OpenedChoices<'_> {
    fn first(&mut self, count: usize) -> Result<Vec<Choice>, PolicyError> {
        match &mut self.offered {
            Offered::Cost(choices) => choices.first(count),
            Offered::Learned(choices) => choices.first(count),
        }
    }
}

/// A policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read, or was made for another version.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The engine refuses it.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl OpenedPolicy {
    /// Makes a policy ready. The cost model needs no engine.
    ///
    /// # Errors
    /// When it cannot be read, is of another version, or is refused by the engine.
    pub fn open(source: &PolicySource, engine: &Engine) -> Result<Self, OpenError> {
        let model = match source {
            PolicySource::Cost => return Ok(Self::Cost(CostChooser)),
            PolicySource::Learned => Model::shipped()?,
            PolicySource::Exported(path) => Model::read(path)?,
        };
        let policy = OnnxPolicy::open(&model, engine)?;
        let name = policy.description().name.clone();
        let chooser = LearnedChooser::new(name, policy, Picking::RerankedWithCostModel);
        Ok(Self::Learned(Box::new(chooser)))
    }

    /// What chooses by it.
    #[must_use]
    pub fn chooser(&self) -> &dyn Chooser {
        match self {
            Self::Cost(chooser) => chooser,
            Self::Learned(chooser) => chooser.as_ref(),
        }
    }

    /// What it offers for an input.
    #[must_use]
    pub fn choices<'a>(
        &'a self,
        input: &'a PolicyInput<'a>,
        objective: Objective,
    ) -> OpenedChoices<'a> {
        let offered = match self {
            Self::Cost(chooser) => Offered::Cost(chooser.choices(input)),
            Self::Learned(chooser) => Offered::Learned(chooser.choices(input, objective)),
        };
        OpenedChoices { policy: self, offered }
    }

    /// What it is called in a sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Cost(_) => "the cost model".to_owned(),
            Self::Learned(chooser) => format!("the policy {}", chooser.name()),
        }
    }

    /// Changes with what it chooses.
    #[must_use]
    pub fn version(&self) -> &str {
        match self {
            Self::Cost(_) => COST_VERSION,
            Self::Learned(chooser) => chooser.policy().description().version(),
        }
    }
}
