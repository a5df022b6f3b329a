use std::sync::Arc;

use ndarray::{Array1, Array2, Array4, ArrayD, Axis};
use sparserl_core::decode::{
    BatchRow, ConditionedPolicy, Policy, PolicyError, PolicyInput, Prediction,
};
use sparserl_core::language::{Program, Token};
use sparserl_core::structure::DensityGrids;

use crate::engine::{Engine, EngineError, Graph, Input};
use crate::inputs::{Inputs, SCALARS};
use crate::model::{Description, Model};
use crate::programs::{BEGIN, most_tokens, token_ids};
use crate::speeds::{ENSEMBLE, MemberSpeeds, REGIMES, SpeedModel};
use crate::terms::{ProgramTerms, TERMS};

/// Added to scores of what must not be attended to.
const MASKED: f32 = -1e4;

/// A trained policy on an engine.
pub struct OnnxPolicy {
    description: Description,
    encoder: Box<dyn Graph>,
    decoder: Arc<dyn Graph>,
}

/// What the decoder is told of a matrix, a task and a GPU.
struct Memory {
    /// `[1, width]`.
    summary: ArrayD<f32>,
    /// `[layers, heads, tokens, head width]`.
    keys: ArrayD<f32>,
    values: ArrayD<f32>,
}

/// Keys and values of the tokens of some rows, `[layers, rows, heads, positions, head width]`.
///
/// The first position is one that nothing attends to: engines differ in whether they take arrays
/// without elements.
struct Cache {
    keys: ArrayD<f32>,
    values: ArrayD<f32>,
}

/// A policy that has read its input.
struct Reading {
    sizes: [usize; 3],
    decoder: Arc<dyn Graph>,
    memory: Memory,
    /// Of the rows of the last batch.
    cache: Cache,
}

/// Rows of programs to continue.
struct Rows {
    /// `[rows, T]`.
    tokens: Array2<i64>,
    parents: Vec<i64>,
    /// `[rows, T]`: 1 at the last token of a finished program.
    ends: Array2<f32>,
    /// `[rows, TERMS]`.
    terms: Array2<f32>,
}

/// What a policy can be asked for that it cannot give.
#[derive(Debug, thiserror::Error)]
enum AskedError {
    #[error("a prefix of {0} tokens is longer than any program")]
    Length(usize),
    #[error("the policy gave an array of shape {found:?} instead of {expected:?}")]
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
        Ok(Self {
            description: model.description().clone(),
            encoder: engine.open(model.encoder())?,
            decoder: Arc::from(engine.open(model.decoder())?),
        })
    }

    /// What the model is.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    fn reading(&self, input: &PolicyInput<'_>) -> Result<Reading, PolicyError> {
        let inputs = Inputs::new(input, &self.description.signature.embedding);
        let Description { layers, heads, head_width, .. } = self.description;
        let sizes = [layers, heads, head_width];
        Ok(Reading {
            sizes,
            decoder: Arc::clone(&self.decoder),
            memory: self.remember(inputs)?,
            cache: Cache::empty(sizes, 1),
        })
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
        let scalars = shaped(&[1, SCALARS], inputs.scalars)?;
        let grids = shaped(&[1, DensityGrids::CELLS], inputs.grids)?;
        let positions = shaped(&[1, count, width], positions)?;
        let present = Array2::<f32>::ones((1, 3));
        let asked = [
            Input::Floats("scalars", scalars.view()),
            Input::Floats("grids", grids.view()),
            Input::Floats("positions", positions.view()),
            Input::Floats("position_bias", bias.view().into_dyn()),
            Input::Floats("present", present.view().into_dyn()),
        ];
        let outputs = ["summary", "memory_keys", "memory_values"];
        let mut found = self.encoder.run(&asked, &outputs).map_err(failed)?.into_iter();
        match (found.next(), found.next(), found.next()) {
            (Some(summary), Some(keys), Some(values)) => Ok(Memory { summary, keys, values }),
            _ => Err(failed(AskedError::Shape { found: vec![], expected: vec![outputs.len()] })),
        }
    }
}

impl Cache {
    fn empty([layers, heads, head_width]: [usize; 3], rows: usize) -> Self {
        let zeros = ArrayD::zeros(vec![layers, rows, heads, 1, head_width]);
        Self { keys: zeros.clone(), values: zeros }
    }

    /// Positions, the first one among them.
    fn positions(&self) -> usize {
        self.keys.shape().get(3).copied().unwrap_or(1)
    }
}

