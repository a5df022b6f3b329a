use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayD, Axis};
use rayon::prelude::*;
use sparserl_core::decode::{BatchRow, ConditionedPolicy, PolicyError, Prediction};
use sparserl_core::language::{Program, Token};

use super::tree::{CacheSizes, PrefixTree};
use super::{AskedError, MASKED, failed};
use crate::engine::{Graph, Input, Shared};
use crate::programs::{BEGIN, most_tokens, token_ids};
use crate::speeds::{ConditionedSpeedModel, ENSEMBLE, MemberSpeeds, REGIMES};
use crate::terms::{ProgramTerms, TERMS};

/// Numbers of keys, and as many of values, that are kept from one search to the next: 64 MB each.
const MOST_KEPT: usize = 1 << 24;

/// The decoder, made ready for each of its uses.
#[derive(Clone)]
pub(super) struct Decoder {
    /// Gives `logits`, `critic`, `next_keys` and `next_values`.
    pub(super) continuing: Arc<dyn Graph>,
    /// Gives `speeds`.
    pub(super) rating: Arc<dyn Graph>,
}

/// What the decoder is told of a matrix, a task and a GPU.
pub(super) struct Memory {
    /// `[1, width]`.
    pub(super) summary: Shared,
    /// `[layers, heads, tokens, head width]`.
    pub(super) keys: Shared,
    pub(super) values: Shared,
}

/// A policy that has read its input.
pub(super) struct Reading<'m> {
    decoder: Decoder,
    memory: Memory,
    terms: ProgramTerms<'m>,
    known: PrefixTree,
}

/// Rows of tokens that are equally long, and where their programs end.
struct Rows<'r> {
    tokens: &'r [Vec<u32>],
    /// `[rows, TERMS]`, of programs that end with the last token.
    terms: Option<Array2<f32>>,
}

impl<'m> Reading<'m> {
    pub(super) fn new(
        decoder: Decoder,
        memory: Memory,
        sizes: CacheSizes,
        terms: ProgramTerms<'m>,
    ) -> Self {
        Self { decoder, memory, terms, known: PrefixTree::new(sizes) }
    }

    /// Runs the decoder on the tokens of rows from the first one on that is not known of all of
    /// them, the last one in any case: what it gives, and of how many tokens.
    fn run(
        &self,
        graph: &dyn Graph,
        rows: Rows<'_>,
    ) -> Result<(Vec<ArrayD<f32>>, usize), PolicyError> {
        let count = rows.tokens.len();
        let length = rows.tokens.first().map_or(0, Vec::len);
        if length > most_tokens() + 1 {
            return Err(failed(AskedError::Length(length - 1)));
        }
        let before_last = |tokens: &Vec<u32>| self.known.path(&tokens[..length - 1]);
        let paths: Vec<Vec<u32>> = rows.tokens.iter().map(before_last).collect();
        let known = paths.iter().map(Vec::len).min().unwrap_or(0);
        let next = length - known;
        let tokens = Array2::from_shape_fn((count, next), |(row, at)| {
            i64::from(rows.tokens[row][known + at])
        });
        let places = Array1::from_iter((known..length).map(|place| place as i64));
        let bias = Array2::from_shape_fn((next, 1 + length), |(at, to)| {
            if to > 0 && to <= 1 + known + at { 0.0 } else { MASKED }
        });
        let ends = f32::from(u8::from(rows.terms.is_some()));
        let ends =
            Array2::from_shape_fn((count, next), |(_, at)| if at + 1 == next { ends } else { 0.0 });
        let terms = rows.terms.unwrap_or_else(|| Array2::zeros((count, TERMS)));
        let Some([keys, values]) = self.known.gather(&paths, known) else {
            return Err(failed(AskedError::Cache));
        };
        let found = graph.run(vec![
            Input::integers("tokens", tokens),
            Input::integers("places", places),
            Input::floats("bias", bias),
            Input::Cached("keys", keys),
            Input::Cached("values", values),
            self.memory.summary.input("summary"),
            self.memory.keys.input("memory_keys"),
            self.memory.values.input("memory_values"),
            Input::floats("ends", ends.insert_axis(Axis(1))),
            Input::floats("terms", terms),
        ]);
        Ok((found.map_err(failed)?, next))
    }

