//! A kernel once more, with the sizes of its matrix as constants.

use super::PipelineError;
use super::make::{Made, Maker};
use crate::kernel::{Kernel, SharedCompiler};
use crate::matrix::Scalar;
use crate::outcome::{Evaluation, Evaluator, Objective, Outcome};
use crate::results::Interval;

/// How many times as fast a kernel for the sizes of one matrix has to be as the one that is given
/// them, at the lower end of the interval: for less nobody gives up that one kernel serves many
/// matrices.
const WORTH: f64 = 1.01;

/// What becomes of a general kernel that is measured in turn with the special one of its program.
pub(super) enum Beside<C> {
    /// It stays.
    General(Kernel<C>),
    /// The special one takes its place: what was found out about the general one, and then about
    /// this one.
    Special(Kernel<C>, Evaluation),
    /// It was right before, and is not.
    Wrong(Outcome),
}

/// Makes a kernel for the sizes of its matrix alone, and measures both in turn.
pub(super) fn specialise<T, K, E, X, C: Clone + Send + Sync>(
    maker: &Maker<'_, T, K>,
    evaluator: &mut E,
    general: Kernel<C>,
    objective: Objective,
) -> Result<Beside<C>, PipelineError<K::Error, E::Error, X>>
where
    T: Scalar,
    K: SharedCompiler<Code = C>,
    E: Evaluator<Code = C>,
{
    let Ok(special) = maker.specialised(&general)? else { return Ok(Beside::General(general)) };
    let pair = Made([general.clone(), special.clone()].map(Ok).into());
    let evaluation = pair.judge(maker.matrix(), evaluator).map_err(PipelineError::Evaluator)?;
    let [of_general, of_special] = evaluation.outcomes.as_slice() else {
        return Ok(Beside::General(general));
    };
    if !of_general.is_right() {
        return Ok(Beside::Wrong(of_general.clone()));
    }
    let timings = of_general.measurement().zip(of_special.measurement());
    let gain = timings.and_then(|(general, special)| {
        Interval::of_speedup(&general.timing, &special.timing, objective)
    });
    Ok(match gain {
        Some(Interval { low, .. }) if low > WORTH => Beside::Special(special, evaluation),
        _ => Beside::General(general),
    })
}
