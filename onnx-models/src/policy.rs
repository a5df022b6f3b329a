mod reading;
mod tree;

use std::sync::Arc;

use ndarray::{Array2, Array4, ArrayD};
use sparserl_core::decode::{ConditionedPolicy, Policy, PolicyError, PolicyInput};
use sparserl_core::structure::DensityGrids;

use crate::engine::{Engine, EngineError, Graph, Input, Shared};
use crate::inputs::{Inputs, SCALARS};
use crate::model::{Description, Model};
use crate::speeds::{ConditionedSpeedModel, SpeedModel};
use crate::terms::ProgramTerms;
use reading::{Decoder, Memory, Reading};
use tree::CacheSizes;

/// Added to scores of what must not be attended to.
const MASKED: f32 = -1e4;

/// A trained policy on an engine.
pub struct OnnxPolicy {
    description: Description,
    encoder: Arc<dyn Graph>,
    decoder: Decoder,
}

/// What a policy can be asked for that it cannot give.
#[derive(Debug, thiserror::Error)]
enum AskedError {
    #[error("a prefix of {0} tokens is longer than any program")]
    Length(usize),
    #[error("the prefixes of a batch are not equally long")]
    Lengths,
    #[error("the policy's keys and values are not of the sizes that its description says")]
    Cache,
    #[error("the policy gave arrays of shape {found:?} instead of {expected:?}")]
    Shape { found: Vec<usize>, expected: Vec<usize> },
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> PolicyError {
    PolicyError::Failed(Box::new(error))
}

impl std::fmt::Debug for OnnxPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnnxPolicy").field("description", &self.description).finish_non_exhaustive()
    }
}

impl OnnxPolicy {
    /// Makes a model ready on an engine.
    ///
    /// # Errors
    /// When the engine refuses its graphs.
    pub fn open(model: &Model, engine: &Engine) -> Result<Self, EngineError> {
        let continuing = &["logits", "critic", "next_keys", "next_values"];
        Ok(Self {
            description: model.description().clone(),
            encoder: engine.open(model.encoder(), &["summary", "memory_keys", "memory_values"])?,
            decoder: Decoder {
                continuing: engine.open(model.decoder(), continuing)?,
                rating: engine.open(model.decoder(), &["speeds"])?,
            },
        })
    }

    /// What the model is.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    fn reading<'m>(&self, input: &PolicyInput<'m>) -> Result<Reading<'m>, PolicyError> {
        let inputs = Inputs::new(input, &self.description.signature.embedding);
        let Description { layers, heads, head_width, .. } = self.description;
        let sizes = CacheSizes { layers, width: heads * head_width };
        let terms = ProgramTerms::new(Arc::clone(&input.stats), input.task, input.target);
        let terms = terms.map_err(failed)?;
        Ok(Reading::new(self.decoder.clone(), self.remember(inputs)?, sizes, terms))
    }

    fn remember(&self, inputs: Inputs) -> Result<Memory, PolicyError> {
        let (width, known) = (inputs.config.token_width(), inputs.n_tokens());
        // A matrix without entries has no position: one is there that nothing attends to.
        let count = known.max(1);
        let mut positions = inputs.tokens;
        positions.resize(count * width, 0.0);
        let bias = Array4::from_shape_fn(
            (1, 1, 1, count),
            |(_, _, _, i)| {
                if i < known { 0.0 } else { MASKED }
            },
        );
        let shaped = |shape: &[usize], numbers: Vec<f32>| {
            let found = vec![numbers.len()];
            ArrayD::from_shape_vec(shape, numbers)
                .map_err(|_| failed(AskedError::Shape { found, expected: shape.to_vec() }))
        };
        let asked = vec![
            Input::floats("scalars", shaped(&[1, SCALARS], inputs.scalars)?),
            Input::floats("grids", shaped(&[1, DensityGrids::CELLS], inputs.grids)?),
            Input::floats("positions", shaped(&[1, count, width], positions)?),
            Input::floats("position_bias", bias),
            Input::floats("present", Array2::ones((1, 3))),
        ];
        let found = self.encoder.run(asked).map_err(failed)?;
        let given = found.len();
        match <[_; 3]>::try_from(found) {
            Ok(found) => {
                let [summary, keys, values] = found.map(Shared::from);
                Ok(Memory { summary, keys, values })
            }
            Err(_) => Err(failed(AskedError::Shape { found: vec![given], expected: vec![3] })),
        }
    }
}

impl Policy for OnnxPolicy {
    fn read<'m>(
        &self,
        input: &PolicyInput<'m>,
    ) -> Result<Box<dyn ConditionedPolicy + 'm>, PolicyError> {
        Ok(Box::new(self.reading(input)?))
    }
}

impl SpeedModel for OnnxPolicy {
    fn read_for_speeds<'m>(
        &self,
        input: &PolicyInput<'m>,
    ) -> Result<Box<dyn ConditionedSpeedModel + 'm>, PolicyError> {
        Ok(Box::new(self.reading(input)?))
    }
}
