//! Speeds to fit predictions to, in the steps that improve the policy: what was measured of the
//! programs that it wrote, and as many recorded ones of the same cases, so that nothing else is
//! forgotten.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;
use sparserl_core::language::TextError;
use sparserl_core::random::SplitMix64;
use sparserl_onnx_models::programs::token_ids;
use sparserl_onnx_models::speeds::REGIMES;
use sparserl_onnx_models::terms::ProgramTerms;

use super::{Cases, Group, Judgement, Judgements, MatrixError};
use crate::dataset::DatasetProgram;
use crate::network::{Batch, Modalities, Row};
use crate::stages::{bootstrap_weights, shuffle};

/// The programs of a case cannot be described.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// Its matrix cannot be made again.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
    /// The cost model has no reference program.
    #[error(transparent)]
    Reference(#[from] TextError),
}

/// The rows of each group: its programs that were timed, each once, then recorded ones of its case
/// drawn by `seed`, at most as many as programs were written. All groups have the same number, the
/// last of which may be empty. What members of the ensemble learn from a matrix depends on
/// `members` alone, so that they stay apart.
pub(super) fn rows(
    cases: &Cases<'_>,
    groups: &[Group<'_>],
    judgements: &Judgements,
    (members, seed): (u64, u64),
) -> Result<Vec<Vec<Row>>, FitError> {
    let most = groups.iter().map(|group| group.rollouts.len()).max().unwrap_or(0);
    let of_group = |(number, (group, known)): (usize, (&Group<'_>, &Vec<Option<Judgement>>))| {
        let case = group.case;
        let terms = ProgramTerms::new(Arc::clone(cases.stats(case)?), case.task, case.target)?;
        let members = bootstrap_weights(members, case.matrix);
        let row = |tokens, terms, speeds| Row {
            tokens,
            terms: Some(terms),
            speeds,
            members,
            ..Row::default()
        };
        let (mut rows, mut written) = (Vec::new(), BTreeSet::new());
        for (rollout, judgement) in group.rollouts.iter().zip(known) {
            let (Some(program), Some(judgement)) = (&rollout.program, judgement) else { continue };
            let tokens = token_ids(program);
            let is_timed = judgement.speeds.iter().any(Option::is_some);
            if is_timed && written.insert(tokens.clone()) {
                rows.push(row(tokens, terms.of(program), judgement.speeds));
            }
        }
        let is_timed = |program: &&DatasetProgram| {
            (0..REGIMES.len()).any(|regime| program.speed(regime).is_some())
        };
        let others = case.programs.iter().filter(|program| !written.contains(&program.tokens));
        let mut recorded: Vec<&DatasetProgram> = others.filter(is_timed).collect();
        shuffle(&mut recorded, &mut SplitMix64::after(seed, number as u64));
        rows.extend(recorded.into_iter().take(most).map(|program| {
            let speeds = std::array::from_fn(|regime| program.speed(regime));
            row(program.tokens.clone(), program.terms, speeds)
        }));
        rows.resize(2 * most, Row::default());
        Ok(rows)
    };
    groups.par_iter().zip(judgements).enumerate().map(of_group).collect()
}

/// Some groups with their rows as a batch.
pub(super) fn batch<'g, 'd: 'g>(
    some: impl Iterator<Item = (&'g Group<'d>, &'g Vec<Row>)>,
) -> Batch {
    let mut batch = Batch { cases: Vec::new(), rows: Vec::new() };
    for (group, rows) in some {
        batch.cases.push((group.inputs.clone(), Modalities::ALL));
        batch.rows.extend_from_slice(rows);
    }
    batch
}