impl Reading {
    /// Continues rows, and keeps the cache that goes on.
    fn advance(
        &mut self,
        rows: &Rows,
        output: &'static str,
    ) -> Result<(ArrayD<f32>, ArrayD<f32>), PolicyError> {
        let (known, next) = (self.cache.positions(), rows.tokens.ncols());
        let places = Array1::from_iter((known - 1..known - 1 + next).map(|place| place as i64));
        let bias = Array2::from_shape_fn((next, known + next), |(at, to)| {
            if to > 0 && to <= known + at { 0.0 } else { MASKED }
        });
        let parents = Array1::from(rows.parents.clone());
        let ends = rows.ends.view().insert_axis(Axis(1));
        let asked = [
            Input::Integers("tokens", rows.tokens.view().into_dyn()),
            Input::Integers("places", places.view().into_dyn()),
            Input::Integers("parents", parents.view().into_dyn()),
            Input::Floats("bias", bias.view().into_dyn()),
            Input::Floats("keys", self.cache.keys.view()),
            Input::Floats("values", self.cache.values.view()),
            Input::Floats("summary", self.memory.summary.view()),
            Input::Floats("memory_keys", self.memory.keys.view()),
            Input::Floats("memory_values", self.memory.values.view()),
            Input::Floats("ends", ends.into_dyn()),
            Input::Floats("terms", rows.terms.view().into_dyn()),
        ];
        let outputs = [output, "critic", "next_keys", "next_values"];
        let mut found = self.decoder.run(&asked, &outputs).map_err(failed)?.into_iter();
        match (found.next(), found.next(), found.next(), found.next()) {
            (Some(output), Some(critic), Some(keys), Some(values)) => {
                self.cache = Cache { keys, values };
                Ok((output, critic))
            }
            _ => Err(failed(AskedError::Shape { found: vec![], expected: vec![outputs.len()] })),
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

impl ConditionedPolicy for Reading {
    fn next(&mut self, batch: &[BatchRow<'_>]) -> Result<Vec<Prediction>, PolicyError> {
        let Some(first) = batch.first() else { return Ok(Vec::new()) };
        let (count, length) = (batch.len(), first.prefix.len());
        if length > most_tokens() {
            return Err(failed(AskedError::Length(length)));
        }
        let parents: Option<Vec<i64>> =
            batch.iter().map(|row| row.parent.map(|parent| parent as i64)).collect();
        let parents = parents.unwrap_or_else(|| {
            self.cache = Cache::empty(self.sizes, 1);
            vec![0; count]
        });
        let ids = batch.iter().map(|row| {
            let last = row.prefix.last().and_then(Token::id);
            last.unwrap_or(BEGIN) as i64
        });
        let rows = Rows {
            tokens: Array1::from_iter(ids).insert_axis(Axis(1)),
            parents,
            ends: Array2::zeros((count, 1)),
            terms: Array2::zeros((count, TERMS)),
        };
        let (logits, critic) = self.advance(&rows, "logits")?;
        let expected = vec![count, 1, Token::VOCABULARY];
        if logits.shape() != expected || critic.len() != count {
            return Err(failed(AskedError::Shape { found: logits.shape().to_vec(), expected }));
        }
        let predictions = logits.outer_iter().zip(&critic).map(|(logits, &value)| Prediction {
            logits: logits.iter().copied().collect(),
            value: Some(value),
        });
        Ok(predictions.collect())
    }
}

impl SpeedModel for OnnxPolicy {
    fn speeds(
        &self,
        input: &PolicyInput<'_>,
        programs: &[Program],
    ) -> Result<Vec<MemberSpeeds>, PolicyError> {
        let ids: Vec<Vec<u8>> = programs.iter().map(token_ids).collect();
        let Some(longest) = ids.iter().map(Vec::len).max() else { return Ok(Vec::new()) };
        if longest > most_tokens() {
            return Err(failed(AskedError::Length(longest)));
        }
        let terms = ProgramTerms::new(Arc::clone(&input.stats), input.task, input.target);
        let terms = terms.map_err(failed)?;
        let (count, length) = (programs.len(), longest + 1);
        let token = |(row, at): (usize, usize)| match at.checked_sub(1) {
            None => BEGIN as i64,
            // What follows the end does not matter: nothing before looks at it.
            Some(at) => ids[row].get(at).copied().map_or(0, i64::from),
        };
        let mut all_terms = Array2::zeros((count, TERMS));
        for (mut row, program) in all_terms.outer_iter_mut().zip(programs) {
            row.iter_mut().zip(terms.of(program)).for_each(|(place, term)| *place = term);
        }
        let rows = Rows {
            tokens: Array2::from_shape_fn((count, length), token),
            parents: vec![0; count],
            ends: Array2::from_shape_fn((count, length), |(row, at)| {
                f32::from(u8::from(at == ids[row].len()))
            }),
            terms: all_terms,
        };
        let (speeds, _) = self.reading(input)?.advance(&rows, "speeds")?;
        let expected = vec![count, ENSEMBLE, REGIMES.len()];
        if speeds.shape() != expected {
            return Err(failed(AskedError::Shape { found: speeds.shape().to_vec(), expected }));
        }
        let of_row = |row| {
            std::array::from_fn(|member| {
                std::array::from_fn(|regime| speeds[[row, member, regime]])
            })
        };
        Ok((0..count).map(of_row).collect())
    }
}
