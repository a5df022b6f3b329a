//! The candidate that a user would be given.

use std::time::Instant;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use sparserl_core::language::Program;
use sparserl_core::layout::{ArrayRole, CostModel, pack};
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{CacheState, Evaluation};

use super::{Figures, Packing, Work, fastest};

/// The fastest right candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Chosen {
    /// Among the candidates, from 0.
    pub(crate) index: usize,
    /// Which times decided: cold where any right candidate has them.
    pub(crate) by: CacheState,
    /// Of the arrays of the packed matrix, workspace excluded.
    pub(crate) packed_bytes: u64,
    /// To pack the matrix on the host.
    pub(crate) pack_seconds: f64,
    /// Of the dense operands, each element once.
    pub(crate) dense_bytes: u64,
    /// With a warm cache.
    pub(crate) warm: Figures,
    /// With a cold cache; absent when not measured.
    pub(crate) cold: Option<Figures>,
}

impl Chosen {
    /// The figures of one state of the cache.
    pub(crate) fn figures(&self, cache: CacheState) -> Option<&Figures> {
        match cache {
            CacheState::Warm => Some(&self.warm),
            CacheState::Cold => self.cold.as_ref(),
        }
    }
}

/// Takes the fastest right candidate and packs the matrix for it, to see what that costs; `None` where
/// no candidate is right.
pub(crate) fn choose<T: Scalar>(
    matrix: CsrView<'_, T>,
    costs: &CostModel<'_>,
    programs: &[Program],
    evaluation: &Evaluation,
) -> anyhow::Result<Option<Chosen>> {
    let Evaluation { outcomes, baselines, copy_bandwidth } = evaluation;
    let Some(index) = fastest(outcomes) else { return Ok(None) };
    let measurement = outcomes.get(index).and_then(|outcome| outcome.measurement());
    let Some((program, measurement)) = programs.get(index).zip(measurement) else {
        return Ok(None);
    };
    let start = Instant::now();
    let packed = pack(matrix, program).context("packing (a defect of SparseRL)")?;
    let packing = Packing {
        packed_bytes: packed.bytes(ArrayRole::Matrix),
        dense_bytes: costs.cost(program).dense_bytes,
        seconds: start.elapsed().as_secs_f64(),
        copy_bandwidth: *copy_bandwidth,
    };
    let work = Work::new(matrix.nnz(), program.task.operation).packed(packing);
    let figures = |cache| Figures::new(measurement, baselines, cache, work);
    let (Some(warm), cold) = (figures(CacheState::Warm), figures(CacheState::Cold)) else {
        return Ok(None);
    };
    Ok(Some(Chosen {
        index,
        by: if cold.is_some() { CacheState::Cold } else { CacheState::Warm },
        packed_bytes: packing.packed_bytes,
        pack_seconds: packing.seconds,
        dense_bytes: packing.dense_bytes,
        warm,
        cold,
    }))
}
