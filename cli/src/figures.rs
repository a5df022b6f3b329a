//! The candidate that a user would be given, packed to see what that costs.

use std::time::Instant;

use anyhow::Context;
use sparserl_core::language::Program;
use sparserl_core::layout::{ArrayRole, CostModel, pack};
use sparserl_core::matrix::{CsrView, Scalar};
use sparserl_core::outcome::{Evaluation, Objective};
use sparserl_core::results::{Chosen, Packing, Work, fastest};

/// Takes the fastest right candidate and packs the matrix for it; `None` where no candidate is
/// right.
pub(crate) fn choose<T: Scalar>(
    matrix: CsrView<'_, T>,
    costs: &CostModel<'_>,
    programs: &[Program],
    evaluation: &Evaluation,
) -> anyhow::Result<Option<Chosen>> {
    let Evaluation { outcomes, baselines, copy_bandwidth } = evaluation;
    let objective = Objective::default();
    let Some(index) = fastest(outcomes, objective) else { return Ok(None) };
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
    let work = Work::new(matrix.nnz(), program.task.operation);
    Ok(Some(Chosen::new((index, objective), measurement, baselines, work, packing)))
}