    /// What comes after rows that are all different, `[rows, vocabulary]` and `[rows]`.
    fn continue_rows(&mut self, tokens: &[Vec<u32>]) -> Result<Vec<Prediction>, PolicyError> {
        let graph = Arc::clone(&self.decoder.continuing);
        let (found, next) = self.run(&*graph, Rows { tokens, terms: None })?;
        let shape =
            |found: &[ArrayD<f32>]| found.iter().flat_map(|array| array.shape().to_vec()).collect();
        let [logits, critic, keys, values] = &found[..] else {
            return Err(failed(AskedError::Shape { found: shape(&found), expected: vec![4] }));
        };
        let expected = vec![tokens.len(), next, Token::VOCABULARY];
        let right = logits.shape() == expected && critic.shape() == &expected[..2];
        if !right || !self.known.insert(tokens, [keys, values], next) {
            return Err(failed(AskedError::Shape { found: shape(&found), expected }));
        }
        let logits = logits.index_axis(Axis(1), next - 1);
        let critic = critic.index_axis(Axis(1), next - 1);
        let predictions = logits.outer_iter().zip(&critic).map(|(logits, &value)| Prediction {
            logits: logits.iter().copied().collect(),
            value: Some(value),
        });
        Ok(predictions.collect())
    }
}

/// The tokens of a program as the decoder takes them.
fn row(ids: impl IntoIterator<Item = usize>) -> Vec<u32> {
    std::iter::once(BEGIN).chain(ids).map(|id| id as u32).collect()
}

impl ConditionedPolicy for Reading<'_> {
    fn next(&mut self, batch: &[BatchRow<'_>]) -> Result<Vec<Prediction>, PolicyError> {
        if self.known.numbers() > MOST_KEPT && batch.iter().all(|row| row.parent.is_none()) {
            self.known.clear();
        }
        // Programs that have been alike so far are asked for once.
        let mut places = HashMap::new();
        let mut tokens: Vec<Vec<u32>> = Vec::new();
        let place = |asked: &BatchRow<'_>| {
            let asked = row(asked.prefix.tokens().into_iter().filter_map(Token::id));
            *places.entry(asked).or_insert_with_key(|asked| {
                tokens.push(asked.clone());
                tokens.len() - 1
            })
        };
        let rows: Vec<usize> = batch.iter().map(place).collect();
        if tokens.iter().any(|row| row.len() != tokens[0].len()) {
            return Err(failed(AskedError::Lengths));
        }
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        let predictions = self.continue_rows(&tokens)?;
        Ok(rows.into_iter().filter_map(|row| predictions.get(row).cloned()).collect())
    }
}

impl ConditionedSpeedModel for Reading<'_> {
    fn speeds(&mut self, programs: &[Program]) -> Result<Vec<MemberSpeeds>, PolicyError> {
        let rows: Vec<Vec<u32>> = programs
            .iter()
            .map(|program| row(token_ids(program).into_iter().map(usize::from)))
            .collect();
        // Equally long ones together, those apart of which all but the last token is known.
        let mut groups = BTreeMap::<(usize, bool), Vec<usize>>::new();
        for (place, row) in rows.iter().enumerate() {
            let known = self.known.path(row).len() + 1 >= row.len();
            groups.entry((row.len(), known)).or_default().push(place);
        }
        let terms: Vec<[f32; TERMS]> =
            programs.par_iter().map(|program| self.terms.of(program)).collect();
        let mut all = vec![MemberSpeeds::default(); programs.len()];
        for places in groups.into_values() {
            let tokens: Vec<Vec<u32>> = places.iter().map(|&place| rows[place].clone()).collect();
            let terms: Vec<[f32; TERMS]> = places.iter().map(|&place| terms[place]).collect();
            let terms = Array2::from(terms);
            let asked = Rows { tokens: &tokens, terms: Some(terms) };
            let (found, _) = self.run(&*self.decoder.rating, asked)?;
            let expected = vec![places.len(), ENSEMBLE, REGIMES.len()];
            let Some(speeds) = found.first().filter(|speeds| speeds.shape() == expected) else {
                let found = found.first().map_or_else(Vec::new, |found| found.shape().to_vec());
                return Err(failed(AskedError::Shape { found, expected }));
            };
            for (row, place) in places.into_iter().enumerate() {
                all[place] = std::array::from_fn(|member| {
                    std::array::from_fn(|regime| speeds[[row, member, regime]])
                });
            }
        }
        Ok(all)
    }
}
